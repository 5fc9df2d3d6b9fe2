"""Checks a provider with one cheap request: whether it is reachable, accepts the key, and its own message.

It is sent like the gateway's other requests: with the same connections, proxies, headers and logins. It costs
no tokens. The result contains no secret.
"""

from __future__ import annotations

import asyncio
import errno
import time
from collections.abc import Callable
from email.utils import parsedate_to_datetime
from typing import Final, Literal
from urllib.parse import urlsplit

import msgspec

from wireglot.gateway.config.urls import is_local
from wireglot.gateway.observe.redact import secrets_of
from wireglot.gateway.relay.explanation import own_words
from wireglot.gateway.relay.outbound import key_questions
from wireglot.gateway.relay.sign_ins import SignIns
from wireglot.gateway.settings import Credential, Provider, Settings
from wireglot.http.redaction import Redactor
from wireglot.http.transport import Answer, Outbound, Timeouts, Transport, TransportFault, TransportProblem
from wireglot.stores.servers import tls_fault
from wireglot_core.dialects.listed_model import read_list
from wireglot_core.dialects.registry import dialect
from wireglot_core.ir.errors import ApiError, ErrorKind
from wireglot_core.ir.failures import AttemptFailed
from wireglot_core.wire.json import BadJson, decode

Outcome = Literal["taken", "refused", "forbidden", "unpaid", "busy", "failing", "silent", "no-login", "other"]
"""taken: it answers, and accepts the key if it needs one. forbidden: it knows the key but denies access, or
allows it only to certain programs. other: the server at this address is not such a provider."""

Verdict = Literal["good", "refused", "unknown"]

# Seconds that a check of a key takes.
MAX_SECONDS: Final = 10.0
_FAR: Final = Timeouts(connect=5.0, tls=5.0, first_byte=8.0, idle=8.0, total=MAX_SECONDS)
_NEAR: Final = Timeouts(connect=1.0, tls=2.0, first_byte=3.0, idle=3.0, total=5.0)
"""For servers on this machine or in its network."""
# Models that are read in a check of a key.
_MAX_MODELS: Final = 5000
# Bytes of a list of models in a check of a key.
_MAX_BYTES: Final = 16 * 2**20
_OK: Final = 200
_NOT_THERE: Final = frozenset({404, 405, 501})
_OUTCOMES: Final[dict[ErrorKind, Outcome]] = {
    "auth": "refused",
    "permission": "forbidden",
    "billing": "unpaid",
    "rate_limit": "busy",
    "overloaded": "busy",
    "server": "failing",
    "timeout": "failing",
}
_STATUSES: Final[dict[int, Outcome]] = {401: "refused", 402: "unpaid", 403: "forbidden", 429: "busy"}
_TAKEN_ALL_THE_SAME: Final[frozenset[ErrorKind]] = frozenset({"invalid_request", "not_found", "conflict"})
"""Errors of an invalid request that still show the key was accepted: it is checked before the request."""
_REASONS: Final = {
    errno.ECONNREFUSED: "no server is listening (connection refused)",
    errno.ENETUNREACH: "its network is unreachable",
    errno.EHOSTUNREACH: "its host is unreachable",
    errno.ECONNRESET: "the connection was reset",
}


class ProviderAnswer(msgspec.Struct, frozen=True):
    """How one provider answered with one of its keys."""

    provider: str
    question: str
    """The method and URL that were requested, such as `GET https://...`."""
    outcome: Outcome
    words: str = ""
    """The provider's own message, or the reason why there is none."""
    status: int = 0
    problem: TransportProblem | None = None
    milliseconds: int = 0
    skew: float | None = None
    """Seconds by which its clock is ahead of ours."""
    models: tuple[str, ...] = ()
    source: str = ""
    """Where its key comes from."""
    fix: str = ""
    """How to fix a failed login."""

    @property
    def is_on(self) -> bool:
        return self.outcome == "taken"

    @property
    def verdict(self) -> Verdict:
        """The verdict on the key."""
        if self.outcome in ("taken", "unpaid"):
            return "good"
        return "refused" if self.outcome == "refused" else "unknown"

    @property
    def is_unreached(self) -> bool:
        """Whether the provider is unreachable, for example without a network. A slow one may still answer."""
        return self.outcome == "silent" and self.problem in ("dns", "connect", "tls", "protocol")

    def sentence(self, title: str) -> str:
        """A sentence about the key."""
        says = f" (it says: {self.words})" if self.words else ""
        match self.outcome:
            case "taken":
                return f"{title} accepts the key"
            case "unpaid":
                return f"{title} accepts the key, but not its account{says}"
            case "refused":
                return f"{title} rejects the key{says}"
            case "forbidden":
                return f"{title} does not allow requests with the key{says}"
            case "silent":
                return f"{title} cannot be reached at {self.host}: {self.words}"
            case _:
                return f"{title} did not report whether it accepts the key{says}"

    @property
    def host(self) -> str:
        return host_of(self.question.partition(" ")[2])


def host_of(url: str) -> str:
    """The host with its port, unless that is the default; "" for an invalid URL."""
    try:
        place = urlsplit(url)
        return f"{place.hostname}:{place.port}" if place.port else place.hostname or ""
    except ValueError:
        return ""


def is_asked(provider: Provider) -> bool:
    """Whether the provider is checked: the demo is part of this program."""
    return provider.spec.base_url.startswith(("http:", "https:"))


def first_question(provider: Provider) -> str:
    """The method and URL of the first request, to be shown before it is sent."""
    return next((_reported(outbound) for _, outbound in key_questions(provider, None)), "")


class KeyChecker:
    def __init__(self, transport: Transport, clock: Callable[[], float], timeouts: Timeouts | None) -> None:
        self._transport = transport
        self._timeouts = timeouts
        self._clock = clock
        self._granted: list[str] = []
        self._sign_ins = SignIns(hide=lambda _, secret: self._granted.append(secret))

    async def ask(self, provider: Provider, credential: Credential | None) -> ProviderAnswer:
        source = credential.secret.source if credential is not None else ""
        blank = ProviderAnswer(provider.name, first_question(provider), "silent", source=source)
        try:
            async with asyncio.timeout(MAX_SECONDS):
                if credential is not None and credential.login is not None:
                    credential = await self._sign_ins.ready(credential)
                found = await self._first_that_is_there(provider, credential, blank)
        except AttemptFailed as failed:  # of the login
            replaced: dict[str, object] = {"outcome": "no-login", "words": failed.error.message}
            found = msgspec.structs.replace(blank, fix=failed.fix, **replaced)
        except TransportFault as fault:
            found = msgspec.structs.replace(blank, problem=fault.problem, words=_cause(fault))
        except TimeoutError:
            words = f"no answer within {MAX_SECONDS:g} s"
            found = msgspec.structs.replace(blank, problem="total_timeout", words=words)
        return msgspec.structs.replace(found, words=self._clean(provider, found.words))

    async def _first_that_is_there(
        self, provider: Provider, credential: Credential | None, blank: ProviderAnswer
    ) -> ProviderAnswer:
        found = blank
        for spoken, outbound in key_questions(provider, credential):
            found = await self._answer(spoken, outbound, blank)
            if found.status not in _NOT_THERE or outbound.method == "POST":
                break
        return found

    async def _answer(self, spoken: str, outbound: Outbound, blank: ProviderAnswer) -> ProviderAnswer:
        usual = _NEAR if is_local(urlsplit(outbound.url).hostname or "") else _FAR
        timeouts = self._timeouts or usual
        asked_at, began = self._clock(), time.monotonic()
        answer = await self._transport.send(outbound, timeouts)
        passed = time.monotonic() - began
        found = msgspec.structs.replace(
            blank,
            question=_reported(outbound),
            status=answer.status,
            milliseconds=round(passed * 1000),
            skew=_skew(answer, asked_at + passed / 2),
        )
        try:
            body = await answer.read(_MAX_BYTES)
        except BaseException:
            answer.abort()
            raise
        return _judged(found, spoken, outbound, body)

    def _clean(self, provider: Provider, words: str) -> str:
        secrets = secrets_of(Settings(providers={provider.name: provider}))
        return Redactor([*secrets, *self._granted], [provider.name]).text(words)


def _judged(found: ProviderAnswer, spoken: str, outbound: Outbound, body: bytes) -> ProviderAnswer:
    try:
        document = decode(body)
    except BadJson:
        document = None
    if found.status == _OK and document is not None:
        models = tuple(model.id for model in read_list(document, _MAX_MODELS))
        return msgspec.structs.replace(found, outcome="taken", models=models)
    error = dialect(spoken).parse_error(document, found.status) if isinstance(document, dict) else None
    outcome, words = _outcome(found.status, error, outbound)
    return msgspec.structs.replace(found, outcome=outcome, words=words)


def _outcome(status: int, error: ApiError | None, outbound: Outbound) -> tuple[Outcome, str]:
    words = (own_words(error) if error is not None else "") or f"status {status}"
    if error is not None and error.kind == "auth":
        return "refused", words
    if status in _STATUSES:  # hosts of a foreign dialect use other statuses differently
        return _STATUSES[status], words
    if error is None:
        return "failing" if status >= 500 else "other", words
    if outbound.method == "POST" and error.kind in _TAKEN_ALL_THE_SAME:
        return "taken", ""
    return _OUTCOMES.get(error.kind, "other"), words


def _skew(answer: Answer, now: float) -> float | None:
    """None if an answer has no date, or one from a cache."""
    if "age" in answer.headers:
        return None
    try:
        return parsedate_to_datetime(answer.headers.get("date", "")).timestamp() - now
    except (ValueError, OverflowError):
        return None


def _cause(fault: TransportFault) -> str:
    """The system's error message, which clients are not given."""
    if reported := tls_fault(fault):
        return reported
    at: BaseException | None = fault
    while at is not None:
        if isinstance(at, OSError) and at.errno in _REASONS:
            return _REASONS[at.errno]
        if isinstance(at, TimeoutError):
            return "it does not answer in time"
        at = at.__cause__ or at.__context__
    return "its name is not known here (DNS)" if fault.problem == "dns" else fault.message


def _reported(outbound: Outbound) -> str:
    return f"{outbound.method} {outbound.url}"
