"""One request as the client sent it: its body and headers, parsed once, as far as the gateway must, and never
changed. What changes while it is answered is its `Exchange`."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

import msgspec

from wireglot.gateway.entry.callers import Caller, sealing
from wireglot.gateway.entry.routes import Asked
from wireglot.gateway.errors import RequestError
from wireglot.gateway.request.headers import check_version
from wireglot.gateway.setting_tables import SafeguardSettings
from wireglot.gateway.settings import LossPolicy, Settings
from wireglot.gateway.targets.routing import known_name
from wireglot.http.application import Head
from wireglot_core.dialects.body import BadField
from wireglot_core.dialects.capabilities import EmbedOperation
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.registry import surface
from wireglot_core.dialects.surface import ClientSide, CloudForm, Surface
from wireglot_core.wire.cache import Cache, KnownBody
from wireglot_core.wire.json import MAX_DEPTH, BadJson, TooDeep, decode, encode, exceeds_depth
from wireglot_core.wire.search import holds_rare
from wireglot_core.wire.splice import Outline, splice, without

EMULATE_HEADER: Final = "x-wireglot-emulate"
"""A request header: `off` if the gateway must not emulate what the upstream cannot do."""
CANDIDATE: Final = "candidate"
"""The operation of a request for one more answer (`n`) of a model that gives one."""
_MEASURED_BYTES: Final = 16 * 1024
"""Up to this size counting brackets takes less time than decoding."""
_POLICIES: Final[dict[str, LossPolicy]] = {
    "strict": "strict",
    "warn": "warn",
    "silent": "silent",
    "as-is": "as-is",
}
_POLICY_HEADER: Final = "x-wireglot-loss-policy"
HELD_HEADER: Final = "x-wireglot-session"
_SESSION_HEADERS: Final = ("x-session-affinity", "x-session-id", "session-id", "session_id")
"""They only group requests: agents send whole histories, and side requests, under one such name."""
# Characters of a name in the path of a request.
_NAME_MAX: Final = 256
_TIMEOUT_HEADER: Final = "x-wireglot-timeout"
# Seconds of a timeout that a client asks for: a day.
_MAX_TIMEOUT_SECONDS: Final = 24 * 3600
_LONG_BYTES: Final = 256 * 1024
"""From this size on it is decoded member by member."""
_UNLIMITED: Final = 1 << 60
"""The depth limit for a body that is already known not to be nested too deeply."""
_NO_NUMBER: Final = re.compile(rb"\W?-?(?:NaN|Infinity)")


class Incoming(msgspec.Struct, frozen=True):
    """The sender and the target of a request, before its body is read. It keeps the settings it came in
    under."""

    settings: Settings
    head: Head
    asked: Asked
    caller: Caller

    @property
    def safeguards(self) -> SafeguardSettings:
        """Of the caller's group, or the general ones."""
        key = self.caller.key
        group = self.settings.groups.get(key.group) if key is not None else None
        return group.safeguards if group is not None and group.safeguards else self.settings.safeguards


class Job(Incoming, frozen=True, eq=False, kw_only=True):
    """Implements the dialects' `Body`.

    Four fields of `Incoming` and thirteen more: with another one Python would build a dictionary of all of
    them for each instance, which takes six times as long.
    """

    id: str
    dialect: str
    """The dialect of `asked`: used so often that the extra lookup would be noticeable."""
    surface: Surface
    """The client's dialect over HTTP."""
    content: ClientBody
    body: bytes
    outline: Outline
    model: str
    """As the client named it; "" if it did not."""
    stream: bool
    conversation: str
    """The conversation that we store for the client: its history is not in the request. "": none."""
    session: str
    """The name by which the client groups its requests."""
    policy: LossPolicy | None
    """How the caller wants losses to be handled, if it said so."""
    timeout: float | None
    """Seconds for the whole answer, if the caller sets a limit."""
    context: Context
    """Without a memory: whether there is one is known once the body was decoded."""

    @property
    def thread(self) -> bool:
        """The provider itself stores the conversation: only its own vendor can continue it."""
        held = self.surface.client.thread
        return held is not None and self.outline.get(held.field) is not None

    @property
    def agent_field(self) -> str:
        """The field that names an agent in place of a model; "": the request names a model."""
        field = self.surface.client.agent_field
        names_agent = field and field in self.outline.members and not self.outline.get("model")
        return field if names_agent else ""

    @property
    def embed_operation(self) -> EmbedOperation:
        """The endpoint of a request for embeddings, among those of its dialect."""
        return "embed_one" if self.asked.verb == "embed_one" else "embed"

    @property
    def emulates(self) -> bool:
        """Whether the gateway may emulate what the upstream cannot do."""
        return self.context.emulates

    def document(self) -> dict[str, Any]:
        """The whole body as JSON, decoded once."""
        return self.content.document()


# The body: its bytes, its top level, and all of it as JSON once that is needed.


class ClientBody:
    """Implements the dialects' `Body`. Raises a RequestError if it is not a JSON object."""

    __slots__ = ("_depth", "_document", "_find_memory", "_turns", "body", "memory", "outline", "sealed")

    def __init__(
        self,
        body: bytes,
        depth: int = MAX_DEPTH,
        memory: Cache | None = None,
        turns: str = "",
        *,
        grown: KnownBody | None = None,
        find_memory: Callable[[bytes], Cache | None] | None = None,
    ) -> None:
        """`turns`: the member whose items repeat with every turn, in `memory`. `grown`: the cached part of
        it, if that has been looked up. `find_memory`: if it is not known yet whether the body repeats; only
        called for a body that is decoded."""
        if not body:
            raise RequestError("bad", "the body is empty: expected a JSON object", code="invalid_json")
        self.body: Final = body
        try:
            self.outline: Final = _ClientOutline(body, memory, turns, grown, depth)
        except BadJson as problem:
            if not isinstance(read_json(body), dict):
                raise RequestError("bad", "expected a JSON object", code="invalid_type") from None
            raise bad_json(problem, body) from None
        self.memory = memory
        """What the caller's requests have in common. Known once it was recalled."""
        self._find_memory = find_memory if memory is None else None
        self._depth: Final = depth
        self._turns: Final = turns
        self._document: dict[str, Any] | None = None
        self.sealed = False
        """Whether it carries state that other providers minted."""

    def without(self, field: str) -> ClientBody:
        return ClientBody(
            without(self.body, field), self._depth, self.memory, self._turns, find_memory=self._find_memory
        )

    def check(self) -> None:
        """Refuse broken characters, numbers out of range and too deep nesting, in a body that is passed on
        unparsed. Nothing of it is kept."""
        if self._document is None and not self.outline.is_sound:
            self._decoded()

    def recall(self) -> None:
        """Find the memory that it is decoded with."""
        if self._find_memory is not None:
            find, self._find_memory = self._find_memory, None
            self.memory = find(self.body)
            if self.memory is not None:
                self.outline.recall(self.memory, self._turns)

    def reading(self, context: Context) -> Context:
        """The context that the decoded body is parsed with."""
        return context if self.memory is None else msgspec.structs.replace(context, memory=self.memory)

    def document(self) -> dict[str, Any]:
        """Decoded once."""
        if self._document is None:
            self._document = self._decoded()
        return self._document

    def _decoded(self) -> dict[str, Any]:
        """Agents send the same tools and turns repeatedly: those are decoded, parsed and written once."""
        self.recall()
        memory, outline = self.memory, self.outline
        depth = _UNLIMITED if outline.is_sound and memory is None else self._depth
        # Of a repeated member the outline has only one.
        if (memory is not None or len(self.body) > _LONG_BYTES) and not outline.repeated:
            try:
                if memory is not None:
                    return memory.document(outline, depth, self._turns)
                return outline.document(depth)
            except BadJson:
                pass  # reported with its place in the whole body
        value = read_json(self.body, depth)
        if not isinstance(value, dict):
            raise RequestError("bad", "expected a JSON object", code="invalid_type")
        return value


def bad_json(problem: BadJson, body: bytes = b"") -> RequestError:
    at = problem.offset or 0
    if _NO_NUMBER.match(body, max(0, at - 1)) or "out of range" in problem.reason:
        message = f"the body contains a number that is not valid JSON: {problem}"
        return RequestError("bad", message, code="invalid_number")
    if isinstance(problem, TooDeep):
        return RequestError("bad", f"the JSON is {problem.reason}", code="json_too_deep")
    code = "invalid_utf8" if problem.reason == "invalid UTF-8" else "invalid_json"
    return RequestError("bad", f"the body is not JSON: {problem}", code=code)


class _ClientOutline(Outline):
    """Errors in a single member are reported to the caller, whichever code reads it."""

    __slots__ = ()

    def unreadable(self, problem: BadJson) -> Exception:
        try:
            read_json(self.body)  # to report its place in the whole body
        except RequestError as fault:
            return fault
        return bad_json(problem)


def read_json(body: bytes, depth: int = MAX_DEPTH) -> Any:
    """The value of a body. Raises a RequestError that says what is wrong with it, and where."""
    try:
        return decode(body, depth)
    except BadJson as problem:
        raise bad_json(problem, body) from None


# Parsing: everything that decides the route, and everything that must be refused.


def in_vendor_form(incoming: Incoming, body: bytes, form: CloudForm) -> tuple[Incoming, bytes]:
    """A request in a cloud's form -> the vendor's. Fields that cannot be parsed, or put into a header, are
    refused by `read`."""
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
    """The values of a header; None if a header cannot contain them."""
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
    """The request in a body. Raises a RequestError that names the field. The other parameters are those of
    `ClientBody`."""
    settings, head, asked = incoming.settings, incoming.head, incoming.asked
    spoken = surface(asked.dialect)
    client = spoken.client
    if client.version is not None:
        check_version(head, client)
    framing = spoken.framing(head.query) if spoken.sse_query else "sse"
    depth, items = settings.limits.json_depth, settings.limits.json_items
    if len(body) > 2 * items:
        _check_size(body, items)
    content = ClientBody(body, depth, memory, client.turns, grown=grown, find_memory=find_memory)
    outline = content.outline
    if outline.repeated:
        _check_repeated(outline, spoken)
    timeout: float | None = None
    if client.timeout_field in outline.members or _TIMEOUT_HEADER in head.headers:
        timeout, content = _take_timeout(head, content, client.timeout_field)
        body, outline = content.body, content.outline
    for mark in client.sealed_marks:
        content.sealed = content.sealed or holds_rare(body, mark)
    model, stream = asked.model, asked.stream
    if client.glance is not None:
        try:
            seen = client.glance(content)
        except BadField as fault:
            raise _of_field(fault) from None
        model, stream = seen.model, seen.stream if stream is None else stream
    # A larger one is measured when it is decoded, before it is sent anywhere.
    if not outline.is_sound and len(body) <= _MEASURED_BYTES:
        _check_depth(body, depth)
    conversation = ""
    if HELD_HEADER in head.headers or client.conversation_field in outline.members:
        conversation = conversation_name(head, outline, client.conversation_field)
    key = incoming.caller.key
    policy = key.losses if key is not None else None
    if _POLICY_HEADER in head.headers:
        policy = _policy(head.headers[_POLICY_HEADER])
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
        model=model,
        stream=bool(stream),
        conversation=conversation,
        session=conversation or grouping_name(head, outline, client),
        policy=policy,
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


def _of_field(fault: BadField) -> RequestError:
    place = fault.path.removeprefix("$").removeprefix(".")
    return RequestError("bad", fault.message, code=fault.code, param=place)


def _check_repeated(outline: Outline, spoken: Surface) -> None:
    """Code that checks the first of two equal keys and sends the second can be tricked: such a body is
    refused."""
    thread = spoken.client.thread
    decisive = {spoken.model_field or "model", "stream", thread.field if thread is not None else "stream"}
    for key in outline.repeated:
        if key in decisive:
            raise RequestError("bad", f"{key}: appears twice in the body", code="duplicate_key", param=key)


def _check_size(body: bytes, most: int) -> None:
    """Refuse a body that would keep the process busy for seconds, before anything is decoded. Commas and
    colons in texts count too, but no text that a model can read has so many."""
    if body.count(b",") + body.count(b":") > most:
        raise RequestError("bad", f"the JSON has more than {most} members", code="json_too_large")


def _check_depth(body: bytes, most: int) -> None:
    """Refuse nesting so deep that an upstream may break on it."""
    try:
        deep = exceeds_depth(body, most)
    except BadJson as problem:  # its outline was parsed, but not yet its characters and numbers
        raise bad_json(problem, body) from None
    if deep:
        raise RequestError("bad", f"the JSON is nested more than {most} deep", code="json_too_deep")


def _policy(wanted: str) -> LossPolicy:
    policy = _POLICIES.get(wanted.strip().lower())
    if policy is None:
        raise RequestError("bad", f"{_POLICY_HEADER}: expected strict, warn, silent or as-is")
    return policy


def _emulates(wanted: str) -> bool:
    wanted = wanted.strip().lower()
    if wanted not in ("on", "off"):
        raise RequestError("bad", f"{EMULATE_HEADER}: expected on or off", param=EMULATE_HEADER)
    return wanted == "on"


def _take_timeout(head: Head, content: ClientBody, field: str) -> tuple[float | None, ClientBody]:
    """The requested timeout, and the body without it: no provider gets it."""
    if field not in content.outline.members:
        return _asked_timeout(head, content.outline, ""), content
    return _asked_timeout(head, content.outline, field), content.without(field)


def _asked_timeout(head: Head, outline: Outline, field: str) -> float | None:
    """Seconds for the whole answer: by header, or in this field of the body ("": the dialect has none)."""
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


# The names that clients give their conversations: one that we store, or one that groups requests.


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
    """The client's own name for its session: by header, or in its body."""
    for header in (*client.session_headers, *_SESSION_HEADERS):
        name = head.headers.get(header)
        if name:
            return name
    return client.session(outline) if client.session is not None else ""
