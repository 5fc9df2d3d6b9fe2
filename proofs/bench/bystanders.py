"""One huge body, and how long small requests of others wait for it."""

from __future__ import annotations

import threading
import time
from typing import Any

from proofs.bench.bodies import Conversation, body
from proofs.bench.scenarios import path_of
from proofs.bench.talking import Talk
from proofs.bench.targets import Target

HUGE_BYTES = 10_000_000
_TURNS = 1000
_QUIET_SECONDS = 0.5
_GAP_SECONDS = 0.002
_MODEL = "mine/mock"


class Bystander(threading.Thread):
    """Asks for little, again and again: when each began, and how long it took."""

    def __init__(self, target: Target) -> None:
        super().__init__(daemon=True)
        self._talk = Talk(target.port, target.headers)
        self._content = body("openai-chat", "tiny", _MODEL, stream=False)
        self._enough = threading.Event()
        self.waits: list[tuple[float, float]] = []
        self.failed = 0

    def run(self) -> None:
        while not self._enough.wait(_GAP_SECONDS):
            began = time.monotonic()
            answered = self._talk.ask(path_of("openai-chat", _MODEL, stream=False), self._content)
            self.waits.append((began, answered.seconds))
            self.failed += answered.status != 200
        self._talk.close()

    def end(self) -> None:
        self._enough.set()
        self.join()


def drive(target: Target, turn: int) -> dict[str, Any]:
    """A round; milliseconds. The body is nobody's of an earlier round."""
    content = Conversation(turn, _TURNS, 10_000, HUGE_BYTES, _MODEL).last()
    bystander, talk = Bystander(target), Talk(target.port, target.headers)
    bystander.start()
    time.sleep(_QUIET_SECONDS)
    began = time.monotonic()
    answered = talk.ask(path_of("anthropic", _MODEL, stream=False), content)
    ended = time.monotonic()
    time.sleep(_QUIET_SECONDS)
    bystander.end()
    talk.close()
    return {
        "bytes": len(content),
        "quiet_ms": longest(bystander.waits, 0.0, began) * 1000,
        "worst_ms": longest(bystander.waits, began, ended) * 1000,
        "huge_ms": answered.seconds * 1000,
        "asked": len(bystander.waits),
        "err": bystander.failed + (answered.status != 200),
    }


def longest(waits: list[tuple[float, float]], began: float, ended: float) -> float:
    """Of the waits that share a moment with the span."""
    return max((taken for start, taken in waits if start < ended and start + taken > began), default=0.0)
