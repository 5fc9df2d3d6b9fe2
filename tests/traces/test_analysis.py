"""What can be derived from a trace: links both ways, places of losses, numbers."""

from __future__ import annotations

import json

import pytest
from msgspec.structs import replace

from tests.core.traces.conversations import NAMES, PAIRS, conversation
from tests.tiers import rows
from tests.traces.recorded import recorded
from wireglot_core.traces.analysis import with_analysis
from wireglot_core.traces.pointer import resolve
from wireglot_core.traces.trace import Trace, TraceMessage
from wireglot_core.translate import translate_response


def requests_of(trace: Trace) -> tuple[object, object]:
    sent = trace.attempts[-1].request
    assert sent is not None
    return json.loads(trace.request.body), json.loads(sent.body)


def document(message: TraceMessage | None) -> object:
    assert message is not None
    return json.loads(message.folded or message.body)


@rows("stream", [False, True])
@rows(("source", "target"), PAIRS)
def test_both_sides_are_linked(source: str, target: str, stream: bool) -> None:
    asked = conversation(source, "[[demo:tool get_weather]]")
    trace = with_analysis(recorded(source, target, asked, stream=stream))
    assert trace.notes == []
    attempt = trace.attempts[-1]
    body, sent = requests_of(trace)
    said = {
        json.dumps(resolve(body, link.client)): json.dumps(resolve(sent, link.upstream))
        for link in attempt.links
    }
    for words in ("You know the weather.", "How is it in Oslo?", "I look.", "snow", "[[demo:tool", "Oslo"):
        assert any(words in one and words in other for one, other in said.items()), words
    assert attempt.answer_links
    reported, came = document(trace.answer), document(attempt.answer)
    for link in attempt.answer_links:
        one, other = resolve(reported, link.client), resolve(came, link.upstream)
        assert ("get_weather" in json.dumps(one)) == ("get_weather" in json.dumps(other))


@rows(("source", "target"), PAIRS)
def test_losses_stand_at_places_of_both_documents(source: str, target: str) -> None:
    asked = conversation(source)
    trace = with_analysis(recorded(source, target, asked))
    body, sent = requests_of(trace)
    for loss in trace.losses:
        one, other = (body, sent) if loss.document == "request" else (document(trace.answer), None)
        resolve(one, loss.pointer)
        if other is not None:
            resolve(other, loss.upstream)


def test_a_loss_inside_of_a_part_is_beside_what_the_part_became() -> None:
    asked = conversation("anthropic")
    asked["messages"][0]["content"][0]["cache_control"] = {"type": "ephemeral"}
    trace = with_analysis(recorded("anthropic", "gemini", asked))
    loss = next(loss for loss in trace.losses if loss.feature == "cache_marker")
    assert loss.pointer == "/messages/0/content/0/cache_control"
    assert loss.upstream == "/contents/0/parts/0"
    assert loss.grade == "harmless"


def test_the_summary_counts_both_sides() -> None:
    """R-K-04"""
    asked = conversation("anthropic")
    asked["system"] = [{"type": "text", "text": text} for text in ("One.", "Two.", "Three.")]
    trace = with_analysis(recorded("anthropic", "openai-chat", asked))
    counted = {line.what: (line.client, line.upstream) for line in trace.attempts[-1].summary}
    assert counted["system blocks"][0] == 3
    assert counted["messages"] == (3, 4)
    assert counted["tools"] == counted["tool calls"] == counted["tool results"] == counted["images"] == (1, 1)


def test_state_that_goes_on_at_another_part_is_not_counted_as_less() -> None:
    """What Gemini signed at a call is a thought of its own for Anthropic's clients, and a call's again."""
    call = {"functionCall": {"id": "c1", "name": "get_weather", "args": {}}, "thoughtSignature": "c2lnbmVk"}
    answer = {
        "responseId": "r",
        "modelVersion": "demo",
        "candidates": [{"content": {"role": "model", "parts": [call]}, "finishReason": "STOP"}],
        "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2},
    }
    said = translate_response(json.dumps(answer), source="gemini", target="anthropic").value["content"]
    assert [block["type"] for block in said] == ["thinking", "tool_use"]
    asked = conversation("anthropic")
    result = {"type": "tool_result", "tool_use_id": said[1]["id"], "content": "snow"}
    asked["messages"] += [{"role": "assistant", "content": said}, {"role": "user", "content": [result]}]
    trace = with_analysis(recorded("anthropic", "gemini", asked))
    counted = {line.what: (line.client, line.upstream) for line in trace.attempts[-1].summary}
    assert counted["signatures"] == (1, 1)
    assert "reasoning" not in counted


def test_a_thought_that_nobody_signed_is_counted_once() -> None:
    """Clients of other dialects carry it with a name in the field of a signature, which is no signature."""
    parts = [{"text": "Hm.", "thought": True}, {"text": "Snow."}]
    answer = {
        "responseId": "r",
        "modelVersion": "demo",
        "candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP"}],
        "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2},
    }
    said = translate_response(json.dumps(answer), source="gemini", target="anthropic").value["content"]
    assert [block["type"] for block in said] == ["thinking", "text"]
    asked = conversation("anthropic")
    asked["messages"] += [{"role": "assistant", "content": said}, {"role": "user", "content": "More?"}]
    trace = with_analysis(recorded("anthropic", "gemini", asked))
    counted = {line.what: (line.client, line.upstream) for line in trace.attempts[-1].summary}
    assert counted["reasoning"] == (1, 1)
    assert "signatures" not in counted


def test_rewritten_tool_ids_are_counted() -> None:
    asked = conversation("openai-chat")
    asked["messages"][2]["tool_calls"][0]["id"] = asked["messages"][3]["tool_call_id"] = "call.1/odd"
    trace = with_analysis(recorded("openai-chat", "anthropic", asked))
    counted = {line.what: (line.client, line.upstream) for line in trace.attempts[-1].summary}
    assert counted["tool ids rewritten"] == (1, 1)


@pytest.mark.parametrize("name", NAMES)
def test_what_passes_through_is_linked_to_itself(name: str) -> None:
    target = "gemini" if name != "gemini" else "anthropic"
    trace = recorded(name, target, conversation(name))
    attempt = replace(
        trace.attempts[0], dialect=name, passthrough=True, request=trace.request, answer=trace.answer
    )
    attempt = with_analysis(replace(trace, attempts=[attempt])).attempts[0]
    assert attempt.links
    assert all(link.client == link.upstream for link in [*attempt.links, *attempt.answer_links])


def test_a_body_that_cannot_be_read_leaves_a_note_and_no_links() -> None:
    trace = recorded("anthropic", "gemini", conversation("anthropic"))
    reported = with_analysis(replace(trace, request=replace(trace.request, body="{")))
    assert reported.attempts[0].links == []
    assert reported.notes == ["no links: the client's request: the text ends too early (byte 1)"]


def test_telling_twice_changes_nothing() -> None:
    once = with_analysis(recorded("anthropic", "gemini", conversation("anthropic"), stream=True))
    assert with_analysis(once) == once
