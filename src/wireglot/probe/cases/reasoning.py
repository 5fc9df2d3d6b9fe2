"""Reasoning and its state over turns."""

from __future__ import annotations

from typing import Any, Final

from msgspec.structs import replace

from wireglot.probe.cases.prompts import HELLO, ONE_CITY, WEATHER, must_speak
from wireglot.probe.question import Called, ProbeQuestion, ProbeResult, Results, Said, User, ask
from wireglot.probe.reply import Broken, Inconclusive, NotApplicable, ProbeReply
from wireglot.probe.talk import Talk, Theme

REASONING: Final = Theme("reasoning")
_ASKED: Final = ask(ONE_CITY, tools=(WEATHER,))


def _thought(reply: ProbeReply) -> ProbeReply:
    if not reply.thoughts and not reply.state:
        raise NotApplicable("thinking is accepted, but no thoughts are returned")
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


@REASONING.case("whole")
def whole(talk: Talk) -> None:
    reply = _thought(talk.think(ask(HELLO)))
    if not reply.text.strip():
        raise Broken("thoughts without an answer")
    if "<think>" in reply.text:
        raise Broken("the text contains <think>")


@REASONING.case("stream")
def stream(talk: Talk) -> None:
    reply = talk.think(ask(HELLO, stream=True))
    reply.require()
    _thought(reply)
    if not reply.text.strip():
        raise Broken("thoughts without an answer")


@REASONING.case("state")
def state(talk: Talk) -> None:
    for streamed in (False, True):
        reply = _thoughtful_call(talk, stream=streamed)
        if not reply.state:
            raise Broken(
                f"{'streamed' if streamed else 'whole'}: thoughts without signature or encrypted content"
            )


@REASONING.case("returned")
def returned(talk: Talk) -> None:
    reply = _thoughtful_call(talk)
    must_speak(talk.think(_gone_on(reply)))


@REASONING.case("returned-from-stream")
def returned_from_stream(talk: Talk) -> None:
    reply = _thoughtful_call(talk, stream=True)
    must_speak(talk.think(_gone_on(reply)))


@REASONING.case("dropped")
def dropped(talk: Talk) -> None:
    reply = _thoughtful_call(talk)
    must_speak(talk.ask(_gone_on(reply)))


@REASONING.case("changed")
def changed(talk: Talk) -> None:
    reply = _thoughtful_call(talk)
    if not reply.state:
        raise NotApplicable("there is no state to change")
    items = [_forged(item) for item in reply.items]
    got = talk.send(_gone_on(ProbeReply(items=items, calls=reply.calls)))
    if got.status != 200 and not 400 <= talk.refusal(got).status < 500:
        raise Broken(f"status {got.status}")


@REASONING.case("absent")
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
