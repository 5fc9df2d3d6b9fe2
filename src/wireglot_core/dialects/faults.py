"""Errors common to all providers: statuses, wordings, bodies that are not JSON objects."""

from __future__ import annotations

import html
import re
from typing import Any, Final

from wireglot_core.dialects.unknown_fields import is_hollow
from wireglot_core.ir.errors import ApiError, ErrorKind
from wireglot_core.wire.json import encode_text

_UPSTREAM: Final = "upstream_error"

TRUNCATED: Final = ApiError("server", "the upstream stream ended before it was complete", code=_UPSTREAM)


def broken(problem: object) -> ApiError:
    """The upstream sent something that its dialect does not allow."""
    return ApiError("server", f"the upstream sent something that cannot be read: {problem}", code=_UPSTREAM)


def is_unsent(error: ApiError) -> bool:
    """Whether a reader produced the error itself: no upstream sent it."""
    return error.extra is None and error.code == _UPSTREAM


_USUAL: Final[dict[ErrorKind, int]] = {
    "invalid_request": 400,
    "context_overflow": 400,
    "auth": 401,
    "billing": 402,
    "permission": 403,
    "not_found": 404,
    "conflict": 409,
    "too_large": 413,
    "rate_limit": 429,
    "overloaded": 503,
    "server": 500,
    "timeout": 504,
    "content_policy": 400,
}
"""The HTTP status of an error that has none."""

_BY_STATUS: Final[dict[int, ErrorKind]] = {
    **{status: kind for kind, status in reversed(_USUAL.items())},
    408: "timeout",
    499: "server",  # a proxy in front of the model hung up; nothing is wrong with the request
    522: "timeout",  # 522 and 524 are Cloudflare's
    524: "timeout",
    529: "overloaded",
}

_CONTEXT = r"context[ _](?:length|window|size|limit)"
_OVERFLOW: Final = re.compile(
    "|".join(
        (
            r"(?:prompt|input|messages) (?:is |are )?too long",  # Anthropic, Bedrock, Kimi, Ollama
            r"\bmax(?:imum)? (?:context|prompt|input) (?:length|tokens|size)",  # OpenAI, vLLM, xAI, Mistral
            # OpenAI, Anthropic, llama.cpp, LM Studio, Together, Codex's backend
            r"(?:exceed|overflow|too (?:long|large|big)|(?:great|larg|long)er than|\bfit\b)"
            rf".{{0,60}}{_CONTEXT}",
            rf"{_CONTEXT}.{{0,40}}(?:exceed|overflow)|{_CONTEXT} (?:is|of) (?:only )?\d",  # MiniMax, Docker
            r"exceed(?:s|ed)? (?:the |model ){0,2}token limit|token limit exceeded",  # Kimi
            r"token count.{0,60}exceeds",  # Google, Copilot
            r"exceeds? the max(?:imum)? (?:allowed )?(?:number of )?(?:input |prompt )?token",  # Google
            r"exceeds? (?:the )?max(?:imum)? allowed (?:input|prompt) length",  # OpenRouter
            r"prompt exceeds max length",  # Z.ai
            r"reduce the length of",  # Groq
            r"too many (?:input |prompt )?tokens|more than max tokens allowed",
            r"range of input length should be",  # Qwen
            r"the (?:request|message) size .{0,40}exceeds",  # Vertex
        )
    ),
    re.IGNORECASE | re.DOTALL,
)
# Rate limits mention tokens too: Bedrock's "Too many tokens, please wait before trying again".
_THROTTLED: Final = re.compile(
    r"rate[ _-]?limit|too many requests|throttl|\bper[ _-]?(?:second|min(?:ute)?|hour|day)\b|\btpm\b"
    r"|\bquota\b|please wait|try again (?:in|after|later)|service unavailable",
    re.IGNORECASE,
)
_POLICY: Final = re.compile(
    r"considered high risk|content (?:filter|policy|management policy)|blocked by .{0,80}(?:filter|policy)"
    r"|usage policy",
    re.IGNORECASE,
)
_UNKNOWN_KEY: Final = re.compile(
    r"security token included in the request is|signature we calculated does not match|api key not valid",
    re.IGNORECASE,
)
"""Amazon answers 403 to unknown callers, as it does to callers without a permission."""
_WRONG_KEY: Final = re.compile(r"(?:incorrect|invalid) api key", re.IGNORECASE)
"""The beginning of a message that xAI sends with 400: https://github.com/openai/codex/issues/1352"""
_WAIT: Final = re.compile(
    r"(?:try again|retry) (?:in|after) (?=\d)(?:(\d{1,4})h)?(?:(\d{1,6})m(?!s))?"
    r"(?:(\d{1,9}(?:\.\d{1,9})?) ?(ms|s|seconds?)\b)?",
    re.IGNORECASE,
)

_PAGE: Final = re.compile(
    r"[\s\ufeff]*<(?:!doctype|html|head|body|title|center|h[1-6]|\?xml)\b", re.IGNORECASE
)
_TITLES: Final = (
    re.compile(r"<title\b[^>]{0,200}>(.{0,400}?)</title", re.IGNORECASE | re.DOTALL),
    re.compile(r"<h[1-3]\b[^>]{0,200}>(.{0,400}?)</h[1-3]", re.IGNORECASE | re.DOTALL),
)
_UNSEEN: Final = re.compile(
    r"<(script|style)\b.*?(?:</\1[^>]*>?|\Z)|<!--.*?(?:-->|\Z)", re.IGNORECASE | re.DOTALL
)
_TAG: Final = re.compile(r"<[^>]*>?")
_PAGE_READ_CHARS = 20_000  # the useful text of a page is at its top
_PAGE_REPORTED_CHARS = 200
_TEXT_REPORTED_CHARS = 4096


def kind_of_status(status: int) -> ErrorKind:
    return _BY_STATUS.get(status) or ("invalid_request" if 400 <= status < 500 else "server")


def kind_of_name(named: ErrorKind | None, status: int) -> ErrorKind:
    """The kind of error for a type or code. A type that blames the server is ignored if the status blames the
    request: the same request would fail again."""
    if named is None or (named == "server" and 400 <= status < 500):
        return kind_of_status(status)
    return named


def kind_of_message(kind: ErrorKind, message: str) -> ErrorKind:
    """`kind`, or a narrower one derived from the message where types and statuses are ambiguous."""
    if kind in ("invalid_request", "too_large", "server") and is_context_overflow(message):
        return "context_overflow"
    if kind == "invalid_request" and _POLICY.search(message):
        return "content_policy"
    if kind == "permission" and _UNKNOWN_KEY.search(message):
        return "auth"
    if kind == "invalid_request" and _WRONG_KEY.match(message):
        return "auth"
    return kind


def is_context_overflow(message: str) -> bool:
    """Whether a message reports, in some provider's wording, that the conversation exceeds the context
    window."""
    return _OVERFLOW.search(message) is not None and _THROTTLED.search(message) is None


def wait_in_message(message: str) -> float | None:
    """The seconds in "try again in 1m30s", "try again in 250ms", "retry after 26 seconds"."""
    found = _WAIT.search(message)
    if found is None or not any(found.groups()):
        return None
    hours, minutes, amount, unit = found.groups()
    seconds = float(amount or 0) / (1000 if (unit or "").lower() == "ms" else 1)
    return seconds + 60 * int(minutes or 0) + 3600 * int(hours or 0)


def is_page(text: str) -> bool:
    """Whether a body is a web page (or XML) from a proxy or load balancer in front of the API."""
    return _PAGE.match(text) is not None


def page_message(text: str) -> str:
    """A web page as one line: its title, else its heading, else all text. "502" alone is not used as a
    title."""
    text = text[:_PAGE_READ_CHARS]
    reported = ""
    for pattern in _TITLES:
        found = pattern.search(text)
        reported = _plain(found[1]) if found else ""
        if any(map(str.isalpha, reported)):
            break
    else:
        reported = _plain(_UNSEEN.sub(" ", text))
    return (
        f"the upstream answered with a web page{f': {reported[:_PAGE_REPORTED_CHARS]}' if reported else ''}"
    )


def _plain(markup: str) -> str:
    return " ".join(html.unescape(_TAG.sub(" ", markup)).split())


def status_message(status: int) -> str:
    return f"the upstream answered with status {status}" if status else "the upstream reported an error"


def error_beside(body: dict[str, Any], answer: str) -> Any:
    """The `error` of a body; None if it is empty and next to a field of an answer: some servers print every
    field of their schema."""
    error = body.get("error")
    return None if type(error) is dict and type(body.get(answer)) is list and is_hollow(error) else error


def bare_message(body: Any, status: int) -> str:
    """The message of a body that is not an object: text, a page, or empty."""
    if type(body) is bytes:
        body = body.decode("utf-8", "replace")
    if type(body) is str:
        return (
            page_message(body)
            if is_page(body)
            else body.strip()[:_TEXT_REPORTED_CHARS] or status_message(status)
        )
    return encode_text(body)[:_TEXT_REPORTED_CHARS] if body else status_message(status)


def stated_message(error: dict[str, Any]) -> str:
    """The message of an error object, whatever the name of its field; empty if there is none."""
    for key in ("message", "Message", "detail", "msg", "error_message", "error_description", "title"):
        value = error.get(key)
        if type(value) is str and value:
            return value
        if value and type(value) in (dict, list):
            inner = value[0] if type(value) is list else value
            if type(inner) is dict and type(inner.get("msg")) is str:
                return str(inner["msg"])
            return encode_text(value)[:_TEXT_REPORTED_CHARS]
    return ""


UPSTREAM_AUTH: Final = "upstream_auth_failed"
"""The code of an error caused by the gateway's own key. The client has done nothing wrong."""


def own_status(error: ApiError) -> int:
    """The error's own status, else that of its kind."""
    return error.status if 400 <= error.status <= 599 else _USUAL[error.kind]


def plain_status(error: ApiError) -> int:
    """The same, for dialects that do not know Anthropic's 529."""
    status = own_status(error)
    return 503 if status == 529 else status
