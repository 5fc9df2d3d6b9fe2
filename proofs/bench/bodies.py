"""Requests like a coding agent's, made of nothing but arithmetic: the same bytes in every run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from wireglot_core import translate_request
from wireglot_core.dialects.registry import DialectName
from wireglot_core.wire.json import encode

_MODEL = "claude-sonnet-4-5"

_WORDS = (
    "read",
    "the",
    "tests",
    "before",
    "an",
    "edit",
    "and",
    "keep",
    "changes",
    "small",
    "“quoted”",
    "naïve",
)


class Shape(NamedTuple):
    """How much of each: numbers of messages and tools, lengths of texts."""

    messages: int = 60
    tools: int = 30
    system: int = 5000
    question: int = 900
    said: int = 240
    code: int = 830
    description: int = 320


TOOL_COUNTS = (60, 120, 170, 190, 240, 300)
"""From 40 to 200 KB of tools: the bound under which tools were once shared, 128 KiB, lies in the midst."""

VARIED = "quoted"
"""In every prompt, description and result. With six digits instead, nobody has seen the body before."""

SHAPES = {
    "tiny": Shape(messages=1, tools=0, system=0, question=20),
    "2k": Shape(messages=4, tools=1, system=240, question=80, said=40, code=330, description=80),
    "100k": Shape(),
    **{f"tools-{tools}": Shape(messages=4, tools=tools, system=240, description=20) for tools in TOOL_COUNTS},
}


def agent_request(shape: Shape = SHAPES["100k"]) -> dict[str, Any]:
    """An Anthropic request in the midst of work: calls of tools, results full of code."""
    turns: list[dict[str, Any]] = [_user([_text(_prose(shape.question, 1))])]
    while len(turns) < shape.messages - 1:
        turn = len(turns) // 2
        calls = [_call(turn, number, shape) for number in range(1 + turn % 2)]
        turns.append({"role": "assistant", "content": [_text(_prose(shape.said, turn)), *calls]})
        turns.append(_user([_result(call["id"], turn, shape) for call in calls]))
    if len(turns) < shape.messages:
        turns.append(_user([_text("Go on, and run the tests again.")]))
    request: dict[str, Any] = {"model": _MODEL, "max_tokens": 8192, "stream": True}
    if shape.system:
        request["system"] = [{**_text(_prose(shape.system, 0)), "cache_control": {"type": "ephemeral"}}]
    if shape.tools:
        request["tools"] = [_tool(number, shape) for number in range(shape.tools)]
    return {**request, "messages": turns}


class Conversation:
    """Of an Anthropic client, which sends all of it again with every turn, and two messages more.

    `number` makes it one that nobody else has. The first turn has `first` bytes, the last one about `last`.
    """

    def __init__(self, number: int, turns: int, first: int, last: int, model: str) -> None:
        self._word = f"{number:06}"
        shape = SHAPES["2k"]._replace(system=first // 2, code=first // 5)
        opening = agent_request(shape)
        del opening["stream"]
        self._messages = [self._own(message) for message in opening.pop("messages")]
        self._head = self._own({**opening, "model": model})[:-1]
        # Most of a turn's bytes are a tool's result.
        grows = (last - first) // max(turns - 1, 1)
        self._shape = SHAPES["2k"]._replace(said=grows // 5, code=grows * 2 // 3)
        self._turns = turns

    def bodies(self) -> Iterator[bytes]:
        for turn in range(self._turns):
            yield self._body()
            self._grow(turn)

    def last(self) -> bytes:
        """The body of the last turn alone."""
        for turn in range(self._turns - 1):
            self._grow(turn)
        return self._body()

    def _body(self) -> bytes:
        return b'%b,"messages":[%b]}' % (self._head, b",".join(self._messages))

    def _grow(self, turn: int) -> None:
        call = _call(turn, 0, self._shape, name=f"toolu_{self._word}_{turn}")
        said = {"role": "assistant", "content": [_text(_prose(self._shape.said, turn)), call]}
        result = _user([_result(call["id"], turn, self._shape)])
        self._messages += [self._own(said), self._own(result)]

    def _own(self, value: dict[str, Any]) -> bytes:
        return encode(value).replace(VARIED.encode(), self._word.encode())


def body(dialect: DialectName, size: str | Shape, model: str, *, stream: bool) -> bytes:
    """A request in the dialect, compact as the SDKs send it; where the path names the model it does not."""
    request = agent_request(size if isinstance(size, Shape) else SHAPES[size])
    if not stream:
        del request["stream"]
    if dialect != "anthropic":
        request = translate_request(request, source="anthropic", target=dialect, model=model).value
    if "model" in request:
        request["model"] = model
    if dialect == "openai-chat" and stream:
        request["stream_options"] = {"include_usage": True}
    return encode(request)


def _user(content: list[dict[str, Any]]) -> dict[str, Any]:
    return {"role": "user", "content": content}


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _call(turn: int, number: int, shape: Shape, name: str = "") -> dict[str, Any]:
    path = f"src/package/module_{turn}.py"
    return {
        "type": "tool_use",
        "id": name or f"toolu_{turn:02}x{number}",
        "name": f"tool_{(turn + number) % shape.tools}",
        "input": {"path": path, "edits": [{"line": turn, "text": _source(120, turn)}], "dry_run": False},
    }


def _result(call: str, turn: int, shape: Shape) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call, "content": [_text(_source(shape.code, turn))]}


def _tool(number: int, shape: Shape) -> dict[str, Any]:
    edit = {
        "type": "object",
        "properties": {
            "line": {"type": "integer", "minimum": 1, "description": "The line to replace, counted from one"},
            "text": {"type": "string", "description": "What stands there afterwards"},
            "mode": {"type": "string", "enum": ["replace", "insert", "delete"]},
        },
        "required": ["line", "text"],
        "additionalProperties": False,
    }
    return {
        "name": f"tool_{number}",
        "description": _prose(shape.description, number),
        "input_schema": {
            "type": "object",
            "properties": {
                "path": {"type": "string", "description": "Path from the root of the repository"},
                "edits": {"type": "array", "items": edit, "description": "Edits, first line first"},
                "dry_run": {"type": "boolean", "description": "Only tell what would change"},
            },
            "required": ["path", "edits"],
            "additionalProperties": False,
        },
    }


def _prose(length: int, seed: int) -> str:
    text = f"“{VARIED}” " + " ".join(
        _WORDS[(index * 7 + seed * 3 + index // 5) % len(_WORDS)] for index in range(length // 5)
    )
    return text[:length]


def _source(length: int, seed: int) -> str:
    line = f'    value_{seed} = self.table["key"].get(index, {seed})\t# a "quoted" note\n'
    return (line * (length // len(line) + 1))[:length]
