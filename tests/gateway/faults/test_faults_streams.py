"""FAULTS 2: keep-alives while the upstream is silent, and failures when nothing but keep-alives went out."""

from __future__ import annotations

import re
import threading
from typing import Any

import msgspec
import pytest

from tests.gateway.faults.faults_kit import (
    CLIENTS,
    ONCE,
    UPSTREAMS,
    Answered,
    Client,
    ask,
    every_dialect,
    is_complete,
    logged,
    model_at,
    reported_in_stream,
    start,
    without_estimate,
)
from tests.gateway.faults.faults_stages import EVERY, Stage, stage_behind
from tests.waiting import wait_until
from wireglot.testing.scripted_upstream import Behaviour, ScriptedUpstream

PING = 0.02
HASTY = 0.2
"""Much longer than a ping."""

PINGS = {
    "anthropic": rb'event: ping\ndata: \{"type": ?"ping"\}\n\n',
    "anthropic-vertex": rb'event: ping\ndata: \{"type": ?"ping"\}\n\n',
    "openai-chat": rb": ping\n\n",
    "openai-responses": rb": ping\n\n",
    "gemini": rb"\r?\n",
    "gemini-array": rb" ",
    "code-assist": rb"\r?\n",
    "gemini-simple": rb"\r?\n",
}


def _toml(upstream: ScriptedUpstream) -> str:
    chains = "".join(f'"{name}-twice" = ["{model_at(name)}", "{name}-again/m1"]\n' for name in UPSTREAMS)
    return (
        every_dialect(upstream)
        + every_dialect(upstream).replace("-up]", "-again]")
        + every_dialect(upstream, ONCE + f"timeouts = {{ first_byte = {HASTY} }}\n").replace(
            "-up]", "-hasty]"
        )
        + f"[models]\n{chains}[limits]\nping = {PING}\n"
    )


stage = stage_behind(_toml)


def foreign(client: Client) -> str:
    return "openai-chat" if client.dialect != "openai-chat" else "gemini"


def sources(client: Client) -> list[str]:
    """One upstream to translate from, and the client's own dialect."""
    return [foreign(client), *(name for name in UPSTREAMS if name == client.dialect)]


CASES = [(client, source) for client in CLIENTS for source in sources(client)]


def pinged(client: Client, body: bytes) -> bytes:
    """What follows the keep-alives with which a stream begins; there must be one at least."""
    found = re.match(b"(?:%b)+" % PINGS[client.name], body)
    assert found, body[:200]
    return body[found.end() :]


def bridged(stage: Stage, client: Client, model: str, behaviour: Behaviour, text: str = "hi") -> Answered:
    """The answer of an upstream that is silent until a keep-alive has come; within an answer, if `after` says
    so: after a part of it."""
    gateway, upstream = stage
    gate = threading.Event()
    upstream.next(msgspec.structs.replace(behaviour, gate=gate))
    call = start(gateway, client, model, text, stream=True)
    begun, is_silent = b"", behaviour.after is None
    while piece := call.response.read1(65536):  # one chunk, or a part of it
        begun += piece
        is_ping = re.fullmatch(b"(?:%b)+" % PINGS[client.name], piece) is not None
        if is_ping and is_silent:
            gate.set()
            break
        is_silent = is_silent or not is_ping
    assert gate.is_set(), begun
    answered = call.rest()
    return Answered(answered.status, answered.headers, begun + answered.body, answered.whole)


def without_pings(client: Client, answered: Answered) -> Any:
    """What a reader of the dialect makes of it. Ids and times of two answers may differ, lengths do not."""
    if client.is_array:
        return answered.json
    if client.family == "G":
        assert not re.search(rb"^[^d\r\n]", answered.body, re.MULTILINE), "comments would be taken for data"
        return answered.body.split()
    return len(re.sub(PINGS[client.name], b"", without_estimate(answered.body)))


@pytest.mark.sampled(each=6)
@pytest.mark.parametrize(("client", "source"), CASES, ids=lambda case: getattr(case, "name", case))
def test_a_silent_upstream_is_bridged_by_keep_alives(stage: Stage, client: Client, source: str) -> None:
    """FAULTS 2, 65: the status goes out with the first of them."""
    quick = ask(stage[0], client, model_at(source), stream=True)
    slow = bridged(stage, client, model_at(source), Behaviour())
    assert slow.status == 200
    assert is_complete(client, slow)
    pinged(client, slow.body)
    assert without_pings(client, slow) == without_pings(client, quick)


@pytest.mark.parametrize(("client", "source"), CASES, ids=lambda case: getattr(case, "name", case))
def test_an_error_after_keep_alives_is_no_first_byte_of_an_answer(
    stage: Stage, client: Client, source: str
) -> None:
    gateway, upstream = stage
    upstream.next(Behaviour(fault="stall"))
    failed = ask(gateway, client, f"{source}-hasty/m1", stream=True)
    pinged(client, failed.body)
    answered = ask(gateway, client, model_at(source), stream=True)
    ids = [each.headers["x-wireglot-request-id"] for each in (failed, answered)]
    wait_until(lambda: len([line for line in gateway.log() if line["id"] in ids]) == 2)
    lines = {line["id"]: line for line in gateway.log()}
    assert [lines[id]["outcome"] for id in ids] == ["error", "ok"]
    assert ["first_byte_ms" in lines[id] for id in ids] == [False, True]


@pytest.mark.sampled(each=6)
@pytest.mark.parametrize(("client", "source"), CASES, ids=lambda case: getattr(case, "name", case))
def test_a_pause_within_an_answer_is_bridged_too(stage: Stage, client: Client, source: str) -> None:
    """FAULTS 2: and a reader of the dialect gets the same answer."""
    said = "[[demo:text 2]]"
    quick = ask(stage[0], client, model_at(source), said, stream=True)
    slow = bridged(stage, client, model_at(source), Behaviour(after=2), said)
    assert is_complete(client, slow)
    assert without_pings(client, slow) == without_pings(client, quick)


@pytest.mark.sampled(each=6)
@pytest.mark.parametrize(("client", "source"), CASES, ids=lambda case: getattr(case, "name", case))
def test_after_keep_alives_a_failure_is_reported_in_the_stream(
    stage: Stage, client: Client, source: str
) -> None:
    """FAULTS 2, 65: exactly one error, and a whole HTTP answer around it."""
    gateway, upstream = stage
    expected = {"A": "timeout_error", "C": "server_error", "R": "server_error", "G": "DEADLINE_EXCEEDED"}

    def bridged_first() -> Answered | None:
        upstream.next(Behaviour(fault="stall"))
        answered = ask(gateway, client, f"{source}-hasty/m1", stream=True)
        # Of two clocks that both are late the loop may see the failure first: that is reported by a status.
        return answered if answered.status == 200 else None

    answered = wait_until(bridged_first)
    pinged(client, answered.body)
    said = reported_in_stream(client, answered)
    assert said.type == expected[client.family]
    assert logged(gateway, answered)["outcome"] == "error"


@pytest.mark.sampled("client.name", each=2)
@EVERY
@pytest.mark.parametrize(
    ("error", "types"),
    [
        (
            400,
            ("invalid_request_error", "invalid_request_error", "invalid_request_error", "INVALID_ARGUMENT"),
        ),
        (429, ("rate_limit_error", "rate_limit_error", "rate_limit_error", "RESOURCE_EXHAUSTED")),
        (503, ("overloaded_error", "server_error", "server_error", "UNAVAILABLE")),
        (529, ("overloaded_error", "server_error", "server_error", "UNAVAILABLE")),
    ],
)
def test_a_status_that_comes_too_late_keeps_its_type_in_the_stream(
    stage: Stage, error: int, types: tuple[str, ...], client: Client
) -> None:
    """FAULTS 2: class to in-stream type."""
    model = f"{foreign(client)}-up/m{error}{client.name}"
    answered = bridged(stage, client, model, Behaviour(error=error))
    assert reported_in_stream(client, answered).type == types["ACRG".index(client.family)]


@pytest.mark.sampled(each=6)
@pytest.mark.parametrize(("client", "source"), CASES, ids=lambda case: getattr(case, "name", case))
def test_after_keep_alives_another_provider_may_still_answer(
    stage: Stage, client: Client, source: str
) -> None:
    """FAULTS 2"""
    answered = bridged(stage, client, f"{source}-twice", Behaviour(error=500))
    assert is_complete(client, answered)
    pinged(client, answered.body)
    line = logged(stage[0], answered)
    assert line["route"] == f"{source}-again/m1"
    assert line["outcome"] == "ok"


@pytest.mark.parametrize(("client", "source"), CASES, ids=lambda case: getattr(case, "name", case))
def test_after_the_first_byte_of_an_answer_no_other_provider_is_asked(
    stage: Stage, client: Client, source: str
) -> None:
    """FAULTS 2"""
    gateway, upstream = stage
    upstream.reset()
    upstream.next(Behaviour(fault="close-midstream"))
    reported_in_stream(client, ask(gateway, client, f"{source}-twice", "[[demo:text 20]]", stream=True))
    assert len(upstream.requests) == 1
