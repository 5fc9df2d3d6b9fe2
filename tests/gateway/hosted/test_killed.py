"""A gateway killed in the middle of an answer with a search: nothing is lost, nothing counts twice."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.gateway.hosted.hosted_kit import OTHER, TOWER, chat_answer, chat_calls
from tests.gateway.state.ledger_kit import Served
from tests.gateway.state.usage_kit import fetch, usage
from wireglot.testing.live_gateway import LiveGateway
from wireglot.testing.scripted_upstream import Behaviour, ScriptedUpstream
from wireglot.wire.json import decode, encode

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")


class SearchServer(ThreadingHTTPServer):
    """Answers as SearXNG does."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.asked = threading.Semaphore(0)
        self.gate = threading.Event()
        """Waited for before an answer."""
        self.gate.set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    server: SearchServer

    def do_GET(self) -> None:
        self.server.asked.release()
        self.server.gate.wait()
        results = [{"url": hit.url, "title": hit.title, "content": hit.text} for hit in (TOWER, OTHER)]
        body = encode({"results": results})
        with contextlib.suppress(OSError):
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    do_POST = do_GET

    def log_message(self, format: str, *arguments: Any) -> None: ...


@pytest.fixture
def searched() -> Iterator[SearchServer]:
    server = SearchServer()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.gate.set()
    server.shutdown()
    server.server_close()


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
