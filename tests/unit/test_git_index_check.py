"""What an index names, compared with git itself: random names, random entries, damaged files."""

import os
import subprocess
from hashlib import sha1
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest

from bradawl.safety.git.entry_names import FOLDER, LINK, is_refused, refused_names
from bradawl.safety.git.index import parse_entries
from bradawl.safety.git.index_check import ExaminedIndex, examine_index, hash_length, without_entries
from bradawl.safety.git.repository import UnsupportedRepository
from index_writer import add_entries, git, index_bytes, number

PIECES = (
    *(b".", b"..", b"/", b"\\", b":", b" ", b".git", b".GIT", b"git~1", b"GIT~1", b"git~2", b"\xe2\x80\x8c"),
    *(b"\xef\xbb\xbf", b"\xe2\x81\xaf", b"\xff", b"\xe2\x80", b"a", b"g", b"i", b"t", b"~1", b".gitmodules"),
    *(b"gitmod~1", b"gi7eba~1", b"gi7eb~12", b"modules", b"\xef\xbf\xbf", b"\xc3\xa9", b"\n"),
)
FILE = 0o100644


@pytest.fixture
def repository(tmp_path: Path) -> str:
    subprocess.run(["git", "init", "-q", "-b", "main", tmp_path / "r"], check=True)
    return str(tmp_path / "r")


def is_refused_by_git(folder: str, name: bytes, mode: int, content: str) -> bool:
    Path(folder, ".git/index").unlink(missing_ok=True)
    words = ("-c", "core.protectHFS=true", "-c", "core.protectNTFS=true", "update-index", "-z", "--index-info")
    text = b"%o %s 0\t%s\0" % (mode, content.encode(), name)
    done = subprocess.run(["git", "-C", folder, *words], input=text, capture_output=True, check=False)
    return done.returncode != 0 or b"gnoring" in done.stderr


def test_random_names_are_refused_as_by_git(repository: str):
    chance = Random(int(os.environ.get("NAMES_SEED", "1")))  # noqa: S311 - test data
    content = git(repository, "hash-object", "-w", "--stdin", text=b"x").decode().strip()
    refused = 0
    for _ in range(int(os.environ.get("NAMES_COUNT", "300"))):
        name = b"".join(chance.choices(PIECES, k=chance.randint(1, 5)))
        mode = chance.choice((FILE, LINK))
        by_git = is_refused_by_git(repository, name, mode, content)
        refused += by_git
        assert is_refused(name, mode) == bool(refused_names([b"a", name, b"z"], lambda _, mode=mode: mode))
        if by_git or b"\\" not in name:  # git passes over a part that begins with a backslash
            assert is_refused(name, mode) == by_git, (name, oct(mode))
    assert refused > 20


@pytest.mark.parametrize(
    "name",
    [
        *(b".git", b".git/x", b"a/.git/x", b".GiT/x", b"git~1/x", b".git /x", b".git./x", b".git::$INDEX_ALLOCATION/x"),
        *(
            b".g\xe2\x80\x8cit/x",
            b"\xef\xbb\xbf.git/x",
            b"a\\.git\\x",
            b"..",
            b"../x",
            b"a/../x",
            b"a/..",
            b".",
            b"./x",
        ),
        *(b"/x", b"a//x", b"a/", b"", b"/"),
    ],
)
@pytest.mark.parametrize("version", [2, 4])
def test_a_refused_name_is_found_among_others(name: bytes, version: int):
    content = "1" * 40
    items = [(b"a.txt", FILE, content), (b"b/.gitignore", FILE, content), (name, FILE, content), (b"zz", LINK, content)]
    examined = examine_index(index_bytes(items, version), 20)
    assert examined.refused == (name,)


@pytest.mark.parametrize("name", [b".gitmodules", b"x/.GITMODULES", b"gitmod~2", b".gitmodules. ", b"GI7EBA~1"])
def test_only_a_link_may_not_have_the_name_of_the_list_of_submodules(name: bytes):
    for mode, refused in ((LINK, (name,)), (FILE, ())):
        assert examine_index(index_bytes([(name, mode, "1" * 40)]), 20).refused == refused


LINKS_TO_SUBMODULES = (
    *(b".g\xe2\x80\x8citmodules", b"x/.gitmo\xef\xbb\xbfdules", b"\xe2\x81\xaa.gitmodules", b".gitmodules\xff"),
    *(b"a\\.gitmodules", b"a\\gitmod~1", b".gitmodules/x", b".gitmodules::$DATA", b"x\\gi7eba~1", b"gi7eb~10"),
    *(b"gi7e~100", b"gi7~1000", b"gi~10000", b"g~100000", b"~1000000"),
)


@pytest.mark.parametrize("name", LINKS_TO_SUBMODULES)
def test_a_link_named_as_other_systems_may_read_the_list_of_submodules_is_refused_as_by_git(
    name: bytes, repository: str
):
    content = git(repository, "hash-object", "-w", "--stdin", text=b"x").decode().strip()
    for mode in (LINK, FILE):
        expected = is_refused_by_git(repository, name, mode, content)
        assert expected == (mode == LINK)
        found = examine_index(index_bytes([(b"a", FILE, content), (name, mode, content)]), 20).refused
        assert found == (name,) * expected


@pytest.mark.parametrize("name", [b"gitmod~5", b"gi7eba~0", b".gitx\xff", b".git\xc3\xa9", b".gitmodules2", b"git~2"])
def test_a_link_with_a_name_that_only_resembles_one_of_gits_own_is_accepted_as_by_git(name: bytes, repository: str):
    content = git(repository, "hash-object", "-w", "--stdin", text=b"x").decode().strip()
    assert not is_refused_by_git(repository, name, LINK, content)
    assert examine_index(index_bytes([(name, LINK, content)]), 20).refused == ()


def test_permissions_in_the_mode_do_not_hide_a_link():
    data = index_bytes([(b".gitmodules", LINK | 0o777, "1" * 40)])
    assert examine_index(data, 20).refused == (b".gitmodules",)


def test_the_folder_of_a_sparse_index_needs_a_name_and_may_have_several_parts():
    for name, refused in ((b"a/", False), (b"a/b/", False), (b"a", False), (b"", True), (b"/", True), (b".git/", True)):
        assert is_refused(name, FOLDER) == refused, name
    assert is_refused(b"a/", FILE)


NAMES = (b".env", b".gitignore", b"a", b"a.b", b"a/b", b"a/b c", b"a/\xff", b"x" * 70, b"d/" + b"y" * 5000, b"\xc3\xa9")


@pytest.mark.parametrize("version", [2, 4])
@pytest.mark.parametrize("length", [20, 32])
def test_random_indexes_are_examined_and_shortened_as_git_reads_them(version: int, length: int, tmp_path: Path):
    folder = str(tmp_path)
    kind = "sha1" if length == 20 else "sha256"
    subprocess.run(["git", "init", "-q", f"--object-format={kind}", folder], check=True)
    assert hash_length((tmp_path / ".git/config").read_bytes()) == length
    chance = Random(version * length)  # noqa: S311 - test data
    index = tmp_path / ".git/index"
    for _ in range(12):
        names = chance.sample(NAMES, chance.randint(1, len(NAMES)))
        items = [
            (name, chance.choice((FILE, 0o100755, LINK)), f"{chance.getrandbits(160):0{2 * length}x}") for name in names
        ]
        data = index_bytes(items, version)
        examined = examine_index(data, length)
        assert examined.refused == ()
        index.write_bytes(data)
        assert examined.names == b"\0" + git(folder, "ls-files", "-z")
        dropped = frozenset(chance.sample(names, chance.randint(0, len(names))))
        index.write_bytes(without_entries(data, dropped, length))
        expected = sorted((name, mode, content) for name, mode, content in items if name not in dropped)
        lines = git(folder, "ls-files", "-s", "-z").split(b"\0")[:-1]
        assert lines == [b"%o %s 0\t%s" % (mode, content.encode(), name) for name, mode, content in expected]
        assert examine_index(index.read_bytes(), length).names.split(b"\0")[1:-1] == [each[0] for each in expected]


def test_git_reads_each_damaged_index_that_is_accepted_in_the_same_way(repository: str, tmp_path: Path):
    """Random bytes of an index with all extensions are changed; the checksum is right again."""
    root = Path(repository)
    for name in NAMES[:7]:
        path = root / os.fsdecode(name if name != b"a" else b"aa")
        path.parent.mkdir(exist_ok=True)
        path.write_text("x")
    git(repository, "add", "-A")
    git(repository, "update-index", "--untracked-cache")
    (root / "new").touch()
    for _ in range(2):
        git(repository, "status")
    chance = Random(3)  # noqa: S311 - test data
    index = root / ".git/index"
    good = index.read_bytes()[:-20]
    accepted = 0
    for _ in range(int(os.environ.get("DAMAGES", "150"))):
        data = bytearray(good)
        for _ in range(chance.randint(1, 3)):
            at = chance.randrange(len(data))
            data[at] = chance.choice((0, 1, 47, 46, 255, data[at] ^ 1 << chance.randrange(8)))
        if chance.random() < 0.2:
            del data[chance.randrange(len(data)) :]
        changed = bytes(data) + sha1(data, usedforsecurity=False).digest()
        try:
            names = examine_index(changed, 20).names
        except UnsupportedRepository:
            continue
        accepted += 1
        index.write_bytes(changed)
        words = ["git", "-C", repository, "ls-files", "-z", "--sparse"]
        done = subprocess.run(words, capture_output=True, check=False)
        if done.returncode == 0:
            assert b"\0" + done.stdout == names
    assert accepted > 5


def test_an_index_that_git_would_not_have_written_is_rejected(repository: str):
    items = [(b"a", FILE, "1" * 40), (b"b", FILE, "2" * 40)]
    good = index_bytes(items)
    assert examine_index(good, 20).names == b"\0a\0b\0"
    body = good[:-20]
    damaged = [
        b"",
        body,
        body + bytes(19) + b"\1",
        body.rstrip(b"\0") + bytes(20),  # the last entry would end within the checksum
        good[:100],
        index_bytes(reversed(items), is_sorted=False),
        index_bytes(items, tail=b"TREE\0\0\0\xff"),
        index_bytes(items, tail=b"TREE\xff\xff\xff\xff"),
        index_bytes(items, tail=b"TREE\0\0\0\0" * 2),
        index_bytes(items, tail=b"none\0\0\0\0"),
        index_bytes(items, tail=b"\0"),
        index_bytes(items, tail=b"UNTR\0\0\0\2\xff\xff"),
        index_bytes(items, tail=b"IEOT\0\0\0\x0c\0\0\0\1\0\0\0\x20\0\0\0\2"),
        index_bytes(items, tail=b"EOIE\0\0\0\x18\0\0\0\x0c" + bytes(20)),
        index_bytes([(b"a\0b", FILE, "1" * 40)]),
        body[:7] + b"\5" + body[8:] + sha1(body[:7] + b"\5" + body[8:], usedforsecurity=False).digest(),
    ]
    for data in damaged:
        with pytest.raises(UnsupportedRepository, match=r"^index$"):
            examine_index(data, 20)
    examine_index(body + bytes(20), 20)  # git writes no checksum with index.skipHash
    with pytest.raises(UnsupportedRepository):
        examine_index(good, 32)


def test_blocks_for_threads_must_begin_where_their_entries_do(repository: str):
    lines = "".join(f"100644 {'1' * 40}\tfolder/name{number:06}\n" for number in range(40_000))
    git(repository, "update-index", "--index-info", text=lines.encode())
    for version in ("2", "4"):
        threads = ("-c", "index.threads=4", "update-index", "--index-version", version, "--force-write-index")
        git(repository, *threads)
        data = Path(repository, ".git/index").read_bytes()
        at = data.index(b"IEOT") + 12
        assert examine_index(data, 20).names.count(b"\0") == 40_001
        for offset in (at + 3, at + 7, at + 11):
            changed = bytearray(data)
            changed[offset] ^= 1
            changed[-20:] = sha1(changed[:-20], usedforsecurity=False).digest()
            with pytest.raises(UnsupportedRepository):
                examine_index(bytes(changed), 20)
        dropped = frozenset({b"folder/name000000", b"folder/name023456"})
        Path(repository, ".git/index").write_bytes(without_entries(data, dropped, 20))
        assert git(repository, "ls-files").count(b"\n") == 39_998
        Path(repository, ".git/index").write_bytes(data)


def test_a_sparse_index_stays_sparse_without_an_entry(repository: str):
    for name in ("a/x", "b/c/y", "z", ".env"):
        Path(repository, name).parent.mkdir(parents=True, exist_ok=True)
        Path(repository, name).write_text("x")
    git(repository, "add", "-A", "-f")
    git(repository, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "x")
    git(repository, "sparse-checkout", "set", "--cone", "--sparse-index", "a")
    index = Path(repository, ".git/index")
    examined = examine_index(index.read_bytes(), 20)
    assert b"\0b/\0" in examined.names
    assert examined.refused == ()
    index.write_bytes(without_entries(index.read_bytes(), frozenset({b".env"}), 20))
    assert git(repository, "ls-files", "--sparse") == b"a/x\nb/\nz\n"
    assert git(repository, "ls-files") == b"a/x\nb/c/y\nz\n"


def test_a_split_index_names_its_shared_part_and_is_not_shortened(repository: str):
    for each in range(10):
        Path(repository, f"a{each}").write_text("x")
    git(repository, "add", "-A")
    git(repository, "update-index", "--split-index")
    Path(repository, "b").write_text("x")
    Path(repository, "a5").write_text("changed")
    git(repository, "add", "-A")
    data = Path(repository, ".git/index").read_bytes()
    examined = examine_index(data, 20)
    shared = Path(repository, f".git/sharedindex.{examined.shared}")
    assert examined.names == b"\0b\0"
    assert examine_index(shared.read_bytes(), 20).names == b"\0%b\0" % b"\0".join(b"a%d" % each for each in range(10))
    with pytest.raises(UnsupportedRepository, match=r"^index$"):
        without_entries(data, frozenset({b"b"}), 20)


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (b"[core]\n\tbare = false\n", 20),
        (b"[extensions]\n\tobjectformat = sha256\n", 32),
        (b"[extensions]\n\tobjectFormat = sha1\n", 20),
        (b'[extensions]\n\tobjectformat = "sha256"\n', 32),
        (b"[extensions] objectformat = sha256\n", None),
        (b"[extensions]\n\tobjectformat = sha\\\n256\n", None),
        (b"[extensions]\n\tobjectformat = sha1\n\tobjectformat = sha256\n", None),
        (b"[extensions]\n\tobjectformat = sha256 # x\n", None),
    ],
)
def test_the_length_of_hashes_is_that_of_the_configuration(config: bytes, expected: int | None):
    if expected is None:
        with pytest.raises(UnsupportedRepository, match=r"^index$"):
            hash_length(config)
    else:
        assert hash_length(config) == expected


def test_a_number_is_encoded_as_git_does(repository: str):
    """Version 4 with a name that is shortened by more than 127 characters."""
    add_entries(repository, [(b"a" * 400, b"x"), (b"b", b"x"), (b"c" * 20_000, b"x"), (b"d", b"x")], version=4)
    data = Path(repository, ".git/index").read_bytes()
    assert examine_index(data, 20).names == b"\0" + git(repository, "ls-files", "-z")
    assert number(400) in data


def test_names_are_searched_as_whole_components():
    data = index_bytes([(name, FILE, "1" * 40) for name in (b"a/b/.env", b"c", b"d/e")])
    examined = examine_index(data, 20)
    assert all(map(examined.has_basename, (b".env", b"c", b"e")))
    assert not any(map(examined.has_basename, (b"env", b"b", b"a", b"d/", b".en", b"x", b"")))
    assert all(map(examined.has_below, (b"a", b"a/b", b"d")))
    assert not any(map(examined.has_below, (b"b", b"c", b"d/e", b"a/", b"x", b"")))


def test_an_index_without_entries_names_nothing():
    examined = examine_index(index_bytes([]), 20)
    assert examined == ExaminedIndex() == ExaminedIndex(b"\0", (), "")
    assert not examined.has_basename(b"") and not examined.has_below(b"")


def untracked(*names: bytes) -> bytes:
    """The extension for untracked files, with these names in the topmost folder."""
    body = number(5) + b"ident" + bytes(76 + 2 * 20) + b".gitignore\0" + number(1) + number(len(names)) + number(0)
    body += b"\0" + b"".join(b"%b\0" % name for name in names)
    return b"UNTR" + len(body).to_bytes(4, "big") + body


@pytest.mark.parametrize(
    "name", [b".", b"..", b".git", b"./", b"../", b".git/", b"../x", b"a/b", b"a/..", b"/etc", b"/..", b"//"]
)
def test_a_remembered_untracked_file_outside_of_its_folder_is_rejected(name: bytes):
    items = [(b"a", FILE, "1" * 40)]
    examine_index(index_bytes(items, tail=untracked(b"new")), 20)
    for names in ((name,), (b"new", name), (name, b"new/")):
        with pytest.raises(UnsupportedRepository, match=r"^index$"):
            examine_index(index_bytes(items, tail=untracked(*names)), 20)


def test_untracked_files_and_folders_that_git_remembers_are_accepted(repository: str):
    for name in ("tracked", "new", ".gitx", "...", "folder/x", "deep/er/x", "empty/"):
        path = Path(repository, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.mkdir() if name.endswith("/") else path.write_text("x")
    git(repository, "add", "tracked")
    git(repository, "update-index", "--untracked-cache")
    for words in (("-unormal",), ("-unormal",), ("-uall",), ("-uall",)):
        git(repository, "-c", "status.showUntrackedFiles=all", "status", *words)
        data = Path(repository, ".git/index").read_bytes()
        assert b"UNTR" in data
        assert examine_index(data, 20).names == b"\0tracked\0"
    names = (b"new", b"folder/", b"/", b"")
    assert examine_index(index_bytes([], tail=untracked(*names)), 20).names == b"\0"


def test_an_extension_is_skipped_as_by_git_if_its_name_begins_with_a_capital(repository: str):
    items = [(b"a", FILE, "1" * 40)]
    index = Path(repository, ".git/index")
    for kind, accepted in ((b"XYZ1", True), (b"Xyz1", True), (b"xYZ1", False), (b"1XYZ", False), (b"\xc4YZ1", False)):
        data = index_bytes(items, tail=kind + b"\0\0\0\1x")
        index.write_bytes(data)
        done = subprocess.run(["git", "-C", repository, "ls-files"], capture_output=True, check=False)
        assert (done.returncode == 0) == accepted, kind
        if accepted:
            assert examine_index(data, 20).names == b"\0a\0"
        else:
            with pytest.raises(UnsupportedRepository, match=r"^index$"):
                examine_index(data, 20)


def blocks(data: bytes, *numbers: int) -> bytes:
    """The extension that lets threads begin at these entries."""
    ends = parse_entries(data, 20).ends
    edges = (*numbers, len(ends))
    counts = [after - before for before, after in pairwise(edges)]
    body = b"\0\0\0\1" + b"".join(
        (ends[at] - 60).to_bytes(4, "big") + count.to_bytes(4, "big") for at, count in zip(numbers, counts, strict=True)
    )
    return b"IEOT" + len(body).to_bytes(4, "big") + body


def test_a_thread_may_not_begin_at_a_name_that_continues_another():
    """Git would read `b` instead of `folder/b` there, in version 4."""
    shared, own = [[(name, FILE, "1" * 40) for name in names] for names in ((b"folder/a", b"folder/b"), (b"a", b"b"))]
    for items, version, accepted in ((shared, 4, False), (shared, 2, True), (own, 4, True), (own, 2, True)):
        data = index_bytes(items, version, tail=blocks(index_bytes(items, version), 0, 1))
        if accepted:
            assert examine_index(data, 20).names == b"\0%b\0" % b"\0".join(name for name, _, _ in items)
        else:
            with pytest.raises(UnsupportedRepository, match=r"^index$"):
                examine_index(data, 20)
    for numbers in ((0,), (0, 1)):
        examine_index(index_bytes(own, tail=blocks(index_bytes(own), *numbers)), 20)
    with pytest.raises(UnsupportedRepository, match=r"^index$"):
        examine_index(index_bytes(own, tail=blocks(index_bytes(own), 1)), 20)


def link(shared: bytes) -> bytes:
    """The extension of a split index without replaced or deleted entries."""
    bitmap = bytes(20)
    return b"link" + (len(shared) + 2 * len(bitmap)).to_bytes(4, "big") + shared + 2 * bitmap


def test_names_that_replace_entries_of_the_shared_index_do_not_hide_the_mode_of_others():
    items = [(b"", FILE, "1" * 40), (b".gitmodules", LINK, "3" * 40), (b"x", FILE, "4" * 40)]
    examined = examine_index(index_bytes(items, tail=link(b"\7" * 20)), 20)
    assert examined == ExaminedIndex(b"\0.gitmodules\0x\0", (b".gitmodules",), "07" * 20)
    items[1:] = [(b".gitmodules", FILE, "3" * 40), (b"x", LINK, "4" * 40)]
    assert examine_index(index_bytes(items, tail=link(b"\7" * 20)), 20).refused == ()


def test_a_link_of_zeros_names_no_shared_index():
    items = [(b"a", FILE, "1" * 40), (b"b", FILE, "2" * 40)]
    assert examine_index(index_bytes(items, tail=link(bytes(20))), 20) == ExaminedIndex(b"\0a\0b\0", (), "")
    nameless = [(b"", FILE, "1" * 40), *items]
    assert examine_index(index_bytes(nameless, tail=link(bytes(20))), 20).refused == (b"",)


def test_an_entry_that_is_removed_is_not_committed(repository: str):
    """Git would take it from the trees that it remembers in the index."""
    for name in ("a/x", "a/y", "b"):
        Path(repository, name).parent.mkdir(exist_ok=True)
        Path(repository, name).write_text("x")
    git(repository, "add", "-A")
    git(repository, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "x")
    index = Path(repository, ".git/index")
    data = index.read_bytes()
    assert b"TREE" in data
    index.write_bytes(without_entries(data, frozenset({b"a/x"}), 20))
    tree = git(repository, "write-tree").decode().strip()
    assert git(repository, "ls-tree", "-r", "--name-only", tree) == b"a/y\nb\n"
    assert git(repository, "status", "--porcelain", "-uno") == b"D  a/x\n"


@pytest.mark.parametrize("length", [20, 32])
def test_an_index_without_extensions_stays_the_same_if_nothing_is_removed(length: int):
    items = [(name, FILE, "1" * 2 * length) for name in NAMES]
    assert without_entries(index_bytes(items), frozenset(), length) == index_bytes(items)
    assert without_entries(index_bytes(items, 4), frozenset(), length)[4:8] == b"\0\0\0\3"


def test_a_sparse_index_is_still_marked_as_one():
    items = [(b"a", FILE, "1" * 40), (b"b/", FOLDER, "2" * 40)]
    data = without_entries(index_bytes(items, tail=b"TREE\0\0\0\1xsdir\0\0\0\0"), frozenset({b"a"}), 20)
    assert data == index_bytes(items[1:], tail=b"sdir\0\0\0\0")
