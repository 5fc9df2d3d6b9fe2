"""Pieces of `wireglot probe`: budgets, prices, first questions, the bar and the report."""

from __future__ import annotations

import io
from types import SimpleNamespace
from typing import Any

import pytest

from tests.probe.test_pieces import ERROR, Scripted, case, exchange, finding, got, raising, report
from tests.tiers import rows
from wireglot.cli import probe
from wireglot.cli.probe import BudgetGuard, NoUse, ProbeBudget, budget_of
from wireglot.cli.terminal import Unusable
from wireglot.probe.endpoint import NoReply
from wireglot.probe.report import Score, rows_of
from wireglot.probe.run import WIRES, Part, Rehearsal
from wireglot.probe.talk import ProbeLedger, Talk


@rows("text, budget", [
    ("200000", ProbeBudget(200_000)), ("0.50USD", ProbeBudget(500_000, "USD")), ("1cny", ProbeBudget(1_000_000, "CNY")),
    ("2.5eur", ProbeBudget(2_500_000, "EUR")), ("0.000001USD", ProbeBudget(1, "USD")),
])  # fmt: skip
def test_a_budget_is_tokens_or_money(text, budget):
    assert budget_of(text) == budget


@rows("text", ["", "x", "1.5", "1GBP", "-1", "1.USD", "1234567890123", "0.0000001USD"])
def test_another_text_is_no_budget(text):
    with pytest.raises(Unusable, match="--budget: expected a number of tokens"):
        budget_of(text)


def test_a_budget_ends_before_the_next_case_could_spend_more():
    ledger = ProbeLedger()
    parts = (Part("theme.name", 1, 10, 20),)
    one = case(raising())
    for amount, fine in ((60, True), (59, False)):
        purse = BudgetGuard(ProbeBudget(amount), None, parts, ledger)
        assert (purse.affordable(one) == "") is fine
    ledger.input, ledger.output = 30, 5
    assert BudgetGuard(ProbeBudget(94), None, parts, ledger).affordable(one) == "it could exceed the budget"
    assert BudgetGuard(ProbeBudget(95), None, parts, ledger).affordable(one) == ""
    assert BudgetGuard(ProbeBudget(35), None, (), ledger).affordable(one) == ""
    assert BudgetGuard(None, None, parts, ledger).affordable(one) == ""
    for price in (None, SimpleNamespace(currency="CNY")):
        anything: Any = price
        with pytest.raises(Unusable, match="no known price of this model in USD: give tokens"):
            BudgetGuard(ProbeBudget(1, "USD"), anything, parts, ledger)


def test_what_a_run_may_cost_is_said_before():
    rehearsal = Rehearsal((), (Part("a", 2, 1000, 20),))
    assert probe.bound(rehearsal, None) == (
        "2 requests, at most 1,000 tokens in and 20 out; the price of the model is unknown"
    )
    assert [probe.money(micro) for micro in (1, 999_999, 1_000_000, 12_345_678)] == [
        "0.0000",
        "1.0000",
        "1.00",
        "12.35",
    ]
    assert probe.price_at("http://nowhere.example", "m") is None
    known = probe.price_at("https://api.anthropic.com", "claude-sonnet-4-5")
    assert known is not None
    assert known.currency == "USD"


def talk(*answers: Any, wire: str = "openai-chat") -> Talk:
    return Talk(Scripted(*answers), WIRES[wire], "m", ProbeLedger(), fresh=True)


LIST = '{"object": "list", "data": [{"id": "a", "object": "model", "created": 1, "owned_by": "x"}]}'


def test_the_first_model_is_taken_from_the_list():
    assert probe.first_model(talk(got(200, LIST)), "root") == "a"
    for answer, words in (
        (
            got(401, ERROR),
            "root: no model list (status 401): check the key, or name a model with --model",
        ),
        (
            got(403, ERROR),
            "root: no model list (status 403): check the key, or name a model with --model",
        ),
        (got(404, ERROR), "root: no model list (status 404): name a model with --model"),
        (
            got(200, '{"object": "list", "data": []}'),
            "root: the model list is empty: name a model with --model",
        ),
        (got(200, "<html>"), "root: invalid model list ("),
        (NoReply("x"), "root: no answer: x"),
    ):
        with pytest.raises(NoUse) as caught:
            probe.first_model(talk(answer), "root")
        assert str(caught.value).startswith(words)


@rows("status, body, headers, words", [
    (200, "{}", {}, ""),
    (400, ERROR, {}, ""),
    (401, ERROR, {}, "root: status 401 (invalid_request_error): no: check address, key and model"),
    (403, ERROR, {}, "root: status 403 (invalid_request_error): no: check address, key and model"),
    (404, "x", {}, "root: status 404: check address, key and model"),
    (429, ERROR, {}, "root: status 429 (invalid_request_error): no: nothing can be tested until it answers"),
    (500, ERROR, {}, "root: status 500 (invalid_request_error): no: nothing can be tested until it answers"),
    (300, "x", {"location": "/y"}, "root: status 300: it redirects to /y: use that address"),
    (399, "x", {}, "root: status 399: it redirects to nowhere: use that address"),
    (200, "<p>", {"content_type": "text/html"}, "root: the answer is not JSON (text/html)"),
    (200, "<p>", {}, "root: the answer is not JSON (no content type)"),
])  # fmt: skip
def test_an_endpoint_that_does_not_answer_at_all_is_found_by_one_question(
    status, body, headers, words, monkeypatch
):
    waited: list[float] = []
    monkeypatch.setattr("wireglot.cli.probe.time.sleep", waited.append)
    answer = got(status, body, **headers)
    asking = talk(answer, answer)
    if words:
        with pytest.raises(NoUse) as caught:
            probe.check_answers(asking, "root")
        assert str(caught.value).startswith(words)
    else:
        probe.check_answers(asking, "root")
    assert waited == ([2.0] if status == 429 or status >= 500 else [])


def test_a_run_ends_after_three_cases_without_an_answer():
    gone = SimpleNamespace(status=0)
    silent: Any = finding("a.b", "inconclusive", exchanges=(gone,))
    assert probe.is_silent([silent] * 3)
    assert not probe.is_silent([silent] * 2)
    assert not probe.is_silent([silent, silent, finding("a.b", "pass", exchanges=(gone,))])
    assert not probe.is_silent([silent, silent, finding("a.b", "inconclusive")])
    assert not probe.is_silent([silent, silent, finding("a.b", "inconclusive", exchanges=(exchange(),))])
    assert probe.is_silent([finding("a.b", "pass"), silent, silent, silent])


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_bar_is_one_line_that_is_written_over(monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    shown = Terminal()
    monkeypatch.setattr("sys.stderr", shown)
    bar = probe.Bar(4)
    bar.step("a.b")
    bar.step("x" * 50)
    bar.end()
    assert shown.getvalue() == (
        "\r[######..................] 1/4 a.b\x1b[K"
        + "\r" + ("[############............] 2/4 " + "x" * 50)[:39] + "\x1b[K"
        + "\r\x1b[K"
    )  # fmt: skip
    quiet = io.StringIO()
    monkeypatch.setattr("sys.stderr", quiet)
    bar = probe.Bar(0)
    bar.step("a.b")
    bar.end()
    assert quiet.getvalue() == ""


def test_a_report_is_printed_by_themes_with_what_did_not_pass(capsys):
    cases = [case(raising(), id=f"answers.{name}") for name in "abcdef"]
    verdicts = ["pass", "fail", "warn", "not applicable", "inconclusive", "not run"]
    found = [finding(each.id, verdict, words="w\nx") for each, verdict in zip(cases, verdicts, strict=True)]
    given = report(
        cases=rows_of(cases, found, ""), verdicts=dict.fromkeys(verdicts, 1), score=Score(1, 3, 33.3)
    )
    probe.print_report(given, everything=False)
    lines = capsys.readouterr().out.split("\n")
    assert lines[0].startswith("  1 of 3   ")
    assert lines[1:6] == [
        "      x answers.b  fail: w x",
        "      ! answers.c  warn: w x",
        "      - answers.d  not applicable: w x",
        "      ? answers.e  inconclusive: w x",
        "      . answers.f  not run: w x",
    ]
    assert lines[7] == (
        "1 of 3 applicable cases passed: 33.3 %; 1 fail, 1 warn, 1 not applicable, 1 inconclusive, 1 not run"
    )
    assert lines[8] == "1,234 requests, 5,678 tokens in, 9,012 out, as reported by the endpoint"
    probe.print_report(given, everything=True)
    assert "      + answers.a  pass: w x\n" in capsys.readouterr().out
    whole = report(cases=rows_of(cases[:1], found[:1], ""), verdicts={"pass": 1}, complete=False)
    probe.print_report(whole, everything=False)
    assert " (interrupted: cases are missing)\n" in capsys.readouterr().out


def test_cases_are_selected_by_name_theme_and_pattern():
    every = probe.selected("", [], large=True)
    usual = probe.selected("", [], large=False)
    assert {each.cost for each in every} - {each.cost for each in usual} == {"large"}
    assert [each.id for each in probe.selected("anthropic", ["answers.shape, answers.end"], large=False)] == [
        "answers.shape",
        "answers.end",
    ]
    theme = probe.selected("anthropic", ["answers"], large=False)
    assert theme == probe.selected("anthropic", ["answers.*"], large=False)
    assert {each.theme for each in theme} == {"answers"}
    with pytest.raises(
        Unusable, match=r"--only: there is no case answers\.shap: did you mean answers\.shape\?"
    ):
        probe.selected("anthropic", ["answers.shap"], large=False)


def test_what_would_be_sent_is_shown_once(capsys):
    shared = exchange().__class__(
        method="POST", path="/p", request="{}", status=200, kind="", answer="", shared=True
    )
    found = finding("theme.name", "pass", exchanges=(exchange(), shared))
    probe.print_sent("http://h", [case(raising())], Rehearsal((found,), ()))
    assert capsys.readouterr().out == (
        "theme.name: T\n  POST http://h/p?\n    <r>\n  POST http://h/p  (same as an earlier request, not sent again)\n"
    )
    assert probe._compact('"' + "x" * 1998 + '"') == '"' + "x" * 1998 + '"'
    assert probe._compact('"' + "x" * 1999 + '"') == '"' + "x" * 1999 + "…"
    assert probe._compact("y" * 500) == "y" * 400
