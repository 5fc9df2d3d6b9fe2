"""Gateways before a misbehaving upstream, as several files of fault tests set them up, and what they ask there."""

from __future__ import annotations

import hashlib
import re
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import pytest

from tests.gateway.faults.faults_kit import (
    BY_NAME,
    CLIENTS,
    UPSTREAMS,
    Answered,
    Client,
    ask,
    every_dialect,
    model_at,
    post,
    provider,
)
from wireglot.gateway.relay import after
from wireglot.testing.live_gateway import LiveGateway
from wireglot.testing.scripted_upstream import Recorded, ScriptedUpstream
from wireglot_core.wire.json import encode

Stage = tuple[LiveGateway, ScriptedUpstream]
A, C, R, G = (BY_NAME[name] for name in ("anthropic", "openai-chat", "openai-responses", "gemini"))

PAIRS: Final = [(client, upstream) for client in CLIENTS for upstream in UPSTREAMS]
SOME_PAIRS: Final = [
    (client, source)
    for client, source in PAIRS
    if client.dialect == source
    or client.name == "anthropic"
    or source == ("openai-chat" if client.dialect != "openai-chat" else "gemini")
]
"""Every client with its own dialect and one other, every upstream: enough where the two do not meet."""
OWN_AND_CHAT: Final = [
    (client, source) for client in CLIENTS for source in dict.fromkeys(["openai-chat", client.dialect])
    if source in UPSTREAMS
]  # fmt: skip
"""Every client before an upstream of its own dialect, where there is one, and before Chat Completions."""


def pair_name(value: Any) -> str:
    return value.name if isinstance(value, Client) else str(value)


EVERY: Final = pytest.mark.parametrize("client", CLIENTS, ids=pair_name)
PAIRED: Final = pytest.mark.parametrize(("client", "source"), SOME_PAIRS, ids=pair_name)


@contextmanager
def behind(toml: Callable[[ScriptedUpstream], str]) -> Iterator[Stage]:
    with ScriptedUpstream() as upstream, LiveGateway(toml(upstream)) as gateway:
        yield gateway, upstream


def stage_behind(toml: Callable[[ScriptedUpstream], str]) -> Any:
    """A fixture: one gateway for all tests of a file."""

    @pytest.fixture(scope="module")
    def stage() -> Iterator[Stage]:
        with behind(toml) as both:
            yield both

    return stage


@pytest.fixture
def brief_rests(monkeypatch: pytest.MonkeyPatch) -> None:
    """A key that a provider limits without saying for how long rests a moment and not a second."""
    monkeypatch.setattr(after, "_RATE_UNADVISED_SECONDS", 0.01)


# A gateway with a key, for clients that may be refused.

SECRET: Final = "a-client-key-of-the-tests"
BEARER: Final = {"authorization": f"Bearer {SECRET}"}


def digest_of(secret: str) -> str:
    """A client's key as a configuration holds it."""
    return f"sha256:{hashlib.sha256(secret.encode()).hexdigest()}"


def guarded(upstream: ScriptedUpstream) -> str:
    key = f'[keys]\nteam = {{ hash = "{digest_of(SECRET)}", models = ["*-up/m1"] }}\n'
    return every_dialect(upstream) + key


def send(stage: Stage, client: Client, body: bytes, source: str = "openai-chat") -> Answered:
    return post(stage[0].port, client.path(model_at(source), False), body, BEARER)


def asked(stage: Stage, client: Client, source: str, text: str = "hi", **more: Any) -> Answered:
    return ask(stage[0], client, model_at(source), text, headers=BEARER, **more)


# One provider, and what is remembered about it.

SOON: Final = "retry = { retries = 2, base = 0.001, cap = 0.002 }\n"
NEVER_OPEN: Final = "breaker = { consecutive = 1000000, minimum = 1000000 }\n"
KEYS: Final = 'api_keys = ["first-key-0001", "second-key-0002", "third-key-0003"]\n'


@contextmanager
def one(lines: str, more: str = "", dialect: str = "openai-chat") -> Iterator[Stage]:
    """A gateway of its own: what is remembered about a provider must not reach another test."""
    with behind(lambda upstream: provider("mine", upstream, dialect, lines) + more) as both:
        yield both


def keys_of(requests: list[Recorded]) -> list[str]:
    return [request.headers["authorization"].removeprefix("Bearer ") for request in requests]


# Odd upstreams.


def closed_port() -> int:
    """Nobody listens there: it was free a moment ago, and the system gives it to others last."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        return int(held.getsockname()[1])


def recorded(upstream: ScriptedUpstream, dialect: str, text: str = "hi", **more: Any) -> bytes:
    """The stream with which an upstream of a dialect answers, to be sent again in another shape."""
    client = BY_NAME.get(dialect) or Client(dialect, dialect, "G")
    body = encode({**client.body("m1", text, True), **more})
    answered = post(upstream.port, client.path("m1", True), body)
    assert answered.status == 200
    upstream.requests.pop()
    return answered.body


def repeated(upstream: ScriptedUpstream) -> bytes:
    """The same for the last request that the gateway sent."""
    last = upstream.requests[-1]
    answered = post(upstream.port, f"{last.path}?{last.query}", last.body)
    assert answered.status == 200
    upstream.requests.pop()
    return answered.body


def frames(body: bytes) -> list[bytes]:
    """The frames of a stream of server-sent events, each with its end."""
    return re.findall(rb".+?\r?\n\r?\n", body, re.DOTALL)
