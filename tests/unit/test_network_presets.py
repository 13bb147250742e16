"""Presets of the setting `network`: the hosts that the tools' own settings name, else some public registries."""

import json
import os
import socket

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as settings_of_hypothesis
from hypothesis import strategies as st

from bradawl.app.policies import Policies, network_rules, private_hosts
from bradawl.app.settings.model_settings import ModelSettings
from bradawl.app.settings.network_presets import PRESETS, ToolSettings, check_domains, preset_domains
from bradawl.app.settings.permission_values import RuleText
from bradawl.app.settings.settings import Settings
from bradawl.core.errors import SettingsError
from bradawl.core.permissions import Sandbox
from bradawl.core.rules import speaks_of
from bradawl.safety.permissions.domains import parse_domain

PYPI = {"py" + "pi.org", "files.python" + "hosted.org"}
NOTHING: set[str] = set()
INDEX = "index-url ="
CRATES = {"index.crates.io", "static.crates.io"}
GO = {"proxy.golang.org", "sum.golang.org"}


@pytest.fixture
def home(tmp_path):
    folder = tmp_path / "home"
    folder.mkdir()
    return folder


@pytest.fixture
def write(home):
    def put(name: str, text: str):
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o600)
        return path

    return put


@pytest.fixture
def domains(home, tmp_path):
    def found(name: str, **environment: str) -> set[str]:
        return set(preset_domains(name, ToolSettings(environment, str(home), (str(tmp_path / "ws"),))))

    return found


@pytest.mark.parametrize(
    ("preset", "hosts"),
    [("pip", PYPI), ("uv", PYPI), ("npm", NOTHING), ("pnpm", NOTHING), ("cargo", CRATES), ("go", GO)],
)
def test_without_settings_of_the_tool_a_preset_is_the_public_registry_or_nothing(domains, preset: str, hosts: set[str]):
    assert domains(preset) == hosts


@pytest.mark.parametrize(
    ("preset", "environment", "hosts"),
    [
        ("pip", {"PIP_INDEX_URL": "https://pip.corp:8443/simple"}, {"pip.corp:8443"}),
        ("pip", {"PIP_INDEX_URL": "https://me:secret@pip.corp/simple"}, {"pip.corp"}),
        ("pip", {"PIP_EXTRA_INDEX_URL": "https://a.example/x https://b.example/y"}, {"a.example", "b.example", *PYPI}),
        ("pip", {"PIP_INDEX_URL": f"https://py{'pi'}.org/simple"}, PYPI),
        ("pip", {"PIP_INDEX_URL": "http://127.0.0.1:3141/root"}, PYPI),
        ("pip", {"PIP_INDEX_URL": "file:///srv/wheels"}, PYPI),
        ("pip", {"PIP_INDEX_URL": "https://[::1/x"}, PYPI),
        ("uv", {"UV_DEFAULT_INDEX": "corp=https://uv.corp/simple"}, {"uv.corp"}),
        ("uv", {"UV_INDEX": "torch=https://download.pytorch.org/whl"}, {"download.pytorch.org", *PYPI}),
        ("npm", {"npm_config_registry": "https://npm.corp/"}, {"npm.corp"}),
        ("cargo", {"CARGO_REGISTRIES_MINE_INDEX": "sparse+https://crates.corp/"}, {"crates.corp", *CRATES}),
        ("go", {"GOPROXY": "https://go.corp|direct"}, {"go.corp", "sum.golang.org"}),
        ("go", {"GOPROXY": "https://go.corp", "GOSUMDB": "off"}, {"go.corp"}),
        (
            "go",
            {"GOPROXY": "https://go.corp,https://proxy.golang.org", "GOSUMDB": "sum.corp+a+b"},
            {"go.corp", "proxy.golang.org", "sum.corp"},
        ),
        ("go", {"GOPROXY": "direct"}, GO),
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
            {"a.corp", "b.corp", *PYPI},
        ),
        ("pip", ".config/pip/pip.conf", f"[global]\n# {INDEX} https://no.corp\ntimeout = 60\n", PYPI),
        ("pip", ".config/pip/pip.conf", "[global]\nproxy = https://no.corp\n", PYPI),
        ("uv", ".config/uv/uv.toml", '[[index]]\nurl = "https://uv.corp/simple"\ndefault = true\n', {"uv.corp"}),
        (
            "uv",
            ".config/uv/uv.toml",
            'index-url = "https://uv.corp/simple"\nextra-index-url = ["https://b.corp"]\n',
            {"uv.corp", "b.corp"},
        ),
        ("uv", ".config/uv/uv.toml", "index-url = [broken", PYPI),
        ("npm", ".npmrc", "//npm.corp/:_authToken=secret\nregistry=https://npm.corp/\n", {"npm.corp"}),
        ("npm", ".npmrc", "@mine:registry=https://mine.corp:4873/\n", {"mine.corp:4873"}),
        (
            "yarn",
            ".yarnrc.yml",
            'npmRegistryServer: "https://yarn.corp"\n',
            {"yarn.corp"},
        ),
        (
            "cargo",
            ".cargo/config.toml",
            '[source.crates-io]\nreplace-with = "mine"\n[source.mine]\nregistry = "sparse+https://crates.corp/i/"\n',
            {"crates.corp"},
        ),
        (
            "cargo",
            ".cargo/config.toml",
            '[registries.mine]\nindex = "https://crates.corp/git"\n',
            {"crates.corp", *CRATES},
        ),
        ("go", ".config/go/env", "GOPROXY=https://go.corp\nGOSUMDB=off\n", {"go.corp"}),
    ],
)  # fmt: skip  one case on each line
def test_the_users_files_of_the_tool_name_its_hosts(domains, write, preset: str, name: str, text: str, hosts: set[str]):
    write(name, text)
    assert domains(preset) == hosts


def test_files_in_the_workspace_are_not_read(domains, tmp_path):
    workspace = tmp_path / "ws"
    workspace.mkdir()
    (workspace / "pip.conf").write_text(f"[global]\n{INDEX} https://evil.example/simple\n")
    (workspace / ".npmrc").write_text("registry=https://evil.example/\n")
    (workspace / "config.toml").write_text('[registries.x]\nindex = "https://evil.example"\n')
    (tmp_path / "link.conf").symlink_to(workspace / "pip.conf")
    assert domains("pip", PIP_CONFIG_FILE=str(workspace / "pip.conf")) == PYPI
    assert domains("pip", PIP_CONFIG_FILE=str(tmp_path / "link.conf")) == PYPI
    assert domains("npm", NPM_CONFIG_USERCONFIG=str(workspace / ".npmrc")) == NOTHING
    assert domains("cargo", CARGO_HOME=str(workspace)) == CRATES
    assert domains("pip", PIP_CONFIG_FILE="pip.conf") == PYPI


def test_files_that_are_not_the_users_are_not_read(domains, write, home):
    path = write(".npmrc", "registry=https://npm.corp/\n")
    for mode in (0o666, 0o620):
        path.chmod(mode)
        assert domains("npm") == NOTHING
    path.unlink()
    os.mkfifo(path)
    assert domains("npm") == NOTHING
    path.unlink()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        assert domains("npm") == NOTHING
    path.unlink()
    path.mkdir()
    assert domains("npm") == NOTHING
    path.rmdir()
    path.write_bytes(b"registry=https://npm.corp/\n" + b"#" * 1_100_000)
    path.chmod(0o600)
    assert domains("npm") == NOTHING
    path.write_bytes(b"\xff\xfe\x00registry\nregistry=https://npm.corp/\n")
    assert domains("npm") == {"npm.corp"}


URLS = st.one_of(
    st.text(max_size=30),
    st.from_regex(r"\A(https?|ftp|file|sparse\+https)://[a-z0-9.:@\[\]#%_-]{0,25}(/[a-z]*)?\Z"),
    st.sampled_from(
        ["https://[::1", "https://a.example:99999/", "https://\u212a.example", "https://a..b/", "//a.example"]
    ),
)


@given(st.sampled_from(sorted(PRESETS)), URLS)
@settings_of_hypothesis(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_the_tools_settings_say_a_preset_is_a_list_of_valid_domains(home, preset: str, url: str):
    text = f"{INDEX} {url}\nregistry={url}\n@a:registry = {url}\nnpmRegistryServer: {url}\nGOPROXY={url}\n{url}\n"
    for name in (".config/pip/pip.conf", ".npmrc", ".yarnrc.yml", ".config/go/env"):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(text, errors="replace")
        (home / name).chmod(0o600)
    (home / ".cargo").mkdir(exist_ok=True)
    (home / ".cargo" / "config.toml").write_text(f"registries.a.index = {json.dumps(url)}\n", errors="replace")
    variables = {"UV_INDEX": url, "CARGO_REGISTRIES_A_INDEX": url}
    found = preset_domains(preset, ToolSettings(variables, str(home)))
    assert (found or preset in ("npm", "pnpm", "yarn", "apt")) and all(parse_domain(each) for each in found)


def test_apt_and_github_name_hosts(domains):
    assert all("/" not in host for host in domains("apt"))
    assert {"github.com", "codeload.github.com"} <= domains("github")


@pytest.mark.parametrize(
    ("text", "message"),
    [("pipp", "did you mean pip"), ("carg", "did you mean cargo"), ("https://x.org", "URL"), ("*", "every host")],
)
def test_an_entry_that_is_neither_a_domain_nor_a_preset_is_an_error(text: str, message: str):
    with pytest.raises(SettingsError, match=message) as caught:
        check_domains((text,), "--network")
    assert str(caught.value).startswith("--network: ")


def test_presets_domains_and_names_of_the_local_network_are_entries():
    check_domains((*PRESETS, "example.org", "*.example.org", "registry.corp:8443", "intranet", "pip:8080"), "x")


# ------------------------------------------------------------------ policies


def settings(*texts: str, is_projects=False, environment: dict[str, str] | None = None) -> Settings:
    rules = tuple(RuleText("domain", text, "x", "/", is_projects) for text in texts)
    model = ModelSettings("none", "none")
    return Settings(model=model, cwd="/", home="/nonexistent", rules=rules, environment=environment or {})


def covered(found, host: str) -> bool:
    return any(speaks_of(rule, host) for rule in found)


def test_the_domains_of_a_policy_are_those_of_the_setting_and_of_its_presets():
    given = settings("pip", "registry.corp", environment={"PIP_INDEX_URL": "https://pip.corp/simple"})
    found = network_rules(given, ())
    assert {rule.text for rule in found} == {"pip.corp", "registry.corp"}
    assert {rule.source for rule in found} == {"x, preset pip", "x"}
    assert covered(found, "pip.corp") and covered(found, "registry.corp")
    assert not any(covered(found, host) for host in PYPI)
    policies = Policies(given, ("/ws",), (), "", Sandbox)
    assert not policies.has_rules and set(found) <= set(policies().rules)


def test_an_invalid_domain_of_a_projects_file_is_left_out():
    found = network_rules(settings("registry.corp", "https://x.org", is_projects=True), ())
    assert [rule.text for rule in found] == ["registry.corp"]


def test_only_hosts_that_the_users_setting_names_in_full_may_have_private_addresses():
    variables = {"PIP_INDEX_URL": "https://pip.corp:8443/simple"}
    given = settings("pip", "Registry.corp.", "*.b.corp", "db.corp:5432", environment=variables)
    assert private_hosts(given, ()) == {"pip.corp:8443", "registry.corp", "db.corp:5432"}
    assert private_hosts(settings("a.corp", "pip", is_projects=True, environment=variables), ()) == frozenset()
    assert private_hosts(settings(), ()) == frozenset()


def test_an_invalid_domain_of_an_embedding_program_is_an_error():
    with pytest.raises(SettingsError, match="URL"):
        network_rules(settings("https://x.org"), ())
