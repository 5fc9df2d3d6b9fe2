"""docs/reference/http.md: the OpenAPI document as people read it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from tools.blocks import table
from tools.http_api.document import ANSWER_HEADERS, ERROR_HEADERS, REQUEST_HEADERS, SERVER
from tools.http_api.operations import TAGS
from wireglot.gateway.errors import _CLASSES, ErrorClass, RequestError
from wireglot_core.dialects.registry import surface

_METHODS: Final = ("get", "head", "post", "patch", "put", "delete")
_SHOWN: Final = {
    "Administration": ("KeyToMake", "Key", "KeyRotation", "Wiped", "Store"),
    "Sessions, usage, losses": ("Session", "Usage", "UsageRow", "Losses", "Loss"),
    "Inspector": ("InspectorSession", "ToTranslate", "Translations", "Translation", "ToAsk", "AskedExchange"),
    "Operations": ("Readiness", "Root"),
    "Gemini, simplified": ("SimpleRequest",),
}
"""Schemas whose fields are reported below the paths of a tag."""
_MEANINGS: Final[dict[ErrorClass, str]] = {
    "bad": "an invalid request, or one whose translation would lose something that must not be lost",
    "auth": "no key, or a wrong one",
    "permission": "a host, an origin or a model that is not allowed",
    "not_found": "no such model, path or resource",
    "conflict": "an idempotency key that was used for another request",
    "too_large": "a body that is too large",
    "media": "not JSON by its content type",
    "rate": "a limit of a key; too many wrong keys",
    "shed": "the gateway is overloaded or shutting down",
    "internal": "a bug in the gateway",
    "upstream_bad": "the provider's answer cannot be read",
    "upstream_down": "no connection to the provider, or its circuit breaker is open",
    "upstream_timeout": "the provider did not answer in time",
    "upstream_auth": "the provider rejects the gateway's own key",
}


def page(document: dict[str, Any]) -> Iterator[str]:
    yield "# HTTP API"
    yield ""
    yield f"All paths of the gateway (default address: `{SERVER}`). For tools, the same reference"
    yield "is an OpenAPI 3.1 document: [openapi.json](openapi.json). [The gateway](../gateway.md)"
    yield "explains how requests are processed; [errors](errors.md) and [losses](losses.md) have their own"
    yield "pages."
    yield ""
    yield "## Keys"
    yield ""
    yield "While the gateway listens only on this machine, no key is needed until [the first](../keys.md)"
    yield "is created. After that every request must send a key, in any of these ways:"
    yield ""
    yield from _keys(document)
    yield ""
    yield "## Headers"
    yield ""
    yield "Optional headers of requests for answers and token counts:"
    yield ""
    yield _headers(REQUEST_HEADERS)
    yield ""
    yield "Headers of answers:"
    yield ""
    yield _headers(ANSWER_HEADERS)
    yield ""
    yield "Headers of errors, in addition to the request id:"
    yield ""
    yield _headers(ERROR_HEADERS)
    for tag, about in TAGS.items():
        yield ""
        yield f"## {tag}"
        yield ""
        yield about
        yield ""
        yield from _paths(document, tag)
        for name in _SHOWN.get(tag, ()):
            yield ""
            yield from _fields(document["components"]["schemas"], name)
    yield ""
    yield "## Errors"
    yield ""
    yield "Errors have the format of the client's dialect; where the path does not determine the dialect, the"
    yield "headers do. For codes and how to fix each error, see [errors](errors.md)."
    yield ""
    yield _statuses()
    for name in ("AnthropicError", "OpenAIError", "GeminiError", "InteractionsError"):
        yield ""
        yield from _fields(document["components"]["schemas"], name)


def _keys(document: dict[str, Any]) -> Iterator[str]:
    rows = []
    for name, scheme in document["components"]["securitySchemes"].items():
        if name == "admin-secret":
            rows.append(("`authorization: Bearer SECRET`", f"{scheme['description']}: for `/v1/admin/...`"))
        elif name == "metrics-key":
            rows.append(("`authorization: Bearer KEY`", f"{scheme['description']}: for `/metrics`"))
        elif name == "inspector-session":
            rows.append(
                (f"the cookie `{scheme['name']}`", f"{scheme['description']}: for `/inspector/api/...`")
            )
        elif scheme["type"] == "http":
            rows.append(("`authorization: Bearer KEY`", "a client key"))
        elif scheme["in"] == "header":
            rows.append((f"`{scheme['name']}: KEY`", "a client key"))
        else:
            rows.append((f"`?{scheme['name']}=KEY`", "a client key, on Gemini's paths"))
    yield table(("sent as", "what"), rows)


def _headers(named: dict[str, tuple[dict[str, Any], str]]) -> str:
    rows = []
    for name, (schema, about) in named.items():
        choices = ", ".join(f"`{choice}`" for choice in schema.get("enum", ()))
        rows.append((f"`{name}`", f"{choices}: {about}" if choices else about))
    return table(("header", "meaning"), rows)


def _paths(document: dict[str, Any], tag: str) -> Iterator[str]:
    """A table of the paths; those that only begin otherwise are reported below it."""
    rows: list[tuple[str, str]] = []
    vendors: dict[str, None] = {}
    roots: dict[str, list[str]] = {}
    forms: dict[str, str] = {}
    for path, item in document["paths"].items():
        for method in _METHODS:
            operation = item.get(method)
            if operation is None or operation["tags"] != [tag]:
                continue
            if (choices := _versions(item)) is not None:
                form, colon, _ = path.partition(":")
                forms.setdefault(f"{form}:..." if colon else form, choices)
                continue
            name = f"{method.upper()} {path}"
            rows.append((f"`{name}`", _what(operation)))
            for server in item.get("servers", ())[1:]:
                roots.setdefault(server["url"].removeprefix(SERVER), []).append(name)
            if "externalDocs" in operation:
                vendors[operation["externalDocs"]["url"]] = None
    yield table(("path", "what"), list(_merged(rows)))
    for root, names in roots.items():
        which = "all of these" if len(names) == len(rows) else ", ".join(f"`{name}`" for name in names)
        yield ""
        yield f"Also with `{root}` before the path: {which}."
    for form, choices in forms.items():
        yield ""
        yield f"Also as `{form}`, where `{{version}}` is {choices}."
    if vendors:
        whole = [url for url in vendors if not any(url.startswith(f"{each}/") for each in vendors)]
        yield ""
        yield "The vendor's reference for bodies and streams: " + ", ".join(f"<{url}>" for url in whole)


def _merged(rows: Iterable[tuple[str, ...]]) -> Iterator[tuple[str, ...]]:
    """Rows of which the same is said, as one."""
    names: dict[tuple[str, ...], list[str]] = {}
    for name, *rest in rows:
        names.setdefault(tuple(rest), []).append(name)
    for cells, named in names.items():
        yield ", ".join(named), *cells


def _versions(item: dict[str, Any]) -> str | None:
    for parameter in item.get("parameters", ()):
        if parameter["name"] == "version":
            *first, last = (f"`{choice}`" for choice in parameter["schema"]["enum"])
            return f"{', '.join(first)} or {last}"
    return None


def _what(operation: dict[str, Any]) -> str:
    reported: str = operation["summary"]
    if operation.get("description"):
        reported = f"{reported}. {operation['description'].rstrip('.')}"
    query = [each["name"] for each in operation.get("parameters", ()) if each.get("in") == "query"]
    return f"{reported}; `?{'`, `?'.join(query)}`" if query else reported


def _statuses() -> str:
    """Of the gateway's own errors, by class, as each dialect has them."""
    spoken = {"OpenAI": "openai-chat", "Anthropic": "anthropic", "Gemini": "gemini"}
    rows = []
    for kind, (_, _, code) in _CLASSES.items():
        error = RequestError(kind, "").error
        statuses = [str(surface(name).status(error)) for name in spoken.values()]
        rows.append((_MEANINGS[kind], f"`{code}`" if code else "", *statuses))
    return table(("error", "usual code", *spoken), rows)


def _fields(schemas: dict[str, Any], name: str) -> Iterator[str]:
    schema = schemas[name]
    yield f"### {name}"
    if schema.get("description"):
        yield ""
        yield schema["description"]
    yield ""
    yield table(("field", "type", "meaning"), list(_merged(_rows(schema))))


def _rows(schema: dict[str, Any], before: str = "") -> Iterator[tuple[str, str, str]]:
    required = schema.get("required", ())
    for name, field in schema["properties"].items():
        about = field.get("description", "")
        if name not in required and not before:
            about = f"optional; {about}" if about else "optional"
        yield f"`{before}{name}`", _type(field), about
        if "properties" in field:
            yield from _rows(field, f"{before}{name}.")


def _type(field: dict[str, Any]) -> str:
    if "$ref" in field:
        return _linked(field["$ref"])
    if "const" in field:
        return f"`{field['const']}`".replace("True", "true")
    if "anyOf" in field:
        return " or ".join(_type(choice) for choice in field["anyOf"])
    if "enum" in field:
        return ", ".join(_choice(choice) for choice in field["enum"])
    kind = field.get("type", "any")
    if isinstance(kind, list):
        return " or ".join(_type({**field, "type": each}) for each in kind)
    if kind == "array":
        return f"list of {_type(field['items'])}"
    if kind == "object" and isinstance(field.get("additionalProperties"), dict):
        return f"object of {_type(field['additionalProperties'])}"
    return str(kind)


def _choice(value: str | None) -> str:
    if value is None:
        return "null"
    return f"`{value}`" if value else "empty"


def _linked(reference: str) -> str:
    name = reference.rpartition("/")[2]
    shown = {each for names in _SHOWN.values() for each in names}
    return f"[{name}](#{name.lower()})" if name in shown else name
