"""Arithmetic of tokens."""

from __future__ import annotations

from typing import Final

from wireglot.probe.case import Theme
from wireglot.probe.cases.prompts import EXACT, HELLO, LONG, WEATHER, WEATHER_FORCED, called, with_results
from wireglot.probe.question import Called, Question, Result, User, ask
from wireglot.probe.reply import Counted, Reply
from wireglot.probe.talk import Talk
from wireglot.probe.verdict import Broken, Inconclusive, NotApplicable

THEME: Final = Theme("usage", "Usage")
_HISTORY: Final = Question(
    turns=(User((LONG,)), Called("Rivers begin in the hills and end in the sea. " * 8), User((HELLO,)))
)


def counted(reply: Reply) -> Counted:
    if reply.usage is None:
        raise Broken("no usage was told")
    return reply.usage


@THEME.case(
    "positive",
    "An answer costs something",
    sends="a short question",
    expects="input and output above 0",
    why="0 tokens are accounted as a free request",
)
def positive(talk: Talk) -> None:
    usage = counted(talk.ask(ask(HELLO)))
    if usage.input < 1 or usage.output < 1:
        raise Broken(f"input {usage.input}, output {usage.output}")


@THEME.case(
    "total",
    "The total is the sum of its parts",
    sends="a short question, whole and streamed",
    expects="total = input + output (Gemini: + thoughts + prompts of tools)",
    why="budgets are kept by the total",
    dialects=("openai-chat", "openai-responses", "gemini"),
)
def total(talk: Talk) -> None:
    for reply in (talk.ask(ask(HELLO)), talk.stream(ask(HELLO))):
        usage = counted(reply)
        if usage.total != usage.input + usage.output:
            raise Broken(f"input {usage.input} + output {usage.output}, but total {usage.total}")


@THEME.case(
    "stream-equals-whole",
    "A stream counts the same prompt alike",
    sends="the same question whole and streamed",
    expects="the same input tokens; the same output tokens where the texts are equal",
    why="who counts streams otherwise cannot be compared with the bill",
)
def stream_equals_whole(talk: Talk) -> None:
    whole, stream = talk.ask(ask(EXACT)), talk.stream(ask(EXACT))
    one, other = counted(whole), counted(stream)
    if one.input != other.input:
        raise Broken(f"input tokens: {one.input} whole, {other.input} streamed")
    if whole.text == stream.text and not one.reasoning and not other.reasoning and one.output != other.output:
        raise Broken(f"output tokens of the same text: {one.output} whole, {other.output} streamed")


@THEME.case(
    "grows",
    "A longer prompt costs more",
    sends="a short question alone, and at the end of a history",
    expects="more input tokens with the history, cached ones included",
    why="where it does not grow, history is cut or usage is made up",
)
def grows(talk: Talk) -> None:
    short, long = counted(talk.ask(ask(HELLO))), counted(talk.ask(_HISTORY))
    if long.input < short.input + 50:
        raise Broken(f"{short.input} tokens alone, {long.input} with some 150 more before it")


@THEME.case(
    "cached",
    "What was cached is a part of the input",
    sends="a conversation of two turns",
    expects="cached tokens, where they are told, not above the input",
    why="cached tokens cost a tenth: who adds them to the input charges them twice",
    cost="medium",
)
def cached(talk: Talk) -> None:
    reply = called(talk)
    results = (Result(call, "17 degrees and rain") for call in reply.calls)
    usage = counted(talk.ask(with_results(WEATHER_FORCED, reply, *results)))
    if usage.cached is None:
        raise NotApplicable("it tells nothing of a cache")
    if usage.cached > usage.input:
        raise Broken(f"{usage.cached} cached of {usage.input} input tokens")
    plain = counted(reply)
    if usage.input > 20 * plain.input + 200:
        raise Broken(f"{plain.input} input tokens became {usage.input} with one result more")


@THEME.case(
    "output-follows",
    "Output tokens follow the length of the answer",
    sends="a question for a long text with a limit of 16 tokens, and one with 300",
    expects="at most 16 tokens in the first; more in the second",
    why="output is the dear part of a bill",
    cost="medium",
)
def output_follows(talk: Talk) -> None:
    short, long = talk.ask(ask(LONG, most=16)), talk.ask(ask(LONG, most=300))
    if len(long.text) < 3 * max(1, len(short.text)):
        raise Inconclusive(f"the model said only {len(long.text)} characters")
    if counted(short).output > 16:
        raise Broken(f"{counted(short).output} output tokens of at most 16")
    if counted(long).output <= counted(short).output:
        raise Broken(f"{counted(short).output} tokens, and {counted(long).output} for three times the text")


@THEME.case(
    "tools",
    "Tools that are offered cost input",
    sends="the same question with a tool and without",
    expects="more input tokens with the tool",
    why="a tool that costs nothing was not offered to the model",
    level="should",
)
def tools(talk: Talk) -> None:
    bare, offered = (
        counted(talk.ask(ask(HELLO))),
        counted(talk.ask(ask(HELLO, tools=(WEATHER,), choice="auto"))),
    )
    if offered.input <= bare.input:
        raise Broken(f"{bare.input} without, {offered.input} with")


@THEME.case(
    "reasoning",
    "Tokens of reasoning are a part of the output",
    sends="a question with thinking asked for",
    expects="reasoning tokens, where they are told, not above the output",
    why="they are billed as output",
    cost="medium",
)
def reasoning(talk: Talk) -> None:
    usage = counted(talk.think(ask(HELLO)))
    if usage.reasoning is None:
        raise NotApplicable("it tells no tokens of reasoning")
    if usage.reasoning > usage.output:
        raise Broken(f"{usage.reasoning} of reasoning in {usage.output} of output")
    if usage.total is not None and usage.total != usage.input + usage.output:
        raise Broken(f"input {usage.input} + output {usage.output}, but total {usage.total}")
