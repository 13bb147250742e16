"""Blocking work is done exactly once, and its result is known, also if the system starts no more threads."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from digests import sha

from bradawl.core.errors import SessionError, ToolError
from bradawl.session.blobs import LocalBlobs
from bradawl.workspace.files import LocalFiles
from bradawl.workspace.other_thread import begin_in_other_thread

NO_THREAD = "can't start new thread"


class NoMoreThreads(ThreadPoolExecutor):
    """As CPython's executor where a limit on processes is reached: the work is queued before the thread fails to start.

    If `is_idle`, a thread that was started before takes it all the same, and has done it when the error is raised.
    """

    def __init__(self, *, is_idle: bool) -> None:
        super().__init__()
        self._is_idle = is_idle
        self.queued: list[Callable[[], object]] = []

    def submit(self, fn, /, *args, **kwargs):
        self.queued.append(lambda: fn(*args, **kwargs))
        if self._is_idle:
            self.queued[-1]()
        raise RuntimeError(NO_THREAD)

    def work_late(self) -> None:
        """A thread gets free, and takes what is queued."""
        for work in self.queued:
            work()


@pytest.fixture(params=[True, False], ids=["an idle thread takes it", "no thread takes it"])
async def executor(request):
    made = NoMoreThreads(is_idle=request.param)
    asyncio.get_running_loop().set_default_executor(made)
    return made


async def test_the_work_is_done_once_and_its_result_is_returned(executor):
    done: list[int] = []
    assert await begin_in_other_thread(lambda: done.append(1) or "result") == "result"
    executor.work_late()
    assert done == [1]


async def test_an_error_of_the_work_is_raised_and_not_taken_for_a_missing_thread(executor):
    def work() -> None:
        raise RuntimeError("of the work")

    with pytest.raises(RuntimeError, match="of the work"):
        await begin_in_other_thread(work)


async def test_a_write_is_not_reported_as_failed_and_done_later(executor, tmp_path):
    place = tmp_path / "a.txt"
    place.write_text("old")
    files = LocalFiles(str(tmp_path))
    assert await files.replace(str(place), b"new", sha(b"old")) == sha(b"new")
    assert (await files.read(str(place), 100)).data == b"new"
    place.write_text("the user's")
    executor.work_late()
    assert place.read_text() == "the user's"


async def test_an_error_of_a_write_keeps_its_type(executor, tmp_path):
    with pytest.raises(ToolError):
        await LocalFiles(str(tmp_path)).replace(str(tmp_path / "a.txt"), b"new", sha(b"other"))


async def test_a_blob_is_kept(executor, tmp_path):
    blobs = LocalBlobs(tmp_path / "blobs")
    ref = await blobs.put(b"a long result")
    executor.work_late()
    assert blobs.is_saved and blobs.get(ref) == b"a long result"


async def test_a_file_that_can_not_be_adopted_is_an_error_of_the_session(executor, tmp_path):
    (tmp_path / "output").write_bytes(b"the output")
    with pytest.raises(SessionError, match=NO_THREAD):
        await LocalBlobs(tmp_path / "blobs").adopt(str(tmp_path / "output"))
