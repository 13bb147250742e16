"""Package managers and clients in bubblewrap reach granted hosts through the proxy, and say why others are refused."""

import asyncio
import base64
import gzip
import hashlib
import io
import json
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
from bwrap import needs_bwrap
from internet import ADDRESS, ConnectedSession, connected_session
from package_servers import wheel_index
from sandboxed_session import IDENTITY, SYSTEM_PATH

from bradawl.sandbox.landlock_helper import version

pytestmark = needs_bwrap

PYTHON = str(Path(sys.executable).resolve())
REFUSED = "refused.example is not in `network`"


@pytest.fixture
def online(tmp_path):
    with connected_session(
        tmp_path, "granted.example", "files.example", names=("granted.example", "files.example", "refused.example")
    ) as made:
        yield made


def need(program: str) -> None:
    if shutil.which(program, path=SYSTEM_PATH) is None:
        pytest.skip(f"{program} is not installed")


def refusals(online: ConnectedSession, line: str, **variables: str) -> str:
    """Run a line that must fail, and return its notes."""
    result = online.run(line, env=variables)
    assert result.exit_code, result
    assert not any("refused.example" in host for host, _ in online.outside.requests)
    return "\n".join(result.notes)


def test_pip_installs_from_granted_hosts_and_names_a_refused_one(online):
    if subprocess.run([PYTHON, "-m", "pip", "--version"], capture_output=True, check=False).returncode:
        pytest.skip("pip is not installed")
    wheel_index(online.outside.folder)
    options = "--disable-pip-version-check --no-deps --cert ca.pem --target out"
    pip = f"{PYTHON} -m pip install {options} -i https://{{}}/simple demo"
    result = online.run(pip.format("granted.example"))
    assert result.exit_code == 0, result
    assert (online.here.root / "out/demo.py").read_text() == "ANSWER = 42\n"
    assert online.asked == ["granted.example", "files.example"]
    assert REFUSED in refusals(online, pip.format("refused.example"))
    online.granted.remove("files.example")
    assert "files.example is not in" in "\n".join(online.run(f"rm -r out; {pip.format('granted.example')}").notes)


def test_npm_installs_from_a_granted_registry_and_names_a_refused_one(online):
    need("npm")
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as file:
        for name, text in (
            ("package.json", '{"name": "demo", "version": "1.0.0"}'),
            ("index.js", "module.exports = 42"),
        ):
            entry = tarfile.TarInfo(f"package/{name}")
            entry.size = len(text)
            file.addfile(entry, io.BytesIO(text.encode()))
    packed = gzip.compress(data.getvalue())
    digest = f"sha512-{base64.b64encode(hashlib.sha512(packed).digest()).decode()}"
    (online.outside.folder / "demo.tgz").write_bytes(packed)
    dist = {"tarball": "https://files.example/demo.tgz", "integrity": digest}
    version = {"name": "demo", "version": "1.0.0", "dist": dist}
    listing = {"name": "demo", "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": version}}
    (online.outside.folder / "demo").write_text(json.dumps(listing))
    npm = "npm install --no-audit --no-fund --no-update-notifier --registry https://{}/ demo"
    variables = {"npm_config_cafile": str(online.root_certificate)}
    online.here.write("package.json", "{}")
    result = online.run(npm.format("granted.example"), env=variables)
    assert result.exit_code == 0, result
    assert (online.here.root / "node_modules/demo/index.js").read_text() == "module.exports = 42"
    assert REFUSED in refusals(
        online, f"rm -r node_modules package-lock.json; {npm.format('refused.example')}", **variables
    )


def test_git_clones_over_https_and_not_over_ssh(online):
    need("git")
    online.here.bare(
        f"(git init -q -b main made; cd made; {IDENTITY}; git commit -q --allow-empty -m one; "
        f"git clone -q --bare . {online.outside.folder}/made.git; "
        f"cd {online.outside.folder}/made.git; git update-server-info)"
    )
    variables = {"GIT_SSL_CAINFO": str(online.root_certificate)}
    line = "git clone -q https://granted.example/made.git copy && git -C copy log --format=%s"
    assert online.out(line, env=variables) == "one\n"
    assert REFUSED in refusals(online, "git clone -q https://refused.example/made.git other", **variables)
    if shutil.which("ssh", path=SYSTEM_PATH):
        assert online.run("git clone -q git@granted.example:made.git third").exit_code


@pytest.mark.parametrize("kind", ["bubblewrap", "landlock"])
def test_git_uses_the_network_proxy_where_the_users_settings_name_another(tmp_path, kind):
    need("git")
    if kind == "landlock" and version() < 6:
        pytest.skip("Landlock is missing here, or too old")
    with connected_session(tmp_path, "granted.example", kind=kind) as online:
        online.here.bare(
            f"(git init -q -b main made; cd made; {IDENTITY}; git commit -q --allow-empty -m one; "
            f"git clone -q --bare . {online.outside.folder}/made.git; "
            f"cd {online.outside.folder}/made.git; git update-server-info)"
        )
        (online.here.home / ".gitconfig").write_text("[http]\n\tproxy = http://me:pw@proxy.corp:3128\n")
        line = "git clone -q http://granted.example/made.git copy && git -C copy log --format=%s"
        assert online.out(line) == "one\n"
        variables = {"HTTP_PROXY": "http://127.0.0.1:1", "http_proxy": "http://127.0.0.1:1"}
        assert b"proxy.corp" in online.run("git clone -q http://granted.example/made.git 2", env=variables).stderr


def test_encryption_without_a_server_name_is_end_to_end_too(online):
    need("openssl")
    (online.outside.folder / "page").write_text("a page\n")
    line = (
        "printf 'GET /page HTTP/1.0\\r\\nHost: x\\r\\n\\r\\n' | openssl s_client -quiet -noservername -CAfile ca.pem"
        " -verify_return_error -proxy 127.0.0.1:19080 -connect {}:443"
    )
    assert "\r\n\r\na page\n" in online.out(line.format("granted.example"))
    assert REFUSED in refusals(online, line.format("refused.example"))
    assert online.asked == ["granted.example", "refused.example"], (
        "the proxy judges its own request, not the name in TLS"
    )


# ------------------------------------------------------------------ attacks


GET = "curl -sS -m 20 "


def test_a_second_answer_of_the_resolver_is_never_used(online):
    online.outside.addresses["granted.example"] = [(ADDRESS,), ("127.0.0.1",), ("169.254.169.254",), (ADDRESS,)]
    (online.outside.folder / "page").write_text("a page\n")
    out = online.out(f"for n in 1 2 3 4; do {GET} http://granted.example/page; done").splitlines()
    assert out[0] == out[3] == "a page"
    assert "it is at 127.0.0.1, an address of this machine" in out[1]
    assert "it is at 169.254.169.254, a link-local address, where clouds keep their metadata" in out[2]
    assert online.outside.dialed == [(ADDRESS, 80)] * 2


def test_no_redirect_leads_to_this_machine_or_to_metadata(online):
    places = (
        "http://127.0.0.1/",
        "http://0x7f000001/",
        "http://169.254.169.254/latest",
        "http://[::1]/",
        "http://localhost.localdomain/",
    )
    online.outside.plain.redirects |= {f"/{number}": place for number, place in enumerate(places)}
    for number in range(len(places)):
        result = online.run(f"{GET} -L --noproxy '' http://granted.example/{number}")
        assert "refused" in "\n".join(result.notes), result
    assert online.outside.dialed == [(ADDRESS, 80)] * len(places)


@pytest.mark.parametrize("port", [22, 25, 53, 3306, 6379, 8080])
def test_connect_to_other_ports_is_refused(online, port):
    for network in (True, False):
        result = online.run(f"{GET} -p http://granted.example:{port}/", network=network)
        assert result.exit_code and f"granted.example:{port}" in result.notes[0]
    assert online.outside.dialed == []


def test_names_can_not_be_resolved_inside(online):
    line = f"{PYTHON} -c \"import socket; socket.getaddrinfo('granted.example', 80)\""
    assert "gaierror" in online.out(line, network=True) and online.outside.resolved == []


def test_no_other_command_reaches_the_listener_of_one(online):
    async def both():
        first = asyncio.create_task(online.arun("sleep 1"))
        second = await online.arun(f"{GET} http://granted.example/page", permit=None)
        await first
        return second

    assert b"Could not resolve host" in asyncio.run(both()).stderr


def test_a_program_can_not_take_the_port_of_the_listener(online):
    program = "import socket; socket.socket().bind(('127.0.0.1', 19080))"
    assert "Address already in use" in online.out(f'{PYTHON} -c "{program}"')


@pytest.mark.parametrize("place", ["localhost", "127.0.0.1", "0.0.0.0", "127.3.2.1", "app.localhost"])  # noqa: S104 - reached, not bound
def test_servers_of_the_command_itself_are_reached_without_the_proxy(online, place):
    line = (
        "python3 -m http.server -b 0.0.0.0 8000 >log 2>&1 & for _ in $(seq 50); do grep -q Serving log && break; "
        f"sleep 0.1; done; echo there >page; curl -sS -m 5 http://{place}:8000/page; kill $!"
    )
    result = online.run(f"export PYTHONUNBUFFERED=1; {line}")
    assert result.stdout == b"there\n" and not result.notes, result
