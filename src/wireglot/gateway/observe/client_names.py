"""Which program sent a request, by its User-Agent."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

OWN_AGENT: Final = "wireglot/"
"""How the user agent of the gateway's own commands begins."""
_CLIENTS: Final[tuple[tuple[str, str], ...]] = (
    ("claude-cli/", "claude-code"),
    ("claude-code/", "claude-code"),
    ("codex", "codex"),
    ("geminicli", "gemini-cli"),
    ("gemini-cli", "gemini-cli"),
    ("opencode/", "opencode"),
    ("kimi-cli", "kimi-cli"),
    ("kimicli", "kimi-cli"),
    ("kimi-code", "kimi-code"),
    ("qwencode", "qwen-code"),
    ("asyncopenai/python", "openai-python"),
    ("openai/python", "openai-python"),
    ("openai/js", "openai-node"),
    ("asyncanthropic/python", "anthropic-python"),
    ("anthropic/python", "anthropic-python"),
    ("anthropic/js", "anthropic-node"),
    ("google-genai-sdk", "google-genai"),
)
"""How the user agents of known programs begin, in lower case."""

_FIRST_WORD: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,39}")
# Clients' headers whose short name is cached.
_MAX_NAMES: Final = 512


@lru_cache(_MAX_NAMES)
def client_name(agent: str) -> str:
    """`claude-code`, `codex`, `openai-python`; for others the agent's first word, or ""."""
    small = agent[:200].lower()
    for beginning, name in _CLIENTS:
        if small.startswith(beginning):
            return name
    found = _FIRST_WORD.match(small)
    return found[0].rstrip(".-") if found else ""
