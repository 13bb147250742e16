"""Blocking work is done exactly once, and its result is known, also if the system starts no more threads."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from threading import Thread

import pytest
from digests import sha

from bradawl.core.errors import SessionError, ToolError
from bradawl.session.blobs import LocalBlobs
from bradawl.workspace.files import LocalFiles
from bradawl.workspace.other_thread import begin_in_other_thread

NO_THREAD = "can't start new thread"


class NoMoreThreads(ThreadPoolExecutor):
    """As CPython's executor where a limit on processes is reached: the work is queued before the thread fails to start.

    If `is_idle`, a thread that was started before takes it all the same.
    """

    def __init__(self, *, is_idle: bool) -> None:
        super().__init__()
        self._is_idle = is_idle
        self._queued: list[Callable[[], object]] = []
        self._own_threads: list[Thread] = []

    def submit(self, fn, /, *args, **kwargs):
        self._queued.append(partial(fn, *args, **kwargs))
        if self._is_idle:
            self._work()
        raise RuntimeError(NO_THREAD)

    def _work(self) -> None:
        """As the executor's threads, which keep an error for the future that nobody has."""
        for work in self._queued:
            self._own_threads.append(Thread(target=partial(_without_error, work)))
            self._own_threads[-1].start()
        self._queued.clear()

    def work_late(self) -> None:
        """Threads get free, and take what is queued. Returns when it is done."""
        self._work()
        for thread in self._own_threads:
            thread.join()


def _without_error(work: Callable[[], object]) -> None:
    with suppress(RuntimeError, OSError, SessionError):
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
