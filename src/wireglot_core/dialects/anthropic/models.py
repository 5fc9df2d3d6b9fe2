"""`GET /v1/models` in Anthropic's form: pages by the first and last id, and the capabilities of each model.

Claude Code (2.1.326) accepts only models of a gateway with "claude" or "anthropic" in their ids: every other
model is listed under an alias.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from wireglot_core.dialects.anthropic.names import NAME
from wireglot_core.dialects.listed_model import ListedModel, Query, page_size, position
from wireglot_core.dialects.surface import ModelLists

_PAGE: Final = 20
ALIAS: Final = "claude-via/"
_ACCEPTED: Final = re.compile("claude|anthropic", re.IGNORECASE)
_CLAUDE_CODE: Final = ("claude-code/", "claude-cli/")
_DISCOVERY: Final = "CLAUDE_CODE_ENABLE_GATEWAY_MODEL_DISCOVERY"
_HINTS: Final = "CLAUDE_CODE_GATEWAY_HINT_HEADERS"
_MIN_CONTEXT: Final = 64_000
"""Claude Code's instructions and tools alone take a third of it: a smaller context is useless."""
_CONTEXT: Final = "CLAUDE_CODE_MAX_CONTEXT_TOKENS"
_UNKNOWN_DATE: Final = "1970-01-01T00:00:00Z"
"""Anthropic's own value for an unknown release date."""


def render_list(listing: Sequence[ListedModel], query: Query) -> dict[str, Any]:
    limit = page_size(query, "limit", _PAGE)
    if "before_id" in query:
        end = position(listing, query["before_id"][-1], "before_id")
        start = max(0, end - limit)
        more = start > 0
    else:
        start = position(listing, query["after_id"][-1], "after_id") + 1 if "after_id" in query else 0
        end = min(len(listing), start + limit)
        more = end < len(listing)
    page = listing[start:end]
    return {
        "data": [render_model(model) for model in page],
        "has_more": more,
        "first_id": page[0].id if page else None,
        "last_id": page[-1].id if page else None,
    }


def render_model(model: ListedModel) -> dict[str, Any]:
    return {
        "type": "model",
        "id": model.id,
        "display_name": model.title or model.id,
        "created_at": _UNKNOWN_DATE,
        "lifecycle": "active",
        "line": None,
        "deprecated_at": None,
        "retires_at": None,
        "max_input_tokens": model.context or None,
        "max_tokens": model.output or None,
        "capabilities": _capabilities(model),
    }


def _capabilities(model: ListedModel) -> dict[str, Any]:
    """What a Messages request to this model may use here. Batches have no route in a gateway; features of
    Anthropic's own servers are offered if the upstream speaks their dialect."""
    native = NAME in model.dialects
    hosted = native and model.hosted_tools
    words = model.thinking in ("adaptive", "effort", "level")
    return {
        "batch": _support(False),
        "citations": _support(native),
        "code_execution": _support(hosted),
        "context_management": {
            "supported": native,
            "clear_thinking_20251015": _support(native),
            "clear_tool_uses_20250919": _support(native),
            "compact_20260112": _support(native),
        },
        "effort": {
            "supported": words,
            **{
                level: _support(words and level in model.efforts)
                for level in ("low", "medium", "high", "xhigh", "max")
            },
        },
        "image_input": _support("image" in model.media),
        "pdf_input": _support("document" in model.media),
        "server_tools": {
            "supported": hosted,
            "code_execution": _support(hosted),
            "web_search": _support(hosted),
        },
        "structured_outputs": _support("schema" in model.output_formats),
        "thinking": {
            "supported": model.thinks,
            "types": {
                # For other models both are adapted to the model's own setting; Anthropic's older models have
                # only one of them.
                "adaptive": _support(model.thinks and not (native and model.thinking == "budget")),
                "between_tools": _support(False),
                "disabled": _support(model.thinking_off and model.thinking != "fixed"),
                "enabled": _support(model.thinks),
            },
        },
    }


def _support(supported: bool) -> dict[str, bool]:
    return {"supported": supported}


def with_aliases(listing: Sequence[ListedModel], agent: str) -> Sequence[ListedModel]:
    if not agent.startswith(_CLAUDE_CODE):
        return listing
    return [model for model in listing if _ACCEPTED.search(model.id)] + [
        msgspec.structs.replace(model, id=ALIAS + model.id)
        for model in listing
        if not _ACCEPTED.search(model.id)
    ]


def managed_settings(settings: dict[str, Any], listing: Sequence[ListedModel]) -> dict[str, Any]:
    """Adds to Claude Code's settings what it cannot know: that the gateway lists its models and needs the
    purpose of requests, and the context of models that it does not recognize: one figure for all, so that of
    the configured model, or the smallest useful one. Existing settings are kept."""
    given = settings.get("env", {})
    if not isinstance(given, dict):
        return settings
    env = {_DISCOVERY: "1", _HINTS: "1", **given}
    foreign = {model.id: model.context for model in listing if model.context and NAME not in model.dialects}
    if foreign:
        chosen = str(settings.get("model", given.get("ANTHROPIC_MODEL"))).removeprefix(ALIAS)
        usable = [context for context in foreign.values() if context >= _MIN_CONTEXT]
        if context := foreign.get(chosen, min(usable, default=0)):
            env.setdefault(_CONTEXT, str(context))
    return {**settings, "env": env}


MODELS: Final = ModelLists(render_list=render_list, render_model=render_model, with_aliases=with_aliases)
