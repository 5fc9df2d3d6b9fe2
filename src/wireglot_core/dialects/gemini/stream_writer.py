"""Writes events as a Gemini stream, as SSE or as one JSON array.

Text is written as it arrives; a call only when its arguments are complete, because this dialect has no
partial objects. Parts are written in the order they started: events of a later part are held back until the
earlier ones have ended.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from wireglot_core.dialects.answer_writer import AnswerWriter
from wireglot_core.dialects.common_losses import CUT_CALL
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.fields import own_fields, own_form
from wireglot_core.dialects.gemini.citations import beside_grounding, grounding_metadata, write_logprobs
from wireglot_core.dialects.gemini.errors import render_stream_error
from wireglot_core.dialects.gemini.lost_fields import LOST, TIER_WITHOUT_USAGE
from wireglot_core.dialects.gemini.names import OWN
from wireglot_core.dialects.gemini.outcome import write_stop, write_usage
from wireglot_core.dialects.gemini.render_parts import PartRenderer
from wireglot_core.dialects.gemini.response import FIRST, answer_id, render_candidate
from wireglot_core.dialects.unknown_fields import merge
from wireglot_core.ir.content import PHASE, Citation, Part, Reasoning, Text, TokenLogprob, ToolCall
from wireglot_core.ir.errors import ApiError
from wireglot_core.ir.loss import Loss, is_blank, losses_of_extra
from wireglot_core.ir.outcome import Candidate
from wireglot_core.ir.stream import Delta, Event, Finish, GrowingText, PartEnd, PartStart, Start, finish_part
from wireglot_core.ir.verdict import with_whole_calls
from wireglot_core.wire.json import encode
from wireglot_core.wire.json_array import ArrayEncoder

Wrap = Callable[[dict[str, Any], str, dict[str, Any]], dict[str, Any]]
"""Wraps a chunk in its envelope, given the id of the response and, at the end, its form."""

_MARK = "wireglot-text-goes-here"
_MARK_JSON = encode(_MARK)


def _one_line(data: bytes) -> bytes:
    """The same JSON without characters that google-genai treats as line ends (it splits text, not bytes)."""
    if b"\xe2\x80" in data:
        data = data.replace(b"\xe2\x80\xa8", b"\\u2028").replace(b"\xe2\x80\xa9", b"\\u2029")
    if b"\xc2\x85" in data:
        data = data.replace(b"\xc2\x85", b"\\u0085")
    return data


class _Part:
    """A part being written."""

    __slots__ = ("begun", "end", "live", "logprobs", "part", "sent", "texts")

    def __init__(self, part: Part) -> None:
        self.part = part
        self.texts: list[str] = []
        self.logprobs: list[TokenLogprob] = []
        self.sent = GrowingText()  # text already written
        self.begun = False
        """Whether any of it was written."""
        self.end: PartEnd | None = None
        # A part with a signature or its own fields must leave in one piece with them; so must a call.
        self.live = (type(part) is Text or type(part) is Reasoning) and not (
            (part.signature is not None and part.signature.id != PHASE)
            or any(not is_blank(item) for item in own_fields(part.extra, OWN).values())
        )


class GeminiWriter(AnswerWriter):
    dialect = OWN

    def __init__(self, context: Context, wrap: Wrap | None = None) -> None:
        self._renderer = PartRenderer(context, "client")
        super().__init__(context, None, self._renderer.losses)
        self._wrap = wrap
        self._array = ArrayEncoder() if context.framing == "json-array" else None
        self._parts: dict[int, _Part] = {}
        self._head = 0  # the part that may be written
        self._calls = False
        self._cited: list[tuple[int, str, tuple[Citation, ...], str]] = []
        self._tail: type[Part] | None = None  # the kind of text that readers still consider open
        self._answers = 0  # other than the first
        self._id = ""
        self._text = (b"", b"")
        self._thought = (b"", b"")

    def write(self, events: Iterable[Event]) -> bytes:
        out: list[bytes] = []
        for event in events:
            if type(event) is Delta:
                index = event.index
                if index == self._head and not event.logprobs and self._array is None:
                    state = self._parts[index]
                    if state.live:
                        text = event.text
                        before, after = self._text if type(state.part) is Text else self._thought
                        if text:
                            if not state.begun:
                                self._join(state)
                                state.begun = True
                                self._tail = type(state.part)
                            data = encode(text)
                            out.append(before + (data if text.isascii() else _one_line(data)) + after)
                            state.sent.add(text)
                        continue
                self._delta(event, out)
            else:
                self.events[type(event)](self, event, out)
        return b"".join(out)

    def _open_part(self, event: PartStart, out: list[bytes]) -> None:
        self._parts[event.index] = _Part(event.part)
        if event.index == self._head:
            self._advance(out)

    def _close_part(self, event: PartEnd, out: list[bytes]) -> None:
        self._parts[event.index].end = event
        self._advance(out)

    def _write_start(self, start: Start, out: list[bytes]) -> None:
        """Encode once the JSON around the text of every chunk."""
        self._id = answer_id(start.id, start.extra, self._context)
        self._text = self._around({"text": _MARK})
        self._thought = self._around({"text": _MARK, "thought": True})

    def _around(self, part: dict[str, Any]) -> tuple[bytes, bytes]:
        chunk = _one_line(encode(self._wrapped(self._candidate([part]), {})))
        before, _, after = chunk.partition(_MARK_JSON)
        return b"data: " + before, after + b"\n\n"

    def _candidate(self, parts: list[dict[str, Any]], /, **more: Any) -> dict[str, Any]:
        return self._chunk(
            {"candidates": [{"content": {"parts": parts, "role": "model"}, **more, "index": 0}]}
        )

    def _chunk(self, chunk: dict[str, Any]) -> dict[str, Any]:
        start = self._start
        if start is not None:
            chunk = dict(chunk)
            if start.model:
                chunk["modelVersion"] = start.model
            if self._id and self._wrap is None:
                chunk["responseId"] = self._id
            stamp = own_form(start.extra, OWN).get("createTime")
            if stamp is not None:
                chunk["createTime"] = stamp
        return chunk

    def _wrapped(self, chunk: dict[str, Any], form: dict[str, Any]) -> dict[str, Any]:
        if self._wrap is None:
            return chunk
        return self._wrap(chunk, self._start.id if self._start is not None else "", form)

    def _framed(self, chunk: dict[str, Any], form: dict[str, Any] | None = None) -> bytes:
        data = _one_line(encode(self._wrapped(chunk, form or {})))
        return b"data: %b\n\n" % data if self._array is None else self._array.element(data)

    def _delta(self, event: Delta, out: list[bytes]) -> None:
        state = self._parts[event.index]
        if state.live and event.index == self._head:
            self._live_text(state, event.text, event.logprobs, out)
            return
        state.texts.append(event.text)
        state.logprobs.extend(event.logprobs)

    def _live_text(
        self, state: _Part, text: str, logprobs: tuple[TokenLogprob, ...], out: list[bytes]
    ) -> None:
        if not text and not logprobs:
            return
        kind = type(state.part)
        part: dict[str, Any] = {"text": text} if kind is Text else {"text": text, "thought": True}
        more = {"logprobsResult": write_logprobs(logprobs)} if logprobs else {}
        self._join(state)
        self._send([part], out, **more)
        self._tail = kind
        state.sent.add(text)
        state.begun = True

    def _join(self, state: _Part) -> None:
        """Before the first text of a part is written: reports a loss if it runs into the part before."""
        if not state.begun and self._tail is type(state.part):
            detail = "neighbouring texts of one kind run together in a stream"
            self.losses.append(Loss(f"$.content[{self._head}]", "content.position", "approximated", detail))

    def _advance(self, out: list[bytes]) -> None:
        """Write what may be sent: all of the first part, and every complete one after it."""
        while (state := self._parts.get(self._head)) is not None:
            if state.live:
                self._flush(state, out)
            if state.end is None:
                return
            del self._parts[self._head]
            if state.end.cut:
                self._leave_out(f"$.content[{self._head}]")
            else:
                self._complete(state, state.end, f"$.content[{self._head}]", out)
            self._head += 1

    def _leave_out(self, path: str) -> None:
        self.losses.append(CUT_CALL.at(path))

    def _flush(self, state: _Part, out: list[bytes]) -> None:
        """Write held text, and text the part had from its start."""
        first = getattr(state.part, "text", "") if not state.begun else ""
        if first or state.texts:
            scored = (
                (*getattr(state.part, "logprobs", ()), *state.logprobs) if first else tuple(state.logprobs)
            )
            self._live_text(state, first + "".join(state.texts), scored, out)
            state.texts, state.logprobs = [], []

    def _complete(self, state: _Part, end: PartEnd, path: str, out: list[bytes]) -> None:
        part = finish_part(state.part, "".join(state.texts), tuple(state.logprobs), end)
        if state.live and (type(part) is Text or type(part) is Reasoning):
            self._complete_live(part, state, path, out)
        else:
            self._calls = self._calls or type(part) is ToolCall
            rendered = self._renderer.render(part, path)
            logprobs = part.logprobs if type(part) is Text else ()
            if rendered is not None:
                more = {"logprobsResult": write_logprobs(logprobs)} if logprobs else {}
                self._send([rendered], out, **more)
                self._tail = None
        if type(part) is Text and part.citations:
            text = str(state.sent) or part.text
            self._cited.append((self._head, text, part.citations, path))

    def _complete_live(self, part: Text | Reasoning, state: _Part, path: str, out: list[bytes]) -> None:
        """The text has been written. What is known only now follows in an empty part, as in Gemini's own
        streams."""
        closing: Text | Reasoning
        if type(part) is Text:
            closing = Text("", part.refusal, signature=part.signature, cache=part.cache, extra=part.extra)
        else:
            closing = Reasoning("", part.signature, extra=part.extra)
        rendered = self._renderer.render(closing, path)
        said = part.signature is not None or any(
            not is_blank(item) for item in own_fields(part.extra, OWN).values()
        )
        if rendered is None or not (said or (type(part) is Reasoning and not state.begun)):
            return
        if not state.begun and not said:
            self._join(state)
        self._send([rendered], out)
        self._tail = None if said else Reasoning

    def _send(self, parts: list[dict[str, Any]], out: list[bytes], **more: Any) -> None:
        out.append(self._framed(self._candidate(parts, **more)))

    def _write_other(self, answer: Candidate, out: list[bytes]) -> None:
        self._answers += 1
        path = f"$.others[{self._answers - 1}]"
        answer = with_whole_calls(answer, path, self.losses)
        losses_of_extra(answer.extra, OWN, path, self.losses, "response.extra")
        candidate = render_candidate(
            answer.content,
            answer.stop,
            own_fields(answer.extra, OWN),
            form=own_form(answer.extra, OWN),
            index=self._answers,
            path=path,
            renderer=self._renderer,
        )
        candidate["index"] = self._answers
        out.append(self._framed(self._chunk({"candidates": [candidate]})))

    def _finish(self, event: Finish, out: list[bytes]) -> None:
        event = self._completed(event)
        usage, tier, extra = event.usage, event.service_tier, event.extra
        LOST.of(event, "$", self.losses)
        fields, form = own_fields(extra, OWN), own_form(extra, OWN)
        chunk: dict[str, Any] = {}
        if form.get("candidates") != "absent" or self._head:
            last = write_stop(event.stop, self._calls, "$.stop", self.losses)
            if "groundingMetadata" in form or "citationMetadata" in form:
                last.update(
                    {key: form[key] for key in ("groundingMetadata", "citationMetadata") if key in form}
                )
            elif self._cited:
                self._declare_cited()
                grounding = grounding_metadata(self._cited, self.losses)
                if grounding:
                    last["groundingMetadata"] = grounding
            first = {key.removeprefix(FIRST): item for key, item in fields.items() if key.startswith(FIRST)}
            merge(last, beside_grounding(first))
            last.pop("index", None)
            chunk = self._candidate([{"text": ""}], **last)
        else:
            chunk = self._chunk({})
        if usage is not None:
            chunk["usageMetadata"] = write_usage(usage, tier, "$.usage", self.losses)
        elif tier:
            self.losses.append(TIER_WITHOUT_USAGE.at("$.service_tier"))
        merge(chunk, {key: item for key, item in fields.items() if not key.startswith(FIRST)})
        out.append(self._framed(chunk, form))
        if self._array is not None:
            out.append(self._array.close())

    def _declare_cited(self) -> None:
        """Sources are reported at the end, when only the last text is still available."""
        for index, _, _, path in self._cited:
            if index != self._head - 1 or self._tail is not Text:
                detail = "sources come at the end of the stream"
                self.losses.append(Loss(f"{path}.citations", "citations", "approximated", detail))

    def _fail(self, error: ApiError, out: list[bytes]) -> None:
        data = _one_line(encode(render_stream_error(error)))
        if self._array is not None:
            out.append(self._array.element(data) + self._array.close())
        else:
            out.append(b"data: %b\r\n\r\n" % data)
