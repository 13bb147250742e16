"""The macOS sandbox profile, evaluated by a small interpreter of its language: the last matching rule decides."""

import re

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bradawl.core.errors import ToolError
from bradawl.core.permissions import Grant
from bradawl.sandbox.backend import Program, SandboxLayout
from bradawl.sandbox.guarantees import GUARANTEES
from bradawl.sandbox.macos import SandboxExecBackend, profile

HOME, WS = "/Users/u", "/Users/u/ws"
LAYOUT = SandboxLayout(
    roots=(WS,),
    home=HOME,
    own=(f"{HOME}/.config/bradawl",),
    readable=(f"{HOME}/.config/bradawl/blobs",),
    cache=f"{HOME}/.cache/bradawl/p",
    scratch="/private/tmp/s",
    state=f"{HOME}/.local/state/bradawl",
)
GRANT = Grant(writable=(WS,))


def read(text: str) -> list:
    """The expressions of a profile; a string is ("string", its content)."""
    part = r'"(?:[^"\\]|\\.)*"|[()]|[^\s()"]+'
    assert re.fullmatch(rf"(?:\s+|{part})*", text, re.DOTALL)
    stack: list[list] = [[]]
    for piece in re.findall(part, text, re.DOTALL):
        if piece == "(":
            stack.append([])
        elif piece == ")":
            done = stack.pop()
            stack[-1].append(done)
        elif piece.startswith('"'):
            stack[-1].append(("string", re.sub(r"\\(.)", _unescaped, piece[1:-1], flags=re.DOTALL)))
        else:
            stack[-1].append(piece)
    assert len(stack) == 1
    return stack[0]


def _unescaped(found: re.Match[str]) -> str:
    return {"n": "\n"}.get(found[1], found[1])


def matches(filters: list, path: str) -> bool:
    for kind, (_, value), *_ in (each for each in filters if isinstance(each[1], tuple)):
        if kind == "literal" and path == value:
            return True
        if kind == "subpath" and (path == value or path.startswith(value + "/")):
            return True
        if kind == "regex" and re.search(value, path):
            return True
    return False


def allows(text: str, operation: str, path: str) -> bool:
    verdict = False
    for line in read(text):
        if line[0] not in ("allow", "deny"):
            continue
        operations = [each for each in line[1:] if isinstance(each, str)]
        filters = [each for each in line[1:] if isinstance(each, list)]
        named = any(
            each in ("default", operation) or (each.endswith("*") and operation.startswith(each[:-1]))
            for each in operations
        )
        if named and (not filters or matches(filters, path)):
            verdict = line[0] == "allow"
    return verdict


def writes(path: str, grant: Grant = GRANT, operation: str = "file-write-data") -> bool:
    return allows(profile(LAYOUT, grant), operation, path)


def reads(path: str, grant: Grant = GRANT) -> bool:
    return allows(profile(LAYOUT, grant), "file-read-data", path)


@pytest.mark.parametrize(
    "path",
    [
        f"{WS}/a",
        f"{WS}/.git/HEAD",
        f"{WS}/.git/index.lock",
        "/private/tmp/s/x",
        f"{HOME}/.cache/bradawl/p/npm/x",
        "/dev/null",
    ],
)
def test_files_of_the_workspace_are_writable(path):
    assert writes(path)


@pytest.mark.parametrize(
    "path",
    [
        "/etc/passwd",
        f"{HOME}/x",
        f"{HOME}/ws2/x",
        "/private/tmp/x",
        "/dev/ttys001",
        f"{HOME}/.cache/bradawl/p2",
        f"{WS}/.git/config",
        f"{WS}/.GIT/Config",
        f"{WS}/.git/hooks",
        f"{WS}/.git/hooks/pre-commit",
        f"{WS}/.git/modules/a/b/config",
        f"{WS}/.git/info/attributes",
        f"{WS}/.mcp.json",
        f"{WS}/.MCP.json",
        f"{WS}/.bradawl/settings.toml",
        f"{WS}/.vscode/tasks.json",
        f"{WS}/.env",
    ],
)
def test_protected_and_outside_files_are_not_writable(path):
    assert not writes(path)
    assert not writes(path, operation="file-write-create")


@pytest.mark.parametrize("path", [f"{WS}/.git", f"{WS}/.git/info", f"{WS}/.git/hooks", f"{WS}/.bradawl"])
def test_folders_of_protected_files_can_not_be_moved(path):
    assert not writes(path, operation="file-write-unlink")


def test_a_repository_can_be_created_but_not_its_protected_folders():
    assert writes(f"{WS}/.git", operation="file-write-create")
    assert not writes(f"{WS}/.git/info", operation="file-write-create")
    assert not writes(f"{WS}/.git/modules/x", operation="file-write-create")


@pytest.mark.parametrize(
    "path",
    [
        f"{HOME}/.ssh/id_ed25519",
        f"{HOME}/.aws/credentials",
        f"{HOME}/.netrc",
        f"{HOME}/Library/Keychains/x",
        f"{HOME}/.config/bradawl/credentials.json",
        f"{HOME}/.local/state/bradawl/x",
        f"{WS}/.env",
        f"{WS}/a/.env.local",
    ],
)
def test_keys_and_bradawls_data_are_not_readable(path):
    assert not reads(path)


@pytest.mark.parametrize(
    "path", [f"{WS}/a", "/usr/bin/git", f"{HOME}/.gitconfig", f"{HOME}/.config/bradawl/blobs/x", f"{WS}/.env.example"]
)
def test_other_files_are_readable(path):
    assert reads(path)


def test_files_that_the_home_folder_links_to_are_not_writable(tmp_path):
    home = tmp_path.resolve()
    (home / "ws").mkdir()
    (home / ".bashrc").symlink_to("ws/bashrc")
    root = str(home / "ws")
    rules = profile(msgspec.structs.replace(LAYOUT, roots=(root,), home=str(home)), Grant(writable=(root,)))
    assert not allows(rules, "file-write-data", f"{root}/bashrc")
    assert allows(rules, "file-write-data", f"{root}/other")


def test_a_grant_without_paths_makes_only_the_scratch_folder_writable():
    assert not writes(f"{WS}/a", Grant())
    assert writes("/private/tmp/s/x", Grant())


def test_uncovered_paths_are_readable_and_writable_only_if_granted():
    config = f"{WS}/.git/config"
    assert writes(config, Grant(writable=(WS,), uncovered=(config,)))
    key = f"{HOME}/.ssh/known_hosts"
    grant = Grant(writable=(WS,), uncovered=(key,))
    assert reads(key, grant)
    assert not writes(key, grant)
    assert not reads(f"{HOME}/.ssh/id_rsa", grant)


def test_the_network_is_closed_unless_granted():
    assert "network" not in profile(LAYOUT, GRANT)
    granted = profile(LAYOUT, Grant(writable=(WS,), network=True))
    assert "(allow network-outbound (remote ip))" in granted
    assert "unix" not in granted


def test_operations_that_no_rule_allows_are_refused():
    lines = read(profile(LAYOUT, GRANT))
    assert lines[:2] == [["version", "1"], ["deny", "default"]]
    # A rule without filters allows the operation everywhere.
    bare = {" ".join(line[1:]) for line in lines if line[0] == "allow" and all(isinstance(each, str) for each in line)}
    assert bare == {"process-exec process-fork", "sysctl-read", "ipc-posix-sem", "file-read*"}


HOSTILE = [
    '/ws") (allow file-write*) (subpath "/x',
    "/ws\\",
    '/ws\\"',
    "/w(s)[a]{1}.*+?^$|",
    "/ws\n(allow default)",
    "/ws;comment",
    "/ws #| |#",
    "/wß/日本",
    "/ws'`$(x)",
]


@pytest.mark.parametrize("root", HOSTILE)
def test_a_hostile_path_is_only_a_string_in_the_profile(root):
    layout = SandboxLayout(roots=(root,), home=f"{root}-home", scratch="/private/tmp/s")
    text = profile(layout, Grant(writable=(root,)))
    assert len(read(text)) == len(
        read(profile(SandboxLayout(roots=("/ws",), home="/h", scratch="/s"), Grant(writable=("/ws",))))
    )
    assert allows(text, "file-write-data", f"{root}/a")
    assert not allows(text, "file-write-data", f"{root}/.git/config")
    assert not allows(text, "file-write-data", "/etc/passwd")
    assert not allows(text, "file-read-data", f"{root}-home/.ssh/id_rsa")


_NAMES = st.text(st.characters(blacklist_categories=("Cs", "Cc"), blacklist_characters="/"), min_size=1, max_size=20)


@given(_NAMES)
def test_any_folder_name_is_only_a_string_in_the_profile(name):
    root = f"/ws/{name}"
    text = profile(SandboxLayout(roots=(root,), home="/h", scratch="/s"), Grant(writable=(root,)))
    assert allows(text, "file-write-data", f"{root}/a")
    assert not allows(text, "file-write-data", f"{root}/.mcp.json")
    assert not allows(text, "file-write-data", "/ws/other/a")


@pytest.mark.parametrize("root", ["/ws\x00", "/ws\r", "/ws\x1b", "/ws\udcff"])
def test_a_path_that_the_profile_can_not_contain_is_refused(root):
    with pytest.raises(ToolError, match="rename it"):
        profile(SandboxLayout(roots=(root,), home="/h", scratch="/s"), Grant(writable=(root,)))


def test_the_systems_sandbox_exec_starts_the_program():
    program = Program(("/bin/bash", "-c", "true"), WS, {"PATH": "/bin", "API_KEY": "x", "A": "b"}, exported=("A",))
    backend = SandboxExecBackend(LAYOUT)
    launch = backend.launch(program, GRANT)
    assert launch.argv[:2] == ("/usr/bin/sandbox-exec", "-p")
    assert launch.argv[3:] == program.argv
    assert launch.argv[2] == profile(LAYOUT, GRANT)
    assert launch.environment["TMPDIR"] == "/private/tmp/s"
    assert launch.environment["A"] == "b"
    assert "API_KEY" not in launch.environment
    assert backend.sandbox.lacks == tuple(GUARANTEES)
    assert backend.host_path("/x") == "/x"


def test_the_folder_of_a_session_is_writable_in_the_hidden_data_of_bradawl():
    layout = SandboxLayout(roots=("/ws",), home="/h", own=("/h/data",), scratch="/h/data/tmp/s")
    text = profile(layout, Grant(writable=("/ws",)))
    assert text.index("(deny file-read* file-write*\n") < text.index(
        '(allow file-read* file-write*\n  (subpath "/h/data/tmp/s"))'
    )
