"""The OpenAPI document: the routes, with what is reported about each of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from tools.http_api.operations import OPERATIONS, TAGS, Operation
from tools.http_api.routes import Served, served
from tools.http_api.schemas import LOSS_POLICIES, schemas
from tools.http_api.shapes import listed, ref, text
from wireglot import __version__
from wireglot.gateway.entry.callers import ADMIN_HEADER
from wireglot.gateway.errors import RequestError
from wireglot.gateway.inspector.access import CSRF
from wireglot.gateway.observe.metrics import CONTENT_TYPE
from wireglot.gateway.request.headers import DETAILS, ESTIMATE, LOSSES
from wireglot.gateway.request.job import EMULATE_HEADER
from wireglot.gateway.state.idempotency import HEADER as IDEMPOTENCY
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.registry import COMMON, dialect, surface, surfaces
from wireglot_core.dialects.surface import Surface

SERVER: Final = "http://127.0.0.1:8484"
_EVENTS: Final = "text/event-stream"
_JSON: Final = "application/json"
_WHOLE: Final = frozenset({"generateContent", "rawPredict"})
"""Verbs that are never answered with a stream."""
_ERRORS: Final = {
    "anthropic": "AnthropicError",
    "openai-chat": "OpenAIError",
    "openai-responses": "OpenAIError",
    "gemini": "GeminiError",
    "gemini-interactions": "InteractionsError",
    "code-assist": "GeminiError",
    "gemini-simple": "GeminiError",
    "anthropic-vertex": "VertexError",
    "anthropic-bedrock": "BedrockError",
    "ollama": "OllamaError",
    "ollama-generate": "OllamaError",
}
"""Of each dialect."""
_OF_PATHS: Final = {"GeminiError": "GeminiPathError"}
"""The answer where a path names a model or a version: one that is not understood says no dialect."""

REQUEST_HEADERS: Final[dict[str, tuple[dict[str, Any], str]]] = {
    "x-wireglot-loss-policy": (
        text(enum=list(LOSS_POLICIES)),
        "how to handle a request whose translation loses something",
    ),
    EMULATE_HEADER: (
        text(enum=["on", "off"]),
        "`off`: the gateway does not emulate features that the provider lacks; they are reported as lost",
    ),
    DETAILS: (text(enum=["1"]), "return all losses in full, in the response header of the same name"),
    "x-wireglot-timeout": (
        {"type": "number", "exclusiveMinimum": 0, "maximum": 86400},
        "timeout in seconds, until the first byte and for the whole answer, if shorter than configured",
    ),
    "x-wireglot-session": (text(), "the name of a conversation that the gateway stores"),
    ADMIN_HEADER: (
        text(),
        "the admin secret, in addition to the client key: errors then name hosts and settings",
    ),
    IDEMPOTENCY: (text(minLength=1, maxLength=255), "requests with the same key get the same answer"),
    "traceparent": (text(), "the parent of the gateway's span (W3C Trace Context)"),
}
INSPECTOR_HEADERS: Final[dict[str, tuple[dict[str, Any], str]]] = {
    CSRF: (text(), "the token from `GET /inspector/api/session`; required for changes"),
}
ANSWER_HEADERS: Final[dict[str, tuple[dict[str, Any], str]]] = {
    "x-wireglot-request-id": (text(), "the `id` of the log line; also as `x-request-id`"),
    "x-wireglot-route": (text(), "`provider/model` that answered, if a provider was called"),
    LOSSES: (text(), "features with a loss, separated by commas, serious ones first"),
    DETAILS: (text(), "all losses in full as a JSON array, if requested"),
    ESTIMATE[0]: (text(enum=["true"]), "a token count is an estimate"),
}
ERROR_HEADERS: Final[dict[str, tuple[dict[str, Any], str]]] = {
    "retry-after": ({"type": "integer"}, "seconds; with every 429, 503 and 529"),
    "x-should-retry": (text(enum=["false"]), "a retry cannot succeed"),
}

_FORM: Final = "application/x-www-form-urlencoded"
_OAUTH: Final = ("login.metadata", "login.device_authorization", "login.token", "login.revoke")
_PAGE: Final = {"content": {"text/html": {"schema": text()}}}


class Undocumented(Exception):
    """A route without a row, or a row without a route."""


def document() -> dict[str, Any]:
    routes = served()
    _check(routes)
    paths: dict[str, dict[str, Any]] = {}
    used: set[str] = set()
    for route in routes:
        reported = OPERATIONS[route.dialect, route.operation, route.verb]
        item = paths.setdefault(route.path, _path_item(route))
        item[route.method.lower()] = _operation(route, reported, _fresh_id(reported.id, route, used))
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Wireglot",
            "version": __version__,
            "summary": "Any LLM client, any LLM provider, and nothing lost in silence.",
            "description": (
                "The vendors define the bodies of the dialects: each operation links the "
                "vendor's reference, and lists fields that the gateway adds. The rest is described here."
            ),
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": SERVER, "description": "default address of `wireglot serve`"}],
        "security": _client_security(),
        "tags": [{"name": name, "description": about} for name, about in TAGS.items()],
        "paths": paths,
        "components": {
            "securitySchemes": _schemes(),
            "parameters": {name: _header_parameter(name) for name in REQUEST_HEADERS | INSPECTOR_HEADERS},
            "headers": {
                name: {"description": about, "schema": schema}
                for name, (schema, about) in (ANSWER_HEADERS | ERROR_HEADERS).items()
            },
            "responses": _error_responses(),
            "schemas": {**_bodies(), **schemas()},
        },
    }


def _check(routes: list[Served]) -> None:
    found = {(route.dialect, route.operation, route.verb) for route in routes}
    problems = [f"{' '.join(name)}: served, reported nowhere" for name in sorted(found - OPERATIONS.keys())]
    problems += [f"{' '.join(name)}: reported, served nowhere" for name in sorted(OPERATIONS.keys() - found)]
    if problems:
        raise Undocumented("\n".join(problems))


def _fresh_id(id: str, route: Served, used: set[str]) -> str:
    """The first path of an operation has its name; others say what is different."""
    forms = [id, f"{id}_{route.method.lower()}"]
    if route.versions:
        forms = [f"{id}_{'vertex' if '{project}' in route.path else 'version'}"]
    forms += [f"{id}_{re.sub('[^a-z0-9]+', '_', route.path.lower()).strip('_')}"]
    fresh = next(form for form in forms if form not in used)
    used.add(fresh)
    return fresh


def _path_item(route: Served) -> dict[str, Any]:
    item: dict[str, Any] = {}
    if len(route.roots) > 1:
        item["servers"] = [{"url": SERVER + root} for root in route.roots]
    parameters = [_path_parameter(name, route) for name in re.findall(r"\{(\w+)\}", route.path)]
    return {**item, "parameters": parameters} if parameters else item


def _path_parameter(name: str, route: Served) -> dict[str, Any]:
    schema = text()
    if name == "version":
        schema = text(enum=list(route.versions))
    return {"name": name, "in": "path", "required": True, "schema": schema}


def _operation(route: Served, reported: Operation, id: str) -> dict[str, Any]:
    operation: dict[str, Any] = {"operationId": id, "tags": [reported.tag], "summary": reported.summary}
    if reported.about:
        operation["description"] = reported.about
    if reported.vendor:
        operation["externalDocs"] = {"url": reported.vendor, "description": "the vendor's reference"}
    parameters = [*reported.query, *_header_references(route)]
    if parameters:
        operation["parameters"] = parameters
    body = _request_body(route, reported)
    if body is not None:
        operation["requestBody"] = body
    operation["responses"] = _responses(route, reported)
    security = _security(route)
    if security is not None:
        operation["security"] = security
    return operation


# Requests.


def _request_body(route: Served, reported: Operation) -> dict[str, Any] | None:
    if reported.body:
        required = bool(schemas()[reported.body].get("required"))
        kind = _FORM if route.operation == "login" else _JSON
        return {"required": required, "content": {kind: {"schema": ref(reported.body)}}}
    if route.method != "POST":
        return None
    if route.operation == "login":
        return {"content": {_FORM: {"schema": {"type": "object", "additionalProperties": True}}}}
    if route.operation == "embed":
        return {
            "required": True,
            "content": {_JSON: {"schema": {"type": "object", "additionalProperties": True}}},
        }
    if route.operation in ("generate", "count", "compact"):
        schema = ref(_request_name(route.dialect))
        return {"required": True, "content": {_JSON: {"schema": schema}}}
    takes_one = route.operation in ("assist", "state", "stub", "inspector")
    if takes_one and route.verb not in ("responses.cancel",):
        return {"content": {_JSON: {"schema": {"type": "object", "additionalProperties": True}}}}
    return None


def _request_name(dialect: str) -> str:
    return "".join(piece.capitalize() for piece in dialect.split("-")).replace("Openai", "OpenAI") + "Request"


def _bodies() -> dict[str, Any]:
    """Requests of the dialects: what is the gateway's own, or read by it; the rest is the vendor's."""
    found: dict[str, Any] = {}
    for spoken in surfaces():
        if (spoken.name, "generate", "") in OPERATIONS and OPERATIONS[spoken.name, "generate", ""].body:
            continue
        found[_request_name(spoken.name)] = _request_schema(spoken)
    return found


def _request_schema(spoken: Surface) -> dict[str, Any]:
    client, properties = spoken.client, {}
    if spoken.model_field:
        properties[spoken.model_field] = text("a name of `[models]`, `provider/model`, or a model's own name")
    if not spoken.sse_query:
        properties["stream"] = {"type": "boolean", "description": "server-sent events"}
    if client.timeout_field:
        about = "timeout of the whole answer, in seconds; read by the gateway and not sent to the provider"
        properties[client.timeout_field] = {"type": "number", "exclusiveMinimum": 0, "description": about}
    if client.conversation_field in client.gateway_fields:
        about = "the name of a conversation that the gateway stores, or a `conv_...` id"
        properties[client.conversation_field] = text(about)
    if client.turns:
        about = "the conversation, in the vendor's format"
        properties[client.turns] = {"description": about}
    schema: dict[str, Any] = {"type": "object", "properties": properties, "additionalProperties": True}
    about = "See the vendor's reference; only the fields that the gateway reads or adds are listed here."
    return {"description": about, **schema}


def _header_parameter(name: str) -> dict[str, Any]:
    schema, about = (REQUEST_HEADERS | INSPECTOR_HEADERS)[name]
    return {"name": name, "in": "header", "description": about, "schema": schema}


def _header_references(route: Served) -> list[dict[str, Any]]:
    if route.operation == "inspector" and route.method != "GET" and route.verb != "session.begin":
        return [{"$ref": f"#/components/parameters/{CSRF}"}]
    if route.operation not in ("generate", "count", "compact", "embed"):
        return []
    return [{"$ref": f"#/components/parameters/{name}"} for name in REQUEST_HEADERS]


# Answers.


def _responses(route: Served, reported: Operation) -> dict[str, Any]:
    errors = {"$ref": f"#/components/responses/{_error_name(route)}"}
    found: dict[str, Any] = {str(reported.status): _good(route, reported)}
    if route.operation == "ready":
        return {**found, "503": {**found["200"], "description": "send requests elsewhere"}}
    if route.operation in ("health", "stub"):
        return found
    off = {"schema": ref(_ERRORS[COMMON])}
    if route.operation == "login" and route.verb in _OAUTH:
        either = {"anyOf": [ref("OAuthError"), off["schema"]]}
        wrong = {
            "description": "an error of OAuth, or that sign-in is off",
            "content": {_JSON: {"schema": either}},
        }
        return {**found, "4XX": wrong, "5XX": wrong}
    if route.operation == "login":
        page = {"description": "the reason", "content": {**_PAGE["content"], _JSON: off}}
        return {**found, "4XX": page, "5XX": page}
    if route.verb == "session.enter":
        found["410"] = {
            "description": "used already, or too old",
            "content": {"text/plain": {"schema": text()}},
        }
    return {**found, "4XX": errors, "5XX": errors}


def _good(route: Served, reported: Operation) -> dict[str, Any]:
    good: dict[str, Any] = {"description": "done" if reported.status == 201 else "the answer"}
    if route.method == "HEAD" or reported.status == 303 or route.operation == "telemetry":
        return good
    good["content"] = dict(_contents(route, reported))
    names = _answer_headers(route)
    if names:
        good["headers"] = {name: {"$ref": f"#/components/headers/{name}"} for name in names}
    return good


def _contents(route: Served, reported: Operation) -> Iterator[tuple[str, dict[str, Any]]]:
    anything: dict[str, Any] = {"type": "object", "additionalProperties": True}
    if route.operation == "metrics":
        yield CONTENT_TYPE.partition(";")[0], {"schema": text()}
        return
    if route.verb == "page":
        yield "text/html", {"schema": text()}
        return
    if route.operation == "login" and route.verb not in _OAUTH:
        yield ("text/css" if route.verb == "login.style" else "text/html"), {"schema": text()}
        return
    if route.verb == "asset":
        yield "*/*", {"schema": text()}
        return
    if reported.answer:
        yield _JSON, {"schema": ref(reported.answer)}
        return
    if route.verb == "dashboard":
        yield "text/csv", {"schema": text()}
    in_array = route.operation == "generate" and route.verb == "streamGenerateContent"
    yield _JSON, {"schema": listed(anything) if in_array else anything}
    form = surface(route.dialect).client.cloud if route.dialect else None
    if form is not None and form.framing is not None:
        if route.verb == "invoke-with-response-stream":
            yield form.framing.content_type, {"schema": text("events of the dialect")}
        return
    if (route.operation == "generate" or reported.id == "getResponse") and route.verb not in _WHOLE:
        own = surface(route.dialect).client.framing if route.dialect else None
        yield (
            own.content_type if own is not None else _EVENTS,
            {"schema": text("events of the dialect")},
        )


def _answer_headers(route: Served) -> tuple[str, ...]:
    if route.operation in ("health", "ready", "metrics", "stub") or route.verb in ("page", "asset"):
        return ()
    if route.operation in ("generate", "compact", "embed"):
        return tuple(ANSWER_HEADERS)
    if route.operation == "count":
        return "x-wireglot-request-id", "x-wireglot-route", ESTIMATE[0]
    return ("x-wireglot-request-id",)


def _error_name(route: Served) -> str:
    if route.dialect and "{" in route.path:
        return _OF_PATHS.get(_ERRORS[route.dialect], _ERRORS[route.dialect])
    if route.dialect:
        return _ERRORS[route.dialect]
    return _ERRORS[COMMON] if route.operation in ("admin", "metrics", "inspector") else "CallersError"


def _error_responses() -> dict[str, Any]:
    names = ("x-wireglot-request-id", *ERROR_HEADERS)
    headers = {name: {"$ref": f"#/components/headers/{name}"} for name in names}
    found: dict[str, Any] = {
        name: {
            "description": "an error in the client's own dialect; its code is in the errors reference",
            "headers": headers,
            "content": {_JSON: {"schema": ref(name), "example": _example(name)}},
        }
        for name in dict.fromkeys(_ERRORS.values())
    }
    anyone = {"anyOf": [ref(name) for name in dict.fromkeys(_ERRORS.values())]}
    for shape, name in _OF_PATHS.items():
        either = {"anyOf": [ref(shape), ref(_ERRORS[COMMON])]}
        found[name] = {
            "description": f"{found[shape]['description']}; OpenAI's where the path is not understood",
            "headers": headers,
            "content": {_JSON: {"schema": either}},
        }
    found["CallersError"] = {
        "description": "an error in the dialect that the client's headers indicate, or else in OpenAI's",
        "headers": headers,
        "content": {_JSON: {"schema": anyone}},
    }
    return found


def _example(shape: str) -> dict[str, Any]:
    """A client key at its limit, as the first dialect of that shape tells it."""
    name = next(name for name, each in _ERRORS.items() if each == shape)
    error = RequestError("rate", "too many requests: 60 a minute", retry_after=3).error
    reported = msgspec.structs.replace(error, request_id="req_0123456789abcdef01234567")
    rendered: dict[str, Any] = dialect(name).render_error(reported, Context()).value
    return rendered


# Keys.


def _schemes() -> dict[str, Any]:
    schemes: dict[str, Any] = {}
    about = "A client key. Not required while the gateway listens only on this machine and has no keys."
    for name, prefix in _key_headers():
        if prefix:
            schemes[_scheme(name)] = {"type": "http", "scheme": prefix.strip(), "description": about}
        else:
            schemes[_scheme(name)] = {"type": "apiKey", "in": "header", "name": name, "description": about}
    queries = dict.fromkeys(spoken.client.key_query for spoken in surfaces() if spoken.client.key_query)
    for name in queries:
        schemes[f"{name}-query"] = {"type": "apiKey", "in": "query", "name": name, "description": about}
    schemes["admin-secret"] = {
        "type": "http",
        "scheme": "bearer",
        "description": "`server.admin_secret`; accepted in the same headers as a client key",
    }
    schemes["metrics-key"] = {
        "type": "http",
        "scheme": "bearer",
        "description": "`server.metrics_key`, or the admin secret",
    }
    schemes["inspector-session"] = {
        "type": "apiKey",
        "in": "cookie",
        "name": "wireglot-inspector-8484",
        "description": "a session of the inspector; the suffix is the port of the page",
    }
    return schemes


def _key_headers() -> list[tuple[str, str]]:
    return list(dict.fromkeys(header for spoken in surfaces() for header in spoken.client.key_headers))


def _scheme(name: str) -> str:
    return "bearer" if name == "authorization" else name


def _client_security() -> list[dict[str, list[str]]]:
    """Any of them, or none: whether one is needed is the configuration's."""
    ways: list[dict[str, list[str]]] = [{_scheme(name): []} for name, _ in _key_headers()]
    return [{}, *ways]


def _security(route: Served) -> list[dict[str, list[str]]] | None:
    """None: that of all paths."""
    if route.operation == "admin":
        return [{"admin-secret": []}]
    if route.operation == "metrics":
        return [{}, {"metrics-key": []}]
    if route.operation == "inspector":
        if route.verb.startswith("keys."):
            return [{"inspector-session": []}, {"admin-secret": []}]
        return (
            []
            if route.verb in ("page", "asset", "session.enter")
            else [*_client_security(), {"inspector-session": []}]
        )
    if route.operation in ("health", "ready", "stub", "login"):
        return []
    query = surface(route.dialect).client.key_query if route.dialect else ""
    return [*_client_security(), {f"{query}-query": []}] if query else None
