"""Reasoning state: OpenAI's own goes raw, everyone else's in the sealed envelope, and returns to its minter only."""

import pytest

from proofs.fidelity.matrix import said_back
from tests.core.dialects.openai_responses.wire import CONTEXT, parse, render, write
from wireglot_core import translate_request, translate_response
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.envelope import UNREADABLE, is_sealed
from wireglot_core.dialects.openai_responses import DIALECT
from wireglot_core.dialects.registry import dialect
from wireglot_core.ir.content import Media, Message, Origin, Reasoning, Signature, Text, ToolCall
from wireglot_core.ir.outcome import Response, Stop
from wireglot_core.ir.request import Request
from wireglot_core.ir.stream import unfold

OWN = Signature("gAAAA", Origin("openai-responses"), "rs_1")
CLAUDE = Signature("EqQB", Origin("anthropic", "anthropic", "claude", "acct"))
GEMINI = Signature("CvAB", Origin("gemini"))
USER = Message("user", (Text("hi"),))


def turn_of(output):
    """The parts a client's next request brings back."""
    request = parse({"model": "m", "input": [*output, {"role": "user", "content": "go on"}]})
    return [part for message in request.messages[:-1] for part in message.content]


def answered(*content, stop="end"):
    return DIALECT.render_response(Response("resp_1", "m", content, Stop(stop)), CONTEXT)


def test_encrypted_content_is_a_signature_bound_to_its_item():
    """R-DA-18, PAINS A9"""
    item = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAAA"}
    (part,) = turn_of([item])
    assert isinstance(part, Reasoning)
    assert part.signature == OWN
    assert render(Request("m", (USER, Message("assistant", (part,)), USER)))["input"][1] == item


def test_it_is_replayed_to_its_minter_only():
    """PAINS A3, A10"""
    minted = Signature("gAAAA", Origin("openai-responses", "openai", "gpt-5", "one"), "rs_1")
    request = Request("m", (USER, Message("assistant", (Reasoning("hm", minted), Text("x"))), USER))
    same = DIALECT.render_request(request, Context("openai", "gpt-5", "one"))
    assert same.value["input"][1]["encrypted_content"] == "gAAAA"
    other = DIALECT.render_request(request, Context("openai", "gpt-5", "two"))
    assert [item["type"] for item in other.value["input"]] == ["message"] * 3
    assert [loss.feature for loss in other.losses] == ["reasoning.signature", "reasoning.text"]


def test_foreign_state_travels_sealed_and_comes_back_whole():
    """R-DA-04, R-DA-10, C9"""
    redacted = Reasoning("", Signature("Emw", Origin("anthropic")), redacted=True)
    content = (
        Reasoning("hm", CLAUDE),
        redacted,
        ToolCall("c1", "f", "{}", signature=GEMINI),
        ToolCall("c2", "f", "{}"),
    )
    body = answered(*content, stop="tool_calls")
    assert body.losses == ()
    reasoning = [item for item in body.value["output"] if item["type"] == "reasoning"]
    assert all(is_sealed(item["encrypted_content"]) for item in reasoning)
    assert [item["type"] for item in body.value["output"]] == [
        "reasoning", "reasoning", "reasoning", "function_call", "function_call",
    ]  # fmt: skip
    back = turn_of(body.value["output"])
    assert [getattr(part, "signature", None) for part in back] == [CLAUDE, redacted.signature, GEMINI, None]
    assert isinstance(back[1], Reasoning)
    assert back[1].redacted


def test_a_text_and_an_image_get_their_signature_back():
    body = answered(Text("hi", signature=GEMINI), Media("image", "image/png", "aGk=", signature=GEMINI))
    text, image = turn_of(body.value["output"])
    assert isinstance(text, Text)
    assert isinstance(image, Media)
    assert text.signature == image.signature == GEMINI
    assert body.losses == ()


def test_a_signature_whose_call_is_gone_is_dropped():
    (carrier, _) = answered(ToolCall("c", "f", "{}", signature=GEMINI), stop="tool_calls").value["output"]
    assert turn_of([carrier]) == []


def test_a_tampered_envelope_is_nobodys_state():
    (item,) = answered(Reasoning("", CLAUDE)).value["output"]
    bent = {**item, "encrypted_content": item["encrypted_content"][:-4] + "AAAA"}
    (part,) = turn_of([bent])
    assert isinstance(part, Reasoning)
    assert part.signature is not None
    assert part.signature.origin == Origin(UNREADABLE)


def test_ids_we_made_up_never_reach_the_provider():
    output = answered(Reasoning("hm", OWN), Text("a"), ToolCall("c", "f", "{}"), stop="tool_calls").value[
        "output"
    ]
    assert all("id" in item for item in output)
    request = parse({"model": "m", "input": output})
    assert [item.get("id") for item in render(request)["input"]] == ["rs_1", None, None]


def test_reasoning_of_another_model_is_not_sent_as_openais():
    """What a foreign model thought, echoed by the client with an id of ours."""
    output = answered(Reasoning("hm"), Text("a")).value["output"]
    rendered = DIALECT.render_request(parse({"model": "m", "input": output}), CONTEXT)
    assert [item["type"] for item in rendered.value["input"]] == ["message"]
    assert [(loss.feature, loss.detail) for loss in rendered.losses] == [
        ("reasoning.text", "not issued by this provider")
    ]


@pytest.mark.parametrize("client", ["anthropic", "openai-chat", "gemini"])
def test_a_summary_that_came_without_its_state_is_reported_as_the_providers_own(client):
    summary = [{"type": "summary_text", "text": "hm"}]
    output = [{"type": "reasoning", "id": "rs_x", "summary": summary}, *answered(Text("a")).value["output"]]
    answer = {**answered(Text("a")).value, "output": output}
    reported = translate_response(answer, source="openai-responses", target=client).value
    question = dialect(client).render_request(
        Request("m", (USER, Message("assistant", (Text("-"),)), USER), max_tokens=9), CONTEXT
    )
    asked = said_back(client, question.value, reported)
    rendered = translate_request(asked, source=client, target="openai-responses", model="m")
    assert "reasoning" not in [item["type"] for item in rendered.value["input"]]
    assert [loss.detail for loss in rendered.losses if loss.feature == "reasoning.text"] == [
        "its encrypted content was not kept"
    ]


def test_a_client_that_echoes_unsigned_reasoning_is_left_alone():
    """Raw chain-of-thought providers need their text back."""
    item = {
        "type": "reasoning",
        "id": "rs_x",
        "summary": [],
        "content": [{"type": "reasoning_text", "text": "hm"}],
    }
    assert render(parse({"model": "m", "input": [item]}))["input"] == [item]


def test_streams_carry_the_same_state():
    content = (
        Reasoning("", CLAUDE),
        ToolCall("c", "f", "{}", signature=GEMINI),
        Text("hi", signature=GEMINI),
    )
    final = write(list(unfold(Response("resp_1", "m", content, Stop("tool_calls")))))[-1]["response"]
    back = turn_of(final["output"])
    assert [getattr(part, "signature", None) for part in back] == [CLAUDE, GEMINI, GEMINI]


def test_two_items_never_share_an_id():
    output = answered(Reasoning("a", OWN), Text("x"), Reasoning("b", OWN))
    ids = [item["id"] for item in output.value["output"]]
    assert len(set(ids)) == 3
    assert [loss.feature for loss in output.losses] == ["reasoning.signature"]
