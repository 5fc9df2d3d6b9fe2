"""What could not cross, said out loud."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from wireglot.ir.content import Extra

Action = Literal["dropped", "approximated", "emulated", "invented"]

Feature = Literal[
    "audio",
    "cache_key",
    "cache_marker",
    "candidates",
    "citations",
    "content.empty",
    "content.position",
    "document",
    "error.detail",
    "file_reference",
    "foreign_event",
    "foreign_part",
    "hosted_tool",
    "image",
    "image.detail",
    "logprobs",
    "max_tokens",
    "message.name",
    "message.role",
    "metadata",
    "model",
    "model.retired",
    "output_format",
    "output_format.schema",
    "output_format.strict",
    "parallel_tools",
    "prefill",
    "reasoning.redacted",
    "reasoning.signature",
    "reasoning.text",
    "refusal",
    "response.extra",
    "sampling.frequency_penalty",
    "sampling.presence_penalty",
    "sampling.seed",
    "sampling.temperature",
    "sampling.top_k",
    "sampling.top_p",
    "service_tier",
    "stop_details",
    "stop_reason",
    "stop_sequence",
    "stop_sequences",
    "system.position",
    "thinking.budget",
    "thinking.display",
    "thinking.effort",
    "thinking.mode",
    "tool.custom",
    "tool.deferred",
    "tool.name",
    "tool.namespace",
    "tool.schema",
    "tool.strict",
    "tool_call.arguments",
    "tool_call.id",
    "tool_choice",
    "tool_result.error",
    "tool_result.media",
    "tool_result.name",
    "tool_result.pairing",
    "unknown_field",
    "usage.detail",
    "user",
    "verbosity",
    "video",
]
"""Stable names: they appear in headers, logs and policies. Add, never rename. `FEATURES` explains each."""


class Loss(msgspec.Struct, frozen=True):
    """One thing the target did not receive as the source meant it.

    `path` points into the neutral conversation (`$.messages[2].content[0].signature`), whose messages and
    parts stand in the order of the source document.
    """

    path: str
    feature: Feature
    action: Action
    detail: str = ""


def losses_of_extra(
    extra: Extra | None, own: str, path: str, out: list[Loss], feature: Feature = "unknown_field"
) -> None:
    """Declare the fields another dialect left in `extra`. Nulls, zeros and empties carry no information."""
    if extra is None or extra.dialect == own:
        return
    for key, value in extra.fields.items():
        if not is_blank(value):
            out.append(Loss(f"{path}.{key}", feature, "dropped", f"{extra.dialect} only"))


def is_blank(value: Any) -> bool:
    return value is None or value is False or value == 0 or value == "" or value == [] or value == {}
