"""A gateway killed in the middle of an answer with a search: nothing is lost, nothing counts twice."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.gateway.hosted.hosted_kit import chat_answer, chat_calls
from tests.gateway.hosted.search_server import SearchServer
from tests.gateway.state.ledger_kit import Served
from tests.gateway.state.usage_kit import fetch, usage
from wireglot.testing.live_gateway import LiveGateway
from wireglot.testing.scripted_upstream import Behaviour, ScriptedUpstream
from wireglot_core.wire.json import decode

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")


@pytest.fixture
def searched() -> Iterator[SearchServer]:
    with SearchServer() as server:
        yield server


def _toml(upstream: ScriptedUpstream, searched: SearchServer) -> str:
    return (
        f'[providers.mine]\ndialect = "openai-chat"\nbase_url = "{upstream.url}/v1"\napi_key = "k"\n'
        f'[models]\n"*" = "mine/*"\n[store]\nsync = "before"\n'
        f'[search]\nbackend = "searxng"\nurl = "{searched.url}"\nprice = 0.005\n'
    )


def _ask(served: Any) -> Any:
    body = {
        "model": "m",
        "max_tokens": 100,
        "messages": [{"role": "user", "content": "?"}],
        "tools": [{"type": "web_search_20250305", "name": "web_search"}],
    }
    return decode(fetch(f"{served.url}/v1/messages", body))


def _left(served: Any) -> threading.Thread:
    """Asked for, and never answered."""

    def ask() -> None:
        with contextlib.suppress(OSError, ValueError):
            _ask(served)

    thread = threading.Thread(target=ask)
    thread.start()
    return thread


def _rows(toml: str, folder: Path) -> dict[tuple[str, str], tuple[int, int, float]]:
    with LiveGateway(toml, folder=folder) as gateway:
        found = usage(gateway, "group_by=operation,outcome")["data"]
    return {
        (row["operation"], row["outcome"]): (row["requests"], row["input_tokens"], float(row["cost"] or 0))
        for row in found
    }


def test_a_gateway_killed_in_the_second_round_has_the_first_and_its_search(
    tmp_path: Path, searched: SearchServer
) -> None:
    with ScriptedUpstream() as upstream:
        toml = _toml(upstream, searched)
        served = Served(tmp_path, toml)
        upstream.next(
            chat_calls(("web_search", {"query": "tower"})),
            chat_answer({"content": "High."}),
            chat_calls(("web_search", {"query": "tower"})),
            Behaviour(fault="stall"),
        )
        whole = _ask(served)
        assert [block["type"] for block in whole["content"]][-1] == "text"
        asking = _left(served)
        upstream.wait_for(4)
        served.kill()
        asking.join()
    assert _rows(toml, tmp_path) == {
        ("generate", "ok"): (2, 20, 0.0),
        ("web_search", "ok"): (2, 0, 0.01),
        ("tool_round", "ok"): (1, 10, 0.0),
        ("tool_round", "crash"): (1, 0, 0.0),
    }


def test_a_gateway_killed_in_the_middle_of_a_search_has_the_round_that_asked_for_it(
    tmp_path: Path, searched: SearchServer
) -> None:
    with ScriptedUpstream() as upstream:
        toml = _toml(upstream, searched)
        served = Served(tmp_path, toml)
        upstream.next(chat_calls(("web_search", {"query": "tower"})))
        searched.gate.clear()
        asking = _left(served)
        searched.asked.acquire()
        served.kill()
        asking.join()
    assert _rows(toml, tmp_path) == {("generate", "ok"): (1, 10, 0.0), ("web_search", "crash"): (1, 0, 0.0)}
