"""Translates a document to all other dialects and reports the losses. Nothing is sent to a provider."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Literal

import msgspec

from wireglot.gateway.errors import invalid_value
from wireglot.gateway.process_limits import KIB, MIB
from wireglot.gateway.request.page_request import PageRequest
from wireglot.gateway.request.viewer import Viewer
from wireglot.gateway.request.worker_thread import run_in_thread
from wireglot.gateway.trace.search import Limiter
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.registry import DialectName, UnknownDialect, dialect, dialect_name, names
from wireglot_core.ir.errors import WireglotError
from wireglot_core.ir.loss import Loss, worst_first
from wireglot_core.ir.stream import Failure
from wireglot_core.traces.pointer import pointer_of
from wireglot_core.translate import StreamTranslator, translate_request, translate_response
from wireglot_core.wire.json import BadJson, decode, encode

Kind = Literal["request", "answer", "stream"]
KINDS: Final[tuple[Kind, ...]] = ("request", "answer", "stream")
# Losses of one translation that the playground lists.
_MAX_LOSSES: Final = 500
_MAX_LINES: Final = 100
"""Losses of a stream whose lines are searched: each is checked again after every event."""
_END_OF_STREAM: Final = "[DONE]"
_LINE: Final = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
"""A line as editors and server-sent events define it: no other character ends one."""


class ToTranslate(msgspec.Struct, frozen=True):
    dialect: DialectName
    kind: Kind
    text: str
    request: str = ""
    """The request that an answer or stream answers, in any dialect: it restores names of tools."""
    model: str = ""
    """If the document itself names none."""
    only: tuple[DialectName, ...] = ()
    """The dialects to translate to; (): all others."""
    aligned: bool = False
    """For a stream: event by event, in place of its text."""


def asked_of(document: dict[str, Any], max_letters: int) -> ToTranslate:
    known = {"dialect", "kind", "text", "request", "model", "only", "aligned"}
    for name in document:
        if name not in known:
            raise invalid_value(name, f"one of {', '.join(sorted(known))}")
    for name in known - {"only", "aligned"}:
        value = document.get(name, "")
        if type(value) is not str:
            raise invalid_value(name, "text")
        if len(value) > max_letters:
            raise invalid_value(name, f"at most {max_letters} characters")
    kind = next((each for each in KINDS if each == document.get("kind")), None)
    spoken = _known_dialect("dialect", document.get("dialect", ""))
    if kind is None:
        raise invalid_value("kind", f"one of {', '.join(KINDS)}")
    only = document.get("only", [])
    if type(only) is not list:
        raise invalid_value("only", "a list of dialects")
    aligned = document.get("aligned", False)
    if type(aligned) is not bool:
        raise invalid_value("aligned", "true or false")
    try:
        if document.get("request") and type(decode(document["request"])) is not dict:
            raise invalid_value("request", "a JSON object")
    except BadJson as bad:
        raise invalid_value("request", f"a JSON object: {bad}") from None
    return ToTranslate(
        spoken,
        kind,
        document.get("text", ""),
        request=document.get("request", ""),
        model=document.get("model", ""),
        only=tuple(_known_dialect(f"only[{place}]", each) for place, each in enumerate(only)),
        aligned=aligned,
    )


def _known_dialect(field: str, name: Any) -> DialectName:
    try:
        return dialect_name(name if type(name) is str else "")
    except UnknownDialect:
        raise invalid_value(field, f"one of {', '.join(names())}") from None


def translated(asked: ToTranslate) -> dict[str, Any]:
    """`problem`: what is wrong with the document itself; then `dialects` is empty."""
    reported: dict[str, Any] = {"dialect": asked.dialect, "kind": asked.kind, "problem": None, "dialects": {}}
    problem = _problem_of(asked)
    if problem is not None:
        return reported | {"problem": problem}
    others = (name for name in asked.only or names() if name != asked.dialect)
    if asked.aligned and asked.kind == "stream":
        reported["events"] = [piece for _, piece in _events(asked.text)]
    return reported | {"dialects": {name: _in(name, asked) for name in others}}


def _problem_of(asked: ToTranslate) -> dict[str, Any] | None:
    if asked.kind == "stream":
        return _problem_of_stream(asked)
    try:
        document = decode(asked.text)
    except BadJson as bad:
        return _at(asked.text, bad)
    spoken = dialect(asked.dialect)
    try:
        if asked.kind == "answer":
            translate_response(asked.text, source=asked.dialect, target=asked.dialect)
        elif type(document) is not dict:
            return _format_problem("expected a JSON object", "$")
        else:
            spoken.parse_request(document, Context())
    except WireglotError as fault:
        return _format_problem(fault.message, fault.path)
    return None


def _problem_of_stream(asked: ToTranslate) -> dict[str, Any] | None:
    for number, line in enumerate(asked.text.split("\n")):
        name, colon, data = line.partition(":")
        data = data.strip()
        if name.strip() != "data" or not colon or not data or data == _END_OF_STREAM:
            continue
        try:
            decode(data)
        except BadJson as bad:
            place = _at(data, bad)
            column = place["column"] + line.index(data) if place["line"] == 1 else 1
            return place | {"line": number + 1, "column": column, "offset": None}
    reader = dialect(asked.dialect).stream_reader(Context())
    try:
        events = [*reader.read(asked.text.encode()), *reader.end()]
    except WireglotError as fault:
        return _format_problem(fault.message, fault.path)
    if len(events) == 1 and type(events[0]) is Failure:
        if not any(line.startswith("data:") for line in asked.text.split("\n")):
            return _format_problem("expected server-sent events: lines that begin with data:", "")
        return _format_problem(events[0].error.message, "")
    return None


def _in(name: DialectName, asked: ToTranslate) -> dict[str, Any]:
    try:
        if asked.kind == "stream":
            return _stream_in(name, asked)
        model = asked.model or None
        if asked.kind == "request":
            rendered = translate_request(asked.text, source=asked.dialect, target=name, model=model)
        else:
            rendered = translate_response(
                asked.text, source=asked.dialect, target=name, request=asked.request or None, model=model
            )
    except WireglotError as fault:
        return {"text": "", "losses": [], "error": _format_problem(fault.message, fault.path)}
    text = msgspec.json.format(encode(rendered.value), indent=2)
    return {"text": text.decode("utf-8", "replace"), **_reported_losses(rendered.losses)}


def _stream_in(name: DialectName, asked: ToTranslate) -> dict[str, Any]:
    translator = StreamTranslator(
        source=asked.dialect,
        target=name,
        request=asked.request or None,
        model=asked.model or None,
    )
    written, lines, last = list[bytes](), dict[Loss, int](), 0
    for line, event in _events(asked.text):
        last = line or last
        written.append(translator.feed(event.encode()))
        if len(lines) < _MAX_LINES:
            for loss in translator.losses:
                lines.setdefault(loss, last)
    written.append(translator.close())
    for loss in translator.losses[:_MAX_LINES]:  # known only at its end
        lines.setdefault(loss, last)
    text = b"".join(written).decode("utf-8", "replace")
    reported = {"text": text, **_reported_losses(translator.losses, lines)}
    if asked.aligned:  # one for each event of the source, and what its end adds
        reported |= {"text": "", "events": [piece.decode("utf-8", "replace") for piece in written]}
    return {**reported, "broken": True} if translator.failed else reported


def _events(text: str) -> Iterator[tuple[int, str]]:
    """The events of a stream, each with the line (from 1) of its data, 0 if it has none. Each line of JSON
    lines is one."""
    piece, data = "", 0
    lines = _LINE.findall(text)
    is_json_lines = all(line.lstrip()[:1] in ("{", "") for line in lines)
    for number, line in enumerate(lines, 1):
        piece += line
        if is_json_lines or line.startswith("data:"):
            data = data or number
        if is_json_lines or not line.strip("\r\n"):
            yield data, piece
            piece, data = "", 0
    if piece:
        yield data, piece


def _reported_losses(losses: Sequence[Loss], lines: Mapping[Loss, int] | None = None) -> dict[str, Any]:
    """`lines`: for a stream, the line of each loss."""
    found = worst_first(losses)
    reported = [
        {
            **loss.as_dict(),
            "pointer": pointer_of(loss.path),
            "reason": loss.reason,
            **({"line": line} if lines and (line := lines.get(loss)) else {}),
        }
        for loss in found[:_MAX_LOSSES]
    ]
    more = len(found) - len(reported)
    return {"losses": reported, "more_losses": more} if more else {"losses": reported}


def _format_problem(message: str, path: str) -> dict[str, Any]:
    return {"message": message, "path": path, "pointer": pointer_of(path)}


def _at(text: str, bad: BadJson) -> dict[str, Any]:
    """Bad JSON with its line and column, both from 1, and its offset in the text, in characters."""
    reported = _format_problem(bad.reason, "$")
    if bad.offset is None:
        return reported | {"line": 1, "column": 1, "offset": 0}
    before = text.encode()[: bad.offset].decode("utf-8", "replace")
    line = before.count("\n") + 1
    return reported | {"line": line, "column": len(before) - before.rfind("\n"), "offset": len(before)}


# Characters of a request in the playground.
MAX_LETTERS: Final = MIB
_AT_ONCE_LETTERS: Final = 8 * KIB
"""A few milliseconds for all dialects together."""


class TranslatePage:
    def __init__(self) -> None:
        self._turn = Limiter(1, run_in_thread)

    async def translate(self, page: PageRequest, viewer: Viewer) -> None:
        asked = asked_of(page.document(), MAX_LETTERS)
        if len(asked.text) + len(asked.request) <= _AT_ONCE_LETTERS:
            page.send(translated(asked))
        else:
            page.send(await self._turn.do(lambda: msgspec.Raw(encode(translated(asked)))))
