"""FAULTS 3e: streams that break after their answer has begun, passed through and translated."""

from __future__ import annotations

import re

import pytest

from tests.gateway.faults.faults_kit import (
    BY_NAME,
    CLIENTS,
    ONCE,
    UPSTREAMS,
    UPSTREAMS_ALONE,
    Answered,
    Client,
    Reported,
    ask,
    every_dialect,
    invented_end,
    is_complete,
    logged,
    model_at,
    post,
    provider,
    reported,
    reported_in_stream,
)
from tests.gateway.faults.faults_stages import (
    PAIRED,
    PAIRS,
    Stage,
    behind,
    frames,
    pair_name,
    recorded,
    stage_behind,
)
from tests.waiting import DEADLINE_SECONDS, wait_until
from wireglot.testing.scripted_upstream import Behaviour, Fault, ScriptedUpstream
from wireglot_core.wire.json import decode, encode

LONG = "[[demo:text 24]]"
EVENT = 100_000

BROKEN = {
    "A": ("api_error", None),
    "C": ("server_error", "upstream_error"),
    "R": ("server_error", "upstream_error"),
    "G": ("UNAVAILABLE", 503),
}
LATE = {
    "A": ("timeout_error", None),
    "C": ("server_error", "upstream_timeout"),
    "R": ("server_error", "upstream_timeout"),
    "G": ("DEADLINE_EXCEEDED", 504),
}
OVERLOADED = {
    "A": ("overloaded_error", None),
    "C": ("server_error", "server_is_overloaded"),
    "R": ("server_error", "server_is_overloaded"),
    "G": ("UNAVAILABLE", 503),
}


def _toml(upstream: ScriptedUpstream) -> str:
    return (
        every_dialect(upstream)
        + every_dialect(upstream, ONCE + "timeouts = { idle = 0.4 }\n").replace("-up]", "-idle]")
        + every_dialect(upstream, ONCE + "timeouts = { total = 0.6 }\n").replace("-up]", "-total]")
        + f"[limits]\nevent = {EVENT}\n"
    )


stage = stage_behind(_toml)


def kind_of(said: Reported) -> tuple[str, object]:
    return said.type, said.code


BREAKS: tuple[Fault, ...] = ("close-midstream", "reset-midstream", "no-terminal", "half-event")


@pytest.mark.sampled("client.name", "source", each=2)
@pytest.mark.parametrize(("client", "source"), PAIRS, ids=pair_name)
@pytest.mark.parametrize("fault", BREAKS)
def test_a_stream_that_breaks_ends_in_one_error_and_never_in_a_made_up_end(
    stage: Stage, fault: Fault, client: Client, source: str
) -> None:
    """FAULTS 68, 69, 70, 2"""
    gateway, upstream = stage
    upstream.next(Behaviour(fault=fault))
    answered = ask(gateway, client, model_at(source), LONG, stream=True)
    assert kind_of(reported_in_stream(client, answered)) == BROKEN[client.family]
    line = logged(gateway, answered)
    assert line["outcome"] == "error"
    assert line["status"] == 200


@pytest.mark.sampled(each=3)
@pytest.mark.parametrize("source", UPSTREAMS)
def test_wherever_a_stream_is_cut_half_an_event_is_never_sent(stage: Stage, source: str) -> None:
    """FAULTS 70: inside a letter of several bytes, an escape, a pair of them, a field's name, a line end."""
    gateway, upstream = stage
    whole = recorded(upstream, source, "[[demo:echo]] ü€😀 next")
    escaped = whole.replace("😀".encode(), b"\\ud83d\\ude00")
    cuts = [(escaped, escaped.index(b"\\ud83d") + n) for n in (1, 3, 6, 8)]
    cuts += [(whole, whole.index("€".encode()) + n) for n in (1, 2)]
    cuts += [(whole, n) for n in range(5, len(whole), max(1, len(whole) // 12))]
    for client in CLIENTS:
        clean = ask(gateway, client, model_at(source), "[[demo:echo]] ü€😀 next", stream=True)
        assert is_complete(client, clean)
        for body, cut in cuts:
            upstream.next(Behaviour(pieces=(body[:cut],)))
            answered = ask(gateway, client, model_at(source), stream=True)
            if answered.status != 200:
                assert answered.status == 502, "nothing of the answer had come"
                reported(client, answered)
            elif not is_complete(client, answered):
                assert kind_of(reported_in_stream(client, answered)) == BROKEN[client.family]
                answered.body.decode()  # no half of a letter either
            else:  # only the line end after the last word, or an epilogue, is missing
                assert invented_end(BY_NAME[source], body[:cut])


DAMAGES: dict[str, tuple[bytes, bytes]] = {
    "no JSON": (rb"(?s)data: .*?(\r?\n\r?\n)", rb"data: oops\1"),
    "not UTF-8": (rb"word", b"wo\xffrd"),
    "half a letter": (rb"word", b"wo\xc3rd"),
    "a blank line in a word": (rb"word", b"wo\n\nrd"),
    "a line end in a word": (rb"word", b"wo\nrd"),
    "another line end in a word": (rb"word", b"wo\rrd"),
    "a control character": (rb"word", b"wo\x01rd"),
    "no escape": (rb"word", rb"wo\\qrd"),
    "an unquoted value": (rb"(?<=[0-9])(?=[,}])", b"oops"),
}
WORDS = "[[demo:echo]] " + " ".join(["word"] * 24)


@pytest.mark.sampled("damage", each=5)
@pytest.mark.parametrize("at_once", [False, True], ids=["one by one", "at once"])
@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize(
    "client",
    [BY_NAME[source] for source in UPSTREAMS if source not in UPSTREAMS_ALONE],
    ids=lambda client: client.name,
)
def test_an_event_that_is_no_json_ends_a_stream_that_passes_through(
    stage: Stage, client: Client, damage: str, at_once: bool
) -> None:
    """FAULTS 75: whether or not it looks like those before it."""
    _ends_at(damage, stage, client, client.dialect, at_once)


@pytest.mark.sampled("client.name", "source")
@pytest.mark.parametrize(("client", "source"), PAIRS, ids=pair_name)
@pytest.mark.parametrize("at_once", [False, True], ids=["one by one", "at once"])
@pytest.mark.parametrize("damage", DAMAGES)
def test_an_event_that_is_no_json_ends_a_translated_stream(
    stage: Stage, damage: str, at_once: bool, client: Client, source: str
) -> None:
    """FAULTS 75"""
    _ends_at(damage, stage, client, source, at_once)


def _ends_at(damage: str, stage: Stage, client: Client, source: str, at_once: bool) -> None:
    gateway, upstream = stage
    each = frames(recorded(upstream, source, WORDS))
    middle = len(each) // 2
    hurt, number = re.subn(*DAMAGES[damage], each[middle], count=1)
    assert number, each[middle]
    pieces = (*each[:middle], hurt, *each[middle + 1 :])
    upstream.next(Behaviour(pieces=(b"".join(pieces),) if at_once else pieces))
    answered = ask(gateway, client, model_at(source), WORDS, stream=True)
    assert kind_of(reported_in_stream(client, answered)) == BROKEN[client.family]
    said = answered.body.decode()
    assert "oops" not in said
    assert "word" in said, "what came before it went out"
    assert logged(gateway, answered)["outcome"] == "error"


def test_an_element_of_an_array_that_is_no_json_ends_it(stage: Stage) -> None:
    """FAULTS 75"""
    gateway, upstream = stage
    element = b'{"candidates":[{"content":{"parts":[{"text":"%b"}],"role":"model"},"index":0}]}'
    body = b"[" + b",\n".join(element % word for word in (b"first ", b"next ", b"wo\xffrd", b"last")) + b"]"
    for pieces in ((body,), (body[:100], body[100:])):
        upstream.next(Behaviour(pieces=pieces, headers=(("content-type", "application/json"),)))
        path = f"/v1beta/models/{model_at('gemini')}:streamGenerateContent"
        answered = post(gateway.port, path, encode(BY_NAME["gemini"].body(model_at("gemini"), "hi", True)))
        *before, error = decode(answered.body)  # the array is whole, and ends with it
        assert [each["candidates"][0]["content"]["parts"][0]["text"] for each in before] == [
            "first ",
            "next ",
        ]
        assert error["error"]["status"] == "UNAVAILABLE"


@pytest.mark.sampled("client.name", each=3)
@pytest.mark.parametrize(("client", "source"), PAIRS, ids=pair_name)
def test_an_error_event_keeps_its_meaning(stage: Stage, client: Client, source: str) -> None:
    """FAULTS 76"""
    gateway, upstream = stage
    upstream.next(Behaviour(fault="error-midstream"))
    answered = ask(gateway, client, model_at(source), LONG, stream=True)
    own = client.dialect == source  # passes through as it is, and has the upstream's request id or none
    assert kind_of(reported_in_stream(client, answered, own=own)) == OVERLOADED[client.family]
    line = logged(gateway, answered)
    assert line["outcome"] == "error"
    assert line["error"]["kind"] == "overloaded"


@pytest.mark.sampled(each=9)
@PAIRED
def test_an_error_as_first_event_is_a_true_status(stage: Stage, client: Client, source: str) -> None:
    """FAULTS 62"""
    gateway, upstream = stage
    upstream.next(Behaviour(fault="error-first"))
    answered = ask(gateway, client, model_at(source), LONG, stream=True)
    assert answered.status == (529 if client.family == "A" else 503)
    said = reported(client, answered)
    assert kind_of(said) == OVERLOADED[client.family]


@pytest.mark.sampled("client.name", "source")
@PAIRED
@pytest.mark.parametrize("limit", ["idle", "total"])
def test_a_stream_that_stops_or_lasts_too_long_ends_in_a_timeout(
    stage: Stage, limit: str, client: Client, source: str
) -> None:
    """FAULTS 77, 78"""
    gateway, upstream = stage

    def begun() -> Answered | None:
        upstream.reset()
        upstream.next(Behaviour(fault="stall-midstream"))
        answered = ask(gateway, client, f"{source}-{limit}/m1", LONG, stream=True)
        # On a busy machine all its time may be over before the stream begins: that is reported by a status.
        return answered if answered.status == 200 else None

    assert kind_of(reported_in_stream(client, wait_until(begun))) == LATE[client.family]
    assert upstream.requests[0].abandoned.wait(DEADLINE_SECONDS), "the upstream's connection stayed open"


@pytest.mark.parametrize("client", [CLIENTS[0], CLIENTS[1]], ids=lambda client: client.name)
def test_keep_alives_of_the_upstream_are_no_progress(stage: Stage, client: Client) -> None:
    """FAULTS 77"""
    gateway, upstream = stage
    start, *rest = frames(recorded(upstream, "anthropic", LONG))
    middle = len(rest) // 2
    pings = [b'event: ping\ndata: {"type": "ping"}\n\n'] * 40
    upstream.next(Behaviour(pieces=(start, *rest[:middle], *pings, *rest[middle:]), gap=0.05))
    answered = ask(gateway, client, "anthropic-idle/m1", LONG, stream=True)
    assert kind_of(reported_in_stream(client, answered)) == LATE[client.family]


@pytest.mark.sampled("begun", each=8)
@PAIRED
@pytest.mark.parametrize("begun", [False, True], ids=["at-once", "begun"])
def test_an_event_without_end_is_given_up(stage: Stage, begun: bool, client: Client, source: str) -> None:
    """FAULTS 72"""
    gateway, upstream = stage
    upstream.reset()
    first = frames(recorded(upstream, source, LONG))[:6] if begun else []
    endless = [b"data: " + b"x" * 20_000, *[b"x" * 20_000] * 9]
    if client.is_array and client.dialect == source:  # its framing, or it would be no array at all
        first = (
            [b"[" + b",\n".join(frame.removeprefix(b"data: ").strip() for frame in first)] if begun else []
        )
        endless = [b',{"a": "' if begun else b'[{"a": "', *[b"x" * 20_000] * 10]
    upstream.next(
        Behaviour(pieces=(*first, *endless), fault="stall-midstream", after=len(first) + len(endless))
    )
    answered = ask(gateway, client, model_at(source), LONG, stream=True)
    if begun:
        assert kind_of(reported_in_stream(client, answered)) == BROKEN[client.family]
    else:
        assert answered.status == 502
        said = kind_of(reported(client, answered))
        assert said == (("UNAVAILABLE", 502) if client.family == "G" else BROKEN[client.family])


def test_a_stream_that_was_given_up_is_not_read_on(stage: Stage) -> None:
    """FAULTS 72, 75"""
    gateway, upstream = stage
    upstream.reset()
    pieces = (*frames(recorded(upstream, "openai-chat", LONG))[:6], b"data: {]\n\n", b": more\n\n")
    upstream.next(Behaviour(pieces=pieces, fault="stall-midstream", after=len(pieces)))
    reported_in_stream(CLIENTS[0], ask(gateway, CLIENTS[0], model_at("openai-chat"), LONG, stream=True))
    assert upstream.requests[0].abandoned.wait(DEADLINE_SECONDS)


def test_a_broken_stream_counts_against_its_provider() -> None:
    """FAULTS 68, 60: a provider that only ever breaks off has its circuit breaker opened."""

    def toml(upstream: ScriptedUpstream) -> str:
        return provider("mine", upstream, "anthropic", "breaker = { consecutive = 2, probe_after = 60 }\n")

    with behind(toml) as (gateway, upstream):
        upstream.otherwise = Behaviour(fault="close-midstream")
        for _ in range(2):
            reported_in_stream(CLIENTS[1], ask(gateway, CLIENTS[1], "mine/m1", LONG, stream=True))
        answered = ask(gateway, CLIENTS[1], "mine/m1", LONG, stream=True)
        assert answered.status == 503
        assert len(upstream.requests) == 2
