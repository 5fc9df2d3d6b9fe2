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
    check_made_several,
    check_told_apart,
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
from wireglot.wire.json import decode

TOOLS: Final = Theme("tools", "Tool calls")
_TIME: Final = "What time is it? Call the tool get_time to find out."
_UNICODE: Final = "Zürich ☂ 東京"
_LONG_NAME: Final = "look_up-the_weather_of_a_city-with_a_name_as_long_as_allowed_0064"


def arguments_of(reply: ProbeReply) -> dict[str, Any]:
    found = decode(reply.calls[0].arguments.encode()) if reply.calls[0].arguments else {}
    if not isinstance(found, dict):
        raise Broken(f"the arguments are no object: {reply.calls[0].arguments[:120]!r}")
    return found


def forced(talk: Talk, question: ProbeQuestion) -> ProbeReply:
    """With a tool that must be called, where the endpoint takes that of a plain one. What else is refused
    then is refused for the tool's sake."""
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


@TOOLS.case(
    "call",
    "A model that is offered a tool calls it",
    sends="a question for the weather with the tool get_weather",
    expects="a call with id, name and arguments that are a JSON object with the city; a stop reason that "
    "tells of it",
    why="agents go on only if the stop reason is tool_use, tool_calls or a function_call item",
)
def call(talk: Talk) -> None:
    reply = called(talk, WEATHER_ASKED)
    if reply.calls[0].name != WEATHER.name:
        raise Broken(f"the model called {reply.calls[0].name!r}, which was not offered")
    if "city" not in arguments_of(reply):
        raise Broken(f"the arguments have no city: {reply.calls[0].arguments[:120]!r}")
    if reply.stop != "tool":
        raise Broken(f"the stop reason is {reply.stop_word!r}")


@TOOLS.case(
    "id",
    "A call has an id to answer to",
    sends="a question for the weather with the tool get_weather",
    expects="an id of letters, digits, _ and -, at most 64 characters",
    why="it is the only link to the result; other characters are refused when it comes back",
    dialects=("anthropic", "openai-chat", "openai-responses"),
)
def call_id(talk: Talk) -> None:
    name = called(talk).calls[0].id
    plain = name.replace("_", "").replace("-", "").replace(".", "").replace(":", "")
    if not plain.isalnum() or not name.isascii() or len(name) > 64:
        raise Broken(f"the id is {name!r}")


@TOOLS.case(
    "required",
    "A model that must call a tool does",
    sends="a greeting with the choice any | required | ANY",
    expects="a call",
    why="structured output by tools, routers and planners depend on it",
)
def required(talk: Talk) -> None:
    reply = talk.optional(ask(HELLO, tools=(WEATHER,), choice="required"), "tool_choices", "required")
    if not reply.calls:
        raise Broken(f"no call, but {reply.text[:80]!r}")


@TOOLS.case(
    "named",
    "A model that must call one of two tools calls that one",
    sends="a question for the weather with two tools, and a choice that names the other one",
    expects="a call of the named tool",
    why="a gateway that turns a named choice into `required` calls the wrong tool",
)
def named(talk: Talk) -> None:
    question = ask(ONE_CITY, tools=(WEATHER, CLOCK), named=CLOCK.name)
    reply = talk.optional(question, "tool_choices", "named")
    names = [found.name for found in reply.calls]
    if not names or set(names) != {CLOCK.name}:
        raise Broken(f"expected a call of {CLOCK.name}, found {names or 'none'}")


@TOOLS.case(
    "none",
    "A model that must not call a tool does not",
    sends="a question for the weather with the tool and the choice none",
    expects="text and no call",
    why="agents ask for a last summary so",
)
def none(talk: Talk) -> None:
    reply = talk.optional(replace(WEATHER_ASKED, choice="none"), "tool_choices", "none")
    if reply.calls:
        raise Broken(f"it called {reply.calls[0].name}")


@TOOLS.case(
    "auto",
    "The choice auto may be said",
    sends="a greeting with a tool and the choice auto",
    expects="an answer, with or without a call",
    why="most agents say the default",
)
def auto(talk: Talk) -> None:
    reply = talk.ask(ask(HELLO, tools=(WEATHER,), choice="auto"))
    if not reply.text.strip() and not reply.calls:
        raise Broken("the answer has neither text nor calls")


@TOOLS.case(
    "no-arguments",
    "A tool without parameters is called with an empty object",
    sends="a question for the time with a tool that declares no parameters, as the dialect allows it",
    expects="a call whose arguments are `{}` (Chat and Responses: or an empty text)",
    why="null or a missing input breaks the SDKs' parsers",
)
def no_arguments(talk: Talk) -> None:
    reply = forced(talk, ask(_TIME, tools=(CLOCK,)))
    if reply.calls[0].name != CLOCK.name:
        raise Broken(f"the model called {reply.calls[0].name!r}")
    arguments_of(reply)


@TOOLS.case(
    "no-arguments-stream",
    "The same in a stream",
    sends="the same question, streamed",
    expects="no pieces, or pieces that make `{}`",
    why="an input block without deltas must still be an object (R-AJ-06)",
)
def no_arguments_stream(talk: Talk) -> None:
    reply = forced(talk, ask(_TIME, tools=(CLOCK,), stream=True))
    reply.require()
    arguments_of(reply)


@TOOLS.case(
    "parallel",
    "Several calls in one turn have each their own id",
    sends="a question for the weather of two cities",
    expects="two calls, two ids, two different arguments",
    why="results are matched by id",
)
def parallel(talk: Talk) -> None:
    reply = talk.ask(ask(TWO_CITIES, tools=(WEATHER,)))
    check_made_several(reply)
    check_told_apart(reply)


@TOOLS.case(
    "parallel-off",
    "Parallel calls can be switched off",
    sends="a question for two cities with disable_parallel_tool_use | parallel_tool_calls: false",
    expects="at most one call",
    why="tools that change something are run one after another",
    dialects=("anthropic", "openai-chat", "openai-responses"),
    excuses=("parallel_tools",),
)
def parallel_off(talk: Talk) -> None:
    reply = talk.optional(ask(TWO_CITIES, tools=(WEATHER,), parallel=False), "parallel_switch")
    if len(reply.calls) > 1:
        raise Broken(f"it made {len(reply.calls)} calls")


@TOOLS.case(
    "unicode",
    "Arguments keep letters of every script",
    sends="a tool whose only parameter has one possible value, with umlauts, symbols and Japanese",
    expects="exactly that value, whole and streamed",
    why="escapes that are doubled or cut inside a character corrupt file names and code",
)
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


@TOOLS.case(
    "names",
    "A tool's name comes back as it was",
    sends="a tool with a name of 64 letters, digits, _ and -",
    expects="a call of exactly that name",
    why="names that are cut or rewritten on the way are unknown to the client",
)
def names(talk: Talk) -> None:
    offer = Offer(_LONG_NAME[:64], "Tells the weather in a city.", CITY_SCHEMA)
    reply = forced(talk, ask("What is the weather in Paris?", tools=(offer,)))
    if reply.calls[0].name != offer.name:
        raise Broken(f"it was offered as {offer.name!r} and called as {reply.calls[0].name!r}")


@TOOLS.case(
    "no-description",
    "A tool without a description is taken",
    sends="a tool with a name and a schema only",
    expects="a call",
    why="the description is optional in every dialect",
)
def no_description(talk: Talk) -> None:
    forced(talk, ask(ONE_CITY, tools=(replace(WEATHER, description=""),)))


@TOOLS.case(
    "strict",
    "A strict tool is taken",
    sends="a tool with strict: true and a closed schema",
    expects="a call that fits, or a refusal in good order",
    why="the Agents SDK and others mark all tools so",
    dialects=("anthropic", "openai-chat", "openai-responses"),
)
def strict(talk: Talk) -> None:
    offer = replace(WEATHER, strict=True, schema={**CITY_SCHEMA, "additionalProperties": False})
    reply = talk.optional(ask(ONE_CITY, tools=(offer,)), "strict_tools")
    if not reply.calls:
        raise Inconclusive("the model did not call the tool")
    if list(arguments_of(reply)) != ["city"]:
        raise Broken(f"the arguments do not fit the schema: {reply.calls[0].arguments[:120]!r}")


RESULTS: Final = Theme("results", "Results of tools, and ids over turns")
_SIGN: Final = "17.3 degrees and light rain"
_SECOND: Final = "24.8 degrees and sunshine"
_ARGUMENTS: Final = '{"city":"Paris"}'


def _told(reply: ProbeReply, *signs: str) -> None:
    """Numbers are repeated by any model that has seen them."""
    must_speak(reply)
    missing = [sign for sign in signs if sign.split()[0] not in reply.text]
    if 0 < len(missing) < len(signs):
        raise Broken(f"the answer speaks of one result and not of {missing[0]!r}: {reply.text[:120]!r}")
    if missing and not reply.calls:
        raise Inconclusive(f"the answer does not speak of {missing[0]!r}: {reply.text[:120]!r}")


@RESULTS.case(
    "result",
    "A call and its result come back, and the model goes on",
    sends="the model's own call as it came, with its result",
    expects="an answer that speaks of the result",
    why="the loop of every agent; ids must be taken back as they were given",
    cost="medium",
)
def result(talk: Talk) -> None:
    reply = called(talk)
    results = [ProbeResult(call, _SIGN) for call in reply.calls]
    _told(talk.ask(with_results(WEATHER_FORCED, reply, *results)), _SIGN)


@RESULTS.case(
    "result-of-stream",
    "The same with a call that was streamed",
    sends="the call as a client puts it together from a stream, with its result, streamed again",
    expects="an answer in good order",
    why="what streams say and what requests take must agree",
    cost="medium",
)
def result_of_stream(talk: Talk) -> None:
    reply = called(talk, replace(WEATHER_FORCED, stream=True))
    results = [ProbeResult(call, _SIGN) for call in reply.calls]
    answer = talk.stream(with_results(WEATHER_FORCED, reply, *results))
    answer.require()
    _told(answer, _SIGN)


@RESULTS.case(
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
    results = [ProbeResult(call, text) for call, text in zip(reply.calls, (_SIGN, _SECOND), strict=False)]
    if talk.wire.name != "gemini":  # it pairs by place where there are no ids
        results.reverse()
    _told(talk.ask(with_results(question, reply, *results)), _SIGN, _SECOND)


@RESULTS.case(
    "error",
    "A tool that failed may be told",
    sends="a call and a result that is an error (is_error, an error text, response.error)",
    expects="an answer",
    why="tools fail every day",
    cost="medium",
)
def error(talk: Talk) -> None:
    reply = called(talk)
    results = [ProbeResult(call, "the service is down", error=True) for call in reply.calls]
    must_speak(talk.ask(with_results(WEATHER_FORCED, reply, *results)))


@RESULTS.case(
    "empty",
    "A tool may say nothing",
    sends="a call and an empty result",
    expects="an answer",
    why="`touch x` prints nothing; endpoints that demand a text break agents",
    cost="medium",
)
def empty(talk: Talk) -> None:
    reply = called(talk)
    must_speak(
        talk.ask(with_results(WEATHER_FORCED, reply, *(ProbeResult(call, "") for call in reply.calls)))
    )


@RESULTS.case(
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
    results = [ProbeResult(call, _SIGN, parts=True) for call in reply.calls]
    _told(talk.optional(with_results(WEATHER_FORCED, reply, *results), "text_parts", "tool"), _SIGN)


@RESULTS.case(
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
    results = [ProbeResult(call, _SIGN, picture=True) for call in reply.calls]
    must_speak(talk.optional(with_results(WEATHER_FORCED, reply, *results), "tool_result_media"))


@RESULTS.case(
    "foreign-ids",
    "Calls with ids from elsewhere are taken",
    sends="a history whose calls have the ids `get_weather_0` and `toolu_01AbC-x_9`",
    expects="an answer",
    why="a conversation that changes its provider brings such ids along (R-A-12)",
)
def foreign_ids(talk: Talk) -> None:
    calls = (
        ProbeCall("get_weather_0", WEATHER.name, _ARGUMENTS),
        ProbeCall("toolu_01AbC-x_9", WEATHER.name, '{"city":"Rome"}'),
    )
    results = Results((ProbeResult(calls[0], _SIGN), ProbeResult(calls[1], _SECOND)))
    _told(talk.ask(after(TWO_CITIES, Called(calls=calls), results)), _SIGN)


@RESULTS.case(
    "text-and-call",
    "A turn may have text and calls",
    sends="a history in which the model spoke before it called",
    expects="an answer",
    why="most models say what they are about to do",
)
def text_and_call(talk: Talk) -> None:
    call = ProbeCall("call_1", WEATHER.name, _ARGUMENTS)
    made_up = Called("Let me look.", (call,))
    _told(talk.ask(after(ONE_CITY, made_up, Results((ProbeResult(call, _SIGN),)))), _SIGN)


@RESULTS.case(
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
        Results(tuple(ProbeResult(call, _SIGN) for call in first.calls)),
        Called("It rains."),
        User(("And what is the weather in Rome? Call the tool get_weather to find out.",)),
    )
    question = replace(WEATHER_FORCED, turns=turns)
    second = called(talk, question)
    both = [call.id for call in (*first.calls, *second.calls) if call.id]
    if len(set(both)) < len(both):
        raise Broken(f"calls of two turns have one id: {both}")
    results = Results(tuple(ProbeResult(call, _SECOND) for call in second.calls))
    last = ProbeQuestion(turns=(*turns, Said(tuple(second.items)), results), tools=(WEATHER,))
    must_speak(talk.ask(last))


@RESULTS.case(
    "orphan",
    "A result without its call is refused in good order, or left out",
    sends="a result whose call is nowhere",
    expects="an error of the dialect with a status from 400 to 499, or an answer; not a 5xx",
    why="clients that cut their history send such things; a 500 makes them ask again for ever",
    level="should",
)
def orphan(talk: Talk) -> None:
    call = ProbeCall("call_nowhere", WEATHER.name, _ARGUMENTS)
    got = talk.send(
        ProbeQuestion(turns=(User((ONE_CITY,)), Results((ProbeResult(call, _SIGN),))), tools=(WEATHER,))
    )
    if got.status != 200 and not 400 <= talk.refusal(got).status < 500:
        raise Broken(f"status {got.status}")
