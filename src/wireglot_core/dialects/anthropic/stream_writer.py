"""Writes events as the client's event stream.

The vendor's SDKs require one block after the other, numbered without gaps: a part that starts while another
is open is held back. A block is opened when it has content, so that no empty text block ever reaches a
client, which would send it back and be refused.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, assert_never

from wireglot_core.dialects.anthropic.answer import AnswerBlocks, message_id, streamed
from wireglot_core.dialects.anthropic.citations import render_citations
from wireglot_core.dialects.anthropic.errors import render_error
from wireglot_core.dialects.anthropic.lost_fields import (
    LOST,
    LOST_IN_ANSWERS,
    NO_CONTENT,
    NO_LOGPROBS,
    NOTHING_CITED,
    WRAPPED_INPUT,
)
from wireglot_core.dialects.anthropic.names import NAME, is_own, put_back
from wireglot_core.dialects.anthropic.outcome import (
    overwrite_estimate,
    render_final_usage,
    render_stop,
    render_usage,
    shorten_final,
)
from wireglot_core.dialects.anthropic.reasoning import carrier, redacted_for_client, signature_for_client
from wireglot_core.dialects.anthropic.response import malformed_call
from wireglot_core.dialects.anthropic.safeguards import IN_DELTA, RESULTS, render_results
from wireglot_core.dialects.argument_stream import ArgumentStream
from wireglot_core.dialects.arguments import declare_arguments
from wireglot_core.dialects.common_losses import LATE_SIGNATURE
from wireglot_core.dialects.context import Context, reported_model
from wireglot_core.dialects.fields import own_fields, own_form
from wireglot_core.dialects.ordered_writer import OrderedWriter, WaitingPart
from wireglot_core.ir.content import Foreign, Media, Reasoning, Text, ToolCall, ToolResult
from wireglot_core.ir.errors import ApiError
from wireglot_core.ir.loss import Loss, losses_of_extra
from wireglot_core.ir.outcome import Usage
from wireglot_core.ir.request import Request
from wireglot_core.ir.stream import (
    Delta,
    Event,
    Finish,
    ForeignEvent,
    PartEnd,
    Start,
    finish_part,
)
from wireglot_core.wire.json import encode
from wireglot_core.wire.sse import frame

_DELTA_END = b"}}\n\n"
_BLOCK_STOP = b'event: content_block_stop\ndata: {"type":"content_block_stop","index":%d}\n\n'


class MessageWriter(OrderedWriter):
    __slots__ = ("_blocks", "_next")

    dialect = NAME
    no_logprobs = NO_LOGPROBS

    def __init__(self, context: Context, request: Request | None = None) -> None:
        super().__init__(context, request)
        self._blocks = AnswerBlocks(context, self.losses, "", False)
        self._next = 0  # the wire index of the next block

    def write(self, events: Iterable[Event]) -> bytes:
        out: list[bytes] = []
        for event in events:
            if type(event) is not Delta:
                self.events[type(event)](self, event, out)
            elif event.index == self._live and not event.logprobs:
                text = event.text
                if text and self._arguments is not None:
                    text = self._arguments.feed(text)
                if text:
                    out.append(self._prefix + encode(text) + _DELTA_END)
            else:
                self._delta(event, out)
        return out[0] if len(out) == 1 else b"".join(out)

    # The message

    def _write_start(self, start: Start, out: list[bytes]) -> None:
        native = is_own(start.extra)
        self._blocks.response_id, self._blocks.native = start.id, native
        # A first estimate; the final usage overwrites it and reports its losses.
        usage = render_usage(start.usage or Usage(), "$.usage", [])
        usage.setdefault("input_tokens", 0)
        usage.setdefault("output_tokens", 0)
        message: dict[str, Any] = {
            "id": start.id if native and start.id else message_id(start.id, self._context),
            "type": "message",
            "role": "assistant",
            "model": reported_model(start.model, self._context, self._request),
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            **({} if native else {"stop_details": None, "container": None}),
            "usage": usage,
        }
        if native:
            put_back(message, start.extra)
        self._event("message_start", {"type": "message_start", "message": message}, out)

    def _finish(self, finish: Finish, out: list[bytes]) -> None:
        if finish.stop.reason == "malformed_call":
            self._fail(malformed_call(finish.stop), out)
            return
        start, finish = self._start, self._completed(finish)
        extra = finish.extra
        delta = render_stop(finish.stop, "$.stop", self.losses)
        if finish.safeguard_results:
            delta[RESULTS] = render_results(finish.safeguard_results, self._blocks.call_id, self.losses)
        event: dict[str, Any] = {"type": "message_delta", "delta": delta}
        event["usage"] = render_final_usage(finish.usage, finish.service_tier, self.losses)
        event["usage"].setdefault("output_tokens", 0)
        if start is not None and start.usage is not None:
            overwrite_estimate(start.usage, event["usage"])
        shorten_final(event["usage"], start.usage if start is not None else None)
        if not is_own(extra):
            delta["container"] = None
            LOST.of(finish, "$", self.losses)
        else:
            known = own_fields(start.extra if start is not None else None, NAME)
            for key, value in own_fields(extra, NAME).items():
                if key not in known or known[key] != value:
                    (delta if key in IN_DELTA else event).setdefault(key, value)
        self._event("message_delta", event, out)
        beside = own_form(extra, NAME).get("message_stop", {})
        self._event("message_stop", {"type": "message_stop", **beside}, out)

    def _fail(self, error: ApiError, out: list[bytes]) -> None:
        """Writes one terminal error and nothing after it, not even the stop of an open block."""
        self._live = -1
        rendered = render_error(error, self._context)
        self.losses.extend(rendered.losses)
        self._event("error", rendered.value, out)

    def _pass_on(self, event: ForeignEvent, out: list[bytes]) -> None:
        head, value = self._head, event.value
        if event.type != "content_block_delta":
            out.append(frame(encode(value), event.type.encode("utf-8", "replace")))
        elif head is not None and head.opened and value.get("index") == head.index:
            self._event(event.type, {**value, "index": self._next - 1}, out)
        else:
            self._lose_foreign(event)

    # One part after the other

    def _begin_part(self, waiting: WaitingPart, out: list[bytes]) -> None:
        part = waiting.part
        match part:
            case Text():
                LOST_IN_ANSWERS.of_fields(part, waiting.path, self.losses)
                waiting.scored = bool(part.logprobs)
                if part.text:
                    self._more(waiting, part.text, out)
            case Reasoning():
                if part.redacted and part.signature is not None:
                    self._open(waiting, self._redacted(part, waiting), out)
                elif part.text and not part.redacted:
                    self._more(waiting, part.text, out)
            case ToolCall():
                self._begin_call(waiting, part, out)
            case Foreign():
                block = self._blocks.foreign(part, waiting.path)
                if block is not None:
                    start, delta = streamed(block)
                    self._open(waiting, start, out)
                    if delta is not None:
                        self._block_delta(delta, out)
            case Media() | ToolResult():
                self._blocks.leave_out(part, waiting.path)
            case _:
                assert_never(part)

    def _begin_call(self, waiting: WaitingPart, part: ToolCall, out: list[bytes]) -> None:
        if part.signature is not None:
            self._carry(carrier(part.signature, "call", self._context), out)
        own = part.extra if is_own(part.extra) else None  # another dialect's fields are reported at the end
        bare = ToolCall(part.id, part.name, "", namespace=part.namespace, cache=part.cache, extra=own)
        block = self._blocks.call(bare, waiting.path)
        block["input"] = {}
        self._open(waiting, block, out)
        if part.kind == "function":
            waiting.arguments = ArgumentStream()
            self._go_live(waiting, "input_json_delta", "partial_json")
        if part.arguments:
            self._more(waiting, part.arguments, out)

    def _more(self, waiting: WaitingPart, text: str, out: list[bytes]) -> None:
        part = waiting.part
        match part:
            case Text():
                if not waiting.opened:
                    if part.signature is not None:
                        self._carry(carrier(part.signature, "text", self._context), out)
                    block = self._blocks.empty_text()
                    put_back(block, part.extra)
                    self._open(waiting, block, out)
                    self._go_live(waiting, "text_delta", "text")
                out.append(self._prefix + encode(text) + _DELTA_END)
            case Reasoning() if not part.redacted:
                self._open_thinking(waiting, part, out)
                out.append(self._prefix + encode(text) + _DELTA_END)
            case ToolCall():
                if waiting.arguments is None:
                    waiting.pieces.append(text)  # freeform text, wrapped as a whole at its end
                elif passed := waiting.arguments.feed(text):
                    self._block_delta({"type": "input_json_delta", "partial_json": passed}, out)
            case _:
                pass

    def _open_thinking(self, waiting: WaitingPart, part: Reasoning, out: list[bytes]) -> None:
        if waiting.opened:
            return
        block: dict[str, Any] = {"type": "thinking", "thinking": "", "signature": ""}
        put_back(block, part.extra)
        self._open(waiting, block, out)
        self._go_live(waiting, "thinking_delta", "thinking")

    def _end(self, waiting: WaitingPart, end: PartEnd, out: list[bytes]) -> None:
        part = waiting.part
        self._live = -1
        match part:
            case Text():
                self._end_text(waiting, part, end, out)
            case Reasoning():
                self._end_reasoning(waiting, part, end, out)
            case ToolCall() if end.cut:
                self._blocks.declare_cut(waiting.path)
            case ToolCall():
                self._end_call(waiting, part, end, out)
            case _:
                pass
        extra = end.extra or getattr(part, "extra", None)
        if extra is not None and not isinstance(part, Media):  # reported as a whole
            losses_of_extra(extra, NAME, waiting.path, self.losses)
        if waiting.opened:
            out.append(_BLOCK_STOP % (self._next - 1))

    def _end_text(self, waiting: WaitingPart, part: Text, end: PartEnd, out: list[bytes]) -> None:
        if end.signature is not None or (part.signature is not None and not waiting.opened):
            detail = (
                "it came after the text it belongs to" if waiting.opened else "there is no text to carry it"
            )
            self.losses.append(Loss(f"{waiting.path}.signature", "reasoning.signature", "dropped", detail))
        citations = part.citations + end.citations
        if citations and not waiting.opened:
            self.losses.append(NOTHING_CITED.at(f"{waiting.path}.citations"))
            return
        if citations:
            for citation in render_citations(enumerate(citations), waiting.path, self.losses, echoable=False):
                self._block_delta({"type": "citations_delta", "citation": citation}, out)

    def _end_reasoning(self, waiting: WaitingPart, part: Reasoning, end: PartEnd, out: list[bytes]) -> None:
        whole = finish_part(part, "", (), end)
        assert isinstance(whole, Reasoning)
        if part.redacted:
            if not waiting.opened:
                if whole.signature is None:
                    self.losses.append(NO_CONTENT.at(waiting.path))
                else:
                    self._open(waiting, self._redacted(whole, waiting), out)
            return
        self._open_thinking(waiting, part, out)
        self._live = -1
        signature = signature_for_client(whole, self._context)
        if signature:
            self._block_delta({"type": "signature_delta", "signature": signature}, out)

    def _end_call(self, waiting: WaitingPart, part: ToolCall, end: PartEnd, out: list[bytes]) -> None:
        if end.signature is not None and end.signature != part.signature:
            self.losses.append(LATE_SIGNATURE.at(f"{waiting.path}.signature"))
        if waiting.arguments is not None:
            rest = waiting.arguments.finish()
            if waiting.arguments.form:
                declare_arguments(waiting.arguments.form, waiting.path, self.losses)
        else:
            whole = "".join(waiting.pieces)
            self.losses.append(WRAPPED_INPUT.at(f"{waiting.path}.arguments"))
            rest = encode({"input": whole}).decode()
        if rest:
            self._block_delta({"type": "input_json_delta", "partial_json": rest}, out)

    def _redacted(self, part: Reasoning, waiting: WaitingPart) -> dict[str, Any]:
        assert part.signature is not None
        block: dict[str, Any] = {
            "type": "redacted_thinking",
            "data": redacted_for_client(part.signature, self._context),
        }
        return put_back(block, part.extra)

    # Frames

    def _carry(self, block: dict[str, Any], out: list[bytes]) -> None:
        """Writes a whole thinking block that carries the state of the part after it."""
        signature = block["signature"]
        index = self._next
        self._next += 1
        start = {"type": "content_block_start", "index": index, "content_block": {**block, "signature": ""}}
        self._event("content_block_start", start, out)
        self._block_delta({"type": "signature_delta", "signature": signature}, out)
        out.append(_BLOCK_STOP % index)

    def _open(self, waiting: WaitingPart, block: dict[str, Any], out: list[bytes]) -> None:
        start = {"type": "content_block_start", "index": self._next, "content_block": block}
        waiting.opened = True
        self._next += 1
        self._event("content_block_start", start, out)

    def _go_live(self, waiting: WaitingPart, kind: str, key: str) -> None:
        self._live = waiting.index
        self._arguments = waiting.arguments
        self._prefix = (
            b'event: content_block_delta\ndata: {"type":"content_block_delta","index":%d,'
            b'"delta":{"type":"%b","%b":' % (self._next - 1, kind.encode(), key.encode())
        )

    def _block_delta(self, delta: dict[str, Any], out: list[bytes]) -> None:
        event = {"type": "content_block_delta", "index": self._next - 1, "delta": delta}
        self._event("content_block_delta", event, out)

    def _event(self, name: str, value: dict[str, Any], out: list[bytes]) -> None:
        """`name`: an event name of this dialect, without a line end; JSON contains none either."""
        out.append(b"event: %b\ndata: %b\n\n" % (name.encode(), encode(value)))
