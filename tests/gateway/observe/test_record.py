"""What a request's record says after each thing that can happen to it."""

from __future__ import annotations

from wireglot.gateway.observe.record import ExchangeRecord
from wireglot_core.ir.errors import ApiError
from wireglot_core.ir.loss import Loss
from wireglot_core.ir.outcome import Usage

OVERLOADED = ApiError("overloaded", "try later", 529, code="busy")
LOSS = Loss("$.top_k", "sampling.top_k", "dropped", "no such field")


def record() -> ExchangeRecord:
    return ExchangeRecord("r", 1.0)


def test_an_error_says_what_it_was_and_where_the_operator_should_look() -> None:
    made = record()
    made.failed(OVERLOADED, "look there")
    made.answered(529)
    assert (made.outcome, made.status, made.error_fix) == ("error", 529, "look there")
    assert (made.error_kind, made.error_code, made.error_message) == ("overloaded", "busy", "try later")


def test_a_client_that_leaves_has_the_status_it_was_sent_or_499() -> None:
    before, during = record(), record()
    before.left()
    during.answered(200)
    during.left()
    assert (before.outcome, before.status) == ("client_abort", 499)
    assert (during.outcome, during.status) == ("client_abort", 200)


def test_a_gateway_that_ends_first_is_an_abort_of_its_own() -> None:
    made = record()
    made.cut_off()
    assert made.outcome == "gateway_abort"


def test_the_next_attempt_has_its_own_route_and_losses() -> None:
    made = record()
    assert made.route == ""
    made.asked("one", "a", "anthropic", url="http://one", account="first", passthrough=True, losses=[LOSS])
    assert made.grouped_losses() == [LOSS]
    made.fell_back("one/a")
    made.asked("two", "b", "gemini")
    assert (made.attempts, made.route, made.fallbacks) == (2, "two/b", ["one/a"])
    assert (made.upstream_dialect, made.upstream_url, made.account) == ("gemini", "", "")
    assert not made.passthrough
    assert made.grouped_losses() == made.losses == []
    made.lost([LOSS])
    assert made.grouped_losses() == made.losses == [LOSS]


def test_attempts_without_an_answer_are_part_of_the_usage() -> None:
    made = record()
    made.asked("one", "a", "anthropic")
    made.answered_nothing(OVERLOADED, Usage(input=3, output=1))
    assert made.notes == ["one/a: try later"]
    assert (made.usage, made.usage_source) == (Usage(input=3, output=1), "provider")
    before = made.kinds()
    made.used(Usage(input=10, output=5))
    assert (made.usage, made.usage_source) == (Usage(input=13, output=6), "provider")
    assert made.kinds() != before
    made.used(None)
    assert (made.usage, made.usage_source) == (Usage(input=3, output=1), "partial")


def test_usage_is_the_providers_unless_another_source_is_named() -> None:
    made = record()
    made.used(Usage(input=1))
    sources: list[str] = [made.usage_source]
    made.used(Usage(input=1), "estimated")
    sources.append(made.usage_source)
    made.used(None)
    assert [*sources, made.usage_source] == ["provider", "estimated", "none"]
    assert made.usage is None


def test_flaws_are_kept_once_and_notes_as_often_as_they_come() -> None:
    made = record()
    made.flawed(["a", "b"])
    made.flawed(["b", "c"])
    made.noted("x")
    made.noted("x")
    assert (made.flaws, made.notes) == (["a", "b", "c"], ["x", "x"])


def test_the_model_that_answered_stays_known_when_a_later_word_names_none() -> None:
    made = record()
    made.stopped("end", "m-1")
    made.stopped("length")
    assert (made.stop, made.response_model) == ("length", "m-1")
