"""The ground of all doubles: a real HTTP server in threads of its own, and what it remembers."""

from __future__ import annotations

import base64
import secrets
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from proofs.http_double import DoubleHandler, HttpDouble
from tests.gateway.state.doubles.script import Call, Script, Step
from wireglot_core.wire.json import decode, encode


class Refused(Exception):
    """The request breaks a rule of this provider."""

    def __init__(self, message: str, code: str = "", status: int = 400) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.status = status


class Recorded(msgspec.Struct, frozen=True):
    path: str
    account: str
    streams: bool
    body: dict[str, Any]
    refused: str = ""


class Minted(msgspec.Struct, frozen=True):
    """A piece of state: for whom, on what, in which step."""

    value: str
    account: str
    kind: str
    bound: str
    """Exactly what it was given out with: the text, or the call, or the id of the item."""
    step: str


class Said(msgspec.Struct, frozen=True):
    """An answer as it went out, with the ids it gave its calls."""

    step: Step
    ids: tuple[str, ...]


class Double(HttpDouble, ABC):
    """`violations`: what was refused, and why. `bypasses`: documented ways around validation that were used.
    `missing`: own state of a step that is in the history, and did not come back where that is legal.
    `changed`: state that came back otherwise than it went out, where that is legal."""

    def __init__(self) -> None:
        super().__init__()
        self.script = Script(secrets.token_hex(8))
        self.requests: list[Recorded] = []
        self.said: list[Said] = []
        self.minted: list[Minted] = []
        self.violations: list[str] = []
        self.bypasses: list[str] = []
        self.missing: list[str] = []
        self.changed: list[str] = []
        self.down = False
        """Whether it has no room for anybody just now (503)."""
        self._valid: dict[str, Minted] = {}
        self._steps: dict[str, Said] = {}
        self._lock = threading.Lock()

    def forget(self) -> None:
        """As if the account behind the key were another one: nothing minted so far is known any more."""
        with self._lock:
            self._valid.clear()
            self._steps.clear()

    # What a provider is made of

    @abstractmethod
    def account_of(self, headers: dict[str, str]) -> str: ...

    def streams(self, path: str, body: dict[str, Any]) -> bool:
        return bool(body.get("stream"))

    @abstractmethod
    def answer(self, path: str, account: str, body: dict[str, Any]) -> dict[str, Any]:
        """The whole answer, or `Refused`."""

    @abstractmethod
    def frames(self, answer: dict[str, Any], body: dict[str, Any]) -> Iterable[bytes]:
        """The same answer as a stream."""

    @abstractmethod
    def error(self, refused: Refused) -> dict[str, Any]: ...

    # Memory

    def mint(self, account: str, kind: str, bound: str, step: str) -> str:
        """State in pure base64 that nobody could guess."""
        value = base64.b64encode(secrets.token_bytes(48)).decode()
        self._remember(Minted(value, account, kind, bound, step))
        return value

    def _remember(self, minted: Minted) -> None:
        self.minted.append(minted)
        self._valid[minted.value] = minted

    def known(self, value: str, account: str) -> Minted | None:
        found = self._valid.get(value)
        return found if found is not None and found.account == account else None

    def own_step(self, key: str) -> Said | None:
        """The step of this double that something in a history was quoted from."""
        return self._steps.get(key)

    def say(self, step: Step, ids: tuple[str, ...]) -> None:
        said = Said(step, ids)
        self.said.append(said)
        self._steps[step.key] = said

    def compare(self, number: int, conversation: str, text: str, calls: list[Call]) -> None:
        """Whether an answer in the history still says what it said."""
        own = next(
            (
                each.step
                for each in self.said
                if each.step.number == number and each.step.conversation == conversation
            ),
            None,
        )
        if own is not None and (own.text, own.calls) != (text, tuple(calls)):
            self.changed.append(f"answer {number}: {text!r} {calls!r}")

    # Serving

    def serve(
        self, path: str, headers: dict[str, str], raw: bytes
    ) -> tuple[int, bytes | None, Iterator[bytes]]:
        """Status, and a whole body or a stream."""
        if self.down:
            busy = Refused("The model is overloaded. Please try again later.", status=503)
            return busy.status, encode(self.error(busy)), iter(())
        body = decode(raw)
        account = self.account_of(headers)
        streams = self.streams(path, body)
        with self._lock:
            try:
                answer = self.answer(path, account, body)
            except Refused as refused:
                self.requests.append(Recorded(path, account, streams, body, refused.message))
                self.violations.append(refused.message)
                return refused.status, encode(self.error(refused)), iter(())
            self.requests.append(Recorded(path, account, streams, body))
        if streams:
            return 200, None, iter(self.frames(answer, body))
        return 200, encode(answer), iter(())

    class Handler(DoubleHandler):
        owner: Double

        def answer(self, headers: dict[str, str], body: bytes) -> None:
            status, whole, frames = self.owner.serve(self.path, headers, body)
            if whole is None:
                self.send_chunks("text/event-stream", frames)
            else:
                self.send(status, whole, ("content-type", "application/json"))


def halves(text: str) -> tuple[str, ...]:
    """A text in the pieces of a stream."""
    middle = len(text) // 2
    return tuple(piece for piece in (text[:middle], text[middle:]) if piece)
