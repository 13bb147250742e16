"""An undo asks before it writes what makes git run a program."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from bradawl.app.undo_armed import with_armed_conflicts
from bradawl.checkpoints.record import FileState
from bradawl.checkpoints.restore import PlannedChange, RestorePlan
from bradawl.checkpoints.store import ContentStore

PLAIN = "[core]\n\tbare = false\n"
ARMED = f'{PLAIN}\tfsmonitor = "touch x; false"\n'


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ContentStore]:
    with ContentStore(tmp_path / "store") as made:
        yield made


def saved(store: ContentStore, text: str | None) -> FileState | None:
    return None if text is None else FileState("file", 0o755, store.add_bytes(text.encode()), len(text))


def is_asked(store: ContentStore, path: str, wanted: str | None, now: str | None = None, source: bytes = b"") -> bool:
    change = PlannedChange(path.encode(), saved(store, now), saved(store, wanted), source=source)
    found = with_armed_conflicts(RestorePlan((b"/ws",), (), (change,), (), ()), store).git[0].conflict
    also = with_armed_conflicts(RestorePlan((b"/ws",), (change,), (), (), ()), store).changes[0].conflict
    assert found == also
    return bool(found)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("/ws/a/.git/config", ARMED),
        ("/ws/.git/config", "[alias]\n\tst = !x\n"),
        ("/ws/.git/config", "[include]\n\tpath = ../x\n"),
        ("/ws/.git/config", "broken ["),
        ("/ws/.git/modules/m/config", ARMED),
        ("/ws/.git/config.worktree", ARMED),
        ("/ws/.git/commondir", "../g2\n"),
        ("/ws/.git/objects/info/alternates", "/x\n"),
        ("/ws/a/.git/hooks/pre-commit", "#!/bin/sh\n"),
        ("/ws/.git/rebase-merge/git-rebase-todo", "pick a\n  exec touch x\n"),
        ("/ws/.git/rebase-merge/git-rebase-todo", "x touch x\n"),
    ],
)
def test_what_makes_git_run_a_program_is_asked_about(store, path, text):
    assert is_asked(store, path, text)
    assert is_asked(store, path, text, PLAIN)
    assert not is_asked(store, path, None, text), "removing it arms nothing"
    assert not is_asked(store, path, text, source=b"/ws/b"), "a rename changes no content"


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("/ws/a/.git/config", PLAIN + '[remote "o"]\n\turl = https://example.org/x\n'),
        ("/ws/.git/hooks/pre-commit.sample", "#!/bin/sh\n"),
        ("/ws/.git/worktrees/w/commondir", "../..\n"),
        ("/ws/.git/rebase-merge/git-rebase-todo", "pick a\nexecute\n"),
        ("/ws/config", ARMED),
        ("/ws/hooks/x", "text"),
        ("/ws/.git/HEAD", "ref: refs/heads/main\n"),
    ],
)
def test_other_files_are_restored_without_a_question(store, path, text):
    assert not is_asked(store, path, text)


def test_settings_that_are_in_the_present_file_need_no_question(store):
    assert not is_asked(store, "/ws/.git/config", f"{ARMED}[user]\n\tname = u\n", ARMED)
    assert is_asked(store, "/ws/.git/config", f"{ARMED}[alias]\n\tx = !y\n", ARMED)


def test_a_folder_with_the_contents_of_a_repository_counts_as_one(store, tmp_path):
    (tmp_path / "bare").mkdir()
    assert not is_asked(store, f"{tmp_path}/bare/config", ARMED)
    (tmp_path / "bare/HEAD").write_text("ref: refs/heads/main")
    assert is_asked(store, f"{tmp_path}/bare/config", ARMED)
    changes = tuple(
        PlannedChange(f"/ws/new/{name}".encode(), None, saved(store, text))
        for name, text in {"HEAD": "ref: x", "config": ARMED}.items()
    )
    found = with_armed_conflicts(RestorePlan((b"/ws",), changes, (), (), ()), store)
    assert [bool(each.conflict) for each in found.changes] == [False, True]


def test_links_and_contents_that_are_not_saved_are_asked_about_and_conflicts_stay(store):
    link = PlannedChange(b"/ws/.git/config", None, FileState("link", 0o777, target=b"../x"))
    large = PlannedChange(b"/ws/a/.git/config", None, FileState("file", 0o644, "ab" * 32, 1 << 21))
    gone = PlannedChange(b"/ws/b/.git/config", None, FileState("file", 0o644, "ab" * 32, 10))
    known = PlannedChange(b"/ws/c/.git/config", None, saved(store, ARMED), conflict="it was changed")
    found = with_armed_conflicts(RestorePlan((b"/ws",), (), (link, large, gone, known), (), ()), store).git
    assert all(each.conflict for each in found) and found[-1].conflict == "it was changed"
