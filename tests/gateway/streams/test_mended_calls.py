"""Calls in streams that pass through the gateway: clients that add up deltas get the right arguments."""

from __future__ import annotations

import json
from typing import Any

import anthropic
import openai
import pytest

from tests.dialects.anthropic.support import sse
from tests.dialects.anthropic.test_mender import ODD
from tests.dialects.anthropic.test_tool_input_shapes import SHAPES, events_of
from tests.dialects.openai_chat.test_repeated_calls import REPEATED
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


@pytest.mark.parametrize("name", ODD)
def test_mended_arguments_are_told_as_a_loss(name: str) -> None:
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
