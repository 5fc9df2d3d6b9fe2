"""Cases about stored answers: fetched, continued, deleted, cancelled."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final
from urllib.parse import quote

from wireglot.probe.cases.answers import counted
from wireglot.probe.cases.prompts import HELLO, LONG
from wireglot.probe.endpoint import Got
from wireglot.probe.question import ProbeQuestion, ask
from wireglot.probe.reply import At, Broken, Inconclusive, NotApplicable, ProbeReply
from wireglot.probe.talk import INVALID, Talk, Theme
from wireglot_core.dialects.registry import surface
from wireglot_core.wire.json import encode

STATE: Final = Theme("state")
_ABSENT: Final = (404, 405, 501)
_ENDS: Final = frozenset({"completed", "cancelled", "failed", "incomplete"})
_NOBODYS: Final = "no-such-answer-of-the-probe"


def _asked(text: str, **fields: Any) -> ProbeQuestion:
    return ask(text, most=16, extra={"store": True, **fields})


def _path(talk: Talk, id: str, verb: str = "") -> str:
    return f"{talk.path('generate')}/{quote(id, safe='')}{verb}"


def _post(talk: Talk, question: ProbeQuestion) -> Got:
    """Sent again each time: another case's stored answer may be deleted by now."""
    return talk.post(encode(talk.wire.body(talk.model, question)), talk.path("generate"), fresh=True)


def _at(talk: Talk, id: str, method: str = "GET", verb: str = "") -> Got:
    return talk.post(b"", _path(talk, id, verb), method=method, fresh=True)


def _read(talk: Talk, got: Got) -> ProbeReply:
    if got.status != 200:
        raise Broken(str(talk.refusal(got)))
    return talk.wire.read(talk.document(got))


@contextmanager
def _kept(talk: Talk, text: str = HELLO) -> Iterator[ProbeReply]:
    """An answer that the endpoint stores for the duration of a case."""
    got = _post(talk, _asked(text))
    if got.status in INVALID:
        raise NotApplicable(f"it does not store answers: {talk.refusal(got)}")
    reply = _read(talk, got)
    if not reply.id or _at(talk, reply.id).status in _ABSENT:
        talk.learn("state", "", False, "an answer cannot be fetched")
        raise NotApplicable("it does not store answers")
    talk.learn("state", "", True, "an answer was fetched")
    try:
        yield reply
    finally:
        _drop(talk, reply.id)


def _drop(talk: Talk, id: str) -> None:
    with suppress(Inconclusive):
        _at(talk, id, "DELETE")


def _going_on(talk: Talk, id: str) -> ProbeQuestion:
    stored = surface(talk.wire.name).stored
    assert stored is not None, "the case requires a dialect with stored answers"
    return _asked(HELLO, store=False, **{stored.previous: id})


@STATE.case("get")
def get(talk: Talk) -> None:
    with _kept(talk) as made:
        found = _read(talk, _at(talk, made.id))
    if found.id != made.id:
        raise Broken(f"it has another id: {found.id!r} instead of {made.id!r}")
    if found.text != made.text:
        raise Broken(f"it has another text: {found.text[:120]!r} instead of {made.text[:120]!r}")


@STATE.case("chain")
def chain(talk: Talk) -> None:
    with _kept(talk, LONG) as made:
        alone = counted(_read(talk, _post(talk, _asked(HELLO, store=False)))).input
        after = counted(_read(talk, _post(talk, _going_on(talk, made.id)))).input
    if after <= alone:
        raise Broken(f"{alone} input tokens alone, {after} after a longer turn: it was not used")


@STATE.case("unknown-previous")
def unknown_previous(talk: Talk) -> None:
    with _kept(talk):
        talk.refuses(_post(talk, _going_on(talk, _NOBODYS)), 404, *INVALID)


@STATE.case("unknown")
def unknown(talk: Talk) -> None:
    with _kept(talk):
        talk.refuses(_at(talk, _NOBODYS), 404, *INVALID)


@STATE.case("delete")
def delete(talk: Talk) -> None:
    with _kept(talk) as made:
        gone = _at(talk, made.id, "DELETE")
        if gone.status != 200:
            raise Broken(str(talk.refusal(gone)))
        talk.refuses(_at(talk, made.id), 404)


@STATE.case("unstored")
def unstored(talk: Talk) -> None:
    with _kept(talk):
        made = _read(talk, _post(talk, _asked(HELLO, store=False)))
        if made.id:
            talk.refuses(_at(talk, made.id), 404, *INVALID)


@STATE.case("cancel")
def cancel(talk: Talk) -> None:
    with _kept(talk):
        got = _post(talk, _asked(LONG, background=True))
    if got.status in INVALID:
        raise NotApplicable(f"it does not support background answers: {talk.refusal(got)}")
    if got.status != 200:
        raise Broken(str(talk.refusal(got)))
    id = At(talk.document(got)).text("id", filled=True)
    try:
        for answer in (_at(talk, id, "POST", "/cancel"), _at(talk, id)):
            _check_ended(talk, answer, id)
    finally:
        _drop(talk, id)


def _check_ended(talk: Talk, answer: Got, id: str) -> None:
    if answer.status != 200:
        raise Broken(str(talk.refusal(answer)))
    about = At(talk.document(answer))
    if about.text("id") != id:
        raise Broken(f"it is about another answer: {about.text('id')!r}")
    about.is_("status", *sorted(_ENDS))
