"""What whole answers and streams of Anthropic's share: stop reasons and usage."""

from __future__ import annotations

from typing import Final

from wireglot.probe.reply import At, Counted, Stop

STOPS: Final[dict[str, Stop]] = {
    "end_turn": "end",
    "max_tokens": "length",
    "stop_sequence": "sequence",
    "tool_use": "tool",
}


# Fields that the vendor's OpenAPI document requires though they may be null, by where they are.
MESSAGE_NULLS: Final = ("stop_sequence", "stop_details", "container")
USAGE_NULLS: Final = (
    "cache_creation",
    "cache_creation_input_tokens",
    "cache_read_input_tokens",
    "inference_geo",
    "output_tokens_details",
    "server_tool_use",
    "service_tier",
)
FINAL_USAGE_NULLS: Final = (
    "cache_creation_input_tokens",
    "cache_read_input_tokens",
    "input_tokens",
    "output_tokens_details",
    "server_tool_use",
)
BLOCK_NULLS: Final[dict[str, tuple[str, ...]]] = {"text": ("citations",), "tool_use": ("caller",)}


def counted(usage: At) -> Counted:
    """Its input holds neither what was read from the cache nor what was written to it."""
    read = usage.maybe_number("cache_read_input_tokens")
    written = usage.maybe_number("cache_creation_input_tokens")
    details = usage.get("output_tokens_details") if usage.has("output_tokens_details") else None
    return Counted(
        input=usage.number("input_tokens") + (read or 0) + (written or 0),
        output=usage.number("output_tokens"),
        cached=read,
        reasoning=details.maybe_number("thinking_tokens") if details is not None else None,
    )
