"""Ollama's `/api/chat`: the probe's writer and reader, with the grammar of its streams of JSON lines."""

from __future__ import annotations

from typing import Any, Final

from wireglot.probe.question import (
    PICTURE,
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
from wireglot.probe.reply import At, Broken, ProbeFrame, ProbeReply, ProbeUsage, Stop
from wireglot.probe.wires.wire import ProbeReader, Wire
from wireglot_core.wire.json import decode, encode_text

_STOPS: Final[dict[str, Stop]] = {
    "stop": "end",
    "length": "length",
    "tool_calls": "tool",
    "load": "other",
    "unload": "other",
}
_THINKING: Final = (True, "low")
"""Most models accept a boolean; those with levels (gpt-oss) accept a word too."""
_LATEST: Final = ":latest"


class OllamaWire(Wire):
    name = "ollama"
    settings = "options"
    stream_type = "application/x-ndjson"
    has_answer_ids = False
    has_call_ids = False
    has_tool_choice = False
    requires_turns = False

    def body(self, model: str, question: ProbeQuestion) -> dict[str, Any]:
        options: dict[str, Any] = {"num_predict": question.most}
        if question.stop:
            options["stop"] = list(question.stop)
        messages: list[dict[str, Any]] = [{"role": "system", "content": text} for text in question.system]
        for turn in question.turns:
            messages += _turn(turn)
        made: dict[str, Any] = {"model": model, "messages": messages, "stream": question.stream}
        if question.tools:
            made["tools"] = [_tool(offer) for offer in question.tools]
        if question.schema is not None:
            made["format"] = question.schema
        elif question.json:
            made["format"] = "json"
        if question.thinking is not None:
            made["think"] = _THINKING[question.thinking]
            options["num_predict"] = question.most + THINKING_TOKENS
        extra = dict(question.extra)
        options |= extra.pop("options", {})
        return {**made, "options": options, **extra}

    def frames(self, body: bytes) -> list[ProbeFrame]:
        lines = body.decode("utf-8", "replace").split("\n")
        if not lines[-1].strip():
            lines.pop()  # the last line is terminated
        return [_frame(line.strip()) for line in lines]

    def error(self, document: Any, status: int) -> tuple[str, str]:
        """Only the status distinguishes kinds of errors."""
        return "error", At(document).text("error", filled=True)

    def models(self, document: Any) -> list[str]:
        names = []
        for entry in At(document).get("models").each():
            name = entry.text("name", filled=True)
            entry.text("model", filled=True)
            entry.text("modified_at", filled=True)
            entry.number("size")
            entry.text("digest")
            entry.get("details").object()
            names += [name] if name == name.removesuffix(_LATEST) else [name, name.removesuffix(_LATEST)]
        return names

    def read(self, document: Any) -> ProbeReply:
        at = At(document)
        reply = ProbeReply(model=at.text("model", filled=True))
        at.text("created_at", filled=True)
        message = at.get("message")
        message.is_("role", "assistant")
        reply.texts.append(message.text("content"))
        if message.has("thinking"):
            reply.add_thought(message.text("thinking"))
        for call in message.get("tool_calls").each() if message.has("tool_calls") else ():
            reply.calls.append(read_call(call))
        finished(reply, at)
        reply.items = [message.object()]
        reply.usage = counted(at)
        return reply

    def stream_reader(self, question: ProbeQuestion) -> ProbeReader:
        return _Reader()


def read_call(call: At) -> ProbeCall:
    """Servers before 0.12.10 send no ids."""
    function = call.get("function")
    name, arguments = function.text("name", filled=True), function.get("arguments").object()
    return ProbeCall(call.text("id") if call.has("id") else "", name, encode_text(arguments))


def finished(reply: ProbeReply, at: At) -> None:
    if not at.boolean("done"):
        raise at.get("done").broken("true")
    reply.stop_word = at.is_("done_reason", *_STOPS)
    reply.stop = _STOPS[reply.stop_word]
    if reply.calls and reply.stop == "end":
        reply.stop = "tool"


def counted(at: At) -> ProbeUsage:
    """Counts of 0 are omitted, as for a cached prompt."""
    return ProbeUsage(input=at.maybe_number("prompt_eval_count") or 0, output=at.number("eval_count"))


def _frame(line: str) -> ProbeFrame:
    return ProbeFrame("", line) if line.startswith("{") else ProbeFrame("", "", (line,))


def _turn(turn: Turn) -> list[dict[str, Any]]:
    match turn:
        case User():
            message: dict[str, Any] = {"role": "user", "content": "\n".join(turn.texts)}
            return [message | ({"images": [PICTURE]} if turn.picture else {})]
        case Said():
            return list(turn.items)
        case Called():
            said: dict[str, Any] = {"role": "assistant", "content": turn.text}
            return [said | ({"tool_calls": list(map(_called, turn.calls))} if turn.calls else {})]
        case Results():
            return [_result(result) for result in turn.results]
        case Midway():
            return [{"role": turn.role, "content": turn.text}]


def _called(call: ProbeCall) -> dict[str, Any]:
    function = {"name": call.name, "arguments": decode(call.arguments.encode())}
    return {**({"id": call.id} if call.id else {}), "function": function}


def _result(result: ProbeResult) -> dict[str, Any]:
    made: dict[str, Any] = {"role": "tool", "content": result.text, "tool_name": result.call.name}
    if result.call.id:
        made["tool_call_id"] = result.call.id
    if result.picture:
        made["images"] = [PICTURE]
    return made


def _tool(offer: Offer) -> dict[str, Any]:
    made: dict[str, Any] = {"name": offer.name}
    if offer.description:
        made["description"] = offer.description
    # `parameters` is not optional in the type of the server (`api.ToolFunction`).
    made["parameters"] = {"type": "object", "properties": {}} if offer.schema is None else offer.schema
    return {"type": "function", "function": made}


class _Reader(ProbeReader):
    def __init__(self) -> None:
        super().__init__()
        self.lines = 0
        self.ends = 0
        self.indexes: list[int | None] = []
        self.calls: list[dict[str, Any]] = []
        self.thoughts: list[str] = []

    def frame(self, frame: ProbeFrame, number: int) -> None:
        if not frame.data:
            line = frame.lines[0]
            what = f"not a JSON object: {line[:80]!r}" if line else "empty: the Python SDK decodes every line"
            self.add("frames", f"line {number} is {what}")
            return
        if len(frame.data.splitlines()) > 1:
            self.add(
                "frames", f"line {number} contains a character that the Python SDK treats as a line break"
            )
        document = self.document(frame, number)
        if document is None:
            return
        if self.ends:
            self.add("ending", f"line {number}: data after the line with done")
        try:
            self._line(At(document, f"line {number}"))
        except Broken as broken:
            self.add("order" if self.lines else "opening", str(broken))
        self.lines += 1

    def _line(self, at: At) -> None:
        if at.has("error"):
            self.add("ending", f"{at.path}: an error: {at.value['error']}")
            return
        self._identity(at)
        message = at.get("message")
        text = message.text("content")
        self.reply.texts.append(text)
        self.reply.pieces += bool(text)
        if message.has("thinking"):
            self.thoughts.append(message.text("thinking"))
        for call in message.get("tool_calls").each() if message.has("tool_calls") else ():
            self._call(call)
        if at.boolean("done"):
            self._done(at)
        message.is_("role", "assistant")  # last: its text is read all the same

    def _identity(self, at: At) -> None:
        """Each line has its own time."""
        model = at.text("model", filled=True)
        at.text("created_at", filled=True)
        if not self.lines:
            self.reply.model = model
        elif model != self.reply.model:
            self.add("identity", f"{at.path}: model was {self.reply.model!r} and now is {model!r}")

    def _call(self, call: At) -> None:
        try:
            found = read_call(call)
            self.indexes.append(call.get("function").maybe_number("index"))
        except Broken as broken:
            self.add("calls", str(broken))
            return
        self.reply.calls.append(found)
        self.calls.append(call.object())

    def _done(self, at: At) -> None:
        self.ends += 1
        try:
            finished(self.reply, at)
        except Broken as broken:
            self.add("ending", str(broken))
        try:
            self.reply.usage = counted(at)
        except Broken as broken:
            self.add("usage", str(broken))

    def end(self) -> None:
        self.unless(self.lines > 0, "opening", "the stream has no line")
        self.unless(self.ends == 1, "ending", f"done was reported {self.ends} times, expected once")
        self.reply.has_indexes = any(index is not None for index in self.indexes)
        if self.reply.has_indexes:
            # Servers before 0.12.6 omit an index of 0.
            found = [index or 0 for index in self.indexes]
            self.unless(found == list(range(len(found))), "indexes", f"the calls have the indexes {found}")
        if thought := "".join(self.thoughts):
            self.reply.add_thought(thought)
        self.reply.items = [self._message()]

    def _message(self) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": self.reply.text}
        if thought := "".join(self.thoughts):
            message["thinking"] = thought
        if self.calls:
            message["tool_calls"] = self.calls
        return message
