"""Chooses the blocks of a Messages request that get cache markers. Pure.

The server looks for a cached prefix at each marked block and at up to 20 blocks before it, and accepts at most
four markers (the vendor's documentation, checked 2026-11-20).
"""

from collections.abc import Sequence

LOOK_BACK = 18
"""Blocks; less than the server's 20, which counts some blocks twice."""
STRIDE = 15
"""Distance of additional markers, in blocks."""


def breakpoints(last: int, earlier: Sequence[int], slots: int) -> tuple[int, ...]:
    """The indexes of the blocks to mark, in order, at most `slots` of them.

    `last` is the end of this request. `earlier` are the ends of previous requests, the latest first: that one
    is always marked, because the prefix was cached there; the others only where no later marker covers them.
    Remaining markers are spread over long batches.
    """
    chosen = {last}
    for place in earlier[:1]:
        chosen.add(place)
    for place in earlier[1:]:
        nearest = min((mark for mark in chosen if mark >= place), default=last)
        if len(chosen) < slots and nearest - place > LOOK_BACK:
            chosen.add(place)
    return _spread(chosen, slots)


def _spread(chosen: set[int], slots: int) -> tuple[int, ...]:
    marks = sorted(chosen)
    place = len(marks) - 1
    while place > 0 and len(marks) < slots:
        if marks[place] - marks[place - 1] > LOOK_BACK:
            marks.insert(place, max(marks[place - 1] + 1, marks[place] - STRIDE))
        else:
            place -= 1
    return tuple(marks)
