"""A body read as far as the gateway must: what decides the way it goes, and what may not go on at all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from wireglot.dialects.base import BadField, ClientSide, CloudForm, Context, RequestGlance, Surface
from wireglot.dialects.registry import surface
from wireglot.gateway.entry.callers import sealing
from wireglot.gateway.entry.routes import Asked
from wireglot.gateway.errors import RequestError
from wireglot.gateway.request.client_body import ClientBody, bad_json
from wireglot.gateway.request.headers import check_version
from wireglot.gateway.request.job import EMULATE_HEADER, Incoming, Job
from wireglot.gateway.settings import LossPolicy
from wireglot.gateway.targets.routing import known_name
from wireglot.http.application import Head
from wireglot.wire.cache import Cache, KnownBody
from wireglot.wire.json import BadJson, encode, exceeds_depth
from wireglot.wire.search import holds_rare
from wireglot.wire.splice import Outline, splice, without

_MEASURED_BYTES: Final = 16 * 1024
"""Up to here counting brackets takes less than decoding."""
_POLICIES: Final[dict[str, LossPolicy]] = {
    "strict": "strict",
    "warn": "warn",
    "silent": "silent",
    "as-is": "as-is",
}
HELD_HEADER: Final = "x-wireglot-session"
_SESSION_HEADERS: Final = ("x-session-affinity", "x-session-id", "session-id", "session_id")
"""They group requests, and no more: agents send whole histories, and side questions, under one such name."""
_NAME_MAX: Final = 256
_TIMEOUT_HEADER: Final = "x-wireglot-timeout"
_MAX_TIMEOUT_SECONDS: Final = 24 * 3600


def in_vendor_form(incoming: Incoming, body: bytes, form: CloudForm) -> tuple[Incoming, bytes]:
    """A request in a cloud's form -> the vendor's. What cannot be read, or be a header, `read` refuses."""
    asked, head = incoming.asked, incoming.head
    if asked.operation == "count" and form.unwrapped_count is not None:
        body = form.unwrapped_count(body)
    try:
        outline = Outline(body)
        stated = {field: outline.get(field) for field in form.headers if field in outline.members}
        model = asked.model or outline.get("model")
    except BadJson:
        return incoming, body
    values: dict[str, bytes] = {}
    if type(model) is str and model:
        values["model"] = encode(known_name(incoming.settings, model, form.plain_model(model)))
    if asked.stream is not None:
        values["stream"] = encode(asked.stream)
    headers = dict(head.headers)
    for field, value in stated.items():
        name, flags = form.headers[field], _flags(value)
        if name and flags is None:
            continue
        body = without(body, field)
        if name and flags:
            sent = [each.strip() for each in headers.get(name, "").split(",")]
            headers[name] = ",".join(dict.fromkeys(filter(None, (*sent, *flags))))
    head = msgspec.structs.replace(head, headers=headers)
    return msgspec.structs.replace(incoming, head=head), splice(body, values) if values else body


def _flags(value: Any) -> list[str] | None:
    """The values of a header; None where a header cannot hold them."""
    listed = value if type(value) is list else [] if value is None else [value]
    if any(type(each) is not str or not each.isascii() or not each.isprintable() for each in listed):
        return None
    return [flag for each in listed if (flag := each.strip())]


def read(
    incoming: Incoming,
    body: bytes,
    *,
    id: str,
    now: int,
    memory: Cache | None = None,
    grown: KnownBody | None = None,
    find_memory: Callable[[bytes], Cache | None] | None = None,
) -> Job:
    """The request that a body asks for. Raises a RequestError that names the field. The other parameters are
    those of `ClientBody`."""
    settings, head, asked = incoming.settings, incoming.head, incoming.asked
    spoken = surface(asked.dialect)
    client = spoken.client
    if client.version is not None:
        check_version(head, client)
    framing = spoken.framing(head.query) if spoken.sse_query else "sse"
    limits = settings.limits
    if len(body) > 2 * limits.json_items:
        _check_size(body, limits.json_items)
    depth = limits.json_depth
    content = ClientBody(body, depth, memory, client.turns, grown=grown, find_memory=find_memory)
    outline = content.outline
    if outline.repeated:
        _check_repeated(outline, spoken)
    ours = client.timeout_field if client.timeout_field in outline.members else ""
    timeout = _asked_timeout(head, outline, ours) if ours or _TIMEOUT_HEADER in head.headers else None
    if ours:  # no provider gets it
        body = without(body, client.timeout_field)
        content = ClientBody(body, depth, memory, client.turns, find_memory=find_memory)
        outline = content.outline
    for mark in client.sealed_marks:
        content.sealed = content.sealed or holds_rare(body, mark)
    seen = _glance(content, asked, client)
    # A larger one is measured when it is decoded, before it goes anywhere.
    if not outline.is_sound and len(body) <= _MEASURED_BYTES:
        _check_depth(body, depth)
    conversation = ""
    if HELD_HEADER in head.headers or client.conversation_field in outline.members:
        conversation = conversation_name(head, outline, client.conversation_field)
    sealed = sealing(settings.server, incoming.caller)
    return Job(
        settings,
        head,
        asked,
        incoming.caller,
        id=id,
        dialect=client.cloud.dialect if client.cloud is not None else asked.dialect,
        surface=spoken,
        content=content,
        body=body,
        outline=outline,
        model=seen.model,
        stream=bool(seen.stream),
        conversation=conversation,
        session=conversation or grouping_name(head, outline, client),
        policy=_asked_policy(incoming),
        timeout=timeout,
        context=Context(
            secret=sealed.secret,
            old_secrets=sealed.old_secrets,
            owner=sealed.owner,
            seed=id,
            now=now,
            call_prefix=client.call_prefix or "call",
            framing=framing,
            max_frame=settings.limits.event,
            emulates=EMULATE_HEADER not in head.headers or _emulates(head.headers[EMULATE_HEADER]),
        ),
    )


def decoded(job: Job) -> dict[str, Any]:
    """The whole body, without the fields that are for the gateway and unknown to every provider."""
    value = job.content.document()
    ours = job.surface.client.gateway_fields & value.keys()
    return {key: item for key, item in value.items() if key not in ours} if ours else value


def _glance(content: ClientBody, asked: Asked, client: ClientSide) -> RequestGlance:
    """Model and stream flag, by the path where it tells them."""
    if client.glance is None:
        return RequestGlance(asked.model, asked.stream)
    try:
        seen = client.glance(content)
    except BadField as fault:
        place = fault.path.removeprefix("$").removeprefix(".")
        raise RequestError("bad", fault.message, code=fault.code, param=place) from None
    return seen if asked.stream is None else RequestGlance(seen.model, asked.stream)


def _check_repeated(outline: Outline, spoken: Surface) -> None:
    """Anyone who checks the first of two equal keys and sends the second is fooled: such a body is
    refused."""
    thread = spoken.client.thread
    decisive = {spoken.model_field or "model", "stream", thread.field if thread is not None else "stream"}
    for key in outline.repeated:
        if key in decisive:
            raise RequestError("bad", f"{key}: appears twice in the body", code="duplicate_key", param=key)


def _check_size(body: bytes, most: int) -> None:
    """Refuse what would keep the process busy for seconds, before anything is decoded. Commas and colons in
    texts count too, but no text that a model can read has so many."""
    if body.count(b",") + body.count(b":") > most:
        raise RequestError("bad", f"the JSON has more than {most} members", code="json_too_large")


def _check_depth(body: bytes, most: int) -> None:
    """Refuse what is nested so deeply that an upstream may break on it."""
    try:
        deep = exceeds_depth(body, most)
    except BadJson as problem:  # its outline was read, not yet its letters and numbers
        raise bad_json(problem, body) from None
    if deep:
        raise RequestError("bad", f"the JSON is nested more than {most} deep", code="json_too_deep")


def _asked_policy(incoming: Incoming) -> LossPolicy | None:
    """By header, then by the caller's key."""
    asked = incoming.head.headers.get("x-wireglot-loss-policy")
    if asked is None:
        return incoming.caller.key.losses if incoming.caller.key is not None else None
    policy = _POLICIES.get(asked.strip().lower())
    if policy is None:
        raise RequestError("bad", "x-wireglot-loss-policy: expected strict, warn, silent or as-is")
    return policy


def _emulates(wanted: str) -> bool:
    wanted = wanted.strip().lower()
    if wanted not in ("on", "off"):
        raise RequestError("bad", f"{EMULATE_HEADER}: expected on or off", param=EMULATE_HEADER)
    return wanted == "on"


def _asked_timeout(head: Head, outline: Outline, field: str) -> float | None:
    """Seconds for the whole answer: by header, or in a field of the body, "" where it has none."""
    name = _TIMEOUT_HEADER
    asked: Any = head.headers.get(name)
    if asked is None and field:
        name, asked = field, outline.get(field)
    if asked is None:
        return None
    try:
        seconds = float(asked) if not isinstance(asked, bool) else -1.0
    except (ValueError, TypeError):
        seconds = -1.0
    if not 0 < seconds <= _MAX_TIMEOUT_SECONDS:
        raise RequestError(
            "bad", f"{name}: expected seconds, more than 0 and at most {_MAX_TIMEOUT_SECONDS}", param=name
        )
    return seconds


# --- the names that clients give their conversations: one that we hold, or one that groups requests


def conversation_name(head: Head, outline: Outline, field: str) -> str:
    """By header, or in this field of the body: a name, or an object with an id. "": none."""
    name: Any = head.headers.get(HELD_HEADER, "").strip()
    place = HELD_HEADER
    if field and field in outline.members:
        said = outline.get(field)
        if said is not None:
            name, place = said.get("id") if isinstance(said, dict) else said, field
            if type(name) is not str or not name:
                raise RequestError(
                    "bad",
                    f"{field}: expected a name, or an object with an id",
                    code="invalid_type",
                    param=field,
                )
    if len(name) > _NAME_MAX or not name.isprintable() or name in (".", ".."):
        raise RequestError("bad", f"{place}: expected at most {_NAME_MAX} printable characters", param=place)
    return str(name)


def grouping_name(head: Head, outline: Outline, client: ClientSide) -> str:
    """The client's own name for its session: by header, or where its body has one."""
    for header in (*client.session_headers, *_SESSION_HEADERS):
        name = head.headers.get(header)
        if name:
            return name
    return client.session(outline) if client.session is not None else ""
