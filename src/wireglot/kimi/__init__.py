"""Client for Moonshot's Kimi: with or without tools, streamed or not, async or blocking.

    import wireglot.kimi
    result = await wireglot.kimi.complete_with_tools("What is the weather in Rome?", tools)
    result.content, result.blocks, result.stop_reason

Importing it reads no environment and loads no network code.
"""

from wireglot.kimi.client import (
    complete,
    complete_sync,
    complete_with_tools,
    complete_with_tools_sync,
    connections,
    stream,
    stream_sync,
    stream_with_tools,
    stream_with_tools_sync,
)
from wireglot.kimi.errors import KimiApiError, KimiConfigError, KimiError
from wireglot.kimi.options import HttpFunction, Options
from wireglot.kimi.question import CompletionResult
from wireglot.kimi.setup import default_model

__all__ = [
    "CompletionResult",
    "HttpFunction",
    "KimiApiError",
    "KimiConfigError",
    "KimiError",
    "Options",
    "complete",
    "complete_sync",
    "complete_with_tools",
    "complete_with_tools_sync",
    "connections",
    "default_model",
    "stream",
    "stream_sync",
    "stream_with_tools",
    "stream_with_tools_sync",
]
