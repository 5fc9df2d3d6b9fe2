"""Models that providers list themselves."""

from __future__ import annotations

import http.client
import threading
from typing import Any

import anthropic
import ollama
import openai
import pytest
from google import genai
from google.genai import types

from tests.gateway.faults.faults_kit import provider
from tests.gateway.faults.faults_stages import SECRET, behind, closed_port, digest_of
from tests.tiers import rows
from tests.waiting import DEADLINE_SECONDS, wait_until
from wireglot.gateway.pages import models
from wireglot.testing.live_gateway import LiveGateway
from wireglot.testing.scripted_upstream import Behaviour, ScriptedUpstream
from wireglot_core.dialects.listed_model import UpstreamModel, read_list
from wireglot_core.wire.json import decode, encode

OLLAMA = {"object": "list", "data": [{"id": "qwen3:8b", "object": "model", "owned_by": "library"}]}
VLLM = {"data": [{"id": "Qwen/Qwen3-32B", "max_model_len": 40960}, {"id": "Qwen/Qwen3-32B"}]}
OPENROUTER = {
    "data": [
        {"id": "x/y", "name": "X: Y", "context_length": 9000, "max_completion_tokens": 500},
        {"id": "bge-m3", "type": "embedding"},
    ]
}
TAGS = {
    "models": [
        {
            "name": "qwen3:8b",
            "model": "qwen3:8b",
            "modified_at": "2026-08-01T10:00:00.5+02:00",
            "size": 5_225_388_164,
            "digest": "500a1f067a9f",
            "details": {
                "parent_model": "",
                "format": "gguf",
                "family": "qwen3",
                "families": ["qwen3"],
                "parameter_size": "8.2B",
                "quantization_level": "Q4_K_M",
                "context_length": 40960,
                "embedding_length": 4096,
            },
            "capabilities": ["completion", "tools", "thinking"],
        },
        {
            "name": "all-minilm:latest",
            "model": "all-minilm:latest",
            "details": {"family": "bert", "context_length": 512, "embedding_length": 384},
            "capabilities": ["embedding"],
        },
        {"name": "plain:1b", "model": "plain:1b", "details": {}, "capabilities": ["completion"]},
    ]
}
GEMINI = {
    "models": [
        {"name": "models/g", "displayName": "G", "inputTokenLimit": 7, "supportedGenerationMethods": ["generateContent"]},
        {"name": "models/e", "supportedGenerationMethods": ["embedContent"]},
    ]
}  # fmt: skip


@rows(
    ("document", "models"),
    [
        (OLLAMA, [UpstreamModel("qwen3:8b")]),
        (VLLM, [UpstreamModel("Qwen/Qwen3-32B", "", 40960)]),
        (OPENROUTER, [UpstreamModel("x/y", "X: Y", 9000, 500)]),
        (GEMINI, [UpstreamModel("g", "G", 7)]),
        ([{"id": "bare"}, {"id": 5}, {"id": ""}, {"id": "a b"}, 7, None], [UpstreamModel("bare")]),
        ({"models": [{"name": "llama", "model": "llama"}]}, [UpstreamModel("llama")]),
        ({"data": [{"id": "m", "capabilities": ["tool_use"]}]}, [UpstreamModel("m")]),
        ({"data": "no"}, []),
        ("text", []),
        (None, []),
    ],
)
def test_a_list_is_read_in_whatever_shape_it_comes(document: Any, models: list[UpstreamModel]) -> None:
    """[L10]"""
    assert list(read_list(document, 100)) == models


def test_a_list_without_end_is_cut() -> None:
    """[L10]"""
    assert len(read_list({"data": [{"id": f"m{n}"} for n in range(50)]}, 10)) == 10


def listed(gateway: LiveGateway, path: str = "/v1/models", **headers: str) -> tuple[dict[str, str], Any]:
    connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=DEADLINE_SECONDS)
    connection.request("GET", path, headers={name.replace("_", "-"): text for name, text in headers.items()})
    answer = connection.getresponse()
    body = decode(answer.read())
    assert answer.status == 200, body
    return {name.lower(): text for name, text in answer.getheaders()}, body


def ids(body: Any) -> list[str]:
    return [model["id"] for model in body["data"]]


@pytest.mark.parametrize("dialect", ["openai-chat", "openai-responses", "anthropic", "gemini"])
def test_an_unlisted_providers_own_models_are_listed_in_every_shape(dialect: str) -> None:
    """[L10] With its key, once, and as the names under which they can be asked for."""
    with behind(lambda upstream: provider("mine", upstream, dialect)) as (gateway, upstream):
        upstream.otherwise = Behaviour(body=encode(GEMINI if dialect == "gemini" else OPENROUTER))
        name = "mine/g" if dialect == "gemini" else "mine/x/y"
        headers, body = listed(gateway)
        assert name in ids(body)
        assert not any("bge" in each or each.endswith("/e") for each in ids(body))
        assert headers["age"] == "0"
        asked = upstream.requests[0]
        assert (asked.method, asked.path.endswith("/models")) == ("GET", True)
        assert b"upstream-key-0123456789" in asked.raw
        claude = anthropic.Anthropic(base_url=gateway.url, api_key="x", max_retries=0)
        (mine,) = [model for model in claude.models.list(limit=1000) if model.id == name]
        assert mine.display_name == ("G" if dialect == "gemini" else "X: Y")
        assert mine.max_input_tokens == (7 if dialect == "gemini" else 9000)
        gpt = openai.OpenAI(base_url=f"{gateway.url}/v1", api_key="x", max_retries=0)
        assert name in [model.id for model in gpt.models.list()]
        assert gpt.models.retrieve(name).owned_by == "mine"
        gemini = genai.Client(api_key="x", http_options=types.HttpOptions(base_url=gateway.url))
        assert f"models/{name}" in [model.name for model in gemini.models.list()]
        assert len(upstream.requests) == 1, "asked once for all of them"


def test_a_catalogued_server_without_names_is_asked_and_a_vendor_is_not() -> None:
    """[L10] Ollama, vLLM, OpenRouter: the catalog knows no model of theirs."""

    def toml(upstream: ScriptedUpstream) -> str:
        tables = ""
        for name in ("ollama", "vllm", "openrouter", "kimi"):
            key = 'api_key = "k-0123456789"\n' if name in ("openrouter", "kimi") else ""
            tables += f'[providers.{name}]\nbase_url = "{upstream.url}/{name}/v1"\n{key}'
        return tables

    with behind(toml) as (gateway, upstream):
        upstream.otherwise = Behaviour(body=encode(OLLAMA))
        found = ids(listed(gateway)[1])
        assert {"ollama/qwen3:8b", "vllm/qwen3:8b", "openrouter/qwen3:8b", "kimi/kimi-k3"} <= set(found)
        assert "kimi/qwen3:8b" not in found
        assert len(upstream.requests) == 3


def test_an_ollama_servers_own_figures_reach_ollamas_clients() -> None:
    """Its native list is asked, which says more than the one in OpenAI's form: of every name that leads to a
    model, what that can, and its file."""

    def toml(upstream: ScriptedUpstream) -> str:
        urls = f'base_url = "{upstream.url}/v1"\nbase_urls = {{ ollama = "{upstream.url}" }}\n'
        return f'[providers.ollama]\n{urls}[models]\n"house" = "ollama/qwen3:8b"\n"*" = "ollama/*"\n'

    with behind(toml) as (gateway, upstream):
        upstream.otherwise = Behaviour(body=encode(TAGS))
        client = ollama.Client(gateway.url)
        found = {model.model: model for model in client.list().models}
        assert upstream.requests[0].path == "/api/tags"
        entry = found["ollama/qwen3:8b"]
        assert (entry.size, entry.digest) == (5_225_388_164, "500a1f067a9f")
        assert entry.modified_at is not None
        assert entry.modified_at.year == 2026
        assert entry.details is not None
        assert (entry.details.parameter_size, entry.details.family) == ("8.2B", "qwen3")
        for name in ("house", "ollama/qwen3:8b", "qwen3:8b"):
            shown = client.show(name)
            assert shown.capabilities == ["completion", "tools", "thinking"], name
            assert shown.modelinfo is not None
            assert shown.modelinfo["wireglot.context_length"] == 40960
            assert shown.details is not None
            assert shown.details.quantization_level == "Q4_K_M"
        for name in ("ollama/all-minilm:latest", "ollama/all-minilm", "all-minilm"):
            embeds = client.show(name)
            assert embeds.capabilities == ["embedding"], name
            assert embeds.modelinfo is not None
            assert embeds.modelinfo["wireglot.embedding_length"] == 384
        plain = client.show("ollama/plain:1b")
        assert plain.capabilities == ["completion"]
        assert plain.modelinfo is not None
        assert "general.architecture" not in plain.modelinfo, "Koog reads both figures where it is"
        listing = ids(listed(gateway, anthropic_version="2023-06-01")[1])
        assert "ollama/qwen3:8b" in listing
        assert "ollama/all-minilm:latest" not in listing


def test_a_server_that_is_away_holds_nobody_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """[L10] The others are reported at once, what comes late is for the next page, and the log says who was away."""
    monkeypatch.setattr(models, "WAIT_SECONDS", 0.05)
    gate = threading.Event()

    def toml(upstream: ScriptedUpstream) -> str:
        dead = f'[providers.dead]\ndialect = "openai-chat"\nbase_url = "http://127.0.0.1:{closed_port()}/v1"\nauth = "none"\n'
        return provider("mine", upstream, "openai-chat") + dead + "[providers.demo]\n"

    with behind(toml) as (gateway, upstream):
        upstream.otherwise = Behaviour(body=encode(OLLAMA), gate=gate)
        first = ids(listed(gateway)[1])
        assert "demo" in first
        assert "mine/qwen3:8b" not in first
        gate.set()
        wait_until(lambda: "mine/qwen3:8b" in ids(listed(gateway)[1]))
        assert not any(name.startswith("dead/") for name in ids(listed(gateway)[1]))
        assert len(upstream.requests) == 1


def test_a_list_is_asked_for_again_when_it_is_old_and_kept_while_its_server_fails(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """[L10]"""
    monkeypatch.setattr(models, "FRESH_SECONDS", 0.0)
    monkeypatch.setattr(models, "RETRY_SECONDS", 0.0)
    with behind(lambda upstream: provider("mine", upstream, "openai-chat")) as (gateway, upstream):
        upstream.otherwise = Behaviour(body=encode(OLLAMA))
        assert "mine/qwen3:8b" in ids(listed(gateway)[1])
        upstream.otherwise = Behaviour(error=500)
        listed(gateway)
        upstream.wait_for(2)
        assert "mine/qwen3:8b" in ids(listed(gateway)[1]), "what it reported before holds for a while"
        monkeypatch.setattr(models, "KEPT_SECONDS", -1.0)
        assert ids(listed(gateway)[1]) == []
        monkeypatch.undo()
        upstream.otherwise = Behaviour(body=encode(VLLM))


def test_a_key_sees_only_what_it_may_ask_for() -> None:
    """[L10]"""
    keys = f'[keys]\nteam = {{ hash = "{digest_of(SECRET)}", models = ["mine/qwen*"] }}\n'
    with behind(lambda upstream: provider("mine", upstream, "openai-chat") + keys) as (gateway, upstream):
        both = {"data": [*OLLAMA["data"], {"id": "other"}]}
        upstream.otherwise = Behaviour(body=encode(both))
        assert ids(listed(gateway, authorization=f"Bearer {SECRET}")[1]) == ["mine/qwen3:8b"]
