"""Pinned wishes to think: each in the words of every family of models, and what is declared.

`WIREGLOT_UPDATE=1 pytest tests/core/providers/test_fit_thinking_table.py` writes the table again.
"""

from itertools import product

import msgspec
import pytest

from tests.core.providers.asks import fit, request
from tests.core.providers.test_fit_pinned import pinned
from tests.tiers import rows
from wireglot_core.dialects.context import Context
from wireglot_core.ir.content import Extra
from wireglot_core.ir.loss import Loss
from wireglot_core.ir.request import EFFORTS, Effort, Request, Thinking
from wireglot_core.providers.fit.fitting import FitTarget, Fitting
from wireglot_core.providers.fit.thinking import (
    effort_of_budget,
    fit_thinking,
    nearest_effort,
    stop_thinking_in_loop,
    thinks,
)
from wireglot_core.providers.limits import Limits

CHAT = "openai-chat"
SWITCH = Extra(CHAT, form={"control": "thinking"})
FIELDS = Extra("acme", {"more": 1}, {"order": 1})
CHAT_FIELDS = Extra(CHAT, {"more": 1}, {"control": "reasoning"})

WISHES: dict[str, Thinking] = {
    "on": Thinking("on"),
    "auto": Thinking("auto"),
    "off": Thinking("off"),
    "effort none": Thinking(effort="none"),
    "effort minimal": Thinking(effort="minimal"),
    "effort medium": Thinking(effort="medium"),
    "effort high": Thinking(effort="high"),
    "effort max": Thinking(effort="max"),
    "on, effort high": Thinking("on", "high"),
    "auto, effort max": Thinking("auto", "max"),
    "auto, effort none": Thinking("auto", "none"),
    "off, effort none": Thinking("off", "none"),
    "off, effort high": Thinking("off", "high"),
    "budget 0": Thinking("on", budget=0),
    "budget -1": Thinking("on", budget=-1),
    "budget 400": Thinking("on", budget=400),
    "budget 4000": Thinking("on", budget=4000),
    "budget 90000": Thinking("on", budget=90_000),
    "budget 4000 alone": Thinking(budget=4000),
    "budget 4000, effort low": Thinking("on", "low", 4000),
    "off, budget 4000": Thinking("off", budget=4000),
    "summary": Thinking(display="summary"),
    "omitted": Thinking(display="omitted"),
    "on, omitted": Thinking("on", display="omitted"),
    "off, summary": Thinking("off", display="summary"),
    "effort high, summary": Thinking(effort="high", display="summary"),
    "nothing but another's field": Thinking(extra=FIELDS),
    "on, with another's field": Thinking("on", extra=FIELDS),
    "effort high, with another's field": Thinking(effort="high", extra=FIELDS),
    "on, by Chat's switch": Thinking("on", extra=SWITCH),
    "off, by Chat's switch": Thinking("off", extra=SWITCH),
    "effort high, by Chat's switch": Thinking("on", "high", extra=SWITCH),
    "effort low, by Chat's switch": Thinking("on", "low", extra=SWITCH),
    "budget 4000, by Chat's switch": Thinking("on", budget=4000, extra=SWITCH),
    "effort high, by Chat's object": Thinking(effort="high", extra=CHAT_FIELDS),
    "on, by Chat's object": Thinking("on", extra=CHAT_FIELDS),
}

FEW: tuple[Effort, ...] = ("minimal", "high", "max")
MODELS: dict[str, Limits] = {
    "adaptive": Limits(thinking="adaptive", efforts=("low", "medium", "high", "xhigh", "max")),
    "adaptive, never off": Limits(thinking="adaptive", efforts=FEW, thinking_off=False),
    "budget": Limits(thinking="budget"),
    "budget from 1024": Limits(thinking="budget", budget_min=1024, max_tokens_default=32_000),
    "budget up to 24576, never off": Limits(thinking="budget", budget_max=24_576, thinking_off=False),
    "budget from 512 to 8000, never off": Limits(
        thinking="budget", budget_min=512, budget_max=8000, thinking_off=False
    ),
    "effort": Limits(thinking="effort"),
    "effort of few": Limits(thinking="effort", efforts=FEW),
    "effort, never off": Limits(thinking="effort", efforts=("low", "medium"), thinking_off=False),
    "effort, or its own switch": Limits(thinking="effort", efforts=FEW, thinking_own="switch"),
    "effort, its own kept": Limits(thinking="effort", efforts=FEW, thinking_own="keep"),
    "effort, never off, its own kept": Limits(
        thinking="effort", efforts=FEW, thinking_own="keep", thinking_off=False
    ),
    "effort, never off, or its own switch": Limits(
        thinking="effort", efforts=FEW, thinking_own="switch", thinking_off=False
    ),
    "effort, guessed": Limits(thinking="effort", efforts=FEW, thinking_own="guess"),
    "level": Limits(thinking="level", efforts=("minimal", "low", "medium", "high")),
    "level of few, never off": Limits(thinking="level", efforts=("low", "high"), thinking_off=False),
    "effort, off by a switch": Limits(thinking="effort", efforts=FEW, thinking_switch="thinking"),
    "no effort, off by a switch": Limits(thinking="effort", efforts=(), thinking_switch="reasoning"),
    "no effort but none": Limits(thinking="effort", efforts=("none",)),
    "adaptive, off between tools": Limits(
        thinking="adaptive", efforts=("low", "high", "max"), thinking_off=False, between_tools=True
    ),
    "toggle, by another switch": Limits(thinking="toggle", thinking_switch="enable_thinking"),
    "toggle": Limits(thinking="toggle"),
    "toggle, never off": Limits(thinking="toggle", thinking_off=False),
    "toggle, or its own switch": Limits(thinking="toggle", thinking_own="switch"),
    "fixed": Limits(thinking="fixed"),
    "fixed, its own kept": Limits(thinking="fixed", thinking_own="keep"),
    "fixed, or its own switch": Limits(thinking="fixed", thinking_own="switch"),
    "none": Limits(thinking="none"),
    "unknown": Limits(),
}


def reported(thinking: Thinking) -> str:
    return msgspec.json.encode(thinking).decode()


@pytest.mark.parametrize("dialect", ["anthropic", CHAT])
@pytest.mark.parametrize("whose", ["another", "own"])
def test_a_wish_to_think_reaches_models_like_this(dialect, whose):
    lines = []
    for model, limits in MODELS.items():
        lines.append(f"# {model}")
        for name, wish in WISHES.items():
            fitted = fit(request(thinking=wish), limits, Context(), dialect, whose == "another")
            losses = [
                f"{loss.path} {loss.feature} {loss.action}"
                for loss in fitted.losses
                if loss.path != "$.max_tokens"
            ]
            lines.append(" | ".join([name, reported(fitted.request.thinking), *losses]))
        lines.append("")
    pinned(f"thinking-of-{whose}-dialect-to-{dialect}", lines)


def test_a_loss_about_thinking_says_why():
    """Each sentence once, with a model and a wish that it is said of."""
    said: dict[str, str] = {}
    for dialect in ("anthropic", CHAT):
        for (model, limits), (name, wish) in product(MODELS.items(), WISHES.items()):
            for loss in fit(request(thinking=wish), limits, Context(), dialect).losses:
                if loss.path != "$.max_tokens":
                    said.setdefault(f"{loss.path} {loss.action}: {loss.detail}", f"{name}, {model}")
    pinned("thinking-reasons", [f"{words} ({whose})" for words, whose in sorted(said.items())])


MANY_WISHES = [
    Thinking(mode, effort, budget)
    for mode in (None, "on", "auto", "off")
    for effort in (None, *EFFORTS)
    for budget in (None, 400, 4000)
]


@rows("model", [name for name, limits in MODELS.items() if limits.thinking is not None])
def test_how_much_to_think_is_never_ignored_in_silence(model):
    """An effort and a budget may stand together, and beside `off`: what does not decide is declared."""
    silent = []
    for wish in MANY_WISHES:
        fitted = fit(request(thinking=wish), MODELS[model], Context(), "gemini", True)
        for field, value in (("effort", wish.effort), ("budget", wish.budget)):
            if value is None or (field, value, wish.mode) == ("effort", "none", "off"):
                continue
            if getattr(fitted.request.thinking, field) == value:
                continue
            reported = {loss.path for loss in fitted.losses}
            if value == "none" and ({"$.thinking.mode"} & reported or fitted.request.thinking.mode == "off"):
                continue  # no effort is `off` by another name
            if f"$.thinking.{field}" not in reported:
                silent.append((field, wish))
    assert silent == []


def thinking_of(asked: Request, limits: Limits, dialect: str) -> tuple[Request, list[Loss]]:
    fitting = Fitting(asked, FitTarget.of(limits, dialect), Context())
    return fit_thinking(asked, fitting), fitting.losses


@rows("most", [0, 1, 64, 1023, 1024, 1025, 4000, 8192, 32_000])
@rows("wish", ["effort max", "budget 400", "budget 4000", "budget -1", "off"])
def test_a_budget_leaves_room_for_the_answer(most, wish):
    """Anthropic refuses a budget that is not below `max_tokens`, and one below its least."""
    limits = Limits(thinking="budget", budget_min=1024, max_tokens_default=2000)
    asked = Request("m", (), thinking=WISHES[wish], max_tokens=most or None)
    thought, losses = thinking_of(asked, limits, "anthropic")
    fitted = thought.thinking
    room = most or limits.max_tokens_default
    if wish == "off":
        assert (fitted, losses) == (Thinking("off"), [])
    elif wish == "budget -1":  # as much as it likes
        assert (fitted, losses) == (WISHES[wish], [])
    elif room <= 1024:
        assert fitted == Thinking("off")
        assert ("$.thinking.mode", "thinking.mode", "dropped") in [
            (x.path, x.feature, x.action) for x in losses
        ]
    else:
        assert fitted.budget is not None
        assert fitted.mode == "on"
        assert 1024 <= fitted.budget < room
        wanted = {"effort max": 32_768, "budget 400": 1024, "budget 4000": 4000}[wish]
        assert fitted.budget == min(wanted, room - 1)
        bent = ("$.thinking.budget", "thinking.budget", "approximated")
        named = wish.startswith("budget")
        assert (bent in [(x.path, x.feature, x.action) for x in losses]) is (
            named and fitted.budget != WISHES[wish].budget
        )


def test_a_budget_needs_no_room_where_no_limit_is_demanded():
    limits = Limits(thinking="budget", budget_min=1024)
    asked = Request("m", (), thinking=Thinking("on", budget=4000), max_tokens=64)
    assert thinking_of(asked, limits, "gemini")[0] is asked


@rows(
    ("budget", "effort"),
    [
        (0, "none"),
        (1, "minimal"),
        (512, "minimal"),
        (513, "low"),
        (1999, "low"),
        (2000, "medium"),
        (8192, "medium"),
        (8193, "high"),
        (24_576, "high"),
        (24_577, "xhigh"),
        (47_999, "xhigh"),
        (48_000, "max"),
    ],
)
def test_the_effort_that_a_budget_stands_for(budget, effort):
    assert effort_of_budget(budget) == effort


@rows(
    ("effort", "budget"),
    [("minimal", 512), ("low", 1024), ("medium", 8192), ("high", 24_576), ("xhigh", 32_768), ("max", 32_768)],
)
def test_the_budget_that_an_effort_stands_for(effort, budget):
    asked = Request("m", (), thinking=Thinking(effort=effort))
    fitted, _ = thinking_of(asked, Limits(thinking="budget"), "gemini")
    assert fitted.thinking == Thinking("on", budget=budget)
    assert effort_of_budget(budget) in (effort, "xhigh")


def test_the_nearest_effort_is_the_strongest_that_is_not_above():
    assert [nearest_effort(effort, ("low", "high")) for effort in EFFORTS] == [
        "low", "low", "low", "low", "high", "high", "high"
    ]  # fmt: skip
    assert nearest_effort("medium", ("high", "low")) == "low"
    assert nearest_effort("minimal", ("none", "low")) == "low"
    assert nearest_effort("low", ("none", "high")) == "high"
    assert nearest_effort("medium", ()) == "medium"
    assert nearest_effort("low", ("none", "minimal", "low")) == "low"


@rows(
    ("asked", "fitted", "limits", "expected"),
    [
        (Thinking(), Thinking(), Limits(), False),
        (Thinking(), Thinking(), Limits(thinks_by_default=True), True),
        (Thinking("on"), Thinking(), Limits(), True),
        (Thinking("off"), Thinking(), Limits(thinks_by_default=True), False),
        (Thinking("off"), Thinking("on"), Limits(thinks_by_default=True), False),
        (Thinking("on"), Thinking("off"), Limits(thinks_by_default=True), False),
        (Thinking("on"), Thinking(effort="none"), Limits(thinks_by_default=True), False),
        (Thinking(), Thinking("auto"), Limits(), True),
        (Thinking(), Thinking(effort="low"), Limits(), True),
        (Thinking(), Thinking(budget=1), Limits(), True),
    ],
)
def test_whether_a_model_will_think(asked, fitted, limits, expected):
    assert thinks(asked, fitted, limits) is expected


def test_a_request_without_messages_is_in_no_loop():
    losses: list[Loss] = []
    asked = Request("m", (), thinking=Thinking("on"))
    assert stop_thinking_in_loop(asked, losses) is asked
    assert losses == []


def test_what_needs_no_change_is_the_same_object():
    """Nothing is made again on the hot path."""
    for limits, wish in (
        (Limits(), Thinking("on")),
        (Limits(thinking="effort"), Thinking()),
        (Limits(thinking="effort"), Thinking(effort="high")),
        (Limits(thinking="adaptive"), Thinking("auto", "high")),
        (Limits(thinking="budget"), Thinking("on", budget=4000)),
    ):
        asked = Request("m", (), thinking=wish)
        assert fit(asked, limits, Context(), CHAT).request is asked
