"""FAULTS 3b: requests that are JSON and still wrong: names, types, pairs, addresses."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.gateway.faults.faults_kit import (
    BY_NAME,
    CLIENTS,
    Client,
    ask,
    every_dialect,
    logged,
    model_at,
    reported,
)
from tests.gateway.faults.faults_stages import (
    BEARER,
    EVERY,
    A,
    C,
    R,
    Stage,
    asked,
    behind,
    guarded,
    send,
    stage_behind,
)
from wireglot.testing.scripted_upstream import ScriptedUpstream
from wireglot_core.wire.json import encode

stage = stage_behind(guarded)
open_stage = stage_behind(every_dialect)
"""Without keys: anyone who asks may ask for anything."""


@pytest.fixture(autouse=True)
def _fresh(stage: Stage) -> None:
    stage[1].reset()


@EVERY
def test_control_characters_pass_in_a_text(stage: Stage, client: Client) -> None:
    """FAULTS 29"""
    text = "a\x00b\x01c\x1bd\x7f"
    assert asked(stage, client, "openai-chat", text).status == 200
    assert encode(text) in encode(stage[1].requests[-1].json)


@pytest.mark.parametrize("name", ["a\x00b", "a\nb", "a b\r\n", ""])
def test_a_tools_name_holds_no_control_character(stage: Stage, name: str) -> None:
    """FAULTS 29"""
    tool = {"name": name, "description": "d", "input_schema": {"type": "object"}}
    answered = asked(stage, A, "openai-chat", tools=[tool])
    if answered.status == 200:  # renamed for the upstream: nothing of it goes on
        sent = stage[1].requests[-1].json["tools"][0]["function"]["name"]
        assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", sent)
    else:
        assert answered.status == 400


@pytest.mark.parametrize(
    "model",
    [
        "m1\r\nx-injected: 1",
        "m1\nHost: evil",
        "../../v1/files",
        "m1?key=x",
        "m1#x",
        "m1:countTokens",
        "a%2fb",
        "m\x00",
    ],
)
@pytest.mark.parametrize("source", ["gemini", "anthropic"])
def test_a_models_name_injects_nothing(open_stage: Stage, model: str, source: str) -> None:
    """FAULTS 30"""
    gateway, upstream = open_stage
    upstream.reset()
    answered = ask(gateway, C, f"{source}-up/{model}")
    for request in upstream.requests:
        first, *lines = request.raw.decode().split("\r\n")
        assert not any(line.lower().startswith(("x-injected", "host: evil")) for line in lines)
        if source == "gemini":
            path = first.split(" ")[1]
            assert re.fullmatch(r"/v1beta/models/[A-Za-z0-9._%@~-]+:generateContent", path), first
    assert upstream.requests or answered.status in (400, 404)
    assert "x-injected" not in answered.headers


@EVERY
def test_an_unknown_model_is_not_found(open_stage: Stage, client: Client) -> None:
    """FAULTS 31"""
    gateway, upstream = open_stage
    upstream.reset()
    for model in ("never-heard-of", "nobody/m1", "gemini-up/"):
        answered = ask(gateway, client, model)
        assert answered.status == 404
        reported(client, answered)
    assert not upstream.requests


@pytest.mark.parametrize("source", ["anthropic", "openai-chat", "openai-responses", "gemini"])
@pytest.mark.parametrize("client", CLIENTS[:4], ids=lambda client: client.name)
def test_an_unknown_field_goes_on_in_its_own_dialect_and_is_reported_otherwise(
    stage: Stage, client: Client, source: str
) -> None:
    """FAULTS 32"""
    answered = asked(stage, client, source, a_new_field={"deep": [1]})
    assert answered.status == 200
    sent = stage[1].requests[-1].json
    if client.dialect == source:
        assert sent["a_new_field"] == {"deep": [1]}
    else:
        assert "a_new_field" not in sent
        assert answered.headers["x-wireglot-losses"]
    strict = {**BEARER, "x-wireglot-loss-policy": "strict"}
    before = len(stage[1].requests)
    answered = ask(stage[0], client, model_at(source), headers=strict, a_new_field=1)
    if client.dialect == source:
        assert answered.status == 200
    else:
        assert answered.status == 400
        assert len(stage[1].requests) == before, "strict: nothing is sent"


WRONG: list[tuple[str, dict[str, Any], str]] = [
    ("anthropic", {"messages": {}}, "messages"),
    ("anthropic", {"stream": "yes"}, "stream"),
    ("anthropic", {"max_tokens": -1}, "max_tokens"),
    ("anthropic", {"max_tokens": "many"}, "max_tokens"),
    ("anthropic", {"model": 7}, "model"),
    ("openai-chat", {"messages": "hi"}, "messages"),
    ("openai-chat", {"messages": [{"role": 7, "content": "hi"}]}, "messages[0].role"),
    ("openai-chat", {"stream": 1}, "stream"),
    ("openai-chat", {"temperature": "warm"}, "temperature"),
    ("openai-responses", {"input": {"a": 1}}, "input"),
    ("openai-responses", {"tools": {}}, "tools"),
    ("gemini", {"contents": 7}, "contents"),
    ("gemini", {"generationConfig": []}, "generationConfig"),
    ("code-assist", {"request": []}, "request"),
    ("gemini-simple", {"input": []}, "input"),
]


@pytest.mark.parametrize(("name", "change", "param"), WRONG, ids=lambda case: str(case)[:40])
def test_a_value_of_the_wrong_type_is_refused_with_its_place(
    stage: Stage, name: str, change: dict[str, Any], param: str
) -> None:
    """FAULTS 33: where the request is translated; one that passes through is its upstream's to judge."""
    client = BY_NAME[name]
    source = "gemini" if client.dialect in ("anthropic", "openai-chat") else "anthropic"
    answered = send(stage, client, encode({**client.body(model_at(source), "hi", False), **change}), source)
    said = reported(client, answered)
    assert answered.status == 400
    assert param in said.message
    if client.family in "CR":
        assert answered.json["error"]["param"] == param
    assert not stage[1].requests


def conversation(call: str | None, result: str) -> list[dict[str, Any]]:
    calls = [{"type": "tool_use", "id": call, "name": "look", "input": {}}] if call is not None else []
    return [
        {"role": "user", "content": "look"},
        {"role": "assistant", "content": [{"type": "text", "text": "I look."}, *calls]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": result, "content": "seen"}]},
    ]


TOOLS = [{"name": "look", "description": "d", "input_schema": {"type": "object", "properties": {}}}]


@pytest.mark.parametrize("source", ["openai-chat", "openai-responses", "gemini"])
def test_a_result_without_its_call_is_reported_or_refused(stage: Stage, source: str) -> None:
    """FAULTS 34: no upstream takes it, so it is left out and reported, or with `strict` refused with its place."""
    messages = conversation(None, "toolu_1")
    answered = asked(stage, A, source, messages=messages, tools=TOOLS)
    assert answered.status == 200
    assert "tool_result.pairing" in answered.headers["x-wireglot-losses"]
    assert b"seen" not in stage[1].requests[-1].body
    strict = {**BEARER, "x-wireglot-loss-policy": "strict"}
    answered = ask(stage[0], A, model_at(source), headers=strict, messages=messages, tools=TOOLS)
    assert answered.status == 400
    assert "messages[2]" in reported(A, answered).message
    assert len(stage[1].requests) == 1


@pytest.mark.parametrize("source", ["anthropic", "openai-chat", "openai-responses"])
@pytest.mark.parametrize("identifier", ["x" * 200, "call.with:odd/letters", "call_1"])
def test_an_id_that_the_target_does_not_take_comes_back_as_it_was(
    stage: Stage, identifier: str, source: str
) -> None:
    """FAULTS 34: pairs stay pairs."""
    messages = [
        {"role": "user", "content": "look"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": identifier, "type": "function", "function": {"name": "look", "arguments": "{}"}}
            ],
        },
        {"role": "tool", "tool_call_id": identifier, "content": "seen"},
    ]
    answered = asked(stage, C, source, messages=messages)
    assert answered.status == 200
    text = stage[1].requests[-1].body.decode()
    found = re.findall(r'"(?:id|call_id|tool_use_id|tool_call_id)":"([^"]+)"', text)
    assert len(found) >= 2
    assert len(set(found[-2:])) == 1
    taken = {
        "anthropic": r"[a-zA-Z0-9_-]+",
        "openai-responses": r".{1,64}",
        "openai-chat": re.escape(identifier),
    }
    assert re.fullmatch(taken[source], found[-1])


@pytest.mark.parametrize("source", ["anthropic", "openai-chat", "gemini"])
def test_a_schema_that_refers_to_itself_or_elsewhere_is_never_followed(stage: Stage, source: str) -> None:
    """FAULTS 35"""
    with ScriptedUpstream() as canary:
        node = {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}}
        far = {"$ref": f"{canary.url}/schema.json"}
        pattern = {"type": "string", "pattern": "^(a+)+$"}
        schema = {
            "type": "object",
            "properties": {"node": {"$ref": "#/$defs/node"}, "far": far, "text": pattern},
            "$defs": {"node": node},
        }
        tool = {"name": "walk", "description": "a" * 40, "input_schema": schema}
        answered = asked(stage, A, source, tools=[tool])
        assert answered.status in (200, 400)
        if source == "anthropic":
            assert stage[1].requests[-1].json["tools"][0]["input_schema"] == schema
        assert not canary.connections


@pytest.mark.parametrize("source", ["anthropic", "openai-chat", "openai-responses", "gemini", "code-assist"])
@pytest.mark.parametrize("url", ["http://169.254.169.254/latest/meta-data", "file:///etc/passwd", "CANARY"])
def test_an_address_in_a_request_is_never_fetched(stage: Stage, url: str, source: str) -> None:
    """FAULTS 36, 38: the gateway has no fetcher; the address goes to the upstream or is refused."""
    with ScriptedUpstream() as canary:
        content = [
            {"type": "text", "text": "hi"},
            {"type": "image_url", "image_url": {"url": url.replace("CANARY", canary.url)}},
        ]
        answered = asked(stage, C, source, messages=[{"role": "user", "content": content}])
        assert answered.status in (200, 400)
        assert not canary.connections


@pytest.mark.parametrize(
    "data", ["data:image/png;base64,!!!", "data:text/html;base64,PGI+", "data:image/png"]
)
def test_a_data_url_that_holds_no_picture_is_no_server_error(stage: Stage, data: str) -> None:
    """FAULTS 37"""
    content = [{"type": "image_url", "image_url": {"url": data}}]
    answered = asked(stage, C, "anthropic", messages=[{"role": "user", "content": content}])
    assert answered.status in (200, 400)


def test_a_stream_for_who_wants_none_and_the_reverse_cost_the_same() -> None:
    """FAULTS 39"""

    def toml(upstream: ScriptedUpstream) -> str:
        return (
            every_dialect(upstream, 'streams = "only"\n').replace("-up]", "-only]")
            + every_dialect(upstream, 'streams = "never"\n').replace("-up]", "-never]")
            + every_dialect(upstream)
        )

    with behind(toml) as (gateway, upstream):
        for source in ("anthropic", "openai-chat", "openai-responses", "gemini"):
            counted = []
            for kind, stream in (("up", False), ("only", False), ("up", True), ("never", True)):
                answered = ask(gateway, R, f"{source}-{kind}/m1", "[[demo:text 9]]", stream=stream)
                assert answered.status == 200, answered
                counted.append(logged(gateway, answered)["tokens"])
                asked_for = upstream.requests[-1]
                streamed = b'"stream":true' in asked_for.body or "stream" in asked_for.path
                assert streamed == (kind == "only" or (kind == "up" and stream))
            assert all(count == counted[0] for count in counted), counted
