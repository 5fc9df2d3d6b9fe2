"""What each vendor is asked: a dozen requests that between them use what agents use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from wireglot.probe.cases.prompts import (
    CITY_SCHEMA,
    EXACT,
    HELLO,
    LONG,
    ONE_CITY,
    SYSTEM,
    TWO_CITIES,
    WEATHER,
    called,
    must_speak,
    with_results,
)
from wireglot.probe.question import ProbeQuestion, ProbeResult, User, ask
from wireglot.probe.reply import Broken
from wireglot.probe.talk import Talk


class Scenario(msgspec.Struct, frozen=True):
    """`run` raises as the check of a probe's case does."""

    name: str
    run: Callable[[Talk], object]
    compared: bool = True
    """False: the scripted upstream accepts any key and any model, and has no such answer."""


def _whole(talk: Talk) -> None:
    must_speak(talk.ask(ask(HELLO, system=(SYSTEM,))))


def _stream(talk: Talk) -> None:
    reply = talk.stream(ask(EXACT, system=(SYSTEM,), stream=True))
    reply.require()
    must_speak(reply)


def _tool(talk: Talk) -> None:
    called(talk)


def _tool_stream(talk: Talk) -> None:
    reply = talk.stream(ask(ONE_CITY, tools=(WEATHER,), stream=True))
    reply.require()
    must_speak(reply)


def _tools_at_once(talk: Talk) -> None:
    must_speak(talk.ask(ask(TWO_CITIES, tools=(WEATHER,))))


def _result(talk: Talk) -> None:
    question = ask(ONE_CITY, tools=(WEATHER,))
    reply = called(talk, question)
    results = (ProbeResult(call, "17.3 degrees and rain") for call in reply.calls)
    must_speak(talk.ask(with_results(question, reply, *results)))


def _thinking(talk: Talk) -> None:
    must_speak(talk.think(ask(HELLO)))


def _thinking_stream(talk: Talk) -> None:
    reply = talk.think(ask(HELLO, stream=True))
    reply.require()
    must_speak(reply)


def _picture(talk: Talk) -> None:
    turn = User(("Which colour has this picture? Answer with one word.",), picture=True)
    must_speak(talk.optional(ProbeQuestion(turns=(turn,)), "picture"))


def _schema(talk: Talk) -> None:
    schema = {**CITY_SCHEMA, "additionalProperties": False}
    must_speak(talk.optional(ask("Name a city in France.", schema=schema), "schema"))


def _cut(talk: Talk) -> None:
    reply = talk.ask(ask(LONG, most=32))
    if reply.stop != "length":
        raise Broken(f"an answer cut by the limit of tokens ends with {reply.stop_word!r}")


def _unknown_model(talk: Talk) -> None:
    name = "wireglot-no-such-model"
    operation = talk.path("generate", name)
    body = msgspec.json.encode(talk.wire.body(name, ask(HELLO)))
    talk.refusal(talk.post(body, operation))


def _bad_field(talk: Talk) -> None:
    body = {**talk.wire.body(talk.model, ask(HELLO)), talk.wire.turns: 17}
    talk.refusal(talk.post(msgspec.json.encode(body), talk.path("generate")))


def _wrong_key(talk: Talk) -> None:
    body = msgspec.json.encode(talk.wire.body(talk.model, ask(HELLO)))
    talk.refusal(talk.post(body, talk.path("generate"), key="wireglot-no-such-key"))


SCENARIOS: Final = (
    Scenario("a whole answer", _whole),
    Scenario("a stream", _stream),
    Scenario("a tool call", _tool),
    Scenario("a streamed tool call", _tool_stream),
    Scenario("two calls at once", _tools_at_once),
    Scenario("a tool's result", _result),
    Scenario("thinking", _thinking),
    Scenario("streamed thinking", _thinking_stream),
    Scenario("a picture", _picture),
    Scenario("a schema", _schema),
    Scenario("an answer cut by its limit", _cut),
    Scenario("an unknown model", _unknown_model, compared=False),
    Scenario("a field of the wrong type", _bad_field),
    Scenario("a wrong key", _wrong_key, compared=False),
)
