"""Cases about answers: their shape, their text, why they stop, what they used."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from wireglot.probe.cases.prompts import (
    EXACT,
    HELLO,
    LONG,
    SYSTEM,
    WEATHER,
    WEATHER_FORCED,
    WORDS,
    called,
    must_speak,
    with_results,
)
from wireglot.probe.question import Called, Midway, ProbeQuestion, ProbeResult, User, ask
from wireglot.probe.reply import Broken, Inconclusive, NotApplicable, ProbeReply, ProbeUsage
from wireglot.probe.talk import Talk, Theme

ANSWERS: Final = Theme("answers")


@ANSWERS.case("shape")
def shape(talk: Talk) -> None:
    reply = talk.ask(ask(HELLO))
    reply.require("repeated")
    if not reply.text.strip():
        raise Broken("the answer has no text")
    if talk.wire.has_answer_ids and not reply.id:
        raise Broken("the answer has no id")
    if not reply.model:
        raise Broken("the answer names no model")


@ANSWERS.case("nulls")
def nulls(talk: Talk) -> None:
    talk.ask(ask(HELLO)).require("nulls")
    called(talk).require("nulls")


@ANSWERS.case("content-type")
def content_type(talk: Talk) -> None:
    got = talk.send(ask(HELLO))
    kind = got.headers.get("content-type", "")
    if got.status == 200 and not kind.lower().startswith("application/json"):
        raise Broken(f"content-type: expected application/json, found {kind or 'none'}")
    talk.ask(ask(HELLO))


@ANSWERS.case("ids-differ")
def ids_differ(talk: Talk) -> None:
    first, second = talk.ask(ask(HELLO)), talk.ask(ask(EXACT))
    if not first.id or not second.id:
        raise NotApplicable("an answer has no id: see answers.shape")
    if first.id == second.id:
        raise Broken(f"both answers have the id {first.id!r}")


@ANSWERS.case("obeys")
def obeys(talk: Talk) -> None:
    text = talk.ask(ask(EXACT)).text
    if WORDS not in " ".join(text.split()):
        raise Inconclusive(f"the model said {text[:80]!r}")
    if text.count(WORDS) > 1:
        raise Broken(f"the words came {text.count(WORDS)} times")


@ANSWERS.case("end")
def end(talk: Talk) -> None:
    reply = talk.ask(ask(HELLO))
    if reply.stop == "length":
        raise Inconclusive("the model did not finish")
    if reply.stop != "end":
        raise Broken(f"the stop reason is {reply.stop_word!r}")


@ANSWERS.case("request-id")
def request_id(talk: Talk) -> None:
    headers = talk.send(ask(HELLO)).headers
    if not any(name.endswith(("request-id", "requestid")) for name in headers):
        raise Broken(f"no such header among {', '.join(sorted(headers))}")


USAGE: Final = Theme("usage")
_HISTORY: Final = ProbeQuestion(
    turns=(User((LONG,)), Called("Rivers begin in the hills and end in the sea. " * 8), User((HELLO,)))
)


def counted(reply: ProbeReply) -> ProbeUsage:
    if reply.usage is None:
        raise Broken("no usage was reported")
    return reply.usage


@USAGE.case("positive")
def positive(talk: Talk) -> None:
    usage = counted(talk.ask(ask(HELLO)))
    if usage.input < 1 or usage.output < 1:
        raise Broken(f"input {usage.input}, output {usage.output}")


@USAGE.case("total")
def total(talk: Talk) -> None:
    for reply in (talk.ask(ask(HELLO)), talk.stream(ask(HELLO))):
        usage = counted(reply)
        if usage.total != usage.input + usage.output:
            raise Broken(f"input {usage.input} + output {usage.output}, but total {usage.total}")


@USAGE.case("stream-equals-whole")
def stream_equals_whole(talk: Talk) -> None:
    whole, stream = talk.ask(ask(EXACT)), talk.stream(ask(EXACT))
    one, other = counted(whole), counted(stream)
    if one.input != other.input:
        raise Broken(f"input tokens: {one.input} whole, {other.input} streamed")
    if whole.text == stream.text and not one.reasoning and not other.reasoning and one.output != other.output:
        raise Broken(f"output tokens of the same text: {one.output} whole, {other.output} streamed")


@USAGE.case("grows")
def grows(talk: Talk) -> None:
    short, long = counted(talk.ask(ask(HELLO))), counted(talk.ask(_HISTORY))
    if long.input < short.input + 50:
        raise Broken(f"{short.input} tokens alone, {long.input} with some 150 more before it")


@USAGE.case("cached")
def cached(talk: Talk) -> None:
    reply = called(talk)
    results = (ProbeResult(call, "17 degrees and rain") for call in reply.calls)
    usage = counted(talk.ask(with_results(WEATHER_FORCED, reply, *results)))
    if usage.cached is None:
        raise NotApplicable("it reports no cached tokens")
    if usage.cached > usage.input:
        raise Broken(f"{usage.cached} cached of {usage.input} input tokens")
    plain = counted(reply)
    if usage.input > 20 * plain.input + 200:
        raise Broken(f"{plain.input} input tokens became {usage.input} with one result more")


@USAGE.case("output-follows")
def output_follows(talk: Talk) -> None:
    short, long = talk.ask(ask(LONG, most=16)), talk.ask(ask(LONG, most=300))
    if len(long.text) < 3 * max(1, len(short.text)):
        raise Inconclusive(f"the model said only {len(long.text)} characters")
    if counted(short).output > 16:
        raise Broken(f"{counted(short).output} output tokens of at most 16")
    if counted(long).output <= counted(short).output:
        raise Broken(f"{counted(short).output} tokens, and {counted(long).output} for three times the text")


@USAGE.case("tools")
def tools(talk: Talk) -> None:
    bare, offered = (
        counted(talk.ask(ask(HELLO))),
        counted(talk.ask(ask(HELLO, tools=(WEATHER,), choice="auto"))),
    )
    if offered.input <= bare.input:
        raise Broken(f"{bare.input} without, {offered.input} with")


@USAGE.case("reasoning")
def reasoning(talk: Talk) -> None:
    usage = counted(talk.think(ask(HELLO)))
    if usage.reasoning is None:
        raise NotApplicable("it reports no reasoning tokens")
    if usage.reasoning > usage.output:
        raise Broken(f"{usage.reasoning} of reasoning in {usage.output} of output")
    if usage.total is not None and usage.total != usage.input + usage.output:
        raise Broken(f"input {usage.input} + output {usage.output}, but total {usage.total}")


TEXTS: Final = Theme("texts")
_LETTERS: Final = 'Grüße, naïve café — 東京 Ελλάδα עברית 🙂 a\\b "c" <d> & e'
_SAY_LETTERS: Final = f"Reply with exactly this and nothing else: {_LETTERS}"


def _costs_more(talk: Talk, question: ProbeQuestion, tokens: int, what: str, value: str = "") -> None:
    """Checks that a feature reaches the model by its cost: the input tokens increase, whatever the model
    answers."""
    bare = counted(talk.ask(ask(HELLO)))
    reply = talk.optional(question, what, value) if what else talk.ask(question)
    must_speak(reply)
    if counted(reply).input < bare.input + tokens:
        raise Broken(
            f"it did not reach the model: {bare.input} input tokens without, {counted(reply).input} with it"
        )


@TEXTS.case("parts")
def parts(talk: Talk) -> None:
    _costs_more(talk, ProbeQuestion(turns=(User((LONG, HELLO), parts=True),)), 15, "text_parts", "user")


@TEXTS.case("system")
def system(talk: Talk) -> None:
    _costs_more(talk, ask(HELLO, system=(SYSTEM,)), 8, "")


@TEXTS.case("system-parts")
def system_parts(talk: Talk) -> None:
    question = ask(HELLO, system=(SYSTEM, "Speak English."), system_parts=True)
    _costs_more(talk, question, 16, "text_parts", "system")


@TEXTS.case("system-stream")
def system_stream(talk: Talk) -> None:
    question = ask(HELLO, system=(SYSTEM,))
    whole, stream = counted(talk.ask(question)), counted(talk.stream(question))
    if whole.input != stream.input:
        raise Broken(f"{whole.input} input tokens whole, {stream.input} streamed")


@TEXTS.case("system-midway")
def system_midway(talk: Talk) -> None:
    turns = (User((HELLO,)), Called("Hello!"), User((HELLO,)), Midway(SYSTEM))
    must_speak(talk.optional(ProbeQuestion(turns=turns), "system_midway"))


@TEXTS.case("developer")
def developer(talk: Talk) -> None:
    question = ProbeQuestion(turns=(Midway(SYSTEM, "developer"), User((HELLO,))))
    _costs_more(talk, question, 8, "developer_role")


@TEXTS.case("history")
def history(talk: Talk) -> None:
    turns = (User((LONG,)), Called("Rivers begin in the hills and end in the sea. " * 4), User((HELLO,)))
    _costs_more(talk, ProbeQuestion(turns=turns), 40, "")


@TEXTS.case("two-users")
def two_users(talk: Talk) -> None:
    _costs_more(talk, ProbeQuestion(turns=(User((LONG,)), User((HELLO,)))), 15, "")


@TEXTS.case("plain")
def plain(talk: Talk) -> None:
    said = talk.ask(ask(EXACT, extra={"input": EXACT})).text
    if WORDS not in said:
        raise Broken(f"the answer is {said[:80]!r}, expected {WORDS!r}")


@TEXTS.case("letters")
def letters(talk: Talk) -> None:
    for said in (talk.ask(ask(_SAY_LETTERS)).text, talk.stream(ask(_SAY_LETTERS)).text):
        if _LETTERS in said:
            continue
        if "�" in said or "\\u" in said or "Ã" in said or "&lt;" in said:
            raise Broken(f"characters were corrupted: {said[:160]!r}")
        if "Gr" in said and "naïve" not in said and "東京" not in said:
            raise Broken(f"characters are missing: {said[:160]!r}")
        raise Inconclusive(f"the model said {said[:160]!r}")


@TEXTS.case("picture")
def picture(talk: Talk) -> None:
    question = ProbeQuestion(turns=(User(("What colour is this? One word.",), picture=True),))
    must_speak(talk.optional(question, "media", "image"))


STOPS: Final = Theme("stops")
_SHORT: Final = ask(LONG, most=16)
_STOPPED: Final = ask(EXACT, stop=("yellow",))
_HALTS: Final = {
    "anthropic": ("stop_sequence", "end_turn"),
    "openai-chat": ("stop",),
    "gemini": ("STOP",),
    "ollama": ("stop",),
    "gemini-interactions": ("completed",),
}
"""The stop reasons of an answer that a stop sequence ended."""


def _cut(reply: ProbeReply) -> None:
    if reply.stop != "length":
        raise Broken(f"the stop reason is {reply.stop_word!r}, though at most 16 tokens were allowed")
    if len(reply.text) > 400:
        raise Broken(f"{len(reply.text)} characters were returned, though at most 16 tokens were allowed")


@STOPS.case("length")
def length(talk: Talk) -> None:
    _cut(talk.ask(_SHORT))


@STOPS.case("length-stream")
def length_stream(talk: Talk) -> None:
    reply = talk.stream(_SHORT)
    reply.require()
    _cut(reply)


def _halted(reply: ProbeReply, name: str) -> None:
    if "red" not in reply.text and reply.text.strip():
        raise Inconclusive(f"the model said {reply.text[:80]!r}")
    if "yellow" in reply.text:
        raise Broken(f"the text contains the stop sequence: {reply.text[:80]!r}")
    if "green" in reply.text:
        raise Broken(f"the text continues after the stop sequence: {reply.text[:80]!r}")
    wanted = _HALTS[name]
    if reply.stop_word not in wanted:
        raise Broken(f"expected the stop reason {wanted[0]!r}, found {reply.stop_word!r}")


@STOPS.case("sequence")
def sequence(talk: Talk) -> None:
    _halted(talk.optional(_STOPPED, "stop_max"), talk.wire.name)


@STOPS.case("sequence-stream")
def sequence_stream(talk: Talk) -> None:
    reply = talk.optional(replace(_STOPPED, stream=True), "stop_max")
    reply.require()
    _halted(reply, talk.wire.name)


@STOPS.case("several-sequences")
def several_sequences(talk: Talk) -> None:
    question: ProbeQuestion = ask(EXACT, stop=("purple", "violet", "yellow", "brown"))
    reply = talk.optional(question, "stop_max", "4")
    if "yellow" in reply.text:
        raise Broken(f"the third of four stop sequences is in the text: {reply.text[:80]!r}")


@STOPS.case("which-sequence")
def which_sequence(talk: Talk) -> None:
    for reply in (talk.optional(_STOPPED, "stop_max"), talk.stream(_STOPPED)):
        if "red" not in reply.text:
            raise Inconclusive(f"the model said {reply.text[:80]!r}")
        if reply.stop_word == "end_turn" and reply.sequence is None and "yellow" not in reply.text:
            raise NotApplicable("it does not report that a stop sequence matched")
        if reply.stop_word != "stop_sequence" or reply.sequence != "yellow":
            raise Broken(f"stop_reason {reply.stop_word!r} with stop_sequence {reply.sequence!r}")
