"""What passes through and is no answer is reported as an error where nothing was sent yet, no matter who the vendor is."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.gateway.faults.faults_kit import BY_NAME, Answered, post, provider, reported
from tests.gateway.faults.faults_stages import Stage
from tests.tiers import rows
from wireglot.testing.live_gateway import LiveGateway
from wireglot.testing.scripted_upstream import Behaviour, ScriptedUpstream
from wireglot_core.wire.json import encode

JSON = (("content-type", "application/json"),)
EVENTS = (("content-type", "text/event-stream"),)
VENDORS = {"openai": ("openai-chat", "/v1"), "anthropic": ("anthropic", ""), "gemini": ("gemini", "/v1beta")}
CHAT = b'{"id":"x","object":"chat.completion","created":1,"model":"m1","choices":[%s]}'
CHOICE = b'{"index":0,"message":{"role":"assistant","content":"a%sb"},"finish_reason":"stop"}'
MESSAGE = b'{"id":"m","type":"message","role":"assistant","model":"m1","content":[%s],"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":1}}'
TEXT = b'{"type":"text","text":"a%sb"}'
CANDIDATE = b'{"candidates":[{"content":{"parts":[{"text":"a%sb"}],"role":"model"},"finishReason":"STOP"}]}'
WHOLE = {
    "Chat, not UTF-8": ("openai-chat", CHAT % (CHOICE % b"\xff\xfe")),
    "Chat, half a letter": ("openai-chat", CHAT % (CHOICE % "ä".encode()[:1])),
    "Chat, no choices": ("openai-chat", CHAT % b""),
    "Chat, choices of null": ("openai-chat", b'{"id":"x","object":"chat.completion","choices":null}'),
    "Chat, nothing": ("openai-chat", b'{"id":"x","object":"chat.completion"}'),
    "Chat, no JSON": ("openai-chat", b"<html>"),
    "Messages, not UTF-8": ("anthropic", MESSAGE % (TEXT % b"\xc3")),
    "Messages, nothing": ("anthropic", b'{"id":"m","type":"message"}'),
    "Gemini, not UTF-8": ("gemini", CANDIDATE % b"\xff"),
    "Gemini, nothing": ("gemini", b"{}"),
}
STREAMS = {
    "no JSON": b"data: nope\n\ndata: [DONE]\n\n",
    "no object": b"data: 5\n\ndata: [DONE]\n\n",
    "not UTF-8": b'data: {"id":"x","choices":[{"index":0,"delta":{"content":"\xff"}}]}\n\ndata: [DONE]\n\n',
}


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    """Each dialect by its own vendor, and by somebody else."""
    with ScriptedUpstream() as upstream:
        toml = ""
        for name, (dialect, base) in VENDORS.items():
            toml += provider(f"{dialect}-up", upstream, dialect)
            toml += (
                f'[providers.{name}]\nbase_url = "{upstream.url}{base}"\napi_key = "k-0123456789"\n'
                f'dialects = ["{dialect}"]\nretry = {{ retries = 0 }}\n'
                "breaker = { consecutive = 1000000, minimum = 1000000 }\n"
            )
        with LiveGateway(toml) as gateway:
            yield gateway, upstream


def answered(stage: Stage, dialect: str, whose: str, behaviour: Behaviour, *, stream: bool) -> Answered:
    vendor = next(name for name, (spoken, _) in VENDORS.items() if spoken == dialect)
    model = f"{vendor if whose == 'vendor' else f'{dialect}-up'}/m1"
    client = BY_NAME[dialect]
    stage[1].next(behaviour)
    return post(stage[0].port, client.path(model, stream), encode(client.body(model, "hi", stream)))


@rows("whose", ["vendor", "somebody"])
@rows("name", WHOLE)
def test_a_document_that_is_no_answer_is_an_error(stage: Stage, name: str, whose: str) -> None:
    """[A8]"""
    dialect, body = WHOLE[name]
    reply = answered(stage, dialect, whose, Behaviour(body=body, headers=JSON), stream=False)
    assert reply.status == 502, reply.body
    reported(BY_NAME[dialect], reply)


@rows("whose", ["vendor", "somebody"])
@rows("name", STREAMS)
def test_a_stream_that_begins_with_what_cannot_be_read_is_an_error(
    stage: Stage, name: str, whose: str
) -> None:
    """[A8]"""
    behaviour = Behaviour(pieces=(STREAMS[name],), headers=EVENTS)
    reply = answered(stage, "openai-chat", whose, behaviour, stream=True)
    assert reply.status == 502, reply.body
    reported(BY_NAME["openai-chat"], reply)


EMPTY = MESSAGE % b""
BLOCKED = b'{"promptFeedback":{"blockReason":"SAFETY"},"usageMetadata":{"promptTokenCount":1}}'


@pytest.mark.parametrize(("dialect", "body"), [("anthropic", EMPTY), ("gemini", BLOCKED)])
def test_a_vendors_own_answer_goes_on_as_it_came_though_it_says_nothing(
    stage: Stage, dialect: str, body: bytes
) -> None:
    reply = answered(stage, dialect, "vendor", Behaviour(body=body, headers=JSON), stream=False)
    assert reply.status == 200, reply.body


def test_letters_of_many_bytes_pass_as_they_came(stage: Stage) -> None:
    body = CHAT % (CHOICE % "ä€😀".encode())
    reply = answered(stage, "openai-chat", "vendor", Behaviour(body=body, headers=JSON), stream=False)
    assert (reply.status, reply.body) == (200, body)
