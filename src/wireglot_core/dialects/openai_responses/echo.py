"""The fields of a response that repeat the client's request (C24): every client finds every key."""

from __future__ import annotations

from typing import Any

from wireglot_core.dialects.fields import own_fields, own_form
from wireglot_core.dialects.openai_responses.output import REPORTED
from wireglot_core.dialects.openai_responses.render_request import stated_tools
from wireglot_core.dialects.openai_responses.settings import REQUEST_FIELDS, render_output
from wireglot_core.dialects.openai_responses.spelling import NAME
from wireglot_core.dialects.openai_responses.tools import render_tool_choice, render_tools
from wireglot_core.ir.content import Text
from wireglot_core.ir.loss import Loss
from wireglot_core.ir.request import Request

_DEFAULTS: dict[str, Any] = {
    "background": False,
    "frequency_penalty": 0.0,
    "instructions": None,
    "max_output_tokens": None,
    "max_tool_calls": None,
    "metadata": {},
    "parallel_tool_calls": True,
    "presence_penalty": 0.0,
    "previous_response_id": None,
    "prompt_cache_key": None,
    "prompt_cache_retention": None,
    "reasoning": {"effort": None, "summary": None},
    "safety_identifier": None,
    "service_tier": "default",
    # Unless it is known to be stored, the correct value is false (C42).
    "store": False,
    "temperature": 1.0,
    "text": {"format": {"type": "text"}},
    "tool_choice": "auto",
    "tools": [],
    "top_logprobs": 0,
    "top_p": 1.0,
    "truncation": "disabled",
    "user": None,
}

ECHOED = (_DEFAULTS.keys() - {"service_tier"}) | {
    "object",
    "billing",
    "completed_at",
    "conversation",
    "context_management",
    "image",
    "output_text",
    "prompt",
    "prompt_cache_options",
}
"""Fields of an upstream's response that repeat (or derive from) the request: spelling, returned to the same
dialect only."""

_TOOL: dict[str, Any] = {"description": None, "parameters": None, "strict": None}
_FILLED = frozenset({"function", "json_schema"})
_MCP_SECRETS = ("authorization", "headers")
"""Secrets of an MCP server: OpenAI does not store them, and no answer shows them."""
_FORMAT: dict[str, Any] = {"description": None, "strict": False}
"""Keys that a function and a JSON schema always have in an answer."""


def reported(request: Request | None) -> dict[str, Any]:
    return own_form(request.extra, NAME).get(REPORTED, {}) if request is not None else {}


def echo(request: Request | None) -> dict[str, Any]:
    """The echoed fields for a client that sent `request` (in any dialect), or the defaults."""
    value = dict(_DEFAULTS)
    if request is None:
        return value
    ignored: list[Loss] = []  # an echo loses nothing: the client sent it itself
    form, fields = own_form(request.extra, NAME), own_fields(request.extra, NAME)
    first = request.messages[0] if request.messages else None
    if first is not None and "instructions" in own_form(first.extra, NAME):
        value["instructions"] = "".join(part.text for part in first.content if isinstance(part, Text))
    REQUEST_FIELDS.write(request, value)
    if request.metadata:
        value["metadata"] = request.metadata
    if request.cache_key:
        value["prompt_cache_key"] = request.cache_key
    thinking = request.thinking
    summary = own_form(thinking.extra, NAME).get("summary", "auto" if thinking.display == "summary" else None)
    value["reasoning"] = {"effort": thinking.effort, "summary": summary}
    if request.user:
        value[form.get("user_key", "safety_identifier")] = request.user
    for key in ("presence_penalty", "frequency_penalty"):
        said = getattr(request.sampling, key)
        if said is not None:
            value[key] = said
    output = render_output(request.output, ignored) if request.output is not None else None
    value["text"] = {"format": _whole(output, _FORMAT) if output else {"type": "text"}}
    if request.verbosity:
        value["text"]["verbosity"] = request.verbosity
    if request.tools:
        value["tools"] = [_whole(tool, _TOOL) for tool in render_tools(stated_tools(request), ignored)]
    if request.tool_choice is not None:
        value["tool_choice"] = render_tool_choice(request.tool_choice, request.tools, ignored)
    for key in (
        "background",
        "truncation",
        "previous_response_id",
        "conversation",
        "prompt",
        "prompt_cache_retention",
        "max_tool_calls",
    ):
        said = fields.get(key, form.get(key))
        if said is not None:
            value[key] = said
    return value


def _whole(value: dict[str, Any], usual: dict[str, Any]) -> dict[str, Any]:
    """Adds every key that an answer has: those of a function, or of a format that is a schema."""
    kind = value.get("type")  # an unknown tool may have no kind
    if type(kind) is not str or kind not in _FILLED:
        return value if kind != "mcp" else {k: v for k, v in value.items() if k not in _MCP_SECRETS}
    return {**value, **{k: v for k, v in usual.items() if k not in value}}
