"""The grammar of Anthropic's streams, as its SDK's accumulator depends on it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from wireglot.probe.frames import Frame
from wireglot.probe.question import Call
from wireglot.probe.reply import At, Reply, Rule, Thought
from wireglot.probe.verdict import Broken
from wireglot.probe.wires.anthropic_values import (
    BLOCK_NULLS,
    FINAL_USAGE_NULLS,
    MESSAGE_NULLS,
    STOPS,
    USAGE_NULLS,
    counted,
)
from wireglot.probe.wires.wire import Faults
from wireglot.wire.json import BadJson, decode, encode_text

_DELTAS: Final = {
    "text_delta": ("text", "text"),
    "input_json_delta": ("tool_use", "partial_json"),
    "thinking_delta": ("thinking", "thinking"),
    "signature_delta": ("thinking", "signature"),
}
"""Kind of a delta -> the kind of its block, and its field."""


def read_stream(frames: Sequence[Frame]) -> Reply:
    reader = _Reader()
    for number, frame in enumerate(frames):
        reader.frame(frame, number)
    return reader.end()


class _Reader:
    def __init__(self) -> None:
        self.faults = Faults()
        self.reply = Reply()
        self.usage: dict[str, Any] = {}
        self.blocks: list[dict[str, Any]] = []
        self.pieces: list[list[str]] = []
        self.open: set[int] = set()
        self.seen: list[str] = []

    def frame(self, frame: Frame, number: int) -> None:
        document = frame.document()
        if not frame.data and frame.lines and not frame.event:
            return  # a comment
        if not isinstance(document, dict):
            self.faults.add("frames", f"frame {number}: its data is no JSON object: {frame.data[:80]!r}")
            return
        at = At(document, f"frame {number}")
        kind = document.get("type")
        self.faults.unless(
            frame.event == kind,
            "frames",
            f"frame {number}: `event: {frame.event}` over data of type {kind!r}: frames without their own "
            "name are dropped by Anthropic's SDK",
        )
        if "message_stop" in self.seen and kind != "ping":
            self.faults.add("ending", f"frame {number}: {kind} behind message_stop")
        if not self.seen and kind not in ("message_start", "ping", "error"):
            self.faults.add("opening", f"the stream begins with {kind}, not with message_start")
        try:
            self._event(str(kind), at)
        except Broken as broken:
            self.faults.add(_rule_of(str(kind)), str(broken))
        if kind != "ping":
            self.seen.append(str(kind))

    def _event(self, kind: str, at: At) -> None:
        match kind:
            case "message_start":
                self._start(at.get("message"))
            case "content_block_start":
                self._block(at)
            case "content_block_delta":
                self._delta(at)
            case "content_block_stop":
                index = at.number("index")
                if index not in self.open:
                    raise Broken(f"{at.path}: content_block_stop of block {index}, which is not open")
                self.open.discard(index)
            case "message_delta":
                self._message_delta(at)
            case "error":
                raise Broken(f"{at.path}: an error: {at.get('error').value}")

    def _start(self, message: At) -> None:
        if "message_start" in self.seen:
            raise Broken("a second message_start")
        self.reply.id = message.text("id", filled=True)
        self.reply.model = message.text("model", filled=True)
        message.is_("type", "message")
        message.is_("role", "assistant")
        if message.get("content").value != []:
            raise message.get("content").broken("an empty list")
        message.is_("stop_reason", None)
        usage = message.get("usage")
        usage.number("input_tokens")
        usage.number("output_tokens")
        self.usage |= usage.object()
        message.nullables(MESSAGE_NULLS, self.reply)
        usage.nullables(USAGE_NULLS, self.reply)

    def _block(self, at: At) -> None:
        index = at.number("index")
        self.faults.unless(
            index == len(self.blocks),
            "indexes",
            f"{at.path}: a block begins with index {index}, expected {len(self.blocks)}: the SDK looks "
            "blocks up by it",
        )
        block = at.get("content_block")
        self.blocks.append(dict(block.object()))
        self.pieces.append([])
        self.open.add(index)
        kind = block.text("type", filled=True)
        block.nullables(BLOCK_NULLS.get(kind, ()), self.reply)
        match kind:
            case "text":
                if block.text("text"):
                    self.faults.add("order", f"{at.path}: a text block begins with text in it")
            case "tool_use":
                self._begun_call(block)
            case "thinking":
                block.text("thinking")

    def _begun_call(self, block: At) -> None:
        try:
            block.text("id", filled=True)
            block.text("name", filled=True)
            block.get("input").object()
        except Broken as broken:
            self.faults.add("calls", str(broken))

    def _delta(self, at: At) -> None:
        index = at.number("index")
        if index not in self.open or index >= len(self.blocks):
            raise Broken(f"{at.path}: a delta for block {index}, which is not open")
        delta = at.get("delta")
        known = _DELTAS.get(delta.text("type", filled=True))
        if known is None:
            return
        kind, field = known
        block, pieces = self.blocks[index], self.pieces[index]
        if block.get("type") != kind:
            raise Broken(f"{at.path}: {delta.value['type']} for a block of type {block.get('type')}")
        text = delta.text(field)
        match field:
            case "signature":
                self.faults.unless(
                    not block.get("signature"),
                    "thoughts",
                    f"{at.path}: a second signature_delta for one block",
                )
                block["signature"] = text
            case "thinking" if block.get("signature"):
                self.faults.add("thoughts", f"{at.path}: a thinking_delta behind the signature")
            case _:
                pieces.append(text)
                if field == "text":
                    self.reply.pieces += 1

    def _message_delta(self, at: At) -> None:
        if self.open:
            self.faults.add("order", f"{at.path}: message_delta while block {min(self.open)} is still open")
        delta = at.get("delta")
        word = delta.get("stop_reason").value
        if word is not None:
            self.reply.stop_word = delta.text("stop_reason", filled=True)
            self.reply.stop = STOPS.get(self.reply.stop_word, "other")
        if delta.has("stop_sequence"):
            self.reply.sequence = delta.text("stop_sequence")
        delta.nullables(MESSAGE_NULLS, self.reply)
        usage = at.get("usage")
        usage.number("output_tokens")
        usage.nullables(FINAL_USAGE_NULLS, self.reply)
        self.usage |= {name: value for name, value in usage.object().items() if value is not None}

    def end(self) -> Reply:
        reply, faults = self.reply, self.faults
        faults.unless("message_start" in self.seen, "opening", "there is no message_start")
        for index in sorted(self.open):
            faults.add("order", f"block {index} has no content_block_stop")
        ends = [kind for kind in self.seen if kind == "message_stop"]
        faults.unless(len(ends) == 1, "ending", f"message_stop came {len(ends)} times, expected once")
        if self.seen and self.seen[-1] != "message_stop" and ends:
            faults.add("ending", f"the stream ends with {self.seen[-1]}, not with message_stop")
        faults.unless(bool(reply.stop_word), "ending", "no message_delta tells a stop_reason")
        for number, block in enumerate(self.blocks):
            self._closed(number, block)
        reply.items = [{"role": "assistant", "content": self.blocks}]
        try:
            reply.usage = counted(At(self.usage, "usage"))
        except Broken as broken:
            faults.add("usage", str(broken))
        reply.faults = [*reply.faults, *faults.found]
        return reply

    def _closed(self, number: int, block: dict[str, Any]) -> None:
        said = "".join(self.pieces[number])
        match block.get("type"):
            case "text":
                block["text"] = str(block.get("text", "")) + said
                self.reply.text += block["text"]
            case "thinking":
                block["thinking"] = str(block.get("thinking", "")) + said
                block.setdefault("signature", "")
                self.reply.thoughts = [
                    *self.reply.thoughts,
                    Thought(block["thinking"], str(block["signature"])),
                ]
                self.reply.state += str(block["signature"])
            case "redacted_thinking":
                self.reply.thoughts = [*self.reply.thoughts, Thought("", str(block.get("data", "")))]
                self.reply.state += str(block.get("data", ""))
            case "tool_use":
                self._closed_call(number, block, said)

    def _closed_call(self, number: int, block: dict[str, Any], said: str) -> None:
        """What stands in the start and what the deltas say are never to be joined (R-AJ-07)."""
        begun = block.get("input")
        if begun and said:
            self.faults.add(
                "calls",
                f"block {number}: the start has arguments and so do the deltas: clients that join them get "
                "invalid JSON",
            )
        if said:
            try:
                found = decode(said.encode())
            except BadJson as bad:
                found = None
                self.faults.add("calls", f"block {number}: the deltas make no JSON ({bad}): {said[:120]!r}")
            if found is not None and not isinstance(found, dict):
                self.faults.add("calls", f"block {number}: the arguments are no object: {said[:120]!r}")
            block["input"] = found if isinstance(found, dict) else {}
        arguments = said or "{}"
        if not said and isinstance(begun, dict) and begun:
            arguments = encode_text(begun)
        call = Call(str(block.get("id", "")), str(block.get("name", "")), arguments)
        self.reply.calls = [*self.reply.calls, call]


def _rule_of(kind: str) -> Rule:
    match kind:
        case "message_start":
            return "opening"
        case "message_delta" | "message_stop" | "error":
            return "ending"
        case _:
            return "order"
