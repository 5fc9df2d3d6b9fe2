"""A body read as far as the gateway must: what decides the way it goes, and what may not go on at all."""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple

from wireglot.dialects.base import Context
from wireglot.dialects.registry import surface
from wireglot.gateway.errors import RequestError
from wireglot.gateway.request.job import Framing, Incoming, Job
from wireglot.gateway.request.sessions import conversation_name, grouping_name
from wireglot.gateway.settings import LossPolicy
from wireglot.wire.json import BadJson, decode, exceeds_depth
from wireglot.wire.splice import Outline

_DECISIVE: Final = frozenset({"model", "stream", "thread"})
_MEASURED_BYTES: Final = 16 * 1024
"""Larger bodies are held to the depth at which the parser itself gives up: measuring them costs too much."""
_DIGITS_ALIKE: Final = bytes.maketrans(b"123456789E", b"000000000e")
"""Exponents of three digits are found in a third of the time where all digits are alike."""
_NO_NUMBER: Final = re.compile(rb"\W?-?(?:NaN|Infinity)")
_POLICIES: Final[dict[str, LossPolicy]] = {"strict": "strict", "warn": "warn", "silent": "silent"}
_TIMEOUT_SECONDS_MOST: Final = 24 * 3600


def read(incoming: Incoming, body: bytes, *, id: str, now: int) -> Job:
    """The request that a body asks for. Raises a RequestError that names the field."""
    settings, head, asked = incoming.settings, incoming.head, incoming.asked
    sse = (asked.dialect != "gemini" and asked.dialect != "code-assist") or "alt=sse" in head.query
    framing: Framing = "sse" if sse else "json-array"
    _check_size(body, settings.limits.json_items)
    seen = _glance(incoming, body)
    _check_depth(body, settings.limits.json_depth)
    conversation = conversation_name(head, seen.outline, asked.dialect)
    return Job(
        id=id,
        incoming=incoming,
        surface=surface(asked.dialect),
        body=body,
        outline=seen.outline,
        model=seen.model,
        stream=seen.stream,
        framing=framing,
        thread=seen.thread,
        conversation=conversation,
        session=conversation or grouping_name(head, seen.outline),
        policy=_asked_policy(incoming),
        timeout=_asked_timeout(incoming, seen.outline),
        context=Context(
            secret=settings.server.secret.value.encode() or b"wireglot",
            seed=id,
            now=now,
            call_prefix="toolu" if asked.dialect == "anthropic" else "call",
            framing=framing,
            max_frame=settings.limits.event,
        ),
    )


def decoded(job: Job) -> dict[str, Any]:
    """The whole body, without the fields that are for the gateway and unknown to every provider."""
    value = _decoded_tools(job)
    if not isinstance(value, dict):
        raise RequestError("bad", "expected a JSON object", code="invalid_type")
    ours = _ours(job.dialect) & value.keys()
    return {key: item for key, item in value.items() if key not in ours} if ours else value


def _ours(dialect: str) -> set[str]:
    if dialect in ("openai-responses", "code-assist"):
        return set()
    return {"conversation", "timeout"} if dialect == "gemini-simple" else {"conversation"}


def _decoded_tools(job: Job) -> Any:
    """Agents send the same tools with every turn: those are decoded, read and fitted once."""
    if "tools" in job.outline:
        try:
            return job.outline.document("tools")
        except BadJson:
            pass  # told with its place in the whole body
    return _decoded(job.body)


def check_unread(job: Job) -> None:
    """Refuse broken letters and numbers out of range, in a body that is passed on unread."""
    body = job.body
    if len(body) > _MEASURED_BYTES:
        return
    if not body.isascii():
        try:
            body.decode()
        except UnicodeDecodeError as fault:
            raise _bad_json(BadJson("invalid UTF-8", fault.start), body) from None
    alike = body.translate(_DIGITS_ALIKE)
    if b"0e000" in alike or b"0e+000" in alike:
        decoded(job)


class _Seen(NamedTuple):
    """What is known of a body without decoding the whole of it."""

    outline: Outline
    model: str
    stream: bool
    thread: bool


def _glance(incoming: Incoming, body: bytes) -> _Seen:
    asked = incoming.asked
    if not body:
        raise RequestError("bad", "the body is empty: expected a JSON object", code="invalid_json")
    outline = _outlined(body)
    if asked.dialect == "gemini":
        return _Seen(outline, asked.model, bool(asked.stream), False)
    model = outline.get("model")
    if model is not None and type(model) is not str:
        raise RequestError("bad", "model: expected a string", code="invalid_type", param="model")
    stream = outline.get("stream")
    if stream is not None and type(stream) is not bool:
        raise RequestError("bad", "stream: expected true or false", code="invalid_type", param="stream")
    if asked.dialect == "code-assist":
        model = (model or _wrapped_model(_decoded(body))).removeprefix("models/")
    streams = asked.stream if asked.stream is not None else bool(stream)
    return _Seen(outline, model or "", streams, outline.get("thread") is not None)


def _check_size(body: bytes, most: int) -> None:
    """Refuse what would keep the process busy for seconds, before anything is decoded. Commas and colons in
    texts count too, but no text that a model can read has so many."""
    if len(body) > 2 * most and body.count(b",") + body.count(b":") > most:
        raise RequestError("bad", f"the JSON has more than {most} members", code="json_too_large")


def _check_depth(body: bytes, most: int) -> None:
    """Refuse what is nested so deeply that somebody behind us may break on it."""
    if len(body) <= _MEASURED_BYTES and exceeds_depth(body, most):
        raise RequestError("bad", f"the JSON is nested more than {most} deep", code="json_too_deep")


def _asked_policy(incoming: Incoming) -> LossPolicy | None:
    """By header, then by the caller's key."""
    asked = incoming.head.headers.get("x-wireglot-loss-policy")
    if asked is None:
        return incoming.caller.key.losses if incoming.caller.key is not None else None
    policy = _POLICIES.get(asked.strip().lower())
    if policy is None:
        raise RequestError("bad", "x-wireglot-loss-policy: expected strict, warn or silent")
    return policy


def _asked_timeout(incoming: Incoming, outline: Outline) -> float | None:
    """Seconds for the whole answer: by header, or in the simplified form's own field."""
    name, asked = "x-wireglot-timeout", incoming.head.headers.get("x-wireglot-timeout")
    if asked is None and incoming.asked.dialect == "gemini-simple":
        name, asked = "timeout", outline.get("timeout")
    if asked is None:
        return None
    try:
        seconds = float(asked)
    except (ValueError, TypeError):
        seconds = -1.0
    if not 0 < seconds <= _TIMEOUT_SECONDS_MOST:
        raise RequestError("bad", f"{name}: expected seconds, more than 0", param=name)
    return seconds


def _decoded(body: bytes) -> Any:
    try:
        return decode(body)
    except BadJson as problem:
        raise _bad_json(problem, body) from None


def _bad_json(problem: BadJson, body: bytes = b"") -> RequestError:
    at = problem.offset or 0
    if _NO_NUMBER.match(body, max(0, at - 1)) or "out of range" in problem.reason:
        message = f"the body holds a number that JSON has not: {problem}"
        return RequestError("bad", message, code="invalid_number")
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


def _wrapped_model(document: Any) -> str:
    """countTokens names the model inside the wrapped request."""
    inner = document.get("request") if isinstance(document, dict) else None
    model = inner.get("model") if isinstance(inner, dict) else None
    return model if isinstance(model, str) else ""
