"""Write docs/reference/errors.md: every code of the gateway's own errors, when, and what to do.

The codes are read from the source: one that has no row here, or a row that no source uses, is a failure.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from wireglot.gateway.errors import _CLASSES, QUOTA
from wireglot.http.failures import _OUTCOMES

ROOT = Path(__file__).parents[1]
_MARK = "<!-- Written by tools/generate_docs.py (`make docs`). Do not edit. -->"
_ROOMS: Final = ("gateway", "http", "dialects")
_MAKERS: Final = {
    "RequestError": 2,
    "BadField": 2,
    "ApiError": 4,
    "Malformed": 1,
    "plain_refusal": 1,
    "_refuse_plainly": 1,
    "_apologise": 1,
}
"""Who takes a code, and at which place if not by name."""

CODES: Final[dict[str, tuple[str, str, str]]] = {
    # The request
    "invalid_json": ("400", "the body is no JSON, or empty", "send a JSON object in UTF-8"),
    "invalid_utf8": ("400", "the body holds bytes that are no UTF-8", "send UTF-8"),
    "invalid_number": ("400", "a number that JSON has not, or out of range", "no NaN, Infinity or 1e999"),
    "invalid_type": ("400", "a field has another type than its dialect says", "the message names the field"),
    "invalid_value": (
        "400",
        "a field has a value that its dialect does not know",
        "the message names the field",
    ),
    "missing_required_parameter": ("400", "a field is missing", "the message names it"),
    "mutually_exclusive_parameters": ("400", "two fields exclude each other", "send one of them"),
    "duplicate_key": ("400", "a decisive field stands twice in the body", "send it once"),
    "json_too_deep": ("400", "JSON nested too deeply", "flatten it, or raise `limits.json_depth`"),
    "json_too_large": ("400", "JSON with too many members", "send less, or raise `limits.json_items`"),
    "array_above_max_length": ("400", "too many entries", "the message names the limit"),
    "object_above_max_properties": ("400", "too many keys", "the message names the limit"),
    "string_above_max_length": ("400", "a text is too long", "the message names the limit"),
    "invalid_request_line": ("400", "the first line is not one of HTTP/1.1", "speak HTTP/1.1"),
    "invalid_header": ("400", "a header that HTTP does not allow", "the message says which rule"),
    "duplicate_header": ("400", "a header twice that may stand there once", "send it once"),
    "invalid_host": ("400", "no Host header, or one that is none", "send one"),
    "invalid_content_length": ("400", "Content-Length is no number", "send the length of the body"),
    "invalid_framing": ("400", "a body whose end cannot be told", "Content-Length, or chunks"),
    "invalid_chunk": ("400", "a chunked body that is none", "see RFC 9112"),
    "url_too_long": ("414", "a target longer than `limits.url`", "a shorter one"),
    "expectation_failed": ("417", "an expectation other than 100-continue", "leave it out"),
    "headers_too_large": ("431", "too many headers, or too large ones", "send less"),
    "http_version_not_supported": ("505", "another version of HTTP", "HTTP/1.1"),
    "invalid_target": ("400", "a path or query that is not accepted", "write it plainly"),
    "unsupported": (
        "400",
        "the target cannot say it, and it must not be dropped",
        "leave it out, or another model",
    ),
    "loss_refused": (
        "400",
        "something would be lost, and `strict` was asked for",
        "another policy, or another model",
    ),
    "as_is_impossible": (
        "400",
        "`as-is` was asked for, and the provider does not speak the client's dialect",
        "another policy, or a model of a provider that does",
    ),
    "thread_unsupported_request": (
        "400",
        "turns that only the dialect's vendor keeps",
        "send the whole conversation",
    ),
    "invalid_encrypted_content": ("400", "reasoning state that cannot be read here", "go on without it"),
    "request_timeout": ("408", "the body stopped arriving", "send it again"),
    "request_too_large": ("413", "the body is larger than `limits.body`", "send less, or raise the limit"),
    "unsupported_media_type": (
        "415",
        "the body is not JSON by its content type",
        "`content-type: application/json`",
    ),
    "tls_not_spoken": ("400", "TLS where plain HTTP is spoken", "`http://` in the client's base URL"),
    "upgrade_required": ("426", "a WebSocket was tried", "POST over HTTP"),
    "method_not_allowed": ("405", "the path is there for another method", "see the header `allow`"),
    # Who asks
    "invalid_api_key": (
        "401",
        "no client key, or a wrong one",
        "send the key that you were given for this gateway",
    ),
    "host_not_allowed": ("403", "a Host that is none of the gateway's", "name it in `server.hosts`"),
    "origin_not_allowed": ("403", "a web page of another origin", "name it in `server.origins`"),
    "csrf_token_wrong": (
        "403",
        "a change by the inspector's page without the token of its session",
        "reload the page; programs send the admin secret or a client key in a header",
    ),
    "admin_needed": ("403", "the inspector's keys, without the admin secret", "sign in with it"),
    # What is not there
    "model_not_found": (
        "404",
        "no provider for the model, or one that is off",
        "the message says how to switch it on; GET /v1/models",
    ),
    "unknown_url": ("404", "nothing is at that path", "the paths: GET /"),
    "not_served": ("404", "embeddings, images, files and what else is not served", "ask the provider itself"),
    "response_not_found": (
        "404",
        "no such stored response, or somebody else's",
        "send the conversation itself",
    ),
    "previous_response_not_found": (
        "404",
        "the same, as `previous_response_id`",
        "send the conversation itself",
    ),
    "conversation_not_found": ("404", "no such conversation, or somebody else's", "create one"),
    "session_not_found": ("404", "no such session, or somebody else's", "GET /v1/sessions"),
    "losses_not_found": ("404", "no such request, too old, or somebody else's", "they are kept for an hour"),
    "exchange_not_found": (
        "404",
        "the inspector knows no such exchange, or it is somebody else's",
        "the last 10,000 are remembered, and those that were recorded",
    ),
    "not_recorded": (
        "404",
        "the bodies of the exchange were not recorded, or are gone",
        "`[trace]`, or `wireglot serve --trace`",
    ),
    "no_picture": (
        "404",
        "what is there is no picture that the inspector shows",
        "PNG, JPEG, GIF and WebP are",
    ),
    "item_not_found": ("404", "no such item", "list the items"),
    "key_not_found": ("404", "no such client key", "GET /v1/admin/keys"),
    # State
    "idempotency_conflict": ("409", "the idempotency key was used for another request", "use a new one"),
    "key_conflict": ("409", "there is a client key of that name", "another name"),
    "storage_unavailable": ("503", "the store does not answer", "try again after `retry-after`; see the log"),
    # Limits
    "rate_limit_exceeded": (
        "429",
        "a limit of the key, of the gateway or of the provider",
        "wait for `retry-after`",
    ),
    "insufficient_quota": ("429", "a budget of the key is spent", "`retry-after` says when it begins anew"),
    "price_unknown": ("403", "a budget in money, and the model has no price", "add the model to `[prices]`"),
    "too_many_listeners": (
        "429",
        "more pages follow the inspector's live list with one client key than may",
        "close one of them",
    ),
    "too_many_connections": ("503", "more connections than `limits.connections`", "wait for `retry-after`"),
    "server_is_overloaded": (
        "503, Anthropic 529",
        "the gateway is full or going down, or the provider is overloaded",
        "wait for `retry-after`",
    ),
    # The provider
    "upstream_auth_failed": (
        "502, Anthropic and Gemini 500",
        "the provider does not accept the gateway's own key",
        "whoever runs the gateway: set a valid key; the log line's `fix` names the variable and the line",
    ),
    "upstream_unavailable": (
        "503",
        "no connection to the provider, or it is given a rest after failures",
        "wait for `retry-after`; the log line's `fix` names the host",
    ),
    "upstream_error": ("502", "the provider's answer cannot be read, or broke off", "try again"),
    "upstream_timeout": (
        "504",
        "the provider did not answer in time",
        "try again; `timeouts` of the provider",
    ),
    "malformed_tool_call": (
        "502",
        "the model's call of a tool is broken, again after a retry",
        "try again, or another model",
    ),
    "internal_error": (
        "500",
        "a bug of ours",
        "the log line of that request id has its place; please report it",
    ),
}


_INTRODUCTION: Final = (
    "Every error that the gateway makes itself has one of these codes: `error.code` in OpenAI's",
    "dialects, the reason of an `ErrorInfo` in Gemini's; Anthropic's has no place for it, the log line",
    "has it for all. Errors of a provider keep its own code. The message names the provider, repeats",
    "its own words without secrets, and says what to do. Hosts, variables and lines of the",
    "configuration are in the log line (`error.fix`) and on the span (`wireglot.error.fix`); in the",
    "error itself, behind a bar, only for callers on the same machine before a gateway that wants no",
    "keys.",
)


_BY_NAME: Final = frozenset({"unsupported", "invalid_utf8", "loss_refused"})
"""Codes that reach an error through a variable."""


class Untold(Exception):
    """A code without a row, or a row without a code."""


def found_codes() -> set[str]:
    codes = {code for _, _, code in (*_CLASSES.values(), *_OUTCOMES.values()) if code} | {QUOTA}
    for room in _ROOMS:
        for path in sorted((ROOT / "src" / "wireglot" / room).rglob("*.py")):
            codes.update(_codes_in(ast.parse(path.read_text(encoding="utf-8"))))
    return codes


def _codes_in(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        maker = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        at = _MAKERS.get(maker)
        if at is None:
            continue
        given = [keyword.value for keyword in node.keywords if keyword.arg == "code"] or node.args[
            at : at + 1
        ]
        for value in given:
            for choice in (value.body, value.orelse) if isinstance(value, ast.IfExp) else (value,):
                if isinstance(choice, ast.Constant) and isinstance(choice.value, str) and choice.value:
                    yield choice.value


def errors_page() -> str:
    found = found_codes()
    problems = [f"{code}: used in the source, told nowhere" for code in sorted(found - CODES.keys())]
    made_up = CODES.keys() - found - _BY_NAME
    problems += [f"{code}: told, used nowhere" for code in sorted(made_up)]
    if problems:
        raise Untold("\n".join(problems))
    rows = [f"| `{code}` | {status} | {when} | {fix} |" for code, (status, when, fix) in CODES.items()]
    return (
        "\n".join(
            [
                _MARK,
                "",
                "# Error codes",
                "",
                *_INTRODUCTION,
                "",
                "| code | status | when | what to do |",
                "|---|---|---|---|",
                *rows,
            ]
        )
        + "\n"
    )
