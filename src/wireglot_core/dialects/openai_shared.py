"""Code common to OpenAI's two dialects: values, errors, lists of models, consistency rules for counts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Literal

from wireglot_core.dialects.common_losses import guessed_type
from wireglot_core.dialects.faults import kind_of_message, kind_of_name, wait_in_message
from wireglot_core.dialects.fields import text_in
from wireglot_core.dialects.listed_model import ListedModel, Query
from wireglot_core.dialects.surface import ModelLists
from wireglot_core.dialects.usage_checks import CACHED, REASONING, TOTAL, Numbers
from wireglot_core.ir.content import Citation, Extra, TokenLogprob
from wireglot_core.ir.errors import ApiError, ErrorKind
from wireglot_core.ir.loss import Loss
from wireglot_core.ir.request import AnyTool, Grammar, Tool

VENDOR: Final = "openai"
"""Both dialects use the same file ids."""

# Cache marks

BREAKPOINT: Final = "prompt_cache_breakpoint"

Ttl = Literal["", "short", "long"]
TTLS: Final[dict[str, Ttl]] = {"30m": "short", "12h": "long"}
_TTL_NAMES: Final = {"short": "30m", "long": "12h"}


def breakpoint_value(ttl: Ttl, mode: Any = "explicit") -> dict[str, Any]:
    value = {"mode": mode}
    if ttl:
        value["ttl"] = _TTL_NAMES[ttl]
    return value


# Citations


def cited_span(
    citation: Citation, length: int, own: bool, path: str, losses: list[Loss]
) -> tuple[int | None, int | None]:
    """The offsets to write. Clients require both, so another dialect's citation without them cites the whole
    text, which is equivalent."""
    start, end = citation.start, citation.end
    if own or (start is not None and end is not None):
        return start, end
    losses.append(Loss(path, "citations", "invented", "offsets: the whole text"))
    return start or 0, length if end is None else end


# Log probabilities


def parse_logprob(entry: Any) -> TokenLogprob | None:
    """None for what is not in OpenAI's form."""
    token = _token(entry)
    if token is None:
        return None
    top = entry.get("top_logprobs")
    others = [_token(other) for other in top] if type(top) is list else []
    return TokenLogprob(*token, tuple(other for other in others if other is not None))


def _token(entry: Any) -> tuple[str, float | int] | None:
    if type(entry) is not dict:
        return None
    token, logprob = entry.get("token"), entry.get("logprob")
    if type(token) is str and isinstance(logprob, int | float):
        return token, logprob
    return None


def render_logprobs(tokens: tuple[TokenLogprob, ...]) -> list[dict[str, Any]]:
    return [
        {
            **_render_token(token.token, token.logprob),
            "top_logprobs": [_render_token(*other) for other in token.top],
        }
        for token in tokens
    ]


def _render_token(token: str, logprob: float | int) -> dict[str, Any]:
    return {"token": token, "logprob": logprob, "bytes": list(token.encode("utf-8", "replace"))}


# Tools

Mode = Literal["auto", "none", "required"]
CHOICE_MODES: Final[dict[str, Mode]] = {
    "auto": "auto",
    "none": "none",
    "required": "required",
    "any": "required",
}
HOSTED_KINDS: Final = {
    "code_interpreter": "code_execution",
    "file_search": "file_search",
    "image_generation": "image_generation",
    "mcp": "mcp",
    "web_search": "web_search",
}


def grammar_of(shape: dict[str, Any], default_syntax: str | None = None) -> Grammar | None:
    """The grammar in the `format` of a freeform tool, which has one more level in Chat; None for any
    other."""
    nested = shape.get("grammar")
    source = nested if type(nested) is dict else shape
    syntax, definition = source.get("syntax"), source.get("definition")
    if syntax is None:
        syntax = default_syntax
    if shape.get("type") == "grammar" and type(syntax) is str and type(definition) is str:
        return Grammar(syntax, definition)
    return None


def custom_names(tools: tuple[AnyTool, ...]) -> set[str]:
    """The freeform tools: a choice must name them by their kind."""
    return {tool.name for tool in tools if isinstance(tool, Tool) and tool.kind == "custom"}


_ENVELOPES: Final[dict[ErrorKind, tuple[str, str | None]]] = {
    "invalid_request": ("invalid_request_error", None),
    "context_overflow": ("invalid_request_error", "context_length_exceeded"),
    "auth": ("invalid_request_error", "invalid_api_key"),
    "billing": ("insufficient_quota", "insufficient_quota"),
    "permission": ("permission_error", None),
    "not_found": ("invalid_request_error", "model_not_found"),
    "conflict": ("invalid_request_error", "idempotency_conflict"),
    "too_large": ("invalid_request_error", "request_too_large"),
    "rate_limit": ("rate_limit_error", "rate_limit_exceeded"),
    "overloaded": ("server_error", "server_is_overloaded"),
    "server": ("server_error", "internal_error"),
    "timeout": ("server_error", "upstream_timeout"),
    "content_policy": ("invalid_request_error", "content_policy_violation"),
}
"""Type and code in the envelope for each kind."""

_UNSUPPORTED: Final = "unsupported"
"""The code for a 501, for which OpenAI has none."""

_CODES: Final[dict[str, ErrorKind]] = {
    **{code: kind for kind, (_, code) in _ENVELOPES.items() if code is not None},
    "billing_hard_limit_reached": "billing",
    "billing_not_active": "billing",
    "usage_not_included": "billing",
    "usage_limit_reached": "billing",
    "slow_down": "overloaded",
    "upstream_auth_failed": "server",
    "deploymentnotfound": "not_found",  # Azure
    "previous_response_not_found": "not_found",
    "response_not_found": "not_found",
    "conversation_not_found": "not_found",
    "session_not_found": "not_found",
    "item_not_found": "not_found",
    "losses_not_found": "not_found",
    "exchange_not_found": "not_found",
    "not_recorded": "not_found",
    "no_picture": "not_found",
    "unknown_url": "not_found",
    "not_served": "not_found",
    "content_filter": "content_policy",
    "bio_policy": "content_policy",
    "cyber_policy": "content_policy",
    "misalignment_policy_violation": "content_policy",
    "image_content_policy_violation": "content_policy",
    "vector_store_timeout": "timeout",
    "server_error": "server",
    "upstream_error": "server",
    "upstream_unavailable": "server",
    "invalid_prompt": "invalid_request",
    "invalid_encrypted_content": "invalid_request",
    "data_residency_mismatch": "permission",
    # Errors about pictures that the client sent: another attempt would fail too.
    "invalid_image": "invalid_request",
    "invalid_image_format": "invalid_request",
    "invalid_base64_image": "invalid_request",
    "invalid_image_url": "invalid_request",
    "invalid_image_mode": "invalid_request",
    "image_too_large": "invalid_request",
    "image_too_small": "invalid_request",
    "image_parse_error": "invalid_request",
    "image_file_too_large": "invalid_request",
    "unsupported_image_media_type": "invalid_request",
    "empty_image_file": "invalid_request",
    "failed_to_download_image": "invalid_request",
    "image_file_not_found": "invalid_request",
}
_TYPES: Final[dict[str, ErrorKind]] = {
    "too_many_prompt_tokens": "context_overflow",
    "authentication_error": "auth",
    "invalid_authentication_error": "auth",
    "invalid_api_key": "auth",
    "permission_error": "permission",
    "permission_denied": "permission",
    "permission_denied_error": "permission",
    "access_terminated_error": "permission",
    "not_found_error": "not_found",
    "resource_not_found_error": "not_found",
    "rate_limit_error": "rate_limit",
    "rate_limit_reached_error": "rate_limit",
    "requests": "rate_limit",
    "tokens": "rate_limit",
    "insufficient_quota": "billing",
    "billing_error": "billing",
    "exceeded_current_quota_error": "billing",
    "overloaded_error": "overloaded",
    "engine_overloaded_error": "overloaded",
    "server_error": "server",
    "internal_server_error": "server",
    "api_error": "server",
    "timeout_error": "timeout",
    "content_filter": "content_policy",
}
# Kinds whose type is unambiguous: any code may be next to it.
_TYPED: Final = frozenset({"invalid_request", "permission", "rate_limit", "billing", "server"})


def kind_of_envelope(type_name: str, code: str, status: int, message: str) -> ErrorKind:
    """The kind of an error: the code has priority, then the type, the status, the wording."""
    named = _CODES.get(code.lower()) or _TYPES.get(type_name)
    kind = kind_of_name(named, status)
    # "invalid_request_error" is used for everything from 400 to 404: a more specific status has priority.
    if named is None and kind == "server" and type_name == "invalid_request_error":
        kind = "invalid_request"
    return kind_of_message(kind, message)


def type_and_code(error: ApiError) -> tuple[str, str | None]:
    """Type and code of an error in the envelope. Its own code is kept unless it means another kind."""
    type_name, code = _ENVELOPES[error.kind]
    if error.kind == "server" and error.status == 501:
        code = _UNSUPPORTED
    if error.code:
        known = _CODES.get(error.code.lower())
        free = known is None and error.kind in _TYPED and _is_word(error.code)
        code = error.code if free or known == error.kind else code
    return type_name, code


def _is_word(code: str) -> bool:
    return not code.isdigit() and code.isascii() and code.replace("_", "").isalnum() and code == code.lower()


def stated_wait(error: dict[str, Any], message: str) -> float | None:
    """Seconds to wait before trying again, from a field or from the message."""
    wait: Any = error.get("retry_after", error.get("resets_in_seconds"))
    if type(wait) in (int, float) and 0 <= wait < 2**31:
        return float(wait)
    return wait_in_message(message)


def stated_error(
    error: dict[str, Any], message: str, status: int, code: str, extra: Extra | None, request_id: str = ""
) -> ApiError:
    """The error of an error object, which is empty if only the message is known."""
    kind = text_in(error.get("type"))
    return ApiError(
        kind_of_envelope(kind, code, status, message),
        message,
        status=status,
        type=kind,
        code=code,
        param=text_in(error.get("param")),
        retry_after=stated_wait(error, message),
        request_id=request_id,
        extra=extra,
    )


def envelope_object(error: ApiError, kind: str, code: str | None) -> dict[str, Any]:
    """The object inside the envelope."""
    return {"message": error.message, "type": kind, "param": error.param or None, "code": code}


def owns_error(body: Any) -> bool:
    """Whether it is OpenAI's envelope, not Anthropic's or Google's, which also have an `error`."""
    error = body.get("error") if type(body) is dict else None
    if type(error) is not dict or body.get("type") == "error" or type(error.get("message")) is not str:
        return False
    return "type" in error or ("code" in error and "status" not in error)


def render_list(listing: Sequence[ListedModel], query: Query) -> dict[str, Any]:
    return {"object": "list", "data": [render_model(model) for model in listing]}


def render_model(model: ListedModel) -> dict[str, Any]:
    return {"id": model.id, "object": "model", "created": 0, "owned_by": model.provider}


MODELS: Final = ModelLists(render_list=render_list, render_model=render_model)


def check_numbers(reported: Numbers) -> list[str]:
    found = []
    get = reported.get
    sent, output, total, reasoning = get("input"), get("output"), get("total"), get("reasoning", 0)
    if sent is not None and get("read", 0) + get("written", 0) > sent:
        found.append(CACHED)
    if sent is None or output is None:
        return found
    # xAI counts reasoning in addition to the output, not within it; the total then shows that.
    beside = reasoning > 0 and total == sent + output + reasoning
    if reasoning > output and not beside:
        found.append(REASONING)
    if total is not None and total != sent + output and not beside:
        found.append(TOTAL)
    return found


def guessed_mime(kind: Literal["image", "video"], path: str, losses: list[Loss]) -> str:
    """A type for data that came without one: a data URL without a type is refused."""
    guess = "image/jpeg" if kind == "image" else "video/mp4"
    losses.append(guessed_type(kind, guess, path))
    return guess
