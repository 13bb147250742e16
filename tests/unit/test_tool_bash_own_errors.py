"""Hints about the sandbox name the host or the path, and explain only errors of the command itself."""

import pytest

from bradawl.core.permissions import Grant
from bradawl.core.workspace import CommandResult
from bradawl.tools.shell.sandbox_hints import notes_on

IN_WORKSPACE = Grant(writable=("/ws", "/tmp"))


def notes(error: str, *, code: int = 1) -> tuple[str, ...]:
    """The hints on an error of a command in a sandbox without a network."""
    result = CommandResult(code, b"", error.encode(), sandbox="bubblewrap")
    return notes_on(result, IN_WORKSPACE, user_is_there=True)


@pytest.mark.parametrize(
    ("error", "host"),
    [
        ("curl: (6) Could not resolve host: example.com", "example.com"),
        ("curl: (7) Failed to connect to 192.0.2.1 port 443 after 0 ms: Couldn't connect to server", "192.0.2.1"),
        ("fatal: unable to access 'https://github.com/a/b/': Could not resolve host: github.com", "github.com"),
        ("ssh: Could not resolve hostname a.example: Temporary failure in name resolution", "a.example"),
        (
            "npm error request to https://packages.example/x failed, reason: getaddrinfo EAI_AGAIN packages.example",
            "packages.example",
        ),
        ("wget: unable to resolve host address \u2018example.com\u2019", "example.com"),
        (
            'psql: error: could not translate host name "db.example.com" to address: Temporary failure in name '
            "resolution",
            "db.example.com",
        ),
        ("dial tcp: lookup modules.example on 192.0.2.53:53: server misbehaving", "modules.example"),
        ("  Could not resolve 'deb.example'", "deb.example"),
        ("java.net.UnknownHostException: repo.maven.apache.org", "repo.maven.apache.org"),
    ],
)
def test_the_hint_names_the_host(error: str, host: str):
    (note,) = notes(error)
    assert f"[bubblewrap sandbox: commands have no network here, so {host} can't be reached." in note


@pytest.mark.parametrize(
    ("error", "path"),
    [
        ("bash: line 1: /etc/x: Read-only file system", "/etc/x"),
        ("OSError: [Errno 30] Read-only file system: '/etc/zz'", "/etc/zz"),
        ("Error: EROFS: read-only file system, open '/etc/zz'", "/etc/zz"),
        ("mkdir: cannot create directory \u2018/opt/a b\u2019: Read-only file system", "/opt/a b"),
        ("touch: cannot touch '/usr/x': Read-only file system", "/usr/x"),
        ("cp: cannot create regular file '/opt/x': Read-only file system", "/opt/x"),
        ("error: could not write config file .git/config: Device or resource busy", ".git/config"),
    ],
)
def test_the_hint_names_the_path_also_after_a_success(error: str, path: str):
    (note,) = notes(error)
    assert note.startswith(f"[bubblewrap sandbox: {path} can't be changed: commands can write only in the workspace")
    if "Read-only" in error and not error.startswith("error: "):
        assert notes(error, code=0) == (note,)


WORDS = [
    "curl: (6) Could not resolve host: example.com",
    "touch: cannot touch '/etc/x': Read-only file system",
    "socket.gaierror: [Errno -2] Name or service not known",
]
NOT_ITS_OWN = [
    ("cat build.log; exit 1", "{}", ""),
    ("cd logs && tail -50 build.log && false", "{}", ""),
    ("grep -rn resolve . ; exit 3", "src/a.py:3:{}", ""),
    ("git log -p | head; make missing", "    {}", "make: *** No rule to make target 'missing'.  Stop."),
    ("rg -n resolve src && false", "src/a.py:3:{}", ""),
    ("./find-in-logs.sh", "logs/a.log:14:{}", ""),
    ("diff a b", "< x\n> {}", ""),
    ("./compare.sh", "-x\n+{}", ""),
    ("pytest -q", "E       AssertionError: assert 'ok' in '{}'\n1 failed", ""),
    ("python -m pytest tests 2>&1 | tail -5", "----- Captured stderr call -----\n{}\n1 failed", ""),
    ("npm test", "not ok 1 - says {}", ""),
    ("go test ./...", "--- FAIL: TestX\n    x_test.go:9: got {}", ""),
    ("cargo test", '  left: "{}"', ""),
    ("echo '{}' && false", "{}", ""),
    ("printf '%s' '{}' >&2; exit 1", "", "{}"),
]


@pytest.mark.parametrize("words", WORDS[:2])
@pytest.mark.parametrize(("command", "stdout", "stderr"), NOT_ITS_OWN)
def test_text_that_a_command_only_shows_is_not_explained(command: str, stdout: str, stderr: str, words: str):
    command, stdout, stderr = (text.replace("{}", words) for text in (command, stdout, stderr))
    result = CommandResult(1, stdout.encode(), stderr.encode(), sandbox="bubblewrap")
    assert notes_on(result, IN_WORKSPACE, user_is_there=True, command=command) == ()


OWN = [
    ("npm ci 2>&1 | tail -3", "npm error code EAI_AGAIN\nnpm error syscall getaddrinfo", ""),
    ("echo build && cargo build 2>&1 | grep -v Compiling", "error: Could not resolve host: index.example", ""),
    ("mvn -q compile", "[ERROR] repo.maven.apache.org: Temporary failure in name resolution", ""),
    ("pytest -q", "E       socket.gaierror: [Errno -3] Temporary failure in name resolution\n1 failed", ""),
    ("node --test", "    Error: getaddrinfo ENOTFOUND a.example\n", ""),
    ("cat urls | xargs curl -sS", "", "curl: (6) Could not resolve host: a.example"),
]


@pytest.mark.parametrize(("command", "stdout", "stderr"), OWN)
def test_errors_of_the_command_itself_are_explained(command: str, stdout: str, stderr: str):
    result = CommandResult(1, stdout.encode(), stderr.encode(), sandbox="bubblewrap")
    (note,) = notes_on(result, IN_WORKSPACE, user_is_there=True, command=command)
    assert "commands have no network here" in note


@pytest.mark.parametrize(
    ("error", "path"),
    [
        (
            "E: Could not open lock file /var/lib/dpkg/lock - open (30: Read-only file system)",
            "/var/lib/dpkg/lock can't",
        ),
        ("W: Problem unlinking the file (30: Read-only file system)", "commands can"),
    ],
)
def test_only_what_looks_like_a_path_is_named(error: str, path: str):
    (note,) = notes(error)
    assert note.startswith(f"[bubblewrap sandbox: {path}")


def test_the_hint_about_a_file_says_nothing_of_folders():
    (note,) = notes("bash: line 1: /etc/x: Read-only file system")
    assert note.startswith(
        "[bubblewrap sandbox: /etc/x can't be changed: commands can write only in the workspace, /tmp and their caches "
        "here, and not to protected files. "
    )
    (note,) = notes("mv: cannot move 'a' to 'b': Device or resource busy")
    assert note.startswith(
        "[bubblewrap sandbox: b can't be changed: commands can't move or remove folders that contain"
    )


def test_a_command_that_only_writes_gits_configuration_has_not_gone_on_without_it():
    error = "error: could not lock config file .git/config: Read-only file system\nfatal: could not set 'user.name'"
    result = CommandResult(0, b"", error.encode(), sandbox="bubblewrap")
    (note,) = notes_on(result, Grant(), user_is_there=False, command="git config user.name zz; git status")
    assert note.startswith(
        "[bubblewrap sandbox: .git/config can't be changed: commands can write only in the workspace"
    )
    (note,) = notes_on(result, Grant(), user_is_there=False, command="git push -u origin x")
    assert "git went on without it" not in note and "went on without it" in note


def test_the_advice_to_remove_the_folder_alone_is_not_given_to_a_command_that_does():
    error = "rm: cannot remove '../py/.git/config': Device or resource busy"
    result = CommandResult(1, b"", error.encode(), sandbox="bubblewrap")
    notes_of = [notes_on(result, Grant(), user_is_there=False, command=line)[0] for line in ("rm -rf ../py", "make x")]
    assert ["removes the rest" in note for note in notes_of] == [False, True]
    assert "so its git data are protected and stay, with the folders above" in notes_of[0]
