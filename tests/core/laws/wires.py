"""What the laws must know of each wire: which spellings are equal, and what ends a stream."""

import re
from functools import cache
from typing import Any, Literal

from wireglot_core.dialects.registry import surface
from wireglot_core.wire.json import decode
from wireglot_core.wire.sse import SseDecoder

_GEMINI = frozenset({"gemini", "code-assist", "gemini-simple"})
_LISTS = frozenset({"contents", "parts", "tools", "functionDeclarations"})
_ENUMS: dict[str, dict[Any, str]] = {
    "mode": {},
    "thinkingLevel": {},
    "role": {"": "USER"},
    "finishReason": {1: "STOP", 2: "MAX_TOKENS", 3: "SAFETY", 4: "RECITATION", 5: "OTHER"},
}


def same_spelling(name: str, document: Any) -> Any:
    """A document with the spellings made one that its dialect treats as equal.

    Only Gemini has such a thing: proto-JSON takes snake_case for camelCase, null for an absent field, enum
    values in any case or as numbers, and a lone object where a list of one is meant.
    """
    return _proto(document) if name in _GEMINI else document


def _proto(value: Any, key: str = "") -> Any:
    if key in _LISTS and isinstance(value, dict):
        value = [value]
    if isinstance(value, dict):
        return {_camel(name): _proto(item, _camel(name)) for name, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_proto(item) for item in value]
    if key in _ENUMS:
        return _ENUMS[key].get(value, value.upper() if isinstance(value, str) else value)
    return value


@cache
def _camel(key: str) -> str:
    return re.sub(r"(?<=[a-z0-9])_([a-z])", lambda found: found[1].upper(), key)


Ending = Literal["complete", "error", "nothing"]
_MESSAGES: dict[str, Ending] = {"message_stop": "complete", "error": "error"}
_RESPONSES: dict[str, Ending] = {"completed": "complete", "incomplete": "complete", "failed": "error"}


def ends_in(name: str, data: bytes) -> Ending:
    """How a written stream ends, judged by its last frames alone."""
    decoder = SseDecoder()
    if data.startswith(b"{"):  # lines of JSON
        data = b"".join(b"data: %b\n\n" % line for line in data.split(b"\n") if line)
    frames = decoder.feed(data) + decoder.close()
    if not frames:
        return "nothing"
    last = frames[-1]
    if last.data == b"[DONE]":
        assert name in ("openai-chat", "gemini-interactions"), "[DONE] belongs to Chat and Interactions alone"
        return "complete"
    document = decode(last.data)
    if surface(name).family == "anthropic":
        return _MESSAGES.get(document["type"], "nothing")
    if name == "openai-responses":
        kind = document["type"].removeprefix("response.")
        return _RESPONSES.get(kind, "nothing")
    if "error" in document:
        return "error"
    if surface(name).family == "ollama":
        return "complete" if document["done"] else "nothing"
    inner = document.get("response", document)
    if name in ("gemini", "code-assist", "gemini-simple"):
        candidates = inner.get("candidates") or [{}]
        if candidates[0].get("finishReason") or inner.get("promptFeedback"):
            return "complete"
    return "nothing"
