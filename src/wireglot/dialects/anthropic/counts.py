"""`POST /v1/messages/count_tokens`: a request's tokens, counted by Anthropic or for its clients."""

from __future__ import annotations

from typing import Any, Final

from wireglot.dialects.anthropic.parse_request import parse_request
from wireglot.dialects.anthropic.render_request import render_request
from wireglot.dialects.context import Context, Rendered
from wireglot.dialects.counting import counted, only, tokens_in, without_settings
from wireglot.dialects.surface import Counts
from wireglot.ir.request import Request

_COUNTED: Final = frozenset(
    {
        "model", "messages", "system", "tools", "tool_choice", "thinking", "output_config",
        "cache_control", "context_management", "compaction", "mcp_servers", "speed",
    }
)  # fmt: skip
"""What the counter takes of a request; more (max_tokens, stream, sampling) it refuses."""


def render_answer(tokens: int) -> dict[str, Any]:
    return {"input_tokens": tokens}


def render_count(request: Request, context: Context, base_url: str) -> Rendered[dict[str, Any]]:
    rendered = render_request(without_settings(request), context)
    return counted(only(rendered.value, _COUNTED), rendered.losses)


def parse_answer(body: Any) -> int:
    return tokens_in(body, "input_tokens")


COUNTS: Final = Counts(
    parse_request=parse_request,
    render_answer=render_answer,
    render_request=render_count,
    parse_answer=parse_answer,
    same_body=True,
)
