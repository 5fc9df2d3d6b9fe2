"""Several answers to one request (`n`, `candidateCount`) from an upstream that gives one.

The first is that of the request itself. For each further one the gateway sends another request at the same
time, which is answered like a client's: with the provider's keys, retries and breakers, on the budget of the
same client key, with its own row in the ledger and the traces. The client gets all of them, or the error of
the first that fails, as at OpenAI.
"""

from __future__ import annotations

import asyncio
from typing import Final

import msgspec

from wireglot.gateway.errors import RequestError
from wireglot.gateway.relay.judge import Ask
from wireglot.gateway.request.collected_reply import CollectedReply
from wireglot.gateway.request.exchange import Exchange, FurtherAnswer, whole_usage
from wireglot.gateway.request.headers import ESTIMATE
from wireglot.gateway.request.job import CANDIDATE, EMULATE_HEADER, Incoming, Job
from wireglot.http.application import Head
from wireglot_core.dialects.context import Context
from wireglot_core.ir.content import Message, Reasoning, Text
from wireglot_core.ir.errors import ApiError, WireglotError
from wireglot_core.ir.loss import Loss
from wireglot_core.ir.outcome import Candidate, Response
from wireglot_core.ir.request import Request
from wireglot_core.wire.json import BadJson, decode, encode

AGENT: Final = "wireglot-candidate"


def emulated(exchange: Exchange, asked: Request, losses: tuple[Loss, ...]) -> tuple[tuple[Loss, ...], int]:
    """How many further answers the gateway must request, and the losses that report it. 0: the upstream gives
    all of them."""
    wanted = asked.sampling.candidates or 1
    kept = tuple([loss for loss in losses if loss.feature != "candidates" or loss.action != "dropped"])
    if len(kept) == len(losses):
        return losses, 0
    most = exchange.job.settings.limits.candidates
    if wanted > most:
        place = exchange.place("$.sampling.candidates", asked).removeprefix("$.")
        raise RequestError(
            "bad",
            f"{place}: at most {most} for this model, which gives one answer to a request",
            code="unsupported",
            param=place,
        )
    detail = f"{wanted} requests are sent, one for each answer"
    return (*kept, Loss("$.sampling.candidates", "candidates", "emulated", detail)), wanted - 1


class Candidates:
    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    def start(self, exchange: Exchange, count: int) -> None:
        """Request the further answers now, once for all attempts; none if the next target gives them
        itself."""
        asking = exchange.asking
        if len(asking) == count:
            return
        for task in asking:
            task.cancel()
        exchange.asking = [
            asyncio.create_task(self._answer(exchange, number)) for number in range(1, count + 1)
        ]

    async def results(self, exchange: Exchange, count: int) -> tuple[FurtherAnswer, ...]:
        """All further answers; those not requested yet are requested one after the other. Raises the
        RequestError of the first that fails."""
        exchange.leave_provider()  # the further requests may need that place
        if not exchange.asking:
            return tuple([await self._answer(exchange, number) for number in range(1, count + 1)])
        done, _ = await asyncio.wait(exchange.asking, return_when=asyncio.FIRST_EXCEPTION)
        for task in done:
            task.result()
        return tuple([task.result() for task in exchange.asking])

    async def _answer(self, exchange: Exchange, number: int) -> FurtherAnswer:
        job, request = exchange.job, exchange.request()
        sampling = msgspec.structs.replace(request.sampling, candidates=None)
        if sampling.seed is not None:  # the same seed would give the same answer
            sampling = msgspec.structs.replace(sampling, seed=sampling.seed + number)
        asked = msgspec.structs.replace(request, sampling=sampling, stream=False)
        reply = CollectedReply(job.settings.limits.response)
        within = exchange.record.id
        await self._ask(
            _incoming(job), _body(exchange), reply, within, CANDIDATE, _FurtherRound(exchange, asked)
        )
        await exchange.held.room(reply.size)
        response = _read(exchange, reply, number)
        content = response.content
        if exchange.withholds_reasoning:
            content = tuple([part for part in content if type(part) is not Reasoning])
        # The first candidate of that answer is a later one here, so its stop reason is not copied as spelled.
        stop = msgspec.structs.replace(response.stop, dialect="")
        return FurtherAnswer(Candidate(content, stop), response.usage, estimated=ESTIMATE in reply.headers)


class _FurtherRound:
    """Implements `OwnRound`."""

    def __init__(self, first: Exchange, asked: Request) -> None:
        self.problem: Exception | None = None
        self._asked = asked
        self._files = first.files

    def begin(self, exchange: Exchange) -> None:
        exchange.rewrite(self._asked)
        exchange.files = self._files


def _body(exchange: Exchange) -> bytes:
    """A body with the model and the output limit, in the client's dialect: the rest of the request is passed
    in memory."""
    most = exchange.request().max_tokens
    asked = Request(exchange.job.model, (Message("user", (Text("."),)),), max_tokens=most, stream=False)
    return encode(exchange.codec.render_request(asked, Context()).value)


def _incoming(job: Job) -> Incoming:
    path = job.head.path
    headers = {
        "host": job.head.headers.get("host", ""),
        "user-agent": AGENT,
        "content-type": "application/json",
        "x-session-id": job.session,
        "x-wireglot-loss-policy": "silent",
        EMULATE_HEADER: "on",
    }
    if job.timeout is not None:
        headers["x-wireglot-timeout"] = f"{job.timeout:g}"
    head = Head("POST", target=path, path=path, query="", headers=headers, peer=job.head.peer)
    return Incoming(job.settings, head, msgspec.structs.replace(job.asked, stream=False), job.caller)


def _read(exchange: Exchange, reply: CollectedReply, number: int) -> Response:
    codec = exchange.codec
    try:
        document = decode(bytes(reply.body))
        if reply.status == 200:
            return codec.parse_response(document, Context())
        error = codec.parse_error(document, reply.status)
    except (BadJson, WireglotError):
        error = None
    raise _failed(error or ApiError("server", "it cannot be read", status=502), number)


def _failed(error: ApiError, number: int) -> RequestError:
    failed = RequestError("upstream_bad", f"answer {number + 1}: {error.message}")
    failed.error = msgspec.structs.replace(error, message=str(failed), request_id="", extra=None)
    return failed


def with_further(response: Response, further: tuple[FurtherAnswer, ...]) -> Response:
    """A whole answer with the further ones added, and the usage of all of them."""
    others = (*response.others, *[each.answer for each in further])
    return msgspec.structs.replace(response, others=others, usage=whole_usage(response.usage, further))
