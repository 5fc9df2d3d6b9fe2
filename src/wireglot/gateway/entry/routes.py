"""Paths -> what is asked, in whose dialect. What is not in the tables does not exist."""

from __future__ import annotations

import re
from typing import Final, Literal
from urllib.parse import parse_qs, unquote

import msgspec

from wireglot.gateway.entry.probes import stub
from wireglot.gateway.errors import RequestError
from wireglot.gateway.pages.code_assist import GET_VERBS
from wireglot.http.application import Head

Operation = Literal[
    "generate",
    "compact",
    "count",
    "models",
    "model",
    "assist",
    "operation",
    "state",
    "admin",
    "health",
    "ready",
    "metrics",
    "stub",
]


class Asked(msgspec.Struct, frozen=True):
    """`model` and `stream` where the path tells them; `verb` is the rest of a path that goes on."""

    dialect: str
    operation: Operation
    model: str = ""
    stream: bool | None = None
    verb: str = ""
    open: bool = False
    """Whether it is answered without a client key."""
    ids: tuple[str, ...] = ()
    """What of the state is meant, from the path."""


class NoRoute(Exception):
    """`allowed`: the methods of a path that exists for others."""

    def __init__(self, dialect: str, allowed: tuple[str, ...] = ()) -> None:
        super().__init__(dialect)
        self.dialect = dialect
        self.allowed = allowed


_MESSAGES: Final = Asked("anthropic", "generate")
_COUNT_MESSAGES: Final = Asked("anthropic", "count")
_CHAT: Final = Asked("openai-chat", "generate")
_RESPONSES: Final = Asked("openai-responses", "generate")
_COUNT_RESPONSES: Final = Asked("openai-responses", "count")

POST: Final[dict[str, Asked]] = {
    "/v1/messages": _MESSAGES,
    "/anthropic/v1/messages": _MESSAGES,
    "/v1/messages/count_tokens": _COUNT_MESSAGES,
    "/anthropic/v1/messages/count_tokens": _COUNT_MESSAGES,
    "/v1/chat/completions": _CHAT,
    "/openai/v1/chat/completions": _CHAT,
    "/v1beta/openai/chat/completions": _CHAT,
    "/v1/responses": _RESPONSES,
    "/openai/v1/responses": _RESPONSES,
    "/v1/responses/input_tokens": _COUNT_RESPONSES,
    "/openai/v1/responses/input_tokens": _COUNT_RESPONSES,
    "/v1/gemini": Asked("gemini-simple", "generate"),
}
GET: Final[dict[str, Asked]] = {
    "/healthz": Asked("openai-chat", "health", open=True),
    "/health": Asked("openai-chat", "health", open=True),
    "/readyz": Asked("openai-chat", "ready", open=True),
    "/metrics": Asked("openai-chat", "metrics"),
}

_OPENAI: Final = "/openai"
_STATE: Final[tuple[tuple[str, str, str, str], ...]] = (
    ("POST", "/v1/responses/compact", "openai-responses", "compact"),
    ("GET", "/v1/responses/*", "openai-responses", "responses.get"),
    ("DELETE", "/v1/responses/*", "openai-responses", "responses.delete"),
    ("POST", "/v1/responses/*/cancel", "openai-responses", "responses.cancel"),
    ("GET", "/v1/responses/*/input_items", "openai-responses", "responses.input_items"),
    ("POST", "/v1/conversations", "openai-responses", "conversations.create"),
    ("GET", "/v1/conversations/*", "openai-responses", "conversations.get"),
    ("POST", "/v1/conversations/*", "openai-responses", "conversations.update"),
    ("DELETE", "/v1/conversations/*", "openai-responses", "conversations.delete"),
    ("POST", "/v1/conversations/*/items", "openai-responses", "items.create"),
    ("GET", "/v1/conversations/*/items", "openai-responses", "items.list"),
    ("GET", "/v1/conversations/*/items/*", "openai-responses", "items.get"),
    ("DELETE", "/v1/conversations/*/items/*", "openai-responses", "items.delete"),
    ("GET", "/v1/sessions", "", "sessions.list"),
    ("GET", "/v1/sessions/*", "", "sessions.get"),
    ("DELETE", "/v1/sessions/*", "", "sessions.delete"),
    ("GET", "/v1/usage", "", "usage"),
    ("GET", "/v1/admin/keys", "openai-chat", "keys.list"),
    ("POST", "/v1/admin/keys", "openai-chat", "keys.create"),
    ("GET", "/v1/admin/keys/*", "openai-chat", "keys.get"),
    ("PATCH", "/v1/admin/keys/*", "openai-chat", "keys.update"),
    ("DELETE", "/v1/admin/keys/*", "openai-chat", "keys.revoke"),
    ("POST", "/v1/admin/keys/*/rotate", "openai-chat", "keys.rotate"),
    ("GET", "/v1/admin/usage", "openai-chat", "usage"),
    ("GET", "/v1/admin/store", "openai-chat", "store.stats"),
    ("DELETE", "/v1/admin/callers/*/data", "openai-chat", "callers.wipe"),
)
"""Method, path with a `*` for each id, dialect ("": the caller's headers tell), verb. Of two that fit, the
first holds."""

_VERSIONS: Final = ("/v1/", "/v1beta/", "/v1alpha/", "/v1beta1/")
_LISTS: Final = (
    "/v1/models",
    "/v1beta/models",
    "/v1alpha/models",
    "/v1beta1/models",
    "/openai/v1/models",
    "/v1beta/openai/models",
    "/anthropic/v1/models",
)
_VERBS: Final[dict[str, tuple[Operation, bool | None]]] = {
    "generateContent": ("generate", False),
    "streamGenerateContent": ("generate", True),
    "countTokens": ("count", None),
}
_ASSIST: Final = "/v1internal:"
_ENCODED_SLASH: Final = re.compile("%2[Ff]")
"""SDKs write it where a model's name has a slash, a session may be named so; nobody needs it elsewhere."""
_ASSIST_OPERATION: Final = "/v1internal/"


def match(head: Head) -> Asked:
    if _ENCODED_SLASH.search(head.path) and not _may_hold_a_slash(head.path):
        raise RequestError("bad", "the path holds an encoded slash", code="invalid_target")
    method = "GET" if head.method == "HEAD" else head.method
    path = head.path
    if method == "POST":
        found = POST.get(path) or _gemini(path) or _code_assist(path)
    elif method == "GET":
        found = GET.get(path) or _listed(head) or _assist_get(path)
    else:
        found = None
    if found is None:
        found = _state(head, method) or _probed(head.method, path)
    if found is not None:
        return found
    raise NoRoute(dialect_of(head), _allowed(head))


def _may_hold_a_slash(path: str) -> bool:
    """Names of models and of clients' own sessions."""
    return "/models/" in path or path.startswith("/v1/sessions/")


def dialect_of(head: Head) -> str:
    """Whose error a caller can read, where the path does not tell: its headers do."""
    path, headers = head.path, head.headers
    if path.startswith("/v1internal"):
        return "code-assist"
    known = POST.get(path)
    if known is not None:
        return known.dialect
    if "anthropic-version" in headers or path.startswith(("/anthropic/", "/v1/messages")):
        return "anthropic"
    if path.removeprefix(_OPENAI).startswith(("/v1/responses", "/v1/conversations")):
        return "openai-responses"
    if path.startswith("/v1beta/openai/"):
        return "openai-chat"
    if (
        path.startswith(("/v1beta/", "/v1alpha/", "/v1beta1/"))
        or "x-goog-api-key" in headers
        or "x-goog-api-client" in headers
    ):
        return "gemini"
    return "gemini" if _query_key(head) else "openai-chat"


def query_value(query: str, name: str) -> str:
    if not query:
        return ""
    return parse_qs(query, keep_blank_values=True).get(name, [""])[0]


def _query_key(head: Head) -> bool:
    return "key=" in head.query and bool(query_value(head.query, "key"))


def _gemini(path: str) -> Asked | None:
    """`/v1beta/models/x:generateContent`, also without `models/` (the AI SDK, for names with a slash) and in
    Vertex's long form."""
    before, colon, verb = path.rpartition(":")
    known = _VERBS.get(verb)
    if not colon or known is None or not before.startswith(_VERSIONS):
        return None
    name = before.partition("/models/")[2] or before.split("/", 2)[2]
    return Asked("gemini", known[0], unquote(name), known[1])


def _code_assist(path: str) -> Asked | None:
    if not path.startswith(_ASSIST):
        return None
    verb = path[len(_ASSIST) :]
    operation, stream = _VERBS.get(verb, ("assist", None))
    return Asked("code-assist", operation, "", stream, verb)


def _assist_get(path: str) -> Asked | None:
    if path.startswith(_ASSIST) and path[len(_ASSIST) :] in GET_VERBS:
        return Asked("code-assist", "assist", verb=path[len(_ASSIST) :])
    if path.startswith(_ASSIST_OPERATION):
        return Asked("code-assist", "operation", verb=path[len(_ASSIST_OPERATION) :])
    return None


def _probed(method: str, path: str) -> Asked | None:
    found = stub(method, path)
    return None if found is None else Asked("openai-chat", "stub", open=found.open)


def _listed(head: Head) -> Asked | None:
    path = head.path
    for root in _LISTS:
        if path == root:
            return Asked(dialect_of(head), "models")
        if path.startswith(root + "/"):
            return Asked(dialect_of(head), "model", unquote(path[len(root) + 1 :]))
    return None


def _state(head: Head, method: str) -> Asked | None:
    for known, pattern, dialect, verb in _STATE:
        ids = _ids(head.path, pattern) if known == method else None
        if ids is not None:
            operation: Operation = (
                "admin" if "/admin/" in pattern else "compact" if verb == "compact" else "state"
            )
            return Asked(
                dialect or dialect_of(head), operation, verb=verb, ids=ids, open=operation == "admin"
            )
    return None


def _ids(path: str, pattern: str) -> tuple[str, ...] | None:
    """What stands in a path where a pattern has its stars; None where they differ otherwise."""
    given, wanted = path.removeprefix(_OPENAI).split("/"), pattern.split("/")
    if len(given) != len(wanted):
        return None
    ids = []
    for piece, expected in zip(given, wanted, strict=True):
        if expected == "*" and piece:
            ids.append(unquote(piece))
        elif piece != expected:
            return None
    return tuple(ids)


def _allowed(head: Head) -> tuple[str, ...]:
    path = head.path
    kept = dict.fromkeys(method for method, pattern, _, _ in _STATE if _ids(path, pattern) is not None)
    if path in POST or _gemini(path) or _code_assist(path):
        kept["POST"] = None
    if kept:
        return tuple(kept)
    listed = _listed(head) is not None and ":" not in path  # a colon begins a verb, and we know those we know
    return ("GET",) if path in GET or listed else ()


def nowhere(head: Head, problem: NoRoute) -> RequestError:
    if "upgrade" in head.headers and head.path.startswith("/v1/responses"):
        # Codex then speaks plain HTTP at once; any other status costs it seconds.
        fault = RequestError("bad", "WebSocket is not spoken here: use POST", code="upgrade_required")
        return fault.with_status(426)
    if problem.allowed:
        allowed = ", ".join(problem.allowed)
        return RequestError("bad", f"{head.path} takes {allowed}", code="method_not_allowed").with_status(405)
    return RequestError("not_found", f"there is nothing at {head.method} {head.path}", code="unknown_url")
