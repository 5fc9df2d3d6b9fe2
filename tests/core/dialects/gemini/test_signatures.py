"""Thought signatures: each stays with its part, no matter who minted it."""

import pytest

from tests.tiers import rows
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.envelope import PLACEHOLDERS, UNREADABLE, seal, unseal
from wireglot_core.dialects.gemini import DIALECT
from wireglot_core.ir.content import Message, Origin, Reasoning, Signature, Text, ToolCall
from wireglot_core.ir.outcome import Response, Stop
from wireglot_core.ir.request import Request
from wireglot_core.translate import translate_request

CONTEXT = Context(provider="google", model="gemini-3-pro", account="a")
CLAUDE = Signature("EqQB", Origin("anthropic", "anthropic", "claude", "b"))


def parse(*parts):
    return (
        DIALECT.parse_request({"contents": [{"role": "model", "parts": list(parts)}]}, CONTEXT)
        .messages[0]
        .content
    )


def render(*parts):
    rendered = DIALECT.render_request(Request("m", (Message("assistant", parts),)), CONTEXT)
    contents = rendered.value["contents"]
    return (contents[0]["parts"] if contents else []), [loss.feature for loss in rendered.losses]


@rows(
    "part",
    [
        {"text": "Hello", "thoughtSignature": "QUJD"},
        {"text": "", "thoughtSignature": "QUJD"},
        {"thoughtSignature": "QUJD"},
        {"text": "hm", "thought": True, "thoughtSignature": "QUJD"},
        {"thought": True, "thoughtSignature": "QUJD"},
        {"functionCall": {"name": "f", "args": {}}, "thoughtSignature": "QUJD"},
        {"inlineData": {"mimeType": "image/png", "data": "AAAA"}, "thoughtSignature": "QUJD"},
        {"executableCode": {"code": "1", "language": "PYTHON"}, "thoughtSignature": "QUJD"},
        {"toolCall": {"id": "1", "toolType": "X", "args": {}}, "thoughtSignature": "QUJD"},
        {"functionCall": {"name": "f", "args": {}}, "thoughtSignature": "skip_thought_signature_validator"},
        {"text": "hm", "thought": True, "thoughtSignature": "context_engineering_is_the_way_to_go"},
        {"text": "a", "thoughtSignature": "c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I="},
    ],
)
def test_a_signature_on_any_part_is_replayed_on_that_part(part):
    """R-DA-01, R-DA-02, R-DA-03, PAINS A1; so is the documented bypass, which is no state."""
    assert render(*parse(part)) == ([part], [])


@pytest.mark.parametrize("placeholder", sorted(PLACEHOLDERS))
def test_a_placeholder_is_no_state(placeholder):
    """[L2] Gemini CLI writes it on calls that came without a signature: anyone who is asked next lost nothing."""
    part = {"functionCall": {"name": "f", "args": {}}, "thoughtSignature": placeholder}
    (call,) = parse(part)
    assert call.signature is None
    request = {"contents": [{"role": "user", "parts": [{"text": "?"}]}, {"role": "model", "parts": [part]}]}
    answered = {"functionResponse": {"name": "f", "response": {"output": "x"}}}
    request["contents"].append({"role": "user", "parts": [answered]})
    for target in ("anthropic", "openai-chat", "openai-responses", "gemini"):
        rendered = translate_request(request, source="gemini", target=target, model="m")
        assert "reasoning.signature" not in [loss.feature for loss in rendered.losses]


def test_snake_case_signatures_are_read():
    (call,) = parse({"function_call": {"name": "f"}, "thought_signature": "QUJD"})
    assert isinstance(call, ToolCall)
    assert call.signature == Signature("QUJD", Origin("gemini"))


def test_signed_and_unsigned_parts_are_never_merged():
    """R-DA-03"""
    parts = [{"text": "a"}, {"text": "b", "thoughtSignature": "QUJD"}, {"text": "c"}]
    assert render(*parse(*parts)) == (parts, [])


def test_another_providers_signature_is_dropped_and_so_are_its_thoughts():
    """R-DA-09, PAINS A3"""
    parts, losses = render(Reasoning("hm", CLAUDE), ToolCall("a", "f", "{}", signature=CLAUDE))
    assert parts == [{"functionCall": {"id": "a", "name": "f", "args": {}}}]
    assert losses == ["reasoning.signature", "reasoning.text", "reasoning.signature"]


def test_a_signature_of_another_account_is_dropped():
    foreign = Signature("QUJD", Origin("gemini", "google", "gemini-3-pro", "someone-else"))
    parts, losses = render(Text("x", signature=foreign))
    assert parts == [{"text": "x"}]
    assert losses == ["reasoning.signature"]


def test_thoughts_nobody_signed_are_legal_on_the_wire():
    assert render(Reasoning("hm")) == ([{"text": "hm", "thought": True}], [])


def test_a_foreign_signature_travels_with_a_gemini_client_and_comes_back():
    """R-DA-04: sealed in the part's own field, pure base64."""
    response = Response(
        "r",
        "m",
        (Reasoning("hm", CLAUDE), ToolCall("call_1", "f", "{}", signature=CLAUDE)),
        Stop("tool_calls"),
    )
    rendered = DIALECT.render_response(response, CONTEXT)
    assert rendered.losses == ()
    thought, call = rendered.value["candidates"][0]["content"]["parts"]
    sealed = unseal(call["thoughtSignature"], CONTEXT.secret)
    assert sealed is not None
    assert (sealed.signature, sealed.holder) == (CLAUDE, "call")
    again = parse(thought, call)
    assert [getattr(part, "signature", None) for part in again] == [CLAUDE, CLAUDE]


def test_an_envelope_survives_the_sdks_url_safe_reencoding():
    text = seal(Signature("\xff\xfe?>" * 9, Origin("anthropic")), "call", CONTEXT.secret)
    reencoded = text.replace("+", "-").replace("/", "_")
    (call,) = parse({"functionCall": {"name": "f"}, "thoughtSignature": reencoded})
    assert isinstance(call, ToolCall)
    assert call.signature is not None
    assert call.signature.origin.dialect == "anthropic"


def test_redacted_reasoning_travels_with_a_gemini_client():
    """R-DA-10"""
    redacted = Reasoning("", Signature("EmwK", Origin("anthropic")), redacted=True)
    rendered = DIALECT.render_response(Response("r", "m", (redacted, Text("Hi.")), Stop("end")), CONTEXT)
    assert rendered.losses == ()
    assert parse(*rendered.value["candidates"][0]["content"]["parts"]) == (redacted, Text("Hi."))
    parts, losses = render(redacted)
    assert (parts, losses) == ([{"text": "Continue."}], ["reasoning.redacted", "content.position"])


def test_reasoning_that_was_streamed_in_pieces_is_one_again_when_it_comes_back():
    """The minter takes its signature back only with the whole text."""
    trailing = {"text": "", "thought": True, "thoughtSignature": seal(CLAUDE, "reasoning", CONTEXT.secret)}
    pieces = [
        {"text": "Let me ", "thought": True},
        {"text": "think.", "thought": True},
        trailing,
        {"text": "Hi."},
    ]
    assert parse(*pieces) == (Reasoning("Let me think.", CLAUDE), Text("Hi."))


def test_a_forged_envelope_is_nobodys_state():
    text = seal(CLAUDE, "call", b"another secret")
    (call,) = parse({"functionCall": {"name": "f"}, "thoughtSignature": text})
    assert isinstance(call, ToolCall)
    assert call.signature == Signature(text, Origin(UNREADABLE))


def test_signatures_of_an_answer_are_stamped_with_their_minter():
    body = {
        "candidates": [
            {"content": {"parts": [{"text": "x", "thoughtSignature": "QUJD"}]}, "finishReason": "STOP"}
        ],
        "modelVersion": "gemini-3-pro-001",
    }
    (text,) = DIALECT.parse_response(body, CONTEXT).content
    assert isinstance(text, Text)
    assert text.signature == Signature("QUJD", Origin("gemini", "google", "gemini-3-pro", "a"))


def test_pieces_that_came_back_in_contents_of_their_own_are_one_again():
    """google-genai's chats keep every chunk of a stream as a content."""
    trailing = {"text": "", "thought": True, "thoughtSignature": seal(CLAUDE, "reasoning", CONTEXT.secret)}
    pieces = [
        {"text": "Let me ", "thought": True},
        {"text": "think.", "thought": True},
        trailing,
        {"functionCall": {"id": "toolu_1", "name": "f", "args": {}}},
    ]
    hello = {"role": "user", "parts": [{"text": "Hello"}]}
    body = {"contents": [hello, *({"role": "model", "parts": [piece]} for piece in pieces)]}
    messages = DIALECT.parse_request(body, CONTEXT).messages
    assert [message.content[0] for message in messages[1:]] == [
        Reasoning("Let me think.", CLAUDE),
        ToolCall("toolu_1", "f", "{}"),
    ]
