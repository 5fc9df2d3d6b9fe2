"""What an upstream must find again in each turn of a tool loop: its own thoughts, and what it was given.

Read from the bytes of both directions with nothing of Wireglot's: the four ways in which providers keep
reasoning state, and the two laws about it.

state: a request that carries the results of earlier calls carries the state of every earlier turn that
thought, as it was answered, turn by turn.
prefix: what was sent for the old turns is sent again to the byte, with more behind it. Providers cache it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from clients.upstream import Exchange

_MARKERS = ("cache_control", "prompt_cache_breakpoint")
"""Where a cache may begin: clients move these from turn to turn, and they are no part of the prompt."""
_MARKED = tuple(f'"{marker}"'.encode() for marker in _MARKERS)
_HEADS = ("system", "instructions", "systemInstruction", "tools", "toolConfig", "tool_choice")
_TURNS = {
    "anthropic": "messages",
    "openai-chat": "messages",
    "openai-responses": "input",
    "gemini": "contents",
}


@dataclass(frozen=True)
class Memory:
    """What the upstream's notes of one client's run say."""

    turns: int
    """Requests that brought a tool's result, in the longest loop."""
    thoughts: int
    """Of the answers before them, those that thought."""
    problems: tuple[str, ...] = ()
    """State that did not come back, and old turns that changed."""


def remembered(exchanges: Sequence[Exchange], moved: str = "") -> Memory:
    """Judge the tool loops of one client, in the order in which their requests came. `moved`: what marks text
    of the client's own that is at the end of each request, and at that of the next one instead."""
    problems: list[str] = []
    turns = thoughts = 0
    loops: dict[int, tuple[Exchange, list[list[str]]]] = {}
    """Results so far -> the last request with so many, and the state of the answers before and of its own."""
    for exchange in exchanges:
        body = json.loads(exchange.asked)
        done = _results(exchange.dialect, body)
        before: list[list[str]] = []
        if done:
            if done - 1 not in loops:
                problems.append(f"turn {done + 1} follows none")
                continue
            last, before = loops[done - 1]
            expected = [state for state in before if state]
            turns, thoughts = max(turns, done), max(thoughts, len(expected))
            found = [state for state in _states(exchange.dialect, body) if state]
            agreeing = _agreeing(exchange.dialect, expected, found)
            if not len(found) == len(expected) == agreeing:
                problems.append(f"turn {done + 1}: state of {agreeing} of {len(expected)} turns")
            changed = _changed(exchange.dialect, last, exchange, moved)
            problems += [f"turn {done + 1}: {what}" for what in changed]
        elif b'"tools"' not in exchange.asked:  # a title, a summary; Codex has its tools in an input item
            continue
        loops[done] = exchange, [*before, _answered(exchange)]
    return Memory(turns, thoughts, tuple(problems))


def _agreeing(dialect: str, expected: list[list[str]], found: list[list[str]]) -> int:
    """How many turns have their state where it stood."""
    may_lack = dialect == "openai-responses"  # the id of an item, which comes last
    pairs = zip(expected, found, strict=False)
    return sum(new == old or (may_lack and new == old[:-1]) for old, new in pairs)


def _encrypted(item: dict[str, Any]) -> list[str]:
    """Of a reasoning item of Responses. With nothing stored its id may be left out, as the AI SDK does."""
    texts = [part.get("text") for part in item.get("summary") or ()]
    return [_text([item.get("encrypted_content"), texts]), *([item["id"]] if item.get("id") else [])]


def _changed(dialect: str, last: Exchange, now: Exchange, moved: str) -> Iterator[str]:
    old, new = _pieces(dialect, last.asked), _pieces(dialect, now.asked)
    for place, bytes_then in old.items():
        if moved and moved.encode() in bytes_then and place.startswith(_TURNS[dialect]):
            stays = _without_moved(json.loads(bytes_then), moved)
            if stays is None or _is_the_same_prompt(stays, json.loads(new.get(place, b"null"))):
                continue
        if not _same(bytes_then, new.get(place, b"")):
            yield f"{place} changed"
            return
    yield from (f"{head} changed" for head in _HEADS if head in new and head not in old)


def _pieces(dialect: str, asked: bytes) -> dict[str, bytes]:
    """The heads and the turns of a request, as they came."""
    fields = msgspec.json.decode(asked, type=dict[str, msgspec.Raw])
    turns = msgspec.json.decode(fields[_TURNS[dialect]], type=list[msgspec.Raw])
    found = {head: bytes(fields[head]) for head in _HEADS if head in fields}
    return found | {f"{_TURNS[dialect]}[{number}]": bytes(turn) for number, turn in enumerate(turns)}


def _same(old: bytes, new: bytes) -> bool:
    """To the byte. Only where a cache marker came or went is it the rest that counts."""
    if old == new:
        return True
    if not new or not any(marker in side for marker in _MARKED for side in (old, new)):
        return False
    return _is_the_same_prompt(json.loads(old), json.loads(new))


def _is_the_same_prompt(old: object, new: object) -> bool:
    return _text(_without_markers(old)) == _text(_without_markers(new))


def _without_moved(turn: dict[str, Any], moved: str) -> dict[str, Any] | None:
    """What stays of a turn; None: nothing."""
    field = "parts" if "parts" in turn else "content"
    if not isinstance(turn.get(field), list):
        return None
    stays = [part for part in turn[field] if moved not in part.get("text", "")]
    return {**turn, field: stays} if stays else None


def _text(value: object) -> str:
    """With the order of keys as it came: a cache sees it."""
    return json.dumps(value, ensure_ascii=False)


def _without_markers(value: Any) -> Any:
    """Also without the list around a text that carried one: to a provider both are the same prompt."""
    if isinstance(value, dict):
        kept = {key: _without_markers(held) for key, held in value.items() if key not in _MARKERS}
        match kept.get("content"):
            case [{"type": "text", "text": str() as text, **rest}] if not rest:
                kept["content"] = text
        return kept
    return [_without_markers(held) for held in value] if isinstance(value, list) else value


def _results(dialect: str, body: dict[str, Any]) -> int:
    """How many turns brought results."""
    turns = body[_TURNS[dialect]]
    match dialect:
        case "anthropic":
            return sum(
                any(block.get("type") == "tool_result" for block in turn["content"])
                for turn in turns
                if isinstance(turn["content"], list)
            )
        case "openai-chat":
            return sum(turn.get("role") == "tool" for turn in turns)
        case "openai-responses":
            return sum(str(item.get("type")).endswith("_output") for item in turns)
        case _:
            return sum(any("functionResponse" in part for part in turn["parts"]) for turn in turns)


def _states(dialect: str, body: dict[str, Any]) -> list[list[str]]:
    """The state in a request, turn by turn."""
    turns = body[_TURNS[dialect]]
    match dialect:
        case "anthropic":
            return [
                [
                    _text([block.get("thinking"), block.get("signature"), block.get("data")])
                    for block in turn["content"]
                    if block.get("type") in ("thinking", "redacted_thinking")
                ]
                for turn in turns
                if turn["role"] == "assistant" and isinstance(turn["content"], list)
            ]
        case "openai-chat":
            return [
                [turn["reasoning_content"]] for turn in turns if turn.get("reasoning_content") is not None
            ]
        case "openai-responses":
            return [_encrypted(item) for item in turns if item.get("type") == "reasoning"]
        case _:
            return [
                [part["thoughtSignature"] for part in turn["parts"] if "thoughtSignature" in part]
                for turn in turns
                if turn.get("role") == "model"
            ]


def _answered(exchange: Exchange) -> list[str]:
    """The state in an answer, whole or streamed, as the next request must hold it."""
    events = _events(exchange.answered)
    match exchange.dialect:
        case "anthropic":
            return _anthropic_blocks(events)
        case "openai-chat":
            text = "".join(
                (choice.get("delta") or choice.get("message") or {}).get("reasoning_content") or ""
                for event in events
                for choice in event.get("choices", ())
            )
            return [text] if text else []
        case "openai-responses":
            outputs = [e["response"]["output"] for e in events if e.get("type") == "response.completed"]
            items = outputs[-1] if outputs else events[0].get("output", ())
            return [text for item in items if item.get("type") == "reasoning" for text in _encrypted(item)]
        case _:
            return [
                part["thoughtSignature"]
                for event in events
                for candidate in event.get("candidates", ())
                for part in candidate.get("content", {}).get("parts", ())
                if "thoughtSignature" in part
            ]


def _anthropic_blocks(events: list[dict[str, Any]]) -> list[str]:
    blocks: dict[int, dict[str, Any]] = {}
    for event in events:
        match event.get("type"):
            case "message":
                blocks |= dict(enumerate(event["content"]))
            case "content_block_start":
                blocks[event["index"]] = event["content_block"]
            case "content_block_delta":
                for key in ("thinking", "signature"):
                    if key in event["delta"]:
                        block = blocks[event["index"]]
                        block[key] = block.get(key, "") + event["delta"][key]
    return [
        _text([block.get("thinking"), block.get("signature"), block.get("data")])
        for block in blocks.values()
        if block.get("type") in ("thinking", "redacted_thinking")
    ]


def _events(answered: bytes) -> list[dict[str, Any]]:
    text = answered.decode()
    lines = re.findall(r"^data: ?(\{.*)$", text, re.MULTILINE)
    if lines:
        return [json.loads(line) for line in lines]
    document = json.loads(text)
    return document if isinstance(document, list) else [document]
