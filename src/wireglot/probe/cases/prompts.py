"""Prompts of the cases: questions that any model can answer, and that the demo model understands."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from wireglot.probe.question import Called, Offer, ProbeQuestion, ProbeResult, Results, Said, User, ask
from wireglot.probe.reply import Broken, Inconclusive, ProbeReply
from wireglot.probe.talk import Refused, Talk

HELLO: Final = "Say hello in one short sentence."
WORDS: Final = "red orange yellow green blue"
EXACT: Final = f"Reply with exactly this and nothing else: {WORDS}"
LONG: Final = (
    "Write two hundred words about rivers: where they begin, what they carry, who lives beside them, what "
    "they are called in three languages, and how they end in the sea."
)
ONE_CITY: Final = "What is the weather in Paris? Call the tool get_weather to find out."
TWO_CITIES: Final = (
    "What is the weather in Paris and in Rome? Call the tool get_weather once for each city, both at once."
)
CITY_SCHEMA: Final = {
    "type": "object",
    "properties": {"city": {"type": "string", "description": "The name of the city"}},
    "required": ["city"],
}
WEATHER: Final = Offer("get_weather", "Tells the weather in a city.", CITY_SCHEMA)
CLOCK: Final = Offer("get_time", "Tells the time. It takes no arguments.")
SYSTEM: Final = "You are a patient assistant of a small harbour office, who answers briefly and politely."

WEATHER_ASKED: Final = ask(ONE_CITY, tools=(WEATHER,))
WEATHER_FORCED: Final = ask(ONE_CITY, tools=(WEATHER,), choice="required")


def called(talk: Talk, question: ProbeQuestion = WEATHER_FORCED) -> ProbeReply:
    """An answer with at least one call. If an endpoint refuses the tool choice, the request is repeated
    without it."""
    try:
        reply = talk.stream(question) if question.stream else talk.ask(question)
    except Refused:
        reply = talk.ask(WEATHER_ASKED)
    if not reply.calls:
        reply.require_all()
        raise Inconclusive("the model did not call the tool")
    return reply


def with_results(question: ProbeQuestion, reply: ProbeReply, *results: ProbeResult) -> ProbeQuestion:
    """The request again, with the model's turn unchanged and the results of its tools. A choice that forces a
    call is left out: with it the model would never answer in text."""
    turns = (*question.turns, Said(tuple(reply.items)), Results(results))
    return replace(question, turns=turns, choice="", named="", stream=False)


def after(text: str, made_up: Called, results: Results) -> ProbeQuestion:
    return ProbeQuestion(turns=(User((text,)), made_up, results), tools=(WEATHER,))


def must_speak(reply: ProbeReply) -> None:
    if not reply.text.strip() and not reply.calls:
        raise Broken("the answer has neither text nor calls")


def check_made_several(reply: ProbeReply) -> None:
    if len(reply.calls) < 2:
        raise Inconclusive(f"the model made {len(reply.calls)} calls")


def check_distinct(reply: ProbeReply) -> None:
    """Neither ids nor arguments may be equal."""
    names = [found.id for found in reply.calls if found.id]
    if len(set(names)) < len(names):
        raise Broken(f"two calls have the same id: {names}")
    if reply.calls[0].arguments == reply.calls[1].arguments:
        raise Broken(f"both calls have the arguments {reply.calls[0].arguments!r}")
