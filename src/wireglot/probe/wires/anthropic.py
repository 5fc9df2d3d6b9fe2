"""Anthropic Messages: the probe's writer, and its reader of whole answers."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final
from urllib.parse import quote

from wireglot.probe.question import (
    PICTURE,
    PICTURE_TYPE,
    THINKING_TOKENS,
    Called,
    Midway,
    Offer,
    ProbeQuestion,
    ProbeResult,
    Results,
    Said,
    Turn,
    User,
)
from wireglot.probe.reply import At, Broken, ProbeFrame, ProbeReply, ProbeUsage, Rule, Stop
from wireglot.probe.wires.wire import ProbeReader, Wire
from wireglot_core.wire.json import BadJson, decode, encode_text

STOPS: Final[dict[str, Stop]] = {
    "end_turn": "end",
    "max_tokens": "length",
    "stop_sequence": "sequence",
    "tool_use": "tool",
}


# Fields that may be null, by their place: those that are in every recorded answer of the vendor's own API.
MESSAGE_NULLS: Final = ("stop_sequence",)
USAGE_NULLS: Final = ("cache_creation_input_tokens", "cache_read_input_tokens")
FINAL_USAGE_NULLS: Final = (*USAGE_NULLS, "input_tokens")


def counted(usage: At) -> ProbeUsage:
    """Its input includes neither tokens read from the cache nor those written to it."""
    read = usage.maybe_number("cache_read_input_tokens")
    written = usage.maybe_number("cache_creation_input_tokens")
    details = usage.get("output_tokens_details") if usage.has("output_tokens_details") else None
    return ProbeUsage(
        input=usage.number("input_tokens") + (read or 0) + (written or 0),
        output=usage.number("output_tokens"),
        cached=read,
        reasoning=details.maybe_number("thinking_tokens") if details is not None else None,
    )


_DELTAS: Final = {
    "text_delta": ("text", "text"),
    "input_json_delta": ("tool_use", "partial_json"),
    "thinking_delta": ("thinking", "thinking"),
    "signature_delta": ("thinking", "signature"),
}
"""Kind of a delta -> the kind of its block, and its field."""


class _Reader(ProbeReader):
    def __init__(self) -> None:
        super().__init__()
        self.usage: dict[str, Any] = {}
        self.blocks: list[dict[str, Any]] = []
        self.pieces: list[list[str]] = []
        self.open: set[int] = set()
        self.seen = Counter[str]()
        self.last = ""

    def frame(self, frame: ProbeFrame, number: int) -> None:
        if not frame.data and frame.lines and not frame.event:
            return  # a comment
        document = self.document(frame, number)
        if document is None:
            return
        at = At(document, f"frame {number}")
        kind = document.get("type")
        self.unless(
            frame.event == kind,
            "frames",
            f"frame {number}: `event: {frame.event}` over data of type {kind!r}: frames without their own "
            "name are dropped by Anthropic's SDK",
        )
        if "message_stop" in self.seen and kind != "ping":
            self.add("ending", f"frame {number}: {kind} after message_stop")
        if not self.seen and kind not in ("message_start", "ping", "error"):
            self.add("opening", f"the stream begins with {kind}, not with message_start")
        try:
            self._event(str(kind), at)
        except Broken as broken:
            self.add(_rule_of(str(kind)), str(broken))
        if kind != "ping":
            self.last = str(kind)
            self.seen[self.last] += 1

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
        self.unless(
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
        match kind:
            case "text":
                if block.text("text"):
                    self.add("order", f"{at.path}: a text block starts with text")
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
            self.add("calls", str(broken))

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
                self.unless(
                    not block.get("signature"),
                    "thoughts",
                    f"{at.path}: a second signature_delta for one block",
                )
                block["signature"] = text
            case "thinking" if block.get("signature"):
                self.add("thoughts", f"{at.path}: a thinking_delta after the signature")
            case _:
                pieces.append(text)
                if field == "text":
                    self.reply.pieces += 1

    def _message_delta(self, at: At) -> None:
        if self.open:
            self.add("order", f"{at.path}: message_delta while block {min(self.open)} is still open")
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

    def end(self) -> None:
        reply = self.reply
        self.unless("message_start" in self.seen, "opening", "message_start is missing")
        for index in sorted(self.open):
            self.add("order", f"block {index} has no content_block_stop")
        ends = self.seen["message_stop"]
        self.unless(ends == 1, "ending", f"message_stop came {ends} times, expected once")
        if self.last != "message_stop" and ends:
            self.add("ending", f"the stream ends with {self.last}, not with message_stop")
        self.unless(bool(reply.stop_word), "ending", "no message_delta has a stop_reason")
        for number, block in enumerate(self.blocks):
            self._closed(number, block)
        reply.items = [{"role": "assistant", "content": self.blocks}]
        try:
            reply.usage = counted(At(self.usage, "usage"))
        except Broken as broken:
            self.add("usage", str(broken))

    def _closed(self, number: int, block: dict[str, Any]) -> None:
        said = "".join(self.pieces[number])
        match block.get("type"):
            case "text":
                block["text"] = str(block.get("text", "")) + said
                self.reply.texts.append(block["text"])
            case "thinking":
                block["thinking"] = str(block.get("thinking", "")) + said
                block.setdefault("signature", "")
                self.reply.add_thought(block["thinking"], str(block["signature"]))
            case "redacted_thinking":
                self.reply.add_thought("", str(block.get("data", "")))
            case "tool_use":
                self._closed_call(number, block, said)

    def _closed_call(self, number: int, block: dict[str, Any], said: str) -> None:
        """The input in the start and that in the deltas must never be joined (R-AJ-07)."""
        begun = block.get("input")
        if begun and said:
            self.add(
                "calls",
                f"block {number}: both the start and the deltas have arguments: clients that join them get "
                "invalid JSON",
            )
        if said:
            try:
                found = decode(said.encode())
            except BadJson as bad:
                found = None
                self.add("calls", f"block {number}: the deltas do not join to JSON ({bad}): {said[:120]!r}")
            if found is not None and not isinstance(found, dict):
                self.add("calls", f"block {number}: the arguments are not an object: {said[:120]!r}")
            block["input"] = found if isinstance(found, dict) else {}
        arguments = said or "{}"
        if not said and isinstance(begun, dict) and begun:
            arguments = encode_text(begun)
        self.reply.add_call(str(block.get("id", "")), str(block.get("name", "")), arguments)


def _rule_of(kind: str) -> Rule:
    match kind:
        case "message_start":
            return "opening"
        case "message_delta" | "message_stop" | "error":
            return "ending"
        case _:
            return "order"


_OTHERS: Final = ("pause_turn", "refusal", "model_context_window_exceeded", "compaction")
_KINDS: Final[dict[int, tuple[str, ...]]] = {
    400: ("invalid_request_error",),
    401: ("authentication_error",),
    403: ("permission_error",),
    404: ("not_found_error",),
    413: ("request_too_large",),
    429: ("rate_limit_error",),
    529: ("overloaded_error",),
}
_THINKING: Final[tuple[dict[str, Any], ...]] = (
    {"thinking": {"type": "adaptive", "display": "summarized"}, "output_config": {"effort": "low"}},
    {"thinking": {"type": "enabled", "budget_tokens": 1024}},
)
"""The form for models from 4.6 on, and the one for older ones and most clones."""
_PICTURE: Final = {
    "type": "image",
    "source": {"type": "base64", "media_type": PICTURE_TYPE, "data": PICTURE},
}


class AnthropicWire(Wire):
    name = "anthropic"
    key_header = ("x-api-key", "")

    def body(self, model: str, question: ProbeQuestion) -> dict[str, Any]:
        made: dict[str, Any] = {"model": model, "max_tokens": question.most}
        made |= self._prompt(question)
        if question.stop:
            made["stop_sequences"] = list(question.stop)
        if question.schema is not None:
            made["output_config"] = {"format": {"type": "json_schema", "schema": question.schema}}
        if question.thinking is not None:
            made |= _THINKING[question.thinking]
            made["max_tokens"] = question.most + THINKING_TOKENS
        if question.stream:
            made["stream"] = True
        return made | question.extra

    def count_body(self, model: str, question: ProbeQuestion) -> dict[str, Any] | None:
        return {"model": model, **self._prompt(question)}

    def count(self, document: Any) -> int:
        return At(document).number("input_tokens")

    def models(self, document: Any) -> list[str]:
        at = At(document)
        names = []
        for entry in at.get("data").each():
            entry.is_("type", "model")
            names.append(entry.text("id", filled=True))
            entry.text("display_name")
            entry.text("created_at")
        if type(at.get("has_more").value) is not bool:
            raise at.get("has_more").broken("true or false")
        return names

    def next_page(self, document: Any) -> str:
        at = At(document)
        if not at.get("has_more").value:
            return ""
        return f"?after_id={quote(at.text('last_id', filled=True), safe='')}"

    def error(self, document: Any, status: int) -> tuple[str, str]:
        at = At(document)
        at.is_("type", "error")
        error = at.get("error")
        kind = error.text("type", filled=True)
        if status in _KINDS:
            error.is_("type", *_KINDS[status])
        return kind, error.text("message", filled=True)

    def read(self, document: Any) -> ProbeReply:
        at = At(document)
        at.is_("type", "message")
        at.is_("role", "assistant")
        reply = ProbeReply(id=at.text("id", filled=True), model=at.text("model", filled=True))
        reply.stop_word = at.is_("stop_reason", *STOPS, *_OTHERS)
        reply.stop = STOPS.get(reply.stop_word, "other")
        at.nullables(MESSAGE_NULLS, reply)
        sequence = at.nullable("stop_sequence", reply)
        reply.sequence = sequence.text() if sequence.value is not None else None
        blocks = at.get("content").each()
        for block in blocks:
            read_block(reply, block)
        reply.items = [{"role": "assistant", "content": [block.value for block in blocks]}]
        reply.usage = counted(at.get("usage"))
        at.get("usage").nullables(USAGE_NULLS, reply)
        return reply

    def stream_reader(self, question: ProbeQuestion) -> ProbeReader:
        return _Reader()

    def _prompt(self, question: ProbeQuestion) -> dict[str, Any]:
        made: dict[str, Any] = {"messages": [_message(turn) for turn in question.turns]}
        if question.system:
            made["system"] = (
                [{"type": "text", "text": text} for text in question.system]
                if question.system_parts
                else "\n".join(question.system)
            )
        if question.tools:
            made["tools"] = [_tool(offer) for offer in question.tools]
        if (choice := _choice(question)) is not None:
            made["tool_choice"] = choice
        return made


def read_block(reply: ProbeReply, block: At) -> None:
    kind = block.text("type", filled=True)
    match kind:
        case "text":
            reply.texts.append(block.text("text"))
        case "tool_use":
            arguments = encode_text(block.get("input").object())
            reply.add_call(block.text("id", filled=True), block.text("name", filled=True), arguments)
        case "thinking":
            reply.add_thought(block.text("thinking"), block.text("signature"))
        case "redacted_thinking":
            reply.add_thought("", block.text("data", filled=True))


def _message(turn: Turn) -> dict[str, Any]:
    match turn:
        case User():
            if len(turn.texts) == 1 and not turn.parts and not turn.picture:
                return {"role": "user", "content": turn.texts[0]}
            texts: list[dict[str, Any]] = [{"type": "text", "text": text} for text in turn.texts]
            return {"role": "user", "content": [*([_PICTURE] if turn.picture else []), *texts]}
        case Said():
            return turn.items[0]
        case Called():
            said: list[dict[str, Any]] = [{"type": "text", "text": turn.text}] if turn.text else []
            calls = [
                {
                    "type": "tool_use",
                    "id": call.id,
                    "name": call.name,
                    "input": decode(call.arguments.encode()),
                }
                for call in turn.calls
            ]
            return {"role": "assistant", "content": [*said, *calls]}
        case Results():
            return {"role": "user", "content": [_result(result) for result in turn.results]}
        case Midway():
            return {"role": "system", "content": turn.text}


def _result(result: ProbeResult) -> dict[str, Any]:
    made: dict[str, Any] = {"type": "tool_result", "tool_use_id": result.call.id, "content": result.text}
    if result.parts or result.picture:
        pictures = [_PICTURE] if result.picture else []
        made["content"] = [{"type": "text", "text": result.text}, *pictures]
    if result.error:
        made["is_error"] = True
    return made


def _tool(offer: Offer) -> dict[str, Any]:
    made: dict[str, Any] = {"name": offer.name}
    if offer.description:
        made["description"] = offer.description
    made["input_schema"] = offer.schema or {"type": "object", "properties": {}}
    return made | ({"strict": True} if offer.strict else {})


def _choice(question: ProbeQuestion) -> dict[str, Any] | None:
    if question.named:
        choice: dict[str, Any] = {"type": "tool", "name": question.named}
    elif question.choice:
        choice = {"type": "any" if question.choice == "required" else question.choice}
    elif question.parallel is not None:
        choice = {"type": "auto"}
    else:
        return None
    if question.parallel is not None:
        choice["disable_parallel_tool_use"] = not question.parallel
    return choice
