"""Gemini's generateContent: the probe's writer and reader, with the grammar of its streams."""

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
    ProbeResult,
    Results,
    Said,
    Turn,
    User,
)
from wireglot.probe.reply import At, Broken, ProbeFrame, ProbeReply, ProbeUsage, Stop
from wireglot.probe.wires.google import GoogleWire
from wireglot.probe.wires.wire import ProbeReader
from wireglot_core.wire.json import decode, encode_text

_STOPS: Final[dict[str, Stop]] = {"STOP": "end", "MAX_TOKENS": "length"}
_STATUSES: Final[dict[int, tuple[str, ...]]] = {
    400: ("INVALID_ARGUMENT", "FAILED_PRECONDITION", "OUT_OF_RANGE"),
    401: ("UNAUTHENTICATED",),
    403: ("PERMISSION_DENIED",),
    404: ("NOT_FOUND",),
    429: ("RESOURCE_EXHAUSTED",),
    500: ("INTERNAL",),
    503: ("UNAVAILABLE",),
}
_THINKING: Final[tuple[dict[str, Any], ...]] = (
    {"includeThoughts": True, "thinkingLevel": "LOW"},
    {"includeThoughts": True, "thinkingBudget": 1024},
)
_MODES: Final = {"auto": "AUTO", "none": "NONE", "required": "ANY"}
_PICTURE: Final = {"inlineData": {"mimeType": PICTURE_TYPE, "data": PICTURE}}


class GeminiWire(GoogleWire):
    name = "gemini"
    turns = "contents"
    settings = "generationConfig"

    def body(self, model: str, question: ProbeQuestion) -> dict[str, Any]:
        settings: dict[str, Any] = {"maxOutputTokens": question.most}
        if question.stop:
            settings["stopSequences"] = list(question.stop)
        if question.schema is not None:
            settings |= {"responseMimeType": "application/json", "responseJsonSchema": question.schema}
        elif question.json:
            settings["responseMimeType"] = "application/json"
        if question.thinking is not None:
            settings["thinkingConfig"] = _THINKING[question.thinking]
            settings["maxOutputTokens"] = question.most + THINKING_TOKENS
        extra = dict(question.extra)
        settings |= extra.pop("generationConfig", {})
        return {**self._prompt(question), "generationConfig": settings, **extra}

    def count_body(self, model: str, question: ProbeQuestion) -> dict[str, Any] | None:
        return {"contents": self._prompt(question)["contents"]}

    def count(self, document: Any) -> int:
        return At(document).number("totalTokens")

    def error(self, document: Any, status: int) -> tuple[str, str]:
        if isinstance(document, list) and len(document) == 1:
            document = document[0]  # as Google itself does without `alt=sse`
        error = At(document).get("error")
        if error.number("code") != status:
            raise error.get("code").broken(f"the HTTP status, {status}")
        kind = error.text("status", filled=True)
        if status in _STATUSES:
            error.is_("status", *_STATUSES[status])
        return kind, error.text("message", filled=True)

    def read(self, document: Any) -> ProbeReply:
        at = At(document)
        reply = ProbeReply(id=_text(at, "responseId"), model=_text(at, "modelVersion"))
        candidates = at.get("candidates").each()
        if len(candidates) != 1:
            raise at.get("candidates").broken("one candidate")
        candidate = candidates[0]
        if candidate.has("index") and candidate.number("index") != 0:
            raise candidate.get("index").broken("0")
        content = candidate.get("content")
        content.is_("role", "model")
        parts = content.get("parts").each() if content.has("parts") else []
        for part in parts:
            read_part(reply, part)
        finished(reply, candidate)
        reply.items = [{"role": "model", "parts": [part.value for part in parts]}]
        reply.usage = counted(at.get("usageMetadata"))
        return reply

    def stream_reader(self, question: ProbeQuestion) -> ProbeReader:
        return _Reader()

    def _prompt(self, question: ProbeQuestion) -> dict[str, Any]:
        made: dict[str, Any] = {"contents": [_content(turn) for turn in question.turns]}
        if question.system:
            texts = question.system if question.system_parts else ("\n".join(question.system),)
            made["systemInstruction"] = {"parts": [{"text": text} for text in texts]}
        if question.tools:
            made["tools"] = [{"functionDeclarations": [_tool(offer) for offer in question.tools]}]
        calling: dict[str, Any] = {}
        if question.named:
            calling = {"mode": "ANY", "allowedFunctionNames": [question.named]}
        elif question.choice:
            calling = {"mode": _MODES[question.choice]}
        if calling:
            made["toolConfig"] = {"functionCallingConfig": calling}
        return made


def _text(at: At, name: str) -> str:
    """An optional text."""
    return at.text(name) if at.has(name) else ""


def read_part(reply: ProbeReply, part: At) -> None:
    state = _text(part, "thoughtSignature")
    if part.has("thought") and not part.has("functionCall"):
        reply.add_thought(part.text("text"), state)
        return
    reply.states.append(state)
    if part.has("functionCall"):
        call = part.get("functionCall")
        arguments = call.get("args").object() if call.has("args") else {}
        reply.add_call(_text(call, "id"), call.text("name", filled=True), encode_text(arguments))
    elif part.has("text"):
        text = part.text("text")
        reply.texts.append(text)
        reply.pieces += bool(text)


def finished(reply: ProbeReply, candidate: At) -> None:
    reply.stop_word = candidate.text("finishReason", filled=True)
    if reply.stop_word != reply.stop_word.upper():
        raise candidate.get("finishReason").broken("an upper-case word")
    reply.stop = _STOPS.get(reply.stop_word, "other")
    if reply.calls and reply.stop == "end":
        reply.stop = "tool"


def counted(usage: At) -> ProbeUsage:
    """Thoughts are counted in addition to the answer's tokens; counts of 0 are omitted."""
    thoughts = usage.maybe_number("thoughtsTokenCount")
    return ProbeUsage(
        input=usage.number("promptTokenCount") + (usage.maybe_number("toolUsePromptTokenCount") or 0),
        output=(usage.maybe_number("candidatesTokenCount") or 0) + (thoughts or 0),
        cached=usage.maybe_number("cachedContentTokenCount"),
        reasoning=thoughts,
        total=usage.number("totalTokenCount"),
    )


def _content(turn: Turn) -> dict[str, Any]:
    match turn:
        case User():
            texts: list[dict[str, Any]] = [{"text": text} for text in turn.texts]
            return {"role": "user", "parts": [*texts, *([_PICTURE] if turn.picture else [])]}
        case Said():
            return turn.items[0]
        case Called():
            said: list[dict[str, Any]] = [{"text": turn.text}] if turn.text else []
            return {"role": "model", "parts": [*said, *map(_called, turn.calls)]}
        case Results():
            return {"role": "user", "parts": [_result(result) for result in turn.results]}
        case Midway():
            return {"role": "user", "parts": [{"text": turn.text}]}


def _called(call: ProbeCall) -> dict[str, Any]:
    made: dict[str, Any] = {"name": call.name, "args": decode(call.arguments.encode())}
    return {"functionCall": made | ({"id": call.id} if call.id else {})}


def _result(result: ProbeResult) -> dict[str, Any]:
    made: dict[str, Any] = {"name": result.call.name}
    if result.call.id:
        made["id"] = result.call.id
    made["response"] = {"error" if result.error else "output": result.text}
    if result.picture:
        made["parts"] = [_PICTURE]
    return {"functionResponse": made}


def _tool(offer: Offer) -> dict[str, Any]:
    made: dict[str, Any] = {"name": offer.name}
    if offer.description:
        made["description"] = offer.description
    if offer.schema is not None:
        # The older field accepts only a part of JSON Schema; more servers know it.
        plain = "additionalProperties" not in offer.schema and "$schema" not in offer.schema
        made["parameters" if plain else "parametersJsonSchema"] = offer.schema
    return made


class _Reader(ProbeReader):
    def __init__(self) -> None:
        super().__init__()
        self.parts: list[dict[str, Any]] = []
        self.chunks = 0
        self.ends = 0

    def frame(self, frame: ProbeFrame, number: int) -> None:
        if frame.event or frame.lines:
            line = f"event: {frame.event}" if frame.event else frame.lines[0]
            self.add(
                "frames", f"frame {number}: the line {line[:60]!r}: Google's SDK raises on anything but data"
            )
        if frame.data == "[DONE]":
            self.add("ending", f"frame {number}: [DONE], on which Google's SDK raises")
            return
        if not frame.data:
            return
        self.unless(frame.spaced, "frames", f"frame {number}: no space behind `data:`")
        document = self.document(frame, number)
        if document is None:
            return
        try:
            self._chunk(At(document, f"frame {number}"))
        except Broken as broken:
            self.add("order" if self.chunks else "opening", str(broken))
        self.chunks += 1

    def _chunk(self, at: At) -> None:
        reply = self.reply
        if at.has("error"):
            self.add("ending", f"{at.path}: an error: {at.value['error']}")
            return
        if not self.chunks:
            reply.id, reply.model = _text(at, "responseId"), _text(at, "modelVersion")
            self.unless(bool(reply.id), "opening", f"{at.path}: responseId is missing")
        elif _text(at, "responseId") != reply.id or _text(at, "modelVersion") != reply.model:
            self.add("identity", f"{at.path}: responseId or modelVersion is not that of the first chunk")
        if at.has("usageMetadata"):
            self._usage(at.get("usageMetadata"))
        for candidate in at.get("candidates").each() if at.has("candidates") else []:
            if candidate.has("index") and candidate.number("index") != 0:
                self.add("indexes", f"{candidate.path}: index {candidate.value['index']} of one candidate")
            self._candidate(candidate)

    def _candidate(self, candidate: At) -> None:
        if candidate.has("content"):
            content = candidate.get("content")
            content.is_("role", "model")
            for part in content.get("parts").each() if content.has("parts") else []:
                if self.ends and (part.value.get("text") or part.has("functionCall")):
                    self.add("ending", f"{part.path}: content after the finishReason")
                self._part(part)
        if candidate.has("finishReason"):
            self.ends += 1
            finished(self.reply, candidate)

    def _part(self, part: At) -> None:
        try:
            read_part(self.reply, part)
        except Broken as broken:
            self.add("calls" if part.has("functionCall") else "order", str(broken))
        self.parts.append(part.object())

    def _usage(self, usage: At) -> None:
        if usage.has("totalTokenCount"):
            try:
                self.reply.usage = counted(usage)
            except Broken as broken:
                self.add("usage", str(broken))

    def end(self) -> None:
        self.unless(self.chunks > 0, "opening", "the stream has no chunk")
        self.unless(self.ends == 1, "ending", f"finishReason was reported {self.ends} times, expected once")
        self.unless(self.reply.usage is not None, "usage", "no chunk has the usage")
        self.reply.items = [{"role": "model", "parts": self.parts}]
