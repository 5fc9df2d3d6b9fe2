"""One request, tried until it is answered or nothing more may be tried; and the error it ends with."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from typing import Any, Final, NoReturn, TypeVar

from wireglot.dialects.faults import status_message
from wireglot.dialects.registry import dialect
from wireglot.http.failures import AttemptFailed, Blame, of_error, of_transport
from wireglot.http.retry import RetryPolicy, advised_wait
from wireglot.http.transport import TransportFault
from wireglot.ir.errors import ApiError
from wireglot.kimi.carrier import Reply, Send
from wireglot.kimi.errors import ApiErrorCode, KimiApiError
from wireglot.kimi.limits import LIMITS
from wireglot.kimi.report import Report
from wireglot.kimi.retries import helps, next_wait
from wireglot.kimi.seams import Sleep
from wireglot.kimi.setup import DIALECT, Setup
from wireglot.wire.json import BadJson, decode

_CHAT: Final = dialect(DIALECT)
_TRACE: Final = ("x-trace-id", "x-request-id")

T = TypeVar("T")


class Attempts:
    """`status`, `trace_id` and the time are those of the latest attempt."""

    def __init__(
        self, setup: Setup, body: bytes, policy: RetryPolicy, sleep: Sleep | None, report: Report
    ) -> None:
        self._setup = setup
        self._body = body
        self._policy = policy
        self._sleep: Sleep = sleep if sleep is not None else asyncio.sleep
        self._report = report
        self._started = 0.0
        self._tried = 0
        self._trace_id = ""

    @property
    def latency_ms(self) -> int:
        return round((time.perf_counter() - self._started) * 1000)

    async def answer(self, send: Send, receive: Callable[[Reply], Awaitable[T]], accept: str) -> T:
        """What `receive` makes of the first good answer. It may raise AttemptFailed, like the sending."""
        while True:
            self._tried += 1
            try:
                return await receive(await self._attempt(send, accept))
            except AttemptFailed as problem:
                failed = problem
            wait = next_wait(self._policy, failed, self._tried, random.random())
            if wait is None:
                self.fail(failed)
            await self._sleep(wait)

    async def _attempt(self, send: Send, accept: str) -> Reply:
        headers = {
            "authorization": f"Bearer {self._setup.key}",
            "content-type": "application/json",
            "accept": accept,
            "user-agent": "wireglot",
        }
        self._trace_id = ""
        self._started = time.perf_counter()
        try:
            reply = await send(self._setup.url, headers, self._body)
        except Exception as problem:  # a caller's transport may raise anything: it is the network's fault
            failed = self.of_network(problem, before_answer=True)
            raise failed from failed.__cause__
        self._trace_id = next((reply.headers[name] for name in _TRACE if name in reply.headers), "")
        if not 200 <= reply.status <= 299:
            raise await _of_status(reply)
        return reply

    def of_network(self, problem: Exception, *, before_answer: bool = False) -> AttemptFailed:
        """No answer, or half of one. Only what failed before the answer began may be tried again."""
        blame: Blame = "connection"
        if isinstance(problem, TransportFault):
            blame, told = of_transport(problem).blame, problem.message
        else:
            told = f"{type(problem).__name__}: {problem}".removesuffix(": ")
        if not before_answer:
            blame = "timeout"  # the request was worked on: to ask again would be to pay for it twice
        failed = AttemptFailed(ApiError("server", told), blame)
        failed.__cause__ = self._presentable(problem)
        return failed

    def _presentable(self, problem: BaseException) -> BaseException | None:
        """The problem itself, to be shown as the cause; not if it tells the key."""
        link: BaseException | None = problem
        while link is not None:
            if self._report.hides(repr(link)):
                return None
            link = link.__cause__ or link.__context__
        return problem

    def fail(self, failed: AttemptFailed, *, midway: bool = False) -> NoReturn:
        """The end of the call: told in the log, then to the caller."""
        used_up = not midway and helps(self._policy, failed) and self._tried > self._policy.retries
        code: ApiErrorCode = "KIMI_RETRIES_EXHAUSTED" if used_up else "KIMI_API_ERROR"
        error = KimiApiError(
            self._sentence(failed, f" (after {self._tried} attempts)" if used_up else "", midway),
            code=code,
            status=failed.status or None,
            kind=failed.error.kind if failed.status else "network",
            attempts=self._tried,
            trace_id=self._report.clean(self._trace_id),
        )
        self._report.failure(self._setup.model, error, self.latency_ms)
        raise error from failed.__cause__

    def _sentence(self, failed: AttemptFailed, after: str, midway: bool) -> str:
        told = self._report.clean(failed.error.message)
        if midway:
            return f"Kimi's stream broke off: {told}"
        if not failed.status:
            return f"the connection to Kimi failed{after}: {told}"
        return f"Kimi answered with status {failed.status}{after}: {told}"


async def _of_status(reply: Reply) -> AttemptFailed:
    try:
        data = await reply.read(LIMITS.error_body)
    except Exception:  # whatever kept its explanation away: the status itself is known, and tells more
        data = b""
    try:
        document: Any = decode(data)
    except BadJson:
        document = data
    error = _CHAT.parse_error(document, reply.status)
    if error is None:
        error = ApiError("server", status_message(reply.status), reply.status)
    return of_error(error, reply.status, advised_wait(reply.headers, time.time()))
