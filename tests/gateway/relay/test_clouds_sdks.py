"""What the vendors' own SDKs send to their clouds is what the gateway sends there for a client of the dialect."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

import anthropic
import openai
import pytest

from tests.logins.clouds import API_KEY, Cloud
from wireglot.testing.live_gateway import LiveGateway

CLAUDE = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"
VERTEX = "projects/p/locations/l/publishers/anthropic"
TURN: list[Any] = [{"role": "user", "content": "Hi"}]


@pytest.fixture(scope="module")
def cloud() -> Iterator[Cloud]:
    with Cloud() as double:
        yield double


@pytest.fixture(scope="module")
def gateway(cloud: Cloud) -> Iterator[LiveGateway]:
    toml = f"""
[providers.bedrock]
base_url = "{cloud.url}"
api_key = "{API_KEY}"
[providers.vertex-anthropic]
base_url = "{cloud.url}/{VERTEX}"
api_key = "{API_KEY}"
[providers.azure-deployments]
base_url = "{cloud.url}/openai"
api_key = "{API_KEY}"
variables = {{ api_version = "2024-10-21" }}
"""
    with LiveGateway(toml) as running:
        yield running


def last(cloud: Cloud) -> tuple[str, dict[str, Any], dict[str, str]]:
    """Where to, with which body, and the headers that let in or tell a version."""
    asked, headers, body = cloud.asked[-1]
    kept = ("authorization", "api-key", "anthropic-version", "anthropic-beta")
    return unquote(asked), json.loads(body), {name: headers[name] for name in kept if name in headers}


def through(gateway: LiveGateway) -> anthropic.Anthropic:
    return anthropic.Anthropic(base_url=gateway.url, api_key="wg", max_retries=0)


@pytest.mark.parametrize("flags", ["", "interleaved-thinking-2025-05-14,context-1m-2025-08-07"])
def test_bedrock(cloud: Cloud, gateway: LiveGateway, flags: str) -> None:
    headers = {"anthropic-beta": flags} if flags else {}
    direct = anthropic.AnthropicBedrock(
        base_url=cloud.url, api_key=API_KEY, aws_region="us-east-1", max_retries=0
    )
    direct.messages.create(model=CLAUDE, max_tokens=9, messages=TURN, extra_headers=headers)
    path, body, sent = last(cloud)
    sent.pop("anthropic-beta", None)  # the SDK says it twice
    through(gateway).messages.create(
        model=f"bedrock/{CLAUDE}", max_tokens=9, messages=TURN, extra_headers=headers
    )
    assert last(cloud) == (path, body, sent)


@pytest.mark.parametrize("stream", [False, True])
def test_vertex(cloud: Cloud, gateway: LiveGateway, stream: bool) -> None:
    direct = anthropic.AnthropicVertex(
        base_url=cloud.url, access_token=API_KEY, region="l", project_id="p", max_retries=0
    )
    model = "claude-sonnet-4-5@20250929"
    direct.messages.create(model=model, max_tokens=9, messages=TURN, stream=stream)
    expected = last(cloud)
    expected[2].pop("anthropic-version", None)
    through(gateway).messages.create(
        model=f"vertex-anthropic/{model}", max_tokens=9, messages=TURN, stream=stream
    )
    assert last(cloud) == expected


def test_azure_deployments(cloud: Cloud, gateway: LiveGateway) -> None:
    direct = openai.AzureOpenAI(
        azure_endpoint=cloud.url, api_key=API_KEY, api_version="2024-10-21", max_retries=0
    )
    direct.chat.completions.create(model="my-gpt", messages=TURN)
    expected = last(cloud)
    client = openai.OpenAI(base_url=f"{gateway.url}/v1", api_key="wg", max_retries=0)
    client.chat.completions.create(model="azure-deployments/my-gpt", messages=TURN)
    assert last(cloud) == expected
