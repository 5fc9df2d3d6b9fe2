"""`POST /v1/responses/input_tokens`: a request's tokens, counted by OpenAI or for its clients."""

from __future__ import annotations

from typing import Any, Final

from wireglot.dialects.context import Context
from wireglot.dialects.counting import counting_only, input_tokens
from wireglot.dialects.openai_responses.parse_request import parse_request
from wireglot.dialects.openai_responses.render_request import render_request
from wireglot.dialects.surface import Counts
from wireglot.ir.request import Request

_COUNTED: Final = frozenset(
    {
        "model", "input", "instructions", "tools", "tool_choice", "parallel_tool_calls", "reasoning",
        "text", "truncation", "previous_response_id", "conversation", "personality",
    }
)  # fmt: skip
"""What the counter takes of a request; more (stream, sampling) it refuses."""


def parse_count(body: dict[str, Any], context: Context) -> Request:
    if body.get("input") is None:
        # Instructions and tools alone can be counted, though not answered.
        body = {**body, "input": []}
    return parse_request(body, context)


def render_answer(tokens: int) -> dict[str, Any]:
    return {"object": "response.input_tokens", "input_tokens": tokens}


COUNTS: Final = Counts(
    parse_request=parse_count,
    render_answer=render_answer,
    render_request=counting_only(render_request, _COUNTED),
    parse_answer=input_tokens,
    same_body=True,
)
