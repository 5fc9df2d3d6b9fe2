"""Parts of the dialects that meet text of clients, providers and models: arguments, schemas, names, ids."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from tests.laws.bounded import Row
from wireglot_core.dialects.argument_stream import ArgumentStream, MendedArguments
from wireglot_core.dialects.arguments import read_arguments
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.gemini.partial_args import PartialCall
from wireglot_core.dialects.registry import DialectName, dialect, surface
from wireglot_core.ir.content import Citation, Text, TokenLogprob, ToolCall
from wireglot_core.ir.outcome import Response, Stop
from wireglot_core.ir.stop_sequences import StopFilter, cut_response
from wireglot_core.ir.stream import Delta, Event, Finish, PartEnd, PartStart, Start
from wireglot_core.translate import StreamTranslator, translate_request, translate_response
from wireglot_core.wire.json import encode
from wireglot_core.wire.splice import Outline, splice, without

WRITERS = ("anthropic", "openai-chat", "openai-responses", "gemini", "gemini-interactions", "ollama")

# Arguments that a model writes, character by character and in one piece.

ARGUMENTS: dict[str, Callable[[int], str]] = {
    "a long number": lambda n: '{"a":' + "1" * (4300 + 5 * n) + "}",
    "a number that goes on and on": lambda n: '{"a":1.' + "1" * n + "e5}",
    "raw line breaks in a string": lambda n: '{"a":"' + "\n" * n + '"}',
    "escapes": lambda n: '{"a":"' + "\\u000a" * n + '"}',
    "blanks after a comma": lambda n: '{"a":1,' + " " * n + '"b":2}',
    "control characters after a comma": lambda n: '{"a":1,' + "\x01" * n + '"b":2}',
    "commas before brackets": lambda n: '{"a":[' + "[1,]," * n + "1]}",
    "deep nesting": lambda n: '{"a":' + "[" * n,
    "many documents": lambda n: "{}" * n,
    "a document before many others": lambda n: '{"a":1}' + "{} " * n,
    "a quote without an end": lambda n: '{"a":1}"' + '\\"' * n,
    "brackets without an end": lambda n: '{"a":1}' + "{" * n,
    "brackets that close nothing": lambda n: '{"a":1}' + "}" * n,
    "blanks before it": lambda n: " " * n + '{"a":1,}',
}


def stream_arguments(pieces: Iterable[str]) -> None:
    for stream in (ArgumentStream(), MendedArguments()):
        for piece in pieces:
            stream.feed(piece)
        stream.finish()


# Answers of many parts that are open at once.


def open_calls(n: int) -> list[Event]:
    begun: list[Event] = [PartStart(at, ToolCall(f"call_{at}", "f", "")) for at in range(n)]
    said: list[Event] = [Delta(at, '{"a":1}') for at in range(n)]
    ended: list[Event] = [PartEnd(at) for at in range(n)]
    return [Start("r", "m"), *begun, *said, *ended, Finish(Stop("tool_calls"))]


def calls_in_turn(n: int) -> list[Event]:
    """As Chat sends them: each begins before the one before it is known to have ended."""
    events: list[Event] = [Start("r", "m"), PartStart(0, ToolCall("call_0", "f", ""))]
    for at in range(1, n):
        events += (PartStart(at, ToolCall(f"call_{at}", "f", "")), Delta(at, "{}"), PartEnd(at - 1))
    return [*events, PartEnd(n - 1), Finish(Stop("tool_calls"))]


def write(name: str, events: list[Event]) -> None:
    writer = dialect(name).stream_writer(Context())
    for event in events:
        writer.write([event])


# Stop sequences that an upstream does not have.


def stop_stream(given: tuple[list[str], str]) -> None:
    stops, text = given
    cut = StopFilter(stops)
    cut.events([Start("r", "m"), PartStart(0, Text(""))])
    for char in text:
        cut.events([Delta(0, char, (TokenLogprob(char, 0.0),))])
    cut.events([PartEnd(0), Finish(Stop("end"))])
    cut_response(Response("r", "m", (Text(text),), Stop("end")), stops)


STOPS: dict[str, Callable[[int], tuple[list[str], str]]] = {
    "a long text that is nearly one": lambda n: (["a" * 1000 + "b"], "a" * n),
    "many sequences": lambda n: ([f"stop {at}" for at in range(n)], "st" * n),
    "a long sequence": lambda n: (["ab" * n + "c"], "ab" * n),
    "a sequence and all its ends": lambda n: (["a" * at + "b" for at in range(60)], "a" * n),
}

# Arguments in pieces with a path each.

PIECES: dict[str, Callable[[int], list[dict[str, Any]]]] = {
    "an index that names a size": lambda n: [{"jsonPath": f"$.a[{n * 100}]", "numberValue": 1}],
    "nested indices": lambda n: [{"jsonPath": "$.a" + "[999]" * n, "numberValue": 1}],
    "a list that grows": lambda n: [{"jsonPath": f"$.a[{at}]", "numberValue": 1} for at in range(n)],
    "a string in many pieces": lambda n: [
        {"jsonPath": "$.a", "stringValue": "x" * 50, "willContinue": True} for _ in range(n)
    ],
    "two strings in turn": lambda n: [
        {"jsonPath": f"$.{'ab'[at % 2]}", "stringValue": "x", "willContinue": True} for at in range(n)
    ],
    "a deep path": lambda n: [{"jsonPath": "$" + ".a" * n, "numberValue": 1}],
    "a name without an end": lambda n: [{"jsonPath": "$['" + "\\'" * n, "numberValue": 1}],
}


def join_pieces(pieces: list[dict[str, Any]]) -> None:
    call = PartialCall("f", "", None)
    for piece in pieces:
        call.add([piece])
    call.arguments()


# What comes before an answer, byte by byte; keys that come again.


def read_slowly(name: str, answer: bytes) -> None:
    reader, tap = dialect(name).stream_reader(Context()), surface(name).tap(10**9)
    for at in range(len(answer)):
        reader.read(answer[at : at + 1])
        tap.feed(answer[at : at + 1])
    reader.end()


OPENINGS: dict[str, Callable[[int], bytes]] = {
    "blanks before an answer": lambda n: b" " * n + b"data",
    "blanks after a byte-order mark": lambda n: b"\xef\xbb\xbf" + b"\n" * n + b"{}",
    "a comment before an answer": lambda n: b":" * n,
}


def splice_repeated(body: bytes) -> None:
    Outline(body)
    splice(body, {"k": b"1"})
    without(body, "k")


# Calls that all have one id, and members that all are reported at their places.


def answer_of_calls(n: int) -> bytes:
    call = {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"a": 1}}
    return encode({**MESSAGE, "content": [call] * n})


def stream_of_calls(n: int) -> bytes:
    call = {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {}}
    frames: list[dict[str, Any]] = [{"type": "message_start", "message": {**MESSAGE, "content": []}}]
    for at in range(n):
        frames.append({"type": "content_block_start", "index": at, "content_block": call})
        frames.append({"type": "content_block_stop", "index": at})
    return b"".join([b"data: %b\n\n" % encode(frame) for frame in frames])


def output_of_many_members(n: int) -> bytes:
    output = {"type": "shell_call_output", "call_id": "c", "output": {f"k {at}": at for at in range(n)}}
    return encode({"model": "m", "input": [output]})


def translate_stream(data: bytes) -> None:
    translator = StreamTranslator(source="anthropic", target="openai-chat")
    translator.feed(data)
    translator.close()


def conversation_of_one_id(n: int) -> bytes:
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    turns = [
        {"role": "assistant", "tool_calls": [call] * 2},
        {"role": "tool", "tool_call_id": "c", "content": "r"},
    ]
    return encode({"model": "m", "messages": [*turns * n, {"role": "user", "content": "x"}]})


def chat_stream(deltas: list[dict[str, Any]]) -> bytes:
    choices: list[dict[str, Any]] = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
    choices += [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]
    chunks = [{"id": "r", "created": 1, "model": "m", "choices": [choice]} for choice in choices]
    return b"".join([b"data: %b\n\n" % encode(chunk) for chunk in chunks])


def calls_by_id(n: int) -> bytes:
    function = {"name": "f", "arguments": "{}"}
    return chat_stream([{"tool_calls": [{"id": f"c{at}", "function": function}]} for at in range(n)])


def calls_without_id(n: int) -> bytes:
    function = {"name": "f", "arguments": "{}"}
    return chat_stream([{"tool_calls": [{"index": at, "function": function}]} for at in range(n)])


def pieces_before_a_name(n: int) -> bytes:
    pieces = [{"tool_calls": [{"index": 0, "function": {"arguments": "x" * 20}}]} for _ in range(n)]
    return chat_stream([*pieces, {"tool_calls": [{"index": 0, "id": "c", "function": {"name": "f"}}]}])


def objects_as_pieces(n: int) -> bytes:
    call = {"index": 0, "id": "c", "function": {"name": "f", "arguments": '{"a":{'}}
    piece = {"index": 0, "function": {"arguments": '{"b":"%s"}' % ("x" * 40)}}
    return chat_stream([{"tool_calls": [call]}, *[{"tool_calls": [piece]}] * n])


# Items of Responses, whose ids and indexes cannot be relied on.


def items_without_announcement(n: int) -> list[dict[str, Any]]:
    return [responses_done(at, {"type": "reasoning", "id": f"rs_{at}", "summary": []}) for at in range(n)]


def items_of_one_id(n: int) -> list[dict[str, Any]]:
    return [responses_done(at, {"type": "reasoning", "id": "rs", "summary": []}) for at in range(n)]


def calls_of_one_item_id(n: int) -> list[dict[str, Any]]:
    call = {"type": "function_call", "id": "fc", "name": "f", "arguments": "{}"}
    return [responses_done(at, {**call, "call_id": f"c{at}"}) for at in range(n)]


def items_at_one_index(n: int) -> list[dict[str, Any]]:
    """Their deltas are told apart by ids."""
    call = {"type": "function_call", "name": "f", "arguments": ""}
    added = [
        {
            "type": "response.output_item.added",
            "output_index": 0,
            "item": {**call, "id": f"i{at}", "call_id": f"c{at}"},
        }
        for at in range(n)
    ]
    delta = {"type": "response.function_call_arguments.delta", "output_index": 0, "delta": "{}"}
    return [*added, *({**delta, "item_id": f"i{at}"} for at in range(n))]


def texts_in_one_item(n: int) -> list[dict[str, Any]]:
    part = {"type": "output_text", "text": "said", "annotations": []}
    made: list[dict[str, Any]] = []
    for at in range(n):
        place = {"output_index": 0, "content_index": at, "item_id": "msg"}
        made.append({"type": "response.output_text.delta", **place, "delta": "said"})
        made.append({"type": "response.content_part.done", **place, "part": part})
    item = {"type": "message", "id": "msg", "role": "assistant", "content": [{**part, "text": "other"}] * n}
    return [*made, responses_done(0, item)]


def a_text_done_again(n: int) -> list[dict[str, Any]]:
    place = {"output_index": 0, "content_index": 0, "item_id": "msg"}
    delta = {"type": "response.output_text.delta", **place, "delta": "said " * 20}
    return [*[delta] * n, *[{"type": "response.output_text.done", **place, "text": "x"}] * n]


def parts_of_a_large_item(n: int) -> list[dict[str, Any]]:
    item = {"type": "message", "id": "msg", "role": "assistant", **{f"x{at}": "y" * 20 for at in range(n)}}
    part = {"type": "output_text", "text": "said", "annotations": []}
    place = {"type": "response.content_part.done", "output_index": 0, "item_id": "msg", "part": part}
    added = {"type": "response.output_item.added", "output_index": 0, "item": item}
    return [added, *({**place, "content_index": at} for at in range(n))]


def another_final_output(n: int) -> list[dict[str, Any]]:
    items = [{"type": "reasoning", "id": f"other_{at}", "summary": []} for at in range(n)]
    ended = {"type": "response.completed", "response": {"status": "completed", "output": items}}
    return [*items_without_announcement(n // 2), ended]


def responses_done(index: int, item: dict[str, Any]) -> dict[str, Any]:
    return {"type": "response.output_item.done", "output_index": index, "item": item}


def translate_responses(events: list[dict[str, Any]]) -> None:
    translator = StreamTranslator(source="openai-responses", target="anthropic")
    translator.feed(
        b"data: %b\n\n" % encode({"type": "response.created", "response": {"id": "r", "model": "m"}})
    )
    for event in events:
        translator.feed(b"data: %b\n\n" % encode(event))
    translator.close()


def translate_chat(data: bytes) -> None:
    translator = StreamTranslator(source="openai-chat", target="anthropic")
    for block in data.split(b"\n\n"):
        translator.feed(block + b"\n\n")
    translator.close()


# Texts with many sources, and sources that are named many times.

CITING: tuple[DialectName, ...] = (
    "anthropic",
    "openai-chat",
    "openai-responses",
    "gemini",
    "gemini-interactions",
)


def cited(name: str, n: int) -> dict[str, Any]:
    """Each citation is about all of the text, which has characters of two bytes."""
    text = "wörd " * 20 * n
    sources = (Citation(f"https://a.net/{at}", "t", start=0, end=len(text) - 1) for at in range(n))
    answer = Response("r", "m", (Text(text, citations=tuple(sources)),), Stop("end"))
    body: dict[str, Any] = dialect(name).render_response(answer, Context()).value
    return body


def cite_elsewhere(name: DialectName, body: dict[str, Any]) -> None:
    for target in CITING:
        translate_response(body, source=name, target=target)


def one_source(n: int) -> dict[str, Any]:
    support = {"segment": {"endIndex": 1, "text": "q" * 20 * n}, "groundingChunkIndices": [0] * n}
    grounding = {
        "groundingChunks": [{"web": {"uri": "https://a.net/" + "a" * 100 * n}}],
        "groundingSupports": [support],
    }
    content = {"role": "model", "parts": [{"text": "said"}]}
    return {"candidates": [{"content": content, "finishReason": "STOP", "groundingMetadata": grounding}]}


# Fields that are joined with those of earlier events.

GEMINI_END: dict[str, Any] = {"candidates": [{"content": {"parts": [{"text": "a"}]}, "finishReason": "STOP"}]}
JOINED: dict[str, tuple[DialectName, Callable[[dict[str, int]], dict[str, Any]]]] = {
    "usage of Chat": ("openai-chat", lambda fields: {"choices": [], "usage": fields}),
    "usage of Messages": (
        "anthropic",
        lambda fields: {"type": "message_delta", "delta": {}, "usage": fields},
    ),
    "usage of Gemini": ("gemini", lambda fields: {**GEMINI_END, "usageMetadata": fields}),
    "sources of Gemini": (
        "gemini",
        lambda fields: {"candidates": [{"groundingMetadata": fields, "content": {"parts": [{"text": "a"}]}}]},
    ),
}


def new_fields(write: Callable[[dict[str, int]], dict[str, Any]], n: int) -> list[bytes]:
    return [b"data: %b\n\n" % encode(write({f"field_{at}": at})) for at in range(n)]


def read_events(name: DialectName, events: list[bytes]) -> None:
    translator = StreamTranslator(source=name, target="openai-responses")
    if name == "anthropic":
        translator.feed(b"data: %b\n\n" % encode({"type": "message_start", "message": MESSAGE}))
    for event in events:
        translator.feed(event)
    translator.close()


MESSAGE = {"id": "m", "type": "message", "role": "assistant", "model": "m", "stop_reason": "tool_use"}

ROWS = [
    Row(
        "calls of one id",
        answer_of_calls,
        lambda body: translate_response(body, source="anthropic", target="openai-chat"),
        n=100,
    ),
    Row(
        "a conversation whose calls have one id",
        conversation_of_one_id,
        lambda body: translate_request(body, source="openai-chat", target="anthropic"),
        n=50,
    ),
    *(
        Row(f"a text with sources: {name}", partial(cited, name), partial(cite_elsewhere, name), n=200)
        for name in CITING
    ),
    Row(
        "a source that is named again and again",
        one_source,
        lambda body: encode(translate_response(body, source="gemini", target="openai-chat").value),
        n=300,
    ),
    *(
        Row(
            f"new fields in each event: {what}", partial(new_fields, write), partial(read_events, name), n=600
        )
        for what, (name, write) in JOINED.items()
    ),
    *(
        Row(f"a Chat stream: {make.__name__}", make, translate_chat, n=60)
        for make in (calls_by_id, calls_without_id, pieces_before_a_name, objects_as_pieces)
    ),
    *(
        Row(f"a Responses stream: {make.__name__}", make, translate_responses, n=150)
        for make in (
            items_without_announcement,
            items_of_one_id,
            calls_of_one_item_id,
            items_at_one_index,
            texts_in_one_item,
            a_text_done_again,
            parts_of_a_large_item,
            another_final_output,
        )
    ),
    Row("streamed calls of one id", stream_of_calls, translate_stream, n=50),
    Row(
        "losses at the members of an object",
        output_of_many_members,
        lambda body: translate_request(body, source="openai-responses", target="anthropic"),
        n=100,
    ),
    *(
        Row(f"{name}: {what}", make, partial(read_slowly, name), n=200)
        for name in WRITERS
        for what, make in OPENINGS.items()
    ),
    Row(
        "a repeated key before a long value",
        lambda n: b'{%b"k":"%b"}' % (b'"k":1,' * n, b"x" * 1000 * n),
        splice_repeated,
        n=50,
    ),
    *(Row(f"arguments: {name}", make, read_arguments) for name, make in ARGUMENTS.items()),
    *(
        Row(f"arguments by character: {name}", make, stream_arguments, n=100)
        for name, make in ARGUMENTS.items()
    ),
    *(
        Row(f"arguments in one piece: {name}", make, lambda text: stream_arguments([text]))
        for name, make in ARGUMENTS.items()
    ),
    *(
        Row(f"{name}: {events.__name__}", events, partial(write, name), n=60)
        for name in WRITERS
        for events in (open_calls, calls_in_turn)
    ),
    *(Row(f"stop sequences: {name}", make, stop_stream) for name, make in STOPS.items()),
    *(Row(f"pieces of arguments: {name}", make, join_pieces) for name, make in PIECES.items()),
]
