"""OpenAI Chat Completions: the probe's writer and reader, with the grammar of its streams."""

from __future__ import annotations

from typing import Any, Final

from wireglot.probe.question import (
    PICTURE,
    PICTURE_TYPE,
    THINKING_TOKENS,
    Called,
    Midway,
    Offer,
    ProbeCall,
    ProbeQuestion,
    Results,
    Said,
    Turn,
    User,
)
from wireglot.probe.reply import At, Broken, ProbeFrame, ProbeReply, ProbeUsage, Stop
from wireglot.probe.wires.wire import ProbeReader, Wire, check_object

_STOPS: Final[dict[str, Stop]] = {
    "stop": "end",
    "length": "length",
    "tool_calls": "tool",
    "content_filter": "other",
    "function_call": "other",
}
_EFFORTS: Final = ("low", "high")
_THOUGHTS: Final = ("reasoning_content", "reasoning")
_PICTURE: Final = {"type": "image_url", "image_url": {"url": f"data:{PICTURE_TYPE};base64,{PICTURE}"}}


class ChatWire(Wire):
    name = "openai-chat"

    def body(self, model: str, question: ProbeQuestion) -> dict[str, Any]:
        made: dict[str, Any] = {"model": model, "messages": self._messages(question)}
        made["max_completion_tokens"] = question.most
        if question.tools:
            made["tools"] = [_tool(offer) for offer in question.tools]
        if question.named:
            made["tool_choice"] = {"type": "function", "function": {"name": question.named}}
        elif question.choice:
            made["tool_choice"] = question.choice
        if question.parallel is not None:
            made["parallel_tool_calls"] = question.parallel
        if question.stop:
            made["stop"] = list(question.stop)
        if question.schema is not None:
            named = {"name": "answer", "schema": question.schema, "strict": True}
            made["response_format"] = {"type": "json_schema", "json_schema": named}
        elif question.json:
            made["response_format"] = {"type": "json_object"}
        if question.thinking is not None:
            made["reasoning_effort"] = _EFFORTS[question.thinking]
            made["max_completion_tokens"] = question.most + THINKING_TOKENS
        if question.stream:
            made["stream"] = True
            if question.usage:
                made["stream_options"] = {"include_usage": True}
        return made | question.extra

    def read(self, document: Any) -> ProbeReply:
        at = At(document)
        at.is_("object", "chat.completion")
        reply = ProbeReply(id=at.text("id", filled=True), model=at.text("model", filled=True))
        at.number("created")
        choices = at.get("choices").each()
        if len(choices) != 1:
            raise at.get("choices").broken("one choice")
        choice = choices[0]
        if choice.number("index") != 0:
            raise choice.get("index").broken("0")
        reply.stop_word = choice.is_("finish_reason", *_STOPS)
        reply.stop = _STOPS[reply.stop_word]
        message = choice.get("message")
        message.is_("role", "assistant")
        choice.nullable("logprobs", reply)
        message.nullable("refusal", reply)
        content = message.nullable("content", reply)
        if content.value is not None:
            reply.texts.append(content.text())
        for call in message.get("tool_calls").each() if message.has("tool_calls") else ():
            reply.calls.append(_call(call))
        for field in _THOUGHTS:
            if message.has(field):
                reply.add_thought(message.text(field))
                break
        reply.items = [message.object()]
        reply.usage = counted(at.get("usage"))
        return reply

    def stream_reader(self, question: ProbeQuestion) -> ProbeReader:
        return _Reader(asked_usage=question.usage)

    def _messages(self, question: ProbeQuestion) -> list[dict[str, Any]]:
        made: list[dict[str, Any]] = []
        if question.system_parts:
            made.append({"role": "system", "content": [{"type": "text", "text": t} for t in question.system]})
        else:
            made += [{"role": "system", "content": text} for text in question.system]
        for turn in question.turns:
            made += _turn(turn)
        return made


def counted(usage: At) -> ProbeUsage:
    prompt = usage.get("prompt_tokens_details") if usage.has("prompt_tokens_details") else At({})
    answer = usage.get("completion_tokens_details") if usage.has("completion_tokens_details") else At({})
    return ProbeUsage(
        input=usage.number("prompt_tokens"),
        output=usage.number("completion_tokens"),
        cached=prompt.maybe_number("cached_tokens"),
        reasoning=answer.maybe_number("reasoning_tokens"),
        total=usage.number("total_tokens"),
    )


def _turn(turn: Turn) -> list[dict[str, Any]]:
    match turn:
        case User():
            if len(turn.texts) == 1 and not turn.parts and not turn.picture:
                return [{"role": "user", "content": turn.texts[0]}]
            texts: list[dict[str, Any]] = [{"type": "text", "text": text} for text in turn.texts]
            return [{"role": "user", "content": [*texts, *([_PICTURE] if turn.picture else [])]}]
        case Said():
            return list(turn.items)
        case Called():
            message: dict[str, Any] = {"role": "assistant", "content": turn.text or None}
            if turn.calls:
                message["tool_calls"] = list(map(_called, turn.calls))
            return [message]
        case Results():
            return [
                {
                    "role": "tool",
                    "tool_call_id": result.call.id,
                    "content": [{"type": "text", "text": result.text}] if result.parts else result.text,
                }
                for result in turn.results
            ]
        case Midway():
            return [{"role": turn.role, "content": turn.text}]


def _called(call: ProbeCall) -> dict[str, Any]:
    function = {"name": call.name, "arguments": call.arguments}
    return {"id": call.id, "type": "function", "function": function}


def _tool(offer: Offer) -> dict[str, Any]:
    made: dict[str, Any] = {"name": offer.name}
    if offer.description:
        made["description"] = offer.description
    if offer.schema is not None:
        made["parameters"] = offer.schema
    if offer.strict:
        made["strict"] = True
    return {"type": "function", "function": made}


def _call(call: At) -> ProbeCall:
    call.is_("type", "function")
    function = call.get("function")
    arguments = function.get("arguments").text()
    check_object(arguments, function.path)
    return ProbeCall(call.text("id", filled=True), function.text("name", filled=True), arguments)


class _Reader(ProbeReader):
    def __init__(self, *, asked_usage: bool) -> None:
        super().__init__()
        self.asked_usage = asked_usage
        self.calls: list[dict[str, str]] = []
        self.arguments: list[list[str]] = []
        self.chunks = 0
        self.done = 0
        self.finished = 0
        self.roles = 0
        self.usages = 0
        self.created: int | None = None
        self.thoughts: list[str] = []

    def frame(self, frame: ProbeFrame, number: int) -> None:
        if not frame.data and frame.lines:
            return  # a comment
        if self.done:
            self.add("ending", f"frame {number}: data after [DONE]")
        if frame.data == "[DONE]":
            self.done += 1
            return
        if frame.event:
            self.add("frames", f"frame {number}: `event: {frame.event}`: Chat's frames have no names")
        document = self.document(frame, number)
        if document is None:
            return
        try:
            self._chunk(At(document, f"frame {number}"))
        except Broken as broken:
            self.add("order" if self.chunks else "opening", str(broken))
        self.chunks += 1

    def _chunk(self, at: At) -> None:
        if at.has("error"):
            self.add("ending", f"{at.path}: an error: {at.value['error']}")
            return
        self._identity(at)
        at.is_("object", "chat.completion.chunk")
        if at.has("usage"):
            self.usages += 1
            if not self.asked_usage:
                self.add("usage", f"{at.path}: usage, which was not requested")
            self.reply.usage = counted(at.get("usage"))
            if self.finished == 0:
                self.add("usage", f"{at.path}: usage before the answer is finished")
        for choice in at.get("choices").each():
            self._choice(choice)

    def _identity(self, at: At) -> None:
        try:
            name, model = at.text("id", filled=True), at.text("model", filled=True)
            created = at.number("created")
        except Broken as broken:  # its text can be read all the same
            self.add("identity", str(broken))
            return
        if not self.chunks:
            self.reply.id, self.reply.model, self.created = name, model, created
        for field, was, found in (
            ("id", self.reply.id, name),
            ("model", self.reply.model, model),
            ("created", self.created, created),
        ):
            if was != found:
                self.add("identity", f"{at.path}: {field} was {was!r} and now is {found!r}")

    def _choice(self, choice: At) -> None:
        if choice.number("index") != 0:
            self.add("indexes", f"{choice.path}: index {choice.value['index']} of one choice")
        delta = choice.get("delta")
        if delta.has("role"):
            delta.is_("role", "assistant")
            self.roles += 1
        elif self.roles == 0 and delta.object():
            self.add("opening", f"{choice.path}: the first delta has no role")
            self.roles += 1
        reported = delta.has("content") or delta.has("tool_calls")
        if reported and self.finished and (delta.value.get("content") or delta.has("tool_calls")):
            self.add("ending", f"{choice.path}: content after the finish_reason")
        if delta.has("content"):
            text = delta.text("content")
            self.reply.texts.append(text)
            self.reply.pieces += bool(text)
        for field in _THOUGHTS:
            if delta.has(field):
                self.thoughts.append(delta.text(field))
                break
        if delta.has("tool_calls"):
            for call in delta.get("tool_calls").each():
                self._call(call)
        word = choice.nullable("finish_reason", self.reply)
        if word.value is not None:
            self.finished += 1
            self.reply.stop_word = choice.is_("finish_reason", *_STOPS)
            self.reply.stop = _STOPS[self.reply.stop_word]

    def _call(self, call: At) -> None:
        try:
            index = call.number("index")
        except Broken as broken:
            self.add("indexes", f"{broken}: the SDK joins the pieces by it")
            return
        if index > len(self.calls):
            self.add("indexes", f"{call.path}: index {index}, expected {len(self.calls)}: no gaps")
            index = len(self.calls)
        function = call.get("function") if call.has("function") else At({}, call.path)
        if index == len(self.calls):
            begun = {"id": "", "name": ""}
            self.calls.append(begun)
            self.arguments.append([])
            try:
                begun["id"] = call.text("id", filled=True)
                begun["name"] = function.text("name", filled=True)
                call.is_("type", "function")
            except Broken as broken:
                self.add("calls", f"{broken}: in the first piece of a call")
        else:
            for at, name in ((call, "id"), (function, "name")):
                if at.has(name) and at.value[name]:
                    self.add(
                        "calls",
                        f"{at.path}.{name}: reported again in a later piece: the SDK joins such values",
                    )
        if function.has("arguments"):
            self.arguments[index].append(function.text("arguments"))

    def end(self) -> None:
        self.unless(self.done == 1, "ending", f"`data: [DONE]` came {self.done} times, expected once")
        self.unless(
            self.finished == 1, "ending", f"finish_reason was reported {self.finished} times, expected once"
        )
        if self.asked_usage:
            self.unless(self.usages > 0, "usage", "usage was requested (include_usage) and never reported")
        for number, (call, pieces) in enumerate(zip(self.calls, self.arguments, strict=True)):
            arguments = "".join(pieces)
            try:
                check_object(arguments, f"call {number}")
            except Broken as broken:
                self.add("calls", str(broken))
            self.reply.add_call(call["id"], call["name"], arguments)
        if thought := "".join(self.thoughts):
            self.reply.add_thought(thought)
        self.reply.items = [self._message()]

    def _message(self) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": self.reply.text or None}
        if thought := "".join(self.thoughts):
            message["reasoning_content"] = thought
        if self.calls:
            message["tool_calls"] = list(map(_called, self.reply.calls))
        return message
