"""Clients of Ollama's native API, by its own Python package, before upstreams of every dialect."""

from __future__ import annotations

import hashlib
import http.client
from collections.abc import Iterator
from typing import Any

import ollama
import pytest

from tests.gateway.inspector.inspector_kit import Visitor
from tests.tiers import rows
from tests.waiting import DEADLINE_SECONDS
from wireglot.testing.live_gateway import LiveGateway
from wireglot.testing.scripted_upstream import Behaviour, ScriptedUpstream
from wireglot.testing.scripted_upstream.behaviour import Recorded
from wireglot_core.wire.json import decode, encode

KEY = "client-key-0123456789abcdef"
ADMIN = "admin-secret-0123456789"
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII="
HELLO = [{"role": "user", "content": "Hello there"}]
WEATHER: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather of a city",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}},
            "required": ["city"],
        },
    },
}
UPSTREAMS = (
    "demo", "demo-anthropic", "demo-openai-chat", "demo-openai-responses", "demo-gemini", "demo-ollama",
)  # fmt: skip


@pytest.fixture(scope="module")
def gateway() -> Iterator[LiveGateway]:
    with LiveGateway() as live:
        yield live


@pytest.fixture(scope="module")
def client(gateway: LiveGateway) -> ollama.Client:
    return ollama.Client(gateway.url)


@rows("model", UPSTREAMS)
def test_a_stream_adds_up_to_the_whole_answer(client: ollama.Client, model: str) -> None:
    whole = client.chat(model, HELLO)
    assert whole.message.content is not None
    assert whole.message.content.startswith("Hello! I am demo")
    assert (whole.done, whole.done_reason) == (True, "stop")
    assert whole.eval_count
    assert whole.prompt_eval_count
    *pieces, last = client.chat(model, HELLO, stream=True)
    assert len(pieces) > 3
    assert "".join(piece.message.content or "" for piece in (*pieces, last)) == whole.message.content
    assert not any(piece.done for piece in pieces)
    assert (last.done, last.done_reason, last.eval_count) == (True, "stop", whole.eval_count)


@rows("model", UPSTREAMS)
def test_a_prompt_is_answered_whole_and_as_a_stream(client: ollama.Client, model: str) -> None:
    whole = client.generate(model, "Hello there", system="Be brief.")
    assert whole.response is not None
    assert whole.response.startswith("Hello! I am demo")
    pieces = list(client.generate(model, "Hello there", system="Be brief.", stream=True))
    assert "".join(piece.response or "" for piece in pieces) == whole.response
    assert pieces[-1].done_reason == "stop"


@rows("model", UPSTREAMS)
@rows("stream", [False, True])
def test_a_tool_is_called_and_its_result_is_read(client: ollama.Client, model: str, stream: bool) -> None:
    asked: list[Any] = [{"role": "user", "content": "What is the weather in Paris?"}]
    message = _answered(client, model, asked, stream, tools=[WEATHER])
    assert message.tool_calls
    call = message.tool_calls[0].function
    assert call.name == "get_weather"
    assert isinstance(call.arguments["city"], str)
    # The Python package sends no ids back: results are paired by the name of their tool.
    result = {"role": "tool", "tool_name": "get_weather", "content": "24 degrees and a purple sky"}
    told = _answered(client, model, [*asked, message, result], stream, tools=[WEATHER])
    assert "24 degrees and a purple sky" in (told.content or "")
    assert not told.tool_calls


def _answered(
    client: ollama.Client, model: str, messages: list[Any], stream: bool, **more: Any
) -> ollama.Message:
    if not stream:
        answer: ollama.ChatResponse = client.chat(model, messages, **more)
        return answer.message
    pieces = list(client.chat(model, messages, stream=True, **more))
    calls = [call for piece in pieces for call in piece.message.tool_calls or ()]
    return ollama.Message(
        role="assistant",
        content="".join(piece.message.content or "" for piece in pieces),
        thinking="".join(piece.message.thinking or "" for piece in pieces) or None,
        tool_calls=calls or None,
    )


@rows("model", UPSTREAMS)
@rows("stream", [False, True])
def test_thinking_is_apart_from_the_text(client: ollama.Client, model: str, stream: bool) -> None:
    message = _answered(client, model, HELLO, stream, think="high")
    assert message.thinking
    assert message.thinking not in (message.content or "")
    if model != "demo-gemini":  # models with levels of thinking have no off
        assert not _answered(client, model, HELLO, stream, think=False).thinking


@rows("model", UPSTREAMS)
def test_a_schema_is_kept_to(client: ollama.Client, model: str) -> None:
    schema = {
        "type": "object",
        "properties": {"age": {"type": "integer"}, "busy": {"type": "boolean"}},
        "required": ["age", "busy"],
    }
    told = client.chat(model, HELLO, format=schema).message.content
    document = decode((told or "").encode())
    assert (type(document["age"]), type(document["busy"])) == (int, bool)


def test_pictures_reach_a_provider_with_their_type() -> None:
    with ScriptedUpstream() as upstream, LiveGateway.before(upstream, "anthropic") as live:
        ollama.Client(live.url).chat("m", [{"role": "user", "content": "Look", "images": [PNG]}])
        (said,) = upstream.requests[-1].json["messages"]
    source = {"type": "base64", "media_type": "image/png", "data": PNG}
    assert {"type": "image", "source": source} in said["content"]


def test_models_are_listed_and_shown_with_what_they_can(client: ollama.Client) -> None:
    names = [entry.model for entry in client.list().models]
    assert names.count("demo") == 1
    for name in ("demo", "demo:latest"):
        shown = client.show(name)
        assert shown.capabilities == ["completion", "tools", "vision", "thinking"]
        assert shown.modelinfo is not None
        architecture = shown.modelinfo["general.architecture"]
        assert shown.modelinfo[f"{architecture}.context_length"] == 200_000
    assert list(client.ps().models) == []
    embeds = client.show("demo-embedding")
    assert embeds.capabilities == ["embedding"]
    assert embeds.modelinfo is not None
    assert embeds.modelinfo["wireglot.embedding_length"] == 256


def test_a_model_that_is_there_has_been_pulled(client: ollama.Client, gateway: LiveGateway) -> None:
    """As Home Assistant and Spring AI want it before they ask a model that they do not see in the list."""
    for name in ("demo", "demo:latest", "demo-embedding"):
        assert client.pull(name).status == "success"
        assert [each.status for each in client.pull(name, stream=True)] == ["success"]
    with pytest.raises(ollama.ResponseError) as caught:
        client.pull("nobody/x")
    assert caught.value.status_code == 404
    with pytest.raises(ollama.ResponseError) as caught:
        list(client.pull("nobody/x", stream=True))
    assert "nobody" in caught.value.error
    for body in ({}, {"name": ""}):
        assert _ask(gateway, "POST", "/api/pull", body)[0] == 400


def test_a_probe_with_head_is_answered_as_with_get(gateway: LiveGateway) -> None:
    """Ollama has HEAD for these."""
    for path in ("/", "/ollama", "/api/version", "/api/tags"):
        assert _ask(gateway, "HEAD", path, None) == (200, b""), path


def test_a_name_with_the_tag_latest_is_the_name(client: ollama.Client) -> None:
    assert client.chat("demo:latest", HELLO).message.content == client.chat("demo", HELLO).message.content


def test_an_unknown_model_is_a_404_with_a_message(client: ollama.Client) -> None:
    for ask in (
        lambda: client.show("nobody/x"),
        lambda: client.chat("nobody/x", HELLO),
        lambda: list(client.chat("nobody/x", HELLO, stream=True)),
        lambda: client.generate("nobody/x", "Hi"),
    ):
        with pytest.raises(ollama.ResponseError) as caught:
            ask()
        assert caught.value.status_code == 404
        assert "nobody" in caught.value.error


def test_a_request_that_asks_nothing_loads_or_unloads(client: ollama.Client) -> None:
    assert client.chat("demo", []).done_reason == "load"
    assert client.chat("demo", [], keep_alive=0).done_reason == "unload"
    assert client.generate("demo").done_reason == "load"
    assert client.generate("demo", "", keep_alive=0).response == ""
    blanks: tuple[Any, ...] = ("", [])
    for blank in blanks:
        assert list(client.embed("demo-embedding", blank).embeddings) == []
    assert list(client.embeddings("demo-embedding", "").embedding) == []
    with pytest.raises(ollama.ResponseError) as caught:
        client.embed("nobody/x", "")
    assert caught.value.status_code == 404
    with pytest.raises(ollama.ResponseError) as caught:
        client.chat("nobody/x", [])
    assert caught.value.status_code == 404


def test_show_asks_for_the_name_of_a_model(gateway: LiveGateway) -> None:
    for body in ({}, {"model": ""}, {"model": 5}):
        status, answer = _ask(gateway, "POST", "/api/show", body)
        assert (status, "model" in decode(answer)["error"]) == (400, True)
    assert _ask(gateway, "POST", "/api/show", {"name": "demo"})[0] == 200


def test_an_insertion_is_refused_as_by_a_model_that_cannot(client: ollama.Client) -> None:
    with pytest.raises(ollama.ResponseError) as caught:
        client.generate("demo", "def add(", suffix="return a + b")
    assert caught.value.status_code == 400
    assert "suffix" in caught.value.error


@rows("dialect", ["anthropic", "openai-chat", "openai-responses", "gemini", "ollama"])
@rows("fault", ["error-midstream", "no-terminal"])
def test_a_stream_that_breaks_ends_in_an_error(dialect: str, fault: Any) -> None:
    with (
        ScriptedUpstream(decide=lambda _: Behaviour(fault=fault)) as upstream,
        LiveGateway.before(upstream, dialect) as live,
        pytest.raises(ollama.ResponseError) as caught,
    ):
        for _ in ollama.Client(live.url).chat("m", HELLO, stream=True):
            pass
    assert caught.value.error


LINES = (
    b'{"model": "up", "created_at": "2026-08-21T10:00:00.123456Z", "message": {"role": "assistant", '
    b'"content": "", "thinking": "Hm"}, "done": false}\n'
    b'{"model":"up","created_at":"2026-08-21T10:00:00.2Z","message":{"role":"assistant","content":"H\xc3\xa9"},'
    b'"done":false, "new" : [1]}\n'
    b'{"model":"up","created_at":"2026-08-21T10:00:01Z","message":{"role":"assistant","content":""},'
    b'"done":true,"done_reason":"stop","total_duration":9,"prompt_eval_count":3,"eval_count":4}\n'
)


def test_a_stream_of_ollamas_own_passes_byte_by_byte() -> None:
    served = Behaviour(headers=(("content-type", "application/x-ndjson"),), pieces=(LINES[:200], LINES[200:]))
    with (
        ScriptedUpstream(decide=lambda _: served) as upstream,
        LiveGateway.before(upstream, "ollama") as live,
    ):
        body = {"model": "m", "messages": HELLO}
        assert _ask(live, "POST", "/api/chat", body) == (200, LINES)
        assert upstream.requests[-1].json == body


def test_a_prompt_reaches_an_ollama_server_unchanged() -> None:
    """With what is of use for completions only there."""
    answer = {"model": "m", "response": "a + b", "done": True, "done_reason": "stop", "context": [1, 2]}
    served = Behaviour(headers=(("content-type", "application/json"),), body=encode(answer))
    body = {"model": "m", "prompt": "def add(", "suffix": "return", "raw": True, "stream": False}
    with (
        ScriptedUpstream(decide=lambda _: served) as upstream,
        LiveGateway.before(upstream, "ollama") as live,
    ):
        assert _ask(live, "POST", "/api/generate", body) == (200, encode(answer))
        assert (upstream.requests[-1].path, upstream.requests[-1].json) == ("/api/generate", body)
    with ScriptedUpstream() as upstream:
        home = (
            f'[providers.ollama]\nbase_urls = {{ ollama = "{upstream.url}" }}\n[models]\n"*" = "ollama/*"\n'
        )
        with LiveGateway(home) as live:
            assert "".join(p.response or "" for p in ollama.Client(live.url).generate("m", "Hi", stream=True))
            assert upstream.requests[-1].path == "/api/generate"


def test_a_line_may_be_longer_than_an_event_of_the_upstream() -> None:
    """The pieces of a call are joined to one line."""
    pieces = ['{"city":"', *["x" * 500] * 10, '"}']
    call = {"index": 0, "id": "c1", "type": "function", "function": {"name": "get_weather", "arguments": ""}}
    deltas: list[dict[str, Any]] = [{"tool_calls": [call]}]
    deltas += [{"tool_calls": [{"index": 0, "function": {"arguments": piece}}]} for piece in pieces]
    events = [{"choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    events.append({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]})
    served = Behaviour(
        headers=(("content-type", "text/event-stream"),),
        pieces=(*(b"data: %b\n\n" % encode(event) for event in events), b"data: [DONE]\n\n"),
    )
    with (
        ScriptedUpstream(decide=lambda _: served) as upstream,
        LiveGateway.before(upstream, "openai-chat", more="[limits]\nevent = 2000\n") as live,
    ):
        message = _answered(ollama.Client(live.url), "m", HELLO, True, tools=[WEATHER])
    assert message.tool_calls is not None
    assert message.tool_calls[0].function.arguments == {"city": "x" * 5000}


def test_a_model_that_cannot_think_is_asked_without_and_remembered() -> None:
    """Claude Code wants thoughts of every model; a server of Ollama refuses that for most of its own."""

    def decide(request: Recorded) -> Behaviour:
        if decode(request.body).get("think"):
            return Behaviour(status=400, body=encode({"error": '"llama3.2" does not support thinking'}))
        message = {"role": "assistant", "content": "Hi."}
        return Behaviour(body=encode({"model": "m", "message": message, "done": True, "done_reason": "stop"}))

    body = {
        "model": "m",
        "max_tokens": 3000,
        "messages": HELLO,
        "thinking": {"type": "enabled", "budget_tokens": 2000},
    }
    with ScriptedUpstream(decide=decide) as upstream, LiveGateway.before(upstream, "ollama") as live:
        for asked in (2, 3):
            status, answer = _ask(live, "POST", "/v1/messages", body)
            assert (status, decode(answer)["content"][0]["text"]) == (200, "Hi.")
            assert [request.path for request in upstream.requests].count("/api/chat") == asked
            assert "think" not in upstream.requests[-1].json
        with pytest.raises(ollama.ResponseError) as caught:
            ollama.Client(live.url).chat("m", HELLO, think=True)
        assert "does not support thinking" in caught.value.error


# Keys


@pytest.fixture(scope="module")
def guarded() -> Iterator[LiveGateway]:
    digest = hashlib.sha256(KEY.encode()).hexdigest()
    toml = f'[providers.demo]\n[trace]\nmode = "all"\n[server]\nadmin_secret = "{ADMIN}"\n'
    with LiveGateway(f'{toml}[keys]\ntester = "sha256:{digest}"\n') as live:
        yield live


def _ask(live: LiveGateway, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", live.port, timeout=DEADLINE_SECONDS)
    try:
        typed = {"content-type": "application/json"} if body is not None else {}
        connection.request(method, path, encode(body) if body is not None else None, {**typed, **headers})
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


BODY = {"model": "demo", "messages": HELLO, "stream": False}


def test_a_key_is_taken_from_a_header_or_from_the_path(guarded: LiveGateway) -> None:
    bearer = {"authorization": f"Bearer {KEY}"}
    assert _ask(guarded, "POST", "/api/chat", BODY, **bearer)[0] == 200
    assert _ask(guarded, "POST", f"/ollama/{KEY}/api/chat", BODY)[0] == 200
    # What a client sends of itself does not matter where the path has a key.
    dummy = {"authorization": "Bearer ollama"}
    assert _ask(guarded, "POST", f"/ollama/{KEY}/api/chat", BODY, **dummy)[0] == 200
    assert ollama.Client(f"{guarded.url}/ollama/{KEY}").chat("demo", HELLO).done


def test_a_request_without_a_key_is_told_how_to_bring_one(guarded: LiveGateway) -> None:
    for path in ("/api/chat", "/ollama/wrong/api/chat"):
        status, body = _ask(guarded, "POST", path, BODY)
        assert status == 401
        assert "/ollama/KEY" in decode(body)["error"]


def test_the_base_url_says_that_ollama_is_running(guarded: LiveGateway) -> None:
    assert _ask(guarded, "GET", f"/ollama/{KEY}/") == (200, b"Ollama is running")
    assert _ask(guarded, "GET", f"/ollama/{KEY}") == (200, b"Ollama is running")
    assert _ask(guarded, "HEAD", f"/ollama/{KEY}/") == (200, b"")
    assert _ask(guarded, "HEAD", "/")[0] == 200


def test_other_paths_may_have_the_key_too(guarded: LiveGateway) -> None:
    chat = {"model": "demo", "messages": HELLO}
    assert _ask(guarded, "POST", f"/ollama/{KEY}/v1/chat/completions", chat)[0] == 200
    assert b'"version"' in _ask(guarded, "GET", f"/ollama/{KEY}/api/version")[1]


def test_pages_and_the_admin_api_are_not_behind_a_key_in_the_path(guarded: LiveGateway) -> None:
    for path in (
        "/inspector",
        "/inspector/api/exchanges",
        "/metrics",
        "/v1/admin/keys",
        "/openai/v1/admin/keys",
    ):
        for key in (KEY, ADMIN):
            status, body = _ask(guarded, "GET", f"/ollama/{key}{path}")
            assert status == 404, path
            assert key.encode() not in body


def test_a_key_in_a_wrong_path_is_not_shown(guarded: LiveGateway) -> None:
    for path in (
        f"/Ollama/{KEY}/api/tags",
        f"/ollama/x/ollama/{KEY}/api/tags",
        f"/v1/ollama/{KEY}/api/tags",
        f"/ollama%2F{KEY}/api/tags",
        f"/ollama%2f{KEY}%2fapi/tags",
        f"//ollama/{KEY}/api/tags",
        f"/ollama/{KEY}//api/tags",
        f"/api/ollama/{KEY}",
        f"/ollama/{KEY}/ollama/{KEY}",
    ):
        status, body = _ask(guarded, "GET", path)
        assert status in (400, 401, 404), path
        assert KEY.encode() not in body, path
    # A name of a model is none.
    assert b"ollama/some-model" in _ask(guarded, "GET", f"/ollama/{KEY}/v1/models/ollama/some-model")[1]
    guarded.wait_log(1)
    assert KEY.encode() not in b"".join(f.read_bytes() for f in guarded.folder.rglob("*") if f.is_file())


def test_a_key_in_the_path_is_written_down_nowhere(guarded: LiveGateway) -> None:
    guarded_paths = (f"/ollama/{KEY}/api/chat", f"/ollama/{KEY}/api/nothing", f"/ollama/{KEY}%20/api/chat")
    connection = http.client.HTTPConnection("127.0.0.1", guarded.port, timeout=DEADLINE_SECONDS)
    for path in (*guarded_paths, guarded_paths[0]):  # the last head is like the one before
        for _ in range(2):
            connection.request("POST", path, encode(BODY), {"content-type": "application/json"})
            answered = connection.getresponse()
            assert KEY.encode() not in answered.read()
            assert KEY not in str(answered.getheaders())
    connection.close()
    guarded.wait_log(8)
    admin = Visitor(guarded)
    admin.look()
    assert admin.sign_in(ADMIN).status == 200
    shown = admin.get("/inspector/api/exchanges").json()["rows"]
    whole = admin.get(f"/inspector/api/exchanges/{shown[-1]['id']}").json()
    assert {row["path"] for row in shown} >= {"/api/chat"}
    assert KEY not in str([shown, whole])
    metrics = _ask(guarded, "GET", "/metrics", authorization=f"Bearer {ADMIN}")[1]
    assert b"wireglot_requests_total" in metrics
    assert KEY.encode() not in metrics
    files = [file for file in guarded.folder.rglob("*") if file.is_file()]
    written = b"".join(file.read_bytes() for file in files)
    assert b"/api/chat" in written
    assert KEY.encode() not in written
