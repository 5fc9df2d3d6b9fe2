"""The grammar of streams, a rule a case."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from msgspec.structs import replace

from wireglot.probe.cases.prompts import (
    EXACT,
    HELLO,
    LONG,
    ONE_CITY,
    TWO_CITIES,
    WEATHER,
    WEATHER_FORCED,
    WORDS,
    called,
    check_distinct,
    check_made_several,
)
from wireglot.probe.question import ask
from wireglot.probe.reply import Broken, Inconclusive, NotApplicable, Rule
from wireglot.probe.talk import INVALID, Talk, Theme
from wireglot_core.wire.json import encode

STREAMS: Final = Theme("streams")
_STREAMED: Final = replace(WEATHER_FORCED, stream=True)


@STREAMS.case("content-type")
def content_type(talk: Talk) -> None:
    talk.stream(ask(HELLO))
    kind, expected = talk.exchanges[-1].kind, talk.wire.stream_type
    if not kind.lower().startswith(expected):
        raise Broken(f"content-type: expected {expected}, found {kind or 'none'}")


def _text_keeps(rule: Rule, talk: Talk) -> None:
    talk.stream(ask(HELLO)).require(rule)


def _call_keeps(rule: Rule, talk: Talk) -> None:
    called(talk, _STREAMED).require(rule)


def _call_is_indexed(rule: Rule, talk: Talk) -> None:
    reply = called(talk, _STREAMED)
    if not reply.has_indexes:
        raise NotApplicable("its calls have no index")
    reply.require(rule)


def _both_keep(rule: Rule, talk: Talk) -> None:
    _text_keeps(rule, talk)
    _call_keeps(rule, talk)


_RULES: Final[dict[Rule, Callable[[Rule, Talk], None]]] = {
    "frames": _text_keeps,
    "opening": _text_keeps,
    "order": _text_keeps,
    "ending": _text_keeps,
    "indexes": _call_is_indexed,
    "identity": _call_keeps,
    "nulls": _both_keep,
}
for _rule, _keeps in _RULES.items():
    STREAMS.case(_rule)(partial(_keeps, _rule))


@STREAMS.case("text")
def text(talk: Talk) -> None:
    reply, whole = talk.stream(ask(EXACT)), talk.ask(ask(EXACT)).text
    reply.require("order")
    said = reply.text
    if said.strip() == whole.strip() and WORDS in said:
        return
    if whole.strip() == WORDS and set(said.split()) <= set(WORDS.split()):
        raise Broken(f"the deltas join to {said[:80]!r}, the whole answer was {whole[:80]!r}")
    raise Inconclusive(f"the model said {said[:80]!r}")


@STREAMS.case("pieces")
def pieces(talk: Talk) -> None:
    reply = talk.stream(ask(LONG, most=300))
    if len(reply.text) < 100:
        raise Inconclusive(f"the model said only {reply.text!r}")
    if reply.pieces < 2:
        raise Broken(f"{len(reply.text)} characters arrived in {reply.pieces} piece")


@STREAMS.case("call")
def call(talk: Talk) -> None:
    reply = called(talk, _STREAMED)
    reply.require("calls")
    if '"city"' not in reply.calls[0].arguments:
        raise Broken(f"the arguments have no city: {reply.calls[0].arguments[:120]!r}")


@STREAMS.case("call-grammar")
def call_grammar(talk: Talk) -> None:
    reply = called(talk, _STREAMED)
    reply.require()
    if reply.stop != "tool":
        raise Broken(f"the stop reason is {reply.stop_word!r} (R-AJ-11)")


@STREAMS.case("parallel")
def parallel(talk: Talk) -> None:
    reply = talk.stream(ask(TWO_CITIES, tools=(WEATHER,)))
    check_made_several(reply)
    reply.require()
    check_distinct(reply)


@STREAMS.case("usage")
def usage(talk: Talk) -> None:
    reply = talk.stream(ask(HELLO))
    reply.require("usage")
    if reply.usage is None:
        raise Broken("no usage was reported")


@STREAMS.case("usage-unasked")
def usage_unasked(talk: Talk) -> None:
    talk.stream(ask(HELLO, usage=False)).require("usage")


@STREAMS.case("refusal")
def refusal(talk: Talk) -> None:
    body = talk.wire.body(talk.model, ask(ONE_CITY, stream=True))
    if talk.wire.requires_turns:
        del body[talk.wire.turns]
    else:
        body[talk.wire.turns] = 17
    talk.refuses(talk.post(encode(body), talk.path("stream")), *INVALID)
