"""A reasoning item of several parts, streamed: it stays one of several parts."""

import pytest

from tests.core.dialects.openai_responses.wire import CONTEXT, read, sse, write
from wireglot_core.dialects.openai_responses import DIALECT
from wireglot_core.ir.content import Reasoning
from wireglot_core.ir.stream import Delta, PartStart, fold, unfold

CREATED = {"type": "response.created", "response": {"id": "resp_1", "model": "m", "status": "in_progress"}}
ITEM = {"type": "reasoning", "id": "rs_1", "summary": []}


def delta(text, number, source="summary"):
    kind, place = (
        ("reasoning_summary_text", "summary_index")
        if source == "summary"
        else ("reasoning_text", "content_index")
    )
    return {
        "type": f"response.{kind}.delta",
        "item_id": "rs_1",
        "output_index": 0,
        place: number,
        "delta": text,
    }


def entries(*texts, kind="summary_text"):
    return [{"type": kind, "text": text} for text in texts]


def stream(*deltas, **final):
    item = {**ITEM, **final}
    return sse(
        CREATED,
        {"type": "response.output_item.added", "output_index": 0, "item": ITEM},
        *deltas,
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {
            "type": "response.completed",
            "response": {"id": "resp_1", "model": "m", "status": "completed", "output": [item]},
        },
    )


def reported(events):
    """What a client that listens to the deltas, and one that waits for the end, get to know."""
    heard: dict[int, str] = {}
    for event in events:
        if event["type"].endswith(("summary_text.delta", "reasoning_text.delta")):
            number = event.get("summary_index", event.get("content_index"))
            heard[number] = heard.get(number, "") + event["delta"]
    (item,) = events[-1]["response"]["output"]
    key = "content" if "content" in item else "summary"
    return [heard[number] for number in sorted(heard)], [entry["text"] for entry in item[key]]


@pytest.mark.parametrize("source", ["summary", "content"])
def test_the_parts_stay_apart(source):
    kind = "summary_text" if source == "summary" else "reasoning_text"
    data = stream(
        delta("**On", 0, source), delta("e**", 0, source), delta("Two", 1, source),
        **{source: entries("**One**", "Two", kind=kind)},
    )  # fmt: skip
    events = write(read(data))
    assert reported(events) == (["**One**", "Two"], ["**One**", "Two"])
    assert events[-1]["response"]["output"][0][source] == entries("**One**", "Two", kind=kind)
    again = write(read(sse(*events)))
    assert [event | {"sequence_number": 0} for event in again] == [
        event | {"sequence_number": 0} for event in events
    ]


def test_every_part_has_its_frame():
    data = stream(delta("One", 0), delta("Two", 1), summary=entries("One", "Two"))
    inner = [event for event in write(read(data)) if "reasoning_summary" in event["type"]]
    assert [(event["type"].removeprefix("response.reasoning_summary_"), event["summary_index"]) for event in inner] == [
        ("part.added", 0), ("text.delta", 0), ("text.done", 0), ("part.done", 0),
        ("part.added", 1), ("text.delta", 1), ("text.done", 1), ("part.done", 1),
    ]  # fmt: skip
    assert inner[2]["text"] == "One"
    assert inner[7]["part"] == {"type": "summary_text", "text": "Two"}


def test_a_blank_line_the_model_wrote_begins_no_part():
    data = stream(delta("One", 0), delta("\n\n", 0), delta("Two", 0), summary=entries("One\n\nTwo"))
    assert reported(write(read(data))) == (["One\n\nTwo"], ["One\n\nTwo"])


def test_parts_that_only_the_done_item_has_stay_apart_too():
    assert reported(write(read(stream(summary=entries("One", "Two"))))) == (["One", "Two"], ["One", "Two"])
    data = stream(delta("One", 0), summary=entries("One", "Two", "Three"))
    assert reported(write(read(data))) == (["One", "Two", "Three"], ["One", "Two", "Three"])


def test_an_answer_that_came_whole_keeps_its_parts():
    output = [{**ITEM, "summary": entries("One", "Two")}]
    body = {"id": "resp_1", "model": "m", "status": "completed", "output": output}
    events = list(unfold(DIALECT.parse_response(body, CONTEXT)))
    assert reported(write(events)) == (["One", "Two"], ["One", "Two"])


def test_empty_parts_leave_no_blank_lines():
    data = stream(delta("Two", 1), summary=entries("", "Two", ""))
    (reasoning,) = fold(read(data)).content
    assert isinstance(reasoning, Reasoning)
    assert reasoning.text == "Two"
    output = [{**ITEM, "summary": entries("", "")}]
    body = {"id": "resp_1", "model": "m", "status": "completed", "object": "response", "output": output}
    response = DIALECT.parse_response(body, CONTEXT)
    (empty,) = response.content
    assert isinstance(empty, Reasoning)
    assert empty.text == ""
    assert DIALECT.render_response(response, CONTEXT).value["output"] == body["output"]


def test_another_dialects_blank_line_is_text():
    events = read(stream(delta("One", 0), delta("Two", 1), summary=entries("One", "Two")))
    foreign = [PartStart(0, Reasoning()) if isinstance(event, PartStart) else event for event in events]
    assert Delta(0, "\n\n") in foreign
    assert reported(write(foreign))[0] == ["One\n\nTwo"]


def test_a_reasoning_item_with_a_summary_and_its_full_text_keeps_both():
    both = {"summary": entries("short"), "content": entries("long", kind="reasoning_text")}
    item = write(read(stream(delta("short", 0), **both)))[-1]["response"]["output"][0]
    assert (item["summary"], item["content"]) == (both["summary"], both["content"])
