"""The probe's interface of a dialect, and what its readers share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

from wireglot.probe.question import ProbeQuestion
from wireglot.probe.reply import At, Broken, ProbeFrame, ProbeReply, Rule, frames_of
from wireglot_core.wire.json import BadJson, decode


class Wire(ABC):
    """Writes requests and parses answers. Readers of whole answers raise Broken; those of streams continue
    and note errors, so that one fault does not hide all others."""

    name: ClassVar[str]
    key_header: ClassVar[tuple[str, str]] = ("authorization", "Bearer ")
    """The header that carries a key, and the prefix of the key in it."""
    key_refusals: ClassVar[tuple[int, ...]] = (401, 403)
    """Statuses of a request without a key, or with a wrong one."""
    turns: ClassVar[str] = "messages"
    """The field of a body that contains the conversation."""
    settings: ClassVar[str] = ""
    """The field of a body that contains the settings; empty: the body itself."""
    thinking_ways: ClassVar[int] = 2
    stream_type: ClassVar[str] = "text/event-stream"
    """The content type of a stream."""
    has_answer_ids: ClassVar[bool] = True
    has_call_ids: ClassVar[bool] = True
    """Whether every call has an id. If not, one may still have an id."""
    has_tool_choice: ClassVar[bool] = True
    requires_turns: ClassVar[bool] = True
    """Whether a request without a conversation is invalid."""

    @abstractmethod
    def body(self, model: str, question: ProbeQuestion) -> dict[str, Any]: ...

    @abstractmethod
    def read(self, document: Any) -> ProbeReply: ...

    @abstractmethod
    def stream_reader(self, question: ProbeQuestion) -> ProbeReader: ...

    def frames(self, body: bytes) -> list[ProbeFrame]:
        """The events of a stream. Frames without data do not count."""
        return frames_of(body)

    def error(self, document: Any, status: int) -> tuple[str, str]:
        """Its kind and its message. Raises Broken if it is not an error of the dialect. Default: OpenAI's
        form."""
        error = At(document).get("error")
        kind = error.text("type", filled=True)
        for name in ("param", "code"):
            if error.has(name):
                error.text(name)
        return kind, error.text("message", filled=True)

    def models(self, document: Any) -> list[str]:
        """The names in a list of models. Default: OpenAI's form."""
        at = At(document)
        at.is_("object", "list")
        names = []
        for entry in at.get("data").each():
            entry.is_("object", "model")
            entry.number("created")
            entry.text("owned_by")
            names.append(entry.text("id", filled=True))
        return names

    def next_page(self, document: Any) -> str:
        """The query for further models; empty if there are none. OpenAI's list has one page."""
        return ""

    def count_body(self, model: str, question: ProbeQuestion) -> dict[str, Any] | None:
        """None: the dialect does not count tokens."""
        return None

    def count(self, document: Any) -> int:
        raise AssertionError("count_body has said that this dialect does not count")


class ProbeReader(ABC):
    """Reads a stream to its end, and collects its violations."""

    def __init__(self) -> None:
        self.reply = ProbeReply()
        self.found: list[tuple[Rule, str]] = []

    def read(self, frames: Sequence[ProbeFrame]) -> ProbeReply:
        for number, frame in enumerate(frames):
            self.frame(frame, number)
        self.end()
        self.reply.faults += self.found
        return self.reply

    @abstractmethod
    def frame(self, frame: ProbeFrame, number: int) -> None: ...

    @abstractmethod
    def end(self) -> None: ...

    def add(self, rule: Rule, text: str) -> None:
        self.found.append((rule, text))

    def unless(self, holds: bool, rule: Rule, text: str) -> None:
        if not holds:
            self.add(rule, text)

    def document(self, frame: ProbeFrame, number: int) -> dict[str, Any] | None:
        document = frame.document()
        if isinstance(document, dict):
            return document
        self.add("frames", f"frame {number}: its data is not a JSON object: {frame.data[:80]!r}")
        return None


def check_object(arguments: str, place: str) -> None:
    """Raises Broken if the text of a call's arguments is not a JSON object."""
    try:
        found = decode(arguments.encode()) if arguments else {}
    except BadJson as bad:
        raise Broken(f"{place}.arguments: not JSON ({bad}): {arguments[:120]!r}") from None
    if not isinstance(found, dict):
        raise Broken(f"{place}.arguments: expected an object in the text, found {arguments[:120]!r}")
