"""Small answers to what clients probe beside the API. No one needs them; a 404 would fill logs."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from wireglot import __version__

ENDPOINTS: Final[dict[str, tuple[str, ...]]] = {
    "anthropic": ("POST /v1/messages", "POST /v1/messages/count_tokens"),
    "openai-chat": ("POST /v1/chat/completions",),
    "openai-responses": ("POST /v1/responses", "POST /v1/responses/input_tokens"),
    "gemini": (
        "POST /v1beta/models/{model}:generateContent",
        "POST /v1beta/models/{model}:streamGenerateContent",
        "POST /v1beta/models/{model}:countTokens",
    ),
    "code-assist": (
        "POST /v1internal:generateContent",
        "POST /v1internal:streamGenerateContent",
        "POST /v1internal:countTokens",
    ),
    "gemini-simple": ("POST /v1/gemini",),
}


class Stub(msgspec.Struct, frozen=True):
    """`open`: answered without a client key, as it tells nothing and changes nothing."""

    methods: tuple[str, ...]
    body: dict[str, Any]
    open: bool = True


STUBS: Final[dict[str, Stub]] = {
    # Claude Code knocks with HEAD before its first request (llm-gateway-protocol), people with a browser.
    "/": Stub(
        ("GET", "HEAD"),
        {
            "name": "wireglot",
            "version": __version__,
            "endpoints": {
                **{name: list(paths) for name, paths in ENDPOINTS.items()},
                "models": ["GET /v1/models", "GET /v1beta/models"],
                "operations": ["GET /healthz", "GET /readyz", "GET /metrics"],
            },
        },
    ),
    # Claude Code 2.1.325 warms its connection with HEAD here.
    "/api/hello": Stub(("GET", "HEAD"), {"message": "hello"}),
    # Claude Code's own usage events, where its base URL is the gateway: taken, and thrown away unread.
    "/api/event_logging/batch": Stub(("POST",), {}),
    "/api/event_logging/v2/batch": Stub(("POST",), {}),
}


def stub(method: str, path: str) -> Stub | None:
    found = STUBS.get(path)
    return found if found is not None and method in found.methods else None
