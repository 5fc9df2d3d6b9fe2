"""`POST /v1/messages/count_tokens`: a request's tokens, counted by Anthropic or for its clients."""

from __future__ import annotations

from typing import Any, Final

from wireglot.dialects.anthropic.parse_request import parse_request
from wireglot.dialects.anthropic.render_request import render_request
from wireglot.dialects.counting import counting_only, input_tokens
from wireglot.dialects.surface import Counts

_COUNTED: Final = frozenset(
    {
        "model", "messages", "system", "tools", "tool_choice", "thinking", "output_config",
        "cache_control", "context_management", "compaction", "mcp_servers", "speed",
    }
)  # fmt: skip
"""What the counter takes of a request; more (max_tokens, stream, sampling) it refuses."""


def render_answer(tokens: int) -> dict[str, Any]:
    return {"input_tokens": tokens}


COUNTS: Final = Counts(
    parse_request=parse_request,
    render_answer=render_answer,
    render_request=counting_only(render_request, _COUNTED),
    parse_answer=input_tokens,
    same_body=True,
)
