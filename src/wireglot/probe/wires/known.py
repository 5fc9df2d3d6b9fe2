"""The wires by the names of their dialects."""

from __future__ import annotations

from typing import Final

from wireglot.probe.wires.anthropic import AnthropicWire
from wireglot.probe.wires.gemini import GeminiWire
from wireglot.probe.wires.openai_chat import ChatWire
from wireglot.probe.wires.openai_responses import ResponsesWire
from wireglot.probe.wires.wire import Wire

WIRES: Final[dict[str, Wire]] = {
    wire.name: wire for wire in (AnthropicWire(), ChatWire(), ResponsesWire(), GeminiWire())
}
