"""Chat tells what a stream cost only where it is asked: the gateway asks, and the client does not notice.

R-X-05: real usage is captured from the upstream whenever available.
"""

from __future__ import annotations

from typing import Any

import openai

from tests.tiers import rows
from wireglot.testing.live_gateway import LiveGateway
from wireglot.testing.scripted_upstream import Behaviour, ScriptedUpstream
from wireglot_core.wire.json import decode

CHUNK = '{"id":"c","object":"chat.completion.chunk","created":1,"model":"gpt","choices":[%s],"usage":%s}'
TEXT = '{"index":0,"delta":{"role":"assistant","content":"hi"},"finish_reason":null}'
STOP = '{"index":0,"delta":{},"finish_reason":"stop"}'
USAGE = '{"prompt_tokens":11,"completion_tokens":7,"total_tokens":18}'


def frames(*documents: str, gap: str = "\n\n") -> bytes:
    return "".join(f"data: {document}{gap}" for document in (*documents, "[DONE]")).encode()


def stream(gap: str = "\n\n") -> bytes:
    return frames(CHUNK % (TEXT, "null"), CHUNK % (STOP, "null"), CHUNK % ("", USAGE), gap=gap)


def gateway(upstream: ScriptedUpstream, provider: str = "openai") -> LiveGateway:
    return LiveGateway(
        f'[providers.{provider}]\nbase_url = "{upstream.url}/v1"\napi_key = "an-upstream-key-01234"\n'
        f'[models]\n"*" = "{provider}/*"\n'
    )


def asked(upstream: ScriptedUpstream) -> dict[str, Any]:
    body: dict[str, Any] = decode(upstream.requests[-1].body)
    return body


def chunks(url: str, **more: Any) -> list[Any]:
    client = openai.OpenAI(base_url=f"{url}/v1", api_key="x", max_retries=0)
    return list(
        client.chat.completions.create(
            model="gpt-5.6", messages=[{"role": "user", "content": "hi"}], stream=True, **more
        )
    )


@rows("gap", ["\n\n", "\r\n\r\n"])
@rows("size", [1, 40, 10_000])
def test_the_usage_of_a_stream_is_known_though_the_client_did_not_ask(size: int, gap: str) -> None:
    body = stream(gap)
    pieces = tuple(body[at : at + size] for at in range(0, len(body), size))
    with ScriptedUpstream() as upstream, gateway(upstream) as live:
        upstream.next(Behaviour(pieces=pieces))
        seen = chunks(live.url)
        assert asked(upstream)["stream_options"] == {"include_usage": True}
        assert [chunk.choices[0].delta.content for chunk in seen] == ["hi", None]  # no chunk without a choice
        reported = live.wait_log()[-1]
        assert (reported["tokens"]["input"], reported["tokens"]["output"]) == (11, 7)


def test_a_client_that_asks_gets_it_as_it_came() -> None:
    with ScriptedUpstream() as upstream, gateway(upstream) as live:
        upstream.next(Behaviour(pieces=(stream(),)))
        seen = chunks(live.url, stream_options={"include_usage": True, "include_obfuscation": False})
        assert asked(upstream)["stream_options"] == {"include_usage": True, "include_obfuscation": False}
        assert seen[-1].usage.total_tokens == 18


def test_a_client_that_asks_for_less_is_not_given_more() -> None:
    with ScriptedUpstream() as upstream, gateway(upstream) as live:
        upstream.next(Behaviour(pieces=(stream(),)))
        seen = chunks(live.url, stream_options={"include_usage": False})
        assert asked(upstream)["stream_options"] == {"include_usage": True}
        assert all(chunk.choices for chunk in seen)


def test_a_server_that_nobody_knows_is_asked_as_the_client_asks() -> None:
    with ScriptedUpstream() as upstream, LiveGateway.before(upstream, "openai-chat") as live:
        upstream.next(Behaviour(pieces=(frames(CHUNK % (TEXT, "null"), CHUNK % (STOP, "null")),)))
        chunks(live.url)
        assert "stream_options" not in asked(upstream)
