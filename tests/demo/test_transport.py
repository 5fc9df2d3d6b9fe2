"""The demo provider inside the process, through the seam that every provider is reached by."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace

from tests.tiers import rows
from wireglot.demo.service import DemoTarget, DemoTransport, serve, target_of
from wireglot.http.transport import Answer, Outbound, Timeouts, TransportFault
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.registry import dialect
from wireglot_core.ir.content import Message, Part, Reasoning, Text, ToolCall
from wireglot_core.ir.outcome import Response
from wireglot_core.ir.request import OutputFormat, Request, Thinking, Tool
from wireglot_core.ir.stream import Failure, fold
from wireglot_core.providers.endpoints import Operation, endpoint
from wireglot_core.providers.spec import ProviderSpec
from wireglot_core.testing.laws import read_stream
from wireglot_core.wire.json import decode, encode

DIALECTS = ("anthropic", "openai-chat", "openai-responses", "gemini", "code-assist")
DEMO = ProviderSpec("demo", "Demo", DIALECTS, "demo:", auth="none")
TOOL = Tool(
    "get_weather",
    "Weather",
    {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
)


def outbound(name: str, operation: Operation, body: dict[str, Any]) -> Outbound:
    return Outbound("POST", endpoint(DEMO, name, operation, "demo"), [], encode(body))


def body_of(name: str, request: Request, stream: bool) -> dict[str, Any]:
    return dialect(name).render_request(replace(request, stream=stream), Context()).value


async def send(name: str, request: Request, stream: bool, timeouts: Timeouts | None = None) -> Answer:
    operation: Operation = "stream" if stream else "generate"
    prepared = outbound(name, operation, body_of(name, request, stream))
    return await DemoTransport(clock=lambda: 7.0).send(prepared, timeouts or Timeouts())


async def pieces_of(answer: Answer) -> list[bytes]:
    pieces: list[bytes] = []
    await answer.pump(pieces.append)
    return pieces


def run(name: str, request: Request, stream: bool) -> Response:
    async def go() -> Response:
        answer = await send(name, request, stream)
        assert answer.status == 200
        if stream:
            return fold(read_stream(dialect(name), await pieces_of(answer)))
        assert answer.headers["content-type"] == "application/json"
        return dialect(name).parse_response(decode(await answer.read(1 << 20)), Context())

    return asyncio.run(go())


def ask(text: str, **more: Any) -> Request:
    return Request("demo", (Message("user", (Text(text),)),), max_tokens=2000, **more)


def the(kind: type[Part], response: Response) -> Any:
    (found,) = [part for part in response.content if isinstance(part, kind)]
    return found


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("name", DIALECTS)
class TestEveryDialect:
    def test_text_is_answered(self, name: str, stream: bool) -> None:
        response = run(name, ask("Hello there"), stream)
        assert "Hello there" in the(Text, response).text
        assert response.stop.reason == "end"
        assert response.usage is not None
        assert response.usage.total_input > 0
        assert response.usage.total_output > 0

    def test_an_offered_tool_is_called(self, name: str, stream: bool) -> None:
        response = run(name, ask("Weather in Rome?", tools=(TOOL,)), stream)
        call = the(ToolCall, response)
        assert (call.name, decode(call.arguments)) == ("get_weather", {"city": "Rome"})
        assert response.stop.reason == "tool_calls"

    def test_parallel_calls_stay_apart(self, name: str, stream: bool) -> None:
        response = run(name, ask("[[demo:tools 2]] Rome", tools=(TOOL,)), stream)
        calls = [part for part in response.content if isinstance(part, ToolCall)]
        assert len({call.id for call in calls}) == 2

    def test_thinking_is_shown_before_the_answer(self, name: str, stream: bool) -> None:
        asked = Thinking("on", "high", 1024, "summary")
        response = run(name, ask("Hello", thinking=asked), stream)
        assert the(Reasoning, response).text
        assert isinstance(response.content[0], Reasoning)

    def test_a_schema_is_filled(self, name: str, stream: bool) -> None:
        schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
        response = run(name, ask("JSON", output=OutputFormat("schema", schema, "answer")), stream)
        assert decode(the(Text, response).text) == {"n": 1}

    def test_a_refusal_is_reported(self, name: str, stream: bool) -> None:
        assert run(name, ask("[[demo:refuse]]"), stream).stop.reason == "refused"

    def test_the_limit_is_reported(self, name: str, stream: bool) -> None:
        request = Request("demo", (Message("user", (Text("[[demo:text 200]]"),)),), max_tokens=20)
        assert run(name, request, stream).stop.reason == "length"

    def test_an_error_has_its_status_and_its_dialect(self, name: str, stream: bool) -> None:
        async def go() -> None:
            answer = await send(name, ask("[[demo:fail 429 retry-after=2]]"), stream)
            assert (answer.status, answer.headers["retry-after"]) == (429, "2")
            error = dialect(name).parse_error(decode(await answer.read(1 << 20)), answer.status)
            assert error is not None
            assert error.kind == "rate_limit"

        asyncio.run(go())


@pytest.mark.parametrize("name", DIALECTS)
def test_an_answer_that_fails_half_way_is_an_error_where_it_is_not_streamed(name: str) -> None:
    async def go() -> None:
        answer = await send(name, ask("[[demo:fail-midstream]]"), stream=False)
        error = dialect(name).parse_error(decode(await answer.read(1 << 20)), answer.status)
        assert error is not None
        assert (answer.status, error.kind) == (529, "overloaded")

    asyncio.run(go())


@pytest.mark.parametrize("name", DIALECTS)
class TestStreams:
    def test_words_come_one_by_one(self, name: str) -> None:
        async def go() -> int:
            return len(await pieces_of(await send(name, ask("[[demo:text 30]]"), stream=True)))

        assert asyncio.run(go()) > 30

    def test_a_failure_half_way_is_the_dialects_own(self, name: str) -> None:
        events = asyncio.run(self._events(name, "[[demo:fail-midstream]]"))
        assert isinstance(events[-1], Failure)
        assert events[-1].error.kind == "overloaded"
        assert len(events) > 4

    def test_a_cut_stream_has_no_end(self, name: str) -> None:
        events = asyncio.run(self._events(name, "[[demo:cut]]"))
        assert isinstance(events[-1], Failure)
        assert "asked to fail" not in events[-1].error.message

    async def _events(self, name: str, text: str) -> list[Any]:
        answer = await send(name, ask(text), stream=True)
        assert answer.status == 200
        return read_stream(dialect(name), await pieces_of(answer))


# Each waits for one clock alone: on a busy machine a first byte takes longer than that, too.
NO_FIRST_BYTE = Timeouts(first_byte=0.01, idle=600.0, total=600.0)
NO_MORE = Timeouts(first_byte=600.0, idle=0.01, total=600.0)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_silence_ends_in_the_timeout_that_a_provider_would_cause(stream: bool) -> None:
    async def go(text: str, timeouts: Timeouts) -> str:
        with pytest.raises(TransportFault) as caught:
            await (await send("anthropic", ask(text), stream, timeouts)).read(1 << 20)
        return caught.value.problem

    assert asyncio.run(go("[[demo:hang]]", NO_FIRST_BYTE)) == "first_byte_timeout"
    assert asyncio.run(go("[[demo:hang-midstream]]", NO_MORE)) == "idle_timeout"
    assert asyncio.run(go("[[demo:slow 1s]]", NO_MORE)) == "idle_timeout"


def test_a_whole_answer_that_is_cut_is_a_broken_connection() -> None:
    async def go() -> None:
        answer = await send("openai-chat", ask("[[demo:cut]]"), stream=False)
        with pytest.raises(TransportFault) as caught:
            await answer.read(1 << 20)
        assert caught.value.problem == "broken"

    asyncio.run(go())


def test_an_answer_over_the_limit_is_not_read() -> None:
    async def go() -> None:
        answer = await send("gemini", ask("Hello"), stream=False)
        with pytest.raises(TransportFault) as caught:
            await answer.read(10)
        assert caught.value.problem == "too_large"

    asyncio.run(go())


def test_a_paused_stream_waits_until_it_is_resumed() -> None:
    async def go() -> None:
        answer = await send("openai-chat", ask("Hello"), stream=True)
        seen: list[bytes] = []
        paused = asyncio.Event()

        def feed(piece: bytes) -> None:
            seen.append(piece)
            if len(seen) == 3:
                answer.pause()
                paused.set()

        task = asyncio.create_task(answer.pump(feed))
        await paused.wait()
        for _ in range(20):
            await asyncio.sleep(0)
        assert len(seen) == 3
        answer.resume()
        await task
        assert len(seen) > 3

    asyncio.run(go())


def test_an_aborted_stream_feeds_nothing_more() -> None:
    async def go() -> None:
        answer = await send("openai-chat", ask("Hello"), stream=True)
        seen: list[bytes] = []

        def feed(piece: bytes) -> None:
            seen.append(piece)
            answer.abort()

        with pytest.raises(TransportFault):
            await answer.pump(feed)
        assert len(seen) == 1

    asyncio.run(go())


def test_what_the_feed_raises_comes_out() -> None:
    async def go() -> None:
        def feed(piece: bytes) -> None:
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            await (await send("gemini", ask("Hello"), stream=True)).pump(feed)

    asyncio.run(go())


async def _document(request: Outbound) -> tuple[int, Any]:
    transport = DemoTransport()
    answer = await transport.send(request, Timeouts())
    document = decode(await answer.read(1 << 20))
    await transport.close()
    return answer.status, document


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("anthropic", "input_tokens"),
        ("openai-responses", "input_tokens"),
        ("gemini", "totalTokens"),
        ("code-assist", "totalTokens"),
    ],
)
def test_tokens_are_counted(name: str, key: str) -> None:
    short, long = (
        asyncio.run(_document(outbound(name, "count", body_of(name, ask(text), False))))[1][key]
        for text in ("Hello", "Hello " * 100)
    )
    assert 0 < short < long


def test_gemini_counts_a_wrapped_request_too() -> None:
    body = {
        "generateContentRequest": {
            "model": "models/demo",
            "contents": [{"role": "user", "parts": [{"text": "hi"}]}],
        }
    }
    assert asyncio.run(_document(outbound("gemini", "count", body)))[1]["totalTokens"] > 0


@pytest.mark.parametrize(
    ("headers", "path", "where"),
    [
        ([("anthropic-version", "2023-06-01")], "/v1/models", "data"),
        ([], "/models", "data"),
        ([], "/v1beta/models", "models"),
        ([("x-goog-api-key", "x")], "/models", "models"),
    ],
)
def test_models_are_listed_in_the_dialect_of_who_asks(
    headers: list[tuple[str, str]], path: str, where: str
) -> None:
    status, document = asyncio.run(_document(Outbound("GET", f"demo:{path}", headers)))
    assert status == 200
    (model,) = document[where]
    assert "demo" in (model.get("id"), model.get("name", "").removeprefix("models/"))
    one = asyncio.run(_document(Outbound("GET", f"demo:{path}/other%2Fone", headers)))[1]
    assert "other/one" in (one.get("id"), one.get("name", "").removeprefix("models/"))
    assert one.keys() == model.keys()


def test_lists_of_models_are_those_of_their_dialects() -> None:
    def listed(*headers: tuple[str, str]) -> dict[str, Any]:
        target = target_of("/models", headers=dict(headers))
        assert target is not None
        document: dict[str, Any] = decode(serve(target, b"", now=7).body)
        return document

    assert listed() == {
        "object": "list",
        "data": [{"id": "demo", "object": "model", "created": 7, "owned_by": "wireglot"}],
    }
    assert listed(("anthropic-version", "2023-06-01")) == {
        "data": [
            {
                "type": "model",
                "id": "demo",
                "display_name": "Wireglot demo",
                "created_at": "2026-01-01T00:00:00Z",
            }
        ],
        "has_more": False,
        "first_id": "demo",
        "last_id": "demo",
    }
    assert listed(("x-goog-api-key", "x")) == {
        "models": [
            {
                "name": "models/demo",
                "version": "001",
                "displayName": "Wireglot demo",
                "inputTokenLimit": 1_000_000,
                "outputTokenLimit": 65_536,
                "supportedGenerationMethods": ["generateContent", "countTokens"],
            }
        ]
    }


@pytest.mark.parametrize(
    ("name", "prefix"),
    [("anthropic", "msg_demo"), ("openai-chat", "chatcmpl-demo"), ("openai-responses", "resp_demo")],
)
def test_an_answer_has_an_id_of_its_dialect_that_its_headers_repeat(name: str, prefix: str) -> None:
    body = encode(body_of(name, ask("Hello"), False))
    served, again, other = (serve(DemoTarget(name, "generate"), body, seed=seed) for seed in ("", "", "x"))
    document = decode(served.body)
    assert document["id"].startswith(prefix)
    assert document["model"] == "demo"
    assert dict(served.headers) == {
        "content-type": "application/json",
        "x-request-id": document["id"],
        "request-id": document["id"],
    }
    assert served == again
    assert decode(other.body)["id"] != document["id"]


@pytest.mark.parametrize(
    ("wait", "header"),
    [
        ("retry-after=2", ("retry-after", "2")),
        ("retry-after-ms=1500", ("retry-after-ms", "1500")),
        ("", None),
    ],
)
def test_a_failure_tells_how_long_to_wait(wait: str, header: tuple[str, str] | None) -> None:
    body = encode(body_of("openai-chat", ask(f"[[demo:fail 503 {wait}]]"), False))
    served = serve(DemoTarget("openai-chat", "generate"), body)
    assert served.status == 503
    assert [each for each in served.headers if "retry" in each[0]] == ([header] if header else [])


@rows("name", DIALECTS)
def test_a_body_that_is_no_request_is_refused_in_the_dialect(name: str) -> None:
    for body in (b"{", b"[]", b'{"messages": 3, "input": 3, "contents": 3, "request": {"contents": 3}}'):
        request = Outbound("POST", endpoint(DEMO, name, "generate", "demo"), [], body)
        status, document = asyncio.run(_document(request))
        assert status == 400
        error = dialect(name).parse_error(document, status)
        assert error is not None
        assert error.kind == "invalid_request"


def test_a_path_nobody_serves_is_not_found() -> None:
    for path in ("/v1/nothing", "/v1internal:unheardOf", "/models/x:sing"):
        assert asyncio.run(_document(Outbound("POST", f"demo:{path}", [], b"{}")))[0] == 404


def test_threads_are_refused_in_the_words_the_sdk_knows() -> None:
    body = {**body_of("anthropic", ask("Hi"), False), "thread": {"type": "create"}}
    status, document = asyncio.run(_document(outbound("anthropic", "generate", body)))
    assert status == 400
    assert document["error"]["details"]["error_code"] == "thread_unsupported_request"


def test_gemini_streams_an_array_where_sse_is_not_asked_for() -> None:
    body = body_of("gemini", ask("Hello"), True)
    request = Outbound("POST", "demo:/models/demo:streamGenerateContent", [], encode(body))
    _, chunks = asyncio.run(_document(request))
    assert len(chunks) > 5
    assert chunks[-1]["candidates"][0]["finishReason"] == "STOP"
