"""What changed while only a background job ran is asked about, unless the job's command names it."""

import os
import shutil
import subprocess
from pathlib import Path

import msgspec
import pytest

from bradawl.app.undo_jobs import changes_in_doubt, with_conflicts_in_doubt, written_by
from bradawl.app.undo_line import UndoLine
from bradawl.app.undo_plan import UndoPlan
from bradawl.app.undo_text import conflicts_text, plan_text
from bradawl.checkpoints.record import Change, ChangeRecord, FileState
from bradawl.checkpoints.restore_plan import PlannedChange, RestorePlan
from bradawl.checkpoints.store import ContentStore
from bradawl.folds.undo_history import CallChange, CallJob

ONE, TWO = (FileState("file", 0o644, name * 64, 1) for name in "12")
FOLDER = FileState("folder", 0o755)


@pytest.fixture
def store(tmp_path: Path):
    with ContentStore(tmp_path / "store") as store:
        yield store


def found(store: ContentStore, job: CallJob | None, *changes: Change) -> dict[bytes, str]:
    record = ChangeRecord("c", 5_000, changes)
    call = CallChange(0, "c", "bash", "{}", store.save_record(record), "", job=job)
    unsaved = CallChange(0, "d", "bash", "{}", "", "not saved", job=job)
    return changes_in_doubt([call, unsaved], [record], store)


def job(command: str, *writes: str, cwd: str = "/ws") -> CallJob:
    return CallJob("job-1", command, cwd, writes)


def change(path: str, before: FileState | None = ONE, after: FileState | None = TWO) -> Change:
    return Change(path.encode(), before, after)


def test_what_the_command_does_not_name_may_be_the_user_s(store):
    server = job("while true; do date > server.log; sleep .2; done")
    changes = [change(f"/ws/{name}") for name in ("mine.txt", "server.log", "server.log2", "sub/server.log")]
    assert found(store, server, *changes) == dict.fromkeys(
        (b"/ws/mine.txt", b"/ws/server.log2", b"/ws/sub/server.log"), "job-1"
    )


def test_a_call_without_a_job_is_not_asked_about(store):
    assert found(store, None, change("/ws/f")) == {}


def test_all_that_an_understood_command_names_is_the_job_s(store):
    made = change("/ws/new", None, FOLDER)
    copied = job("cp -r a new/b", "/ws/new/b")
    assert found(store, copied, made, change("/ws/new/b/c"), change("/ws/new/d")) == {b"/ws/new/d": "job-1"}
    assert found(store, copied, change("/ws/new", FOLDER, msgspec.structs.replace(FOLDER, mode=0o700))) == {
        b"/ws/new": "job-1"
    }, "the mode of a folder that was there is not named"


@pytest.mark.parametrize(
    "path", ["/ws/.git", "/ws/.git/HEAD", "/ws/.git/refs/heads/main", "/ws/.git/index", "/ws/sub/.git/HEAD"]
)
def test_git_s_data_are_never_taken_for_the_job_s(store, path):
    assert found(store, job("x", "/ws"), change(path)) == {path.encode(): "job-1"}


@pytest.mark.parametrize(
    ("command", "paths"),
    [
        ("npm run dev > dev.log 2>&1", {"/ws/dev.log"}),
        ("npm run dev >> logs/dev.log", {"/ws/logs/dev.log"}),
        ("x > /ws/sub/f; y &> 'a b'", {"/ws/sub/f"}),
        ("cd sub && x > y", set()),
        ('x > $LOG; y > a*; z > b{1,2}; x > "$D/log"', set()),
        ("echo 'a > b'; # > c", set()),
        ("npm run dev", set()),
        ("x > y " + "; : " * 5_000, set()),
    ],
)
def test_the_targets_of_redirections_are_the_job_s(command, paths):
    assert written_by(job(command)) == paths


def test_a_redirection_in_an_unknown_folder_names_no_file():
    assert written_by(job("x > y", cwd="")) == set()


def test_an_index_that_only_git_status_has_rewritten_is_not_asked_about(store, tmp_path):
    def state() -> FileState:
        with (tmp_path / ".git" / "index").open("rb") as file:
            size = (tmp_path / ".git" / "index").stat().st_size
            return FileState("file", 0o644, store.add(file.fileno(), size), size)

    def git(*arguments: str) -> None:
        subprocess.run([shutil.which("git") or "git", *arguments], cwd=tmp_path, check=True, capture_output=True)

    git("init", "-q")
    (tmp_path / "f").write_text("f")
    git("add", "f")
    staged = state()
    os.utime(tmp_path / "f", (1, 1))
    git("status")
    refreshed = state()
    (tmp_path / "f").write_text("other")
    git("add", "f")
    other = state()
    store.flush()
    assert staged != refreshed
    path = str(tmp_path / ".git" / "index")
    assert found(store, job("x"), change(path, staged, refreshed)) == {}
    assert found(store, job("x"), change(path, staged, other)) == {path.encode(): "job-1"}
    assert found(store, job("x"), change(path, staged, None)) == {path.encode(): "job-1"}


def plan_of(*changes: PlannedChange, git: tuple[PlannedChange, ...] = ()) -> RestorePlan:
    return RestorePlan((b"/ws",), changes, git, (), ())


def planned(
    path: str, conflict: str = "", source: bytes = b"", *, moves_away: bool = False, job: str = ""
) -> PlannedChange:
    return PlannedChange(f"/ws/{path}".encode(), ONE, TWO, conflict, source, moves_away, job=job)


def conflicts(files: RestorePlan) -> dict[str, str]:
    return {each.path.decode()[4:]: each.job for each in files.conflicts}


def test_only_the_changes_beside_the_job_are_conflicts_and_others_stay_as_they_are():
    files = plan_of(planned("a"), planned("b"), planned("c", conflict="it was changed since"))
    marked = with_conflicts_in_doubt(files, {b"/ws/b": "job-1", b"/ws/c": "job-1", b"/ws/elsewhere": "job-1"})
    assert conflicts(marked) == {"b": "job-1", "c": ""}
    assert [each.conflict for each in marked.conflicts][1] == "it was changed since"
    assert with_conflicts_in_doubt(files, {}) is files


@pytest.mark.parametrize("asked", [b"/ws/a", b"/ws/b"])
def test_both_ends_of_a_rename_are_asked_about_together(asked):
    files = plan_of(planned("a", source=b"/ws/b"), planned("b", moves_away=True), planned("c"))
    assert conflicts(with_conflicts_in_doubt(files, {asked: "job-1"})) == {"a": "job-1", "b": "job-1"}


@pytest.mark.parametrize(
    ("asked", "all_of_them"),
    [("HEAD", True), ("index", True), ("refs/heads/x", True), ("refs/tags/v1", False), ("refs/remotes/o/x", False)],
)
def test_git_data_that_belong_together_are_asked_about_together(asked, all_of_them):
    names = ("HEAD", "index", "refs/heads/x", "refs/tags/v1", "refs/remotes/o/x")
    git = (*(planned(f".git/{name}") for name in names), planned("sub/.git/HEAD"))
    marked = with_conflicts_in_doubt(plan_of(planned("a"), git=git), {f"/ws/.git/{asked}".encode(): "job-1"})
    assert conflicts(marked) == {f".git/{name}": "job-1" for name in (names if all_of_them else (asked,))}


def test_the_texts_show_them_apart_from_other_conflicts():
    files = plan_of(
        planned("a"),
        planned("b", conflict="w", job="job-1"),
        planned("c", conflict="it was changed since"),
        git=(planned(".git/HEAD", conflict="w", job="job-1"),),
    )
    plan = UndoPlan(kind="undo", part="code", to=0, files=files)
    text = plan_text(plan, "/ws")
    assert "While only job-1 ran, these changed, perhaps by you: .git/HEAD, b; restored if you say so.\n" in text
    assert "! c: it was changed since\n" in text and "! b" not in text and "\n~ a " in text
    refused = conflicts_text(plan, "/ws", UndoLine())
    assert (
        "only copy of something: c; and while only job-1 ran, these changed, perhaps by you: .git/HEAD, b." in refused
    )
    refused = conflicts_text(plan, "/ws", UndoLine(), (b"/ws/c", b"/ws/b"))
    assert refused.startswith(
        "Nothing is restored, because while only job-1 ran, these changed, perhaps by you: .git/HEAD."
    )
