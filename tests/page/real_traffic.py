"""What real clients send through a gateway: each reads two files by tool, and is answered in another dialect."""

from __future__ import annotations

import hashlib
import json
import tempfile
import threading
import urllib.request
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from clients.catalog import CLIENTS
from clients.install import is_there
from clients.seat import Outcome, Seat
from clients.upstream import Upstream
from tests.waiting import wait_until
from wireglot.testing.live_gateway import LiveGateway

ADMIN = "admin-secret-0123456789"
FILES = 2
MAX_SECONDS = 600.0
"""Only ends a client that never does."""


@dataclass(frozen=True)
class Agent:
    """`name` is what the list calls it, `by` the client of `clients/catalog.py`."""

    name: str
    by: str
    speaks: str
    answered_in: str


THREE = (
    Agent("claude-code", "claude-code", "anthropic", "openai-chat"),
    Agent("codex", "codex", "openai-responses", "gemini"),
    Agent("gemini-cli", "gemini-cli", "gemini", "anthropic"),
)
AGENTS = (
    *THREE,
    Agent("opencode", "opencode-openai-compatible", "openai-chat", "openai-responses"),
    Agent("kimi-code", "kimi-code", "openai-chat", "anthropic"),
)

_CONFIGURATION = """
[server]
admin_secret = "{admin}"
[providers.demo]
[providers.kimi]
dialect = "openai-chat"
base_url = "{url}/v1"
api_key = "upstream-key-0123456789"
limits = {{ reasoning = "text" }}
[providers.gemini]
dialect = "gemini"
base_url = "{url}/v1beta"
api_key = "upstream-key-0123456789"
[providers.anthropic]
dialect = "anthropic"
base_url = "{url}"
api_key = "upstream-key-0123456789"
[providers.openai]
dialect = "openai-responses"
base_url = "{url}/v1"
api_key = "upstream-key-0123456789"
[models]
"claude-*" = "kimi/kimi-k3"
"gpt-*" = "gemini/gemini-3-pro"
"gemini-*" = "anthropic/claude-sonnet-5-5"
"kimi-*" = "anthropic/claude-sonnet-5-5"
"*" = "openai/gpt-5.5"
[trace]
mode = "all"
[keys]
{keys}
"""


class Traffic:
    """Each client runs once, when the first asks for what it sent. Each has a key of its own."""

    def __init__(self, upstream: Upstream, gateway: LiveGateway, folder: Path) -> None:
        self.upstream = upstream
        self.url = gateway.url
        self._folder = folder
        self._runs: dict[str, Future[Outcome]] = {}
        self._one = ThreadPoolExecutor(1)

    def start(self, agent: Agent) -> Future[Outcome]:
        """Raises Skipped where the client is not installed."""
        if agent.name not in self._runs:
            client = next(each for each in CLIENTS if each.name == agent.by)
            if not is_there(client.package):
                pytest.skip(f"{client.title} is not installed: `python -m clients.install` does it")
            self._runs[agent.name] = self._one.submit(self._run, agent)
        return self._runs[agent.name]

    def of(self, agent: Agent) -> list[dict[str, Any]]:
        """Its exchanges, the newest first, all of them over."""
        outcome = self.start(agent).result()
        assert outcome.passed, f"{agent.by}: {outcome.reason}; see {self._folder / agent.name}"

        def over() -> list[dict[str, Any]] | None:
            rows: list[dict[str, Any]] = self.get(f"exchanges?client={agent.name}&limit=1000")["rows"]
            is_over = rows and all(row.get("state") and row.get("recorded") for row in rows)
            return rows if is_over else None

        return wait_until(over)

    def spoken(self, agent: Agent) -> list[dict[str, Any]]:
        """Those of the conversation: agents ask side questions, too."""
        return [row for row in self.of(agent) if row.get("stream")]

    def conversation(self, agent: Agent) -> str:
        """What its conversation is called: by the client, or by its history where the client names none."""
        found = self.get("conversations")["conversations"]
        (session,) = {each["session"] for each in found if each["client"] == agent.name}
        return str(session)

    def get(self, path: str) -> Any:
        return json.loads(self.raw(path))

    def raw(self, path: str) -> bytes:
        headers = {"authorization": f"Bearer {ADMIN}"}
        request = urllib.request.Request(f"{self.url}/inspector/api/{path}", headers=headers)
        with urllib.request.urlopen(request) as answer:
            body: bytes = answer.read()
        return body

    def close(self) -> None:
        if self.upstream.gate is not None:
            self.upstream.gate.set()
        self._one.shutdown()

    def _run(self, agent: Agent) -> Outcome:
        client = next(each for each in CLIENTS if each.name == agent.by)
        with Seat(self.url, key_of(agent), self._folder / agent.name, agent.answered_in, FILES) as seat:
            return seat.run(client.launch(seat), finals=client.finals, timeout=MAX_SECONDS)


def key_of(agent: Agent) -> str:
    return f"client-key-of-{agent.name}-0123456789"


@contextmanager
def real_traffic() -> Iterator[Traffic]:
    keys = "\n".join(
        f'{agent.name} = "sha256:{hashlib.sha256(key_of(agent).encode()).hexdigest()}"' for agent in AGENTS
    )
    with tempfile.TemporaryDirectory(prefix="wireglot-traffic-") as folder, Upstream() as upstream:
        toml = _CONFIGURATION.format(admin=ADMIN, url=upstream.url, keys=keys)
        with LiveGateway(toml) as gateway:
            traffic = Traffic(upstream, gateway, Path(folder))
            try:
                yield traffic
            finally:
                traffic.close()


@contextmanager
def held(traffic: Traffic) -> Iterator[None]:
    """Streams that begin meanwhile go on only afterwards."""
    traffic.upstream.gate = gate = threading.Event()
    try:
        yield
    finally:
        traffic.upstream.gate = None
        gate.set()
