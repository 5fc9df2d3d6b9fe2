"""Writes events as the stream of a client, as server-sent events that `framing` converts to lines.

Text is written as it arrives; a call only when its arguments are complete, because this dialect has no
partial objects. Parts are written in the order they started: events of a later part are held back until the
earlier ones have ended.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from msgspec.structs import replace

from wireglot_core.dialects.answer_writer import AnswerWriter
from wireglot_core.dialects.common_losses import CUT_CALL
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.fields import own_form
from wireglot_core.dialects.ollama.answer import (
    BETWEEN_THOUGHTS,
    CHAT,
    AnswerParts,
    AnswerShape,
    Fragment,
    answer_head,
)
from wireglot_core.dialects.ollama.errors import render_error
from wireglot_core.dialects.ollama.extras import NAME, put_back
from wireglot_core.dialects.ollama.lost_fields import LOST
from wireglot_core.dialects.ollama.outcome import render_logprobs, render_stop, render_usage
from wireglot_core.ir.content import Part, Reasoning, Text, TokenLogprob
from wireglot_core.ir.errors import ApiError
from wireglot_core.ir.request import Request
from wireglot_core.ir.stream import Delta, Event, Finish, GrowingText, PartEnd, PartStart, Start, finish_part
from wireglot_core.ir.verdict import malformed
from wireglot_core.wire.json import encode

_MARK: Final = "wireglot-text-goes-here"
_MARK_JSON: Final = encode(_MARK)


def _one_line(data: bytes) -> bytes:
    """The same JSON without characters that httpx, and with it the Python SDK, treats as line ends (it splits
    text, not bytes)."""
    if b"\xe2\x80" in data:
        data = data.replace(b"\xe2\x80\xa8", b"\\u2028").replace(b"\xe2\x80\xa9", b"\\u2029")
    if b"\xc2\x85" in data:
        data = data.replace(b"\xc2\x85", b"\\u0085")
    return data


class _Part:
    """A part being written."""

    __slots__ = ("begun", "end", "first", "is_live", "logprobs", "part", "said", "waiting")

    def __init__(self, part: Part) -> None:
        self.part = part
        self.is_live = type(part) is Text or (type(part) is Reasoning and not part.redacted)
        """Whether it is written as it arrives."""
        self.first = getattr(part, "text", "")
        """The text that it had from its start, until that is written."""
        self.waiting: list[Delta] = []
        self.said = GrowingText()
        """All of its text already written."""
        self.logprobs: list[TokenLogprob] = []
        self.begun = False
        """Whether any of it was written."""
        self.end: PartEnd | None = None


class OllamaWriter(AnswerWriter):
    dialect = NAME

    def __init__(self, context: Context, request: Request | None = None, shape: AnswerShape = CHAT) -> None:
        super().__init__(context, request, [])
        self._shape = shape
        self._placed = AnswerParts(self.losses)
        self._parts: dict[int, _Part] = {}
        self._head = 0
        """The part that may be written."""
        self._form: dict[str, Any] = {}
        self._around: dict[type[Part], tuple[bytes, bytes]] = {}

    def write(self, events: Iterable[Event]) -> bytes:
        out: list[bytes] = []
        for event in events:
            if type(event) is Delta:
                self._delta(event, out)
            else:
                self.events[type(event)](self, event, out)
        return b"".join(out)

    def _write_start(self, start: Start, out: list[bytes]) -> None:
        """Encode once the JSON around the text of every line."""
        self._form = own_form(start.extra, NAME)
        self._placed.native = start.extra is not None and start.extra.dialect == NAME
        for kind, fragment in ((Text, {"content": _MARK}), (Reasoning, {"content": "", "thinking": _MARK})):
            before, _, after = self._line(fragment).partition(_MARK_JSON)
            self._around[kind] = before, after

    def _document(self, fragment: Fragment) -> dict[str, Any]:
        start = self._start
        model, created = (start.model, start.created) if start is not None else ("", 0)
        out = answer_head(model, created, self._form, self._context, self._request)
        self._shape.put(out, fragment)
        return out

    def _line(self, fragment: Fragment, **more: Any) -> bytes:
        return _framed({**self._document(fragment), "done": False, **more})

    # Parts

    def _open_part(self, event: PartStart, out: list[bytes]) -> None:
        self._parts[event.index] = _Part(event.part)
        if event.index == self._head:
            self._advance(out)

    def _close_part(self, event: PartEnd, out: list[bytes]) -> None:
        self._parts[event.index].end = event
        self._advance(out)

    def _delta(self, event: Delta, out: list[bytes]) -> None:
        state = self._parts[event.index]
        if event.index == self._head and state.is_live:
            self._say(state, event.text, event.logprobs, out)
        else:
            state.waiting.append(event)

    def _say(self, state: _Part, text: str, scored: tuple[TokenLogprob, ...], out: list[bytes]) -> None:
        if not text and not scored:
            return
        state.said.add(text)
        kind = type(state.part)
        if kind is Reasoning and not state.begun and self._placed.thought:
            text = BETWEEN_THOUGHTS + text
        state.begun = True
        if scored:
            state.logprobs.extend(scored)
            out.append(self._line({"content": text}, logprobs=render_logprobs(scored)))
            return
        data = encode(text)
        before, after = self._around[kind]
        out.append(before + (data if text.isascii() else _one_line(data)) + after)

    def _advance(self, out: list[bytes]) -> None:
        """Write what may be sent: all of the first part, and every complete one after it."""
        while (state := self._parts.get(self._head)) is not None:
            if state.is_live:
                self._flush(state, out)
            if state.end is None:
                return
            del self._parts[self._head]
            self._complete(state, state.end, f"$.content[{self._head}]", out)
            self._head += 1

    def _flush(self, state: _Part, out: list[bytes]) -> None:
        """Write held text, and text the part had from its start."""
        if state.first:
            self._say(state, state.first, getattr(state.part, "logprobs", ()), out)
            state.first = ""
        for delta in state.waiting:
            self._say(state, delta.text, delta.logprobs, out)
        state.waiting.clear()

    def _complete(self, state: _Part, end: PartEnd, path: str, out: list[bytes]) -> None:
        if end.cut:
            self.losses.append(CUT_CALL.at(path))
            return
        if not state.is_live:
            text = "".join([delta.text for delta in state.waiting])
            fragment = self._placed.place(finish_part(state.part, text, (), end), path)
            if fragment is not None:
                out.append(self._line({"content": "", **fragment}))
            return
        # Its text has been written: its losses are known now.
        part = finish_part(state.part, "", tuple(state.logprobs), end)
        assert isinstance(part, Text | Reasoning)
        self._placed.place(replace(part, text=str(state.said)), path)

    # Ends

    def _finish(self, finish: Finish, out: list[bytes]) -> None:
        if finish.stop.reason == "malformed_call" and finish.stop.dialect != NAME:
            self._fail(malformed(finish.stop), out)
            return
        finish = self._completed(finish)
        losses = self.losses
        LOST.of(finish, "$", losses)
        document = self._document({"content": ""})
        document["done"] = True
        reason = render_stop(finish.stop, self._placed.calls > 0, losses)
        if reason:
            document["done_reason"] = reason
        document.update(render_usage(finish.usage, losses))
        out.append(_framed(put_back(document, finish.extra)))

    def _fail(self, error: ApiError, out: list[bytes]) -> None:
        rendered = render_error(error, self._context)
        self.losses.extend(rendered.losses)
        out.append(_framed(rendered.value))


def _framed(document: dict[str, Any]) -> bytes:
    return b"data: %b\n\n" % _one_line(encode(document))
