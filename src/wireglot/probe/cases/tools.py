"""Tool calls: choices, shapes, and what comes back in the arguments."""

from __future__ import annotations

from typing import Any, Final

from msgspec.structs import replace

from wireglot.probe.case import Theme
from wireglot.probe.cases.prompts import (
    CITY_SCHEMA,
    CLOCK,
    HELLO,
    ONE_CITY,
    TWO_CITIES,
    WEATHER,
    WEATHER_ASKED,
    WEATHER_FORCED,
    called,
)
from wireglot.probe.cases.several_calls import check_made_several, check_told_apart
from wireglot.probe.question import Offer, Question, ask
from wireglot.probe.reply import Reply
from wireglot.probe.talk import Talk
from wireglot.probe.verdict import Broken, Inconclusive, NotApplicable
from wireglot.wire.json import decode

THEME: Final = Theme("tools", "Tool calls")
_TIME: Final = "What time is it? Call the tool get_time to find out."
_UNICODE: Final = "Zürich ☂ 東京"
_LONG_NAME: Final = "look_up-the_weather_of_a_city-with_a_name_as_long_as_allowed_0064"


def arguments_of(reply: Reply) -> dict[str, Any]:
    found = decode(reply.calls[0].arguments.encode()) if reply.calls[0].arguments else {}
    if not isinstance(found, dict):
        raise Broken(f"the arguments are no object: {reply.calls[0].arguments[:120]!r}")
    return found


def forced(talk: Talk, question: Question) -> Reply:
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


@THEME.case(
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


@THEME.case(
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


@THEME.case(
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


@THEME.case(
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


@THEME.case(
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


@THEME.case(
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


@THEME.case(
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


@THEME.case(
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


@THEME.case(
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


@THEME.case(
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


@THEME.case(
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


@THEME.case(
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


@THEME.case(
    "no-description",
    "A tool without a description is taken",
    sends="a tool with a name and a schema only",
    expects="a call",
    why="the description is optional in every dialect",
)
def no_description(talk: Talk) -> None:
    forced(talk, ask(ONE_CITY, tools=(replace(WEATHER, description=""),)))


@THEME.case(
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
