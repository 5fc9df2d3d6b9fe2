"""Claude Code's auto mode: `safeguards` of a request and `safeguard_results` of its answer."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import msgspec
import pytest

from tests.tiers import rows
from wireglot_core.dialects.anthropic.safeguards import parse_results, parse_safeguards, render_results
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.fields import Fields
from wireglot_core.dialects.registry import dialect
from wireglot_core.ir.content import Text, ToolCall
from wireglot_core.ir.errors import ClientFault
from wireglot_core.ir.outcome import Response, Stop
from wireglot_core.ir.request import Request
from wireglot_core.ir.safeguards import TOOL_CALLS, CallVerdict, SafeguardResult, by_id
from wireglot_core.ir.stream import fold, unfold
from wireglot_core.testing.strategies.samples import SAFEGUARD_RESULTS, SAFEGUARDS
from wireglot_core.translate import translate_request, translate_response

ANTHROPIC = dialect("anthropic")
ASKED: list[dict[str, Any]] = [
    {
        "type": "dangerous_tool_use",
        "classifier_context": {"v": 1, "permission_mode": "auto", "rules": {"allow": [], "deny": []}},
        "claude_md": "Be careful.",
    }
]
RESULTS: list[dict[str, Any]] = [
    {
        "type": "dangerous_tool_use",
        "status": {
            "type": "available",
            "tool_uses": {
                "toolu_1": {"type": "evaluated", "outcome": "not_flagged"},
                "toolu_2": {
                    "type": "evaluated",
                    "outcome": "flagged",
                    "explanation": "deletes",
                    "cited_rule": {"type": "classifier_context", "path": "auto_mode.soft_deny.0"},
                },
                "toolu_3": {"type": "unavailable", "reason": "timeout"},
                "toolu_4": {"type": "skipped"},
            },
        },
    }
]


def request(**more: Any) -> dict[str, Any]:
    return {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}], **more}


def answer(**more: Any) -> dict[str, Any]:
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [{"type": "text", "text": "hi"}],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
        **more,
    }


def test_the_checks_that_a_request_asks_for_are_read() -> None:
    parsed = ANTHROPIC.parse_request(request(safeguards=ASKED), Context())
    (safeguard,) = parsed.safeguards
    assert (safeguard.kind, safeguard.context["permission_mode"]) == (TOOL_CALLS, "auto")
    assert ANTHROPIC.render_request(parsed, Context()).value["safeguards"] == ASKED


@pytest.mark.parametrize("context", [{}, None], ids=["empty", "null"])
@pytest.mark.parametrize("more", [{}, {"claude_md": "Be careful."}], ids=["alone", "with more"])
def test_a_check_without_a_context_is_one(context: Any, more: dict[str, Any]) -> None:
    """And returns to its own dialect as it was written."""
    asked = [{"type": "dangerous_tool_use", "classifier_context": context, **more}]
    parsed = ANTHROPIC.parse_request(request(safeguards=asked), Context())
    (safeguard,) = parsed.safeguards
    assert (safeguard.kind, safeguard.context) == (TOOL_CALLS, {})
    rendered = ANTHROPIC.render_request(parsed, Context())
    assert rendered.value["safeguards"] == asked
    assert rendered.losses == ()


@rows("odd", [None, [], [{"type": "tool_calls"}]])
def test_an_unknown_spelling_returns_to_its_own_dialect_unchanged(odd: Any) -> None:
    parsed = ANTHROPIC.parse_request(request(safeguards=odd), Context())
    assert parsed.safeguards == ()
    assert ANTHROPIC.render_request(parsed, Context()).value["safeguards"] == odd


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        ({}, "$.safeguards: expected an array, got an object"),
        (ASKED[0], "$.safeguards: expected an array, got an object"),
        ("on", "$.safeguards: expected an array, got a string"),
        ([ASKED[0], 1], "$.safeguards[1]: expected an object, got an integer"),
        ([{}], "$.safeguards[0].type: expected a string, but the field is missing"),
        ([{"type": 1}], "$.safeguards[0].type: expected a string, got an integer"),
        (
            [{"type": "dangerous_tool_use", "classifier_context": "x"}],
            "$.safeguards[0].classifier_context: expected an object, got a string",
        ),
    ],
)
def test_a_check_of_a_wrong_type_is_refused_by_its_name(wrong: Any, problem: str) -> None:
    """A check that cannot be read is not made: its client must not wait for a verdict."""
    with pytest.raises(ClientFault) as refused:
        ANTHROPIC.parse_request(request(safeguards=wrong), Context())
    assert str(refused.value) == problem


@pytest.mark.parametrize(
    "odd",
    [None, [], {}, "on", [1], [{"type": 1}], [{"type": "dangerous_tool_use", "classifier_context": "x"}]],
)
def test_unknown_results_return_to_their_own_dialect_unchanged(odd: Any) -> None:
    reported = ANTHROPIC.parse_response(answer(safeguard_results=odd), Context())
    assert reported.safeguard_results == ()
    assert ANTHROPIC.render_response(reported, Context()).value["safeguard_results"] == odd


@pytest.mark.parametrize(
    "status",
    [
        RESULTS[0]["status"],
        {"type": "available", "tool_uses": {}},
        {"type": "unsupported"},
        {"type": "unavailable", "reason": "error"},
    ],
)
def test_results_are_the_same_on_both_sides_whole_and_streamed(status: dict[str, Any]) -> None:
    results = [{"type": "dangerous_tool_use", "status": status}]
    parsed = ANTHROPIC.parse_response(answer(safeguard_results=results), Context())
    assert [each.kind for each in parsed.safeguard_results] == [TOOL_CALLS]
    assert ANTHROPIC.render_response(parsed, Context()).value["safeguard_results"] == results
    written = ANTHROPIC.stream_writer(Context(), None).write(list(unfold(parsed)))
    assert delta_of(written)["safeguard_results"] == results
    reader = ANTHROPIC.stream_reader(Context())
    events = [*reader.read(written), *reader.end()]
    assert fold(events).safeguard_results == parsed.safeguard_results


def test_results_of_an_unknown_form_stay_in_the_delta_of_a_stream() -> None:
    odd = [{"type": "dangerous_tool_use", "status": {"type": "of the future"}}]
    delta = {"stop_reason": "end_turn", "stop_sequence": None, "safeguard_results": odd}
    sent: list[dict[str, Any]] = [
        {"type": "message_start", "message": {**answer(), "content": [], "stop_reason": None}},
        {"type": "message_delta", "delta": delta, "usage": {"output_tokens": 1}},
        {"type": "message_stop"},
    ]
    stream = b"".join(
        b"event: %b\ndata: %b\n\n" % (event["type"].encode(), msgspec.json.encode(event)) for event in sent
    )
    reader = ANTHROPIC.stream_reader(Context())
    events = [*reader.read(stream), *reader.end()]
    assert delta_of(ANTHROPIC.stream_writer(Context(), None).write(events))["safeguard_results"] == odd


def test_results_name_calls_as_the_client_is_given_them() -> None:
    """An id with characters that Anthropic refuses is reported otherwise, in both places."""
    id = "functions.bash:0"
    results = (SafeguardResult(TOOL_CALLS, "available", {id: CallVerdict("not_flagged")}),)
    response = Response(
        "r", "m", (ToolCall(id, "bash", "{}"),), Stop("tool_calls"), safeguard_results=results
    )
    reported = ANTHROPIC.render_response(response, Context()).value
    (shown,) = [block["id"] for block in reported["content"]]
    assert list(reported["safeguard_results"][0]["status"]["tool_uses"]) == [shown]
    assert shown != id
    written = ANTHROPIC.stream_writer(Context(), None).write(list(unfold(response)))
    assert list(delta_of(written)["safeguard_results"][0]["status"]["tool_uses"]) == [shown]


@pytest.mark.parametrize("turned", [False, True])
def test_of_calls_that_the_client_is_sent_under_one_id_the_worst_verdict_counts(turned: bool) -> None:
    """flagged > unavailable > skipped > not_flagged, in whatever order they were found."""
    outcomes: list[Any] = ["flagged", "unavailable", "skipped", "not_flagged"]
    for worse, better in pairwise(outcomes):
        found = [CallVerdict(worse), CallVerdict(better)][:: -1 if turned else 1]
        assert by_id(("id", verdict) for verdict in found) == {"id": CallVerdict(worse)}
        calls = dict(zip(("a.1", "a:1"), found, strict=True))
        result = SafeguardResult(TOOL_CALLS, "available", calls)
        (reported,) = render_results((result,), lambda _: "toolu_1", [])
        read = parse_results([reported])
        assert read[0].calls["toolu_1"].outcome == worse


@pytest.mark.parametrize("target", ["openai-chat", "openai-responses", "gemini"])
def test_no_other_dialect_loses_them_silently(target: Any) -> None:
    sent = translate_request(request(safeguards=ASKED), source="anthropic", target=target)
    assert ("safeguards", "dropped", "serious") in [
        (loss.feature, loss.action, loss.grade) for loss in sent.losses
    ]
    reported = translate_response(answer(safeguard_results=RESULTS), source="anthropic", target=target)
    assert "safeguards" in [loss.feature for loss in reported.losses]
    response = Response("r", "m", (Text("hi"),), Stop("end"), safeguard_results=SAFEGUARD_RESULTS)
    writer = dialect(target).stream_writer(Context(), None)
    writer.write(list(unfold(response)))
    assert "safeguards" in [loss.feature for loss in writer.losses]


def test_what_was_made_elsewhere_is_written_and_read_again() -> None:
    asked = Request("m", (), safeguards=SAFEGUARDS)
    value = ANTHROPIC.render_request(asked, Context()).value
    assert parse_safeguards(Fields(value)) == SAFEGUARDS
    response = Response("r", "m", (Text("hi"),), Stop("end"), safeguard_results=SAFEGUARD_RESULTS)
    reported = ANTHROPIC.render_response(response, Context()).value["safeguard_results"]
    assert parse_results(reported) == SAFEGUARD_RESULTS


def delta_of(stream: bytes) -> Any:
    lines = [line[6:] for line in stream.split(b"\n") if line.startswith(b"data: ")]
    (delta,) = [event for event in map(msgspec.json.decode, lines) if event["type"] == "message_delta"]
    return delta["delta"]
