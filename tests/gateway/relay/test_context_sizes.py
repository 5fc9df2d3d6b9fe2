"""Prompts for models that a local server loads with a limited context: the needed size is requested where it
can be, and what is cut is reported."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import anthropic
import httpx
import pytest

from tests.tiers import rows
from wireglot.gateway.targets.context_size import ContextSize, context_loss
from wireglot.testing.live_gateway import LiveGateway
from wireglot.testing.scripted_upstream import Behaviour, ScriptedUpstream
from wireglot.testing.scripted_upstream.behaviour import Recorded
from wireglot_core.wire.json import decode, encode

MODEL = "qwen3:8b"
SHORT, LONG = "hello", "word " * 8_000


class Server:
    """A model with a maximum, loaded with a size or not at all."""

    def __init__(self) -> None:
        self.most, self.loaded, self.parameters = 40_960, 0, ""

    def decide(self, request: Recorded) -> Behaviour | None:
        if request.path.endswith("/api/show"):
            if not self.most:
                return Behaviour(error=404)
            info = {"general.architecture": "qwen3", "qwen3.context_length": self.most}
            return Behaviour(body=encode({"model_info": info, "parameters": self.parameters}))
        if request.path.endswith("/api/ps"):
            loaded = {"name": MODEL, "model": MODEL, "context_length": self.loaded}
            return Behaviour(body=encode({"models": [loaded] if self.loaded else []}))
        return None


@contextmanager
def served(dialects: list[str] | None = None) -> Iterator[tuple[LiveGateway, ScriptedUpstream, Server]]:
    server = Server()
    with ScriptedUpstream(decide=server.decide) as upstream:
        url = upstream.url
        urls = f'base_url = "{url}/v1"\nbase_urls = {{ anthropic = "{url}", ollama = "{url}" }}\n'
        table = f"[providers.ollama]\n{urls}" if dialects is None else (
            f'[providers.mine]\ndialects = {encode(dialects).decode()}\n{urls}'
        )  # fmt: skip
        with LiveGateway(table) as gateway:
            yield gateway, upstream, server


def asked(
    gateway: LiveGateway, text: str, path: str = "/v1/messages", provider: str = "ollama", **more: Any
) -> httpx.Response:
    body = {"model": f"{provider}/{MODEL}", "messages": [{"role": "user", "content": text}], **more}
    if path == "/v1/messages":
        body.setdefault("max_tokens", 100)
    return httpx.post(f"{gateway.url}{path}", json=body)


POLICY = {"x-wireglot-loss-policy": "strict"}


def generated(upstream: ScriptedUpstream) -> list[tuple[str, dict[str, Any]]]:
    return [
        (request.path, decode(request.body))
        for request in upstream.requests
        if not request.path.endswith(("/api/show", "/api/ps", "/api/tags"))
    ]


def losses(answer: httpx.Response) -> str:
    return str(answer.headers.get("x-wireglot-losses", ""))


@rows("path", ["/v1/messages", "/v1/chat/completions"])
def test_a_long_prompt_is_sent_with_the_size_that_it_needs(path: str) -> None:
    with served() as (gateway, upstream, _):
        answer = asked(gateway, LONG, path)
        assert answer.status_code == 200, answer.text
        (there, body), *_ = generated(upstream)
        assert (there, body["options"]["num_ctx"]) == ("/api/chat", 16_384)
        assert "context" not in losses(answer).split(", ")


def test_a_short_prompt_passes_unchanged() -> None:
    with served() as (gateway, upstream, _):
        answer = asked(gateway, SHORT)
        assert generated(upstream)[0][0] == "/v1/messages"
        assert not losses(answer)


def test_a_short_prompt_does_not_load_a_model_again_that_was_loaded_for_a_long_one() -> None:
    with served() as (gateway, upstream, server):
        asked(gateway, LONG)
        server.loaded = 16_384
        asked(gateway, SHORT)
        (_, first), (there, body) = generated(upstream)
        assert first["options"]["num_ctx"] == 16_384
        assert (there, body["options"]["num_ctx"]) == ("/api/chat", 16_384)


def test_a_model_that_is_loaded_with_more_keeps_its_size() -> None:
    with served(["ollama"]) as (gateway, upstream, server):
        server.loaded = 32_768
        asked(gateway, SHORT, provider="mine")
        assert generated(upstream)[0][1]["options"]["num_ctx"] == 32_768


def test_the_size_is_at_most_the_models_own_and_what_is_beyond_is_reported() -> None:
    with served(["ollama"]) as (gateway, upstream, server):
        server.most = 8_192
        answer = asked(gateway, LONG, provider="mine")
        assert generated(upstream)[0][1]["options"]["num_ctx"] == 8_192
        assert losses(answer).startswith("context")
        refused = httpx.post(
            f"{gateway.url}/v1/messages",
            json={
                "model": f"mine/{MODEL}",
                "max_tokens": 9,
                "messages": [{"role": "user", "content": LONG}],
            },
            headers=POLICY,
        )
        assert refused.status_code == 400
        assert "tokens too long: the model's context has 8192" in refused.text


def test_what_is_cut_is_reported_where_no_dialect_can_name_a_size() -> None:
    with served(["openai-chat"]) as (gateway, upstream, _):
        answer = asked(gateway, LONG, provider="mine")
        assert answer.status_code == 200
        assert [request.path for request in upstream.requests] == ["/v1/chat/completions"], "no such server"
    with served() as (gateway, upstream, server):
        server.most = 4_096
        answer = asked(gateway, LONG, "/v1/chat/completions")
        assert "context" in losses(answer)


def test_a_client_of_ollama_names_the_size_itself() -> None:
    with served() as (gateway, upstream, _):
        body = {"model": f"ollama/{MODEL}", "messages": [{"role": "user", "content": LONG}], "stream": False}
        httpx.post(f"{gateway.url}/api/chat", json=body)
        assert [request.path for request in upstream.requests] == ["/api/chat"]
        assert "num_ctx" not in str(generated(upstream)[0][1].get("options"))


def test_a_server_that_reports_no_sizes_is_sent_none() -> None:
    with served(["ollama"]) as (gateway, upstream, server):
        server.most = 0
        assert asked(gateway, LONG, provider="mine").status_code == 200
        assert "num_ctx" not in generated(upstream)[0][1]["options"]


def test_clients_see_the_context_that_only_single_models_report() -> None:
    with served() as (gateway, upstream, _):
        upstream.otherwise = Behaviour(body=encode({"models": [{"name": MODEL, "model": MODEL}]}))
        claude = anthropic.Anthropic(base_url=gateway.url, api_key="x", max_retries=0)
        (mine,) = [model for model in claude.models.list(limit=1000) if model.id == f"ollama/{MODEL}"]
        assert mine.max_input_tokens == 40_960


SIZES: list[tuple[ContextSize, int, int | None, int]] = [
    (ContextSize(), 100, 50, 0),
    (ContextSize(most=90_000), 100, 50, 256),
    (ContextSize(most=90_000), 4_000, 96, 4_096),
    (ContextSize(most=90_000), 4_001, 96, 8_192),
    (ContextSize(most=90_000), 10_000, 100_000, 16_384),
    (ContextSize(most=90_000), 10_000, None, 16_384),
    (ContextSize(loaded=32_000), 10_000, None, 32_000),
    (ContextSize(most=90_000, set_to=20_000), 10_000, None, 20_000),
    (ContextSize(most=8_000), 10_000, None, 8_000),
    (ContextSize(most=8_000, loaded=9_000), 10, 1, 8_000),
]


@pytest.mark.parametrize(("sizes", "tokens", "answer", "size"), SIZES)
def test_the_requested_size(sizes: ContextSize, tokens: int, answer: int | None, size: int) -> None:
    assert sizes.request(tokens, answer) == size


def test_the_size_of_a_request_that_cannot_name_one() -> None:
    assert ContextSize().unasked == 0
    assert ContextSize(most=90_000).unasked == 4_096
    assert ContextSize(most=2_048).unasked == 2_048
    assert ContextSize(loaded=32_768).unasked == 32_768
    assert ContextSize(loaded=32_768, ours=True).unasked == 4_096
    assert ContextSize(loaded=32_768, set_to=8_192).unasked == 8_192


def test_the_loss_says_how_many_tokens_are_over() -> None:
    assert context_loss(100, 100) is None
    loss = context_loss(150, 100)
    assert loss is not None
    assert loss.grade == "serious"
    assert loss.detail == "about 50 tokens too long: the model's context has 100"
