"""Over real HTTP: the default transport, its connections, and the blocking twins."""

import asyncio
import contextvars
import gc
import os
import subprocess
import sys
import threading
import warnings
from pathlib import Path
from typing import Any

import pytest

from tests.kimi.kit import TOOL, Lines, Sleeps, asynchronous, chunk, sse
from tests.waiting import DEADLINE_SECONDS
from wireglot import kimi
from wireglot.testing.scripted_upstream import Behaviour, ScriptedUpstream
from wireglot_core.ir.stream import Finish, fold

ROOT = Path(__file__).parents[2]
KEY = "sk-over-the-wire-0123"


@pytest.fixture
def upstream():
    with ScriptedUpstream() as server:
        yield server


def options(upstream, **more):
    return {"api_key": KEY, "base_url": f"{upstream.url}/v1", "log": Lines(), "sleep": Sleeps(), **more}


@asynchronous
async def scenario_of_tools(upstream):
    first = await kimi.complete_with_tools("The weather in Rome?", [TOOL], **options(upstream))
    assert first.stop_reason == "tool_use"
    results = [
        {"type": "tool_result", "tool_use_id": block["id"], "content": "Sunny, 24 degrees."}
        for block in first.blocks
        if block["type"] == "tool_use"
    ]
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": "The weather in Rome?"},
        {"role": "assistant", "content": first.blocks},
        {"role": "user", "content": results},
    ]
    second = await kimi.complete_with_tools(None, [TOOL], messages=messages, **options(upstream))
    assert "Sunny, 24 degrees." in second.content


def test_a_tool_loop_works_over_http(upstream):
    """R-O-11, R-O-12, R-P-17: production defaults are real."""
    scenario_of_tools(upstream)
    request = upstream.requests[0]
    assert (request.method, request.path) == ("POST", "/v1/chat/completions")
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert upstream.requests[1].json["messages"][1]["reasoning_content"] == ""


def test_the_contracts_waits_are_really_waited(upstream):
    """R-P-14: the default clock is asyncio's."""
    upstream.next(Behaviour(error=500))
    result = kimi.complete_sync("Hi", **options(upstream, sleep=None))
    assert result.text
    assert len(upstream.requests) == 2


@pytest.mark.parametrize("fault", ["close", "reset", "garbage", "short-body"])
def test_a_broken_connection_is_a_network_error_and_not_tried_again(upstream, fault):
    """R-P-08, R-R-15."""
    upstream.next(Behaviour(fault=fault))
    with pytest.raises(kimi.KimiApiError) as caught:
        kimi.complete_sync("Hi", **options(upstream))
    assert (caught.value.status, caught.value.kind) == (None, "network")
    assert len(upstream.requests) == 1


def test_the_modern_preset_gets_over_a_broken_connection(upstream):
    upstream.next(Behaviour(fault="reset"))
    assert kimi.complete_sync("Hi", **options(upstream, retry="modern")).text
    assert len(upstream.requests) == 2


def test_nobody_there_is_a_network_error():
    with pytest.raises(kimi.KimiApiError, match="could not connect"):
        kimi.complete_sync("Hi", api_key=KEY, base_url="http://127.0.0.1:1/v1", log=Lines())


@pytest.mark.parametrize(
    "fault", ["no-terminal", "half-event", "bad-json", "reset-midstream", "error-midstream"]
)
def test_a_stream_that_fails_over_http_raises(upstream, fault):
    upstream.next(Behaviour(fault=fault))
    with pytest.raises(kimi.KimiApiError, match="broke off"):
        list(kimi.stream_sync("[[demo:text 50]]", **options(upstream)))


@pytest.mark.parametrize("fault", ["", "byte-chunks", "unframed", "gzip", "wrong-type", "json-for-stream"])
def test_a_stream_in_odd_framing_is_understood(upstream, fault):
    upstream.next(Behaviour(fault=fault))
    events = list(kimi.stream_sync("[[demo:echo]] good morning", **options(upstream)))
    assert fold(events).content[0].text == "good morning"  # type: ignore[union-attr]  # a text is what was asked for


def test_a_call_closes_its_connection(upstream):
    kimi.complete_sync("Hi", **options(upstream))
    upstream.wait_closed()


@asynchronous
async def shared_connections(upstream):
    async with kimi.connections() as transport:
        for _ in range(3):
            await kimi.complete("Hi", **options(upstream, transport=transport))


def test_calls_can_share_a_connection(upstream):
    """R-O-06: a transport of the gateway's is taken as well as a function."""
    shared_connections(upstream)
    assert {request.connection for request in upstream.requests} == {1}
    upstream.wait_closed()


@asynchronous
async def leave_a_stream(upstream):
    events = kimi.stream("[[demo:text 200]]", **options(upstream))
    async for _ in events:
        break
    await events.aclose()


def test_leaving_a_stream_ends_the_connection(upstream):
    upstream.next(Behaviour(gap=0.01))
    leave_a_stream(upstream)
    upstream.wait_closed()
    assert upstream.requests[0].abandoned.wait(DEADLINE_SECONDS)


@asynchronous
async def read_slowly(upstream, piece):
    total = 0
    async for event in kimi.stream("Hi", **options(upstream)):
        total += len(getattr(event, "text", ""))
        await asyncio.sleep(0)
    assert total == 64 * len(piece)


def test_a_slow_reader_gets_everything(upstream):
    piece = "x" * 20_000
    pieces = sse(*[chunk({"content": piece})] * 64, chunk({}, "stop"))
    upstream.next(Behaviour(pieces=tuple(pieces)))
    read_slowly(upstream, piece)


# Blocking


@asynchronous
async def blocking_inside_a_loop(upstream):
    assert kimi.complete_sync("Hi", **options(upstream)).text
    assert kimi.complete_with_tools_sync("Weather?", [TOOL], **options(upstream)).stop_reason == "tool_use"
    assert isinstance(list(kimi.stream_sync("Hi", **options(upstream)))[-1], Finish)
    events = kimi.stream_with_tools_sync("Hi", [TOOL], **options(upstream))
    next(events)
    events.close()
    with pytest.raises(kimi.KimiApiError):
        kimi.complete_sync("[[demo:fail 400]]", **options(upstream))


def test_the_blocking_twins_work_inside_a_running_loop(upstream):
    blocking_inside_a_loop(upstream)
    upstream.wait_closed()
    assert not [thread for thread in threading.enumerate() if thread.name == "kimi"]


def test_the_blocking_twins_work_without_a_loop_and_leave_nothing_behind(upstream):
    gc.collect()  # what other tests left behind is not held against this one
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert kimi.complete_sync("Hi", **options(upstream)).text
        events = kimi.stream_sync("[[demo:text 100]]", **options(upstream))
        next(events)
        del events
        gc.collect()
    upstream.wait_closed()


def test_a_blocking_stream_that_is_not_begun_sends_nothing(upstream):
    kimi.stream_sync("Hi", **options(upstream))
    assert upstream.requests == []


def test_a_blocking_stream_may_move_into_a_loop_and_out_again(upstream):
    events = kimi.stream_sync("[[demo:text 20]]", **options(upstream))
    seen = [next(events)]

    async def inside():
        seen.append(next(events))

    asyncio.run(inside())
    seen += events
    assert fold(seen).stop.reason == "end"


def test_context_variables_reach_the_callers_transport_from_inside_a_loop():
    name: contextvars.ContextVar[str] = contextvars.ContextVar("name", default="nobody")
    met = []

    async def transport(method, url, headers, body):
        met.append(name.get())
        return 200, {}, b'{"choices":[{"message":{"content":"x"}}]}'

    async def inside():
        name.set("somebody")
        kimi.complete_sync("Hi", api_key=KEY, transport=transport, log=Lines())

    asyncio.run(inside())
    assert met == ["somebody"]


_INTERRUPTED = """
import asyncio, os, signal, sys
from wireglot import kimi

signal.signal(signal.SIGINT, signal.default_int_handler)  # who runs in the background inherits that it is ignored

async def transport(method, url, headers, body):
    os.kill(os.getpid(), signal.SIGINT)
    try:
        await asyncio.Event().wait()
    finally:
        print("stopped")

def call():
    try:
        kimi.complete_sync("Hi", api_key="k", transport=transport)
    except KeyboardInterrupt:
        print("interrupted")

async def inside():
    call()

if sys.argv[1] == "inside":
    asyncio.new_event_loop().run_until_complete(inside())
else:
    call()
"""


@pytest.mark.parametrize("where", ["inside", "outside"])
def test_an_interrupt_ends_a_blocking_call_and_its_request(where):
    script = [sys.executable, "-c", _INTERRUPTED, where]
    reported = subprocess.run(script, capture_output=True, text=True, timeout=60)
    assert reported.stdout.split() == ["stopped", "interrupted"], reported.stderr


# The example


def run_example(*arguments, **environment):
    bare = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
    return subprocess.run(
        [sys.executable, "examples/kimi_tools.py", *arguments],
        cwd=ROOT,
        env={**bare, **environment},
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_the_example_runs_as_shown():
    reported = run_example("--demo")
    assert reported.returncode == 0, reported.stderr
    assert "In Rome it is sunny, 24 degrees." in reported.stdout
    assert reported.stderr.count("[kimi] model=kimi-k3") == 2
    assert "[kimi]" not in reported.stdout


def test_the_example_asks_the_server_that_it_is_given(upstream):
    reported = run_example(
        "Weather in Oslo?", MOONSHOT_API_KEY=KEY, COLIBRI_KIMI_BASE_URL=f"{upstream.url}/v1"
    )
    assert reported.returncode == 0, reported.stderr
    assert "it is sunny" in reported.stdout
    assert upstream.requests[0].headers["authorization"] == f"Bearer {KEY}"


def test_the_example_without_a_key_says_so():
    reported = run_example()
    assert reported.returncode == 1
    assert reported.stderr.startswith("KIMI_CONFIG_ERROR: no API key for Kimi")
