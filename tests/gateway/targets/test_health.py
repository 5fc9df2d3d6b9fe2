"""What is remembered about upstreams."""

import pytest

from tests.gateway.kit import catalogued
from wireglot.gateway.setting_tables import BreakerPolicy
from wireglot.gateway.targets import health as health_module
from wireglot.gateway.targets.health import (
    MAX_LAST_WORDS_BYTES,
    Breaker,
    Health,
    Resting,
    RetryBudget,
    SpentAccount,
)
from wireglot_core.ir.content import Extra
from wireglot_core.ir.errors import ApiError

POLICY = BreakerPolicy()


def fail(breaker: Breaker, times: int, now: float = 0.0, caller: str = "ada") -> None:
    for _ in range(times):
        breaker.failed(POLICY, now, caller)


def test_five_failures_in_a_row_open_a_breaker():
    """R-DD-07"""
    breaker = Breaker()
    fail(breaker, 4)
    assert breaker.wait(0.0, "ada") == 0
    assert not breaker.is_open
    fail(breaker, 1)
    assert breaker.wait(0.0, "ada") == POLICY.probe_after
    assert breaker.is_open


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
    assert not breaker.begin(0.0, "bob"), "anyone who is let through is no probe"
    fail(breaker, 1, caller="bob")
    assert breaker.wait(0.0, "bob") == 0, "one failure beside another's many is no outage"
    fail(breaker, 1, caller="bob")
    assert breaker.wait(0.0, "bob") == breaker.wait(0.0, "eve") == POLICY.probe_after


def test_an_outage_that_shows_for_all_later_lets_nobody_through_earlier():
    """[A2]"""
    breaker = Breaker()
    fail(breaker, 5)
    fail(breaker, 2, 3.0, "bob")
    assert breaker.wait(3.0, "eve") == breaker.wait(3.0, "ada") == POLICY.probe_after
    fail(breaker, 1, 4.0, "eve")
    assert breaker.wait(4.0, "eve") == POLICY.probe_after - 1, "it is open for all by now"


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


def test_half_of_the_requests_of_several_callers_open_it_for_all():
    """[A2] Where none of them has five failures in a row."""
    policy = BreakerPolicy(consecutive=100, minimum=12)

    def after(failures: list[str], successes: list[str]) -> Breaker:
        breaker = Breaker()
        breaker.failed(policy, 0.0, failures[0])
        for caller in successes:
            breaker.succeeded(policy, 0.0, caller)
        for caller in failures[1:]:
            breaker.failed(policy, 0.0, caller)
        return breaker

    assert after(["ada"] * 3 + ["bob"] * 3, ["ada"] * 3 + ["bob"] * 3).wait(0.0, "eve") > 0
    for alone in (
        after(["ada"] * 3 + ["bob"] * 2, ["ada"] * 3 + ["bob"] * 3),  # too few requests
        after(["ada"] * 6, ["ada"] * 3 + ["bob"] * 3),  # one caller's alone
        after(["ada"] * 3 + ["bob"] * 3, ["ada"] * 4 + ["bob"] * 3),  # fewer than half
        after(["ada"] * 6 + ["bob"] * 2, ["ada"] * 1 + ["bob"] * 3),  # the others are well
        after(["ada"] * 7 + ["bob"] * 3, ["ada"] * 2),  # too few of the others
    ):
        assert alone.wait(0.0, "eve") == 0


def test_a_caller_alone_needs_as_many_requests_as_all_together():
    policy = BreakerPolicy(consecutive=100, minimum=4)
    breaker = Breaker()
    breaker.failed(policy, 0.0, "ada")
    for caller in ("ada", "ada", "bob"):
        breaker.succeeded(policy, 0.0, caller)
    assert not breaker.is_open
    breaker.failed(policy, 0.0, "ada")
    assert breaker.wait(0.0, "ada") > 0
    assert breaker.wait(0.0, "bob") == 0


def test_old_failures_are_forgotten():
    breaker = Breaker()
    for turn in range(15):
        fail(breaker, 1, turn * 100.0)
        assert not breaker.is_open
        breaker.succeeded(POLICY, turn * 100.0, "ada")


def test_of_a_busy_minute_the_last_thousand_requests_count():
    breaker, policy = Breaker(), BreakerPolicy(consecutive=10_000)
    breaker.failed(policy, 0.0, "ada")
    for _ in range(2000):
        breaker.succeeded(policy, 0.0, "ada")
    for _ in range(499):
        breaker.failed(policy, 0.0, "ada")
    assert not breaker.is_open
    breaker.failed(policy, 0.0, "ada")
    assert breaker.is_open


def test_clients_are_asked_to_wait_about_as_long_as_the_failures_have_gone_on():
    breaker = Breaker()
    assert breaker.advice(50.0, chance=0.0) == 1
    fail(breaker, 1, 100.0)
    fail(breaker, 1, 105.0)
    assert [breaker.advice(now, chance=0.0) for now in (100.5, 110.0, 500.0)] == [1, 10, 30]
    assert breaker.advice(110.0, chance=1.0) == 15
    breaker.succeeded(POLICY, 110.0, "ada")
    assert breaker.advice(500.0, chance=0.0) == 1


def test_one_probe_at_a_time_and_a_failed_one_lengthens_the_rest_up_to_the_cap():
    breaker, policy = Breaker(), BreakerPolicy(probe_after=10.0, probe_cap=30.0)
    for _ in range(5):
        breaker.failed(policy, 0.0, "ada")
    assert breaker.wait(10.0, "ada") == 0
    assert breaker.begin(10.0, "ada")
    assert breaker.wait(10.0, "ada") == 1, "while the probe is on its way"
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
    health.reject("p", "a", 0.0, "no such key")
    assert health.usable_at("p", "a", "any", 0.0) == 60
    assert health.usable_at("p", "b", "any", 0.0) == 0
    assert [health.is_rejected("p", "a", now) for now in (59.0, 60.0)] == [True, False]
    assert (health.last_words("p", "a"), health.last_words("p", "b")) == ("no such key", "")


def test_what_this_process_finds_out_is_passed_on_and_what_it_hears_is_not():
    health, passed_on = Health(), list[tuple[object, ...]]()
    health.cool("p", "before", "m", 5.0)
    health.reject("p", "before", 0.0)
    health.listen(*[lambda *found: passed_on.append(found)] * 3)
    health.cool("p", "a", "m", 5.0)
    health.reject("p", "a", 1.0)
    said = SpentAccount(ApiError("billing", "nothing left"))
    health.spend("p", "d", "m", 9.0, said)
    health.heard_cool("p", "b", "m", 7.0)
    health.heard_rejected("p", "c", 8.0)
    health.heard_spent("p", "e", "m", 8.0, said)
    assert passed_on == [("p", "a", "m", 5.0), ("p", "a", 61.0), ("p", "d", "m", 9.0, said)]
    assert health.usable_at("p", "b", "m", 0.0) == 7
    assert health.usable_at("p", "c", "m", 0.0) == 8


def test_what_was_said_of_a_spent_account_is_known_as_long_as_it_is_not_used():
    health = Health()
    said = SpentAccount(ApiError("billing", "nothing left", status=402), "openai-chat", b"{}", 402)
    health.spend("p", "a", "m", 60.0, said)
    health.heard_spent("p", "a", "n", 50.0, SpentAccount(ApiError("billing", "another process's words")))
    assert health.spent("p", "a", "m", 59.0) == health.spent("p", "a", "n", 49.0) == said
    assert health.spent("p", "a", "other", 0.0) is None
    assert health.spent("p", "b", "m", 0.0) is None
    assert health.spent("p", "a", "m", 60.0) is None
    assert health.usable_at("p", "a", "m", 60.0) == 60.0
    health.cool("p", "a", "m", 90.0)
    assert health.spent("p", "a", "m", 60.0) is None, "it is only busy"


def test_an_account_that_is_busy_for_longer_than_it_is_spent_is_busy_then():
    health = Health()
    said = SpentAccount(ApiError("billing", "nothing left", status=402))
    health.spend("p", "a", "m", 60.0, said)
    health.cool("p", "a", "m", 90.0)
    assert (health.spent("p", "a", "m", 59.0), health.spent("p", "a", "m", 60.0)) == (said, None)
    assert health.usable_at("p", "a", "m", 60.0) == 90.0


def test_long_words_of_a_spent_account_are_not_kept_whole():
    health = Health()
    error = ApiError("billing", "nothing left", status=402, extra=Extra("openai-chat", {"error": "x" * 99}))
    long = b"x" * (MAX_LAST_WORDS_BYTES + 1)
    health.spend("p", "a", "m", 60.0, SpentAccount(error, "openai-chat", long, 402))
    kept = health.spent("p", "a", "m", 0.0)
    assert kept == SpentAccount(ApiError("billing", "nothing left", status=402), "openai-chat", b"", 402)
    word = long.decode()
    health.spend("p", "a", "m", 60.0, SpentAccount(ApiError("billing", word, 402, word, word, word)))
    kept, cut = health.spent("p", "a", "m", 0.0), word[:MAX_LAST_WORDS_BYTES]
    assert kept == SpentAccount(ApiError("billing", cut, 402, cut, cut, cut))


def test_the_longer_rest_holds():
    health = Health()
    for until in (5.0, 9.0, 7.0):
        health.cool("p", "a", "m", until)
        health.heard_rejected("p", "b", until)
    assert health.usable_at("p", "a", "m", 0.0) == health.usable_at("p", "b", "m", 0.0) == 9


def test_what_rests_is_listed_with_the_seconds_that_are_left():
    health = Health()
    health.cool("p", "a", "m", 10.0)
    health.cool("p", "a", "n", 4.0)
    health.heard_rejected("p", "b", 12.0)
    health.heard_rejected("p", "c", 3.0)
    assert health.resting(4.0) == [Resting("p", "a", "m", 6.0), Resting("p", "b", "", 8.0, True)]


def test_each_route_has_a_breaker_and_those_that_are_open_are_listed(monkeypatch: pytest.MonkeyPatch):
    """Names of models come from clients: of too many those that are closed are forgotten."""
    monkeypatch.setattr(health_module, "_MAX_REMEMBERED", 5)
    health = Health()
    fail(health.breakers["p/bad"], 5)
    fail(health.breakers["p/good"], 4)
    assert health.breakers["p/good"] is health.breakers["p/good"]
    assert health.open_breakers() == ["p/bad"]
    bad, closed = health.breakers["p/bad"], health.breakers["p/good"]
    for number in range(3):
        assert not health.breakers[f"p/{number}"].is_open
    assert health.breakers["p/good"] is closed
    assert not health.breakers["p/one-more"].is_open
    assert health.breakers["p/bad"] is bad
    assert health.breakers["p/good"] is not closed


def test_too_many_cool_downs_are_forgotten(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(health_module, "_MAX_REMEMBERED", 5)
    health = Health()
    for number in range(5):
        health.heard_cool("p", "a", str(number), 9.0)
    assert health.usable_at("p", "a", "0", 0.0) == 9
    health.heard_cool("p", "a", "one more", 9.0)
    assert [health.usable_at("p", "a", model, 0.0) for model in ("0", "one more")] == [0, 9]


def test_retries_are_a_fifth_of_the_answers_and_some_saved_up():
    health = Health()
    budget = health.budgets["p"]
    assert health.budgets["p"] is budget
    assert health.budgets["q"] is not budget
    assert [budget.spend() for _ in range(4)] == [True, True, True, False]
    for _ in range(5):
        assert not budget.spend()
        budget.answered()
    assert [budget.spend() for _ in range(2)] == [True, False]
    bounded = RetryBudget(ratio=1.0, minimum=0.0, most=2.0)
    for _ in range(5):
        bounded.answered()
    assert [bounded.spend() for _ in range(3)] == [True, True, False]


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


def test_a_single_key_is_tried_also_while_it_rests():
    pool = catalogued("openai", "a").credentials
    health = Health()
    health.cool("openai", "account-a", "m", 10.0)
    assert health.order("openai", pool, "m", 0.0) == list(pool)
    assert health.order("openai", (), "m", 0.0) == []


def test_keys_that_rest_come_last_and_the_one_that_is_ready_first_before_the_others():
    pool = catalogued("openai", "a", "b", "c").credentials
    health = Health()
    health.cool("openai", "account-a", "m", 20.0)
    health.cool("openai", "account-b", "m", 10.0)
    assert [each.account for each in health.order("openai", pool, "m", 0.0)] == [
        "account-c",
        "account-b",
        "account-a",
    ]
