"""Reasoning state comes back: what an upstream signed returns to it, through a client of any dialect."""

from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from proofs.fidelity.matrix import said_back
from tests.core.laws.cases import MAIN, of_kind
from tests.tiers import rows
from wireglot_core import StreamTranslator, translate_request, translate_response
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.registry import DialectName, dialect
from wireglot_core.ir.content import Message, Part, Reasoning, Text, ToolCall, ToolResult
from wireglot_core.ir.errors import Unsupported
from wireglot_core.ir.loss import Loss
from wireglot_core.ir.outcome import Response, Stop
from wireglot_core.ir.request import Request
from wireglot_core.ir.stream import Finish, fold, unfold
from wireglot_core.testing.check_dialect import Case
from wireglot_core.testing.laws import ending, opened, read_stream
from wireglot_core.traces.canonical import canonical_arguments
from wireglot_core.wire.json import decode

CONTEXT = Context()


def signed(parts: tuple[Part, ...]) -> list[tuple[str, ...]]:
    """What each signature was seen on: a signature on another part, or on changed text, is worthless."""
    found: list[tuple[str, ...]] = []
    whole = opened(Response("", "", parts, Stop("end")))  # a signature may come behind the text it signs
    for part in whole.content:
        signature = getattr(part, "signature", None)
        if signature is not None:
            match part:
                case Text() | Reasoning():
                    what = part.text
                case ToolCall():
                    what = f"{part.name}({canonical_arguments(part.arguments)})"
                case _:
                    what = ""
            found.append((type(part).__name__, what, signature.data))
    return found


def comes_back(
    content: tuple[Part, ...],
    answer: dict,
    client: DialectName,
    upstream: DialectName,
    losses: Sequence[Loss],
) -> None:
    if any(loss.feature == "reasoning.signature" for loss in losses):
        # A signature behind the last text has no place in some dialects. It is optional, and declared.
        content = tuple(replace(part, signature=None) if isinstance(part, Text) else part for part in content)
    calls = [part for part in content if isinstance(part, ToolCall)]
    results = tuple(ToolResult(call.id, (Text("21"),), name=call.name, kind=call.kind) for call in calls)
    turns = (
        Message("user", (Text("?"),)),
        Message("assistant", (Text("-"),)),
        Message("user", results or (Text("Go on"),)),
    )
    question = dialect(client).render_request(Request("model", turns, max_tokens=100), CONTEXT).value
    body = translate_request(said_back(client, question, answer), source=client, target=upstream).value
    returned = dialect(upstream).parse_request(body, CONTEXT)
    parts = tuple(part for message in returned.messages for part in message.content)
    assert signed(parts) == signed(content)


def has_state(case: Case) -> bool:
    return case.dialect in MAIN and any(
        mark in case.data or mark.decode() in str(case.body)
        for mark in (b"signature", b"thoughtSignature", b"encrypted_content", b"redacted")
    )


@rows("client", MAIN)
@rows("case", [param for param in of_kind("responses") if has_state(param.values[0])])
def test_state_of_an_answer_comes_back_to_its_minter(case, client):
    """R-DA-02, R-DA-04"""
    content = dialect(case.dialect).parse_response(case.body, CONTEXT).content
    answer = translate_response(case.body, source=case.dialect, target=client)
    comes_back(content, answer.value, client, case.dialect, answer.losses)


@rows("client", MAIN)
@rows("case", [param for param in of_kind("streams") if has_state(param.values[0])])
def test_state_of_a_stream_comes_back_to_its_minter(case, client):
    events = read_stream(dialect(case.dialect), [case.data])
    if ending(events) is not Finish:
        return
    translator = StreamTranslator(source=case.dialect, target=client)
    data = translator.feed(case.data) + translator.close()
    heard = fold(read_stream(dialect(client), [data]))
    answer = dialect(client).render_response(heard, CONTEXT).value
    comes_back(fold(events).content, answer, client, case.dialect, translator.losses)


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_two_signed_thoughts_come_back_through_a_chat_client(streamed: bool) -> None:
    """[X18] A Chat message has one place for reasoning: it is cut again where the thoughts ended."""
    thoughts = [
        {"type": "thinking", "thinking": "First.", "signature": "c2lnMQ=="},
        {"type": "thinking", "thinking": "", "signature": "c2lnMg=="},
        {"type": "thinking", "thinking": "Then\n\nthis.", "signature": "c2lnMw=="},
    ]
    used = {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {}}
    whole = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude",
        "content": [*thoughts, used],
        "stop_reason": "tool_use",
        "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }
    response = dialect("anthropic").parse_response(whole, CONTEXT)
    chat = dialect("openai-chat")
    if streamed:
        data = chat.stream_writer(CONTEXT, None).write(unfold(response))
        message: dict[str, Any] = {"role": "assistant", "content": None}
        for line in data.split(b"\n\n"):
            if not line.startswith(b"data: {"):
                continue
            for choice in decode(line.removeprefix(b"data: "))["choices"]:
                delta = choice["delta"]
                if "reasoning_content" in delta:
                    message["reasoning_content"] = (
                        message.get("reasoning_content", "") + delta["reasoning_content"]
                    )
                state = delta.get("extra_content", {}).get("wireglot", {})
                message.setdefault("extra_content", {"wireglot": {}})["wireglot"].update(state)
                for call in delta.get("tool_calls", ()):
                    message.setdefault("tool_calls", [call])
    else:
        message = chat.render_response(response, CONTEXT).value["choices"][0]["message"]
    body = {
        "model": "m",
        "messages": [
            {"role": "user", "content": "?"},
            message,
            {"role": "tool", "tool_call_id": "toolu_1", "content": "x"},
        ],
    }
    back = translate_request(body, source="openai-chat", target="anthropic").value
    assert back["messages"][1]["content"] == [*thoughts, used]


@rows("model", ["gpt-5.5", "o3", "unknown", "gpt-4o"])
@rows("case", of_kind("requests"))
def test_who_stores_nothing_upstream_asks_for_state_and_names_no_item_without_it(case, model):
    """R-DA-18: whatever the client says of thinking. A model that does not reason refuses to be asked."""
    if case.dialect == "openai-responses":
        return
    try:
        body = translate_request(
            case.body, source=case.dialect, target="openai-responses", model=model, provider="openai"
        ).value
    except Unsupported:
        return
    assert body["store"] is False
    assert ("reasoning.encrypted_content" in body.get("include", ())) is (model != "gpt-4o")
    reasoned = False
    for item in body["input"]:
        own = item.get("type") in ("reasoning", "function_call", "custom_tool_call")
        if item.get("type") == "reasoning":
            reasoned = True
        elif own or item.get("role") == "assistant":
            assert reasoned or "id" not in item
        else:
            reasoned = False
