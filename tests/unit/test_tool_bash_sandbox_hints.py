"""The tool `bash` adds hints to commands that failed because of the sandbox, and to no others."""

import os
import shutil
import subprocess
import threading
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from bradawl.core.messages import text_of
from bradawl.core.permissions import Grant
from bradawl.core.workspace import CommandResult
from bradawl.tools.shell.result import ending_of, output_of
from bradawl.tools.shell.sandbox_hints import notes_on

IN_WORKSPACE = Grant(writable=("/ws", "/tmp"))


def notes(error: str, *, code: int = 1, sandbox: str = "bubblewrap", grant: Grant | None = IN_WORKSPACE, there=True):
    result = CommandResult(code, b"", error.encode(), sandbox=sandbox)
    return notes_on(result, grant, user_is_there=there)


NOTHING_FOUND = [
    "ERROR: Could not find a version that satisfies the requirement nosuchpkgx (from versions: none)\n"
    "ERROR: No matching distribution found for nosuchpkgx",
    "ERROR: No matching distribution found for requests",
]
NO_NETWORK = [
    "curl: (6) Could not resolve host: example.com",
    "wget: unable to resolve host address 'example.com'",
    "fatal: unable to access 'https://github.com/a/b/': Could not resolve host: github.com",
    "ssh: Could not resolve hostname github.com: Temporary failure in name resolution",
    "urllib.error.URLError: <urlopen error [Errno -3] Temporary failure in name resolution>",
    "socket.gaierror: [Errno -2] Name or service not known",
    "OSError: [Errno 101] Network is unreachable",
    "ssh: connect to host 1.2.3.4 port 22: Network is unreachable",
    "npm error code EAI_AGAIN\nnpm error request to https://packages.example/x failed",
    "Error: getaddrinfo ENOTFOUND packages.example",
    "Error: connect ENETUNREACH 1.2.3.4:80 - Local (0.0.0.0:0)",
    "Error: connect EACCES 1.2.3.4:443",
    "error: failed to lookup address information: Try again",
    "dial tcp: lookup modules.example on 10.0.0.2:53: dial udp 10.0.0.2:53: connect: network is unreachable",
    "Get https://modules.example: dial tcp 1.2.3.4:443: connect: permission denied",
    "ping: socket: Operation not permitted",
    "Temporary failure resolving 'packages.example'",
    "java.net.UnknownHostException: repo.maven.apache.org",
    "curl: (7) Failed to connect to 192.0.2.1 port 443 after 0 ms: Couldn't connect to server",
    "fatal: unable to look up example.com (port 9418) (Temporary failure in name resolution)",
    'psql: error: could not translate host name "db.example.com" to address: Temporary failure in name resolution',
    "x: IO::Socket::INET: Bad hostname 'example.com:80' Invalid argument at -e line 1.",
    "bash: line 1: example.com: Temporary failure in name resolution\n"
    "bash: line 1: /dev/tcp/example.com/80: Invalid argument",
    "  cause: error resolving DNS\n  cause: failed to lookup address information: Temporary failure in name resolution",
    "npm error network This is a problem related to network connectivity.",
    "Err:1 http://deb.example/debian trixie InRelease\n  Could not resolve 'deb.example'",
    "Connecting to example.com|192.0.2.1|:443... failed: Permission denied.",
    "error Error: getaddrinfo EAI_AGAIN packages.example",
    "info There appears to be trouble with your network connection. Retrying...",
    "ERROR:  Could not find a valid gem 'a' (>= 0), here is why:\n"
    "          Unable to download data from https://gems.example/ - no such name (https://gems.example/specs.4.8.gz)",
    "Could not reach host gems.example. Check your network connection and try again.",
    "All attempts to connect to index.example failed.",
    'go: example.com/m@v1: Get "https://proxy.example/x": dial tcp: lookup proxy.example: Temporary failure in name '
    "resolution",
    "warning: spurious network error (3 tries remaining): [6] Couldn't resolve host name (Could not resolve host: "
    "index.example)",
]


@pytest.mark.parametrize("error", [*NO_NETWORK, *NOTHING_FOUND])
def test_a_command_without_network_gets_a_hint_to_request_it(error):
    (note,) = notes(error)
    assert "no network" in note and 'sandbox: "network"' in note


@pytest.mark.parametrize("error", NO_NETWORK)
def test_with_network_or_without_a_sandbox_there_is_no_hint(error):
    assert notes(error, grant=Grant(writable=("/ws",), network=True)) == ()
    assert notes(error, sandbox="") == ()


NOT_WRITABLE = [
    "bash: line 1: /etc/x: Read-only file system",
    "error: could not lock config file /root/.gitconfig: Read-only file system",
    "OSError: [Errno 30] Read-only file system: '/etc/zz'",
    "Error: EROFS: read-only file system, open '/etc/zz'",
    "error: could not write config file .git/config: Device or resource busy",
    "mv: cannot move 'app' to 'away': Device or resource busy",
    'Os { code: 30, kind: ReadOnlyFilesystem, message: "Read-only file system" } (os error 30)',
    'sudo: The "no new privileges" flag is set, which prevents sudo from running as root.',
    "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?",
    "mount: /mnt: permission denied.",
    "chown: changing ownership of 'src/a.py': Invalid argument",
]


@pytest.mark.parametrize("error", NOT_WRITABLE)
def test_a_command_that_may_not_write_gets_a_hint_to_request_it(error):
    (note,) = notes(error)
    assert 'sandbox: "off"' in note


@pytest.mark.parametrize(
    ("error", "path"),
    [
        ("cat: /home/u/.ssh/id_rsa: Permission denied", "/home/u/.ssh/id_rsa"),
        ("PermissionError: [Errno 13] Permission denied: '/opt/x'", "/opt/x"),
        ("touch: cannot touch '/etc/x': Permission denied", "/etc/x"),
        ("Error: EACCES: permission denied, open '/etc/zz'", "/etc/zz"),
    ],
)
def test_on_landlock_a_refused_write_outside_the_workspace_gets_a_hint(error, path):
    (note,) = notes(error, sandbox="landlock")
    assert f"can't use {path} here" in note
    assert notes(error) == ()


NO_SOCKETS = [
    '  File "/usr/lib/python3.11/socket.py", line 232, in __init__\n'
    "    _socket.socket.__init__(self, family, type, proto, fileno)\n"
    "PermissionError: [Errno 1] Operation not permitted",
    '  File "/usr/lib/python3.13/socket.py", line 233, in __init__\n'
    "    _socket.socket.__init__(self, family, type, proto, fileno)\n"
    "    ~~~~~~~~~~~~~~~~~~~~~~~^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^\n"
    "PermissionError: [Errno 1] Operation not permitted\nEOFError",
    "Error: listen EPERM: operation not permitted /tmp/s2\n    at Server.setupListenHandle",
    "bind: Operation not permitted at -e line 1.",
]


@pytest.mark.parametrize("error", NO_SOCKETS)
def test_a_socket_other_than_tcp_gets_a_hint_on_the_network(error):
    (note,) = notes(error)
    assert "no Unix and no UDP sockets" in note and 'sandbox: "network"' in note
    assert notes(error, grant=Grant(writable=("/ws",), network=True)) == ()


@pytest.mark.parametrize("network", [True, False])
def test_a_container_engine_needs_the_sandbox_off_even_with_network(network):
    error = (
        "permission denied while trying to connect to the Docker daemon socket at unix:///var/run/docker.sock: Get "
        '"http://%2Fvar%2Frun%2Fdocker.sock/v1.50/containers/json": dial unix /var/run/docker.sock: socket: '
        "operation not permitted"
    )
    (note,) = notes(error, grant=Grant(writable=("/ws",), network=network))
    assert 'sandbox: "off"' in note


ORDINARY = [
    "PermissionError: [Errno 1] Operation not permitted: 'x'",
    "kill: (1) - Operation not permitted",
    "",
    "1 failed, 3 passed",
    "bash: line 1: foo: command not found",
    "bash: line 1: ./run.sh: Permission denied",
    "cat: /ws/secret: Permission denied",
    "cat: /proc/1/environ: Permission denied",
    "AssertionError: expected 'network' but got 'net'",
    "make: *** [Makefile:2: test] Error 1",
    "ls: cannot access 'x': No such file or directory",
    "umount: /mnt: target is busy.",
    "error: connection to the database was closed",
    "TypeError: Cannot read properties of undefined (reading 'socket')",
    "fatal: not a git repository (or any of the parent directories): .git",
    "E       assert resolve('x') == 'host'",
]


@pytest.mark.parametrize("sandbox", ["bubblewrap", "landlock"])
@pytest.mark.parametrize("error", ORDINARY)
def test_an_ordinary_failure_has_no_hint(error, sandbox):
    assert notes(error, sandbox=sandbox) == ()


def test_a_success_has_no_hint_even_if_its_output_mentions_such_failures():
    assert notes(NO_NETWORK[0], code=0) == ()


def test_a_failed_part_of_a_pipeline_gets_a_hint_although_the_exit_code_is_0():
    result = CommandResult(0, b"", NO_NETWORK[0].encode(), pipe_status=(6, 0), sandbox="bubblewrap")
    assert "no network" in notes_on(result, IN_WORKSPACE, user_is_there=True)[0]


def test_without_a_user_the_hint_does_not_suggest_a_request():
    (note,) = notes(NO_NETWORK[0], there=False)
    assert "No user is present" in note and "sandbox:" not in note.removeprefix("[bubblewrap sandbox:")


def test_an_unreachable_local_server_gets_a_hint_on_separate_loopbacks():
    (note,) = notes("curl: (7) Failed to connect to localhost port 8000 after 0 ms: Couldn't connect to server")
    assert "loopback" in note and "(server & client)" in note and 'send both calls with sandbox: "network"' in note
    (alone,) = notes("Error: connect ECONNREFUSED 127.0.0.1:5432", there=False)
    assert "loopback" in alone and "(server & client)" in alone and 'sandbox: "' not in alone


def test_restored_protected_files_are_named_even_after_a_success():
    restored = tuple(f"/ws/.git/hooks/{number}" for number in range(12))
    result = CommandResult(0, b"done", b"", sandbox="landlock", restored=restored)
    output = output_of("x", result, ending_of(result, 10, 0), (), IN_WORKSPACE)
    assert "[put back as they were, because commands may not change them: /ws/.git/hooks/0," in text_of(output.parts)
    assert "and 2 more]" in text_of(output.parts) and not output.is_error


def test_files_that_could_not_be_restored_are_named_separately():
    restored = ("/ws/.mcp.json", "/ws/.git/config (could not be put back: Permission denied)")
    result = CommandResult(0, b"done", b"", sandbox="landlock", restored=restored)
    text = text_of(output_of("x", result, ending_of(result, 10, 0), (), IN_WORKSPACE).parts)
    assert "[put back as they were, because commands may not change them: /ws/.mcp.json]" in text
    assert "[CHANGED, though commands may not change them; tell the user" in text
    assert "/ws/.git/config (could not be put back: Permission denied)]" in text


@pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")
@pytest.mark.parametrize(
    ("line", "lift"),
    [
        ("python3 -c 'import socket; socket.getaddrinfo(\"example.com\", 80)'", "network"),
        ("python3 -c 'import socket; socket.create_connection((\"192.0.2.1\", 80))'", "network"),
        ("echo x > /etc/bradawl-test", "off"),
        ("mkdir /opt/bradawl-test", "off"),
        ("mount -t tmpfs x /mnt", "off"),
    ],
)
def test_messages_of_real_programs_in_a_sandbox_are_recognised(tmp_path: Path, line: str, lift: str):
    bwrap = ("bwrap", "--unshare-all", "--cap-drop", "ALL", "--die-with-parent", "--ro-bind", "/", "/", "--dev", "/dev")
    done = subprocess.run(
        [*bwrap, "--proc", "/proc", "bash", "-c", line], capture_output=True, cwd=tmp_path, check=False
    )
    if b"bwrap:" in done.stderr:
        pytest.skip("bubblewrap can't be used here")
    result = CommandResult(done.returncode, done.stdout, done.stderr, sandbox="bubblewrap")
    (note,) = notes_on(result, IN_WORKSPACE, user_is_there=True)
    assert f'sandbox: "{lift}"' in note


# ------------------------------------------------------------------ a sandbox that decides about each host

REFUSED_BY_PROXY = [
    "curl: (56) CONNECT tunnel failed, response 403",
    "fatal: unable to access 'https://a.example/x/': CONNECT tunnel failed, response 403",
    "curl: (56) Received HTTP code 403 from proxy after CONNECT",
    "WARNING: Retrying (Retry(total=0)) after connection broken by 'ProxyError('Cannot connect to proxy.', "
    "OSError('Tunnel connection failed: 403 Forbidden'))': /simple/x/\nERROR: No matching distribution found for x",
    "urllib.error.URLError: <urlopen error Tunnel connection failed: 403 Forbidden>",
    "TypeError: fetch failed\n cause: RequestAbortedError: Proxy response (403) !== 200 when HTTP Tunneling",
    "npm error network tunneling socket could not be established, statusCode=403",
    "Proxy tunneling failed: ForbiddenUnable to establish SSL connection.",
    "E: Failed to fetch https://a.example/x  Invalid response from proxy: HTTP/1.1 403 Forbidden",
    "the network proxy refused a.example: the user declined.",
]


def by_domain(
    error: str, *, code: int = 1, notes: tuple[str, ...] = (), grant: Grant | None = IN_WORKSPACE, there: bool = True
) -> tuple[str, ...]:
    result = CommandResult(code, b"", error.encode(), sandbox="bubblewrap", notes=notes)
    return notes_on(result, grant, user_is_there=there, by_domain=True)


@pytest.mark.parametrize("error", REFUSED_BY_PROXY)
@pytest.mark.parametrize("network", [False, True])
def test_a_refused_connection_is_explained_by_the_note_that_names_the_host_or_by_a_hint(error: str, network: bool):
    grant = Grant(writable=("/ws",), network=network)
    told = "the network proxy refused a.example: the user declined."
    assert by_domain(error, notes=(told,), grant=grant) == (f"[{told}]",)
    (hint,) = by_domain(error, grant=grant)
    assert "the network proxy refused a host" in hint and 'sandbox: "' not in hint
    (hint,) = by_domain(error, grant=grant, there=False)
    assert "say in the end what is left undone" in hint


@pytest.mark.parametrize("error", [each for each in NO_NETWORK if "ssh" not in each])
@pytest.mark.parametrize("network", [False, True])
def test_a_program_that_does_not_use_the_proxy_is_explained_with_the_way_out_of_the_sandbox(error: str, network: bool):
    (hint,) = by_domain(error, grant=Grant(writable=("/ws",), network=network))
    assert "this program does not use it" in hint and 'sandbox: "off"' in hint
    (hint,) = by_domain(error, there=False)
    assert 'sandbox: "off"' not in hint and "No user is present" in hint


@pytest.mark.parametrize("error", [each for each in NO_NETWORK if "ssh" in each])
def test_for_ssh_the_hint_names_https_for_git(error: str):
    (hint,) = by_domain(error)
    assert "ssh can't leave the sandbox" in hint and "https://" in hint and 'sandbox: "off"' in hint


def test_ssh_that_failed_in_a_line_that_goes_on_is_explained_too():
    output = (
        "x\nssh: Could not resolve hostname github.com: Temporary failure in name resolution\nfatal: Could not read"
    )
    (hint,) = by_domain(output, code=0)
    assert "ssh can't leave the sandbox" in hint
    assert by_domain("notes on ssh: Could not resolve hostname x", code=0) == ()
    assert notes(output, code=0) == ()


def test_a_note_about_a_host_that_was_not_reached_says_all():
    note = "a.example:443 can't be reached: its name could not be resolved"
    assert by_domain("curl: (56) CONNECT tunnel failed, response 502", notes=(note,)) == (f"[{note}]",)
    assert by_domain(NO_NETWORK[0], notes=(note,)) == (f"[{note}]",)


@pytest.mark.parametrize("error", NO_SOCKETS)
def test_other_sockets_stay_shut_with_the_network(error: str):
    (hint,) = by_domain(error)
    assert "no Unix and no UDP sockets" in hint and 'sandbox: "off"' in hint


def test_servers_of_other_commands_are_reached_only_outside_the_sandbox():
    (hint,) = by_domain("curl: (7) Failed to connect to localhost port 8000 after 0 ms: Couldn't connect to server")
    assert "(server & client)" in hint and 'send both calls with sandbox: "off"' in hint
    (hint,) = by_domain("Error: connect ECONNREFUSED 127.0.0.1:5432", there=False)
    assert 'sandbox: "' not in hint.removeprefix("[bubblewrap sandbox:")


@pytest.mark.parametrize("error", ORDINARY)
def test_an_ordinary_failure_has_no_hint_where_hosts_are_decided_about(error: str):
    assert by_domain(error) == ()


def test_a_note_about_a_refused_host_is_shown_after_a_success_too():
    assert by_domain("", code=0, notes=("the network proxy refused a.example: x",)) == (
        "[the network proxy refused a.example: x]",
    )


def test_pip_that_finds_nothing_without_a_network_gets_a_hint():
    error = "ERROR: Could not find a version that satisfies the requirement x (from versions: none)"
    assert 'sandbox: "network"' in notes(error)[0]
    assert by_domain(error) == ()


class _Refusing(BaseHTTPRequestHandler):
    """A proxy that refuses every connection, as that of the sandbox does."""

    def do_CONNECT(self) -> None:
        body = b"the network proxy refused a.example: no\n"
        self.send_response(403)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_CONNECT

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing."""


@pytest.fixture
def refusing_proxy():
    with ThreadingHTTPServer(("127.0.0.1", 0), _Refusing) as server:
        thread = threading.Thread(target=partial(server.serve_forever, 0.01), daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(
    ("program", "line"),
    [
        ("curl", "curl -sS https://a.example/x"),
        ("git", "git ls-remote https://a.example/x"),
        ("wget", "wget -O - https://a.example/x"),
        ("python3", "python3 -c 'import urllib.request as r; r.urlopen(\"https://a.example/x\")'"),
        ("node", "node -e 'fetch(\"https://a.example/x\").catch(e => { console.error(e); process.exit(1) })'"),
        ("cargo", "cargo search x --registry a"),
        ("go", "GOPROXY=https://a.example GOFLAGS=-mod=mod GONOSUMDB=* go install a.example/x@latest"),
    ],
)
def test_what_real_programs_print_if_the_proxy_refuses_is_recognised(
    tmp_path: Path, refusing_proxy: str, program: str, line: str
):
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")
    names = ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
    environment = dict.fromkeys(names, refusing_proxy) | {"NODE_USE_ENV_PROXY": "1", "HOME": str(tmp_path)}
    environment |= {"PATH": os.environ["PATH"], "CARGO_REGISTRIES_A_INDEX": "sparse+https://a.example/"}
    rustup = os.environ.get("RUSTUP_HOME", str(Path("~/.rustup").expanduser()))
    environment |= {"CARGO_NET_RETRY": "0", "RUSTUP_HOME": rustup, "CARGO_HOME": str(tmp_path)}
    done = subprocess.run(
        ["bash", "-c", line], capture_output=True, cwd=tmp_path, env=environment, timeout=60, check=False
    )
    text = (done.stdout + done.stderr).decode()
    assert done.returncode != 0
    (hint,) = by_domain(text)
    # Node uses the variables of a proxy only from version 22.21 on.
    explained = "the network proxy refused a host" in hint
    assert explained or (program == "node" and "this program does not use it" in hint), text


@pytest.mark.parametrize(
    "error",
    [
        "Cloning into '/ws/sub'...\ndone.\nerror: could not write config file .git/config: Device or resource busy\n",
        "error: could not lock config file .git/config: Read-only file system\nbranch 'x' set up\n",
    ],
)
def test_what_git_could_not_write_is_explained_although_it_reports_success(error: str):
    (note,) = notes(error, code=0)
    assert "git could not write" in note and 'sandbox: "off"' in note
    assert notes(error, code=0, sandbox="") == notes(error, code=0, grant=None) == ()
    assert notes("error: could not write config file x: No space left on device", code=0) == ()


@pytest.mark.parametrize("code", [0, 1])
@pytest.mark.parametrize(
    "error",
    [
        "error: gpg failed to sign the data\nfatal: failed to write commit object\n",
        "error: Couldn't load public key /home/u/.ssh/id.pub: No such file or directory?\n",
        'error: Load key "/home/u/.ssh/id": Permission denied\n',
        "gpg: signing failed: No secret key\n",
    ],
)
def test_a_commit_that_can_not_be_signed_is_explained_with_the_way_out(error: str, code: int):
    (note,) = notes(error, code=code)
    assert "hidden from commands" in note and "commit.gpgsign=false" in note
    assert notes(error, code=code, sandbox="") == ()


@pytest.mark.parametrize("code", [0, 1])
def test_what_was_partly_removed_is_explained_whatever_the_exit_code(code: int):
    (note,) = notes("rm: cannot remove 'b/c/.git/config': Device or resource busy\n", code=code)
    assert "no command made the repository b/c" in note and "rm -rf FOLDER" in note
    (note,) = notes("error: failed to delete '/ws/wt': Device or resource busy\n", code=code)
    assert "working tree /ws/wt" in note and "worktree remove --force" in note


@pytest.mark.parametrize(
    ("error", "files"),
    [
        ("error: unable to unlink old '.github/ci.yml': Read-only file system\nSwitched to 'o'\n", ".github/ci.yml"),
        ("error: unable to unlink old '.envrc': Device or resource busy\n", ".envrc"),
        ("warning: unable to unlink 'a b/.vscode/x': Read-only file system\n", "a b/.vscode/x"),
        ("error: unable to create file .husky/x y: Read-only file system\n", ".husky/x y"),
        (
            "error: unable to unlink old 'a': Read-only file system\n" * 2
            + "error: unable to unlink old 'it's': Read-only file system\n",
            "a, it's",
        ),
    ],
)
def test_files_that_git_could_not_replace_are_named_with_the_state_and_the_way_back(error: str, files: str):
    (note,) = notes(error, code=0)
    assert f"could not replace {files}, which" in note and "Don't commit" in note and "git checkout -" in note
    (note,) = notes(error, code=1)
    assert f"could not replace {files}, which" in note and "stopped midway" in note and "git restore" in note
    assert 'sandbox: "off"' in note
    assert notes(error, code=0, sandbox="") == ()
    assert notes("error: unable to unlink old 'x': No such file or directory", code=0) == ()


@pytest.mark.parametrize(
    "error",
    [
        "mv: cannot move 'a' to 'b': Device or resource busy",
        "fatal: renaming 'a' failed: Device or resource busy",
        "OSError: [Errno 16] Device or resource busy: 'a' -> 'b'",
        "Error: EBUSY: resource busy or locked, rename 'a' -> 'b'",
        "rm: cannot remove 'a/.env': Device or resource busy",
        "fatal: git rm: 'packages/a/.pdbrc': Device or resource busy",
    ],
)
def test_a_folder_with_hidden_files_that_can_not_be_moved_is_explained_with_the_way_out(error: str):
    (note,) = notes(error)
    assert "can't move or remove folders that contain protected or hidden files" in note
    assert "one by one" in note and 'sandbox: "off"' in note
    assert notes("umount: cannot unmount: Device or resource busy") == ()
