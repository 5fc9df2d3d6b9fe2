"""One request with its retries, and the error it ends with."""

from __future__ import annotations

import asyncio
import random
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any, Final, NoReturn, TypeVar

from wireglot.http.redaction import Redactor
from wireglot.http.retry import FIXED_100MS, RetryPolicy, advised_wait, wait_before
from wireglot.http.transport import TransportFault
from wireglot.kimi.carrier import CarriedReply, Send
from wireglot.kimi.errors import ApiErrorCode, KimiApiError, KimiConfigError
from wireglot.kimi.options import LIMITS, Log, RetryPreset, Sleep
from wireglot.kimi.setup import DIALECT, Setup
from wireglot_core.dialects.faults import status_message
from wireglot_core.dialects.registry import dialect
from wireglot_core.ir.errors import ApiError, legible
from wireglot_core.ir.failures import HELPED_BY_RETRY, AttemptFailed, Blame, of_connection, of_error
from wireglot_core.wire.json import BadJson, decode

POLICIES: Final[dict[RetryPreset, RetryPolicy]] = {"fixed-100ms": FIXED_100MS, "modern": RetryPolicy()}


def policy_of(preset: RetryPreset) -> RetryPolicy:
    policy = POLICIES.get(preset)
    if policy is None:
        raise KimiConfigError(f"unknown retry preset {preset!r}: expected one of {', '.join(POLICIES)}")
    return policy


def helps(policy: RetryPolicy, failed: AttemptFailed) -> bool:
    """Whether another attempt could help. A failure without a status is a network failure."""
    if not failed.status:
        return policy.connection_errors and failed.blame == "connection"
    if policy.schedule is not None:
        # The contract uses only the status. Its schedule is too short to wait for a quota anyway.
        return failed.status == 429 or 500 <= failed.status <= 599
    return failed.blame in HELPED_BY_RETRY


def next_wait(policy: RetryPolicy, failed: AttemptFailed, tried: int, chance: float) -> float | None:
    """Seconds until the next attempt after `tried` of them; None: that was the last."""
    return wait_before(policy, tried, failed.wait, chance) if helps(policy, failed) else None


UNKNOWN = "unknown"
# Characters of one word in the log of the Kimi client.
_WORD_MAX = 128


class Report:
    """Writes the log lines of one call. They never contain the key, whichever text it was in."""

    def __init__(self, log: Log | None, key: str) -> None:
        self._log = log if log is not None else _to_stderr
        self._redactor = Redactor((key,))

    def clean(self, text: str) -> str:
        return self._redactor.text(legible(text))

    def hides(self, text: str) -> bool:
        """Whether the text contains something that must not be shown."""
        return self._redactor.text(text) != text

    def success(self, model: str, prompt_tokens: int, completion_tokens: int, latency_ms: int) -> None:
        self._write(
            f"[kimi] model={self._word(model)} prompt_tokens={prompt_tokens} "
            f"completion_tokens={completion_tokens} latency_ms={latency_ms}"
        )

    def failure(self, model: str, error: KimiApiError, latency_ms: int) -> None:
        status = error.status if error.status is not None else "none"
        self._write(
            f"[kimi] error={error.code} class={error.kind} status={status} attempts={error.attempts} "
            f"model={self._word(model)} latency_ms={latency_ms} trace_id={self._word(error.trace_id)}"
        )

    def _word(self, text: str) -> str:
        """A value that cannot be taken for two fields of the line."""
        return "_".join(self.clean(text[:_WORD_MAX]).split()) or UNKNOWN

    def _write(self, line: str) -> None:
        # An answer that was paid for must not be lost because it could not be logged.
        try:
            self._log(line)
        except Exception:  # a log that fails must not fail the call
            return


def _to_stderr(line: str) -> None:
    if sys.stderr is not None:  # pythonw has none
        sys.stderr.write(f"{line}\n")
        sys.stderr.flush()


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

    async def answer(self, send: Send, receive: Callable[[CarriedReply], Awaitable[T]], accept: str) -> T:
        """The result of `receive` for the first good answer. It may raise AttemptFailed, like the sending."""
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

    async def _attempt(self, send: Send, accept: str) -> CarriedReply:
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
        except Exception as problem:  # a caller's transport may raise anything: treated as a network failure
            failed = self.of_network(problem, before_answer=True)
            raise failed from failed.__cause__
        self._trace_id = next((reply.headers[name] for name in _TRACE if name in reply.headers), "")
        if not 200 <= reply.status <= 299:
            raise await _of_status(reply)
        return reply

    def of_network(self, problem: Exception, *, before_answer: bool = False) -> AttemptFailed:
        """No answer, or half of one. Only what failed before the answer began may be retried."""
        blame: Blame = "connection"
        if isinstance(problem, TransportFault):
            blame, reported = of_connection(problem.problem, problem.message).blame, problem.message
        else:
            reported = f"{type(problem).__name__}: {problem}".removesuffix(": ")
        if not before_answer:
            blame = "timeout"  # the request was processed: a retry would be paid for twice
        failed = AttemptFailed(ApiError("server", reported), blame)
        failed.__cause__ = self._presentable(problem)
        return failed

    def _presentable(self, problem: BaseException) -> BaseException | None:
        """The problem itself, to be shown as the cause; None if it contains the key."""
        link: BaseException | None = problem
        while link is not None:
            if self._report.hides(repr(link)):
                return None
            link = link.__cause__ or link.__context__
        return problem

    def fail(self, failed: AttemptFailed, *, midway: bool = False) -> NoReturn:
        """Ends the call: reported in the log, then to the caller."""
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
        reported = self._report.clean(failed.error.message)
        if midway:
            return f"Kimi's stream broke off: {reported}"
        if not failed.status:
            return f"the connection to Kimi failed{after}: {reported}"
        return f"Kimi answered with status {failed.status}{after}: {reported}"


async def _of_status(reply: CarriedReply) -> AttemptFailed:
    try:
        data = await reply.read(LIMITS.error_body)
    except Exception:  # whatever prevented an explanation: the known status is more useful
        data = b""
    try:
        document: Any = decode(data)
    except BadJson:
        document = data
    error = _CHAT.parse_error(document, reply.status)
    if error is None:
        error = ApiError("server", status_message(reply.status), reply.status)
    return of_error(error, reply.status, advised_wait(reply.headers, time.time()))
