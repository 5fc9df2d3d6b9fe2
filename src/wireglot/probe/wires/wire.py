"""What a dialect is to the probe."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Protocol

from wireglot.probe.question import ProbeQuestion
from wireglot.probe.reply import At, ProbeFrame, ProbeReply, Rule


class Wire(Protocol):
    """Writes questions and reads answers. Readers of whole answers raise Broken; those of streams read on and
    note what is wrong, so that one fault does not hide all others."""

    name: ClassVar[str]
    key_header: ClassVar[tuple[str, str]]
    """The header that carries a key, and what stands before the key in it."""
    thinking_ways: ClassVar[int]
    state_is_signed: ClassVar[bool]
    """Whether reasoning carries state that must come back."""
    image_results: ClassVar[bool]
    """Whether the result of a tool may hold a picture."""
    json_mode: ClassVar[bool]
    """Whether JSON can be asked for without a schema."""

    def body(self, model: str, question: ProbeQuestion) -> dict[str, Any]: ...

    def read(self, document: Any) -> ProbeReply: ...

    def read_stream(self, frames: Sequence[ProbeFrame], question: ProbeQuestion) -> ProbeReply: ...

    def error(self, document: Any, status: int) -> tuple[str, str]:
        """Its kind and its message. Raises Broken where it is no error of the dialect."""
        ...

    def models(self, document: Any) -> list[str]: ...

    def count_body(self, model: str, question: ProbeQuestion) -> dict[str, Any] | None:
        """None: the dialect does not count."""
        ...

    def count(self, document: Any) -> int: ...


class Faults:
    """Collects what is wrong with a stream."""

    def __init__(self) -> None:
        self.found: list[tuple[Rule, str]] = []

    def add(self, rule: Rule, text: str) -> None:
        self.found.append((rule, text))

    def unless(self, holds: bool, rule: Rule, text: str) -> bool:
        if not holds:
            self.add(rule, text)
        return holds


def openai_error(document: Any) -> tuple[str, str]:
    error = At(document).get("error")
    kind = error.text("type", filled=True)
    for name in ("param", "code"):
        if error.has(name):
            error.text(name)
    return kind, error.text("message", filled=True)


def openai_models(document: Any) -> list[str]:
    at = At(document)
    at.is_("object", "list")
    names = []
    for entry in at.get("data").each():
        entry.is_("object", "model")
        entry.number("created")
        entry.text("owned_by")
        names.append(entry.text("id", filled=True))
    return names
