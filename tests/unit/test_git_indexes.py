"""Overlapping programs, files that the sandbox hides, and indexes that were there before."""

import os
from pathlib import Path

import pytest

from bradawl.core.errors import ToolError
from bradawl.sandbox.check_failures import NOT_CHECKED
from bradawl.sandbox.restore.git_directories import GitDirectories
from bradawl.sandbox.restore.git_indexes import GitIndexes
from bradawl.sandbox.restore.index_places import IndexPlaces
from index_writer import add_entries, git


class Repository:
    def __init__(self, top: Path) -> None:
        self.top = top
        self.root = top / "ws"
        self.index = self.root / ".git/index"
        self.root.mkdir()
        git(str(self.root), "init", "-q")
        self.add("a.txt")
        self.directories = GitDirectories((str(self.root),))
        self.places = IndexPlaces((str(self.root),), str(top / "home"), self.directories)
        self.limit(100_000)

    def limit(self, most_bytes: int) -> None:
        self.indexes = GitIndexes(self.places, str(self.top / "aside"), most_bytes=most_bytes)

    def add(self, name: str) -> None:
        (self.root / name).write_text(name)
        git(str(self.root), "add", "-f", name)

    def craft(self, name: bytes = b"../x", version: int = 2) -> None:
        add_entries(str(self.root), [(name, b"x")], version)

    def names(self) -> bytes:
        return git(str(self.root), "ls-files")

    def begin(self, *hidden: str) -> None:
        self.directories.search()
        self.directories.adopt()
        self.indexes.begin(str(self.root / name) for name in hidden)

    def end(self, allowed: tuple[str, ...] = ()) -> tuple[str, ...]:
        self.directories.search(opens=True)
        return self.indexes.end(allowed)


@pytest.fixture
def work(tmp_path: Path) -> Repository:
    return Repository(tmp_path)


def test_an_honest_change_of_one_program_is_the_state_before_the_end_of_the_other(work: Repository):
    work.begin()
    work.begin()
    work.add("b.txt")
    assert work.end() == ()
    work.craft()
    assert work.end() == (f"{work.index} (it named ../x)",)
    assert work.names() == b"a.txt\nb.txt\n"


def test_a_file_is_hidden_only_if_it_is_hidden_from_all_running_programs(work: Repository):
    (work.root / ".env").write_text("SECRET")
    work.begin(".env")
    work.begin()
    work.add(".env")
    assert work.end() == ()
    assert work.names() == b".env\na.txt\n"
    assert work.end() == ()


def test_all_files_in_a_hidden_folder_are_hidden_also_those_that_are_missing(work: Repository):
    (work.root / "keys").mkdir()
    work.begin("keys")
    work.craft(b"keys/deep/a")
    work.craft(b"keys-2/a")
    assert work.end() == (f"{work.index} (it named keys/deep/a, which commands can't read)",)
    assert work.names() == b"a.txt\nkeys-2/a\n"


def test_a_change_that_was_allowed_stays(work: Repository):
    work.begin()
    work.craft()
    assert work.end((str(work.root / ".git"),)) == ()
    assert work.names() == b"../x\na.txt\n"


def test_a_change_between_commands_is_the_users_and_is_said_once(work: Repository):
    work.begin()
    assert work.end() == ()
    work.craft()
    work.begin()
    work.add("b.txt")
    assert work.end() == (f"{work.index} (could not be put back: it names ../x, as before the command)",)
    work.begin()
    assert work.end() == ()
    assert work.names() == b"../x\na.txt\nb.txt\n"


def test_an_unchanged_index_that_was_so_at_the_start_is_said_once(work: Repository):
    work.craft()
    for expected in ((f"{work.index} (could not be put back: it names ../x, as before the command)",), ()):
        work.begin()
        assert work.end() == expected
    assert work.names() == b"../x\na.txt\n"


def test_an_index_that_is_too_large_for_a_copy_is_moved_away_if_it_is_replaced(work: Repository, tmp_path: Path):
    for number in range(30):
        work.add(f"name{number}")
    work.limit(1_000)
    work.begin()
    work.index.unlink()
    work.craft()
    (note,) = work.end()
    assert "it named ../x; it was moved away" in note
    assert work.names() == b""
    assert len(list((tmp_path / "aside").rglob("*index"))) == 1


def test_an_index_that_is_too_large_before_and_after_is_left_and_said_once(work: Repository):
    work.limit(10)
    for expected in (1, 0):
        work.begin()
        work.add(f"b{expected}.txt")
        assert len(work.end()) == expected
    assert work.names() == b"a.txt\nb0.txt\nb1.txt\n"


def test_a_write_in_place_within_the_same_tick_of_the_clock_is_seen(work: Repository):
    """The stamp of a file that was read right after a change is not trusted: before Linux 6.13 the clock is coarse."""
    before = work.index.read_bytes()
    work.craft(b"../y")
    crafted = work.index.read_bytes()
    work.index.write_bytes(before)
    work.craft(b"b..y")
    good = work.index.read_bytes().ljust(len(crafted))
    assert len(good) == len(crafted)
    work.index.write_bytes(before)
    for _ in range(20):
        work.begin()
    for _ in range(10):
        work.index.write_bytes(good)
        assert work.indexes.end() == ()
        work.index.write_bytes(crafted)
        assert work.indexes.end() == (f"{work.index} (it named ../y)",)


@pytest.mark.skipif(os.geteuid() == 0, reason="root enters closed folders")
def test_a_closed_folder_hides_no_index(work: Repository):
    work.begin()
    work.craft()
    (work.root / ".git").chmod(0)
    try:
        assert work.end() == (f"{work.index} (it named ../x)",)
    finally:
        (work.root / ".git").chmod(0o755)
    assert work.names() == b"a.txt\n"


def test_names_in_a_message_have_no_control_characters(work: Repository):
    work.begin()
    work.craft(b"../\n\x1b[31mred")
    (note,) = work.end()
    assert note.isprintable()
    assert "red" in note


def test_the_index_of_the_repository_around_the_workspace_is_examined(work: Repository, tmp_path: Path):
    inner = work.root / "folder"
    inner.mkdir()
    (inner / ".env").write_text("SECRET")
    work.directories = GitDirectories((str(inner),))
    work.places = IndexPlaces((str(inner),), str(tmp_path / "home"), work.directories)
    work.limit(100_000)
    work.begin()
    work.craft()
    assert work.end() == (f"{work.index} (it named ../x)",)
    work.begin("folder/.env")
    work.craft(b"folder/.env")
    assert work.end() == (f"{work.index} (it named folder/.env, which commands can't read)",)
    assert work.names() == b"a.txt\n"


@pytest.mark.parametrize("is_link", [True, False])
def test_separate_data_in_the_workspace_are_examined_and_data_elsewhere_are_left(
    work: Repository, tmp_path: Path, *, is_link: bool
):
    inside, elsewhere = work.root / "data", tmp_path / "elsewhere"
    for data, name in ((inside, "a"), (elsewhere, "b")):
        git(str(work.root), "init", "-q", f"--separate-git-dir={data}", name)
        if is_link:
            (work.root / name / ".git").unlink()
            (work.root / name / ".git").symlink_to(data)
    work.begin()
    add_entries(str(work.root / "a"), [(b"../x", b"x")])
    add_entries(str(work.root / "b"), [(b"../x", b"x")])
    assert work.end() == (f"{inside}/index (it named ../x)",)
    assert git(str(work.root / "b"), "ls-files") == b"../x\n"


def test_an_index_whose_check_failed_is_compared_again_before_the_next_program(work: Repository, monkeypatch):
    work.begin()
    work.craft()
    with monkeypatch.context() as broken:
        broken.setattr(work.places, "now", lambda: 1 // 0)
        (remark,) = work.end()
        assert NOT_CHECKED in remark
        with pytest.raises(ToolError, match="could not be checked"):
            work.indexes.check_again()
    work.indexes.check_again()
    assert work.names() == b"a.txt\n"
    work.begin()
    assert work.end() == (f"{work.index} (it named ../x)",)


def test_a_file_beside_a_git_file_that_names_nothing_is_no_index(work: Repository):
    (work.root / "pkg").mkdir()
    (work.root / "pkg/.git").touch()
    work.begin()
    (work.root / "pkg/index").write_text("of the project")
    assert work.end() == ()
    assert (work.root / "pkg/index").read_text() == "of the project"


def test_the_folder_with_the_index_that_was_moved_away_is_said(work: Repository, tmp_path: Path):
    work.begin()
    work.craft()
    assert work.end() != ()
    (folder,) = work.indexes.take_set_aside()
    assert len(list(Path(folder).iterdir())) == 1
    assert work.indexes.take_set_aside() == ()
