"""git commands are asked about if the index names files outside the working tree or can't be read with certainty."""

import pytest
from git_judge import BUBBLEWRAP, Judge, shown_by_hand, status
from git_plants import INDEXES, SECRET, Trap

from bradawl.core.permissions import Allow


@pytest.mark.parametrize("version", [2, 3, 4])
@pytest.mark.parametrize("name", INDEXES)
async def test_an_index_that_names_a_file_outside_is_asked_about(trap: Trap, name: str, version: int):
    judge = Judge(trap)
    assert judge.unasked()
    trap.index(name.format(secret=trap.secret).encode(), version=version)
    assert judge.unasked() == []
    assert "secret" not in (await status(trap) or "")


def test_git_itself_shows_the_files_that_these_indexes_name(trap: Trap):
    trap.index(b"../../secret")
    assert SECRET in shown_by_hand(trap, ("git diff",))
    trap.index(str(trap.secret).encode(), version=4)
    assert SECRET in shown_by_hand(trap, ("git grep -n pass",))


@pytest.mark.parametrize("version", [2, 4])
def test_a_search_through_a_link_in_place_of_a_folder_is_asked_about(trap: Trap, version: int):
    trap.index(b"link/secret", version=version)
    judge = Judge(trap)
    assert isinstance(judge.decided("git grep -n pass"), Allow)
    (trap.ws / "link").symlink_to(trap.secret.parent)
    assert SECRET in shown_by_hand(trap, ("git grep -n pass",))
    for line in ("git grep -n pass", "git grep pass | head", "git blame link/secret"):
        assert not isinstance(judge.decided(line), Allow)


def test_an_index_with_many_names_is_read_in_every_version(trap: Trap):
    for number in range(70):
        (trap.ws / f"d{number % 7}").mkdir(exist_ok=True)
        (trap.ws / f"d{number % 7}" / ("n" * number + str(number))).write_text("")
    (trap.ws / ("x" * 200)).mkdir()
    for version in ("2", "4", "3"):
        trap.git("update-index", "--index-version", version)
        trap.git("add", "-A")
        trap.git("add", "-N", ".")
        assert len(Judge(trap).unasked()) > 15


def test_all_parts_of_a_split_index_are_checked(trap: Trap):
    trap.git("update-index", "--split-index")
    judge = Judge(trap, BUBBLEWRAP)
    assert len(judge.unasked()) > 15
    (part,) = (trap.ws / ".git").glob("sharedindex.*")
    trap.index(b"../../secret")
    (trap.ws / ".git" / "index").replace(part)
    assert judge.unasked() == []


@pytest.mark.parametrize("damage", ["empty", "short", "long name", "threads", "end", "version"])
def test_a_damaged_index_is_asked_about(trap: Trap, damage: str):
    index = trap.ws / ".git" / "index"
    data = index.read_bytes()
    if damage == "empty":
        data = b""
    elif damage == "short":
        data = data[:40]
    elif damage == "long name":  # its length field belongs to another name
        data = data.replace(b"\0\x05a.txt", b"\0\x03a.txt")
    elif damage == "threads":
        data = data[:-20] + b"IEOT" + bytes(24)
    elif damage == "end":
        data = data[:-20] + b"EOIE\0\0\0\x18\0\0\0\x0c" + bytes(40)
    else:
        data = data[:7] + b"\x05" + data[8:]
    index.write_bytes(data)
    assert Judge(trap).unasked() == []


def test_an_untracked_cache_that_names_other_files_is_asked_about(trap: Trap):
    (trap.ws / "long").mkdir()
    for name in ("long/g", "h"):
        (trap.ws / name).write_text("")
    trap.git("update-index", "--untracked-cache")
    for _ in range(3):
        trap.git("status")
    index = trap.ws / ".git" / "index"
    data = index.read_bytes()
    assert len(Judge(trap).unasked()) > 15
    for before, after in ((b"long/\0", b"../x/\0"), (b"\0h\0", b"\0/\0"), (b"long\0g\0", b"lo/g\0g\0")):
        assert b"UNTR" in data and before in data
        index.write_bytes(data.replace(before, after))
        assert Judge(trap).unasked() == []


@pytest.mark.parametrize("version", ["2", "4"])
def test_a_tracked_file_with_keys_is_shown_without_a_question_only_while_it_is_unchanged(trap: Trap, version: str):
    trap.git("update-index", "--index-version", version)
    (trap.ws / ".env").write_text("KEY=example\n")
    trap.git("add", "-f", ".env")
    judge = Judge(trap)
    lines = ("git diff", "git diff HEAD", "git grep KEY", "git blame a.txt", "git status -vv", "git status -v -v")
    assert all(isinstance(judge.decided(line), Allow) for line in lines)
    (trap.ws / ".env").write_text(f"KEY={SECRET}\n")
    assert SECRET in shown_by_hand(trap, ("git diff",))
    assert not any(isinstance(judge.decided(line), Allow) for line in lines)
    assert isinstance(judge.decided("git status"), Allow)
    assert isinstance(Judge(trap, BUBBLEWRAP).decided("git diff"), Allow)


def test_a_file_with_keys_that_only_the_index_lists_is_asked_about(trap: Trap):
    trap.index(b".env")
    for line in ("git diff", "git grep KEY"):
        assert SECRET in shown_by_hand(trap, (line,))
        assert not isinstance(Judge(trap).decided(line), Allow)
