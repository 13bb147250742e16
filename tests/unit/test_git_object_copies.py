"""Objects that programs removed or damaged come back from sound copies; what git packed or pruned stays so."""

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from watched_history import Repository, full_disk, rewrite


@pytest.fixture
def work(tmp_path: Path) -> Iterator[Repository]:
    made = Repository(tmp_path)
    yield made
    made.close()


# ------------------------------------------------------------------ copies


def test_a_copy_that_the_disk_has_no_room_for_is_never_taken_for_whole(work: Repository):
    (work.root / "large").write_bytes(os.urandom(100_000))
    work.git("add", "large")
    with full_disk(50_000):
        work.history.begin()
    for path in work.loose():
        path.unlink()
    restored = work.history.end()
    assert not any("could not" in each for each in restored), restored
    assert work.is_whole()
    assert work.git("cat-file", "-s", ":large") == "100000"


def copies(work: Repository) -> list[Path]:
    return [each for each in work.kept.rglob("objects/??/*") if each.is_file()]


def test_a_copy_that_was_cut_is_made_again_and_never_put_back(work: Repository):
    work.history.begin()
    assert work.history.end() == ()
    for path in copies(work):
        rewrite(path, path.read_bytes()[:5])  # an earlier version was killed in the middle
    work.history = work.new_history()
    work.history.begin()
    for path in work.loose():
        path.chmod(0o644)  # changes the time of change
    assert work.history.end() == ()
    assert work.is_whole()
    work.history.begin()
    for path in work.loose():
        path.unlink()
    assert work.history.end() != ()
    assert work.is_whole()


def test_a_copy_with_other_content_never_replaces_a_sound_object(work: Repository):
    work.history.begin()
    assert work.history.end() == ()
    for path in copies(work):
        rewrite(path, bytes(path.stat().st_size))
    work.history.begin()
    for path in work.loose():
        os.utime(path)  # as git does if it would write the object again
    assert work.history.end() == ()
    assert work.is_whole()
    work.history.begin()
    work.loose()[0].unlink()
    (note,) = work.history.end()
    assert "could not be put back: there is no copy" in note


def test_an_object_that_was_damaged_before_the_command_is_not_said_to_be_lost(work: Repository):
    rewrite(work.loose()[0], b"nonsense")
    work.history.begin()
    work.loose()[0].chmod(0o600)
    assert work.history.end() == ()


def test_copies_stay_for_a_month_after_the_object_is_gone(work: Repository):
    work.history.begin()
    assert work.history.end() == ()
    number = len(copies(work))
    assert number
    old = time.time() - 40 * 86_400
    for path in copies(work):
        os.utime(path, (old, old))
    shutil.rmtree(work.data / "objects")
    work.history = work.new_history()
    work.history.begin()
    assert len(copies(work)) == number
    assert not any(path.stat().st_mode & 0o040 for path in copies(work))


def test_unfinished_copies_of_a_killed_agent_are_removed(work: Repository):
    work.history.begin()
    assert work.history.end() == ()
    folder = copies(work)[0].parent
    for name, age in (("tmp_obj_old", 2 * 86_400), ("tmp_obj_new", 0)):
        (folder / name).touch()
        os.utime(folder / name, (time.time() - age, time.time() - age))
    work.new_history().begin()
    assert [each.name for each in folder.glob("tmp_*")] == ["tmp_obj_new"]


# ------------------------------------------------------------------ objects


def many_objects(work: Repository, number: int) -> None:
    names = "\n".join(str(work.root / f"f{each}") for each in range(number))
    for each in range(number):
        (work.root / f"f{each}").write_text(f"{each} foo")
    subprocess.run(
        ("git", "hash-object", "-w", "--stdin-paths"),
        input=names,
        text=True,
        cwd=work.root,
        check=True,
        capture_output=True,
    )
    assert len(work.loose()) > number


@pytest.mark.parametrize("is_in_place", [True, False])
@pytest.mark.parametrize("number", [300, 2_500])
def test_damage_in_many_loose_objects_is_undone(work: Repository, number: int, *, is_in_place: bool):
    many_objects(work, number)
    work.history.begin()
    for path in work.loose():
        content = path.read_bytes().replace(b"\x01", b"\x02")
        if is_in_place:
            rewrite_now(path, content)
        else:  # as `sed -i` does
            path.with_name("sed").write_bytes(content)
            path.with_name("sed").rename(path)
    assert work.history.end() != ()
    assert work.is_whole()


def rewrite_now(path: Path, content: bytes) -> None:
    path.chmod(0o644)
    path.write_bytes(content)


def test_a_folder_full_of_other_names_hides_no_loss(work: Repository):
    work.git("gc", "-q")
    junk = [work.data / f"objects/pack/junk{each}" for each in range(20_050)]
    work.history.begin()
    for each in junk:
        each.touch()
    assert work.history.end() == ()
    work.history.begin()
    for path in (*work.packs(), *work.packs("idx")):
        path.unlink()
    assert work.history.end() != ()
    assert work.is_whole()


def test_an_index_of_a_pack_without_the_objects_replaces_nothing(work: Repository):
    work.git("gc", "-q")
    work.history.begin()
    (pack,), (index,) = work.packs(), work.packs("idx")
    index.rename(index.with_name(f"pack-{'0' * 40}.idx"))
    pack.with_name(f"pack-{'0' * 40}.pack").write_bytes(pack.read_bytes()[:100])
    pack.unlink()
    assert work.history.end() != ()
    assert pack.exists() and index.exists()


def test_old_objects_with_a_name_are_not_taken_for_pruned(work: Repository):
    """A new pack and the removal of old loose objects look as if git had pruned them."""
    old = time.time() - 30 * 86_400
    for path in work.loose():
        os.utime(path, (old, old))
    work.history.begin()
    (work.root / "b").write_text("b")
    blob = work.git("hash-object", "-w", "b")
    subprocess.run(
        ("git", "pack-objects", "-q", ".git/objects/pack/pack"),
        input=blob,
        text=True,
        cwd=work.root,
        check=True,
        capture_output=True,
    )
    for folder in {each.parent for each in work.loose()}:
        shutil.rmtree(folder)
    assert work.history.end() != ()
    assert work.is_whole()


def test_old_objects_that_git_has_pruned_stay_pruned(work: Repository):
    (work.root / "b").write_text("of no use")
    blob = work.git("hash-object", "-w", "b")
    for path in work.loose():
        os.utime(path, (0, 0))
    work.history.begin()
    work.git("gc", "-q")
    assert work.history.end() == ()
    assert not (work.data / f"objects/{blob[:2]}/{blob[2:]}").exists()


def test_large_packs_are_compared_by_a_part_of_their_names(work: Repository):
    many_objects(work, 2_500)
    work.git("add", ".")
    work.git("commit", "-qm", "many")
    work.git("gc", "-q")
    work.commit("more")
    work.history.begin()
    before = work.packs()
    work.git("repack", "-adq")
    assert work.packs() != before
    assert work.history.end() == ()
    assert len(work.packs()) == 1


def test_the_mark_of_a_partial_clone_comes_back(work: Repository):
    work.git("config", "uploadpack.allowFilter", "true")
    work.git("clone", "-q", "--bare", "--filter=blob:none", f"file://{work.root}", str(work.top / "part"))
    work.data = work.root = work.top / "part"
    work.history.begin()
    shutil.rmtree(work.data / "objects/pack")
    assert work.history.end() != ()
    assert work.packs("promisor")
    work.git("rev-list", "--objects", "--exclude-promisor-objects", "--all")


def test_objects_that_could_not_be_put_back_come_back_later(work: Repository, tmp_path: Path):
    other = Path("/dev/shm")
    if not other.is_dir() or other.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("needs another file system")
    work.kept = other / f"bradawl-test-{os.getpid()}"
    work.history = work.new_history()
    try:
        work.history.begin()
        lost = work.loose()
        for path in lost:
            path.unlink()
        with full_disk(0):
            restored = work.history.end()
        assert "could not be put back" in restored[0]
        for expected in (True, False):
            work.history.begin()
            assert bool(work.history.end()) == expected
        assert work.is_whole()
    finally:
        shutil.rmtree(work.kept)
