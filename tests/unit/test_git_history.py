"""What programs removed or damaged in git's data comes back; what git, the user and other programs did stays."""

import errno
import os
import resource
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from watched_history import Repository, full_disk, rewrite

from bradawl.core.errors import ToolError
from bradawl.sandbox.restore import restore_path
from bradawl.sandbox.restore.git_directories import GitDirectories
from bradawl.sandbox.restore.git_history import GitHistory, RepositoryLocation, WorkspaceWatch
from bradawl.sandbox.restore.gitlinks import IndexWatch
from bradawl.sandbox.restore.protected_files import ProtectedFiles
from bradawl.sandbox.restore.repositories import Repositories
from bradawl.sandbox.restore.restore_path import forget_old
from bradawl.sandbox.restore.snapshot import Entry
from patience import cpu_limit


@pytest.fixture
def work(tmp_path: Path) -> Iterator[Repository]:
    made = Repository(tmp_path)
    yield made
    made.close()


# ------------------------------------------------------------------ beside background jobs


def test_what_a_job_removed_before_the_next_command_comes_back(work: Repository):
    work.history.begin()  # a job
    for folder in {each.parent for each in work.loose()}:
        shutil.rmtree(folder)
    work.history.begin()
    assert work.history.end() != ()
    assert work.is_whole()
    assert work.history.end() == ()


def test_what_a_job_damaged_before_the_next_command_comes_back(work: Repository):
    work.history.begin()
    for path in work.loose():
        rewrite(path, b"")
    (work.data / "refs/heads/main").write_text("nonsense\n")
    work.history.begin()
    assert work.history.end() != ()
    assert work.is_whole()
    assert work.history.end() == ()


@pytest.mark.parametrize("is_by_user", [True, False])
def test_references_come_back_as_they_were_last_and_not_as_they_were_when_the_job_began(
    work: Repository, *, is_by_user: bool
):
    work.history.begin()  # a job that runs all day
    if is_by_user:
        commit = work.commit("two")
    else:
        work.history.begin()
        commit = work.commit("two")
        assert work.history.end() == ()
    work.history.begin()
    shutil.rmtree(work.data / "refs/heads")
    shutil.rmtree(work.data / "logs")
    assert work.history.end() != ()
    assert work.git("rev-parse", "main") == commit
    assert work.is_whole()
    assert work.git("reflog").count("\n") == 1
    shutil.rmtree(work.data / "objects")  # by the job
    assert work.history.end() != ()
    assert work.git("rev-parse", "main") == commit
    assert work.is_whole()


def test_a_branch_that_was_new_beside_a_job_comes_back(work: Repository):
    work.history.begin()
    work.git("branch", "new")
    work.history.begin()
    (work.data / "refs/heads/new").unlink()
    assert work.history.end() == (f"{work.data}/refs/heads/new",)
    work.history.begin()
    work.git("branch", "-D", "new")
    assert work.history.end() == ()
    work.history.begin()
    assert work.history.end() == ()
    assert work.history.end() == ()
    assert work.git("branch", "--format=%(refname)") == "refs/heads/main"


def test_packing_by_git_beside_a_job_is_no_damage(work: Repository):
    work.git("gc", "-q")
    work.commit("two")
    work.history.begin()
    work.history.begin()
    work.git("gc", "-q", "--prune=now")
    assert work.history.end() == ()
    work.commit("three")
    work.history.begin()
    work.git("gc", "-q", "--prune=now")
    work.history.begin()
    assert [work.history.end() for _ in range(3)] == [(), (), ()]
    assert len(work.packs()) == 1


def test_what_a_job_may_change_is_not_restored_beside_it(work: Repository):
    watch = WorkspaceWatch(ProtectedFiles(lambda: [], str(work.top / "kept")), work.history)
    watch.begin(allowed=(str(work.data),))
    work.git("branch", "new")
    watch.begin()
    (work.data / "refs/heads/new").unlink()  # by the job
    watch.begin()
    assert [watch.end(), watch.end((str(work.data),)), watch.end()] == [(), (), ()]
    assert work.git("branch", "--format=%(refname:short)") == "main"
    watch.close()


def test_a_start_that_fails_compares_nothing(work: Repository, monkeypatch: pytest.MonkeyPatch):
    """Neither what a running program may change, nor what the user changes before the next start."""

    def fail() -> None:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    def no_start() -> None:
        with monkeypatch.context() as patch, pytest.raises(OSError, match=os.strerror(errno.EMFILE)):
            patch.setattr(work.history._records, "begin", lambda _: fail())
            watch.begin()

    config = work.data / "config"
    files = ProtectedFiles(lambda: [(str(work.data), "config")], str(work.top / "kept"))
    watch = WorkspaceWatch(files, work.history)
    watch.begin(allowed=(str(config),))
    config.write_text("by the job\n")
    no_start()
    assert config.read_text() == "by the job\n" and watch.is_busy
    assert watch.end((str(config),)) == () and not watch.is_busy
    no_start()
    config.write_text("by the user\n")
    watch.begin()
    assert watch.end() == () and config.read_text() == "by the user\n"
    watch.close()


# ------------------------------------------------------------------ references


@pytest.mark.parametrize("packs", [True, False])
def test_a_branch_that_git_renamed_below_its_own_name_stays(work: Repository, *, packs: bool):
    work.git("branch", "side")
    if packs:
        work.git("pack-refs", "--all")
    work.history.begin()
    work.git("branch", "-m", "side", "side/one")
    if packs:
        work.git("pack-refs", "--all")
    assert work.history.end() == ()
    assert work.git("branch", "--format=%(refname:short)") == "main\nside/one"


def test_a_branch_replaced_by_an_empty_folder_comes_back(work: Repository):
    work.history.begin()
    (work.data / "refs/heads/main").unlink()
    (work.data / "refs/heads/main").mkdir()
    assert work.history.end() == (f"{work.data}/refs/heads/main",)
    assert work.is_whole()


def test_the_log_of_a_reference_that_exists_comes_back(work: Repository):
    for text in ("two", "three"):
        (work.root / "a").write_text(text)
        work.git("stash")
    before = work.git("stash", "list")
    work.history.begin()
    shutil.rmtree(work.data / "logs")
    assert work.history.end() != ()
    assert work.git("stash", "list") == before
    work.history.begin()
    work.git("stash", "clear")
    assert work.history.end() == ()
    assert work.git("stash", "list") == ""


def test_large_lists_of_references_and_large_indexes_come_back(work: Repository):
    head = work.git("rev-parse", "HEAD")
    lines = "".join(f"{head} refs/tags/v{each:030}\n" for each in range(15_000))
    (work.data / "packed-refs").write_text("# pack-refs with: peeled fully-peeled sorted \n" + lines)
    subprocess.run(
        ("git", "update-index", "--index-info"),
        input="".join(f"100644 {work.git('rev-parse', ':a')} 0\tfolder/f{each:060}\n" for each in range(10_000)),
        text=True,
        cwd=work.root,
        check=True,
    )
    assert min((work.data / name).stat().st_size for name in ("index", "packed-refs")) > 1_100_000
    for damage in (b"nonsense" * 200_000, b""):
        work.history.begin()
        (work.data / "packed-refs").write_bytes(damage)
        assert work.history.end() == (f"{work.data}/packed-refs",)
    work.history.begin()
    for name in ("HEAD", "packed-refs", "index"):
        (work.data / name).unlink()
    assert not any("could not" in each for each in work.history.end())
    assert work.git("tag").count("\n") == 14_999
    assert work.git("ls-files").count("\n") == 10_000


@pytest.mark.parametrize("content", [None, b""])
def test_the_limit_of_a_shallow_repository_comes_back(work: Repository, content: bytes | None):
    work.commit("two")
    work.git("clone", "-q", "--depth=1", f"file://{work.root}", str(work.top / "part"))
    work.root, work.data = work.top / "part", work.top / "part/.git"
    work.history.begin()
    shallow = work.data / "shallow"
    shallow.unlink() if content is None else shallow.write_bytes(content)
    assert work.history.end() == (str(shallow),)
    work.git("log")
    work.history.begin()
    work.git("fetch", "-q", "--unshallow")
    assert work.history.end() == ()
    assert not shallow.exists()
    assert work.git("log", "--format=%s") == "two\none"


def test_the_data_of_a_working_tree_that_exists_come_back(work: Repository):
    trees = [work.top / name for name in ("kept", "gone")]
    for tree in trees:
        work.git("worktree", "add", "-q", "--detach", str(tree))
        (tree / "new").write_text("new")
        work.git("add", "new", folder=tree)
    shutil.rmtree(trees[1])
    work.history.begin()
    shutil.rmtree(work.data / "worktrees")  # `git worktree prune` in a sandbox that does not show the folders
    assert work.history.end() != ()
    assert work.git("status", "--short", folder=trees[0]) == "A  new"
    assert [each.name for each in (work.data / "worktrees").iterdir()] == ["kept"]
    work.history.begin()
    work.git("worktree", "remove", "--force", str(trees[0]))
    assert work.history.end() == ()
    assert not (work.data / "worktrees/kept").exists()


def test_references_that_could_not_be_put_back_come_back_later(work: Repository):
    work.history.begin()
    shutil.rmtree(work.data / "refs/heads")
    with full_disk(0):
        (note,) = (each for each in work.history.end() if each.startswith(f"{work.data}/refs/heads/main"))
    assert "could not be put back" in note
    assert not list(work.data.rglob(".bradawl-*"))
    for expected in (f"{work.data}/refs/heads/main",), ():
        work.history.begin()
        assert work.history.end() == expected
    assert work.is_whole()


def test_links_of_the_user_in_the_place_of_gits_folders_stay(work: Repository):
    (work.data / "objects").rename(work.top / "objects")
    (work.data / "objects").symlink_to(work.top / "objects")
    work.history.begin()
    (work.data / "refs/heads/main").unlink()
    assert work.history.end() == (f"{work.data}/refs/heads/main",)
    assert (work.data / "objects").is_symlink()
    assert work.is_whole()


def test_many_lost_references_cost_no_time(work: Repository):
    head = work.git("rev-parse", "HEAD")
    for name in ("one", "two", "three"):
        (work.data / f"refs/heads/{name}").mkdir()
        (work.data / f"logs/refs/heads/{name}").mkdir()
    lines = [f"{head} refs/heads/two/b{each}\n" for each in range(4_000)]
    (work.data / "packed-refs").write_text("# pack-refs with: peeled fully-peeled sorted \n" + "".join(sorted(lines)))
    for each in range(4_000):
        for name in ("one", "two"):
            (work.data / f"refs/heads/{name}/b{each}").write_text(f"{'1' * 40}\n")
    work.history.begin()
    for each in range(4_000):
        (work.data / f"refs/heads/one/b{each}").unlink()
        (work.data / f"refs/heads/one/b{each}").symlink_to("x")
        (work.data / f"refs/heads/two/b{each}").unlink()
    with cpu_limit(5):
        assert work.history.end() != ()


# ------------------------------------------------------------------ tables of references


def tables(work: Repository, *names: str) -> None:
    folder = work.data / "reftable"
    folder.mkdir(exist_ok=True)
    for name in names:
        if not (folder / name).exists():
            (folder / name).write_bytes(b"REFT" + name.encode())
    (folder / "tables.list").write_text("".join(f"{name}\n" for name in names))


ONE, TWO, BOTH = (f"0x{first:012x}-0x{last:012x}-0000000a.ref" for first, last in ((1, 1), (2, 2), (1, 2)))


@pytest.mark.parametrize("way", ["remove", "write", "empty list", "shorter list", "no list", "no folder"])
def test_tables_of_references_come_back(work: Repository, way: str):
    tables(work, ONE, TWO)
    work.history.begin()
    folder = work.data / "reftable"
    match way:
        case "remove":
            (folder / ONE).unlink()
        case "write":
            (folder / ONE).write_bytes(b"REFT" + b"nonsense")
        case "empty list":
            (folder / "tables.list").write_bytes(b"")
        case "shorter list":
            tables(work, TWO)
        case "no list":
            (folder / "tables.list").unlink()
        case _:
            shutil.rmtree(folder)
    assert work.history.end() != ()
    assert (folder / "tables.list").read_text() == f"{ONE}\n{TWO}\n"
    assert (folder / ONE).read_bytes() == b"REFT" + ONE.encode()


def test_tables_that_git_joined_stay(work: Repository):
    tables(work, ONE, TWO)
    work.history.begin()
    tables(work, BOTH)
    for name in (ONE, TWO):
        (work.data / "reftable" / name).unlink()
    assert work.history.end() == ()


# ------------------------------------------------------------------ failures


def test_a_comparison_that_failed_is_repeated_before_the_next_command(work: Repository):
    work.history.begin()
    for path in work.loose():
        path.unlink()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, hard))
    try:
        (note,) = work.history.end()
        assert "could not be checked" in note
        with pytest.raises(ToolError, match="could not be checked"):
            work.history.begin()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert not work.loose()
    work.history.begin()
    assert work.history.end() != ()
    assert work.is_whole()


def test_the_folder_with_what_was_in_the_way_is_said(work: Repository):
    work.history.begin()
    (work.data / "refs/heads/main").write_text("of another program")
    assert work.history.end() == (f"{work.data}/refs/heads/main",)
    (folder,) = work.history.take_set_aside()
    assert [each.read_text() for each in Path(folder).iterdir()] == ["of another program"]
    assert work.history.take_set_aside() == ()


def test_a_repository_that_is_new_beside_a_job_is_watched(work: Repository):
    (work.data).rename(work.top / "data")
    locations: list[RepositoryLocation] = []
    history = GitHistory(lambda: locations, str(work.kept))
    work.histories.append(history)
    history.begin()
    (work.top / "data").rename(work.data)
    locations.append(RepositoryLocation(str(work.data), str(work.root)))
    history.begin()
    shutil.rmtree(work.data)
    assert history.end() != ()
    assert work.is_whole()


def test_submodules_with_folders_in_their_names_are_watched(work: Repository):
    for name in ("vendor/one", "vendor/two", *map(str, range(9))):
        words = ("-c", "protocol.file.allow=always", "submodule", "add", "-q", "--name", name, str(work.root), name)
        work.git(*words)
    found = Repositories((str(work.root),), str(work.top), GitDirectories((str(work.root),)))
    locations = [each.data for each in found.repository_locations()]
    assert sorted(locations) == sorted(
        str(work.data / f"{place}")
        for place in (".", *(f"modules/{each}" for each in ("vendor/one", "vendor/two", *range(9))))
    )


def test_many_moved_folders_with_links_cost_no_time(tmp_path: Path):
    for each in range(3_000):
        (tmp_path / f"ws/old/{each}/.git").mkdir(parents=True)
        (tmp_path / f"ws/old/{each}/.git/HEAD").symlink_to("x")
    directories = GitDirectories((str(tmp_path / "ws"),))
    directories.search()
    directories.adopt()
    (tmp_path / "ws/old").rename(tmp_path / "ws/new")
    directories.search(opens=True)
    with cpu_limit(1):
        assert directories.new_links() == ()


@pytest.mark.parametrize("is_linked_tree", [True, False])
def test_data_apart_from_the_working_tree_are_watched(work: Repository, *, is_linked_tree: bool):
    top = str(work.root)
    if is_linked_tree:  # a bare repository in a folder beside the working trees
        work.data.rename(work.root / ".bare")
        (work.root / ".git").write_text("gitdir: ./.bare\n")
    else:
        work.git("init", "-q", "--separate-git-dir", str(work.root / ".bare"))
    found = Repositories((top,), str(work.top), GitDirectories((top,)))
    assert list(found.repository_locations()) == [RepositoryLocation(f"{top}/.bare", top)]


def test_a_large_folder_that_was_moved_away_drives_out_no_small_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(restore_path, "_KEPT_BYTES", 1_000_000)
    for age, (name, size) in enumerate({"last": 1, "large": 1_100_000, "small": 1, "old": 1}.items()):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_bytes(bytes(size))
        days = 40 if name == "old" else age
        os.utime(tmp_path / name, (time.time() - days * 86_400,) * 2)
    forget_old(str(tmp_path))
    assert sorted(each.name for each in tmp_path.iterdir()) == ["last", "small"]


def test_a_submodule_in_an_index_that_was_removed_is_new_again(work: Repository):
    index = str(work.data / "index")
    head = work.git("rev-parse", "HEAD")
    work.git("update-index", "--add", "--cacheinfo", f"160000,{head},sub")
    watch = IndexWatch()
    watch.watch(index, str(work.root))
    entry = Entry("file", b"", (), content=(work.data / "index").read_bytes())
    assert watch.added(index, entry) == ()
    Path(index).unlink()
    watch.watch(index, str(work.root))
    assert watch.added(index, entry) == (f"{work.root}/sub",)
