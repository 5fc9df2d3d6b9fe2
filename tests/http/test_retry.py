"""Whether and when to try again."""

from email.utils import formatdate

from hypothesis import given
from hypothesis import strategies as st

from wireglot.gateway.targets.health import RetryBudget
from wireglot.http.retry import FIXED_100MS, RetryPolicy, advised_wait, wait_before

NOW = 1_790_000_000.0
COLIBRI = RetryPolicy(retries=3, schedule=(0.1, 0.2, 0.4), connection_errors=False)


def test_milliseconds_win_over_seconds():
    """R-DD-03"""
    assert advised_wait({"retry-after-ms": "250", "retry-after": "7"}, NOW) == 0.25


def test_seconds_and_dates_are_understood():
    """R-DD-03"""
    assert advised_wait({"retry-after": "2"}, NOW) == 2
    assert advised_wait({"retry-after": formatdate(NOW + 90, usegmt=True)}, NOW) == 90
    assert advised_wait({"retry-after": "Sun, 06 Nov 1994 08:49:37 GMT"}, NOW) == 0


def test_what_is_no_time_is_no_advice():
    """FAULTS 59"""
    for text in ("-1", "NaN", "inf", "soon", "", "1e99", "Mon, 99 Foo 2026"):
        assert advised_wait({"retry-after": text}, NOW) is None


def test_advice_is_waited_for_within_reason():
    """R-DD-03"""
    policy = RetryPolicy()
    assert wait_before(policy, 1, 2.0, 0.0) == 2.0
    assert wait_before(policy, 1, 3600.0, 0.0) is None


def test_there_are_two_retries_by_default():
    assert [wait_before(RetryPolicy(), tried, None, 0.5) is None for tried in (1, 2, 3)] == [
        False,
        False,
        True,
    ]


@given(st.integers(1, 20), st.floats(0, 0.999))
def test_jitter_is_full_and_capped(tried: int, chance: float):
    """R-DD-04, C13"""
    policy = RetryPolicy(retries=20)
    wait = wait_before(policy, tried, None, chance)
    assert wait is not None
    assert 0 <= wait <= policy.cap
    assert wait_before(policy, tried, None, 0.0) == 0


def test_colibris_schedule_is_exact_and_listens_to_nobody():
    """C13"""
    assert [wait_before(COLIBRI, tried, 30.0, 0.9) for tried in (1, 2, 3, 4)] == [0.1, 0.2, 0.4, None]


def test_retries_are_at_most_a_fifth_of_the_requests():
    """FAULTS 60"""
    budget = RetryBudget()
    retries = 0
    for _ in range(1000):
        budget.answered()
        retries += budget.spend()
        retries += budget.spend()
    assert retries <= 0.2 * 1000 + 3


def test_requests_that_fail_earn_no_retries():
    """TESTPLAN R10: where all fail, what was saved up is all there is, however long it lasts."""
    budget = RetryBudget()
    for _ in range(10_000):
        budget.answered()
    assert sum(budget.spend() for _ in range(10_000)) == 100


def test_advice_is_kept_within_a_week_and_absurd_numbers_are_none():
    week = 7 * 24 * 3600
    for headers, seconds in (
        ({"retry-after": str(week + 1)}, week),
        ({"retry-after": "999999999"}, week),
        ({"retry-after": "1000000000"}, None),
        ({"retry-after-ms": "1000000000", "retry-after": "3"}, 3),
        ({"retry-after-ms": "0"}, 0),
        ({"retry-after-ms": "x", "retry-after": "0.5"}, 0.5),
        ({"retry-after": formatdate(NOW + 2 * week, usegmt=True)}, week),
        ({}, None),
    ):
        assert advised_wait(headers, NOW) == seconds, headers


def test_waits_are_doubled_and_advice_is_kept_to():
    policy = RetryPolicy(retries=9)
    assert [wait_before(policy, tried, None, 1.0) for tried in (1, 2, 3, 4, 5, 6)] == [0.5, 1, 2, 4, 8, 8]
    assert wait_before(policy, 1, 20.0, 1.0) == 20.25
    assert wait_before(policy, 1, 20.1, 0.0) is None
    assert wait_before(policy, 9, None, 0.5) is not None
    assert wait_before(policy, 10, 1.0, 0.5) is None
    assert FIXED_100MS == COLIBRI
