"""`files_in` finds the files that command lines and scripts of the shell run."""

import os
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bradawl.safety.git.command_words import files_in
from bradawl.safety.git.hook_scripts import HookScripts
from bradawl.safety.git.named_paths import NamedPaths, named_by_config

MODULE = ("x.py", "x/__init__.py", "x/y.py", "x/y/__init__.py", "x/y/__main__.py")


@pytest.mark.parametrize(
    ("line", "programs"),
    [
        ("tools/x --fast", ("tools/x",)),
        ("!tools/x", ("tools/x",)),
        ("sh tools/x", ("tools/x",)),
        ("bash -e x", ("x",)),
        ("env A=1 tools/x", ("tools/x",)),
        ("cat | tools/x %f", ("tools/x",)),
        ("cd tools && ./x", ("tools/./x",)),
        ("cd a; cd b; ./x", ("a/b/./x",)),
        ('"$(git rev-parse --show-toplevel)/tools/x" %f', ("./tools/x",)),
        ("`git rev-parse --show-toplevel`/tools/x", ("./tools/x",)),
        ("$GIT_PREFIX/tools/x", ("./tools/x",)),
        ("$GIT_PREFIX./tools/x", ("./tools/x",)),
        ('"${GIT_PREFIX}"tools/x', ("tools/x",)),
        ('cd "${GIT_PREFIX:-.}" && tools/x', ("./tools/x",)),
        ('"$(git rev-parse --show-toplevel)"/tools/x', ("./tools/x",)),
        ('"$(git rev-parse --show-cdup)"tools/x', ("tools/x",)),
        ('T=$(git rev-parse --show-toplevel); "$T"/tools/x', ("./tools/x",)),
        ('"$root/tools/x"', ("tools/x",)),
        ("d=tools; $d/x", ("tools/x",)),
        ("f() { d=tools; sh ${d}/x; }; f", ("tools/x",)),
        ("X='tools/x'; . $X", ("tools/x",)),
        ("a=tools; echo $(sh $a/x)", ("tools/x",)),
        ("a=b; sh $ab/x", ("x",)),
        (". tools/x", ("tools/x",)),
        ("f() { . tools/x; }; f", ("tools/x",)),
        ("sh -c 'tools/x && true'", ("tools/x",)),
        ("python3 -m x.y", MODULE),
        ("python3 -u -m x.y %f", MODULE),
        ("python3 x.py", ("x.py",)),
        ("if ! ./x; then exit 1; fi", ("./x",)),
        ("cd /a && ./x", ("/a/./x",)),
        ("cd a && /b/x", ("/b/x",)),
        ("pushd a; ./x; cd", ("a/./x",)),
        ("A=1 tools/x b/c", ("tools/x",)),
        ("xargs sh x", ("x",)),
        ("env x", ()),
        ("source x", ("x",)),
        ("sh tools/x b/c", ("tools/x",)),
        ("/bin/sh x", ("/bin/sh", "x")),
        ("./node x/y.js", ("./node", "x/y.js")),
        ("a/b/python3.11 -m x.y", ("a/b/python3.11", *MODULE)),
        ("python3 -m", ()),
        ("python3 -m x-y", ()),
        ("python3 -m x", ("x.py", "x/__init__.py", "x/__main__.py")),
        ("x -m y/z", ()),
        ("sh -c tools/x tools/y", ("tools/x", "tools/y")),
        ("python3 -c 'tools/x'", ("tools/x",)),
        ("perl -e 'tools/x'", ("tools/x",)),
        ("perl -w -e tools/x", ("tools/x",)),
        ("node -r ./a ./b", ("./a",)),
        ("sh -e -x x", ("x",)),
        ("sh -c", ()),
        ("./x < data/in > out/y", ("./x",)),
        ("sh \\\nx", ("x",)),
        ("tools/a\n  # tools/b\ntools/c", ("tools/a", "tools/c")),
        ("tools/a # tools/b", ("tools/a",)),
        ("'tools/x", ("tools/x",)),
        ("echo 'a\n./x b'", ("./x",)),
        ("(tools/x)", ("tools/x",)),
        ("tools/x;;tools/y&&tools/z", ("tools/x", "tools/y", "tools/z")),
        ("tools/X@b:c,d+e%f", ("tools/X@b:c,d+e%f",)),
        ("a/$b/c", ("a/$b/c",)),
        ("$a/$b/c", ("$b/c",)),
        ("perl -e 'x; ./b'", ("./b",)),
        ("python3 -c 'x; ./b'", ("./b",)),
        ("bash -c 'x; ./b'", ("./b",)),
        ("env -i tools/x", ("tools/x",)),
        ("git log", ()),
        ("less -F", ()),
        ("store --file ~/keys", ()),
        ("# tools/x", ()),
        ("npx lint-staged", ()),
        ("", ()),
    ],
)
def test_the_programs_of_a_command_line(line: str, programs: tuple[str, ...]) -> None:
    assert files_in(line).programs == programs


def test_other_words_that_may_name_files() -> None:
    assert files_in("ruff check --config=conf/a.toml src/a.py b.py word 'c d/e'").others == (
        "conf/a.toml",
        "src/a.py",
        "b.py",
        "c d/e",
    )
    assert "tools/x" in files_in('eval "$(cat tools/x)"').others
    assert "tools/x" in files_in('sh -c "`cat tools/x`"').others
    assert files_in("-c core.fsmonitor=tools/x status").others == ("core.fsmonitor=tools/x", "tools/x")


def test_other_words_are_searched_in_each_folder_that_a_line_enters() -> None:
    assert files_in("cd a; cd /b; x c.py /d/e").others == ("c.py", "a/c.py", "/b/c.py", "/d/e")
    assert files_in("x a=b/c.py a= =d/e --f=g/h -i/j k.txt l.mjs m.pyw").others == (
        *("a=b/c.py", "b/c.py", "=d/e", "d/e", "g/h", "l.mjs", "m.pyw"),
    )
    assert files_in("x --a=b=c/d").others == ("c/d",)
    assert files_in("# a/b\n  # c/d").others == ()
    many = files_in("; ".join(f"cd {number}" for number in range(50)) + "; x a.py")
    assert len(many.others) <= 200
    assert files_in("x " * 100_000 + "tools/late").others == ()


def test_the_folder_of_a_script() -> None:
    assert files_in('. "$(dirname -- "$0")/_/h.sh"', "/ws/.husky").programs == ("/ws/.husky/_/h.sh",)
    assert files_in('exec "${0%/*}/x"', "/ws/h").programs == ("/ws/h/x",)


@given(st.text(alphabet="ab/. $(){}'\"`|&;<>\n!=-\\~%cdsh\0", max_size=60))
def test_no_text_is_an_error(text: str) -> None:
    named = files_in(text)
    assert all(isinstance(each, str) for each in (*named.programs, *named.others))


def _made(root: Path, name: str, text: str = "") -> Path:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_what_hooks_lead_to_and_run(tmp_path: Path) -> None:
    root = tmp_path.resolve()
    for name in ("scripts/a", "scripts/b", "scripts/deep", "data/list.txt"):
        _made(root, name, "#!/bin/sh\nscripts/deep\n")
    hooks = root / ".git/hooks"
    _made(root, ".git/hooks/pre-push", "#!/bin/sh\n./scripts/b < data/list.txt\nscripts/missing\nnpx lint-staged\n")
    _made(root, ".git/hooks/update.sample", "#!/bin/sh\nscripts/a\n")
    _made(root, ".git/hooks/post-merge", "#!/usr/bin/python3\nscripts/a\n")
    (hooks / "pre-commit").symlink_to("../../link")
    (root / "link").symlink_to("scripts/a")
    (hooks / "commit-msg").symlink_to("../../later/x")
    (hooks / "post-checkout").symlink_to("post-checkout")
    found = named_by_config(NamedPaths(""), str(root), (str(root),))
    names = {path[len(str(root)) + 1 :] for path in found}
    assert names == {"link", "scripts/a", "scripts/b", "scripts/deep", "scripts/missing", "later/x"}


def test_a_hook_with_a_hard_link_is_named_and_changes_are_seen(tmp_path: Path) -> None:
    root = tmp_path.resolve()
    script = _made(root, "pc", "#!/bin/sh\ntrue\n")
    (root / ".git/hooks").mkdir(parents=True)
    hook = root / ".git/hooks/pre-commit"
    hook.hardlink_to(script)
    named = NamedPaths("")
    assert named_by_config(named, str(root), (str(root),)) == (str(hook),)
    script.unlink()
    assert named_by_config(named, str(root), (str(root),)) == ()
    _made(root, "x")
    hook.write_text("#!/bin/sh\n./x\n")
    assert named_by_config(named, str(root), (str(root),)) == (f"{root}/x",)


def test_names_in_a_hook_are_relative_to_the_working_tree_or_to_the_hook(tmp_path: Path) -> None:
    root = tmp_path.resolve()
    for name in ("a", "b", "hooks/c", "hooks/d.sample", "e"):
        _made(root, name)
    _made(root, "hooks/pre-commit", f'./a\n{root}/b\n. "$(dirname "$0")/c"\n./missing\n./hooks\n')
    _made(root, "hooks/other.sample", "./e\n")
    assert sorted(HookScripts().files_run_by(f"{root}/hooks", str(root))) == [
        f"{root}/a",
        f"{root}/b",
        f"{root}/hooks/c",
        f"{root}/missing",
    ]


def test_a_hook_names_files_that_do_not_exist_yet_apart_from_those_of_packages(tmp_path: Path) -> None:
    root = tmp_path.resolve()
    _made(root, "node_modules/.bin/there")
    (root / "folder").mkdir()
    (root / "dangling").symlink_to("later")
    lines = (
        *("scripts/later.sh", "sh tools/x", ". ./lib.sh", "[ -x ./a ] && ./a", "python3 -m mod", "./dangling"),
        *("node_modules/.bin/lint", ".venv/bin/x", "vendor/bin/y", "node_modules/.bin/there", "./folder"),
        *('sh -e "$s" "$@"', 'exec "${ARGS[@]}/x"', "./*.sh", "npx lint-staged", "bash -c 'true'", "cat list.txt"),
    )
    _made(root, "hooks/pre-commit", "\n".join(("#!/bin/sh", *lines)))
    found = HookScripts().files_run_by(f"{root}/hooks", str(root))
    assert sorted(path[len(f"{root}/") :] for path in found) == [
        *("a", "dangling", "lib.sh", "mod.py", "mod/__init__.py", "mod/__main__.py"),
        *("node_modules/.bin/there", "scripts/later.sh", "tools/x"),
    ]


def test_odd_files_are_no_scripts_and_do_not_block(tmp_path: Path) -> None:
    root = tmp_path.resolve()
    _made(root, "x")
    hooks = root / "hooks"
    _made(hooks, "binary", "./x\n\0")
    _made(hooks, "empty")
    os.mkfifo(hooks / "fifo")
    (hooks / "folder").mkdir()
    (hooks / "loop").symlink_to("loop")
    (hooks / os.fsdecode(b"\xff")).write_text("true\n")
    assert tuple(HookScripts().files_run_by(str(hooks), str(root))) == (f"{hooks}/loop",)
    for missing in ("missing", "x", "nul\0"):
        assert tuple(HookScripts().files_run_by(f"{root}/{missing}", str(root))) == ()


def test_a_script_and_a_folder_of_hooks_are_read_again_when_they_have_changed(tmp_path: Path) -> None:
    root = tmp_path.resolve()
    for name in ("x", "y", "z"):
        _made(root, name)
    scripts = HookScripts()
    for folder, named in (("h1", "x"), ("h2", "y"), ("h1", "z"), ("h2", "y")):
        _made(root, f"{folder}/pre-commit", f"./{named}\n")
        assert tuple(scripts.files_run_by(f"{root}/{folder}", str(root))) == (f"{root}/{named}",)
        assert tuple(scripts.files_run_by(f"{root}/{folder}", str(root))) == (f"{root}/{named}",)
    _made(root, "h1/update", "./x\n")
    assert tuple(scripts.files_run_by(f"{root}/h1", str(root))) == (f"{root}/z", f"{root}/x")


class Calls:
    """Counts the calls of two functions of `os` while it is entered."""

    def __init__(self) -> None:
        self.listed = self.opened = 0

    def _note(self, _frame: object, event: str, called: object) -> None:
        if event == "c_call":
            self.listed += called is os.scandir
            self.opened += called is os.open

    def __enter__(self) -> "Calls":
        sys.setprofile(self._note)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)


def test_a_folder_is_listed_again_only_if_it_changed_or_could_have_changed_unnoticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A change within the same tick of the clock leaves the same times."""
    root = tmp_path.resolve()
    for name in ("x", "y"):
        _made(root, name)
    _made(root, "hooks/pre-commit", "./x\n")
    hooks, scripts = str(root / "hooks"), HookScripts()
    changed_ns = Path(hooks).stat().st_ctime_ns
    for passed_ns, listings in ((0, 1), (50_000_000, 1), (50_000_001, 1), (50_000_001, 0), (0, 0)):
        monkeypatch.setattr(time, "time_ns", lambda passed_ns=passed_ns: changed_ns + passed_ns)
        with Calls() as calls:
            assert tuple(scripts.files_run_by(hooks, str(root))) == (f"{root}/x",)
        assert calls.listed == listings, passed_ns
    _made(root, "hooks/update", "./y\n")
    assert tuple(scripts.files_run_by(hooks, str(root))) == (f"{root}/x", f"{root}/y")


def test_a_script_that_has_not_changed_is_not_read_again(tmp_path: Path) -> None:
    root = tmp_path.resolve()
    _made(root, "x")
    script, scripts = _made(root, "s", "./x\n"), HookScripts()
    opened: list[int] = []
    for _ in range(2):
        with Calls() as calls:
            assert tuple(scripts.files_run_by_script(str(script), str(root))) == (f"{root}/x",)
        opened.append(calls.opened)
    assert opened == [1, 0]


def test_only_the_first_line_names_the_interpreter(tmp_path: Path) -> None:
    root = tmp_path.resolve()
    _made(root, "x")
    script = _made(root, "s", "#!/usr/bin/perl\nsh\n./x\n")
    assert tuple(HookScripts().files_run_by_script(str(script), str(root))) == ()


SHEBANGS = (
    *((f"#!/bin/{shell}", True) for shell in ("bash", "dash", "ksh", "zsh")),
    *(("#! sh -e", True), ("#!/opt/fish", False), ("#!/usr/bin/env python3", False), ("#!sh", True)),
)


def test_scripts_of_the_shell_alone_are_read(tmp_path: Path) -> None:
    root = str(tmp_path.resolve())
    _made(tmp_path, "x")
    for first, is_read in (
        ("#!/bin/sh", True),
        ("#!/usr/bin/env bash", True),
        ("true", True),
        ("#!/bin/perl", False),
        *SHEBANGS,
    ):
        script = _made(tmp_path, "s", f"{first}\n./x\n")
        assert tuple(HookScripts().files_run_by_script(str(script), root)) == (f"{root}/x",) * is_read
    assert tuple(HookScripts().files_run_by_script(f"{root}/missing", root)) == ()
