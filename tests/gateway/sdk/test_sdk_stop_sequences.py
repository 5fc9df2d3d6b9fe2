"""Stop sequences hold before every upstream, whatever it takes of them, for the vendors' SDKs."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec
import pytest
from google.genai import types

from tests.gateway.sdk.sdk_kit import MODEL, UPSTREAMS, Stage, stage_fixtures
from tests.waiting import DEADLINE_SECONDS, wait_until
from wireglot.testing.scripted_upstream import Behaviour
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.registry import dialect
from wireglot_core.ir.content import Text
from wireglot_core.ir.outcome import Stop, Usage
from wireglot_core.ir.stream import Delta, Event, Finish, PartEnd, PartStart, Start

running, stage = stage_fixtures()
STOPS = ["one!", "two!", "three!", "four!", "five!", "STOP"]
"""More than Chat and Gemini take."""
ASKED = "[[demo:echo]] first STOPPED second"
OFF = {"x-wireglot-emulate": "off"}


class Heard(NamedTuple):
    """What a client of any dialect has of an answer."""

    text: str
    reason: str
    output: int
    headers: Any


def claude(stage: Stage, *, stream: bool, text: str = ASKED, headers: Any = None, **more: Any) -> Heard:
    asked: Any = {
        "model": MODEL,
        "max_tokens": 100,
        "messages": [{"role": "user", "content": text}],
        "stop_sequences": STOPS,
        "extra_headers": {"x-wireglot-loss-details": "1", **(headers or {})},
        **more,
    }
    if stream:
        with stage.claude.messages.stream(**asked) as events:
            message, sent = events.get_final_message(), events.response.headers
    else:
        raw = stage.claude.messages.with_raw_response.create(**asked)
        message, sent = raw.parse(), raw.headers
    said = "".join(block.text for block in message.content if block.type == "text")
    assert (message.stop_reason == "stop_sequence") == (message.stop_sequence is not None)
    return Heard(said, message.stop_sequence or str(message.stop_reason), message.usage.output_tokens, sent)


def gpt(stage: Stage, *, stream: bool, text: str = ASKED, headers: Any = None, **more: Any) -> Heard:
    asked: Any = {
        "model": MODEL,
        "max_completion_tokens": 100,
        "messages": [{"role": "user", "content": text}],
        "stop": STOPS,
        "extra_headers": {"x-wireglot-loss-details": "1", **(headers or {})},
        **more,
    }
    if stream:
        with stage.gpt.chat.completions.stream(**asked, stream_options={"include_usage": True}) as events:
            completion: Any = events.get_final_completion()
            sent = events._response.headers
    else:
        raw = stage.gpt.chat.completions.with_raw_response.create(**asked)
        completion, sent = raw.parse(), raw.headers
    (choice,) = completion.choices
    return Heard(choice.message.content or "", choice.finish_reason, completion.usage.completion_tokens, sent)


def genai(stage: Stage, *, stream: bool, text: str = ASKED, headers: Any = None, **more: Any) -> Heard:
    options = types.HttpOptions(headers={"x-wireglot-loss-details": "1", **(headers or {})})
    config = types.GenerateContentConfig(
        **{"max_output_tokens": 100, "stop_sequences": STOPS, "http_options": options, **more}
    )
    asked: Any = {"model": MODEL, "contents": text, "config": config}
    if stream:
        answers = [*stage.gemini.models.generate_content_stream(**asked)]
    else:
        answers = [stage.gemini.models.generate_content(**asked)]
    said = "".join(answer.text or "" for answer in answers)
    last = answers[-1]
    assert last.candidates
    assert last.candidates[0].finish_reason
    assert last.usage_metadata
    assert last.sdk_http_response
    output = last.usage_metadata.candidates_token_count or 0
    return Heard(said, last.candidates[0].finish_reason.value, output, last.sdk_http_response.headers)


Client = Callable[..., Heard]
CLIENTS: dict[str, Client] = {"anthropic": claude, "openai-chat": gpt, "gemini": genai}
ENDED = {"anthropic": "STOP", "openai-chat": "stop", "gemini": "STOP"}
"""How each dialect says that a stop sequence was met."""
PAIRS = [(upstream, client) for upstream in UPSTREAMS for client in CLIENTS]
EITHER = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])


def before(*pairs: tuple[str, str]) -> pytest.MarkDecorator:
    """Parametrizes a test with some pairs of an upstream and a client."""
    return pytest.mark.parametrize(("running", "client"), pairs, indirect=["running"])


def actions(heard: Heard) -> set[str]:
    """What became of the stop sequences, by the header of losses."""
    losses = msgspec.json.decode(heard.headers.get("x-wireglot-loss-details") or "[]")
    return {loss["action"] for loss in losses if loss["feature"] == "stop_sequences"}


# More sequences than its own dialect takes are its vendor's to refuse.
@pytest.mark.sampled("client", "stream", each=2)
@EITHER
@before(*((upstream, client) for upstream, client in PAIRS if client != upstream or client == "anthropic"))
def test_an_answer_ends_before_the_sequence(stage: Stage, client: str, stream: bool) -> None:
    heard = CLIENTS[client](stage, stream=stream)
    assert heard.text == "first "
    takes_all = stage.dialect == "anthropic"
    assert actions(heard) == (set() if takes_all else {"emulated"})
    if not takes_all or client != "anthropic":
        assert heard.reason == ENDED[client]
    assert heard.output > 0


@pytest.mark.sampled("client", "stream", each=2)
@EITHER
@before(*((upstream, client) for upstream, client in PAIRS if upstream not in (client, "anthropic")))
def test_without_emulation_the_loss_is_reported_and_the_answer_goes_on(
    stage: Stage, client: str, stream: bool
) -> None:
    heard = CLIENTS[client](stage, stream=stream, headers=OFF)
    assert "STOPPED second" in heard.text
    assert actions(heard) == ({"dropped"} if stage.dialect == "openai-responses" else {"approximated"})


@before(*(("openai-responses", client) for client in CLIENTS))
def test_the_upstream_is_left_at_the_match_and_the_usage_is_an_estimate(stage: Stage, client: str) -> None:
    """The others stop by themselves."""
    go_on = threading.Event()
    words = ["first", " ", "ST", "OP", " second"]
    behaviour = Behaviour(pieces=tuple(pieces(stage.dialect, words)), gate=go_on, after=6)
    stage.upstream.next(behaviour)
    try:
        heard = CLIENTS[client](stage, stream=True)
        assert heard.text == "first "
        assert heard.reason == ENDED[client]
        assert heard.output > 0
    finally:
        go_on.set()
    assert stage.upstream.requests[-1].abandoned.wait(DEADLINE_SECONDS)
    line = logged(stage, heard)
    assert line["tokens_source"] == "estimated"
    assert line["stop"] == "stop_sequence"
    assert "usage.detail" in line["losses"]


def logged(stage: Stage, heard: Heard) -> dict[str, Any]:
    """The log line of an answer."""
    identifier = heard.headers["x-request-id"]
    wait_until(lambda: any(line["id"] == identifier for line in stage.gateway.log()))
    return next(line for line in stage.gateway.log() if line["id"] == identifier)


def pieces(name: str, words: list[str]) -> list[bytes]:
    """A stream of an upstream, an event of ours in each piece."""
    writer = dialect(name).stream_writer(Context())
    deltas: list[Event] = [Delta(0, word) for word in words]
    events: list[Event] = [
        Start("r1", MODEL),
        PartStart(0, Text("")),
        *deltas,
        PartEnd(0),
        Finish(Stop("end"), Usage(input=10, output=len(words))),
    ]
    return [written for event in events if (written := writer.write([event]))]


@EITHER
@pytest.mark.parametrize("blank", ["\n", "  "])
@pytest.mark.parametrize("running", [name for name in UPSTREAMS if name != "openai-chat"], indirect=True)
def test_a_blank_sequence_holds_before_upstreams_that_refuse_it(
    stage: Stage, blank: str, stream: bool
) -> None:
    """In its own dialect a client's sequences are taken."""
    heard = gpt(stage, stream=stream, text=f"[[demo:echo]] first{blank}second", stop=[blank])
    assert heard.text == "first"
    assert actions(heard) == {"emulated"}


def test_the_usage_of_an_answer_that_is_not_cut_is_the_providers(stage: Stage) -> None:
    heard = claude(stage, stream=True, stop_sequences=["nowhere"])
    assert heard.text == "first STOPPED second"
    assert "tokens_source" not in logged(stage, heard)
