"""The phase of a message (`commentary`, `final_answer`): codex models want it back with their words."""

import pytest

from proofs.fidelity.matrix import said_back
from wireglot_core import StreamTranslator, translate_request, translate_response
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.registry import DialectName, dialect
from wireglot_core.ir.content import Message, Text
from wireglot_core.ir.request import Request
from wireglot_core.ir.stream import fold
from wireglot_core.testing.laws import read_stream
from wireglot_core.wire.json import encode

CLIENTS = ("anthropic", "openai-chat", "gemini")
CONTEXT = Context()


def said(text: str, phase: str, number: int = 1) -> dict:
    return {
        "type": "message",
        "id": f"msg_{number}",
        "role": "assistant",
        "status": "completed",
        "phase": phase,
        "content": [{"type": "output_text", "text": text, "annotations": [], "logprobs": []}],
    }


def answer(*items: dict) -> dict:
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "status": "completed",
        "model": "gpt-5.2-codex",
        "output": list(items),
        "usage": {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3},
    }


def stream_of(whole: dict) -> bytes:
    events: list[dict] = [
        {"type": "response.created", "response": {**whole, "status": "in_progress", "output": []}}
    ]
    for index, item in enumerate(whole["output"]):
        place = {"output_index": index, "item_id": item["id"]}
        events.append(
            {"type": "response.output_item.added", **place, "item": {**item, "content": []}},
        )
        place["content_index"] = 0
        blank = {**item["content"][0], "text": ""}
        events.append({"type": "response.content_part.added", **place, "part": blank})
        for piece in item["content"][0]["text"].partition(" "):
            events.append({"type": "response.output_text.delta", **place, "delta": piece})
        events.append({"type": "response.output_item.done", **place, "item": item})
    events.append({"type": "response.completed", "response": whole})
    return b"".join(
        b"event: %b\ndata: %b\n\n" % (event["type"].encode(), encode({**event, "sequence_number": number}))
        for number, event in enumerate(events)
    )


def next_input(client: DialectName, heard: dict) -> list:
    """What the Responses upstream gets when the client goes on with what it heard."""
    turns = (Message("user", (Text("?"),)), Message("assistant", (Text("-"),)), Message("user", (Text("!"),)))
    question = dialect(client).render_request(Request("model", turns, max_tokens=100), CONTEXT).value
    body = said_back(client, question, heard)
    sent = translate_request(body, source=client, target="openai-responses", model="gpt-5.2-codex").value
    items: list = sent["input"]
    return items


def phases(items: list) -> list:
    return [
        ("".join(part["text"] for part in item["content"]), item.get("phase"))
        for item in items
        if item.get("role") == "assistant"
    ]


@pytest.mark.parametrize("client", CLIENTS)
def test_the_phase_of_a_message_comes_back_to_the_responses_upstream(client):
    """[X11] Responses `phase` crosses sealed in the client's opaque place, and is no loss."""
    heard = translate_response(
        answer(said("Hello you", "final_answer")), source="openai-responses", target=client
    )
    assert not [loss for loss in heard.losses if loss.feature == "message.phase"]
    assert phases(next_input(client, heard.value)) == [("Hello you", "final_answer")]


@pytest.mark.parametrize("client", CLIENTS)
def test_the_phase_of_a_streamed_message_comes_back(client):
    """[X11] ... and so it does out of a stream, whose text is not held back for it."""
    translator = StreamTranslator(source="openai-responses", target=client)
    data = stream_of(answer(said("Hello you", "commentary")))
    begun = translator.feed(data[: data.index(b'"delta":" "')])
    assert b"Hello" in begun
    out = begun + translator.feed(data[data.index(b'"delta":" "') :]) + translator.close()
    heard = dialect(client).render_response(fold(read_stream(dialect(client), [out])), CONTEXT).value
    assert phases(next_input(client, heard)) == [("Hello you", "commentary")]


@pytest.mark.parametrize("client", ["anthropic", "gemini"])
def test_two_messages_keep_their_own_phases(client):
    """[X11] Commentary and the final answer stay two messages."""
    both = answer(said("I look.", "commentary", 1), said("Done.", "final_answer", 2))
    heard = translate_response(both, source="openai-responses", target=client)
    assert phases(next_input(client, heard.value)) == [("I look.", "commentary"), ("Done.", "final_answer")]


@pytest.mark.parametrize("target", CLIENTS)
def test_a_phase_that_nobody_asked_for_is_declared(target):
    """[X11] Toward another vendor's upstream the phase is a loss of its own name."""
    body = {
        "model": "gpt-5.2-codex",
        "input": [
            {"role": "user", "content": "?"},
            said("Hi", "commentary"),
            {"role": "user", "content": "!"},
        ],
    }
    rendered = translate_request(body, source="openai-responses", target=target, model="m")
    assert [loss.feature for loss in rendered.losses if loss.action == "dropped"] == ["message.phase"]


def test_a_phase_reported_only_at_the_end_of_its_item_is_read():
    """[X11] Some servers announce the item without it."""
    data = stream_of(answer(said("Hello you", "commentary")))
    head, mark, tail = data.partition(b'"type":"response.output_item.added"')
    line, end, rest = tail.partition(b"\n\n")
    data = head + mark + line.replace(b'"phase":"commentary",', b"") + end + rest
    whole = fold(read_stream(dialect("openai-responses"), [data]))
    assert isinstance(whole.content[0], Text)
    assert whole.content[0].signature is not None
    assert whole.content[0].signature.data == "commentary"
