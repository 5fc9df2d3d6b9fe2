"""Several answers to one streamed request, through the gateway: asked, paid and delivered."""

from __future__ import annotations

from typing import Any

import openai
import pytest
from google import genai
from google.genai import types

from tests.core.dialects.test_further_answers import CHAT, GEMINI
from wireglot.testing.live_gateway import LiveGateway
from wireglot.testing.scripted_upstream import Behaviour, ScriptedUpstream
from wireglot_core.wire.json import decode


def gateway(upstream: ScriptedUpstream, dialect: str, path: str) -> LiveGateway:
    return LiveGateway(
        f'[providers.host]\ndialect = "{dialect}"\nbase_url = "{upstream.url}{path}"\napi_key = "a-key-0123456"\n'
        '[models]\n"*" = "host/*"\n'
    )


def asked(upstream: ScriptedUpstream) -> dict[str, Any]:
    body: dict[str, Any] = decode(upstream.requests[-1].body)
    return body


def test_choices_of_a_gemini_upstream_reach_a_chat_client() -> None:
    """[X17] n = 3, streamed."""
    with ScriptedUpstream() as upstream, gateway(upstream, "gemini", "/v1beta") as live:
        upstream.next(Behaviour(pieces=(GEMINI,)))
        client = openai.OpenAI(base_url=f"{live.url}/v1", api_key="x", max_retries=0)
        texts: dict[int, str] = {}
        ends: dict[int, str | None] = {}
        for chunk in client.chat.completions.create(
            model="m", messages=[{"role": "user", "content": "hi"}], n=3, stream=True
        ):
            for choice in chunk.choices:
                texts[choice.index] = texts.get(choice.index, "") + (choice.delta.content or "")
                ends[choice.index] = choice.finish_reason or ends.get(choice.index)
        assert asked(upstream)["generationConfig"]["candidateCount"] == 3
        assert texts == {0: "One", 1: "Two", 2: ""}
        assert ends == {0: "stop", 1: "length", 2: "tool_calls"}
        assert "candidates" not in str(live.wait_log()[-1].get("losses"))


def test_candidates_of_a_chat_upstream_reach_a_gemini_client() -> None:
    """[X17] candidateCount = 3, streamed."""
    with ScriptedUpstream() as upstream, gateway(upstream, "openai-chat", "/v1") as live:
        upstream.next(Behaviour(pieces=(CHAT,)))
        client = genai.Client(api_key="x", http_options=types.HttpOptions(base_url=live.url))
        texts: dict[int, str] = {}
        for chunk in client.models.generate_content_stream(
            model="m", contents="hi", config=types.GenerateContentConfig(candidate_count=3)
        ):
            for candidate in chunk.candidates or ():
                parts = (candidate.content.parts if candidate.content else None) or ()
                said = "".join(part.text or "" for part in parts)
                texts[candidate.index or 0] = texts.get(candidate.index or 0, "") + said
        assert asked(upstream)["n"] == 3
        assert texts == {0: "One", 1: "Two", 2: ""}


@pytest.mark.parametrize(("dialect", "path"), [("anthropic", ""), ("openai-responses", "/v1")])
def test_without_emulation_an_upstream_with_one_answer_is_asked_for_one(dialect: str, path: str) -> None:
    """[X17] Nothing is paid that has no place."""
    with ScriptedUpstream() as upstream, gateway(upstream, dialect, path) as live:
        client = openai.OpenAI(base_url=f"{live.url}/v1", api_key="x", max_retries=0)
        list(
            client.chat.completions.create(
                model="m",
                messages=[{"role": "user", "content": "hi"}],
                n=2,
                stream=True,
                extra_headers={"x-wireglot-emulate": "off"},
            )
        )
        assert len(upstream.requests) == 1
        assert "n" not in asked(upstream)
        assert "candidates" in str(live.wait_log()[-1]["losses"])
