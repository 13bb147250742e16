"""What programs removed from git's data comes back at the next start, when bradawl was killed before it compared."""

import os
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from watched_history import Repository, rewrite

from bradawl.core.errors import ToolError
from bradawl.sandbox.restore import git_history, history_records
from bradawl.sandbox.restore.git_history import GitHistory, RepositoryLocation
from patience import call_limit


@pytest.fixture
def work(tmp_path: Path) -> Iterator[Repository]:
    made = Repository(tmp_path)
    yield made
    made.close()


def killed(history: GitHistory, act: Callable[[], object], *, ends: bool = False) -> None:
    """An agent that watches, acts, and is killed; with `ends` it has compared before."""
    child = os.fork()
    if not child:
        history.begin()
        act()
        if ends:
            history.end()
        os.kill(os.getpid(), signal.SIGKILL)
    assert os.WIFSIGNALED(os.waitpid(child, 0)[1])


def next_start(work: Repository) -> tuple[str, ...]:
    """What the first command of the next session restores."""
    history = work.new_history()
    history.begin()
    restored = history.end()
    history.close()
    return restored


def remove_objects(work: Repository) -> None:
    for folder in {each.parent for each in work.loose()}:
        shutil.rmtree(folder)


def records(work: Repository) -> list[Path]:
    return [*work.kept.glob("running-*"), *work.kept.glob("*/running-*")]


def test_objects_that_a_command_removed_come_back(work: Repository):
    killed(work.new_history(), lambda: remove_objects(work))
    assert any("/objects" in each for each in next_start(work))
    assert work.is_whole()
    assert next_start(work) == () and records(work) == []


def test_references_that_a_command_damaged_come_back(work: Repository):
    head = work.git("rev-parse", "HEAD")
    killed(work.new_history(), lambda: (work.data / "refs/heads/main").write_text("nonsense\n"))
    assert next_start(work) == (f"{work.data}/refs/heads/main",)
    assert work.git("rev-parse", "HEAD") == head


def test_what_was_damaged_in_place_comes_back(work: Repository):
    killed(work.new_history(), lambda: [rewrite(path, b"") for path in work.loose()])
    assert next_start(work) != ()
    assert work.is_whole()


def test_a_repository_that_a_command_removed_comes_back(work: Repository):
    head = work.git("rev-parse", "HEAD")
    killed(work.new_history(), lambda: shutil.rmtree(work.data))
    assert next_start(work) != ()
    assert work.git("rev-parse", "HEAD") == head
    assert work.is_whole()


def test_what_was_made_between_two_commands_comes_back(work: Repository):
    history = work.new_history()

    def act() -> None:
        assert history.end() == ()
        work.commit("two")
        history.begin()
        remove_objects(work)

    killed(history, act)
    assert next_start(work) != ()
    assert work.git("log", "-1", "--format=%s") == "two"
    assert work.is_whole()


def test_what_was_made_beside_a_job_comes_back(work: Repository):
    def act() -> None:
        made = work.commit("two")
        (work.top / "made").write_text(made)
        history.begin()  # a further command
        remove_objects(work)
        (work.data / "refs/heads/main").unlink()

    history = work.new_history()
    killed(history, act)
    assert next_start(work) != ()
    assert work.git("rev-parse", "HEAD") == (work.top / "made").read_text()
    assert work.is_whole()


def test_what_the_user_did_since_the_kill_stays(work: Repository):
    work.git("branch", "side")
    killed(work.new_history(), lambda: None)
    commit = work.commit("two")
    work.git("branch", "-D", "side")
    work.git("gc", "-q", "--prune=now")
    assert next_start(work) == ()
    assert work.git("rev-parse", "HEAD") == commit
    assert "side" not in work.git("branch")
    assert work.is_whole()


def test_a_repository_in_the_place_of_the_former_one_is_left_alone_and_named(work: Repository):
    killed(work.new_history(), lambda: None)
    shutil.rmtree(work.data)
    work.git("init", "-q", "-b", "other")
    before = sorted(work.data.rglob("*"))
    (remark,) = next_start(work)
    assert remark.startswith(f"{work.data} (could not be checked: bradawl was killed")
    assert sorted(work.data.rglob("*")) == before
    assert next_start(work) == ()


def test_nothing_is_compared_if_no_program_ran(work: Repository):
    killed(work.new_history(), lambda: None, ends=True)
    remove_objects(work)
    assert next_start(work) == ()
    assert not work.loose()
    assert records(work) == []


def test_the_record_of_an_agent_that_lives_is_not_used(work: Repository):
    history = work.new_history()
    history.begin()
    remove_objects(work)
    assert next_start(work) == ()
    assert history.end() != ()
    history.close()
    assert records(work) == []


def test_a_workspace_that_is_gone_hinders_nothing(work: Repository):
    killed(work.new_history(), lambda: shutil.rmtree(work.root))
    work.root.mkdir()
    work.root.rmdir()
    history = GitHistory(tuple, str(work.kept))
    history.begin()
    assert history.end() == ()
    history.close()
    assert records(work) == []
    assert not work.root.exists()


def test_a_comparison_that_fails_stops_commands_until_it_succeeds(work: Repository, monkeypatch: pytest.MonkeyPatch):
    def fail(*_: object) -> None:
        raise OSError(5, "Input/output error")

    killed(work.new_history(), lambda: remove_objects(work))
    history = work.new_history()
    with monkeypatch.context() as patched:
        patched.setattr(git_history.ObjectFiles, "lost_objects", fail)
        for _ in range(2):
            with pytest.raises(ToolError, match=r"what an earlier command did in .*/\.git could not be checked"):
                history.begin()
    with monkeypatch.context() as patched:
        patched.setattr(git_history.ObjectFiles, "lost_objects", fail)
        other = work.new_history()
        with pytest.raises(ToolError, match="could not be checked"):
            other.begin()
        other.close()
    history.begin()
    assert history.end() != ()
    assert work.is_whole()
    history.close()
    assert records(work) == []


@pytest.mark.parametrize("content", [b"", b"\xc1garbage", b"\x96" + bytes(40)])
def test_a_record_that_can_not_be_read_is_said(work: Repository, content: bytes):
    killed(work.new_history(), lambda: None)
    for state in work.kept.glob("*/running-*"):
        state.write_bytes(content)
    (remark,) = next_start(work)
    assert "could not be checked" in remark and str(work.data) in remark
    assert next_start(work) == () and records(work) == []


def test_nothing_starts_while_the_list_of_a_killed_agent_can_not_be_read(work: Repository, monkeypatch):
    killed(work.new_history(), lambda: remove_objects(work))
    history, open_file = work.new_history(), os.open

    def fail(path: object, *arguments: int, **options: int) -> int:
        if "/state/running-" in str(path):
            raise OSError(24, "Too many open files", path)
        return open_file(path, *arguments, **options)

    with monkeypatch.context() as patched:
        patched.setattr(os, "open", fail)
        for _ in range(2):
            with pytest.raises(ToolError, match="could not be checked: Too many open files"):
                history.begin()
    history.begin()
    assert history.end() != ()
    assert work.is_whole()


def test_two_killed_agents_are_both_made_up_for(work: Repository):
    killed(work.new_history(), lambda: remove_objects(work))
    head = work.data / "refs/heads/main"
    content = head.read_text()
    killed_second = work.new_history()

    def act() -> None:
        assert work.loose()
        head.unlink()

    killed(killed_second, act)
    assert next_start(work) != ()
    assert head.read_text() == content
    assert work.is_whole()


def test_records_of_unchanged_repositories_are_not_written_again(work: Repository):
    history = work.new_history()
    history.begin()
    history.end()
    (state,) = work.kept.glob("*/running-*")
    before = state.stat()
    history.begin()
    history.end()
    assert (state.stat().st_ino, state.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    work.commit("two")
    history.begin()
    history.end()
    assert state.stat().st_mtime_ns != before.st_mtime_ns
    history.close()
    assert records(work) == []


def test_programs_start_if_no_record_can_be_written(work: Repository):
    work.kept.write_text("")  # no folder
    history = work.new_history()
    history.begin()
    assert history.end() == ()
    history.close()


def test_large_indexes_are_not_copied_into_the_record(work: Repository, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(history_records, "_INDEX_BYTES", 10)
    killed(work.new_history(), lambda: (work.data / "index").unlink())
    next_start(work)
    assert work.git("log", "--format=%s") == "one"


def test_the_record_costs_the_same_however_many_references_there_are(work: Repository):
    refs = work.data / "refs/heads"
    for number in range(2_000):
        (refs / f"b{number}").write_text(f"{number:040x}\n")
    history = GitHistory(lambda: [RepositoryLocation(str(work.data), str(work.root))], str(work.kept))
    history.begin()
    history.end()
    with call_limit(500):  # 2,000 references
        history._records.begin(tuple(history._watched.values()))
        history._records.end()
    history.close()
