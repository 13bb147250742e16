"""Presets of the setting `network`: hosts that the settings and the files of installed tools name."""

import json
import os
import re
import socket
import zipfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as settings_of_hypothesis
from hypothesis import strategies as st

from bradawl.app.settings.network_presets import PRESETS, PresetHosts, preset_hosts
from bradawl.app.settings.tool_settings import ToolSettings
from bradawl.safety.permissions.domains import parse_domain

PIP = {"index.example", "files.example"}
NPM = {"registry.example"}
GO = {"modules.example", "sums.example"}
NOTHING: set[str] = set()
INDEX = "index-url ="
PIP_FILE = """
PyPI = PackageIndex("https://index.example/", file_storage_domain="files.example")
TestPyPI = PackageIndex("https://test.example/", file_storage_domain="test-files.example")
"""
NPM_FILE = "const x = {\n  registry: new Definition('registry', {\n    default: 'https://registry.example/',\n"
GO_FILE = "# GOPROXY=https://no.example\nGOPROXY=https://modules.example,direct\nGOSUMDB=sums.example\n"
NPM_AT = "lib/node_modules/npm/node_modules/@npmcli/config/lib/definitions/definitions.js"
PIP_AT = "lib/python3.12/site-packages/pip/_internal/models/index.py"


def put(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o644)
    return path


@pytest.fixture
def home(tmp_path):
    folder = tmp_path / "home"
    folder.mkdir()
    return folder


@pytest.fixture
def tools(tmp_path):
    """A folder with pip, npm and go, of which each names a default index in a file."""
    folder = tmp_path / "tools"
    put(folder / PIP_AT, PIP_FILE)
    put(folder / NPM_AT, NPM_FILE)
    put(folder / "go/go.env", GO_FILE)
    put(folder / "bin/pip", "")
    put(folder / "go/bin/go", "")
    (folder / "bin/go").symlink_to("../go/bin/go")
    put(folder / "lib/node_modules/npm/bin/npm-cli.js", "")
    (folder / "bin/npm").symlink_to("../lib/node_modules/npm/bin/npm-cli.js")
    return folder


@pytest.fixture
def write(home):
    return lambda name, text: put(home / name, text)


@pytest.fixture
def find(home, tools, tmp_path):
    """The hosts and notes of a preset, with the tools on PATH."""

    def found(name: str, **environment: str) -> PresetHosts:
        variables = {"PATH": f"relative:{tools}/bin", **environment}
        return preset_hosts(name, ToolSettings(variables, str(home), (str(tmp_path / "ws"),)))

    return found


@pytest.fixture
def domains(find):
    return lambda name, **environment: set(find(name, **environment).domains)


# ------------------------------------------------------------------ default indexes


@pytest.mark.parametrize(("preset", "hosts"), [("pip", PIP), ("uv", PIP), ("npm", NPM), ("pnpm", NPM), ("go", GO)])
def test_without_settings_a_preset_is_the_index_that_the_installed_tool_names(find, preset: str, hosts: set[str]):
    assert find(preset) == (tuple(find(preset).domains), ()) and set(find(preset).domains) == hosts


@pytest.mark.parametrize("preset", ["yarn", "cargo"])
def test_a_tool_that_names_its_index_in_no_file_gets_no_default_and_a_note(find, preset: str):
    hosts, (note,) = find(preset)
    assert hosts == () and f"no file of {preset} names it" in note and 'network = ["HOST"]' in note


@pytest.mark.parametrize("preset", ["pip", "uv", "npm", "pnpm", "go"])
def test_without_an_installed_tool_there_is_no_default_and_a_note(find, preset: str):
    hosts, (note,) = find(preset, PATH="/nonexistent")
    assert hosts == () and "there is none outside the workspace" in note


def test_the_pip_of_bradawls_own_python_is_used_last(home, tools, tmp_path):
    (tools / "bin/pip").unlink()
    variables = {"PATH": f"{tools}/bin"}
    assert not preset_hosts("pip", ToolSettings(variables, str(home))).domains
    assert set(preset_hosts("pip", ToolSettings(variables, str(home), (), (str(tools),))).domains) == PIP
    other = put(tmp_path / "other" / PIP_AT, PIP_FILE.replace("index.example", "first.example")).parents[6]
    put(other / "bin/python3", "")
    found = preset_hosts("pip", ToolSettings({"PATH": f"{other}/bin"}, str(home), (), (str(tools),)))
    assert found.domains == ("first.example", "files.example")


@pytest.mark.parametrize("name", ["lib/python3.12/ensurepip/_bundled/pip-26.0.whl", "share/python-wheels/pip-26.0.whl"])
def test_the_pip_that_new_environments_get_names_the_default_too(find, tools, name: str):
    (tools / PIP_AT).unlink()
    (tools / "bin/pip").rename(tools / "bin/python3")
    (tools / name).parent.mkdir(parents=True)

    def put_wheel(text: str, member: str = "pip/_internal/models/index.py") -> None:
        with zipfile.ZipFile(tools / name, "w", zipfile.ZIP_DEFLATED) as wheel:
            wheel.writestr(member, text)
        (tools / name).chmod(0o644)

    put_wheel(PIP_FILE)
    assert set(find("pip").domains) == PIP
    (tools / name).chmod(0o666)
    assert find("pip").domains == ()
    for text, member in ((PIP_FILE, "other.py"), ("#" * 1_000_000 + PIP_FILE, "pip/_internal/models/index.py")):
        put_wheel(text, member)
        assert find("pip").domains == ()
    data = bytearray((tools / name).read_bytes())
    put(tools / name, "no wheel")
    assert find("pip").domains == ()
    data[50:80] = b"x" * 30
    (tools / name).write_bytes(data)
    assert find("pip").domains == ()
    (tools / name).unlink()
    os.mkfifo(tools / name, 0o644)
    assert find("pip").domains == ()


def test_debian_keeps_npms_modules_beside_npm(domains, tools):
    (tools / NPM_AT).unlink()
    put(tools / "lib/node_modules/@npmcli/config/lib/definitions/definitions.js", NPM_FILE)
    assert domains("npm") == NPM


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\0" * 100,
        PIP_FILE.replace("https://index.example/", "https://*.example/"),
        PIP_FILE.replace("files.example", "files.example/x@y"),
        PIP_FILE.replace("https://index.example/", "file:///srv"),
        PIP_FILE.replace("PyPI =", "# PyPI ="),
        "#" * 1_100_000 + PIP_FILE,
    ],
)
def test_a_file_of_pip_with_other_content_names_no_default(find, tools, text: str):
    put(tools / PIP_AT, text)
    assert find("pip").domains == () and len(find("pip").notes) == 1


def _world_writable_file(tools: Path, _: Path) -> None:
    (tools / PIP_AT).chmod(0o666)


def _world_writable_folder(tools: Path, _: Path) -> None:
    (tools / PIP_AT).parent.chmod(0o777)


def _link_into_the_workspace(tools: Path, workspace: Path) -> None:
    (tools / PIP_AT).unlink()
    (tools / PIP_AT).symlink_to(put(workspace / "index.py", PIP_FILE))


def _folder_linked_into_the_workspace(tools: Path, workspace: Path) -> None:
    put(workspace / "lib/_internal/models/index.py", PIP_FILE)
    pip = (tools / PIP_AT).parents[2]
    pip.rename(tools / "old")
    pip.symlink_to(workspace / "lib")


def _fifo(tools: Path, _: Path) -> None:
    (tools / PIP_AT).unlink()
    os.mkfifo(tools / PIP_AT)


@pytest.mark.parametrize(
    "plant",
    [_world_writable_file, _world_writable_folder, _link_into_the_workspace, _folder_linked_into_the_workspace, _fifo],
)
def test_a_file_of_pip_that_others_could_have_planted_is_not_read(find, tools, tmp_path, plant):
    plant(tools, tmp_path / "ws")
    hosts, (note,) = find("pip")
    assert hosts == () and "index.py: " in note


def test_tools_in_the_workspace_are_not_read(find, tools, tmp_path):
    workspace = tmp_path / "ws"
    tools.rename(workspace)
    for preset in ("pip", "npm", "go"):
        hosts, (note,) = find(preset, PATH=f"{workspace}/bin", GOROOT=str(workspace / "go"))
        assert hosts == () and "it is in the workspace" in note


# ------------------------------------------------------------------ settings of the tools


@pytest.mark.parametrize(
    ("preset", "environment", "hosts"),
    [
        ("pip", {"PIP_INDEX_URL": "https://pip.corp:8443/simple"}, {"pip.corp:8443"}),
        ("pip", {"PIP_INDEX_URL": "https://me:secret@pip.corp/simple"}, {"pip.corp"}),
        ("pip", {"PIP_INDEX_URL": "HTTPS://Pip.Corp.:443/simple"}, {"pip.corp"}),
        ("pip", {"PIP_EXTRA_INDEX_URL": "https://a.example/x https://b.example/y"}, {"a.example", "b.example", *PIP}),
        ("pip", {"PIP_INDEX_URL": "https://index.example/simple"}, PIP),
        ("pip", {"PIP_CONFIG_FILE": "/dev/null"}, PIP),
        ("uv", {"UV_DEFAULT_INDEX": "corp=https://uv.corp/simple"}, {"uv.corp"}),
        ("uv", {"UV_INDEX": "torch=https://wheels.corp/whl"}, {"wheels.corp", *PIP}),
        ("npm", {"npm_config_registry": "https://npm.corp/"}, {"npm.corp"}),
        ("yarn", {"YARN_NPM_REGISTRY_SERVER": "https://yarn.corp"}, {"yarn.corp"}),
        ("cargo", {"CARGO_REGISTRIES_MINE_INDEX": "sparse+https://crates.corp/"}, {"crates.corp"}),
        ("go", {"GOPROXY": "https://go.corp|direct"}, {"go.corp", "sums.example"}),
        ("go", {"GOPROXY": "go.corp/x,https://b.corp"}, {"go.corp", "b.corp", "sums.example"}),
        ("go", {"GOPROXY": "https://go.corp", "GOSUMDB": "off"}, {"go.corp"}),
        ("go", {"GOPROXY": "https://go.corp", "GOSUMDB": "sum.corp+a+b"}, {"go.corp", "sum.corp"}),
        ("go", {"GOPROXY": "off", "GOSUMDB": "sum.corp https://mirror.corp"}, {"mirror.corp"}),
        ("go", {"GOPROXY": "direct"}, {"sums.example"}),
    ],
)  # fmt: skip  one case on each line
def test_variables_of_the_tool_name_its_hosts(domains, preset: str, environment: dict[str, str], hosts: set[str]):
    assert domains(preset, **environment) == hosts


@pytest.mark.parametrize(
    ("preset", "name", "text", "hosts"),
    [
        ("pip", ".config/pip/pip.conf", f"[global]\n{INDEX} https://pip.corp/simple\n", {"pip.corp"}),
        (
            "pip",
            ".pip/pip.conf",
            "[install]\nextra_index_url =\n  https://a.corp/x\n  https://b.corp/y\n",
            {"a.corp", "b.corp", *PIP},
        ),
        ("pip", ".config/pip/pip.conf", f"[global]\n# {INDEX} https://no.corp\ntimeout = 60\n", PIP),
        ("pip", ".config/pip/pip.conf", "[global]\nproxy = https://no.corp\n", PIP),
        ("uv", ".config/uv/uv.toml", '[[index]]\nurl = "https://uv.corp/simple"\ndefault = true\n', {"uv.corp"}),
        (
            "uv",
            ".config/uv/uv.toml",
            'index-url = "https://uv.corp/simple"\nextra-index-url = ["https://b.corp"]\n',
            {"uv.corp", "b.corp"},
        ),
        ("uv", ".config/uv/uv.toml", '[pip]\nindex-url = "https://uv.corp/simple"\n', {"uv.corp"}),
        ("npm", ".npmrc", "//npm.corp/:_authToken=secret\nregistry=https://npm.corp/\n", {"npm.corp"}),
        ("npm", ".npmrc", "@mine:registry=https://mine.corp:4873/\n", {"mine.corp:4873", *NPM}),
        ("npm", "../tools/lib/node_modules/npm/npmrc", "registry=https://npm.corp/\n", {"npm.corp"}),
        ("pnpm", ".config/pnpm/rc", "registry=https://pnpm.corp/\n", {"pnpm.corp"}),
        (
            "yarn",
            ".yarnrc.yml",
            'npmRegistryServer: "https://yarn.corp"\nnpmScopes:\n  a:\n    npmRegistryServer: "https://b.corp"\n',
            {"yarn.corp", "b.corp"},
        ),
        ("yarn", ".yarnrc", 'registry "https://yarn.corp"\n', {"yarn.corp"}),
        (
            "cargo",
            ".cargo/config.toml",
            '[source.crates-io]\nreplace-with = "mine"\n[source.mine]\nregistry = "sparse+https://crates.corp/i/"\n',
            {"crates.corp"},
        ),
        ("cargo", ".cargo/config", '[registries.mine]\nindex = "https://crates.corp/git"\n', {"crates.corp"}),
        ("go", ".config/go/env", "GOPROXY=https://go.corp\nGOSUMDB=off\n", {"go.corp"}),
    ],
)  # fmt: skip  one case on each line
def test_the_users_files_of_the_tool_name_its_hosts(domains, write, preset: str, name: str, text: str, hosts: set[str]):
    write(name, text)
    assert domains(preset) == hosts


def test_cargo_needs_no_default_where_it_is_replaced(find, write):
    write(".cargo/config.toml", '[source.crates-io]\nreplace-with="a"\n[source.a]\nregistry="https://crates.corp"\n')
    assert find("cargo") == (("crates.corp",), ())


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("http://127.0.0.1:3141/root", "is an address"),
        ("http://10.0.0.5/", "is an address"),
        ("http://2130706433/", "is an address"),
        ("https://[::1]/", "is an address"),
        ("https://[::1/x", "is an address"),
        ("https://localhost/simple", "this machine"),
        ("https://a.localhost/simple", "this machine"),
        ("file:///srv/wheels", "not a URL of HTTP"),
        ("ssh://host.example/", "not a URL of HTTP"),
        ("//host.example/", "not a URL of HTTP"),
        ("https://*.evil.example/", "a star is not one"),
        ("https://a*.example/", "a star is not one"),
        ("https://a.example https://b.example", "more than one URL"),
        ("https://${HOST}/", "contains a variable"),
        ("${EVIL}", "contains a variable"),
        ("https://corp.example\\@evil.example/", "backslash"),
        ("https://a@b@c.example/", "not valid"),
        ("https://a.example:0443/", "not valid"),
        ("https://a.example:/", "not valid"),
        ("https://a.example:70000/", "differently|not valid|not a port"),
        ("https://a%2eexample/", "not valid"),
        ("https://a..b/", "not the name"),
        ("https://stra\u00dfe.example/", "differently"),
        ("https://\u212a.example", "differently|not valid|invalid"),
        ("https://a\u3002example/", "differently"),
        ("https://", "not valid"),
        ("https://" + "a" * 3000, "not valid"),
    ],
)
@pytest.mark.parametrize("preset", ["pip", "uv", "npm", "pnpm"])
def test_a_url_that_can_not_be_granted_is_a_note_and_takes_the_default_away(find, preset: str, url: str, why: str):
    name = {"pip": "PIP_INDEX_URL", "uv": "UV_DEFAULT_INDEX"}.get(preset, "npm_config_registry")
    hosts, (note,) = find(preset, **{name: url})
    assert hosts == () and name in note
    assert re.search(why, note)


def test_a_note_shows_no_password_and_no_control_characters(find):
    (note,) = find("pip", PIP_INDEX_URL="https://me:secret@10.0.0.5/\x1b]0;x\n\u202e").notes
    assert "secret" not in note and "10.0.0.5" in note and note.isprintable() and note.isascii()
    (note,) = find("cargo", **{"CARGO_REGISTRIES_\u00e4_INDEX": "me:secret@10.0.0.5"}).notes
    assert "secret" not in note and "10.0.0.5" in note and note.isascii()


def test_a_scope_with_a_variable_takes_the_default_away_and_keeps_the_other_registries(find, write):
    write(".npmrc", "registry=${EVIL}\n@a:registry=https://scope.example/\n")
    hosts, (note,) = find("npm", EVIL="https://evil.example/")
    assert hosts == ("scope.example",) and ".npmrc: registry" in note


def test_notes_are_few(find, write):
    write(".npmrc", "".join(f"@a{i}:registry=http://10.0.0.{i}/\n" for i in range(50)))
    assert len(find("npm").notes) == 6 and "45 more" in find("npm").notes[-1]


def test_files_in_the_workspace_are_not_read_and_take_the_default_away(find, tmp_path):
    workspace = tmp_path / "ws"
    put(workspace / "pip.conf", f"[global]\n{INDEX} https://evil.example/simple\n")
    put(workspace / ".npmrc", "registry=https://evil.example/\n")
    put(workspace / "config.toml", '[registries.x]\nindex = "https://evil.example"\n')
    put(workspace / "env", "GOPROXY=https://evil.example\n")
    put(tmp_path / "real.conf", f"[global]\n{INDEX} https://evil.example/simple\n")
    (tmp_path / "link.conf").symlink_to(workspace / "pip.conf")
    (workspace / "out.conf").symlink_to(tmp_path / "real.conf")
    for preset, variable, value in (
        ("pip", "PIP_CONFIG_FILE", workspace / "pip.conf"),
        ("pip", "PIP_CONFIG_FILE", tmp_path / "link.conf"),
        ("pip", "PIP_CONFIG_FILE", workspace / "out.conf"),
        ("pip", "PIP_CONFIG_FILE", tmp_path / "home/../ws/pip.conf"),
        ("npm", "NPM_CONFIG_USERCONFIG", workspace / ".npmrc"),
        ("cargo", "CARGO_HOME", workspace),
        ("go", "GOENV", workspace / "env"),
    ):
        hosts, notes = find(preset, **{variable: str(value)})
        assert hosts == () and any("it is in the workspace" in note for note in notes), (preset, value)


def test_a_file_that_can_not_be_opened_is_a_note(find, write):
    for name in (f"/{'a' * 300}", str(write("pip.conf", "").parent / f"pip.conf{'b' * 300}")):
        hosts, (note,) = find("pip", PIP_CONFIG_FILE=name)
        assert hosts == () and "too long" in note
    if os.geteuid():  # root opens every folder
        folder = write(".config/pip/pip.conf", "").parent
        folder.chmod(0)
        assert find("pip").domains == () and "ermission denied" in find("pip").notes[0]
        folder.chmod(0o700)


def test_a_relative_file_is_a_note(find):
    hosts, (note,) = find("pip", PIP_CONFIG_FILE="pip.conf")
    assert hosts == () and "PIP_CONFIG_FILE" in note and "not an absolute path" in note


def test_an_environment_in_the_workspace_configures_nothing(domains, tmp_path):
    put(tmp_path / "ws/venv/bin/python", "")
    put(tmp_path / "ws/venv/pip.conf", f"[global]\n{INDEX} https://evil.example/simple\n")
    path = f"{tmp_path}/ws/venv/bin:{tmp_path}/tools/bin"
    assert domains("pip", PATH=path) == PIP


def test_the_configuration_beside_an_installed_python_is_read(domains, tools):
    put(tools / "pip.conf", f"[global]\n{INDEX} https://site.corp/simple\n")
    assert domains("pip") == {"site.corp"}


@pytest.mark.parametrize(
    ("preset", "name", "text"),
    [
        ("pip", ".config/pip/pip.conf", "no section"),
        ("uv", ".config/uv/uv.toml", "index-url = [broken"),
        ("cargo", ".cargo/config.toml", "[" * 5000),
    ],
)
def test_a_file_that_is_not_valid_takes_the_default_away(find, write, preset: str, name: str, text: str):
    write(name, text)
    hosts, (note,) = find(preset)
    assert hosts == () and "not a valid" in note.replace("not valid", "not a valid") and name in note


def test_files_that_are_not_the_users_are_not_read(find, write, home):
    path = write(".npmrc", "registry=https://npm.corp/\n")

    def is_refused() -> bool:
        hosts, notes = find("npm")
        return hosts == () and len(notes) == 1 and ".npmrc" in notes[0]

    for mode in (0o666, 0o620):
        path.chmod(mode)
        assert is_refused()
    path.unlink()
    os.mkfifo(path)
    assert is_refused()
    path.unlink()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        assert is_refused()
    path.unlink()
    path.mkdir()
    assert is_refused()
    path.rmdir()
    path.symlink_to(".npmrc")
    assert is_refused()
    path.unlink()
    path.write_bytes(b"registry=https://npm.corp/\n" + b"#" * 1_100_000)
    path.chmod(0o600)
    assert is_refused()
    path.write_bytes(b"\xff\xfe\x00registry\nregistry=https://npm.corp/\n")
    assert find("npm") == (("npm.corp",), ())
    home.chmod(0o777)
    assert is_refused()


URLS = st.one_of(
    st.text(max_size=30),
    st.from_regex(r"\A(https?|ftp|file|sparse\+https)://[a-zA-Z0-9.:@\[\]#%_*$\\-]{0,25}(/[a-z]*)?\Z"),
    st.sampled_from(
        ["https://[::1", "https://a.example:99999/", "https://\u212a.example", "https://a..b/", "//a.example"]
    ),
)


@given(st.sampled_from(sorted(PRESETS)), URLS)
@settings_of_hypothesis(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_the_tools_settings_say_a_preset_is_a_list_of_single_hosts(home, tools, preset: str, url: str):
    text = f"[a]\n{INDEX} {url}\nregistry={url}\n@a:registry = {url}\nnpmRegistryServer: {url}\nGOPROXY={url}\n{url}\n"
    for name in (".config/pip/pip.conf", ".npmrc", ".yarnrc.yml", ".config/go/env"):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(text, errors="replace")
        (home / name).chmod(0o600)
    (home / ".cargo").mkdir(exist_ok=True)
    (home / ".cargo" / "config.toml").write_text(f"registries.a.index = {json.dumps(url)}\n", errors="replace")
    variables = {"UV_INDEX": url, "CARGO_REGISTRIES_A_INDEX": url, "PATH": f"{tools}/bin"}
    hosts, notes = preset_hosts(preset, ToolSettings(variables, str(home)))
    assert all(not parse_domain(host).is_below for host in hosts)
    assert all(note.isprintable() and note.isascii() for note in notes)
    assert hosts or notes


def test_apt_and_github_name_hosts(domains):
    assert all("/" not in host for host in domains("apt"))
    assert {"github.com", "codeload.github.com"} <= domains("github")
