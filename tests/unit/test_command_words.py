"""`files_in` finds the files that command lines and scripts of the shell run."""

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
    assert names == {"link", "scripts/a", "scripts/b", "scripts/deep", "later/x"}


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


def test_scripts_of_the_shell_alone_are_read(tmp_path: Path) -> None:
    root = str(tmp_path.resolve())
    _made(tmp_path, "x")
    for first, is_read in (("#!/bin/sh", True), ("#!/usr/bin/env bash", True), ("true", True), ("#!/bin/perl", False)):
        script = _made(tmp_path, "s", f"{first}\n./x\n")
        assert tuple(HookScripts().files_run_by_script(str(script), root)) == (f"{root}/x",) * is_read
    assert tuple(HookScripts().files_run_by_script(f"{root}/missing", root)) == ()
