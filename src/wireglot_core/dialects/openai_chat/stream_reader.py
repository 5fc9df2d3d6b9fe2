"""Parses an upstream's chunks into events.

Only the rough order of a Chat stream is reliable, so this reader holds back what may change: Start until a
chunk has a choice (Azure begins with one that has none, no id and no model), a call until its name is known,
Finish until `[DONE]` or the end (the usage comes after the finish reason).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

from wireglot_core.dialects.answer_reader import LAST_BLANK_LINE, AnswerReader, json_or_text
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.faults import TRUNCATED, broken
from wireglot_core.dialects.openai_chat.errors import parse_error
from wireglot_core.dialects.openai_chat.extras import NAME
from wireglot_core.dialects.openai_chat.outcome import (
    is_vague,
    matched_sequence,
    parse_logprobs,
    parse_stop,
    parse_tier,
    parse_usage,
)
from wireglot_core.dialects.openai_chat.repeated_calls import is_repeated
from wireglot_core.dialects.openai_chat.response import parse_response
from wireglot_core.dialects.openai_chat.stream_parts import Assembly
from wireglot_core.dialects.repeated_chunks import Place, RepeatedChunks
from wireglot_core.dialects.unknown_fields import is_hollow
from wireglot_core.dialects.usage_checks import joined_usage
from wireglot_core.ir.content import Extra, TokenLogprob
from wireglot_core.ir.errors import ApiError, UpstreamFault
from wireglot_core.ir.outcome import Candidate, Usage
from wireglot_core.ir.stream import (
    Event,
    Finish,
    ForeignEvent,
    OtherAnswer,
    Start,
    StreamFailed,
    UsageReport,
    fold,
    unfold,
)
from wireglot_core.wire.json import decode
from wireglot_core.wire.sse import Frame, SseDecoder

_TEXTS: Final = ("content", "reasoning_content", "reasoning")
_PADDING: Final = "obfuscation"
"""OpenAI's padding, which differs in every chunk."""
_CALL: Final = frozenset({"index", "id", "type", "function"})
_FUNCTION: Final = frozenset({"name", "arguments"})


class ChatChunks(RepeatedChunks):
    __slots__ = ("_parts",)

    varying = re.compile(
        rb'"(?:content|reasoning_content|reasoning|arguments|obfuscation)"[ \t]*:[ \t]*"((?:[^"\\]|\\.)+)"'
    )

    def __init__(self, most: int, parts: Assembly) -> None:
        super().__init__(most)
        self._parts = parts

    def text_place(self, document: dict[str, Any]) -> Place | None:
        choices = document.get("choices")
        if type(choices) is not list or len(choices) != 1 or document.get("usage") is not None:
            return None
        choice = choices[0]
        if type(choice) is not dict or type(delta := choice.get("delta")) is not dict:
            return None
        if choice.get("finish_reason") is not None or choice.get("usage") is not None:
            return None
        fields = [
            key
            for key, value in delta.items()
            if value is not None and key not in ("role", _PADDING) and not (value == "" and key in _TEXTS)
        ]
        if len(fields) != 1:
            return None
        if fields[0] in _TEXTS:
            return (delta, fields[0]) if type(delta[fields[0]]) is str else None
        return _call_place(delta["tool_calls"]) if fields[0] == "tool_calls" else None

    def beside(self, document: dict[str, Any]) -> Iterable[Place]:
        """Padding, which has no meaning."""
        choice = document["choices"][0]
        levels = (document, choice, choice["delta"])
        return [(level, _PADDING) for level in levels if type(level.get(_PADDING)) is str]

    def said_of(self, index: int, holder: dict[str, Any]) -> list[str] | None:
        return self._parts.arguments_of(index)

    def tells_again(self, said: list[str], text: str) -> bool:
        return is_repeated(said, text)


def _call_place(calls: Any) -> Place | None:
    """The place of a piece of arguments in a chunk that has nothing else of its call, whose name was sent
    before."""
    if type(calls) is not list or len(calls) != 1 or type(calls[0]) is not dict:
        return None
    call = calls[0]
    if not call.keys() <= _CALL or call.get("type") not in (None, "", "function"):
        return None
    function = call.get("function")
    if type(function) is not dict or not function.keys() <= _FUNCTION or function.get("name"):
        return None
    return (function, "arguments") if type(function.get("arguments")) is str else None


_CHUNK = frozenset(
    {"id", "object", "created", "model", "choices", "usage", "service_tier", "obfuscation", "p"}
)
_CHOICE = frozenset(
    {"index", "delta", "finish_reason", "logprobs", "message", "usage", "text", "obfuscation"}
)
_DONE = b"[DONE]"


class ChatReader(AnswerReader):
    def __init__(self, context: Context) -> None:
        self._context = context
        self._parts = Assembly(context)
        repeated = ChatChunks(context.max_frame, self._parts)
        super().__init__(SseDecoder(context.max_frame), repeated)
        self._started = False
        self._id = ""
        self._model = ""
        self._created = 0
        self._tier = ""
        self._fields: dict[str, Any] = {}
        self._reported: dict[str, Any] = {}  # the fields Start has reported
        self._usage: dict[str, Any] = {}
        self._finish: str | None = None
        self._matched: str | None = None
        self._others: dict[int, list[dict[str, Any]]] = {}  # fragments of further answers (`n`)

    def _read_end(self, out: list[Event]) -> None:
        self._read_stream(LAST_BLANK_LINE, out)
        if self._finish and not self._ended:  # some send "" in every chunk for none
            self._close(out)

    def _read_document(self, document: bytes, out: list[Event]) -> None:
        """A body without frames: an error, or an answer that was not streamed."""
        body = json_or_text(document)
        error = parse_error(body, 0)
        if error is None and type(body) is dict:
            out += unfold(parse_response(body, self._context))
            self._ended = True
        else:
            self._fail(error or broken("no stream"), out)

    # Frames

    def _frame(self, frame: Frame, out: list[Event]) -> None:
        data = frame.data
        if data[:1] != b"{":
            data = data.strip()
            if data == _DONE:
                if self._started or self._finish is not None or self._id:
                    self._close(out)
                else:
                    self._fail(TRUNCATED, out)
                return
            if not data:
                return
        chunk = decode(data)
        if type(chunk) is dict:
            self._chunk(chunk, frame.event, out)
        elif chunk is not None:
            self._fail(broken("expected an object"), out)

    def _chunk(self, chunk: dict[str, Any], event: str, out: list[Event]) -> None:
        choices = chunk.get("choices")
        if not choices or type(choices) is not list:
            self._bare(chunk, event, out)
            return
        if "error" in chunk and self._failed(chunk, out):
            return
        if not self._id or not self._model:
            self._head(chunk)
        if not chunk.keys() <= _CHUNK:
            self._note(chunk, _CHUNK, "")
        if not self._started:
            self._start(chunk, out)
        for choice in choices:
            if type(choice) is not dict:
                continue
            if type(index := choice.get("index")) is int and index:
                self._others.setdefault(index, []).append(choice)
            elif not self._choice(choice, chunk, out):
                return
        usage = chunk.get("usage")
        if usage is not None:
            self._use(usage, out)

    def _bare(self, chunk: dict[str, Any], event: str, out: list[Event]) -> None:
        """A chunk without choices: an error, the usage, or a server's extension."""
        if self._failed(chunk, out):
            return
        self._head(chunk)
        unknown = not chunk.keys() <= _CHUNK
        if unknown and "choices" in chunk:
            self._note(chunk, _CHUNK, "")
        elif unknown and event not in ("", "message") and self._started:
            out.append(ForeignEvent(NAME, event, chunk))
        tier = chunk.get("service_tier")  # Groq sends it next to the usage
        if tier is not None and type(tier) is str:
            self._tier = parse_tier(tier)
        usage = chunk.get("usage")
        if usage is not None:
            self._use(usage, out)

    def _failed(self, chunk: dict[str, Any], out: list[Event]) -> bool:
        if not chunk.get("error") and "choices" in chunk:
            return False
        error = parse_error(chunk, 0)
        if error is None:
            return False
        self._fail(error, out)
        return True

    def _head(self, chunk: dict[str, Any]) -> None:
        if not self._id and type(value := chunk.get("id")) is str:
            self._id = value
        if not self._model and type(value := chunk.get("model")) is str:
            self._model = value
        if not self._created and type(value := chunk.get("created")) is int:
            self._created = value

    def _note(self, value: dict[str, Any], known: frozenset[str], level: str) -> None:
        fields = self._fields
        for key, item in value.items():  # in the order of the wire: output must not depend on hashes
            if key not in known and item is not None and not is_hollow(item):
                fields[level + key] = item

    def _start(self, chunk: dict[str, Any], out: list[Event]) -> None:
        self._use(chunk.get("usage"), out)  # before the start, so that it does not count as a separate report
        self._started = True
        tier = chunk.get("service_tier")
        if type(tier) is str:
            self._tier = parse_tier(tier)
        self._reported = dict(self._fields)
        self._parts.begin(self._id, self._model)
        extra = Extra(NAME, self._reported, {"native": True})
        usage = parse_usage(self._usage) if self._usage else None
        out.append(Start(self._id, self._model, self._created, usage, self._tier, extra=extra))

    # Choices

    def _choice(self, choice: dict[str, Any], chunk: dict[str, Any], out: list[Event]) -> bool:
        delta = choice.get("delta")
        logprobs: tuple[TokenLogprob, ...] = ()
        raw_logprobs = choice.get("logprobs")
        if raw_logprobs is not None:
            logprobs = self._logprobs(raw_logprobs)
        if type(delta) is dict:
            if self._finish and (delta.get("content") or delta.get("tool_calls")):
                self._flawed("content_after_end")
            self._parts.delta(delta, logprobs, out)
        elif type(message := choice.get("message")) is dict and not self._parts.count:
            self._parts.delta(message, logprobs, out)
        finish = choice.get("finish_reason")
        if type(finish) is str:
            if finish == "error" or choice.get("error"):
                error = parse_error({"choices": [choice]}, 0)
                self._fail(error or ApiError("server", "the upstream stopped with an error"), out)
                return False
            if finish and self._finish:
                self._flawed("second_end")
            # Some servers send two finish reasons; a first one more specific than "stop" is kept.
            if not self._finish or is_vague(self._finish):
                self._finish = finish or self._finish or ""
        if not choice.keys() <= _CHOICE:
            self._note(choice, _CHOICE, "choice.")
            self._matched = matched_sequence(choice) or self._matched
        usage = choice.get("usage")  # Kimi
        if usage is not None:
            self._use(usage, out)
        tier = chunk.get("service_tier")
        if tier is not None and type(tier) is str:
            self._tier = parse_tier(tier)
        return True

    def _logprobs(self, value: Any) -> tuple[TokenLogprob, ...]:
        if type(value) is not dict:
            return ()
        tokens = [parse_logprobs(value.get(key)) or () for key in ("content", "refusal")]
        return tokens[0] + tokens[1]

    def _use(self, usage: Any, out: list[Event]) -> None:
        if type(usage) is not dict or not usage:
            return
        merged = joined_usage(self._usage, {key: value for key, value in usage.items() if value is not None})
        if merged != self._usage:
            self._usage = merged
            if self._started:
                out.append(UsageReport(parse_usage(merged)))

    # Ends

    def _close(self, out: list[Event]) -> None:
        self._ended = True
        if not self._parts.is_in_order:
            self._flawed("index_not_growing")
        if not self._started:
            self._start({}, out)
        self._parts.close(out)
        stop = parse_stop(self._finish, self._parts.called, self._parts.refused, self._matched)
        self._fields.update(self._parts.unknown)
        out += [self._other(number, self._others[number]) for number in sorted(self._others)]
        extra = None if self._fields == self._reported else Extra(NAME, self._fields, {"native": True})
        out.append(Finish(stop, self._total(), self._tier, extra))

    def _other(self, number: int, fragments: list[dict[str, Any]]) -> OtherAnswer:
        """A further answer, parsed as if it were the only one. Minted ids are separate."""
        reader = ChatReader(self._context)
        out: list[Event] = []
        head = {"id": f"{self._id}#{number}", "model": self._model}
        for choice in fragments:
            if not reader._ended:
                reader._chunk({**head, "choices": [{**choice, "index": 0}]}, "", out)
        if not reader._ended:
            reader._close(out)
        try:
            whole = fold(out)
        except StreamFailed as failed:
            raise UpstreamFault(failed.error.message, f"$.choices[{number}]") from None
        return OtherAnswer(Candidate(whole.content, whole.stop, whole.extra))

    def _total(self) -> Usage | None:
        usage = self._usage
        if not usage:
            held = self._fields.get("x_groq")
            inner = held.get("usage") if type(held) is dict else None
            usage = inner if type(inner) is dict else {}
        return parse_usage(usage) if usage else None
