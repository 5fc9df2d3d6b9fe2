"""A gateway that stores, the upstream behind it, and OpenAI's SDK before it."""

from __future__ import annotations

import hashlib
import http.client
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

import openai
import pytest

from tests.waiting import DEADLINE_SECONDS
from wireglot.stores.records import Document
from wireglot.testing.live_gateway import BASES, LiveGateway
from wireglot.testing.scripted_upstream import ScriptedUpstream
from wireglot_core.wire.json import decode, encode

UPSTREAMS = ("gemini", "openai-chat", "anthropic", "openai-responses")
ALICE, BOB = "alice-key-0123456789abcdef", "bob-key-0123456789abcdef"
TOOLS: list[Any] = [
    {
        "type": "function",
        "name": "get_weather",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}},
            "required": ["city"],
            "additionalProperties": False,
        },
        "strict": True,
    }
]


class Stage:
    """Two callers know each other's ids, and nothing else. With a `folder` what is stored outlives the stage."""

    def __init__(self, dialect: str, more: str = "", folder: Path | None = None, routes: str = "") -> None:
        """`routes`: further lines of the table of models."""
        self.dialect = dialect
        self.upstream = ScriptedUpstream()
        self._more = more
        self._routes = routes
        self._folder = folder
        self.gateway: LiveGateway

    def __enter__(self) -> Stage:
        self.upstream.start()
        self.open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
        self.upstream.stop()

    def open(self) -> None:
        keys = "".join(
            f'{name} = "sha256:{hashlib.sha256(key.encode()).hexdigest()}"\n'
            for name, key in (("alice", ALICE), ("bob", BOB))
        )
        toml = (
            f'[providers.mine]\ndialect = "{self.dialect}"\n'
            f'base_url = "{self.upstream.url}{BASES[self.dialect]}"\n'
            'api_key = "upstream-key-0123456789"\nretry = {retries = 0}\n'
            f'[models]\n{self._routes}"*" = "mine/*"\n[keys]\n{keys}{self._more}'
        )
        self.gateway = LiveGateway(toml, folder=self._folder).__enter__()
        # Loosely typed: tests make requests of dicts, which the SDK's overloads know nothing of.
        self.alice: Any = self._sdk(ALICE)
        self.bob: Any = self._sdk(BOB)

    def close(self) -> None:
        self.alice.close()
        self.bob.close()
        self.gateway.__exit__(None, None, None)

    def restart(self) -> None:
        self.close()
        self.open()

    def _sdk(self, key: str) -> openai.OpenAI:
        return openai.OpenAI(
            base_url=f"{self.gateway.url}/v1",
            api_key=key,
            max_retries=0,
            http_client=openai.DefaultHttpxClient(verify=False),
        )

    def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        headers: Mapping[str, str] = {},
        key: str = ALICE,
    ) -> tuple[int, Any]:
        """One request without an SDK; the status and the document."""
        connection = http.client.HTTPConnection("127.0.0.1", self.gateway.port, timeout=DEADLINE_SECONDS)
        try:
            sent = encode(body) if body is not None else None
            lines = {"authorization": f"Bearer {key}", **headers}
            if sent is not None:
                lines["content-type"] = "application/json"
            connection.request(method, path, sent, lines)
            answer = connection.getresponse()
            return answer.status, decode(answer.read())
        finally:
            connection.close()

    def sent(self) -> Any:
        """The last body that reached the upstream."""
        return self.upstream.requests[-1].json

    def sent_text(self) -> str:
        return self.upstream.requests[-1].body.decode()

    def stored(self, kind: str, caller: str = "alice") -> list[Document]:
        """What lies in the store, as it lies there."""
        documents = self.gateway.process.state.engine.documents
        found: list[Document] = self.gateway.call(documents.recent(caller, kind, limit=1000))
        return found


def texts(items: Any) -> list[str]:
    """What the messages among items say."""
    return [
        part["text"]
        for item in items
        if item["type"] == "message"
        for part in item["content"]
        if "text" in part
    ]


def stage_fixtures() -> tuple[Any, Any]:
    """The fixtures `running`, one for each kind of upstream, and `stage`, which has not been asked anything."""

    @pytest.fixture(scope="module", params=UPSTREAMS)
    def running(request: pytest.FixtureRequest) -> Iterator[Stage]:
        with Stage(request.param) as stage:
            yield stage

    @pytest.fixture
    def stage(running: Stage) -> Stage:
        running.upstream.reset()
        return running

    return running, stage
