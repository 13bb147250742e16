"""Time limits that are scaled on a slow or busy machine.

On an idle machine a limit applies unchanged. Only if it was exceeded, the machine is measured: a
fixed piece of work shows how much slower it currently is than the machine for which the limits were chosen.
"""

import subprocess
import time

MOST = 12.0
"""The largest factor by which a limit grows."""
_WORK_S = 0.015
_START_S = 0.005
_SAMPLES = 12


def is_within(seconds: float, limit_s: float) -> bool:
    """Whether a duration is within its limit, scaled by the current slowness of this machine."""
    return seconds < limit_s or seconds < limit_s * slowness()


def slowness() -> float:
    """How many times longer work or the start of a program currently takes; at least 1, at most `MOST`."""
    factor = 1.0
    for _ in range(_SAMPLES):
        began = time.perf_counter()
        sum(number * number for number in range(150_000))
        worked = time.perf_counter()
        subprocess.run(["/bin/true"], check=True)
        started = time.perf_counter()
        factor = max(factor, (worked - began) / _WORK_S, (started - worked) / _START_S)
    return min(factor, MOST)
