"""Calls in streams that pass through the gateway: clients that add up deltas get the right arguments."""

from __future__ import annotations

import json
import urllib.request
from typing import Any

import anthropic
import openai
import pytest

from tests.core.dialects.anthropic.support import sse
from tests.core.dialects.anthropic.test_repair import ODD
from tests.core.dialects.anthropic.test_tool_input_shapes import SHAPES, events_of
from tests.core.dialects.openai_chat.test_repeated_calls import REPEATED
from tests.tiers import rows
from wireglot.testing.live_gateway import LiveGateway
from wireglot.testing.scripted_upstream import Behaviour, ScriptedUpstream


def gateway(upstream: ScriptedUpstream, dialect: str, path: str) -> LiveGateway:
    return LiveGateway(
        f'[providers.host]\ndialect = "{dialect}"\nbase_url = "{upstream.url}{path}"\napi_key = "a-key-0123456"\n'
        '[models]\n"*" = "host/*"\n'
    )


def cut(body: bytes, size: int) -> tuple[bytes, ...]:
    return tuple(body[at : at + size] for at in range(0, len(body), size))


def read(url: str) -> Any:
    client = anthropic.Anthropic(base_url=url, api_key="x", max_retries=0)
    with client.messages.stream(
        model="m", max_tokens=10, messages=[{"role": "user", "content": "hi"}]
    ) as stream:
        (block,) = stream.get_final_message().content
        return block


@pytest.mark.parametrize("size", [7, 100_000])
def test_an_input_at_the_start_reaches_anthropics_sdk(size: int) -> None:
    """[K4] In passthrough, whatever the shape and however it is cut."""
    with ScriptedUpstream() as upstream, gateway(upstream, "anthropic", "") as live:
        for shape in SHAPES:
            upstream.next(Behaviour(pieces=cut(sse(*events_of(shape)), size)))
            block = read(live.url)
            assert (block.id, block.input) == ("Read_0", shape["arguments"]), shape["name"]


def test_nothing_is_repaired_where_the_provider_is_to_judge() -> None:
    """[K4] [K9] The policy `as-is` holds for the answer, too: every byte as it came."""
    body = sse(*events_of(SHAPES[0]))
    with ScriptedUpstream() as upstream, gateway(upstream, "anthropic", "") as live:
        upstream.next(Behaviour(pieces=(body,)))
        asked = {
            "model": "m",
            "max_tokens": 10,
            "stream": True,
            "messages": [{"role": "user", "content": "hi"}],
        }
        request = urllib.request.Request(
            f"{live.url}/v1/messages",
            json.dumps(asked).encode(),
            {"x-wireglot-loss-policy": "as-is", "content-type": "application/json", "x-api-key": "x"},
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            assert answer.read() == body


def test_an_answer_with_a_hollow_error_beside_it_costs_one_attempt() -> None:
    """[X22] It cost three, and ended in a 500."""
    message = {"role": "assistant", "content": "Hi"}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    error = {"message": None, "code": None}
    body = {"error": error, "id": "c", "object": "chat.completion", "created": 1, "model": "m"}
    whole = json.dumps({**body, "choices": [choice]}).encode()
    with ScriptedUpstream() as upstream, gateway(upstream, "openai-chat", "/v1") as live:
        upstream.next(Behaviour(body=whole))
        client = openai.OpenAI(base_url=f"{live.url}/v1", api_key="x", max_retries=0)
        answer = client.chat.completions.create(model="m", messages=[{"role": "user", "content": "hi"}])
        assert answer.choices[0].message.content == "Hi"
        upstream.next(Behaviour(body=whole))
        claude = anthropic.Anthropic(base_url=live.url, api_key="x", max_retries=0)
        said: Any = claude.messages.create(
            model="m", max_tokens=10, messages=[{"role": "user", "content": "hi"}]
        )
        assert said.content[0].text == "Hi"
        assert len(upstream.requests) == 2


@rows("name", ODD)
def test_repaired_arguments_are_reported_as_a_loss(name: str) -> None:
    """[X21] In passthrough, too."""
    deltas, meant = ODD[name]
    with ScriptedUpstream() as upstream, gateway(upstream, "anthropic", "") as live:
        upstream.next(Behaviour(pieces=cut(sse(*events_of({"start": {}, "deltas": deltas})), 50)))
        assert read(live.url).input == meant
        assert "tool_call.arguments" in json.dumps(live.wait_log()[-1])


@pytest.mark.parametrize("name", REPEATED)
def test_a_call_repeated_in_the_last_chunk_reaches_openais_sdk_once(name: str) -> None:
    """[K4]"""
    with ScriptedUpstream() as upstream, gateway(upstream, "openai-chat", "/v1") as live:
        upstream.next(Behaviour(pieces=cut(b"".join(REPEATED[name]), 60)))
        client = openai.OpenAI(base_url=f"{live.url}/v1", api_key="x", max_retries=0)
        with client.chat.completions.stream(
            model="m", messages=[{"role": "user", "content": "hi"}]
        ) as stream:
            (call,) = stream.get_final_completion().choices[0].message.tool_calls or []
        assert json.loads(call.function.arguments) == {"a": 1}
        assert call.id == "call_0"


BROKEN_ARGUMENTS = {
    "doubled": ['{"command": "ls"}{"command": "ls"}'],
    "doubled in pieces": ['{"command": ', '"ls"}', '{"comm', 'and": "ls"}'],
    "a comma too many": ['{"command": "ls",}'],
    "a comma in pieces": ['{"command": "ls"', ",", " }"],
    "a brace too many": ['{"command": "ls"}', "}"],
}


def chat_answer(pieces: list[str]) -> tuple[bytes, bytes]:
    """Whole and streamed, with the name and the first piece in one chunk."""
    head = {"id": "c", "created": 1, "model": "m"}
    call = {"id": "call_1", "type": "function"}
    whole = {**call, "function": {"name": "Bash", "arguments": "".join(pieces)}}
    message = {"role": "assistant", "content": None, "tool_calls": [whole]}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
    entries: list[dict[str, Any]] = [
        {"index": 0, **call, "function": {"name": "Bash", "arguments": pieces[0]}},
        *({"index": 0, "function": {"arguments": piece}} for piece in pieces[1:]),
    ]
    deltas: list[tuple[dict[str, Any], str | None]] = [
        ({"role": "assistant", "content": None}, None),
        *(({"tool_calls": [entry]}, None) for entry in entries),
        ({}, "tool_calls"),
    ]
    chunks = [
        {
            **head,
            "object": "chat.completion.chunk",
            "choices": [{"index": 0, "delta": delta, "finish_reason": end}],
        }
        for delta, end in deltas
    ]
    stream = b"".join(b"data: " + json.dumps(chunk).encode() + b"\n\n" for chunk in chunks)
    document = {**head, "object": "chat.completion", "choices": [choice]}
    return json.dumps(document).encode(), stream + b"data: [DONE]\n\n"


def responses_answer(pieces: list[str]) -> tuple[bytes, bytes]:
    text = "".join(pieces)
    item = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "Bash", "status": "completed"}
    done = {**item, "arguments": text}
    response = {"id": "resp_1", "object": "response", "created_at": 1, "model": "m", "status": "completed"}
    response |= {"parallel_tool_calls": True, "tool_choice": "auto", "tools": []}
    place = {"item_id": "fc_1", "output_index": 0}
    kind = "response.function_call_arguments"
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": {**response, "status": "in_progress", "output": []}},
        {"type": "response.output_item.added", "output_index": 0, "item": {**item, "arguments": ""}},
        *({"type": f"{kind}.delta", **place, "delta": piece} for piece in pieces),
        {"type": f"{kind}.done", **place, "name": "Bash", "arguments": text},
        {"type": "response.output_item.done", "output_index": 0, "item": done},
        {"type": "response.completed", "response": {**response, "output": [done]}},
    ]
    stream = b"".join(
        f"event: {event['type']}\ndata: {json.dumps({**event, 'sequence_number': number})}\n\n".encode()
        for number, event in enumerate(events)
    )
    return json.dumps({**response, "output": [done]}).encode(), stream


TOOL: dict[str, Any] = {"name": "Bash", "parameters": {"type": "object"}}


def chat_calls(client: openai.OpenAI, stream: bool) -> list[tuple[str, str]]:
    asked: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
    asked["tools"] = [{"type": "function", "function": TOOL}]
    if stream:
        with client.chat.completions.stream(**asked) as events:
            message: Any = events.get_final_completion().choices[0].message
    else:
        message = client.chat.completions.create(**asked).choices[0].message
    return [(call.function.name, call.function.arguments) for call in message.tool_calls]


def responses_calls(client: openai.OpenAI, stream: bool) -> list[tuple[str, str]]:
    asked: dict[str, Any] = {"model": "m", "input": "hi", "tools": [{"type": "function", **TOOL}]}
    if not stream:
        return [(item.name, item.arguments) for item in client.responses.create(**asked).output]
    deltas = ""
    with client.responses.stream(**asked) as events:
        for event in events:
            if event.type == "response.function_call_arguments.delta":
                deltas += event.delta
            elif event.type == "response.function_call_arguments.done":
                assert json.loads(event.arguments) == json.loads(deltas)
        output: Any = events.get_final_response().output
    return [(item.name, item.arguments) for item in output]


@rows("stream", [False, True], ids=["whole", "streamed"])
@rows("client", ["openai-chat", "openai-responses"])
@rows("server", ["openai-chat", "openai-responses"])
def test_openais_sdk_finds_json_whatever_the_server_wrote(server: str, client: str, stream: bool) -> None:
    """[X21] Forwarded and translated, with a loss; arguments that are right pass unchanged."""
    answers = {"openai-chat": chat_answer, "openai-responses": responses_answer}[server]
    ask = {"openai-chat": chat_calls, "openai-responses": responses_calls}[client]
    with ScriptedUpstream() as upstream, gateway(upstream, server, "/v1") as live:
        sdk = openai.OpenAI(base_url=f"{live.url}/v1", api_key="x", max_retries=0)
        for number, pieces in enumerate(BROKEN_ARGUMENTS.values(), 1):
            whole, data = answers(pieces)
            upstream.next(Behaviour(pieces=cut(data, 50)) if stream else Behaviour(body=whole))
            ((name, arguments),) = ask(sdk, stream)
            assert (name, json.loads(arguments)) == ("Bash", {"command": "ls"}), pieces
            assert "tool_call.arguments" in json.dumps(live.wait_log(number)[-1]), pieces
