"""What git's configuration names, submodules in an index, steps of a rebase, and incomplete searches."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from bradawl.safety.git.config_places import SYSTEM_FILES, configs_elsewhere
from bradawl.safety.git.index import submodules_in
from bradawl.safety.git.named_paths import NamedPaths, named_by_config
from bradawl.safety.git.repository import UnsupportedRepository
from bradawl.safety.permissions.protected_paths import built_in_rules, run_later_names
from bradawl.sandbox.restore.git_directories import GitDirectories
from bradawl.sandbox.restore.harmless_git_files import runs_by_state
from bradawl.sandbox.restore.snapshot import Entry, take_snapshot


def _git(place: Path, *words: str) -> None:
    identity = ("-c", "user.name=a", "-c", "user.email=a@b")
    subprocess.run(
        ["git", *identity, *words], cwd=place, check=True, capture_output=True, env={**os.environ, "HOME": "/"}
    )


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("[core]\n\thooksPath = hooks\n", ["hooks"]),
        ("[core]\n\thooksPath = .husky/_/\n", [".husky/_"]),
        ("[core]\n\thooksPath = {root}/h\n", ["h"]),
        ("[core]\n\thooksPath = a/../b\n", ["b"]),
        ("[core]\n\thooksPath = .\n", []),
        ("[core]\n\thooksPath = ..\n", []),
        ("[core]\n\thooksPath = /elsewhere\n", []),
        ("[core]\n\thooksPath\n", []),
        ("[include]\n\tpath = ../settings\n", ["settings"]),
        ('[includeIf "gitdir:x"]\n\tpath = ../settings\n', ["settings"]),
        ("[include]\n\tpath = ../chain\n", ["chain", "next", "deep"]),
        ("[core]\n\tfsmonitor = tools/watch --fast\n", ["tools/watch"]),
        ("[core]\n\tfsmonitor = true\n", []),
        ("[core]\n\tfsmonitor\n", []),
        ("[core]\n\thooksPath = .git/other\n", []),
        ("no configuration", []),
    ],
)
def test_paths_that_the_configuration_names(tmp_path: Path, text: str, named: list[str]) -> None:
    root = tmp_path / "root"
    (root / ".git").mkdir(parents=True)
    (root / "chain").write_text("[include]\n\tpath = next\n")
    (root / "next").write_text("[core]\n\thooksPath = deep\n[include]\n\tpath = chain\n")
    (root / ".git/config").write_text(text.format(root=root))
    found = named_by_config(NamedPaths(""), str(root), (str(root),))
    assert found == tuple(f"{root}/{name}" for name in named)


def test_the_users_configuration_counts_in_every_repository_and_is_read_again(tmp_path: Path) -> None:
    home, root = tmp_path / "home", tmp_path / "root"
    for place in (home, root):
        place.mkdir()
    (home / "real").write_text("[core]\n\thooksPath = .githooks\n")
    (home / ".gitconfig").symlink_to("real")
    named = NamedPaths(str(home))
    assert named.within(str(root), str(root / "a"), ()) == (f"{root}/a/.githooks",)
    (home / "real").write_text("[core]\n\thooksPath = other-hooks\n")
    assert named.within(str(root), str(root / "a"), ()) == (f"{root}/a/other-hooks",)


def test_the_configuration_of_the_machine_counts_as_that_of_the_user(tmp_path: Path) -> None:
    (tmp_path / "system").write_text("[core]\n\thooksPath = .githooks\n")
    named = NamedPaths("", (f"{tmp_path}/missing", f"{tmp_path}/system"))
    assert named.within(str(tmp_path), str(tmp_path), ()) == (f"{tmp_path}/.githooks",)
    assert named.hook_folder_names() == (".githooks",)


def test_the_environment_names_further_configurations(tmp_path: Path) -> None:
    variables = {"XDG_CONFIG_HOME": f"{tmp_path}/x", "GIT_CONFIG_GLOBAL": f"{tmp_path}/g", "GIT_CONFIG_SYSTEM": "s"}
    assert configs_elsewhere(variables) == (*SYSTEM_FILES, f"{tmp_path}/x/git/config", f"{tmp_path}/g")
    assert configs_elsewhere({"GIT_CONFIG_GLOBAL": ""}) == SYSTEM_FILES


@pytest.mark.parametrize("version", ["2", "3", "4"])
@pytest.mark.parametrize("kind", ["sha1", "sha256"])
def test_submodules_are_found_in_an_index_that_git_wrote(tmp_path: Path, version: str, kind: str) -> None:
    _git(tmp_path, "init", "-q", f"--object-format={kind}")
    _git(tmp_path, "config", "index.version", version)
    for name in ("a", "b/c"):
        inner = tmp_path / name
        inner.mkdir(parents=True)
        (tmp_path / f"{name}file").write_text("x")
        _git(inner, "init", "-q", f"--object-format={kind}")
        _git(inner, "commit", "-q", "--allow-empty", "-m", "x")
    _git(tmp_path, "add", ".")
    data = (tmp_path / ".git/index").read_bytes()
    assert submodules_in(data) == {"a", "b/c"}
    assert submodules_in(b"") == frozenset()
    with pytest.raises(UnsupportedRepository):
        submodules_in(data[:200] + b"\0\0\xe0\0")


def _entry(tmp_path: Path, text: str) -> Entry:
    file = tmp_path / "todo"
    file.write_text(text)
    return take_snapshot([(str(tmp_path), "todo")], {})[str(file)]


@pytest.mark.parametrize(
    ("before", "now", "runs"),
    [
        (None, "pick 1 one\nfixup 2 two\n# exec is explained here\n", False),
        (None, "pick 1 exec something\n", False),
        (None, "pick 1 one\nexec make\n", True),
        (None, "  x make\n", True),
        ("exec make\npick 1 one\n", "exec make\n", False),
        ("exec make\n", "exec make all\n", True),
    ],
)
def test_new_steps_of_a_rebase_that_run_programs_are_recognized(
    tmp_path: Path, before: str | None, now: str, runs: bool
) -> None:
    known = _entry(tmp_path, before) if before is not None else None
    assert runs_by_state(".git/rebase-merge/git-rebase-todo", _entry(tmp_path, now), known) is runs


def test_what_a_program_left_where_no_search_reached_does_not_count_as_older(tmp_path: Path) -> None:
    for number in range(300):
        (tmp_path / f"f{number}").mkdir()
    quick = GitDirectories((str(tmp_path),), within_s=0)
    slow = GitDirectories((str(tmp_path),))
    for each in (quick, slow):
        each.search()
        each.adopt()
    assert quick.rest
    assert not slow.rest
    quick.search(opens=True)
    quick.note_end()
    assert quick.unsearched == ()  # nothing could be written in the rest
    slow._indexes[0]._within_s = 0  # the program has left more than can be searched
    for number in range(300):
        (tmp_path / f"f{number}/x/.git").mkdir(parents=True)
    slow.search(opens=True)
    slow.note_end()
    left = slow.unsearched
    assert left
    slow._indexes[0]._within_s = 60
    slow.search()
    slow.adopt()
    for number in range(300):
        folder = f"{tmp_path}/f{number}/x"
        assert slow.is_pending(folder) == any(folder.startswith(f"{each}/") or folder == each for each in left)
    slow.search(opens=True)
    slow.note_end()
    slow.search()
    slow.adopt()
    assert not slow.is_pending(f"{tmp_path}/f1/x")


@pytest.mark.parametrize("name", [*run_later_names(), "a.code-workspace", ".git/rebase-merge/git-rebase-todo"])
def test_file_tools_ask_before_they_write_what_commands_may_not_change(name: str) -> None:
    rules = [
        rule for rule in built_in_rules(("/ws",), "/home/u") if rule.verdict in ("ask", "deny") and rule.on == "write"
    ]
    for place in ("/ws", "/ws/deep/er"):
        assert any(re.fullmatch(rule.pattern, f"{place}/{name}", re.DOTALL) for rule in rules)
