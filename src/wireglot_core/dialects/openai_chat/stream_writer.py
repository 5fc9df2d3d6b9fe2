"""Renders events as chunks for a client.

Requirements of openai-python (it accumulates everything): the role first and once; id, type and name of a
call once; `index` on every entry of a list; a custom call as one whole entry; nothing after the usage but
`[DONE]`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from wireglot_core.dialects.answer_writer import AnswerWriter
from wireglot_core.dialects.argument_stream import MendedCalls
from wireglot_core.dialects.common_losses import NO_RESULTS
from wireglot_core.dialects.context import Context, reported_model
from wireglot_core.dialects.fields import own_fields, own_form
from wireglot_core.dialects.openai_chat.errors import render_error
from wireglot_core.dialects.openai_chat.extras import DONE, NAME
from wireglot_core.dialects.openai_chat.lost_fields import LOST
from wireglot_core.dialects.openai_chat.outcome import asks_usage, render_stop, render_tier, render_usage
from wireglot_core.dialects.openai_chat.part_writer import Chunks, PartWriter, lose_late
from wireglot_core.dialects.openai_chat.render_answer import declare_order
from wireglot_core.dialects.openai_chat.response import MALFORMED, render_choice, response_id
from wireglot_core.ir.errors import ApiError
from wireglot_core.ir.outcome import Candidate
from wireglot_core.ir.request import Request, Tool
from wireglot_core.ir.stream import Delta, Event, Finish, ForeignEvent, PartEnd, PartStart, Start
from wireglot_core.ir.verdict import with_whole_calls
from wireglot_core.wire.json import encode
from wireglot_core.wire.sse import frame


class ChatWriter(AnswerWriter):
    dialect = NAME

    def __init__(self, context: Context, request: Request | None = None) -> None:
        super().__init__(context, request, [])
        self._calls = MendedCalls(self.losses)
        self._wants_usage = request is None or asks_usage(request)
        self._chunks = Chunks({}, self._wants_usage)
        self._custom = frozenset(
            tool.name
            for tool in (request.tools if request is not None else ())
            if isinstance(tool, Tool) and tool.kind == "custom"
        )
        self._parts = PartWriter(context, self._chunks, self.losses, self._custom)
        self._answers = 0  # other than the first

    def write(self, events: Iterable[Event]) -> bytes:
        out: list[bytes] = []
        for event in self._calls.events(events):
            if type(event) is Delta:
                sink = self._parts.sink
                if sink is not None and event.index == self._parts.index and not event.logprobs:
                    text = event.text
                    if text:
                        sink.length += len(text)
                        out += (sink.before, encode(text), sink.after)
                elif not self._ended:
                    self._parts.delta(event, out)
            elif not self._ended:
                self.events[type(event)](self, event, out)
        return b"".join(out)

    def _open_part(self, event: PartStart, out: list[bytes]) -> None:
        self._parts.open(event.index, event.part, out)

    def _close_part(self, event: PartEnd, out: list[bytes]) -> None:
        self._parts.close(event, out)

    # Chunks

    def _write_start(self, event: Start, out: list[bytes]) -> None:
        extra = event.extra
        LOST.of(event, "$", self.losses)
        native = bool(own_form(extra, NAME).get("native"))
        self._chunks = Chunks(
            {
                "id": response_id(event.id, native, self._context, event.model, str(event.created)),
                "object": "chat.completion.chunk",
                "created": event.created or self._context.now,
                "model": reported_model(event.model, self._context, self._request),
            },
            self._wants_usage,
        )
        self._parts = PartWriter(self._context, self._chunks, self.losses, None if native else self._custom)
        top = {key: value for key, value in own_fields(extra, NAME).items() if "." not in key}
        if event.service_tier:
            tier = render_tier(event.service_tier, native, "$.service_tier", self.losses)
            if tier is not None:
                top["service_tier"] = tier
        out.append(self._chunks.chunk({"role": "assistant", "content": ""}, top=top))

    def _write_other(self, answer: Candidate, out: list[bytes]) -> None:
        """A further answer, which is complete: one chunk contains all of it."""
        self._answers += 1
        path = f"$.others[{self._answers - 1}]"
        answer = with_whole_calls(answer, path, self.losses)
        LOST.of(answer, path, self.losses)
        choice = render_choice(
            answer, self._answers, path, answer.extra, context=self._context, losses=self.losses
        )
        delta = choice.pop("message", {})
        for number, call in enumerate(delta.get("tool_calls") or ()):
            call["index"] = number
        out.append(self._chunks.plain({"choices": [{**choice, "index": self._answers, "delta": delta}]}))

    # Ends

    def _pass_on(self, event: ForeignEvent, out: list[bytes]) -> None:
        out.append(frame(encode(event.value), event.type.encode("utf-8", "replace")))

    def _finish(self, event: Finish, out: list[bytes]) -> None:
        stop = event.stop
        if stop.reason == "malformed_call" and stop.dialect != NAME:
            self._fail(MALFORMED, out)
            return
        self._ended = True
        extra = event.extra
        assert self._start is not None
        first = self._start.extra
        reported = first.fields if first is not None else {}
        if event.safeguard_results:
            self.losses.append(NO_RESULTS.at("$.safeguard_results"))
        lose_late(extra, first, "$", self.losses, "response.extra")
        delta: dict[str, Any] = {}
        choice: dict[str, Any] = {}
        top: dict[str, Any] = {}
        for key, value in own_fields(extra if extra is not None else first, NAME).items():
            level, dot, tail = key.partition(".")
            if level == "message" and dot:
                delta[tail] = value
            elif level == "choice" and dot:
                choice[tail] = value
            elif key not in reported or reported[key] != value:
                top[key] = value
        if event.service_tier:
            native = stop.dialect == NAME
            losses = (
                [] if event.service_tier == self._start.service_tier else self.losses
            )  # else reported at the start
            tier = render_tier(event.service_tier, native, "$.service_tier", losses)
            if tier is not None:
                top["service_tier"] = tier
        if not own_form(first, NAME).get("native"):  # else it is sent chunk by chunk as received
            declare_order(self._parts.closed, self.losses)
        finish = render_stop(stop, self._parts.calls > 0, self._parts.refusal, "$.stop", self.losses)
        out.append(self._chunks.chunk(delta, finish=finish, choice=choice, top=top))
        usage = self._completed(event).usage
        if self._wants_usage and usage is not None:
            out.append(self._chunks.plain({"choices": [], "usage": render_usage(usage, self.losses)}))
        out.append(DONE)

    def _fail(self, error: ApiError, out: list[bytes]) -> None:
        """Writes one error and no `[DONE]`. openai-python looks for a top-level `error` and for nothing
        else."""
        self._ended = True
        body = render_error(error)
        if not body.get("error"):
            body = render_error(ApiError(error.kind, error.message, code=error.code, param=error.param))
        out.append(frame(encode(body)))
