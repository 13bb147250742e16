"""What the analysis of a line asks of its context, and how it combines the allow and the deny side."""

import os
import sys
from pathlib import Path

import pytest

from bradawl.core.effects import Effects
from bradawl.core.errors import ToolError
from bradawl.core.rules import Rule
from bradawl.safety.shell.analysis import ShellContext, line_effects
from bradawl.workspace.files import LocalFiles
from patience import cpu_limit

HOME = "/home/u"


@pytest.fixture
def ws(tmp_path: Path) -> Path:
    ws = tmp_path.resolve() / "ws"
    for name in ("src", "keys", ".git"):
        (ws / name).mkdir(parents=True)
    for name in ("README.md", "src/a.py", "keys/one"):
        (ws / name).write_text("text\n")
    return ws


def effects_of(line: str, ws: Path, *, env=None, home: str = HOME, roots=None, **more) -> Effects:
    around = ShellContext(LocalFiles(home).resolve, home, (str(ws),) if roots is None else roots, **more)
    return line_effects(line, str(ws), env or {}, around)


# ------------------------------------------------------------------ git


class Git:
    """Answers what git would read, and records the questions."""

    def __init__(self, reads: tuple[str, ...] | None = ()) -> None:
        self.asked: list[tuple[str, bool, bool]] = []
        self._reads = reads

    def __call__(self, folder: str, *, is_search: bool, shows_keys: bool) -> tuple[str, ...] | None:
        self.asked.append((folder, is_search, shows_keys))
        return self._reads


@pytest.mark.parametrize(
    ("line", "is_search", "shows_keys"),
    [
        ("git log", False, False),
        ("git status", False, False),
        ("git status -v", False, False),
        ("git status -vv", False, True),
        ("git status -v -v", False, True),
        ("git diff", False, True),
        ("git blame README.md", False, True),
        ("git grep -n x", True, True),
        ("git log | grep x", True, True),
        ("git log | cat README.md", False, False),
    ],
)
@pytest.mark.parametrize("is_covered", [True, False])
def test_what_is_asked_about_git(ws: Path, line: str, is_search: bool, shows_keys: bool, is_covered: bool):
    git = Git()
    effects = effects_of(line, ws, git_is_safe=lambda _: True, git_reads=git, is_covered=lambda: is_covered)
    assert effects.understood
    assert git.asked == [(str(ws), is_search, shows_keys and not is_covered)]


def test_further_paths_that_git_reads_are_reads_of_the_line(ws: Path):
    plain = effects_of("git status", ws, git_is_safe=lambda _: True, git_reads=Git())
    more = effects_of("git status", ws, git_is_safe=lambda _: True, git_reads=Git(("/etc/gitconfig",)))
    assert set(more.reads) - set(plain.reads) == {"/etc/gitconfig"} and more.understood
    assert effects_of("git status", ws, git_is_safe=lambda _: True, git_reads=Git(None)).unknown


def test_a_line_that_only_mentions_git_asks_nothing_about_it(ws: Path):
    git = Git()
    assert effects_of("cat .git/HEAD README.md", ws, git_reads=git).understood
    assert effects_of("git commit -m x", ws, git_is_safe=lambda _: True, git_reads=git).unknown
    assert git.asked == []


def test_a_git_that_writes_is_not_held_by_a_sandbox(ws: Path):
    held = {"git_reads": Git(), "is_confined": lambda: True}
    assert effects_of("git status", ws, **held).understood
    assert effects_of("git status > out", ws, **held).unknown
    assert effects_of("git status", ws, git_reads=Git()).unknown


# ------------------------------------------------------------------ programs


def test_programs_are_looked_up_only_with_a_search_path_and_changeable_folders(ws: Path):
    (ws / "ls").write_text("#!/bin/sh\n")
    (ws / "ls").chmod(0o755)
    assert effects_of("ls", ws).understood
    assert effects_of("ls", ws, search_path=f"{ws}:/bin").unknown
    assert effects_of("ls", ws, search_path=f"{ws}:/bin", roots=(), changeable=(str(ws),)).unknown
    assert effects_of("cat README.md", ws, search_path="/usr/bin:/bin").understood


# ------------------------------------------------------------------ keys and other homes


def test_an_understood_line_that_reads_keys_is_refused(ws: Path):
    keys = "/var/lib/bradawl/credentials.toml"
    found = effects_of(f"cat {keys}", ws, own=("/var/lib/bradawl",))
    reason = "keys, or sessions of other users, are kept there; do the work without them"
    assert found.understood and found.danger == f"it would read {keys}: {reason}"
    assert found.reads == (keys,)
    assert effects_of(f"cat {keys}", ws).danger == ""


def test_a_line_that_is_not_understood_is_refused_for_keys_unless_a_sandbox_hides_them(ws: Path):
    own = "/var/lib/bradawl"
    line = f"python x.py < {own}/credentials.toml"
    assert effects_of(line, ws, own=(own,)).danger
    assert effects_of(line, ws, own=(own,), is_covered=lambda: True).danger == ""
    assert effects_of(line, ws).danger == ""


# ------------------------------------------------------------------ rules about paths

DENY_READ = Rule("deny", "read", ".*/keys(?:/.*)?", source="user", text="Read(keys)")
ASK_WRITE = Rule("ask", "write", ".*/keys(?:/.*)?", source="user", text="Edit(keys)")
DENY_WRITE = Rule("deny", "write", ".*/keys(?:/.*)?", source="user", text="Edit(keys)", why="the keys stay")


def test_a_line_that_is_not_understood_declares_the_reads_that_rules_deny(ws: Path):
    line = "python x.py keys/one"
    found = effects_of(line, ws, rules=(DENY_READ,))
    assert found.unknown and found.reads == (f"{ws}/keys/one",)
    assert effects_of(line, ws).reads == ()
    assert effects_of(line, ws, rules=(DENY_WRITE,)).reads == ()
    assert effects_of(line, ws, rules=(DENY_READ,), is_covered=lambda: True).reads == ()


@pytest.mark.parametrize("line", ["rm $x keys/one", "rm key*/one"])
def test_a_line_declares_the_writes_that_rules_are_about_or_is_refused(ws: Path, line: str):
    asked = effects_of(line, ws, rules=(ASK_WRITE,))
    assert f"{ws}/keys/one" in asked.writes and len(asked.writes) == len(set(asked.writes)) and not asked.danger
    assert f"{ws}/keys/one" not in effects_of(line, ws).writes
    denied = effects_of(line, ws, rules=(DENY_WRITE,))
    declared = "" if denied.understood else f"it would write to {ws}/keys/one: the keys stay"
    assert denied.danger == declared and bool(declared) != (f"{ws}/keys/one" in denied.writes)


def test_where_a_sandbox_holds_the_rules_a_line_that_is_not_understood_declares_no_writes(ws: Path):
    found = effects_of("rm $x keys/one", ws, rules=(ASK_WRITE,), is_covered=lambda: True)
    assert (found.writes, found.danger) == ((), "")


def test_why_a_rule_refuses_a_write(ws: Path):
    allowing = Rule("allow", "write", ".*", source="user")
    asking = Rule("ask", "write", ".*", source="user", why="asked")
    context = ShellContext(str, HOME, (str(ws),), rules=(allowing, asking, DENY_READ, DENY_WRITE))
    assert context.refused(f"{ws}/keys/one") == "the keys stay"
    assert context.refused(f"{ws}/other") == ""
    assert ShellContext(str, HOME, (str(ws),)).refused(f"{ws}/keys/one") == ""


def test_the_installation_in_a_workspace_is_protected_from_writes():
    folder = os.path.realpath(sys.prefix)
    inside = ShellContext(str, HOME, (str(Path(folder).parent),))
    assert inside.refused(f"{folder}/bin/python") and not inside.refused(f"{folder}x/bin/python")
    assert not ShellContext(str, HOME, ("/elsewhere",)).refused(f"{folder}/bin/python")


def test_rules_for_lines_exist_only_with_rules(ws: Path):
    assert ShellContext(str) == ShellContext(str, "", (), "", (), rules=()) and ShellContext(str).path_rules is None
    found = ShellContext(str, rules=(DENY_READ,)).path_rules
    assert found is not None and found.applies("read") and not found.applies("write")
    covered = ShellContext(str, rules=(DENY_READ,), is_covered=lambda: True).path_rules
    assert covered is not None and not covered.applies("read")


# ------------------------------------------------------------------ when the deny side reads an understood line


@pytest.mark.parametrize(
    ("line", "is_refused"),
    [
        ("rm -rf /home/u", True),
        ("rm -rf /home/other", True),
        ("rm -rf /etc", True),
        ("touch /home/u/.bashrc", True),
        ("rm -r src", False),
        ("rm -rf src/*", False),
        ("touch new", False),
    ],
)
def test_an_understood_line_is_refused_for_what_it_destroys(ws: Path, line: str, is_refused: bool):
    found = effects_of(line, ws)
    assert found.understood and bool(found.danger) is is_refused


def test_a_home_folder_in_the_workspace_and_the_workspace_itself_are_protected(ws: Path):
    assert effects_of(f"rm -rf {ws}", ws).danger
    home = ws / "home"
    home.mkdir()
    for line in ("rm -rf home", "touch home/.profile"):
        assert effects_of(line, ws, home=str(home)).danger, line
        assert not effects_of(line, ws).danger, line


def test_the_home_folder_is_resolved_before_it_is_compared(ws: Path):
    real = ws.parent / "real"
    real.mkdir()
    (ws.parent / "link").symlink_to(real)
    for home in (f"{ws.parent}/link", f"{ws.parent}//link", f"{ws.parent}/ws/../link"):
        assert effects_of(f"rm -rf {real}", ws, home=home).danger, home


def test_a_home_folder_that_can_not_be_resolved_is_normalised(ws: Path):
    def resolve(path: str, cwd: str) -> str:
        if path.startswith("/lost"):
            raise ToolError("it can't be resolved")
        return LocalFiles(HOME).resolve(path, cwd)

    around = ShellContext(resolve, "/lost/x/../home", (str(ws),))
    assert line_effects("rm -rf $x /lost/home", str(ws), {}, around).danger
    assert line_effects("ls", str(ws), {}, ShellContext(resolve, "relative", (str(ws),))).understood


# ------------------------------------------------------------------ a line that is not understood


def test_what_a_line_that_is_not_understood_declares(ws: Path):
    found = effects_of("sudo curl x", ws)
    assert found == Effects(unknown=True, commands=(("sudo", "curl", "x"),), inner=(("curl", "x"),), hosts=("*",))
    assert effects_of("make", ws) == Effects(unknown=True, commands=(("make",),))


def test_a_line_that_the_deny_side_reads_only_in_part_is_not_sealed(ws: Path):
    assert not effects_of("make", ws).unsealed
    assert effects_of("(" * 5_000, ws).unsealed


def test_a_long_word_takes_no_more_than_linear_time(ws: Path):
    with cpu_limit(1):
        effects_of("make " + "x" * 100_000, ws)


@pytest.mark.parametrize(
    ("line", "commands"),
    [
        ("make > /dev/null", (("make",),)),
        ("make 2> /dev/null < /dev/null", (("make",),)),
        ("make > out", ()),
        ("make | tee x > out", ()),
        ("A=1 make", (("make",),)),
        ("A=./x make", ()),
        ("B=1 A=./x make", ()),
        ("make; B=x.y ls", ()),
    ],
)
def test_commands_are_declared_only_if_no_redirect_or_assignment_adds_to_them(ws: Path, line: str, commands):
    assert effects_of(line, ws).commands == commands


def test_variables_of_the_session_take_the_place_of_the_shells_own(ws: Path):
    line = 'rm -rf "$OLDPWD"; make'
    known = {"environment": {"OLDPWD": HOME}}
    assert effects_of(line, ws, **known).danger
    assert not effects_of(line, ws, env={"OLDPWD": f"{ws}/src"}, **known).danger


@pytest.mark.parametrize(
    "line", ["rm .git/h*", "rm .git/hook?", "rm -rf .*", "unset HISTFILE", "export HISTFILE=/dev/null"]
)
def test_an_understood_line_with_a_pattern_or_a_variable_is_read_by_the_deny_side_too(ws: Path, line: str):
    (ws / ".git" / "hooks").mkdir()
    found = effects_of(line, ws)
    assert found.understood and found.danger


def test_a_write_that_only_the_code_in_an_argument_names_is_refused(ws: Path):
    line = "python -c \"open('keys/one', 'w')\""
    assert effects_of(line, ws, rules=(DENY_WRITE,)).danger == f"it would write to {ws}/keys/one: the keys stay"
    assert effects_of(line, ws).danger == ""


def test_bradawls_own_folders_are_protected_from_writes(ws: Path):
    line = "touch /var/lib/bradawl/x; make"
    assert effects_of(line, ws, own=("/var/lib/bradawl",)).danger
    assert effects_of(line, ws).danger == ""


def test_a_pattern_names_the_paths_that_rules_are_about(ws: Path):
    assert effects_of("cat key*/one", ws, rules=(DENY_READ,)).reads == (str(ws), f"{ws}/keys/one")
    assert effects_of("cat key*/one", ws).reads == (str(ws),)


def test_a_search_shows_a_hidden_file_that_an_ignore_file_includes(ws: Path):
    keys = {"secrets": lambda folder: [f"{folder}/.env"]}
    assert effects_of("rg x", ws, is_unignored=lambda _: True, **keys).reads == (str(ws), f"{ws}/.env")
    assert effects_of("rg x", ws, **keys).reads == (str(ws),)


def test_the_commands_of_a_dangerous_line_are_not_declared(ws: Path):
    found = effects_of("sudo rm -rf /", ws)
    assert found.danger and found.commands == ()
    assert effects_of("make ~/x", ws).commands == (("make", f"{HOME}/x"),)


def test_a_search_through_all_home_folders_declares_the_others(ws: Path):
    folder = Path("/home")
    others = [str(each) for each in folder.glob("*") if each.is_dir() and str(each) != HOME]
    if not others:
        pytest.skip("this machine has no folder in /home")
    found = effects_of("grep -r x /home", ws)
    assert found.understood and found.reads[0] == "/home" and set(others) <= set(found.reads[1:])
    assert others[0] not in effects_of("grep -r x /home", ws, home=others[0]).reads
    assert effects_of("ls /home", ws).reads == ("/home",)
