"""A gateway, the upstream behind it and the vendors' SDKs before it, for the tests that join all three."""

from __future__ import annotations

import http.client
import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from types import TracebackType
from typing import Any

import anthropic
import msgspec
import openai
import pytest
from google import genai
from google.genai import types
from pydantic import BaseModel

from tests.waiting import DEADLINE_SECONDS
from wireglot.testing.live_gateway import BASES, LiveGateway
from wireglot.testing.scripted_upstream import ScriptedUpstream

UPSTREAMS = (
    "anthropic",
    "openai-chat",
    "openai-responses",
    "gemini",
    "code-assist",
    "gemini-interactions",
)

MODEL = "m1"
FRAIL = "frail-m1"
"""Leads to a provider that is asked once and whose circuit breaker never opens: its errors arrive as they are."""
LOCKED = "locked-m1"
"""Leads to a provider whose only key is set aside by the test that uses it."""
NAMED = "my-favourite"
"""The only name that is spelled out, and so the only one that lists show."""
UNLISTED = "nobody-m1"
"""Leads nowhere: there is no such provider."""

WEATHER: dict[str, Any] = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}
STRICT = "[[demo:strict]]"
"""Has the scripted model refuse any conversation in which a signature came back changed."""
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
"""A picture of one point, in base64."""
HEARD = "Hello, héllo, 你好 🙂\nsecond line"
ECHO = f"[[demo:echo]] {HEARD}"
"""Has the scripted model say what is in `HEARD`."""
LEGAL_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")
"""The ids of calls that Anthropic's and OpenAI's APIs take."""


# What structured output is asked for. A docstring would be sent as part of the schema.
class Place(BaseModel):
    city: str
    population: int


class Exchanged(msgspec.Struct, frozen=True):
    """An answer over plain HTTP. Header names are in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes


class Stage:
    """The gateway before one upstream, with a client of each SDK. Nobody tries again but the gateway.

    Nothing is encrypted here, so the clients load no certificates: that alone takes longer than a test.
    """

    def __init__(self, upstream_dialect: str) -> None:
        self.dialect = upstream_dialect
        self.upstream = ScriptedUpstream()
        self.gateway: LiveGateway

    def __enter__(self) -> Stage:
        self.upstream.start()
        self.gateway = LiveGateway(self._toml()).__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.gateway.__exit__(kind, problem, trace)
        self.upstream.stop()

    @property
    def url(self) -> str:
        return self.gateway.url

    @cached_property
    def claude(self) -> anthropic.Anthropic:
        plain = anthropic.DefaultHttpxClient(verify=False)
        return anthropic.Anthropic(base_url=self.url, api_key="x", max_retries=0, http_client=plain)

    @cached_property
    def gpt(self) -> openai.OpenAI:
        plain = openai.DefaultHttpxClient(verify=False)
        return openai.OpenAI(base_url=f"{self.url}/v1", api_key="x", max_retries=0, http_client=plain)

    def async_claude(self) -> anthropic.AsyncAnthropic:
        """To be opened and closed by the loop that uses it."""
        plain = anthropic.DefaultAsyncHttpxClient(verify=False)
        return anthropic.AsyncAnthropic(base_url=self.url, api_key="x", max_retries=0, http_client=plain)

    def async_gpt(self) -> openai.AsyncOpenAI:
        plain = openai.DefaultAsyncHttpxClient(verify=False)
        return openai.AsyncOpenAI(base_url=f"{self.url}/v1", api_key="x", max_retries=0, http_client=plain)

    @cached_property
    def gemini(self) -> genai.Client:
        return genai.Client(
            api_key="x",
            http_options=types.HttpOptions(
                base_url=self.url, client_args={"verify": False}, async_client_args={"verify": False}
            ),
        )

    def post(self, path: str, body: bytes, headers: Mapping[str, str] = {}) -> Exchanged:
        """One request without any SDK, for what is compared byte by byte."""
        connection = http.client.HTTPConnection("127.0.0.1", self.gateway.port, timeout=DEADLINE_SECONDS)
        try:
            connection.request("POST", path, body, {"content-type": "application/json", **headers})
            return _exchanged(connection.getresponse())
        finally:
            connection.close()

    def sent(self) -> Any:
        """The last body that reached the upstream."""
        return self.upstream.requests[-1].json

    def _toml(self) -> str:
        address = f'dialect = "{self.dialect}"\nbase_url = "{self.upstream.url}{BASES[self.dialect]}"\n'
        key = 'api_key = "upstream-key-0123456789"\n'
        once = "retry = {retries = 0}\nbreaker = {consecutive = 1000000, minimum = 1000000}\n"
        return (
            f"[providers.mine]\n{address}{key}retry = {{base = 0.001}}\n"
            f"[providers.frail]\n{address}{key}{once}"
            f"[providers.locked]\n{address}{key}{once}"
            f'[providers.streamer]\n{address}{key}streams = "only"\n'
            f'[providers.waiter]\n{address}{key}streams = "never"\n'
            '[models]\n"frail-*" = "frail/*"\n"locked-*" = "locked/*"\n'
            f'"{NAMED}" = "mine/{MODEL}"\n"m1*" = "mine/m1*"\n'
        )


def _exchanged(answer: http.client.HTTPResponse) -> Exchanged:
    headers = {name.lower(): value for name, value in answer.getheaders()}
    return Exchanged(answer.status, headers, answer.read())


@pytest.fixture(scope="module", params=UPSTREAMS)
def _running(request: pytest.FixtureRequest) -> Iterator[Stage]:
    with Stage(request.param) as stage:
        yield stage


@pytest.fixture
def _stage(running: Stage) -> Stage:
    running.upstream.reset()
    return running


def stage_fixtures() -> tuple[Any, Any]:
    """The fixtures `running` and `stage` of a file: each test runs before an upstream of every dialect, which
    it shares with the file's other tests and finds as new."""
    return _running, _stage


def reasoning_state(dialect: str, body: Any) -> list[str]:
    """What a request gives back to its upstream of the reasoning that this upstream signed."""
    match dialect:
        case "anthropic":
            blocks = [block for message in body["messages"] for block in _blocks(message["content"])]
            return [block["signature"] for block in blocks if block["type"] == "thinking"]
        case "openai-responses":
            return [item["encrypted_content"] for item in body["input"] if item.get("type") == "reasoning"]
        case "gemini" | "code-assist":
            contents = body["request"]["contents"] if dialect == "code-assist" else body["contents"]
            parts = [part for content in contents for part in content["parts"]]
            return [part["thoughtSignature"] for part in parts if "thoughtSignature" in part]
        case "gemini-interactions":
            return [step["signature"] for step in body["input"] if step["type"] == "thought"]
    return []


def _blocks(content: Any) -> list[Any]:
    return content if isinstance(content, list) else []
