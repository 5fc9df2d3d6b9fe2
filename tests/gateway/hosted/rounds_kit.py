"""A model on Chat Completions that answers round by round as scripted."""

from __future__ import annotations

from itertools import count
from typing import Any

from msgspec.structs import replace

from tests.gateway.hosted.hosted_kit import chat_answer, chat_calls
from wireglot.testing.scripted_upstream import Behaviour, Recorded


class Script:
    """`rounds`: a text, or calls of functions with their arguments."""

    def __init__(self) -> None:
        self.rounds: list[str | list[tuple[str, dict[str, Any]]]] = []
        self._numbers = count()

    def decide(self, request: Recorded) -> Behaviour | None:
        if not self.rounds:
            return None
        said, stream = self.rounds.pop(0), bool(request.json.get("stream"))
        if isinstance(said, str):
            return chat_answer({"content": said}, stream=stream)
        answer = chat_calls(*said, stream=stream)
        own = f"call_{next(self._numbers)}_".encode()  # the gateway knows calls by their id
        return replace(
            answer,
            body=answer.body and answer.body.replace(b"call_", own),
            pieces=answer.pieces and tuple(piece.replace(b"call_", own) for piece in answer.pieces),
        )
