"""One request on its way through the gateway: what was asked, by whom, read once and kept."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Awaitable, Callable
from typing import Any, Final, Protocol

import msgspec

from wireglot.dialects.base import Context
from wireglot.dialects.registry import dialect
from wireglot.gateway.entry.guard import Caller
from wireglot.gateway.entry.routes import Asked
from wireglot.gateway.errors import RequestError
from wireglot.gateway.observe.record import Record
from wireglot.gateway.request.client_stream import ClientStream, Teller
from wireglot.gateway.request.estimator import Estimator
from wireglot.gateway.request.results import with_calls
from wireglot.gateway.request.sessions import conversation_name, grouping_name
from wireglot.gateway.settings import LossPolicy, Settings
from wireglot.http.application import Head, Headers, Reply
from wireglot.http.redaction import Redactor
from wireglot.ir.errors import ClientFault, Unsupported, WireglotError
from wireglot.ir.loss import Loss
from wireglot.ir.outcome import Response
from wireglot.ir.request import Request
from wireglot.wire.json import BadJson, decode, exceeds_depth
from wireglot.wire.splice import Outline

_DECISIVE: Final = frozenset({"model", "stream", "thread"})
_SEALED: Final = b'"V0cx'  # how our envelopes begin, base64 of their magic
_UNSIGNED: Final = b'"rs_wg'  # reasoning that nobody signed, under an id that only we know
_OPENING: Final = 1024
_MEASURED: Final = 16 * 1024
"""Larger bodies are held to the depth at which the parser itself gives up: measuring them costs too much."""
_LIKENED: Final = bytes.maketrans(b"123456789E", b"000000000e")
"""Exponents of three digits are found in a third of the time where all digits are alike."""
_NO_NUMBER: Final = re.compile(rb"\W?-?(?:NaN|Infinity)")
_POLICIES: Final = frozenset({"strict", "warn", "silent"})


class Keeping(Protocol):
    """Something that must be remembered of an answer before its end goes out to the client."""

    async def keep(self, response: Response) -> None:
        """`response` is as the client sees it. A Fault raised here is what the client gets instead."""
        ...


class Job:
    """Everything a request needs on its way. It keeps the settings it came in under, whatever is reloaded."""

    __slots__ = (
        "_document",
        "_request",
        "_sealed",
        "asked",
        "body",
        "caller",
        "client",
        "completed",
        "context",
        "conversation",
        "dialect",
        "durable",
        "feeder",
        "framing",
        "head",
        "heard",
        "invented",
        "keepings",
        "losses",
        "model",
        "outline",
        "passed_back",
        "policy",
        "record",
        "redactor",
        "reply",
        "rewritten",
        "session",
        "settings",
        "stream",
        "stripped",
        "tells_losses",
        "thread",
        "timeout",
    )

    def __init__(
        self,
        settings: Settings,
        head: Head,
        body: bytes,
        asked: Asked,
        caller: Caller,
        record: Record,
        reply: Reply,
        redactor: Redactor,
        now: int,
    ) -> None:
        self.settings = settings
        self.head = head
        self.body = body
        self.asked = asked
        self.caller = caller
        self.record = record
        self.reply = reply
        self.heard: Reply | None = None
        """Stands before `reply` for an answer whose words must be counted."""
        self.redactor = redactor
        self.dialect = asked.dialect
        self.client: ClientStream | None = None
        self.feeder: Teller | None = None
        self.losses: tuple[Loss, ...] = ()
        self.invented: tuple[Loss, ...] = ()
        self.tells_losses = True
        self.passed_back: Headers = []
        self.thread = False
        self.keepings: list[Keeping] = []
        self.completed: Callable[[], None] = _nothing
        """Told once, just before the last bytes of a whole answer go out: its account is written down."""
        self.durable: Awaitable[None] | None = None
        """What an upstream may not be asked before: that we shall know of it after a crash."""
        self.rewritten = False
        """The request is more than its body: turns or reasoning were put back into it."""
        self.stripped = False
        """The upstream refused the reasoning state of old turns: it is left out."""
        self._document: dict[str, Any] | None = None
        self._request: Request | None = None
        self._sealed: bool | None = None
        sse = (asked.dialect != "gemini" and asked.dialect != "code-assist") or "alt=sse" in head.query
        self.framing: Final = "sse" if sse else "json-array"
        self._measure_size()
        self._glance()
        self._measure()
        self.conversation = conversation_name(head, self.outline, self.dialect)
        """The conversation that we hold for the client: what came before is not in its request."""
        self.session = self.conversation or grouping_name(head, self.outline)
        self.policy = self._asked_policy()
        self.timeout = self._asked_timeout()
        self.context = Context(
            secret=settings.server.secret.value.encode() or b"wireglot",
            seed=record.id,
            now=now,
            call_prefix="toolu" if asked.dialect == "anthropic" else "call",
            framing="sse" if sse else "json-array",
            max_frame=settings.limits.event,
        )

    @property
    def sealed(self) -> bool:
        """Whether the conversation carries state that other providers minted."""
        if self._sealed is None:
            # A body of 100 KB is looked through in some 70 microseconds: not for what it cannot hold.
            is_responses = self.dialect == "openai-responses"
            self._sealed = _SEALED in self.body or (is_responses and _UNSIGNED in self.body)
        return self.rewritten or self._sealed

    def rewrite(self, request: Request) -> None:
        """Ask this instead of what the body says: it can no longer pass as it came."""
        self._request = request
        self.rewritten = True

    def document(self) -> dict[str, Any]:
        if self._document is None:
            value = self._decoded()
            if not isinstance(value, dict):
                raise RequestError("bad", "expected a JSON object", code="invalid_type")
            ours = self._ours() & value.keys()
            if ours:
                value = {key: item for key, item in value.items() if key not in ours}
            self._document = value
        return self._document

    def _ours(self) -> set[str]:
        """The fields that are for the gateway, and unknown to every provider."""
        if self.dialect in ("openai-responses", "code-assist"):
            return set()
        return {"conversation", "timeout"} if self.dialect == "gemini-simple" else {"conversation"}

    def _decoded(self) -> Any:
        """The body. Agents send the same tools with every turn: those are decoded, read and fitted once."""
        if "tools" in self.outline:
            try:
                return self.outline.document("tools")
            except BadJson:
                pass  # told with its place in the whole body
        return _decoded(self.body)

    def request(self) -> Request:
        """The body in neutral terms, with what the path says about it."""
        if self._request is None:
            with_faults_told(self._parse)
        assert self._request is not None
        return self._request

    def conversation_key(self) -> str:
        """What stays the same over the turns of one conversation and differs between callers."""
        return Estimator.conversation(self.request(), self.session, self.caller.name)

    def affinity(self) -> str:
        """The same, also for a body that only its own vendor can read."""
        try:
            return self.conversation_key()
        except RequestError:
            return f"{self.caller.name}\x1f{hashlib.blake2b(self.body[:_OPENING], digest_size=8).hexdigest()}"

    def effort(self) -> str:
        """What the request asks for, where we can read it."""
        try:
            return self.request().thinking.effort or ""
        except RequestError:
            return ""

    def _parse(self) -> None:
        request = dialect(self.dialect).parse_request(self.document(), self.context)
        if self.dialect == "gemini-simple" and not self.conversation:
            request, self.invented = with_calls(request)
        self._request = msgspec.structs.replace(
            request, model=self.model or request.model, stream=self.stream
        )

    def _glance(self) -> None:
        """The model and the stream flag, without decoding the whole body."""
        asked = self.asked
        if asked.dialect == "gemini":
            self.model, self.stream = asked.model, bool(asked.stream)
        if not self.body:
            raise RequestError("bad", "the body is empty: expected a JSON object", code="invalid_json")
        outline = self.outline = _outlined(self.body)
        if asked.dialect == "gemini":
            return
        model = outline.get("model")
        if model is not None and type(model) is not str:
            raise RequestError("bad", "model: expected a string", code="invalid_type", param="model")
        stream = outline.get("stream")
        if stream is not None and type(stream) is not bool:
            raise RequestError("bad", "stream: expected true or false", code="invalid_type", param="stream")
        if asked.dialect == "code-assist" and not model:
            model = _wrapped_model(self.document())
        self.model = (model or "").removeprefix("models/") if asked.dialect == "code-assist" else model or ""
        self.stream = asked.stream if asked.stream is not None else bool(stream)
        self.thread = outline.get("thread") is not None

    def _measure_size(self) -> None:
        """Refuse what would keep the process busy for seconds, before anything is decoded. Commas and colons
        in texts count too, but no text that a model can read has so many."""
        most = self.settings.limits.json_items
        if len(self.body) > 2 * most and self.body.count(b",") + self.body.count(b":") > most:
            raise RequestError("bad", f"the JSON has more than {most} members", code="json_too_large")

    def _measure(self) -> None:
        """Refuse what is nested so deeply that somebody behind us may break on it."""
        depth = self.settings.limits.json_depth
        if len(self.body) <= _MEASURED and exceeds_depth(self.body, depth):
            raise RequestError("bad", f"the JSON is nested more than {depth} deep", code="json_too_deep")

    def check_unread(self) -> None:
        """Refuse broken letters and numbers out of range, in a body that is passed on unread."""
        body = self.body
        if len(body) > _MEASURED:
            return
        if not body.isascii():
            try:
                body.decode()
            except UnicodeDecodeError as fault:
                raise _bad_json(BadJson("invalid UTF-8", fault.start), body) from None
        likened = body.translate(_LIKENED)
        if b"0e000" in likened or b"0e+000" in likened:
            self.document()

    def _asked_policy(self) -> LossPolicy | None:
        """The caller's own wish, by header, then its key's."""
        wish = self.head.headers.get("x-wireglot-loss-policy")
        if wish is not None:
            wish = wish.strip().lower()
            if wish not in _POLICIES:
                raise RequestError("bad", "x-wireglot-loss-policy: expected strict, warn or silent")
            return wish  # type: ignore[return-value]  # one of the three, checked above
        return self.caller.key.losses if self.caller.key is not None else None

    def _asked_timeout(self) -> float | None:
        """Seconds for the whole answer: by header, or in the simplified form's own field."""
        name, wish = "x-wireglot-timeout", self.head.headers.get("x-wireglot-timeout")
        if wish is None and self.dialect == "gemini-simple":
            name, wish = "timeout", self.outline.get("timeout")
        if wish is None:
            return None
        try:
            seconds = float(wish)
        except (ValueError, TypeError):
            seconds = -1.0
        if not 0 < seconds <= 24 * 3600:
            raise RequestError("bad", f"{name}: expected seconds, more than 0", param=name)
        return seconds


def _nothing() -> None:
    """Nobody keeps an account of this request."""


def with_faults_told(action: Any) -> Any:
    """Run a translation; what is wrong with the request becomes a fault that names the place."""
    try:
        return action()
    except Unsupported as fault:
        raise RequestError("bad", _told(fault), code="unsupported", param=_place(fault.path)) from None
    except ClientFault as fault:
        raise RequestError("bad", _told(fault), code="invalid_value", param=_place(fault.path)) from None


def _place(path: str) -> str:
    return path.removeprefix("$").removeprefix(".")


def _told(fault: WireglotError) -> str:
    place = _place(fault.path)
    return f"{place}: {fault.message}" if place else fault.message


def _decoded(body: bytes) -> Any:
    try:
        return decode(body)
    except BadJson as problem:
        raise _bad_json(problem, body) from None


def _bad_json(problem: BadJson, body: bytes = b"") -> RequestError:
    at = problem.offset or 0
    if _NO_NUMBER.match(body, max(0, at - 1)) or "out of range" in problem.reason:
        return RequestError(
            "bad", f"the body holds a number that JSON has not: {problem}", code="invalid_number"
        )
    if problem.reason == "nested too deeply":
        return RequestError("bad", "the JSON is nested too deeply", code="json_too_deep")
    code = "invalid_utf8" if problem.reason == "invalid UTF-8" else "invalid_json"
    return RequestError("bad", f"the body is not JSON: {problem}", code=code)


def _outlined(body: bytes) -> Outline:
    try:
        outline = Outline(body)
    except BadJson as problem:
        if not isinstance(_decoded(body), dict):
            raise RequestError("bad", "expected a JSON object", code="invalid_type") from None
        raise _bad_json(problem, body) from None
    # Whoever checks the first of two equal keys and sends the second is fooled: such a body is refused.
    for key in outline.repeated:
        if key in _DECISIVE:
            raise RequestError("bad", f"{key}: stands twice in the body", code="duplicate_key", param=key)
    return outline


def _wrapped_model(document: dict[str, Any]) -> str:
    """countTokens names the model inside the wrapped request."""
    inner = document.get("request")
    model = inner.get("model") if isinstance(inner, dict) else None
    return model if isinstance(model, str) else ""


def identity(request_id: str, dialect_name: str) -> Headers:
    """Under which id an answer is found in the log, by every name that clients look for."""
    headers: Headers = [("x-wireglot-request-id", request_id), ("x-request-id", request_id)]
    if dialect_name == "anthropic":
        headers.append(("request-id", request_id))
    return headers


def common_headers(job: Job) -> Headers:
    """What every answer tells about itself."""
    record = job.record
    headers = identity(record.id, job.dialect)
    if record.provider:
        headers.append(("x-wireglot-route", f"{record.provider}/{record.upstream_model}"))
    origin = job.head.headers.get("origin")
    if origin is not None and origin in job.settings.server.origins:
        headers += (("access-control-allow-origin", origin), ("vary", "origin"))
    if job.losses:
        features = ",".join(dict.fromkeys(loss.feature for loss in job.losses))
        headers.append(("x-wireglot-losses", features))
    headers += job.passed_back
    return headers
