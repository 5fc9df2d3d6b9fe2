"""The pictures of docs/forwarding.md. The JSON in them is what the library makes of the JSON beside it."""

from __future__ import annotations

import json
from typing import Any

import wireglot
from tools.pictures.drawing import PAD, Picture, fitting, laid_out, mark, shortened
from wireglot.gateway.streams.feeder import begins
from wireglot_core.dialects.registry import dialect
from wireglot_core.ir.stream import Delta, Event, Finish, PartEnd, PartStart, Start
from wireglot_core.wire.json import encode
from wireglot_core.wire.splice import splice

_WIDTH = 960
_SIDE = 396
_LEFT = 2 * PAD
_RIGHT = _WIDTH - _SIDE - 2 * PAD
_MIDDLE = _WIDTH / 2
_GAP = 26
_LETTERS = fitting(_SIDE)
_CONTEXT = wireglot.Context(secret=b"of the pictures", seed="picture", provider="gemini")
_ASKED = "claude-sonnet-4-5"
_GEMINI = "gemini-3.1-pro-preview"


def pictures() -> dict[str, str]:
    """By the name of the file."""
    return {
        "forwarded.svg": _forwarded(),
        "translated.svg": _translated(),
        "tool-call.svg": _tool_call(),
        "stream.svg": _stream(),
    }


# Forwarded: bytes.

SENT = """\
{"model": "claude-sonnet-4-5",
 "max_tokens": 512,   "temperature": 1.0,
 "messages": [{"role": "user",
               "content": "Say hello"}],
 "a_field_of_tomorrow": {"on": true}}"""
ANSWERED = """\
{"id":"msg_01","type":"message",
 "role":"assistant","model":"kimi-k3",
 "content":[{"type":"text","text":"Hello!"}],
 "stop_reason":"end_turn",
 "usage":{"input_tokens":9,"output_tokens":3}}"""


def _forwarded() -> str:
    picture = Picture(
        "A request that is forwarded",
        "Claude Code sends a Messages request. The provider speaks Messages too, so it gets the same "
        "bytes, with its own name for the model in place of the one that was asked for. The answer comes "
        "back as its bytes, under the name that was asked for. Spaces, order, numbers and unknown fields "
        "stay as they were.",
        _WIDTH,
    )
    got = splice(SENT.encode(), {"model": encode("kimi-k3")}).decode()
    reported = splice(ANSWERED.encode(), {"model": encode(_ASKED)}).decode()
    end = _pair(
        picture,
        _LEFT,
        ("Claude Code asks, in Messages", mark(SENT.splitlines(), f'"{_ASKED}"', "changed")),
        ("Kimi's Anthropic endpoint gets", mark(got.splitlines(), '"kimi-k3"', "changed")),
        ("the same bytes,", "another name"),
    )
    end = _pair(
        picture,
        end + _GAP,
        ("Claude Code receives", mark(reported.splitlines(), f'"{_ASKED}"', "changed")),
        ("Kimi answers, in Messages", mark(ANSWERED.splitlines(), '"kimi-k3"', "changed")),
        ("the same bytes,", "another name"),
        home=True,
    )
    picture.words(_LEFT, end + _GAP, "Nothing is written again: spaces, 1.0 and fields of tomorrow stay.")
    return picture.svg()


# Translated: values.

_REQUEST: dict[str, Any] = {
    "model": _ASKED,
    "max_tokens": 512,
    "system": [{"type": "text", "text": "You are terse.", "cache_control": {"type": "ephemeral"}}],
    "messages": [{"role": "user", "content": "Say hello"}],
}
_ANSWER: dict[str, Any] = {
    "candidates": [{"content": {"role": "model", "parts": [{"text": "Hello!"}]}, "finishReason": "STOP"}],
    "usageMetadata": {"promptTokenCount": 9, "candidatesTokenCount": 3, "totalTokenCount": 12},
    "modelVersion": _GEMINI,
    "responseId": "r1",
}


def _translated() -> str:
    picture = Picture(
        "A request that is translated",
        "Claude Code sends a Messages request with a cache marker. Gemini speaks another dialect, so the "
        "request is parsed, fitted to what the provider takes, and written as generateContent. The cache "
        "marker has no place there: it is a loss, and reported. The answer is read, judged and written as "
        "Messages.",
        _WIDTH,
    )
    out = wireglot.translate_request(
        _REQUEST, source="anthropic", target="gemini", model=_GEMINI, context=_CONTEXT
    )
    back = wireglot.translate_response(
        _ANSWER, source="gemini", target="anthropic", request=_REQUEST, context=_CONTEXT
    )
    asked = mark(laid_out(_REQUEST, _LETTERS), '"cache_control": {"type": "ephemeral"}', "lost")
    end = _pair(
        picture,
        _LEFT,
        ("Claude Code asks, in Messages", asked),
        ("Gemini gets, in generateContent", laid_out(out.value, _LETTERS)),
        ("parse", "fit", "write"),
    )
    losses = [f"{loss.feature}  {loss.action}  {loss.grade}  {loss.path}" for loss in out.losses]
    end = picture.panel(
        _LEFT, end + _GAP, _WIDTH - 2 * _LEFT, "What did not cross, as the answer tells it", losses, "own"
    )
    reported = {key: value for key, value in back.value.items() if value is not None}
    reported["model"] = _ASKED  # the gateway tells Messages clients the name that they asked for
    _pair(
        picture,
        end + _GAP,
        ("Claude Code receives", laid_out(reported, _LETTERS)),
        ("Gemini answers", laid_out(_ANSWER, _LETTERS)),
        ("read", "judge", "write"),
        home=True,
    )
    return picture.svg()


# A tool call, there and back.

_TOOL = {
    "name": "weather",
    "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}},
}
_SIGNATURE = "RXhhbXBsZS1zaWduYXR1cmU="
_CALL = {"functionCall": {"name": "weather", "args": {"city": "Oslo"}}, "thoughtSignature": _SIGNATURE}


def _tool_call() -> str:
    picture = Picture(
        "A tool call on its way, Claude Code on Gemini",
        "One: the client's tool becomes a function declaration. Two: Gemini's functionCall has no id and "
        "a thought signature. The client gets a tool_use with an id that is made once, and the signature "
        "sealed in a thinking block. Three: the client sends the result under that id and the block as it "
        "was. Gemini gets its call with its own signature, and the functionResponse of that call.",
        _WIDTH,
    )
    first = {**_REQUEST, "tools": [_TOOL], "messages": [{"role": "user", "content": "How warm is Oslo?"}]}
    up = _asked_of_gemini(first)
    answer = {
        **_ANSWER,
        "candidates": [{"content": {"role": "model", "parts": [_CALL]}, "finishReason": "STOP"}],
    }
    content = wireglot.translate_response(
        answer, source="gemini", target="anthropic", request=first, context=_CONTEXT
    ).value["content"]
    call_id = content[-1]["id"]
    result = {"type": "tool_result", "tool_use_id": call_id, "content": "4 °C"}
    turns = [
        *first["messages"],
        {"role": "assistant", "content": content},
        {"role": "user", "content": [result]},
    ]
    again = _asked_of_gemini({**first, "messages": turns})["contents"]
    seal = next(block["signature"] for block in content if block["type"] == "thinking")
    end = _pair(
        picture,
        _LEFT,
        ("1  Claude Code offers a tool", laid_out(first["tools"][0], _LETTERS)),
        ("Gemini is offered", laid_out(up["tools"][0], _LETTERS)),
        ("schema", "fitted"),
    )
    blocks = [line for block in content for line in laid_out(shortened(block), _LETTERS)]
    shown_id = json.dumps(shortened(call_id), ensure_ascii=False)
    blocks = mark(blocks, shown_id, "changed")
    blocks = mark(blocks, json.dumps(shortened(seal), ensure_ascii=False), "sealed")
    end = _pair(
        picture,
        end + _GAP,
        ("2  Claude Code gets the call", blocks),
        ("Gemini calls it", mark(laid_out(_CALL, _LETTERS), f'"{_SIGNATURE}"', "sealed")),
        ("an id is made", "the signature", "is sealed"),
        home=True,
    )
    reported = ["…the two blocks of step 2, as they were, then", *laid_out(shortened(result), _LETTERS)]
    got = [line for turn in again[1:] for part in turn["parts"] for line in laid_out(part, _LETTERS)]
    _pair(
        picture,
        end + _GAP,
        ("3  Claude Code sends the result", mark(reported, shown_id, "changed")),
        ("Gemini gets its own call back, and the result", mark(got, f'"{_SIGNATURE}"', "sealed")),
        ("the seal", "is opened", "by id: which call"),
    )
    return picture.svg()


def _asked_of_gemini(body: dict[str, Any]) -> dict[str, Any]:
    return wireglot.translate_request(
        body, source="anthropic", target="gemini", model=_GEMINI, context=_CONTEXT
    ).value


# A stream, event by event.

_CHUNKS: tuple[dict[str, Any], ...] = (
    {"parts": []},
    {"parts": [{"text": "A city, so", "thought": True}]},
    {"parts": [{"text": "Let me "}]},
    {"parts": [{"text": "look."}]},
    {"parts": [{"functionCall": {"name": "weather", "args": {"city": "Oslo"}}}], "finishReason": "STOP"},
)
_HEADS = ("Gemini sends", "in between", "Claude Code gets")
_COLUMNS = ((_LEFT, 262), (_LEFT + 276, 262), (_LEFT + 552, _WIDTH - 2 * _LEFT - 552))


def _stream() -> str:
    picture = Picture(
        "A stream, event by event, Gemini to Claude Code",
        "Each chunk of Gemini's becomes events of no dialect, and each of those an event of Messages, in "
        "the same read. Before the first words nothing has been sent: another provider can still be "
        "asked. After them a failure is an error event.",
        _WIDTH,
    )
    translator = wireglot.StreamTranslator(
        source="gemini", target="anthropic", request=_REQUEST, context=_CONTEXT
    )
    reader = dialect("gemini").stream_reader(_CONTEXT)
    top = float(_LEFT)
    held = b""
    begun = False
    for chunk in _CHUNKS:
        data = b"data: " + encode(_frame(chunk)) + b"\n\n"
        events = reader.read(data)
        held += translator.feed(data)
        if chunk is _CHUNKS[-1]:
            events += reader.end()
            held += translator.close()
        if begins(events) and not begun:
            begun = True
            picture.rule(top + 12, "commit point: from here on a failure is an error event")
            top += _GAP
        reported = _reported(held) if begun else ["nothing yet"]
        held = b"" if begun else held
        rows = (_chunk_lines(chunk), [_event(event) for event in events], reported)
        ends = [
            picture.panel(x, top, width, head, lines, "own" if column == 1 else "panel")
            for column, ((x, width), head, lines) in enumerate(zip(_COLUMNS, _HEADS, rows, strict=True))
        ]
        for x, width in _COLUMNS[:2]:
            picture.arrow(x + width + 1, top + 12, x + width + 13, top + 12)
        top = max(ends) + _GAP / 2
    return picture.svg()


def _frame(chunk: dict[str, Any]) -> dict[str, Any]:
    content = {"role": "model", "parts": chunk["parts"]}
    candidate = {"content": content, **({"finishReason": "STOP"} if "finishReason" in chunk else {})}
    return {"candidates": [candidate], "modelVersion": _GEMINI, "responseId": "r1"}


def _chunk_lines(chunk: dict[str, Any]) -> list[str]:
    letters = fitting(_COLUMNS[0][1])
    if not chunk["parts"]:
        return laid_out({"responseId": "r1"}, letters)
    lines = [line for part in chunk["parts"] for line in laid_out(part, letters)]
    return [*lines, '"finishReason": "STOP"'] if "finishReason" in chunk else lines


def _event(event: Event) -> str:
    match event:
        case Start():
            return "Start"
        case PartStart(index=index, part=part):
            return f"PartStart {index} {type(part).__name__}"
        case Delta(index=index, text=text):
            return f"Delta {index} {json.dumps(text)}"
        case PartEnd(index=index):
            return f"PartEnd {index}"
        case Finish(stop=stop):
            return f"Finish {stop.reason}"
        case _:
            return type(event).__name__


def _reported(written: bytes) -> list[str]:
    lines = []
    for frame in written.decode().split("\n\n"):
        if not frame.strip():
            continue
        event = json.loads(frame.partition("data: ")[2])
        says = event.get("delta", event.get("content_block", {}))
        said = next(
            (says[key] for key in ("text", "thinking", "partial_json", "stop_reason") if says.get(key)), ""
        )
        tells = event["type"] == "content_block_start" or not said
        kind = says.get("type", "") if tells else ""
        lines.append(" ".join(filter(None, (event["type"], kind, json.dumps(said) if said else ""))))
    return lines


def _pair(
    picture: Picture,
    top: float,
    left: tuple[str, list[str]],
    right: tuple[str, list[str]],
    between: tuple[str, ...],
    *,
    home: bool = False,
) -> float:
    """The client's document and the provider's, and what is done between them; where it ends."""
    ends = (picture.panel(_LEFT, top, _SIDE, *left), picture.panel(_RIGHT, top, _SIDE, *right))
    y = top + 26
    ours, theirs = _LEFT + _SIDE + 6, _RIGHT - 6
    picture.arrow(*((theirs, y, ours, y) if home else (ours, y, theirs, y)))
    for number, words in enumerate(between, 1):
        picture.words(_MIDDLE, y + 4 + 17 * number, words, anchor="middle")
    return max(ends)
