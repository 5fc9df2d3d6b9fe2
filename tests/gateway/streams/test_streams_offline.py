"""Streams through a gateway without sockets: cut anywhere, broken anywhere, slow, or no stream at all."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from tests.gateway.offline import CHAT, CHAT_PATH, MESSAGE, MESSAGES_PATH, Got, Offline, Said, asked
from tests.tiers import rows
from wireglot.http.transport import TransportFault
from wireglot_core.dialects.registry import surface
from wireglot_core.wire.json import decode, encode

BROKEN = TransportFault("broken", "the connection ended")


def frame(document: Any, name: str = "") -> bytes:
    data = document if isinstance(document, bytes) else encode(document)
    return (f"event: {name}\n".encode() if name else b"") + b"data: " + data + b"\n\n"


def chunk(delta: dict[str, Any], reason: str | None = None, **more: Any) -> bytes:
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    return frame({**head, "choices": [{"index": 0, "delta": delta, "finish_reason": reason}], **more})


def typed(kind: str, **fields: Any) -> bytes:
    return frame({"type": kind, **fields}, kind)


CHAT_FRAMES = [
    chunk({"role": "assistant", "content": ""}),
    chunk({"content": "Hel"}),
    chunk({"content": "lo."}),
    chunk({}, "stop", usage={"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}),
    b"data: [DONE]\n\n",
]
CLAUDE_FRAMES = [
    typed("message_start", message={**MESSAGE, "content": [], "stop_reason": None, "model": "mine/m"}),
    typed("content_block_start", index=0, content_block={"type": "text", "text": ""}),
    typed("content_block_delta", index=0, delta={"type": "text_delta", "text": "Hel"}),
    typed("content_block_delta", index=0, delta={"type": "text_delta", "text": "lo."}),
    typed("content_block_stop", index=0),
    typed(
        "message_delta", delta={"stop_reason": "end_turn", "stop_sequence": None}, usage={"output_tokens": 2}
    ),
    typed("message_stop"),
]


def gemini(text: str, **more: Any) -> bytes:
    candidate = {"content": {"role": "model", "parts": [{"text": text}]}, "index": 0, **more}
    used = {"promptTokenCount": 3, "candidatesTokenCount": 2, "totalTokenCount": 5}
    return encode({"candidates": [candidate], "usageMetadata": used})


GEMINI_DOCUMENTS = [gemini("Hel"), gemini("lo.", finishReason="STOP")]
GEMINI_FRAMES = [frame(document) for document in GEMINI_DOCUMENTS]
GEMINI_ARRAY = [b"[" + GEMINI_DOCUMENTS[0], b",\r\n" + GEMINI_DOCUMENTS[1], b"]"]
GEMINI_BODY = {"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]}


def provider(dialect: str, **more: Any) -> dict[str, Any]:
    bases = {"openai-chat": "https://h.example/v1", "gemini": "https://h.example/v1beta"}
    base = bases.get(dialect, "https://h.example")
    return {"mine": {"dialect": dialect, "base_url": base, "api_key": "key-one", "retry": {"retries": 0},
                     "breaker": {"consecutive": 999, "minimum": 999}, **more}}  # fmt: skip


class Stage:
    def __init__(self, dialect: str, path: str, body: dict[str, Any], frames: list[bytes]) -> None:
        self.dialect, self.path, self.body, self.frames = dialect, path, body, frames

    def gateway(self, **tables: Any) -> Offline:
        return Offline(**{"providers": provider(self.dialect), "models": {"m": "mine/m"}, **tables})

    def ask(self, gateway: Offline, *pieces: bytes | TransportFault, **headers: str) -> Got:
        kind = "application/json" if self.frames is GEMINI_ARRAY else "text/event-stream"
        gateway.upstream.say(Said(pieces=pieces, headers={"content-type": kind}))
        return gateway.ask(self.path, self.body, **headers)


STAGES = {
    "chat": Stage("openai-chat", CHAT_PATH, asked(stream=True), CHAT_FRAMES),
    "claude": Stage("anthropic", MESSAGES_PATH, asked(stream=True), CLAUDE_FRAMES),
    "gemini": Stage("gemini", "/v1beta/models/m:streamGenerateContent?alt=sse", GEMINI_BODY, GEMINI_FRAMES),
    "array": Stage("gemini", "/v1beta/models/m:streamGenerateContent", GEMINI_BODY, GEMINI_ARRAY),
}


def cuts(data: bytes) -> list[tuple[bytes, ...]]:
    ways: list[tuple[bytes, ...]] = [(data,), tuple(data[at : at + 1] for at in range(len(data)))]
    ways += [tuple(data[at : at + size] for at in range(0, len(data), size)) for size in (7, 64)]
    ways += [(data[:at], data[at:]) for at in range(1, len(data), max(1, len(data) // 25))]
    return ways


@rows("name", list(STAGES))
def test_a_stream_is_the_same_wherever_it_is_cut(name: str) -> None:
    stage = STAGES[name]
    data = b"".join(stage.frames)
    with stage.gateway() as gateway:
        for pieces in cuts(data):
            got = stage.ask(gateway, *pieces)
            assert (got.status, got.body) == (200, data), pieces
            assert got.record is not None
            assert (got.record.usage_source, got.record.stop) == ("provider", "end"), pieces
            assert got.record.usage is not None
            assert (got.record.usage.input, got.record.usage.output) == (3, 2)
            assert got.record.passthrough


def ends_in_error(name: str, body: bytes) -> bool:
    if name == "array":
        document = decode(body)
        return type(document) is list and "error" in document[-1]
    last = [line for line in body.split(b"\n") if line.startswith(b"data: ")][-1]
    document = decode(last.removeprefix(b"data: "))
    return "error" in document


@rows("name", ["chat", "claude", "gemini"])
def test_a_stream_that_breaks_ends_in_an_error_after_its_whole_frames(name: str) -> None:
    stage = STAGES[name]
    first = {"chat": 2, "claude": 3, "gemini": 1, "array": 1}[name]
    last = {"chat": 4, "claude": 7, "gemini": 2, "array": 3}[name]
    with stage.gateway() as gateway:
        for count in range(len(stage.frames)):
            whole = b"".join(stage.frames[:count])
            for half in (b"", stage.frames[count][:20]):
                for end in ((BROKEN,), ()):
                    got = stage.ask(gateway, whole + half, *end)
                    place = (count, half, end)
                    assert got.record is not None
                    if count < first and (end or count == 0 or name != "array"):
                        assert (got.status, got.record.outcome) != (200, "ok"), place
                        continue
                    if count >= last:
                        continue
                    assert got.status == 200, place
                    if got.record.outcome != "ok":
                        assert ends_in_error(name, got.body), place
                        assert got.body.startswith(whole), place
                        assert half == b"" or half not in got.body[len(whole) :], place


@rows("name", ["chat", "claude", "gemini"])
def test_line_ends_of_every_kind_and_keep_alives_pass(name: str) -> None:
    stage = STAGES[name]
    with stage.gateway() as gateway:
        for change in (b"\r\n", b"\r"):
            data = b"".join(stage.frames).replace(b"\n", change)
            for pieces in ((data,), tuple(data[at : at + 9] for at in range(0, len(data), 9))):
                got = stage.ask(gateway, *pieces)
                assert got.record is not None
                assert (got.body, got.record.outcome) == (data, "ok"), change
        spaced = b": ping\n\n".join(stage.frames)
        got = stage.ask(gateway, spaced)
        assert got.body == spaced


def error_frame(name: str, message: str) -> bytes:
    return {
        "chat": frame({"error": {"message": message, "type": "server_error", "code": None, "param": None}}),
        "claude": typed("error", error={"type": "overloaded_error", "message": message}),
        "gemini": frame({"error": {"code": 503, "message": message, "status": "UNAVAILABLE"}}),
    }[name]


@rows("name", ["chat", "claude", "gemini"])
def test_an_error_after_the_beginning_passes_and_is_recorded(name: str) -> None:
    stage = STAGES[name]
    data = b"".join(stage.frames[:3]) if name != "gemini" else stage.frames[0]
    with stage.gateway() as gateway:
        for together in (True, False):
            error = error_frame(name, "no room")
            got = stage.ask(gateway, *((data + error,) if together else (data, error)))
            assert got.record is not None
            assert (got.record.outcome, "no room" in got.record.error_message) == ("error", True)
            assert got.body.startswith(data)
            assert b"no room" in got.body
            secret = stage.ask(gateway, *((data + error_frame(name, "bad key-one-of-mine"),)))
            assert secret.record is not None
            assert secret.record.outcome == "error"


@rows("name", ["chat", "claude", "gemini"])
def test_an_error_in_place_of_a_stream_is_an_error_with_a_status(name: str) -> None:
    stage = STAGES[name]
    with stage.gateway() as gateway:
        got = stage.ask(gateway, error_frame(name, "no room"))
        assert got.record is not None
        assert got.record.outcome == "error"
        assert b"no room" in got.body


def test_secrets_in_errors_of_a_stream_are_hidden() -> None:
    stage = STAGES["chat"]
    tables = {"providers": provider("openai-chat", api_key="a-secret-key-0123456789")}
    with stage.gateway(**tables) as gateway:
        for spelled in ("a-secret-key-0123456789", "a\\u002dsecret\\u002dkey\\u002d0123456789"):
            error = frame(b'{"error":{"message":"bad key: ' + spelled.encode() + b'","type":"server_error"}}')
            got = stage.ask(gateway, b"".join(CHAT_FRAMES[:2]) + error)
            assert spelled.encode() not in got.body
            assert b"0123456789" not in got.body
            assert b"Hel" in got.body
            assert ends_in_error("chat", got.body)


@rows("name", ["chat", "claude", "gemini", "array"])
def test_a_frame_that_is_no_json_breaks_the_stream_there(name: str) -> None:
    stage = STAGES[name]
    at = {"chat": 2, "claude": 3, "gemini": 1, "array": 1}[name]
    bad = b"data: {nonsense\n\n" if name != "array" else b",{nonsense}"
    with stage.gateway() as gateway:
        whole = b"".join(stage.frames[:at])
        got = stage.ask(gateway, whole, bad + b"".join(stage.frames[at:]))
        assert got.record is not None
        assert got.record.outcome == "error"
        assert b"nonsense" not in got.body
        assert got.body.startswith(whole)
        assert ends_in_error(name, got.body)


def test_a_frame_that_is_too_large_breaks_the_stream() -> None:
    stage = STAGES["chat"]
    with stage.gateway(limits={"event": 500}) as gateway:
        data = b"".join(CHAT_FRAMES[:2])
        got = stage.ask(gateway, data, chunk({"content": "x" * 600}), *CHAT_FRAMES[3:])
        assert got.record is not None
        assert got.record.outcome == "error"
        assert b"xxx" not in got.body


@rows("streams", ["both", "only"])
def test_a_stream_that_is_larger_than_four_answers_is_not_collected(streams: str) -> None:
    body = asked(stream=streams == "both")
    with Offline(providers=provider("openai-chat", streams=streams), limits={"response": 1000}) as gateway:
        many = tuple(chunk({"content": "x" * 100}) for _ in range(25))
        gateway.upstream.say(Said(pieces=(*CHAT_FRAMES[:1], *many, *CHAT_FRAMES[3:])))
        got = gateway.ask(CHAT_PATH, body)
        assert got.record is not None
        assert got.record.outcome == ("ok" if streams == "both" else "error")
        few = many[:10]
        gateway.upstream.say(Said(pieces=(*CHAT_FRAMES[:1], *few, *CHAT_FRAMES[3:])))
        assert gateway.ask(CHAT_PATH, body).status == 200


# Time.


class Slow(Said):
    """Says its pieces with seconds between them."""

    def __init__(self, *pieces: tuple[float, bytes], end: float = 0.0) -> None:
        super().__init__(pieces=())
        self._timed, self._end = pieces, end
        self._gone: asyncio.Event = asyncio.Event()

    async def pump(self, feed: Callable[[bytes], None]) -> None:
        async def work() -> None:
            for seconds, piece in self._timed:
                await asyncio.sleep(seconds)
                if self.aborted:
                    raise BROKEN
                feed(piece)
            until = asyncio.get_running_loop().time() + self._end
            while not self.aborted and asyncio.get_running_loop().time() < until:
                await asyncio.sleep(0.1)

        await work()


def slowly(
    *pieces: tuple[float, bytes], end: float = 0.0, dialect: str = "openai-chat", **tables: Any
) -> tuple[Got, Offline, Slow]:
    said = Slow(*pieces, end=end)
    table = provider(dialect, timeouts={"idle": 10})
    with Offline(**{"providers": table, **tables}) as gateway:
        gateway.upstream.say(said)
        return gateway.ask(CHAT_PATH, asked(stream=True)), gateway, said


def test_an_upstream_that_sends_only_keep_alives_is_given_up() -> None:
    first = [(0.0, each) for each in CHAT_FRAMES[:2]]
    got, gateway, said = slowly(
        *first, *[(4.0, b": ping\n\n")] * 20, *[(0.0, each) for each in CHAT_FRAMES[2:]]
    )
    assert got.record is not None
    assert got.record.outcome == "error"
    assert "nothing but keep-alives" in got.record.error_message
    assert ends_in_error("chat", got.body)
    assert said.aborted
    assert 10 <= gateway.seconds <= 25


def test_an_upstream_that_goes_on_slowly_is_waited_for() -> None:
    got, _, said = slowly(*[(9.0, each) for each in CHAT_FRAMES])
    assert got.record is not None
    assert (got.record.outcome, said.aborted) == ("ok", False)


def test_the_client_does_not_wait_for_an_upstream_that_does_not_close() -> None:
    got, gateway, said = slowly(*[(0.0, each) for each in CHAT_FRAMES], end=100.0)
    assert got.record is not None
    assert got.record.outcome == "ok"
    assert said.aborted
    assert 2.0 <= gateway.seconds <= 2.2


def test_a_silent_stream_is_kept_alive() -> None:
    pieces = [
        (0.0, CHAT_FRAMES[0]),
        (4.0, CHAT_FRAMES[1]),
        (0.0, CHAT_FRAMES[2]),
        (4.0, b"".join(CHAT_FRAMES[3:])),
    ]
    got, _, _ = slowly(*pieces, limits={"ping": 3.0})
    ping = surface("openai-chat").client.pings["sse"]
    assert got.body.count(ping) == 2
    assert got.body.replace(ping, b"") == b"".join(CHAT_FRAMES)


# Other dialects.

CALL = [
    chunk({"role": "assistant", "tool_calls": [
        {"index": 0, "id": "call_1", "type": "function", "function": {"name": "look", "arguments": ""}}]}),
    chunk({"tool_calls": [{"index": 0, "function": {"arguments": '{"a":'}}]}),
    chunk({"tool_calls": [{"index": 0, "function": {"arguments": "1}"}}]}),
    chunk({}, "tool_calls"),
    b"data: [DONE]\n\n",
]  # fmt: skip
TOOLS = [{"name": "look", "input_schema": {"type": "object", "properties": {"a": {"type": "integer"}}}}]


def translated(frames: list[bytes], size: int, **more: Any) -> list[dict[str, Any]]:
    data = b"".join(frames)
    with Offline(providers=provider("openai-chat")) as gateway:
        gateway.upstream.say(Said(pieces=tuple(data[at : at + size] for at in range(0, len(data), size))))
        got = gateway.ask(MESSAGES_PATH, asked(stream=True, **more))
        assert got.status == 200
        assert got.record is not None
        assert got.record.outcome == "ok"
        lines = [line for line in got.body.split(b"\n") if line.startswith(b"data: ")]
        return [decode(line.removeprefix(b"data: ")) for line in lines]


def test_a_translated_stream_says_the_same_wherever_it_is_cut() -> None:
    for frames, more in ((CHAT_FRAMES, {}), (CALL, {"tools": TOOLS})):
        said = []
        for size in (1, 13, 100, 100_000):
            events = translated(frames, size, **more)
            assert events[0]["type"] == "message_start"
            assert events[-1]["type"] == "message_stop"
            assert events[0]["message"]["model"] == "mine/m"
            text = "".join(event["delta"].get("text", "") + event["delta"].get("partial_json", "")
                           for event in events if event["type"] == "content_block_delta")  # fmt: skip
            stop = next(event for event in events if event["type"] == "message_delta")
            said.append((text, stop["delta"]["stop_reason"]))
        assert len(set(said)) == 1
        assert said[0] == (('{"a":1}', "tool_use") if more else ("Hello.", "end_turn"))


def test_a_translated_stream_that_breaks_ends_in_an_error() -> None:
    with Offline(providers=provider("openai-chat", breaker={"consecutive": 1})) as gateway:
        ways: list[tuple[bytes | TransportFault, ...]] = [(*CHAT_FRAMES[:2], BROKEN), tuple(CHAT_FRAMES[:2])]
        for pieces in ways:
            gateway.gateway.health.breakers.clear()
            gateway.upstream.say(Said(pieces=pieces))
            got = gateway.ask(MESSAGES_PATH, asked(stream=True))
            assert got.status == 200
            assert b"Hel" in got.body
            assert b"message_stop" not in got.body
            assert ends_in_error("claude", got.body)
            assert got.record is not None
            assert got.record.outcome == "error"
            assert got.record.id.encode() in got.body
            assert gateway.gateway.health.breakers["mine/m"].is_open


def test_usage_of_a_translated_stream_is_estimated_where_it_is_missing() -> None:
    frames = [*CHAT_FRAMES[:3], chunk({}, "stop"), CHAT_FRAMES[4]]
    with Offline(providers=provider("openai-chat")) as gateway:
        gateway.upstream.say(Said(pieces=tuple(frames)))
        got = gateway.ask(MESSAGES_PATH, asked(stream=True))
        assert got.record is not None
        assert got.record.usage_source == "estimated"
        assert got.record.usage is not None
        assert got.record.usage.output > 0
        lines = [decode(line[6:]) for line in got.body.split(b"\n") if line.startswith(b"data: ")]
        ended = next(line for line in lines if line["type"] == "message_delta")
        assert ended["usage"]["output_tokens"] == got.record.usage.output


def test_a_whole_answer_in_place_of_a_stream_is_streamed() -> None:
    for path in (CHAT_PATH, MESSAGES_PATH):
        with Offline(providers=provider("openai-chat")) as gateway:
            gateway.upstream.say(Said(body=CHAT))
            got = gateway.ask(path, asked(stream=True))
            assert got.headers["content-type"].startswith("text/event-stream")
            assert got.record is not None
            assert (got.record.outcome, b"Hello." in got.body) == ("ok", True)
            gateway.upstream.say(Said(body=CHAT, headers={"content-type": "text/event-stream"}))
            got = gateway.ask(path, asked(stream=True))
            assert got.record is not None
            assert (got.record.outcome, b"Hello." in got.body) == ("ok", True)


def test_an_empty_stream_is_no_answer_and_is_asked_for_again() -> None:
    empty = (CHAT_FRAMES[0], *CHAT_FRAMES[3:])
    for path in (CHAT_PATH, MESSAGES_PATH):
        with Offline(
            providers={"mine": {**provider("openai-chat")["mine"], "retry": {"retries": 2}}}
        ) as gateway:
            gateway.upstream.say(Said(pieces=empty), Said(pieces=tuple(CHAT_FRAMES)))
            got = gateway.ask(path, asked(stream=True))
            assert (got.status, len(gateway.upstream.sent)) == (200, 2)
            assert b"Hel" in got.body


def test_a_call_whose_arguments_are_cut_off_is_reported() -> None:
    cut = [*CALL[:2], chunk({}, "tool_calls"), CALL[4]]
    tool = {"type": "function", "function": {"name": "look", "parameters": TOOLS[0]["input_schema"]}}
    with Offline(providers=provider("openai-chat")) as gateway:
        gateway.upstream.say(Said(pieces=tuple(cut)))
        got = gateway.ask(CHAT_PATH, asked(stream=True, tools=[tool]))
        assert got.record is not None
        assert (got.record.outcome, got.record.error_code) == ("error", "truncated_tool_call")
        assert ends_in_error("chat", got.body)
        gateway.upstream.say(Said(pieces=tuple(CALL)))
        got = gateway.ask(CHAT_PATH, asked(stream=True, tools=[tool]))
        assert got.record is not None
        assert (got.record.outcome, got.body) == ("ok", b"".join(CALL))
