"""A gateway with a scripted search before upstreams that run no tools, and the vendors' SDKs before it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import cached_property
from types import TracebackType
from typing import Any, Final

import anthropic
import openai
from google import genai
from google.genai import types

from tests.gateway.faults.faults_kit import provider
from tests.gateway.hosted.documents_kit import Documents
from wireglot.gateway.hosted.web import SourceSealer, web_runners
from wireglot.gateway.state.quotas.tool_uses import ToolUses
from wireglot.testing.live_gateway import LiveGateway
from wireglot.testing.scripted_upstream import Behaviour, Recorded, ScriptedUpstream
from wireglot.web.contract import Hit, Page, Query, WebFailed
from wireglot_core.wire.json import encode

DIALECTS: Final = ("anthropic", "openai-chat", "openai-responses", "gemini")
NATIVE: Final = {"native": "anthropic", "native-responses": "openai-responses", "native-gemini": "gemini"}
"""Providers that run their own search, and their dialects."""
TOWER: Final = Hit("https://example.com/tower", "The tower", "It is 324 metres high.", "2 days ago")
OTHER: Final = Hit("https://example.org/list?page=2", "High towers", "A list of towers.")
PAGE: Final = Page(
    TOWER.url, "The tower", "text/html", "The tower is 324 metres high.", retrieved="2026-11-18T10:00:00Z"
)
ASKED: Final = '[[demo:tool web_search {"query": "height of the tower"}]] How high is the tower?'
"""Has the demo model search, and quote what it is given."""
_ONCE: Final = "retry = { retries = 0 }\nbreaker = { consecutive = 1000000, minimum = 1000000 }\n"
_LINES: Final = f"limits = {{ hosted_tools = false }}\n{_ONCE}"

_SEARCH: Final = '[search]\nbackend = "searxng"\nurl = "http://127.0.0.1:1"\nfetch = true\n'
"""Switches both on; `ScriptedWeb` takes the place of what it names."""


class ScriptedWeb:
    """Implements `WebSearch` and `Fetch`."""

    name = "scripted"
    price = 0.005

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self.queries: list[Query] = []
        self.fetched: list[str] = []
        self.max_tokens: list[int | None] = []
        """Of each fetch."""
        self.hits: Sequence[Hit] = (TOWER, OTHER)
        self.page = PAGE
        self.problem: WebFailed | None = None
        self.gate: asyncio.Event | None = None
        """Waited for before a search answers."""
        self.cancelled = 0

    async def search(self, query: Query) -> Sequence[Hit]:
        self.queries.append(query)
        await self._wait()
        return self.hits

    async def fetch(
        self,
        url: str,
        *,
        allowed_domains: Sequence[str] = (),
        blocked_domains: Sequence[str] = (),
        max_tokens: int | None = None,
    ) -> Page:
        self.fetched.append(url)
        self.max_tokens.append(max_tokens)
        await self._wait()
        return self.page

    async def _wait(self) -> None:
        if self.gate is not None:
            try:
                await self.gate.wait()
            except asyncio.CancelledError:
                self.cancelled += 1
                raise
        if self.problem is not None:
            raise self.problem


class HostedStage:
    """`decide` answers requests of upstreams; None: the demo model does. At its end the vendors' schemas check all
    that the gateway wrote."""

    def __init__(
        self,
        more: str = "",
        decide: Callable[[Recorded], Behaviour | None] | None = None,
        currency: str = "USD",
    ) -> None:
        self._currency = currency
        self.documents = Documents()
        self._decide = decide
        self.upstream = ScriptedUpstream(decide=self._note)
        self.web = ScriptedWeb()
        self._more = more
        self.gateway: LiveGateway

    def _note(self, request: Recorded) -> Behaviour | None:
        self.documents.sent(request)
        return self._decide(request) if self._decide is not None else None

    def __enter__(self) -> HostedStage:
        self.upstream.start()
        toml = f'currency = "{self._currency}"\n'
        toml += "".join(provider(f"{each}-up", self.upstream, each, _LINES) for each in DIALECTS)
        for name, spoken in NATIVE.items():
            toml += provider(name, self.upstream, spoken, f"limits = {{ hosted_tools = true }}\n{_ONCE}")
        self.gateway = LiveGateway(toml + _SEARCH + self._more).start()
        inside: Any = self.gateway.process.gateway
        runners, state = inside._parts.pipeline.parts.runners, inside._parts.state
        uses = ToolUses(state.quotas.tools, state.ledger)
        runners.update(web_runners(lambda _: self.web, lambda _: self.web, SourceSealer(state.sealer), uses))
        self.documents.of(self.gateway)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.gateway.stop()
        self.upstream.stop()
        if kind is None:
            self.documents.check()

    def reset(self) -> HostedStage:
        self.upstream.reset()
        self.web.reset()
        return self

    @cached_property
    def claude(self) -> anthropic.Anthropic:
        return anthropic.Anthropic(
            base_url=self.gateway.url,
            api_key="wg",
            max_retries=0,
            http_client=anthropic.DefaultHttpxClient(verify=False),
        )

    def ask_claude(self, model: str, streamed: bool, turns: list[Any], **more: Any) -> Any:
        """The answer to a request with a web search, as the SDK puts it together."""
        asked: dict[str, Any] = {
            "model": model,
            "max_tokens": 3000,
            "messages": turns,
            "tools": [{"type": "web_search_20250305", "name": "web_search"}],
            **more,
        }
        if not streamed:
            return self.claude.messages.create(**asked)
        with self.claude.messages.stream(**asked) as stream:
            return stream.get_final_message()

    @cached_property
    def gpt(self) -> openai.OpenAI:
        return openai.OpenAI(
            base_url=f"{self.gateway.url}/v1",
            api_key="wg",
            max_retries=0,
            http_client=openai.DefaultHttpxClient(verify=False),
        )

    @cached_property
    def gemini(self) -> genai.Client:
        options = types.HttpOptions(base_url=self.gateway.url, client_args={"verify": False})
        return genai.Client(api_key="wg", http_options=options)


def chat_answer(message: dict[str, Any], finish: str = "stop", *, stream: bool = False) -> Behaviour:
    """An answer on Chat Completions."""
    said = {"role": "assistant", **message} if stream else {"role": "assistant", "refusal": None, **message}
    choice = {
        "index": 0,
        "delta" if stream else "message": said,
        "logprobs": None,
        "finish_reason": finish,
    }
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    answer = {
        "id": "c",
        "object": "chat.completion",
        "created": 1,
        "model": "m1",
        "choices": [choice],
        "usage": usage,
    }
    if not stream:
        return Behaviour(body=encode(answer))
    head = (("content-type", "text/event-stream"),)
    return Behaviour(headers=head, pieces=(b"data: %b\n\n" % encode(answer), b"data: [DONE]\n\n"))


def chat_calls(
    *calls: tuple[str, dict[str, Any]], text: str | None = None, stream: bool = False
) -> Behaviour:
    """An answer on Chat Completions that calls these functions, with ids `call_0`, `call_1` and so on."""
    listed = [
        {
            **({"index": place} if stream else {}),
            "id": f"call_{place}",
            "type": "function",
            "function": {"name": name, "arguments": encode(arguments).decode()},
        }
        for place, (name, arguments) in enumerate(calls)
    ]
    return chat_answer({"content": text, "tool_calls": listed}, "tool_calls", stream=stream)
