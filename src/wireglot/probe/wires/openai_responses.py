"""OpenAI Responses: the probe's writer, and its reader of whole answers."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

import msgspec

from wireglot.probe.question import (
    PICTURE,
    PICTURE_TYPE,
    THINKING_TOKENS,
    Called,
    Midway,
    Offer,
    ProbeCall,
    ProbeQuestion,
    ProbeResult,
    Results,
    Said,
    Turn,
    User,
)
from wireglot.probe.reply import At, Broken, ProbeFrame, ProbeReply, ProbeUsage, Rule, Stop
from wireglot.probe.wires.wire import ProbeReader, Wire, check_object

_PRESENT: Final = ("parallel_tool_calls", "tool_choice", "tools")
"""The SDK's type has them without a default: code reads them without a check."""

_REASONS: Final[dict[str, Stop]] = {"max_output_tokens": "length", "content_filter": "other"}


def read_response(at: At) -> ProbeReply:
    at.is_("object", "response")
    reply = ProbeReply(id=at.text("id", filled=True), model=at.text("model", filled=True))
    at.number("created_at")
    reply.faults += [
        ("repeated", f"{at.path}: the field {name} is missing")
        for name in _PRESENT
        if name not in at.object()
    ]
    status = at.is_("status", "completed", "incomplete")
    for item in at.get("output").each():
        read_item(reply, item)
    reply.stop_word = status
    reply.stop = "tool" if reply.calls else "end"
    if status == "incomplete":
        reply.stop_word = at.get("incomplete_details").text("reason", filled=True)
        reply.stop = _REASONS.get(reply.stop_word, "other")
    reply.items = [item.object() for item in at.get("output").each()]
    reply.usage = counted(at.get("usage"))
    return reply


def read_item(reply: ProbeReply, item: At) -> None:
    match item.text("type", filled=True):
        case "message":
            item.text("id", filled=True)
            item.is_("role", "assistant")
            item.is_("status", "completed", "incomplete", "in_progress")
            for part in item.get("content").each():
                if part.is_("type", "output_text", "refusal") == "output_text":
                    reply.texts.append(part.text("text"))
                    part.get("annotations").each()
        case "function_call":
            item.text("id", filled=True)
            arguments = item.text("arguments")
            check_object(arguments, item.path)
            reply.add_call(item.text("call_id", filled=True), item.text("name", filled=True), arguments)
        case "reasoning":
            item.text("id", filled=True)
            parts = [*item.get("summary").each(), *_content(item)]
            state = item.text("encrypted_content") if item.has("encrypted_content") else ""
            reply.add_thought("".join(part.text("text") for part in parts), state)


def counted(usage: At) -> ProbeUsage:
    return ProbeUsage(
        input=usage.number("input_tokens"),
        output=usage.number("output_tokens"),
        cached=usage.get("input_tokens_details").number("cached_tokens"),
        reasoning=usage.get("output_tokens_details").number("reasoning_tokens"),
        total=usage.number("total_tokens"),
    )


def _content(item: At) -> list[At]:
    return item.get("content").each() if item.has("content") else []


def plain(item: Any) -> dict[str, Any]:
    return item if isinstance(item, dict) else {}


_LAST: Final = ("response.completed", "response.incomplete", "response.failed")
_TEXTS: Final = {
    "response.output_text": ("content_index", "text"),
    "response.refusal": ("content_index", "refusal"),
    "response.reasoning_summary_text": ("summary_index", "text"),
    "response.reasoning_text": ("content_index", "text"),
    "response.function_call_arguments": ("", "arguments"),
}
"""Events with `.delta` and `.done`: the index that identifies the part, and the field of the whole text."""


class _Item(msgspec.Struct):
    id: str
    kind: str
    call: str
    texts: dict[tuple[str, int], list[str]] = {}
    parts: set[int] = set()
    done: dict[str, Any] | None = None


class _Reader(ProbeReader):
    def __init__(self) -> None:
        super().__init__()
        self.items: dict[int, _Item] = {}
        self.seen = Counter[str]()
        self.number = -1
        self.id = ""
        self.pieces = 0
        self.final: ProbeReply | None = None

    def frame(self, frame: ProbeFrame, number: int) -> None:
        if (not frame.data and frame.lines) or frame.data == "[DONE]":
            return  # a comment, or an event that OpenAI's SDK ignores
        document = self.document(frame, number)
        if document is None:
            return
        kind = str(document.get("type"))
        at = At(document, f"frame {number} ({kind})")
        if frame.event and frame.event != kind:  # the SDK uses the type, and needs no name
            self.add("frames", f"frame {number}: `event: {frame.event}` over data of type {kind!r}")
        if any(last in self.seen for last in _LAST):
            self.add("ending", f"{at.path}: after the last event")
        if not self.seen and kind != "response.created":
            self.add("opening", f"the stream begins with {kind}, not with response.created")
        self._sequence(at)
        try:
            self._event(kind, at)
        except Broken as broken:
            self.add(_rule_of(kind), str(broken))
        self.seen[kind] += 1

    def _sequence(self, at: At) -> None:
        try:
            found = at.number("sequence_number")
        except Broken as broken:
            self.add("indexes", str(broken))
            return
        if self.seen and found != self.number + 1:
            self.add("indexes", f"{at.path}: sequence_number {found} after {self.number}")
        self.number = found

    def _event(self, kind: str, at: At) -> None:
        if kind in ("response.created", "response.in_progress", *_LAST):
            self._response(kind, at.get("response"))
        elif kind == "response.output_item.added":
            self._added(at)
        elif kind == "response.output_item.done":
            self._done(at)
        elif kind in ("response.content_part.added", "response.reasoning_summary_part.added"):
            item = self._item(at)
            item.parts.add(at.number(_index_of(kind)))
        elif kind in ("error", "response.error"):
            raise Broken(f"{at.path}: an error: {at.value}")
        else:
            self._text(kind, at)

    def _response(self, kind: str, response: At) -> None:
        name = response.text("id", filled=True)
        if self.id and name != self.id:
            self.add("identity", f"{response.path}.id was {self.id!r} and now is {name!r}")
        self.id = self.id or name
        if kind not in _LAST:
            response.is_("status", "in_progress", "queued")
            if response.get("output").value != []:
                raise response.get("output").broken("an empty list")
            return
        if kind == "response.failed":
            raise Broken(f"{response.path}: the response failed: {response.get('error').value}")
        response.is_("status", kind.removeprefix("response."))
        self.final = read_response(response)

    def _added(self, at: At) -> None:
        index = at.number("output_index")
        if index != len(self.items):
            self.add("indexes", f"{at.path}: an item with output_index {index}, expected {len(self.items)}")
        item = at.get("item")
        kind = item.text("type", filled=True)
        call = item.text("call_id", filled=True) if kind == "function_call" else ""
        if kind == "function_call":
            item.text("name", filled=True)
        self.items[index] = _Item(item.text("id", filled=True), kind, call)

    def _item(self, at: At) -> _Item:
        index = at.number("output_index")
        found = self.items.get(index)
        if found is None:
            raise Broken(f"{at.path}: for the item {index}, which was not added")
        if found.done is not None:
            raise Broken(f"{at.path}: for the item {index}, which is done")
        name = at.text("item_id", filled=True)
        if name != found.id:
            self.add("identity", f"{at.path}: item_id {name!r} of an item that was added as {found.id!r}")
        return found

    def _text(self, kind: str, at: At) -> None:
        stem, _, verb = kind.rpartition(".")
        if stem not in _TEXTS or verb not in ("delta", "done"):
            return
        item = self._item(at)
        index, field = _TEXTS[stem]
        place = at.number(index) if index else 0
        if index and place not in item.parts:
            raise Broken(f"{at.path}: for part {place}, which was not added")
        key = (stem, place)
        if verb == "delta":
            item.texts.setdefault(key, []).append(at.text("delta"))
            self.pieces += stem == "response.output_text"
            return
        whole = at.text(field)
        reported = "".join(item.texts.get(key, ()))
        if whole != reported:
            rule: Rule = "calls" if field == "arguments" else "order"
            self.add(rule, f"{at.path}: {whole[:60]!r}, but the deltas join to {reported[:60]!r}")

    def _done(self, at: At) -> None:
        index = at.number("output_index")
        found = self.items.get(index)
        if found is None or found.done is not None:
            raise Broken(f"{at.path}: the item {index} is not open")
        item = at.get("item")
        read_item(ProbeReply(), item)
        found.done = item.object()
        if item.text("id", filled=True) != found.id or (found.call and item.value["call_id"] != found.call):
            self.add("identity", f"{at.path}: the item changed its id between added and done")
        if found.kind == "function_call":
            reported = "".join(found.texts.get(("response.function_call_arguments", 0), ()))
            if reported != item.text("arguments"):
                self.add(
                    "calls", f"{at.path}: the deltas join to {reported[:60]!r}, the item has different ones"
                )

    def end(self) -> None:
        self.unless("response.created" in self.seen, "opening", "response.created is missing")
        ends = sum(self.seen[kind] for kind in _LAST)
        self.unless(ends == 1, "ending", f"the last event came {ends} times, expected once")
        for index, item in self.items.items():
            if item.done is None:
                self.add("order", f"the item {index} ({item.kind}) has no response.output_item.done")
        done = [item.done for _, item in sorted(self.items.items()) if item.done is not None]
        self.reply = self.final if self.final is not None else ProbeReply(id=self.id)
        if self.final is not None and list(map(_identity, done)) != list(map(_identity, self.final.items)):
            self.add("identity", "the last event lists other items than those that were done")
        self.reply.pieces = self.pieces


def _identity(item: Any) -> tuple[Any, ...]:
    found = plain(item)
    return found.get("id"), found.get("type"), found.get("call_id"), found.get("arguments")


def _index_of(kind: str) -> str:
    return "summary_index" if "summary" in kind else "content_index"


def _rule_of(kind: str) -> Rule:
    if kind in ("response.created", "response.in_progress"):
        return "opening"
    if kind in _LAST or kind == "error":
        return "ending"
    return "calls" if "function_call" in kind else "order"


_EFFORTS: Final = ("low", "high")
_PICTURE: Final = {
    "type": "input_image",
    "detail": "auto",
    "image_url": f"data:{PICTURE_TYPE};base64,{PICTURE}",
}


class ResponsesWire(Wire):
    name = "openai-responses"
    turns = "input"

    def body(self, model: str, question: ProbeQuestion) -> dict[str, Any]:
        made: dict[str, Any] = {"model": model, "store": False, **self._prompt(question)}
        made["max_output_tokens"] = max(16, question.most)
        if question.schema is not None:
            form = {"type": "json_schema", "name": "answer", "schema": question.schema, "strict": True}
            made["text"] = {"format": form}
        elif question.json:
            made["text"] = {"format": {"type": "json_object"}}
        if question.thinking is not None:
            made["reasoning"] = {"effort": _EFFORTS[question.thinking], "summary": "auto"}
            made["include"] = ["reasoning.encrypted_content"]
            made["max_output_tokens"] = question.most + THINKING_TOKENS
        if question.stream:
            made["stream"] = True
        return made | question.extra

    def count_body(self, model: str, question: ProbeQuestion) -> dict[str, Any] | None:
        return {"model": model, **self._prompt(question)}

    def count(self, document: Any) -> int:
        At(document).is_("object", "response.input_tokens")
        return At(document).number("input_tokens")

    def read(self, document: Any) -> ProbeReply:
        return read_response(At(document))

    def stream_reader(self, question: ProbeQuestion) -> ProbeReader:
        return _Reader()

    def _prompt(self, question: ProbeQuestion) -> dict[str, Any]:
        made: dict[str, Any] = {}
        made["input"] = [item for turn in question.turns for item in _turn(turn)]
        if question.system and question.system_parts:
            texts = [{"type": "input_text", "text": text} for text in question.system]
            system = {"type": "message", "role": "system", "content": texts}
            made["input"] = [system, *made["input"]]
        elif question.system:
            made["instructions"] = "\n".join(question.system)
        if question.tools:
            made["tools"] = [_tool(offer) for offer in question.tools]
        if question.named:
            made["tool_choice"] = {"type": "function", "name": question.named}
        elif question.choice:
            made["tool_choice"] = question.choice
        if question.parallel is not None:
            made["parallel_tool_calls"] = question.parallel
        return made


def _turn(turn: Turn) -> list[dict[str, Any]]:
    match turn:
        case User():
            if len(turn.texts) == 1 and not turn.parts and not turn.picture:
                return [{"role": "user", "content": turn.texts[0]}]
            texts: list[dict[str, Any]] = [{"type": "input_text", "text": text} for text in turn.texts]
            content = [*texts, *([_PICTURE] if turn.picture else [])]
            return [{"type": "message", "role": "user", "content": content}]
        case Said():
            return list(turn.items)
        case Called():
            said = [{"role": "assistant", "content": turn.text}] if turn.text else []
            return [*said, *map(_called, turn.calls)]
        case Results():
            return [_result(result) for result in turn.results]
        case Midway():
            return [{"role": turn.role, "content": turn.text}]


def _called(call: ProbeCall) -> dict[str, Any]:
    return {
        "type": "function_call",
        "call_id": call.id,
        "name": call.name,
        "arguments": call.arguments,
    }


def _result(result: ProbeResult) -> dict[str, Any]:
    output: Any = result.text
    if result.parts or result.picture:
        pictures = [_PICTURE] if result.picture else []
        output = [{"type": "input_text", "text": result.text}, *pictures]
    return {"type": "function_call_output", "call_id": result.call.id, "output": output}


def _tool(offer: Offer) -> dict[str, Any]:
    made: dict[str, Any] = {"type": "function", "name": offer.name, "strict": offer.strict}
    if offer.description:
        made["description"] = offer.description
    made["parameters"] = offer.schema if offer.schema is not None else None
    return made
