"""What is remembered about upstreams."""

from tests.gateway.kit import catalogued
from wireglot.gateway.settings import BreakerPolicy
from wireglot.gateway.targets.health import Breaker, Health

POLICY = BreakerPolicy()


def test_five_failures_in_a_row_open_a_breaker():
    """R-DD-07"""
    breaker = Breaker()
    for _ in range(4):
        breaker.failed(POLICY, 0.0)
    assert breaker.wait(0.0) == 0
    breaker.failed(POLICY, 0.0)
    assert breaker.wait(0.0) == POLICY.probe_after


def test_a_success_between_failures_keeps_it_closed():
    breaker = Breaker()
    for _ in range(4):
        breaker.failed(POLICY, 0.0)
    breaker.succeeded(POLICY, 0.0)
    breaker.failed(POLICY, 0.0)
    assert not breaker.is_open


def test_half_of_twenty_within_the_window_open_it_too():
    breaker = Breaker()
    breaker.failed(POLICY, 0.0)
    for _ in range(10):
        breaker.succeeded(POLICY, 1.0)
        breaker.failed(POLICY, 1.0)
    assert breaker.is_open


def test_old_failures_are_forgotten():
    breaker = Breaker()
    for turn in range(15):
        breaker.failed(POLICY, turn * 100.0)
        breaker.succeeded(POLICY, turn * 100.0)
    assert not breaker.is_open


def test_one_probe_at_a_time_and_a_failed_one_doubles_the_rest():
    breaker = Breaker()
    for _ in range(5):
        breaker.failed(POLICY, 0.0)
    assert breaker.wait(10.0) == 0
    breaker.begin(10.0)
    assert breaker.wait(10.0) > 0
    breaker.failed(POLICY, 10.0)
    assert breaker.wait(10.0) == 20
    breaker.begin(30.0)
    breaker.succeeded(POLICY, 30.0)
    assert breaker.wait(30.0) == 0


def test_requests_that_were_on_their_way_do_not_lengthen_the_rest():
    breaker = Breaker()
    for _ in range(40):
        breaker.failed(POLICY, 0.0)
    assert breaker.wait(0.0) == POLICY.probe_after


def test_a_probe_whose_client_left_lets_the_next_one_through():
    breaker = Breaker()
    for _ in range(5):
        breaker.failed(POLICY, 0.0)
    breaker.begin(10.0)
    breaker.release()
    assert breaker.wait(10.0) == 0


def test_one_exhausted_model_parks_no_other():
    """R-DD-07"""
    health = Health()
    health.cool("p", "a", "m1", 100.0)
    assert health.usable_at("p", "a", "m1", 50.0) == 100
    assert health.usable_at("p", "a", "m2", 50.0) == 50
    assert health.usable_at("p", "b", "m1", 50.0) == 50
    assert health.usable_at("p", "a", "m1", 150.0) == 150


def test_a_rejected_key_rests_for_all_models():
    """FAULTS 54"""
    health = Health()
    health.reject("p", "a", 0.0)
    assert health.usable_at("p", "a", "any", 0.0) == 60


def test_a_conversation_stays_with_its_key_and_conversations_spread():
    pool = catalogued("openai", *"abcdef").credentials
    health = Health()
    first = {c: health.order("openai", pool, "m", 0.0, conversation=c)[0] for c in map(str, range(200))}
    again = {c: health.order("openai", pool, "m", 9.0, conversation=c)[0] for c in first}
    assert first == again
    assert {credential.account for credential in first.values()} == {c.account for c in pool}


def test_the_minter_of_reasoning_comes_first_unless_it_must_rest():
    """PAINS A10"""
    pool = catalogued("openai", "a", "b", "c").credentials
    health = Health()
    assert health.order("openai", pool, "m", 0.0, minted_by=["account-c"])[0].account == "account-c"
    health.cool("openai", "account-c", "m", 10.0)
    assert health.order("openai", pool, "m", 0.0, minted_by=["account-c"])[0].account != "account-c"
