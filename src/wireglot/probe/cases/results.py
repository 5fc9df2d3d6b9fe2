"""Results of tools, and ids over turns."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from wireglot.probe.case import Theme
from wireglot.probe.cases.prompts import (
    ONE_CITY,
    TWO_CITIES,
    WEATHER,
    WEATHER_FORCED,
    after,
    called,
    must_speak,
    with_results,
)
from wireglot.probe.question import Call, Called, Question, Result, Results, Said, User, ask
from wireglot.probe.reply import Reply
from wireglot.probe.talk import Talk
from wireglot.probe.verdict import Broken, Inconclusive

THEME: Final = Theme("results", "Results of tools, and ids over turns")
_SIGN: Final = "17.3 degrees and light rain"
_SECOND: Final = "24.8 degrees and sunshine"
_ARGUMENTS: Final = '{"city":"Paris"}'


def _told(reply: Reply, *signs: str) -> None:
    """Numbers are repeated by any model that has seen them."""
    must_speak(reply)
    missing = [sign for sign in signs if sign.split()[0] not in reply.text]
    if 0 < len(missing) < len(signs):
        raise Broken(f"the answer speaks of one result and not of {missing[0]!r}: {reply.text[:120]!r}")
    if missing and not reply.calls:
        raise Inconclusive(f"the answer does not speak of {missing[0]!r}: {reply.text[:120]!r}")


@THEME.case(
    "result",
    "A call and its result come back, and the model goes on",
    sends="the model's own call as it came, with its result",
    expects="an answer that speaks of the result",
    why="the loop of every agent; ids must be taken back as they were given",
    cost="medium",
)
def result(talk: Talk) -> None:
    reply = called(talk)
    results = [Result(call, _SIGN) for call in reply.calls]
    _told(talk.ask(with_results(WEATHER_FORCED, reply, *results)), _SIGN)


@THEME.case(
    "result-of-stream",
    "The same with a call that was streamed",
    sends="the call as a client puts it together from a stream, with its result, streamed again",
    expects="an answer in good order",
    why="what streams say and what requests take must agree",
    cost="medium",
)
def result_of_stream(talk: Talk) -> None:
    reply = called(talk, replace(WEATHER_FORCED, stream=True))
    results = [Result(call, _SIGN) for call in reply.calls]
    answer = talk.stream(with_results(WEATHER_FORCED, reply, *results))
    answer.require()
    _told(answer, _SIGN)


@THEME.case(
    "several",
    "Several results in one turn are all taken",
    sends="two calls of one turn and their two results, in the other order",
    expects="an answer that speaks of both",
    why="a gateway that keeps only the last result loses half of the work",
    cost="medium",
)
def several(talk: Talk) -> None:
    question = ask(TWO_CITIES, tools=(WEATHER,))
    reply = talk.ask(question)
    if len(reply.calls) < 2:
        raise Inconclusive(f"the model made {len(reply.calls)} calls")
    results = [Result(call, text) for call, text in zip(reply.calls, (_SIGN, _SECOND), strict=False)]
    if talk.wire.name != "gemini":  # it pairs by place where there are no ids
        results.reverse()
    _told(talk.ask(with_results(question, reply, *results)), _SIGN, _SECOND)


@THEME.case(
    "error",
    "A tool that failed may be told",
    sends="a call and a result that is an error (is_error, an error text, response.error)",
    expects="an answer",
    why="tools fail every day",
    cost="medium",
)
def error(talk: Talk) -> None:
    reply = called(talk)
    results = [Result(call, "the service is down", error=True) for call in reply.calls]
    must_speak(talk.ask(with_results(WEATHER_FORCED, reply, *results)))


@THEME.case(
    "empty",
    "A tool may say nothing",
    sends="a call and an empty result",
    expects="an answer",
    why="`touch x` prints nothing; endpoints that demand a text break agents",
    cost="medium",
)
def empty(talk: Talk) -> None:
    reply = called(talk)
    must_speak(talk.ask(with_results(WEATHER_FORCED, reply, *(Result(call, "") for call in reply.calls))))


@THEME.case(
    "parts",
    "A result may be a list of text parts",
    sends="a call and its result as parts",
    expects="an answer that speaks of it",
    why="Claude Code and MCP clients send lists",
    cost="medium",
    dialects=("anthropic", "openai-chat", "openai-responses"),
)
def parts(talk: Talk) -> None:
    reply = called(talk)
    results = [Result(call, _SIGN, parts=True) for call in reply.calls]
    _told(talk.optional(with_results(WEATHER_FORCED, reply, *results), "text_parts", "tool"), _SIGN)


@THEME.case(
    "picture",
    "A result may hold a picture",
    sends="a call and a result with a text and a small PNG",
    expects="an answer, or a refusal in good order",
    why="screenshots of browsers and readers of files",
    cost="medium",
    dialects=("anthropic", "openai-responses", "gemini"),
)
def picture(talk: Talk) -> None:
    reply = called(talk)
    results = [Result(call, _SIGN, picture=True) for call in reply.calls]
    must_speak(talk.optional(with_results(WEATHER_FORCED, reply, *results), "tool_result_media"))


@THEME.case(
    "foreign-ids",
    "Calls with ids from elsewhere are taken",
    sends="a history whose calls have the ids `get_weather_0` and `toolu_01AbC-x_9`",
    expects="an answer",
    why="a conversation that changes its provider brings such ids along (R-A-12)",
)
def foreign_ids(talk: Talk) -> None:
    calls = (
        Call("get_weather_0", WEATHER.name, _ARGUMENTS),
        Call("toolu_01AbC-x_9", WEATHER.name, '{"city":"Rome"}'),
    )
    results = Results((Result(calls[0], _SIGN), Result(calls[1], _SECOND)))
    _told(talk.ask(after(TWO_CITIES, Called(calls=calls), results)), _SIGN)


@THEME.case(
    "text-and-call",
    "A turn may have text and calls",
    sends="a history in which the model spoke before it called",
    expects="an answer",
    why="most models say what they are about to do",
)
def text_and_call(talk: Talk) -> None:
    call = Call("call_1", WEATHER.name, _ARGUMENTS)
    made_up = Called("Let me look.", (call,))
    _told(talk.ask(after(ONE_CITY, made_up, Results((Result(call, _SIGN),)))), _SIGN)


@THEME.case(
    "two-rounds",
    "Calls of two rounds keep their ids apart",
    sends="a call, its result, a second question, its call and its result",
    expects="an answer; the second call has another id than the first",
    why="ids that begin anew in each turn (`tool_0`) collide in the history",
    cost="medium",
)
def two_rounds(talk: Talk) -> None:
    first = called(talk)
    turns = (
        *WEATHER_FORCED.turns,
        Said(tuple(first.items)),
        Results(tuple(Result(call, _SIGN) for call in first.calls)),
        Called("It rains."),
        User(("And what is the weather in Rome? Call the tool get_weather to find out.",)),
    )
    question = replace(WEATHER_FORCED, turns=turns)
    second = called(talk, question)
    both = [call.id for call in (*first.calls, *second.calls) if call.id]
    if len(set(both)) < len(both):
        raise Broken(f"calls of two turns have one id: {both}")
    results = Results(tuple(Result(call, _SECOND) for call in second.calls))
    last = Question(turns=(*turns, Said(tuple(second.items)), results), tools=(WEATHER,))
    must_speak(talk.ask(last))


@THEME.case(
    "orphan",
    "A result without its call is refused in good order, or left out",
    sends="a result whose call is nowhere",
    expects="an error of the dialect with a status from 400 to 499, or an answer; not a 5xx",
    why="clients that cut their history send such things; a 500 makes them ask again for ever",
    level="should",
)
def orphan(talk: Talk) -> None:
    call = Call("call_nowhere", WEATHER.name, _ARGUMENTS)
    got = talk.send(Question(turns=(User((ONE_CITY,)), Results((Result(call, _SIGN),))), tools=(WEATHER,)))
    if got.status != 200 and not 400 <= talk.refusal(got).status < 500:
        raise Broken(f"status {got.status}")
