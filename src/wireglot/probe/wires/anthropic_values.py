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
