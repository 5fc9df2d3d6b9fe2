"""What is remembered about upstreams."""

from tests.gateway.kit import catalogued
from wireglot.gateway.setting_tables import BreakerPolicy
from wireglot.gateway.targets.health import Breaker, Health

POLICY = BreakerPolicy()


def fail(breaker: Breaker, times: int, now: float = 0.0, caller: str = "ada") -> None:
    for _ in range(times):
        breaker.failed(POLICY, now, caller)


def test_five_failures_in_a_row_open_a_breaker():
    """R-DD-07"""
    breaker = Breaker()
    fail(breaker, 4)
    assert breaker.wait(0.0, "ada") == 0
    fail(breaker, 1)
    assert breaker.wait(0.0, "ada") == POLICY.probe_after


def test_a_success_between_failures_keeps_it_closed():
    breaker = Breaker()
    fail(breaker, 4)
    breaker.succeeded(POLICY, 0.0, "bob")
    fail(breaker, 1)
    assert not breaker.is_open


def test_failures_of_one_caller_close_it_to_that_caller_alone():
    """[A2]"""
    breaker = Breaker()
    fail(breaker, 50)
    assert breaker.wait(0.0, "ada") > 0
    assert breaker.wait(0.0, "bob") == 0
    assert not breaker.begin(0.0, "bob"), "whoever is let through is no probe"
    fail(breaker, 1, caller="bob")
    assert breaker.wait(0.0, "bob") == 0, "one failure beside another's many is no outage"
    fail(breaker, 1, caller="bob")
    assert breaker.wait(0.0, "bob") == breaker.wait(0.0, "eve") == POLICY.probe_after


def test_an_answer_to_anybody_opens_the_way_for_all():
    """[A2]"""
    breaker = Breaker()
    fail(breaker, 5)
    breaker.succeeded(POLICY, 1.0, "bob")
    assert breaker.wait(1.0, "ada") == 0
    assert not breaker.is_open


def test_half_of_twenty_within_the_window_open_it_too():
    breaker = Breaker()
    fail(breaker, 1)
    for _ in range(10):
        breaker.succeeded(POLICY, 1.0, "ada")
        fail(breaker, 1, 1.0)
    assert breaker.wait(1.0, "ada") > 0
    assert breaker.wait(1.0, "bob") == 0


def test_a_caller_that_fails_half_the_time_takes_it_from_nobody_who_does_not():
    """[A2]"""
    breaker = Breaker()
    for _ in range(20):
        breaker.succeeded(POLICY, 1.0, "bob")
        fail(breaker, 2, 1.0, "eve")
    assert breaker.wait(1.0, "bob") == 0
    for _ in range(20):
        fail(breaker, 1, 1.0, "bob")
    assert breaker.wait(1.0, "ada") > 0


def test_old_failures_are_forgotten():
    breaker = Breaker()
    for turn in range(15):
        fail(breaker, 1, turn * 100.0)
        breaker.succeeded(POLICY, turn * 100.0, "ada")
    assert not breaker.is_open


def test_one_probe_at_a_time_and_a_failed_one_lengthens_the_rest_up_to_the_cap():
    breaker, policy = Breaker(), BreakerPolicy(probe_after=10.0, probe_cap=30.0)
    for _ in range(5):
        breaker.failed(policy, 0.0, "ada")
    assert breaker.wait(10.0, "ada") == 0
    assert breaker.begin(10.0, "ada")
    assert breaker.wait(10.0, "ada") > 0
    breaker.failed(policy, 10.0, "ada", probe=True)
    assert breaker.wait(10.0, "ada") == 20
    assert breaker.begin(30.0, "ada")
    breaker.failed(policy, 30.0, "ada", probe=True)
    assert breaker.wait(30.0, "ada") == 30
    assert breaker.begin(60.0, "ada")
    breaker.succeeded(policy, 60.0, "ada")
    assert breaker.wait(60.0, "ada") == 0


def test_a_provider_that_is_well_again_is_found_out_within_ten_seconds():
    """TESTPLAN R10: it recovers within 15 s, however long the outage was."""
    breaker, now = Breaker(), 0.0
    fail(breaker, 5)
    for _ in range(20):
        wait = breaker.wait(now, "ada")
        assert 0 < wait <= 10
        now += wait
        assert breaker.begin(now, "ada")
        breaker.failed(POLICY, now, "ada", probe=True)


def test_requests_that_were_on_their_way_do_not_lengthen_the_rest():
    breaker = Breaker()
    fail(breaker, 40)
    assert breaker.wait(0.0, "ada") == POLICY.probe_after
    assert breaker.begin(10.0, "ada")
    fail(breaker, 1, 10.0)
    assert breaker.wait(10.0, "ada") > 0, "the probe is still on its way"
    breaker.release()
    assert breaker.wait(10.0, "ada") == 0


def test_a_probe_whose_client_left_lets_the_next_one_through():
    breaker = Breaker()
    fail(breaker, 5)
    assert breaker.begin(10.0, "ada")
    breaker.release()
    assert breaker.wait(10.0, "ada") == 0


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
