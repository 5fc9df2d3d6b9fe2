"""One call: sent, answered whole or as a stream, and logged."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

import msgspec

from wireglot.kimi.attempts import Attempts, Report, policy_of
from wireglot.kimi.carrier import CarriedReply, opened
from wireglot.kimi.options import LIMITS, CallArguments
from wireglot.kimi.question import CompletionResult, Question, result_of
from wireglot.kimi.setup import DIALECT, Setup
from wireglot_core.dialects.faults import broken
from wireglot_core.dialects.registry import dialect
from wireglot_core.ir.errors import UpstreamFault
from wireglot_core.ir.failures import of_error
from wireglot_core.ir.outcome import Response, Usage
from wireglot_core.ir.stream import Event, Failure, Finish, Start, UsageReport
from wireglot_core.providers.aliases import EventRestorer
from wireglot_core.wire.json import BadJson, decode

_CHAT = dialect(DIALECT)


class KimiCall:
    def __init__(self, asked: CallArguments, setup: Setup, question: Question) -> None:
        self._question = question
        self._transport = asked.transport
        self._report = Report(asked.log, setup.key)
        policy = policy_of(asked.retry)
        self._attempts = Attempts(setup, question.body, policy, asked.sleep, self._report)

    async def whole(self) -> CompletionResult:
        question, attempts = self._question, self._attempts
        async with opened(self._transport) as send:
            response, raw, latency = await attempts.answer(send, self._read_whole, "application/json")
        result = result_of(response, raw, latency, question.losses, question.plan.context)
        self._tell(result.model, response.usage, latency)
        return result

    async def events(self) -> AsyncGenerator[Event, None]:
        """The events up to Finish. A stream that fails raises: it must not look like one that ended."""
        reader = _CHAT.stream_reader(self._question.plan.context)
        restorer = EventRestorer(self._question.plan.aliases)
        seen = _Seen()
        async with opened(self._transport) as send:
            reply = await self._attempts.answer(send, _as_it_is, "text/event-stream")
            async with aclosing(self._pieces(reply)) as pieces:
                async for piece in pieces:
                    for event in restorer.events(reader.read(piece)):
                        self._check(event, seen, reply.status)
                        yield event
                        if type(event) is Finish:  # a server that keeps the stream open is not waited for
                            return
            for event in restorer.events(reader.end()):
                self._check(event, seen, reply.status)
                yield event

    def _check(self, event: Event, seen: _Seen, status: int) -> None:
        """Called before the event is passed on: a caller that has Finish need not continue to read."""
        match event:
            case Start():
                seen.model, seen.usage = event.model, event.usage
            case UsageReport():
                seen.usage = event.usage
            case Finish():
                usage = event.usage if event.usage is not None else seen.usage
                self._tell(seen.model, usage, self._attempts.latency_ms)
            case Failure(error=error):
                self._attempts.fail(of_error(error, error.status or status), midway=True)
            case _:
                pass

    def _tell(self, model: str, usage: Usage | None, latency: int) -> None:
        usage = usage if usage is not None else Usage()
        self._report.success(model, usage.total_input, usage.total_output, latency)

    async def _pieces(self, reply: CarriedReply) -> AsyncGenerator[bytes, None]:
        """The body as it arrives. Exceptions that a consumer throws in between are not network failures."""
        async with aclosing(reply.pieces()) as pieces:
            while True:
                failed = None
                try:
                    piece = await anext(pieces, None)
                except Exception as problem:  # a caller's transport may raise anything
                    failed, piece = self._attempts.of_network(problem), None
                if failed is not None:
                    self._attempts.fail(failed, midway=True)
                if piece is None:
                    return
                yield piece

    async def _read_whole(self, reply: CarriedReply) -> tuple[Response, dict[str, Any], int]:
        try:
            data = await reply.read(LIMITS.response)
        except Exception as problem:  # a caller's transport may raise anything
            failed = self._attempts.of_network(problem)
            raise failed from failed.__cause__
        latency = self._attempts.latency_ms
        try:
            document = decode(data)
            response = self._parse(document, reply.status)
        except BadJson as problem:
            page = _CHAT.parse_error(data.decode("utf-8", "replace"), reply.status)
            raise of_error(page if page is not None else broken(problem), reply.status) from None
        except UpstreamFault as problem:
            raise of_error(broken(problem), reply.status) from None
        return response, document, latency

    def _parse(self, document: Any, status: int) -> Response:
        error = _CHAT.parse_error(document, status)
        if error is not None:
            raise of_error(error, error.status or status)
        if type(document) is not dict or not document.get("choices"):
            raise UpstreamFault("expected choices")
        response = _CHAT.parse_response(document, self._question.plan.context)
        restore = self._question.plan.aliases.restore
        return msgspec.structs.replace(response, content=tuple(restore(part) for part in response.content))


class _Seen:
    """The values for the log line of a stream, as far as they have been reported."""

    model = ""
    usage: Usage | None = None


async def _as_it_is(reply: CarriedReply) -> CarriedReply:
    return reply
