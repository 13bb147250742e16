"""Files with keys stay hidden at any depth, and after programs moved, linked or tracked them."""

import pytest
from bwrap import needs_bwrap
from sandboxed_session import SandboxedSession

from bradawl.core.errors import ToolError
from bradawl.core.permissions import Grant
from bradawl.sandbox.discovery import workspace_survey as survey
from bradawl.tools.shell.sandbox_hints import notes_on

pytestmark = needs_bwrap
KEY = "KEY=very-secret"


@pytest.mark.parametrize("name", [".env", "a/b/c/.env", "a/b/c/d/e/f/g/h/.env.local", "x/y/z/w/id_rsa"])
def test_files_with_keys_are_hidden_at_any_depth(made: SandboxedSession, name: str) -> None:
    made.write(name, KEY)
    assert "very-secret" not in made.out(f"cat {name}; tar c . ; cp -r . /tmp/all; grep -r KEY . /tmp/all")


@pytest.mark.parametrize(
    "lines",
    [
        ("mv app app2", "cat app2/.env"),
        ("mv app app2; cat app2/.env",),
        ("mkdir -p d/e/f/g; mv app d/e/f/g/app", "cat d/e/f/g/app/.env"),
        ("touch -d 2001-01-01 . ; mv app app2; touch -d 2001-01-01 .", "cat app2/.env"),
        ("mv app/.env app/plain; mv app/.env plain; cp app/.env plain", "cat plain app/plain"),
        ("ln app/.env plain; ln -s app/.env link", "cat plain; cat link"),
        ("rm -f app/.env; git rm -f --cached app/.env", "cat app/.env"),
        ("git add -f app/.env", "cat app/.env"),
        ("git add -f app/.env && git commit -qm x", "git show HEAD:app/.env; cat app/.env"),
        ("git add -N -f app/.env", "cat app/.env"),
        ("mv app app2; git add -f app2/.env", "cat app2/.env"),
        ("mv conf conf0; mv app conf", "cat conf/.env"),
        ("git update-index --add --cacheinfo 100644,$(echo x | git hash-object -w --stdin),app/.env", "cat app/.env"),
        ('python3 -c \'import os; os.rename("app", "app2")\'', "find . -name .env -exec cat {} +"),
        ("git stash -u -a; git stash show -p --include-untracked stash@{0}", "git stash show -p; cat app/.env"),
        ("mount --bind app x; unshare -rm sh -c 'umount app/.env; cat app/.env'", "cat app/.env"),
    ],
)
def test_files_with_keys_stay_hidden_after_moves_and_git_add(made: SandboxedSession, lines: tuple[str, ...]) -> None:
    made.git_init()
    made.write("conf/.env", "EXAMPLE=1\n")
    made.bare("git add -f conf/.env; git commit -qm tracked")
    made.write("app/.env", KEY)
    assert "EXAMPLE" in made.out("cat conf/.env")
    for line in lines:
        assert "very-secret" not in made.out(line), line
    assert "very-secret" not in made.out("cat .env */.env */*/.env; tar c . --to-stdout .; git grep KEY; git log -p")


def test_a_file_added_to_the_index_in_another_session_stays_hidden(made: SandboxedSession) -> None:
    made.git_init()
    made.write("app/.env", KEY)
    made.run("git add -f app/.env && git commit -qm x")
    made.backend.close()
    later = SandboxedSession(made.place)
    assert "very-secret" not in later.out("cat app/.env")
    later.close()


def test_a_tracked_file_stays_visible_after_git_has_rewritten_it(made: SandboxedSession) -> None:
    made.git_init()
    made.write(".env", "EXAMPLE=1\n")
    made.bare("git add -f .env; git commit -qm one")
    made.write(".env", "EXAMPLE=2\n")
    made.bare("git commit -qam two")
    assert "EXAMPLE=2" in made.out("cat .env")
    assert "EXAMPLE=1" in made.out("git checkout -q HEAD~1; cat .env")
    assert made.out("git status --short; cat .env") == "EXAMPLE=1\n"


def test_an_empty_tracked_file_is_unchanged(made: SandboxedSession) -> None:
    made.git_init()
    made.write(".env", "")
    made.bare("git add -f .env; git commit -qm one")
    assert made.out("git status --short; cat .env") == ""


PASSED_OVER = ("node_modules", "__pycache__", "site-packages", ".tox", ".mypy_cache", ".ruff_cache", "x/node_modules/y")


@pytest.mark.parametrize("folder", [*PASSED_OVER, "made/.git/x"])
def test_files_moved_to_folders_that_are_not_searched_stay_hidden(made: SandboxedSession, folder: str) -> None:
    made.git_init()
    made.write("app/.env", KEY)
    made.run("true")
    made.bare(f"mkdir -p {folder}; mv app {folder}/app")
    assert (made.root / folder / "app/.env").exists()
    assert "very-secret" not in made.out("find . -name .env -exec cat {} +; grep -r KEY .")
    assert "very-secret" not in made.out("find . -name .env -exec cat {} +; grep -r KEY .", Grant())
    made.run(f"mv {folder}/app/ {folder}/deeper; mkdir -p {folder}/again; mv {folder}/deeper {folder}/again")
    assert "very-secret" not in made.out("find . -name .env -exec cat {} +; grep -r KEY .")


@pytest.mark.parametrize(
    "line",
    [
        "mv app/.env node_modules/plain",
        "ln app/.env node_modules/plain; rm app/.env",
        "mv app node_modules/x; mkdir app; echo EXAMPLE > app/.env",
        "ln app/.env node_modules/one; ln app/.env two; rm app/.env",
    ],
)
def test_files_moved_from_outside_stay_hidden(made: SandboxedSession, line: str) -> None:
    made.write("app/.env", KEY)
    made.write("node_modules/keep")
    made.run("true")
    made.bare(line)
    assert "very-secret" not in made.out("grep -r KEY .; find . -type f -exec cat {} +")


def test_a_folder_above_a_hidden_file_can_not_be_moved(made: SandboxedSession) -> None:
    made.write("app/deep/.env", KEY)
    made.write("other/file", "x")
    moved = made.run("mv app/deep app/away; mv app node_modules; mv other another && ls another")
    assert (made.root / "app/deep/.env").exists()
    assert b"file" in moved.stdout


def test_a_replaced_file_stays_hidden_and_a_removed_one_is_forgotten(made: SandboxedSession) -> None:
    path = made.write("node_modules/keep").parent / "app/.env"
    made.write("app/.env", KEY)
    made.run("true")
    made.bare("mv app node_modules/app")
    made.bare(f"echo {KEY}2 > node_modules/app/new; mv node_modules/app/new {path}")
    assert "very-secret" not in made.out(f"cat {path}")
    path.unlink()
    assert made.run(f"cat {path}").exit_code == 1
    made.write("plain", "seen")
    assert made.out("cat plain") == "seen"


def test_files_are_hidden_in_folders_beyond_the_number_searched_each_time(made: SandboxedSession, monkeypatch) -> None:
    for number in range(4_100):
        (made.root / f"f{number:04}").mkdir()
    for name in ("f4099/.env", "f0001/a/b/.env", "f4090/c/d/.env"):
        made.write(name, KEY)
    assert "very-secret" not in made.out("cat f4099/.env f0001/a/b/.env f4090/c/d/.env")
    made.run("mv f4090 node_modules")
    assert "very-secret" not in made.out("cat node_modules/c/d/.env")
    assert made.run("true").notes == ()


def test_folders_that_could_not_be_searched_are_reported_once(made: SandboxedSession, monkeypatch) -> None:
    monkeypatch.setattr(survey, "_FIRST_S", 0.0)
    monkeypatch.setattr(survey, "_MORE_S", 0.0)
    for number in range(4_100):
        (made.root / f"f{number:04}").mkdir()
    result = made.run("true")
    assert "more folders than could be searched" in result.notes[0]
    assert notes_on(result, made.grant, user_is_there=True) == (f"[{result.notes[0]}]",)
    assert made.run("true").notes == ()


def test_too_many_files_to_cover_are_refused_even_without_write_access(made: SandboxedSession) -> None:
    for number in range(310):
        made.write(f"{number}/.env", KEY)
    for grant in (None, Grant()):
        with pytest.raises(ToolError, match="more protected files and files with keys"):
            made.run("true", grant)


def test_a_repository_stays_covered_among_more_folders_than_are_searched(made: SandboxedSession) -> None:
    made.git_init()
    made.write("p/q/n/a", "1")
    made.bare("git init -q p/q/n; git -C p/q/n add a; git -C p/q/n -c user.name=a -c user.email=b commit -qm a")
    assert made.run("ls").exit_code == 0
    assert made.run("mkdir aa; (cd aa; mkdir $(seq 4100))").exit_code == 0
    made.run("printf '[core]\\n\\tfsmonitor = x\\n' >> p/q/n/.git/config; echo x > p/q/n/.git/hooks/pre-commit")
    assert "fsmonitor" not in (made.root / "p/q/n/.git/config").read_text()
    assert not (made.root / "p/q/n/.git/hooks/pre-commit").exists()


@pytest.mark.parametrize(
    "line",
    [
        "git update-index --add --cacheinfo 100644,$(git hash-object -w conf/a),app/.env",
        "git update-index --add --cacheinfo 100644,$(git hash-object -w conf/a),app/.env; git commit -qm x",
        "git -C app init -q; git -C app update-index --add --cacheinfo 100644,$(git hash-object -w conf/a),.env",
    ],
)
def test_a_file_tracked_by_a_program_is_hidden_in_the_next_session_too(made: SandboxedSession, line: str) -> None:
    made.git_init()
    made.write("conf/a", "other content")
    made.write("app/.env", KEY)
    assert "very-secret" not in made.out(f"{line}; cat app/.env")
    made.backend.close()
    later = SandboxedSession(made.place)
    assert "very-secret" not in later.out("cat app/.env; find . -name .env -exec cat {} +")
    later.close()
    again = SandboxedSession(made.place)
    assert "very-secret" not in again.out("cat app/.env")
    again.close()


def test_the_first_search_of_a_large_workspace_is_done_before_the_launch(made: SandboxedSession) -> None:
    """The launch blocks the event loop, the search before it does not."""
    for number in range(5_000):
        (made.root / f"f{number}").mkdir()
    search = made.backend.search_ahead(made.grant)
    assert search is not None
    keys = made.backend._surveys[str(made.root)]
    assert not keys._known
    search()
    assert len(keys._known) > 1_000
