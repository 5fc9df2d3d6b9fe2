"""What is done after a failed attempt, by who is to blame."""

from __future__ import annotations

import pytest

from tests.gateway.kit import catalogued
from wireglot.gateway.errors import RETRY_AFTER_MAX
from wireglot.gateway.relay.after import After, after
from wireglot.gateway.settings import Provider
from wireglot.gateway.targets.health import QUARANTINE_SECONDS
from wireglot.http.retry import RetryPolicy
from wireglot_core.ir.errors import ApiError
from wireglot_core.ir.failures import AttemptFailed, Blame

KIMI = catalogued("kimi", "one", "two")


def then(
    blame: Blame,
    *,
    others: bool = False,
    tried: int = 1,
    wait: float | None = None,
    error: ApiError | None = None,
    provider: Provider = KIMI,
) -> After:
    failed = AttemptFailed(error or ApiError("server", "x"), blame, wait=wait)
    return after(failed, provider, account="one", others=others, tried=tried, chance=0.5)


@pytest.mark.parametrize("blame", ["request", "model", "timeout", "gateway"])
def test_where_another_attempt_cannot_help_there_is_none(blame: Blame) -> None:
    assert then(blame, others=True) == After(None)


@pytest.mark.parametrize("blame", ["upstream", "connection"])
def test_a_failure_of_the_upstream_is_tried_again_until_its_policy_ends(blame: Blame) -> None:
    assert then(blame).wait is not None
    assert then(blame, tried=KIMI.retry.retries + 1) == After(None)


def test_a_rejected_key_opens_nothing_any_more_and_another_is_used_at_once() -> None:
    rejected = ApiError("auth", "no such key")
    assert then("credential", error=rejected, others=True) == After(0.0, rejected=True)
    assert then("credential", error=rejected) == After(None, rejected=True)


def test_the_only_key_is_not_parked_for_what_it_may_not_do() -> None:
    forbidden = ApiError("permission", "not for you")
    assert then("credential", error=forbidden) == After(None)
    assert then("credential", error=forbidden, others=True) == After(0.0, rest=QUARANTINE_SECONDS)


def test_a_key_without_quota_rests_and_another_is_used_at_once() -> None:
    assert then("quota", others=True) == After(0.0, rest=60.0)
    assert then("quota") == After(None, rest=60.0)


def test_a_key_over_its_rate_rests_for_as_long_as_it_was_asked_to() -> None:
    assert then("rate", wait=3.0, others=True) == After(0.0, rest=3.0)
    alone = then("rate", wait=3.0)
    assert (alone.rest, alone.wait is not None and alone.wait >= 3.0) == (3.0, True)
    assert then("rate").rest == 1.0


def test_a_key_is_refused_locally_no_longer_than_its_clients_are_asked_to_wait() -> None:
    """[L9] `retry-after: 3600` is reported as 120 s: anyone who comes back then must find the key in use again."""
    assert then("rate", wait=3600.0).rest == RETRY_AFTER_MAX
    assert then("rate", wait=3600.0, others=True).rest == RETRY_AFTER_MAX
    assert then("rate", wait=3600.0).wait is None


def test_a_schedule_says_when_and_nothing_rests() -> None:
    fixed = Provider("mine", KIMI.spec, retry=RetryPolicy(retries=1, schedule=(0.1,)))
    assert then("rate", wait=60.0, provider=fixed) == After(0.1)
    assert then("rate", wait=60.0, provider=fixed, tried=2) == After(None)


def test_connections_are_not_tried_again_where_the_policy_says_so() -> None:
    once = Provider("mine", KIMI.spec, retry=RetryPolicy(connection_errors=False))
    assert then("connection", provider=once) == After(None)
