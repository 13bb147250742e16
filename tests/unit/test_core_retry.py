"""`next_delay`: whether a failed request is retried, and after how long."""

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bradawl.core.errors import Failure
from bradawl.core.retry import BASE_S, CAP_S, RetryBudget, next_delay

DRAWS = st.floats(0, 1, exclude_max=True)
RETRY_AFTERS = st.none() | st.floats(allow_nan=True, allow_infinity=True)
ATTEMPTS = st.integers(1, 5000)
PATIENT = RetryBudget(attempts=10_000, deadline_s=1e9, longest_wait_s=600)


def failure(retry_after_s: float | None = None, *, retryable: bool = True) -> Failure:
    return Failure("overloaded", "busy", retryable=retryable, retry_after_s=retry_after_s)


def is_valid(retry_after_s: float | None) -> bool:
    return retry_after_s is not None and math.isfinite(retry_after_s) and retry_after_s >= 0


@given(ATTEMPTS, RETRY_AFTERS, DRAWS, st.floats(0, 1e6), st.integers(0, 50), st.floats(0, 1e6), st.floats(0, 1e6))
def test_a_wait_stays_inside_every_bound(attempt, retry_after_s, draw, elapsed, attempts, deadline, longest):
    budget = RetryBudget(attempts, deadline, longest)
    delay = next_delay(failure(retry_after_s), attempt, budget, elapsed_s=elapsed, draw=draw)
    if delay is None:
        return
    assert attempt < attempts
    assert 0 <= delay <= deadline - elapsed or elapsed + delay <= deadline
    if is_valid(retry_after_s):
        assert retry_after_s <= longest
        assert retry_after_s <= delay <= retry_after_s * 1.25
    else:
        assert delay <= min(CAP_S, BASE_S * 2.0 ** min(attempt - 1, 100))


@given(st.integers(1, 900), DRAWS)
def test_without_retry_after_the_backoff_is_drawn_from_a_range_that_doubles_up_to_its_cap(attempt: int, draw: float):
    delay = next_delay(failure(), attempt, PATIENT, elapsed_s=0, draw=draw)
    assert delay == draw * min(CAP_S, BASE_S * 2.0 ** (attempt - 1))


@pytest.mark.parametrize("attempt", [1024, 1025, 1026, 9_999])
def test_a_very_patient_budget_never_overflows(attempt: int):
    assert next_delay(failure(), attempt, PATIENT, elapsed_s=0, draw=0.5) == CAP_S / 2


@given(ATTEMPTS, RETRY_AFTERS, DRAWS)
def test_a_failure_that_is_not_retryable_is_not_retried_whatever_retry_after_says(attempt, retry_after_s, draw):
    assert next_delay(failure(retry_after_s, retryable=False), attempt, PATIENT, elapsed_s=0, draw=draw) is None


def test_the_first_request_counts_as_an_attempt():
    delays = [
        next_delay(failure(), attempt, RetryBudget(attempts=3), elapsed_s=0, draw=0.5) for attempt in (1, 2, 3, 4)
    ]
    assert [delay is None for delay in delays] == [False, False, True, True]


def test_retry_after_wins_over_the_backoff():
    assert next_delay(failure(20.0), 1, RetryBudget(), elapsed_s=0, draw=0.0) == 20.0
    assert next_delay(failure(0.0), 6 - 1, RetryBudget(), elapsed_s=0, draw=0.9) == 0.0


def test_a_retry_after_beyond_the_longest_wait_ends_the_step_at_once():
    assert next_delay(failure(601.0), 1, RetryBudget(deadline_s=10_000), elapsed_s=0, draw=0.0) is None
    assert next_delay(failure(600.0), 1, RetryBudget(deadline_s=10_000), elapsed_s=0, draw=0.0) == 600.0


@pytest.mark.parametrize("retry_after_s", [math.nan, math.inf, -math.inf, -1.0])
def test_an_invalid_retry_after_is_ignored(retry_after_s: float):
    assert next_delay(failure(retry_after_s), 2, RetryBudget(), elapsed_s=0, draw=0.5) == 0.5


def test_no_request_starts_after_the_deadline():
    assert next_delay(failure(10.0), 1, RetryBudget(deadline_s=100), elapsed_s=90, draw=0.0) == 10.0
    assert next_delay(failure(10.0), 1, RetryBudget(deadline_s=100), elapsed_s=90.1, draw=0.0) is None
    assert next_delay(failure(), 1, RetryBudget(deadline_s=100), elapsed_s=101, draw=0.0) is None


@given(st.lists(st.tuples(RETRY_AFTERS, DRAWS, st.floats(0, 100)), min_size=50, max_size=50), st.integers(1, 8))
def test_all_requests_of_a_step_start_before_its_deadline_waits_and_replies_counted(failures, attempts):
    budget = RetryBudget(attempts=attempts, deadline_s=120, longest_wait_s=60)
    elapsed, requests = 0.0, 0
    for retry_after_s, draw, took_s in failures:
        requests += 1
        assert elapsed <= budget.deadline_s
        elapsed += took_s
        delay = next_delay(failure(retry_after_s), requests, budget, elapsed_s=elapsed, draw=draw)
        if delay is None:
            break
        elapsed += delay
    assert requests <= attempts


def test_full_jitter_spreads_over_the_whole_range():
    dice = random.Random(82)  # noqa: S311 - not used for secrets
    for attempt, top in ((1, 0.5), (4, 4.0), (9, CAP_S)):
        delays = [next_delay(failure(), attempt, PATIENT, elapsed_s=0, draw=dice.random()) or 0.0 for _ in range(4000)]
        assert 0 <= min(delays) < top * 0.01
        assert top * 0.99 < max(delays) < top
        tenths = [sum(1 for delay in delays if int(delay / top * 10) == tenth) for tenth in range(10)]
        assert all(300 < count < 500 for count in tenths)
