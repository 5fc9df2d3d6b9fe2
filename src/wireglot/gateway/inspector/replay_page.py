"""`POST /inspector/api/replay`: sends a recorded request again, or one of the playground: to another model,
changed, or in another dialect."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any, Final, Protocol

import msgspec

from wireglot.gateway.config.providers import DEMO
from wireglot.gateway.entry.routes import Asked
from wireglot.gateway.errors import RequestError, invalid_value, with_request_errors
from wireglot.gateway.inspector.preview import Preview, with_catalog
from wireglot.gateway.process_limits import KIB
from wireglot.gateway.request.collected_reply import CollectedReply
from wireglot.gateway.request.job import Incoming
from wireglot.gateway.request.page_request import PageRequest
from wireglot.gateway.request.viewer import Viewer
from wireglot.gateway.settings import Rule, Settings
from wireglot.gateway.trace.traces import Traces
from wireglot.http.application import Head, Reply
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.registry import COMMON, dialect, dialect_name, names, surface
from wireglot_core.ir.content import Message, Text
from wireglot_core.ir.request import Request, Tool
from wireglot_core.traces.trace import Trace
from wireglot_core.translate import translate_request
from wireglot_core.wire.json import BadJson, decode, encode


def text_field(fields: dict[str, Any], name: str, most: int) -> str:
    """Removes it from the fields, so that only unknown fields are left. "" if it is missing."""
    value = fields.pop(name, None)
    if value is None:
        return ""
    if type(value) is not str or len(value) > most:
        raise invalid_value(name, f"text of at most {most} characters")
    return value


AGENT: Final = "wireglot-inspector"
PLAYGROUND: Final = "wireglot-playground"
"""The client name of requests from the playground."""
# Characters of a field of a request that is sent again.
_MAX_CHARACTERS: Final = 100_000
# Bytes of an error that is shown of a request that is sent again.
_MAX_ERROR_BYTES: Final = 16 * KIB
_GREETING: Final = "Hello from the inspector. What can you do?"
_EXAMPLE: Final = "What is the weather in Paris?"
_TRANSLATED_MODEL: Final = "demo-gemini"
"""A demo model that the page calls in another dialect, so that there is a translation to show."""
_EXAMPLE_TOOL: Final = Tool(
    "get_weather",
    "The weather of a city, now.",
    {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
)


class Submit(Protocol):
    def __call__(self, incoming: Incoming, body: bytes, reply: Reply) -> Awaitable[str]:
        """Have a request answered like one from a client. Returns its id."""
        ...


class AskPage:
    def __init__(self, submit: Submit) -> None:
        self._submit = submit

    async def ask(self, page: PageRequest, viewer: Viewer) -> None:
        fields = page.document()
        named = text_field(fields, "model", _MAX_CHARACTERS)
        model = named or _demo_model(page.settings)
        text = text_field(fields, "text", _MAX_CHARACTERS) or (_GREETING if named else _EXAMPLE)
        stream = fields.pop("stream", True)
        if type(stream) is not bool:
            raise invalid_value("stream", "true or false")
        for name in fields:
            raise invalid_value(name, "only the fields model, text and stream")
        asked = Request(model=model, messages=(Message("user", (Text(text),)),), stream=stream)
        if not named:  # to show a call, and a field that the model's own dialect does not have
            asked = msgspec.structs.replace(asked, tools=(_EXAMPLE_TOOL,), parallel_tools=False)
        body = encode(dialect(COMMON).render_request(asked, Context()).value)
        reply = CollectedReply(_MAX_ERROR_BYTES)
        id = await self._submit(_asked_by_page(page), body, reply)
        reported: dict[str, Any] = {"id": id, "model": model, "status": reply.status}
        if reply.status >= 400:
            reported["error"] = {"message": _message(bytes(reply.body))}
        page.send(reported)


def _asked_by_page(page: PageRequest) -> Incoming:
    route = next(each for each in surface(COMMON).client.routes if each.operation == "generate")
    return Incoming(page.settings, _head(page, route.path), Asked(COMMON, route.operation), page.caller)


def _head(page: PageRequest, path: str, query: str = "", agent: str = AGENT) -> Head:
    """The head of a request that the page makes."""
    host = page.head.headers.get("host", "")
    headers = {"host": host, "user-agent": agent, "content-type": "application/json"}
    target = f"{path}?{query}" if query else path
    return Head("POST", target=target, path=path, query=query, headers=headers, peer=page.head.peer)


def _demo_model(settings: Settings) -> str:
    demo = settings.providers.get(DEMO)
    if demo is None:
        raise invalid_value("model", "one, since the demo model is off")
    names = [entry.match for entry in demo.spec.models]
    return f"{demo.name}/{_TRANSLATED_MODEL if _TRANSLATED_MODEL in names else names[0]}"


def _message(body: bytes) -> str:
    try:
        return str(msgspec.convert(decode(body), dict[str, dict[str, Any]])["error"]["message"])
    except (BadJson, msgspec.MsgspecError, KeyError):
        return "it failed"


_NAME_LETTERS: Final = 256


class ReplayPage:
    def __init__(self, submit: Submit, traces: Traces, preview: Preview) -> None:
        self._submit = submit
        self._traces = traces
        self._preview = preview

    async def replay(self, page: PageRequest, viewer: Viewer) -> None:
        fields = page.document()
        id, to, spoken = (text_field(fields, name, _NAME_LETTERS) for name in ("id", "to", "dialect"))
        changed, stream = fields.pop("body", None), fields.pop("stream", None)
        dry, shows, answers = (_flag(fields, name) for name in ("dry", "show", "answer"))
        if stream is not None and type(stream) is not bool:
            raise invalid_value("stream", "true or false")
        for name in fields:  # a misspelled field must not lead to a paid request
            raise invalid_value(name, "only the fields id, to, dialect, body, stream, dry, show and answer")
        if spoken and spoken not in names():
            raise invalid_value("dialect", f"one of {', '.join(names())}")
        if id:
            trace = await self._recorded(id, viewer)
            if trace.row.operation == "embed":
                raise RequestError("bad", "id: only requests to a model are replayed", code="unsupported")
            model, spoken = to or trace.row.asked, spoken or trace.row.dialect
            document = _document(changed, trace, spoken)
            stream = trace.row.stream if stream is None else stream
        else:  # a recording of another gateway
            model = to
            for name, value in (("to", to), ("dialect", spoken), ("body", changed)):
                if not value:
                    raise invalid_value(name, "a value if id is not set")
            document = _written(changed)
        settings = _leading_to(page.settings, model)
        if dry:
            settings = with_catalog(settings, model)
        agent = PLAYGROUND if answers or shows else AGENT
        incoming = _replayed(page, settings, spoken, model, document, stream=bool(stream), agent=agent)
        body = encode(document)
        if dry:
            page.send(await self._preview.estimate(page, viewer, incoming, model, body, shows=shows))
        elif answers:
            await self._submit(incoming, body, page.reply)
        else:
            reply = CollectedReply(_MAX_ERROR_BYTES)
            id = await self._submit(incoming, body, reply)
            page.send({"id": id, "status": reply.status, "model": model})

    async def _recorded(self, id: str, viewer: Viewer) -> Trace:
        row = await self._traces.find(id)
        if row is None or not viewer.sees(row.key, row.at):
            raise RequestError("not_found", f"no exchange {id}", code="exchange_not_found")
        trace, _ = await self._traces.opened(row)
        if trace is None or trace.request.truncated:
            text = f"the request of {id} was not recorded, or not completely"
            raise RequestError("not_found", text, code="not_recorded")
        return trace


def _flag(fields: dict[str, Any], name: str) -> bool:
    value: Any = fields.pop(name, False)
    if type(value) is not bool:
        raise invalid_value(name, "true or false")
    return value


def _document(body: Any, trace: Trace, spoken: str) -> dict[str, Any]:
    """The request to send: the caller's edited document, or else the recorded one, in a dialect."""
    if body is None or body == "":
        document = _decoded(trace.request.body)
        if spoken != trace.row.dialect:
            source, target = dialect_name(trace.row.dialect), dialect_name(spoken)
            stream = trace.row.stream
            return with_request_errors(
                lambda: translate_request(document, source=source, target=target, stream=stream)
            ).value
        return document
    return _written(body)


def _written(body: Any) -> dict[str, Any]:
    return _decoded(body) if isinstance(body, str) else _object(body)


def _decoded(text: str) -> dict[str, Any]:
    try:
        return _object(decode(text))
    except BadJson as problem:
        raise RequestError(
            "bad", f"body: is not JSON: {problem}", code="invalid_json", param="body"
        ) from None


def _object(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise invalid_value("body", "a JSON object")
    return value


def _leading_to(settings: Settings, model: str) -> Settings:
    """A named provider is used as named: patterns of [models] are for the names that clients use."""
    exact = any(rule.match == model for rule in settings.rules)
    if exact or model.partition("/")[0] not in settings.providers:
        return settings
    return msgspec.structs.replace(settings, rules=(Rule(model, (model,)), *settings.rules))


def _replayed(
    page: PageRequest,
    settings: Settings,
    spoken: str,
    model: str,
    document: dict[str, Any],
    *,
    stream: bool,
    agent: str,
) -> Incoming:
    """A request like that of a client of this dialect. Ids of conversations are left out: nothing is
    continued."""
    known = surface(spoken)
    if known.model_field:
        document[known.model_field] = model
    for field in known.client.state_fields:
        document.pop(field, None)
    # If the path contains the model, the routes are patterns: `asked` contains what it would have reported.
    path = next((each.path for each in known.client.routes if each.operation == "generate"), f"/{spoken}")
    head = _head(page, path, known.sse_query if stream else "", agent=agent)
    in_path = not known.model_field
    asked = Asked(spoken, "generate", model if in_path else "", stream if in_path else None)
    return Incoming(settings, head, asked, page.caller)
