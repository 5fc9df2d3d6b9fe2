"""A question in each dialect, streamed, and what a stream said."""

from __future__ import annotations

from typing import Any, Final

from wireglot_core.dialects.registry import DialectName, dialect
from wireglot_core.ir.content import Text
from wireglot_core.ir.stream import Finish, fold
from wireglot_core.testing.laws import ending, read_stream

CLIENTS: Final[tuple[DialectName, ...]] = ("anthropic", "openai-chat", "openai-responses", "gemini")


def question(client: DialectName, model: str, said: str = "Hello.") -> tuple[str, dict[str, Any]]:
    """The path and the body."""
    message = {"role": "user", "content": said}
    match client:
        case "anthropic":
            return "/v1/messages", {"model": model, "messages": [message], "max_tokens": 900, "stream": True}
        case "openai-chat":
            return "/v1/chat/completions", {"model": model, "messages": [message], "stream": True}
        case "openai-responses":
            return "/v1/responses", {"model": model, "input": said, "stream": True, "store": False}
        case _:
            contents = [{"role": "user", "parts": [{"text": said}]}]
            return f"/v1beta/models/{model}:streamGenerateContent?alt=sse", {"contents": contents}


def whole(path: str, body: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The same question, answered in one piece."""
    plain = {name: value for name, value in body.items() if name != "stream"}
    return path.replace(":streamGenerateContent?alt=sse", ":generateContent"), plain


def answer(client: DialectName, body: bytes) -> tuple[bool, str]:
    """Whether a stream came to its own end, and the text in it."""
    events = read_stream(dialect(client), [body])
    if ending(events) is not Finish:
        return False, ""
    return True, "".join(part.text for part in fold(events).content if type(part) is Text)
