"""Where a Messages request asks for its prefix to be cached. Pure.

The server looks for what it cached before at each marked block and up to 20 blocks ahead of it, and
takes four marks at most (the vendor's documentation, checked 2026-11-20).
"""

from collections.abc import Sequence

LOOK_BACK = 18
"""Blocks; a little less than the server's 20, which counts some of ours twice."""
STRIDE = 15
"""Blocks between two marks where marks are left over."""


def breakpoints(last: int, earlier: Sequence[int], slots: int) -> tuple[int, ...]:
    """Which blocks of the messages to mark, in order, at most `slots` of them.

    `last` is the end of this request. `earlier` are ends of requests before it, the latest first: that one
    is marked always, because there this request's prefix was written; the others only where no mark behind
    them can see them. What is left is spread over long batches.
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
