"""Lists of models, and counts of tokens."""

from __future__ import annotations

from typing import Final

from wireglot.probe.case import Theme
from wireglot.probe.cases.prompts import HELLO, LONG
from wireglot.probe.cases.usage import counted
from wireglot.probe.question import Question, ask
from wireglot.probe.talk import Talk
from wireglot.probe.verdict import Broken, NotApplicable
from wireglot.wire.json import encode

THEME: Final = Theme("lists", "Models and counts")
_COUNTING: Final = ("anthropic", "openai-responses", "gemini")
_ABSENT: Final = frozenset({404, 405, 501})


@THEME.case(
    "models",
    "Models are listed in the dialect's shape",
    sends="GET models",
    expects="a list with every field that its SDK reads",
    why="clients fill their menus from it",
    cost="free",
)
def models(talk: Talk) -> None:
    got = talk.get(talk.path("models"))
    if got.status in _ABSENT:
        raise NotApplicable("it lists no models")
    if got.status != 200:
        raise Broken(str(talk.refusal(got)))
    if not talk.wire.models(talk.document(got)):
        raise Broken("the list is empty")


@THEME.case(
    "listed",
    "The model that was asked for is in the list",
    sends="GET models",
    expects="its name",
    why="clients refuse names that are not listed",
    level="should",
    cost="free",
)
def listed(talk: Talk) -> None:
    got = talk.get(talk.path("models"))
    if got.status in _ABSENT:
        raise NotApplicable("it lists no models")
    names = talk.wire.models(talk.document(got))
    if talk.model.removeprefix("models/") not in names:
        raise Broken(f"{talk.model} is none of the {len(names)} that are listed")


def _count(talk: Talk, question: Question) -> int:
    body = talk.wire.count_body(talk.model, question)
    assert body is not None
    got = talk.post(encode(body), talk.path("count"))
    if got.status in _ABSENT:
        talk.learn("counts", "", False, f"status {got.status}")
        raise NotApplicable("it does not count")
    if got.status != 200:
        raise Broken(str(talk.refusal(got)))
    talk.learn("counts", "", True, "it counts")
    return talk.wire.count(talk.document(got))


@THEME.case(
    "count",
    "Tokens are counted in the dialect's shape",
    sends="a short question to the counting endpoint",
    expects="input_tokens | totalTokens above 0",
    why="clients decide by it when to compact",
    cost="free",
    dialects=_COUNTING,
)
def count(talk: Talk) -> None:
    if _count(talk, ask(HELLO)) < 1:
        raise Broken("0 tokens")


@THEME.case(
    "count-grows",
    "A longer prompt counts more",
    sends="a short and a long question",
    expects="more tokens for the long one",
    why="a made-up count keeps clients from compacting in time",
    cost="free",
    dialects=_COUNTING,
)
def count_grows(talk: Talk) -> None:
    short, long = _count(talk, ask(HELLO)), _count(talk, ask(LONG))
    if long <= short:
        raise Broken(f"{short} for a short prompt, {long} for a long one")


@THEME.case(
    "count-agrees",
    "The count agrees with the usage of an answer",
    sends="the same question counted and answered",
    expects="not more than half as much again, or half, apart",
    why="as above; counts are estimates",
    level="should",
    dialects=_COUNTING,
)
def count_agrees(talk: Talk) -> None:
    counts, used = _count(talk, ask(LONG)), counted(talk.ask(ask(LONG, most=16))).input
    if not used / 2 - 8 <= counts <= used * 1.5 + 8:
        raise Broken(f"counted {counts}, used {used}")
