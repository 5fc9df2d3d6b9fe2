"""Cases about tools: calls and their results."""

from __future__ import annotations

from typing import Any, Final

from msgspec.structs import replace

from wireglot.probe.cases.prompts import (
    CITY_SCHEMA,
    CLOCK,
    HELLO,
    ONE_CITY,
    TWO_CITIES,
    WEATHER,
    WEATHER_ASKED,
    WEATHER_FORCED,
    after,
    called,
    check_distinct,
    check_made_several,
    must_speak,
    with_results,
)
from wireglot.probe.question import (
    Called,
    Offer,
    ProbeCall,
    ProbeQuestion,
    ProbeResult,
    Results,
    Said,
    User,
    ask,
)
from wireglot.probe.reply import Broken, Inconclusive, NotApplicable, ProbeReply
from wireglot.probe.talk import Talk, Theme
from wireglot_core.wire.json import decode

TOOLS: Final = Theme("tools")
_TIME: Final = "What time is it? Call the tool get_time to find out."
_UNICODE: Final = "Zürich ☂ 東京"
_LONG_NAME: Final = "look_up-the_weather_of_a_city-with_a_name_as_long_as_allowed_0064"


def arguments_of(reply: ProbeReply) -> dict[str, Any]:
    found = decode(reply.calls[0].arguments.encode()) if reply.calls[0].arguments else {}
    if not isinstance(found, dict):
        raise Broken(f"the arguments are not an object: {reply.calls[0].arguments[:120]!r}")
    return found


def forced(talk: Talk, question: ProbeQuestion) -> ProbeReply:
    """With a tool that must be called, if the endpoint accepts that for a plain one. A further refusal is
    then due to the tool."""
    if talk.wire.has_tool_choice:
        try:
            talk.optional(WEATHER_FORCED, "tool_choices", "required")
            question = replace(question, choice="required")
        except NotApplicable:
            pass
    reply = talk.stream(question) if question.stream else talk.ask(question)
    if not reply.calls:
        reply.require_all()
        raise Inconclusive("the model did not call the tool")
    return reply


@TOOLS.case("call")
def call(talk: Talk) -> None:
    reply = called(talk, WEATHER_ASKED)
    if reply.calls[0].name != WEATHER.name:
        raise Broken(f"the model called {reply.calls[0].name!r}, which was not offered")
    if "city" not in arguments_of(reply):
        raise Broken(f"the arguments have no city: {reply.calls[0].arguments[:120]!r}")
    if reply.stop != "tool":
        raise Broken(f"the stop reason is {reply.stop_word!r}")


@TOOLS.case("id")
def call_id(talk: Talk) -> None:
    name = called(talk).calls[0].id
    if not name and not talk.wire.has_call_ids:
        raise NotApplicable("its calls have no ids")
    plain = name.replace("_", "").replace("-", "").replace(".", "").replace(":", "")
    if not plain.isalnum() or not name.isascii() or len(name) > 64:
        raise Broken(f"the id is {name!r}")


@TOOLS.case("required")
def required(talk: Talk) -> None:
    reply = talk.optional(ask(HELLO, tools=(WEATHER,), choice="required"), "tool_choices", "required")
    if not reply.calls:
        raise Broken(f"no call, but {reply.text[:80]!r}")


@TOOLS.case("named")
def named(talk: Talk) -> None:
    question = ask(ONE_CITY, tools=(WEATHER, CLOCK), named=CLOCK.name)
    reply = talk.optional(question, "tool_choices", "named")
    names = [found.name for found in reply.calls]
    if not names or set(names) != {CLOCK.name}:
        raise Broken(f"expected a call of {CLOCK.name}, found {names or 'none'}")


@TOOLS.case("none")
def none(talk: Talk) -> None:
    reply = talk.optional(replace(WEATHER_ASKED, choice="none"), "tool_choices", "none")
    if reply.calls:
        raise Broken(f"it called {reply.calls[0].name}")


@TOOLS.case("auto")
def auto(talk: Talk) -> None:
    must_speak(talk.ask(ask(HELLO, tools=(WEATHER,), choice="auto")))


@TOOLS.case("no-arguments")
def no_arguments(talk: Talk) -> None:
    reply = forced(talk, ask(_TIME, tools=(CLOCK,)))
    if reply.calls[0].name != CLOCK.name:
        raise Broken(f"the model called {reply.calls[0].name!r}")
    arguments_of(reply)


@TOOLS.case("no-arguments-stream")
def no_arguments_stream(talk: Talk) -> None:
    reply = forced(talk, ask(_TIME, tools=(CLOCK,), stream=True))
    reply.require()
    arguments_of(reply)


@TOOLS.case("parallel")
def parallel(talk: Talk) -> None:
    reply = talk.ask(ask(TWO_CITIES, tools=(WEATHER,)))
    check_made_several(reply)
    check_distinct(reply)


@TOOLS.case("parallel-off")
def parallel_off(talk: Talk) -> None:
    reply = talk.optional(ask(TWO_CITIES, tools=(WEATHER,), parallel=False), "parallel_switch")
    if len(reply.calls) > 1:
        raise Broken(f"it made {len(reply.calls)} calls")


@TOOLS.case("unicode")
def unicode(talk: Talk) -> None:
    schema = {
        "type": "object",
        "properties": {"city": {"type": "string", "enum": [_UNICODE]}},
        "required": ["city"],
    }
    question = ask(ONE_CITY, tools=(replace(WEATHER, schema=schema),))
    for reply in (forced(talk, question), forced(talk, replace(question, stream=True))):
        found = arguments_of(reply).get("city")
        if found is None or (isinstance(found, str) and found.isascii()):
            raise Inconclusive(f"the model chose {found!r}")
        if found != _UNICODE:
            raise Broken(f"expected {_UNICODE!r}, found {found!r}")


@TOOLS.case("names")
def names(talk: Talk) -> None:
    offer = Offer(_LONG_NAME[:64], "Tells the weather in a city.", CITY_SCHEMA)
    reply = forced(talk, ask("What is the weather in Paris?", tools=(offer,)))
    if reply.calls[0].name != offer.name:
        raise Broken(f"it was offered as {offer.name!r} and called as {reply.calls[0].name!r}")


@TOOLS.case("no-description")
def no_description(talk: Talk) -> None:
    forced(talk, ask(ONE_CITY, tools=(replace(WEATHER, description=""),)))


@TOOLS.case("strict")
def strict(talk: Talk) -> None:
    offer = replace(WEATHER, strict=True, schema={**CITY_SCHEMA, "additionalProperties": False})
    reply = talk.optional(ask(ONE_CITY, tools=(offer,)), "strict_tools")
    if not reply.calls:
        raise Inconclusive("the model did not call the tool")
    if list(arguments_of(reply)) != ["city"]:
        raise Broken(f"the arguments do not match the schema: {reply.calls[0].arguments[:120]!r}")


RESULTS: Final = Theme("results")
_SIGN: Final = "17.3 degrees and light rain"
_SECOND: Final = "24.8 degrees and sunshine"
_ARGUMENTS: Final = '{"city":"Paris"}'


def _reported(reply: ProbeReply, *signs: str) -> None:
    """Any model repeats numbers that it has seen."""
    must_speak(reply)
    missing = [sign for sign in signs if sign.split()[0] not in reply.text]
    if 0 < len(missing) < len(signs):
        raise Broken(f"the answer mentions one result but not {missing[0]!r}: {reply.text[:120]!r}")
    if missing and not reply.calls:
        raise Inconclusive(f"the answer does not mention {missing[0]!r}: {reply.text[:120]!r}")


def _after_call(talk: Talk, text: str, *, stream: bool = False, **form: bool) -> ProbeQuestion:
    """The model's own call unchanged, with this text as its result."""
    reply = called(talk, replace(WEATHER_FORCED, stream=stream))
    results = (ProbeResult(call, text, **form) for call in reply.calls)
    return with_results(WEATHER_FORCED, reply, *results)


@RESULTS.case("result")
def result(talk: Talk) -> None:
    _reported(talk.ask(_after_call(talk, _SIGN)), _SIGN)


@RESULTS.case("result-of-stream")
def result_of_stream(talk: Talk) -> None:
    answer = talk.stream(_after_call(talk, _SIGN, stream=True))
    answer.require()
    _reported(answer, _SIGN)


@RESULTS.case("several")
def several(talk: Talk) -> None:
    question = ask(TWO_CITIES, tools=(WEATHER,))
    reply = talk.ask(question)
    check_made_several(reply)
    results = [ProbeResult(call, text) for call, text in zip(reply.calls, (_SIGN, _SECOND), strict=False)]
    if talk.wire.name != "gemini" and all(call.id for call in reply.calls):  # without ids: paired by place
        results.reverse()
    _reported(talk.ask(with_results(question, reply, *results)), _SIGN, _SECOND)


@RESULTS.case("error")
def error(talk: Talk) -> None:
    must_speak(talk.ask(_after_call(talk, "the service is down", error=True)))


@RESULTS.case("empty")
def empty(talk: Talk) -> None:
    must_speak(talk.ask(_after_call(talk, "")))


@RESULTS.case("parts")
def parts(talk: Talk) -> None:
    _reported(talk.optional(_after_call(talk, _SIGN, parts=True), "text_parts", "tool"), _SIGN)


@RESULTS.case("picture")
def picture(talk: Talk) -> None:
    must_speak(talk.optional(_after_call(talk, _SIGN, picture=True), "tool_result_media"))


@RESULTS.case("foreign-ids")
def foreign_ids(talk: Talk) -> None:
    calls = (
        ProbeCall("get_weather_0", WEATHER.name, _ARGUMENTS),
        ProbeCall("toolu_01AbC-x_9", WEATHER.name, '{"city":"Rome"}'),
    )
    results = Results((ProbeResult(calls[0], _SIGN), ProbeResult(calls[1], _SECOND)))
    _reported(talk.ask(after(TWO_CITIES, Called(calls=calls), results)), _SIGN)


@RESULTS.case("text-and-call")
def text_and_call(talk: Talk) -> None:
    call = ProbeCall("call_1", WEATHER.name, _ARGUMENTS)
    made_up = Called("Let me look.", (call,))
    _reported(talk.ask(after(ONE_CITY, made_up, Results((ProbeResult(call, _SIGN),)))), _SIGN)


@RESULTS.case("two-rounds")
def two_rounds(talk: Talk) -> None:
    first = called(talk)
    turns = (
        *WEATHER_FORCED.turns,
        Said(tuple(first.items)),
        Results(tuple(ProbeResult(call, _SIGN) for call in first.calls)),
        Called("It rains."),
        User(("And what is the weather in Rome? Call the tool get_weather to find out.",)),
    )
    question = replace(WEATHER_FORCED, turns=turns)
    second = called(talk, question)
    both = [call.id for call in (*first.calls, *second.calls) if call.id]
    if len(set(both)) < len(both):
        raise Broken(f"calls of two turns have the same id: {both}")
    results = Results(tuple(ProbeResult(call, _SECOND) for call in second.calls))
    last = ProbeQuestion(turns=(*turns, Said(tuple(second.items)), results), tools=(WEATHER,))
    must_speak(talk.ask(last))


@RESULTS.case("orphan")
def orphan(talk: Talk) -> None:
    call = ProbeCall("call_nowhere", WEATHER.name, _ARGUMENTS)
    got = talk.send(
        ProbeQuestion(turns=(User((ONE_CITY,)), Results((ProbeResult(call, _SIGN),))), tools=(WEATHER,))
    )
    if got.status != 200 and not 400 <= talk.refusal(got).status < 500:
        raise Broken(f"status {got.status}")
