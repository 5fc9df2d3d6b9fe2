"""Streams of Gemini that pass through from a server that is not Google's, and go wrong after their beginning."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from wireglot.testing.live_gateway import LiveGateway
from wireglot.testing.scripted_upstream import Behaviour, ScriptedUpstream

Stage = tuple[ScriptedUpstream, LiveGateway]
BODY = {
    "contents": [{"role": "user", "parts": [{"text": "hi"}]}],
    "tools": [{"functionDeclarations": [{"name": "f"}]}],
}
WORD = {"text": "Let me see. "}
BEGUN = {"functionCall": {"name": "f", "id": "c1", "willContinue": True}}
PIECE = {
    "functionCall": {"partialArgs": [{"jsonPath": "$.a", "stringValue": "x"}], "willContinue": True},
}
DONE: dict[str, Any] = {"functionCall": {}}
TOKENS = (
    "<|tool_calls_section_begin|><|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>"
    '{"a": 1}<|tool_call_end|><|tool_calls_section_end|>'
)


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    with ScriptedUpstream() as upstream, LiveGateway.before(upstream, "gemini") as gateway:
        yield upstream, gateway


@pytest.fixture(scope="module")
def leaking() -> Iterator[Stage]:
    with (
        ScriptedUpstream() as upstream,
        LiveGateway.before(upstream, "gemini", limits="{ leaks_calls = true }") as gateway,
    ):
        yield upstream, gateway


def chunk(*parts: dict[str, Any], finish: str = "") -> bytes:
    candidate: dict[str, Any] = {"content": {"role": "model", "parts": [*parts]}}
    if finish:
        candidate["finishReason"] = finish
    usage = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
    return json.dumps({"candidates": [candidate], "usageMetadata": usage}).encode()


def asked(stage: Stage, framing: str, *chunks: bytes) -> tuple[bytes, bytes]:
    """What the upstream sent, and what the client got."""
    upstream, gateway = stage
    if framing == "sse":
        pieces = [b"data: " + each + b"\r\n\r\n" for each in chunks]
        kind, query = "text/event-stream", "?alt=sse"
    else:
        pieces = [(b"," if number else b"[") + each for number, each in enumerate(chunks)] + [b"]"]
        kind, query = "application/json", ""
    headers = (("content-type", kind),)
    upstream.next(*2 * [Behaviour(pieces=tuple(pieces), headers=headers, gap=0.001)])
    path = f"/v1beta/models/m:streamGenerateContent{query}"
    wanted = {"content-type": "application/json", "x-goog-api-key": "x"}
    request = urllib.request.Request(gateway.url + path, json.dumps(BODY).encode(), wanted)
    try:
        answered = urllib.request.urlopen(request, timeout=60)
    except urllib.error.HTTPError as refused:
        answered = refused
    with answered:
        got: bytes = answered.read()
    upstream.reset()
    return b"".join(pieces), got


FRAMINGS = pytest.mark.parametrize("framing", ["sse", "json-array"])


@FRAMINGS
def test_a_call_in_pieces_that_is_whole_passes_as_it_came(stage: Stage, framing: str) -> None:
    chunks = (
        chunk(WORD),
        chunk(BEGUN),
        chunk(PIECE),
        chunk(DONE),
        chunk({"text": "."}),
        chunk(finish="STOP"),
    )
    sent, got = asked(stage, framing, *chunks)
    assert got == sent


@FRAMINGS
def test_a_call_in_pieces_that_stays_open_is_an_error(stage: Stage, framing: str) -> None:
    """[X7] Also behind a first word, and in an array."""
    _, got = asked(stage, framing, chunk(WORD), chunk(BEGUN), chunk(PIECE), chunk(finish="STOP"))
    assert b'"error"' in got
    assert b'"STOP"' not in got
    if framing == "json-array":
        assert "error" in json.loads(got)[-1]


@FRAMINGS
@pytest.mark.parametrize("cut", [0, 7])
def test_calls_left_in_the_text_are_calls_where_the_server_leaks_them(
    leaking: Stage, stage: Stage, framing: str, cut: int
) -> None:
    """[K5] Cut over chunks or not; from any other server they pass as they came."""
    words = [{"text": TOKENS[:cut]}, {"text": TOKENS[cut:]}] if cut else [{"text": TOKENS}]
    chunks = [chunk(WORD), *map(chunk, words), chunk(finish="STOP")]
    _, got = asked(leaking, framing, *chunks)
    assert b"<|" not in got
    assert b'"functionCall"' in got
    sent, got = asked(stage, framing, *chunks)
    assert got == sent


@FRAMINGS
def test_a_malformed_call_behind_words_is_an_error(stage: Stage, framing: str) -> None:
    """[X6] Where a loaded machine hands over both at once, nothing has gone out, and it is a status too."""
    _, got = asked(stage, framing, chunk(WORD), chunk(finish="MALFORMED_FUNCTION_CALL"))
    assert b'"error"' in got
