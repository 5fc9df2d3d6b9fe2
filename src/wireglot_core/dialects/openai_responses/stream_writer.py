"""Writes the client's stream: every event in order, with the same ids from the first to the last."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from wireglot_core.dialects.answer_writer import AnswerWriter
from wireglot_core.dialects.argument_stream import MendedCalls
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.fields import own_form
from wireglot_core.dialects.openai_responses.client_tools import client_run
from wireglot_core.dialects.openai_responses.echo import reported
from wireglot_core.dialects.openai_responses.errors import error_object, failed_code
from wireglot_core.dialects.openai_responses.item_writer import ItemWriter
from wireglot_core.dialects.openai_responses.lost_fields import LOST
from wireglot_core.dialects.openai_responses.outcome import render_stop, render_usage
from wireglot_core.dialects.openai_responses.output import (
    SEAM,
    ItemIds,
    hides_state,
    response_id,
)
from wireglot_core.dialects.openai_responses.response import finish_body, render_body_tier, respell, shell
from wireglot_core.dialects.openai_responses.spelling import NAME
from wireglot_core.ir.errors import ApiError
from wireglot_core.ir.outcome import Response, Stop
from wireglot_core.ir.request import Request
from wireglot_core.ir.stream import Delta, Event, Finish, ForeignEvent, PartEnd, PartStart, Start
from wireglot_core.wire.json import encode

_LAST = {"incomplete": "response.incomplete", "failed": "response.failed"}


class ResponsesWriter(AnswerWriter):
    """Its items collect the bytes."""

    dialect = NAME

    def __init__(self, context: Context, request: Request | None = None) -> None:
        self._items = ItemWriter(context, client_run(request.tools) if request is not None else {})
        self._items.hides_state = hides_state(request)
        super().__init__(context, request, self._items.losses)
        self._calls = MendedCalls(self.losses)
        self._shell: dict[str, Any] = {}

    def write(self, events: Iterable[Event]) -> bytes:
        items = self._items
        out = items.out
        for event in self._calls.events(events):
            if type(event) is Delta:
                part = items.parts[event.index]
                if part.before and not event.logprobs:
                    text = event.text
                    if text == SEAM and items.next_section(part):
                        continue
                    part.text.add(text)
                    number = items.sequence
                    items.sequence = number + 1
                    out.append(b"%b%d%b%b%b" % (part.before, number, part.after, encode(text), part.tail))
                else:
                    items.first_delta(part, event)
            elif not self._ended:
                self.events[type(event)](self, event, out)
        data = b"".join(out)
        out.clear()
        return data

    def _open_part(self, event: PartStart, out: list[bytes]) -> None:
        self._items.open(event)

    def _close_part(self, event: PartEnd, out: list[bytes]) -> None:
        self._items.close(event)

    def _pass_on(self, event: ForeignEvent, out: list[bytes]) -> None:
        self._items.pass_on(event)

    # The frame

    def _write_start(self, start: Start, out: list[bytes]) -> None:
        items = self._items
        native = start.extra is not None and start.extra.dialect == NAME
        identifier = reported(self._request).get("id") or response_id(
            start.id, start.model, self._context, native
        )
        items.ids = ItemIds(identifier, self._context)
        whole = Response(start.id, start.model, (), Stop("end"), created=start.created, extra=start.extra)
        self._shell = shell(whole, identifier, self._context, self._request)
        items.emit("response.created", {"response": self._shell})
        items.emit("response.in_progress", {"response": self._shell})

    def _finish(self, finish: Finish, out: list[bytes]) -> None:
        assert self._start is not None
        finish = self._completed(finish)
        items, extra = self._items, finish.extra
        status, why = render_stop(finish.stop, items.content, items.losses)
        items.release("incomplete" if status == "incomplete" else "completed")
        LOST.of(finish, "$", items.losses)
        body = dict(self._shell)
        form = own_form(extra, NAME)
        if "body" in form:
            body.update(form["body"])
        body.update(reported(self._request))  # again: whether it is stored is known only now
        whole = Response(
            self._start.id, self._start.model, (), finish.stop, created=self._start.created, extra=extra
        )
        finish_body(body, whole, status, why, self._context)
        output = [item.value for item in items.items if item.value]
        body["output"] = output
        body["usage"] = render_usage(finish.usage, items.losses)
        render_body_tier(body, finish.service_tier, form, items.losses)
        spelled = respell(body, extra)
        spelled.update(id=self._shell["id"], object="response", output=output, status=status)
        items.emit(_LAST.get(status, "response.completed"), {"response": spelled})
        self._ended = True

    def _fail(self, error: ApiError, out: list[bytes]) -> None:
        """An `error` event, then `response.failed`: some clients know only one of them."""
        items = self._items
        items.cut()
        if not self._shell:
            identifier = reported(self._request).get("id") or response_id(
                "", self._context.model, self._context, False
            )
            whole = Response("", self._context.model, (), Stop("other"))
            self._shell = shell(whole, identifier, self._context, self._request)
        envelope = error_object(error)
        flat = {"code": envelope["code"], "message": error.message, "param": envelope["param"]}
        items.emit("error", {**flat, "error": {"type": envelope["type"], **flat}})
        body = dict(self._shell)
        body["status"] = "failed"
        body["error"] = {"code": failed_code(error), "message": error.message}
        body["output"] = [item.value for item in items.items if item.value]
        if self._usage is not None:
            body["usage"] = render_usage(self._usage, [])
        items.emit("response.failed", {"response": body})
        self._ended = True
