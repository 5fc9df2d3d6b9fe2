"""A gateway that drains, ends or gets a new configuration while a search runs."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.gateway.hosted.hosted_kit import chat_answer, chat_calls
from tests.gateway.hosted.search_server import SearchServer
from tests.gateway.state.usage_kit import Refused, fetch, usage
from tests.waiting import wait_until
from wireglot.testing.live_gateway import LiveGateway
from wireglot.testing.scripted_upstream import ScriptedUpstream
from wireglot_core.wire.json import decode
from wireglot_core.wire.sse import SseDecoder

EITHER = pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])


@pytest.fixture
def searched() -> Iterator[SearchServer]:
    with SearchServer() as server:
        server.gate.clear()
        yield server


@pytest.fixture
def upstream() -> Iterator[ScriptedUpstream]:
    with ScriptedUpstream() as made:
        yield made


def _toml(upstream: ScriptedUpstream, searched: SearchServer, more: str = "") -> str:
    return (
        f'[providers.mine]\ndialect = "openai-chat"\nbase_url = "{upstream.url}/v1"\napi_key = "k"\n'
        f'[models]\n"*" = "mine/*"\n'
        f'[search]\nbackend = "searxng"\nurl = "{searched.url}"\nprice = 0.005\ntimeout = 60\n{more}'
    )


class Asking:
    """A request whose search waits."""

    def __init__(self, gateway: LiveGateway, upstream: ScriptedUpstream, *, streamed: bool) -> None:
        self.body = b""
        self.status = 200
        upstream.next(
            chat_calls(("web_search", {"query": "tower"}), stream=streamed),
            chat_answer({"content": "High."}, stream=streamed),
        )
        body: dict[str, Any] = {
            "model": "m",
            "max_tokens": 100,
            "stream": streamed,
            "messages": [{"role": "user", "content": "?"}],
            "tools": [{"type": "web_search_20250305", "name": "web_search"}],
        }

        def ask() -> None:
            try:
                self.body = fetch(f"{gateway.url}/v1/messages", body)
            except Refused as refused:
                self.status, self.body = refused.status, refused.body

        self.thread = threading.Thread(target=ask)
        self.thread.start()

    def documents(self) -> list[Any]:
        """The answer, or the events of it."""
        self.thread.join(60)
        if not self.body.startswith(b"event:"):
            return [decode(self.body)]
        decoder = SseDecoder()
        return [decode(frame.data) for frame in decoder.feed(self.body) + decoder.close() if frame.data]


def _stop(gateway: LiveGateway) -> None:
    gateway._loop.call_soon_threadsafe(gateway.process.stop)
    wait_until(lambda: gateway.process.gateway.draining)


def _rows(toml: str, folder: Path) -> dict[str, tuple[int, float]]:
    with LiveGateway(toml, folder=folder) as gateway:
        found = usage(gateway, "group_by=operation")["data"]
    return {row["operation"]: (row["requests"], float(row["cost"] or 0)) for row in found}


@EITHER
def test_an_answer_finishes_while_the_gateway_drains(
    tmp_path: Path, upstream: ScriptedUpstream, searched: SearchServer, streamed: bool
) -> None:
    toml = _toml(upstream, searched)
    with LiveGateway(toml, folder=tmp_path) as gateway:
        asking = Asking(gateway, upstream, streamed=streamed)
        searched.asked.acquire()
        _stop(gateway)
        searched.gate.set()
        documents = asking.documents()
    if streamed:
        assert documents[-1] == {"type": "message_stop"}
        assert [each["type"] for each in documents].count("message_start") == 1
    else:
        assert documents[0]["content"][-1]["text"] == "High."
    assert _rows(toml, tmp_path) == {"generate": (1, 0.0), "tool_round": (1, 0.0), "web_search": (1, 0.005)}


@EITHER
def test_an_answer_that_takes_longer_than_the_drain_ends_in_an_error(
    tmp_path: Path, upstream: ScriptedUpstream, searched: SearchServer, streamed: bool
) -> None:
    toml = _toml(upstream, searched, "[limits]\ndrain = 0.1\n")
    with LiveGateway(toml, folder=tmp_path) as gateway:
        asking = Asking(gateway, upstream, streamed=streamed)
        searched.asked.acquire()
        _stop(gateway)
        documents = asking.documents()
    error = documents[-1]
    assert error["type"] == "error"
    assert error["error"]["message"]
    if streamed:
        assert [each["type"] for each in documents].count("error") == 1
    else:
        assert asking.status == 529
    # The backend was asked: it is counted once, and paid.
    assert _rows(toml, tmp_path) == {"generate": (1, 0.0), "web_search": (1, 0.005)}


@EITHER
def test_an_answer_finishes_under_the_configuration_it_began_with(
    tmp_path: Path, upstream: ScriptedUpstream, searched: SearchServer, streamed: bool
) -> None:
    toml = _toml(upstream, searched)
    with LiveGateway(toml, folder=tmp_path) as gateway:
        asking = Asking(gateway, upstream, streamed=streamed)
        searched.asked.acquire()
        before = gateway.process.gateway.settings
        gateway.reconfigure(toml[: toml.index("[search]")])
        wait_until(lambda: gateway.process.gateway.settings is not before)
        searched.gate.set()
        documents = asking.documents()
        assert documents[-1]["type"] == ("message_stop" if streamed else "message")
    assert _rows(toml, tmp_path) == {"generate": (1, 0.0), "tool_round": (1, 0.0), "web_search": (1, 0.005)}
