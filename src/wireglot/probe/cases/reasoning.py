"""Reasoning and its state over turns."""

from __future__ import annotations

from typing import Any, Final

from msgspec.structs import replace

from wireglot.probe.cases.prompts import HELLO, ONE_CITY, WEATHER, must_speak
from wireglot.probe.question import Called, ProbeQuestion, ProbeResult, Results, Said, User, ask
from wireglot.probe.reply import Broken, Inconclusive, NotApplicable, ProbeReply
from wireglot.probe.talk import Talk, Theme

REASONING: Final = Theme("reasoning", "Reasoning over turns")
_ASKED: Final = ask(ONE_CITY, tools=(WEATHER,))
_SIGNED: Final = ("anthropic", "openai-responses", "gemini")


def _thought(reply: ProbeReply) -> ProbeReply:
    if not reply.thoughts and not reply.state:
        raise NotApplicable("thinking is taken, and none is shown")
    return reply


def _thoughtful_call(talk: Talk, *, stream: bool = False) -> ProbeReply:
    reply = _thought(talk.think(replace(_ASKED, stream=stream)))
    if not reply.calls:
        raise Inconclusive("the model did not call the tool")
    return reply


def _gone_on(reply: ProbeReply, thinking: int | None = None) -> ProbeQuestion:
    results = Results(tuple(ProbeResult(call, "17.3 degrees and rain") for call in reply.calls))
    turns = (*_ASKED.turns, Said(tuple(reply.items)), results)
    return ProbeQuestion(turns=turns, tools=(WEATHER,), thinking=thinking)


@REASONING.case(
    "whole",
    "Thinking comes as the dialect's own kind of part, before the text",
    sends="a question with thinking asked for",
    expects="thinking blocks | reasoning_content | reasoning items | thought parts, and an answer in text",
    why="thoughts inside the text are read to users and fed back as answers",
    cost="medium",
)
def whole(talk: Talk) -> None:
    reply = _thought(talk.think(ask(HELLO)))
    if not reply.text.strip():
        raise Broken("there are thoughts and no answer")
    if "<think>" in reply.text:
        raise Broken("the text has <think> in it")


@REASONING.case(
    "stream",
    "Thinking in a stream keeps to the grammar",
    sends="the same, streamed",
    expects="no fault of any rule; one signature, whole and last, for each block",
    why="SDKs overwrite signatures: one in pieces is lost",
    cost="medium",
)
def stream(talk: Talk) -> None:
    reply = talk.think(ask(HELLO, stream=True))
    reply.require()
    _thought(reply)
    if not reply.text.strip():
        raise Broken("there are thoughts and no answer")


@REASONING.case(
    "state",
    "Thinking before a call leaves state to give back",
    sends="a question that needs a tool, with thinking asked for",
    expects="a signature | encrypted_content | a thoughtSignature on the first call",
    why="without it the provider refuses the next turn, or the model forgets why it called",
    cost="medium",
    dialects=_SIGNED,
)
def state(talk: Talk) -> None:
    for streamed in (False, True):
        reply = _thoughtful_call(talk, stream=streamed)
        if not reply.state:
            raise Broken(
                f"{'streamed' if streamed else 'whole'}: thoughts without signature or encrypted content"
            )


@REASONING.case(
    "returned",
    "Reasoning that comes back as it was is taken",
    sends="thoughts and call as they came, with the result",
    expects="an answer",
    why="the first thing that breaks between a thinking model and a gateway (group DA)",
    cost="medium",
)
def returned(talk: Talk) -> None:
    reply = _thoughtful_call(talk)
    must_speak(talk.think(_gone_on(reply)))


@REASONING.case(
    "returned-from-stream",
    "The same as a client puts it together from a stream",
    sends="thoughts and call out of a stream, with the result",
    expects="an answer",
    why="signatures that arrive in a stream must be those that are checked later",
    cost="medium",
)
def returned_from_stream(talk: Talk) -> None:
    reply = _thoughtful_call(talk, stream=True)
    must_speak(talk.think(_gone_on(reply)))


@REASONING.case(
    "dropped",
    "A conversation may go on with thinking switched off",
    sends="the same history, without asking for thinking",
    expects="an answer",
    why="clients switch models and modes midway",
    cost="medium",
)
def dropped(talk: Talk) -> None:
    reply = _thoughtful_call(talk)
    must_speak(talk.ask(_gone_on(reply)))


@REASONING.case(
    "changed",
    "Thoughts that were changed are refused in good order, or left out",
    sends="the same history with another signature",
    expects="an error of the dialect with a status from 400 to 499, or an answer; not a 5xx",
    why="clients mend their history after such an error, and only after such a one",
    level="should",
    cost="medium",
    dialects=_SIGNED,
)
def changed(talk: Talk) -> None:
    reply = _thoughtful_call(talk)
    if not reply.state:
        raise NotApplicable("there is no state to change")
    items = [_forged(item) for item in reply.items]
    got = talk.send(_gone_on(ProbeReply(items=items, calls=reply.calls)))
    if got.status != 200 and not 400 <= talk.refusal(got).status < 500:
        raise Broken(f"status {got.status}")


@REASONING.case(
    "absent",
    "A history without thoughts may be continued with thinking on",
    sends="a history of plain texts and a question with thinking asked for",
    expects="an answer",
    why="a conversation that began elsewhere has no thoughts to show",
    cost="medium",
)
def absent(talk: Talk) -> None:
    turns = (User(("Hello!",)), Called("Hello, how can I help?"), User((HELLO,)))
    _thought(talk.think(ask(HELLO)))
    must_speak(talk.think(ProbeQuestion(turns=turns)))


def _forged(value: Any) -> Any:
    if isinstance(value, list):
        return [_forged(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {
        name: "Zm9yZ2VkIHN0YXRlIG9mIHRoZSBwcm9iZQ=="
        if name in ("signature", "encrypted_content", "thoughtSignature") and each
        else _forged(each)
        for name, each in value.items()
    }
