"""Limits of time in tests, which must hold on any machine, also on a slow and a busy one.

How fast something is is measured by the benchmarks. A test only shows that something is not waited for (`no_wait`),
or that the work does not grow without limit (`cpu_limit`, `call_limit`).
"""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_MOST = 12.0
"""The largest factor by which a limit of CPU time grows."""
_WORK_S = 0.015
_SAMPLES = 12


@contextmanager
def no_wait(for_s: float = 60.0) -> Iterator[None]:
    """Fails if the block takes half as long as the wait of `for_s` seconds that it has to avoid.

    A test sets up a wait so long that no slow machine can be taken for it: at least 20 s.
    """
    assert for_s >= 20, "a slow machine would be taken for a wait"
    began = time.monotonic()
    yield
    took = time.monotonic() - began
    assert took < for_s / 2, f"it took {took:.1f} s, as if it waited for something that takes {for_s:g} s"


@contextmanager
def cpu_limit(limit_s: float) -> Iterator[None]:
    """Fails if the block uses more CPU time of this process than `limit_s` seconds, scaled on a slow machine.

    The limit is at least five times what the block uses on an idle machine, and much less than what it would use
    without the property that the test shows.
    """
    began = time.process_time()
    yield
    took = time.process_time() - began
    assert took < limit_s or took < limit_s * _slowness(), f"it used {took:.1f} s of CPU time, more than {limit_s:g} s"


@contextmanager
def call_limit(most: int) -> Iterator[None]:
    """Fails if the block calls more than `most` functions, those written in C included, in this thread."""
    calls = 0

    def count(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event in {"call", "c_call"}

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        yield
    finally:
        sys.setprofile(before)
    assert calls <= most, f"it called {calls} functions, more than {most}"


def _slowness() -> float:
    """How many times longer a fixed piece of work currently takes; at least 1, at most `_MOST`."""
    factor = 1.0
    for _ in range(_SAMPLES):
        began = time.process_time()
        sum(number * number for number in range(150_000))
        factor = max(factor, (time.process_time() - began) / _WORK_S)
    return min(factor, _MOST)
