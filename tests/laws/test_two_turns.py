"""Two turns by the client alone: an answer is reported to a client of another dialect, which sends it back with
its next question. The upstream gets the turn as a client of its own would have sent it."""

from typing import Any

import msgspec
import pytest

from proofs.fidelity.matrix import said_back
from proofs.fidelity.necessary import brought_no_state
from proofs.fidelity.round_trips import round_trip
from tests.core.laws.cases import MAIN, MAIN_PAIRS, of_kind, recorded
from tests.tiers import rows
from wireglot import StreamTranslator, translate_request, translate_response
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.registry import DialectName, dialect, dialect_name
from wireglot_core.ir.content import Message, Text, ToolCall, ToolResult
from wireglot_core.ir.loss import Feature
from wireglot_core.ir.outcome import Response, Stop, Usage
from wireglot_core.ir.request import Request, Tool
from wireglot_core.ir.stream import fold, unfold
from wireglot_core.testing.check_dialect import Case
from wireglot_core.testing.laws import read_stream
from wireglot_core.wire.json import decode, encode

MAY_DIFFER: dict[Feature, str] = {
    "foreign_part": "what a search has found is cited beside a Gemini answer, where no history has a place",
    "citations": "other dialects cite by other means: web pages only, no quotes, no proofs of a search",
    "content.position": "a Chat message has one place for each kind of content",
    "content.empty": "blank text, which Claude refuses and nobody else sends",
    "image": "answers of the client's dialect hold no images",
    "audio": "answers of the client's dialect hold no audio",
    "refusal": "a refusal is plain text in the client's dialect",
    "tool.namespace": "the client has declared no such namespace",
    "tool.custom": "the client has declared no freeform tool",
    "tool_call.arguments": "a call that its token limit has cut is nothing to run",
    "tool_result.pairing": "a call that its token limit has cut is nothing to run",
    "unknown_field": "a field that only its own dialect has",
}
"""What may come back otherwise, if that is reported. Nothing that a model thought, signed or called."""


def is_bare(case: Case) -> bool:
    """Whether the answer brought its reasoning in no form that its own upstream takes back."""
    return case.dialect == "openai-responses" and brought_no_state(case.body)


def is_explained(case: Case, client: DialectName) -> None:
    trip = round_trip(case, client, remembered=False)
    if trip is not None and trip.different:
        reported = {
            loss.feature for loss in trip.losses if loss.action in ("dropped", "approximated", "emulated")
        }
        may_differ = (
            {*MAY_DIFFER, "reasoning.text", "reasoning.signature"} if is_bare(case) else {*MAY_DIFFER}
        )
        assert reported & may_differ, (case.id, trip.different[0], trip.losses)


def loses_no_thought(case: Case, client: DialectName) -> None:
    trip = round_trip(case, client, remembered=False)
    if trip is not None and not is_bare(case):
        assert not [loss for loss in trip.losses if loss.feature.startswith("reasoning.text")], case.id


@pytest.mark.sampled("case.dialect", "client", each=4)
@rows("client", MAIN)
@rows("case", of_kind("responses"))
def test_an_answer_comes_back_as_it_was(case: Case, client: DialectName) -> None:
    if case.dialect in MAIN and client != case.dialect:
        is_explained(case, client)
        loses_no_thought(case, client)


@rows(("client", "upstream"), MAIN_PAIRS)
def test_recorded_answers_come_back_as_they_were(client: DialectName, upstream: DialectName) -> None:
    for case in recorded(upstream, "responses"):
        is_explained(case, client)
        loses_no_thought(case, client)


THOUGHTS: dict[DialectName, dict[str, Any]] = {
    "openai-chat": {
        "id": "c1",
        "object": "chat.completion",
        "created": 1,
        "model": "kimi-k2.6",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "reasoning_content": "Let me see.", "content": "Yes."},
                "finish_reason": "stop",
            }
        ],
    },
    "gemini": {
        "responseId": "r1",
        "modelVersion": "gemini-2.5-flash",
        "candidates": [
            {
                "content": {
                    "role": "model",
                    "parts": [{"text": "Let me see.", "thought": True}, {"text": "Yes."}],
                },
                "finishReason": "STOP",
            }
        ],
    },
    "openai-responses": {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "model": "gpt-oss-120b",
        "status": "completed",
        "output": [
            {
                "type": "reasoning",
                "id": "rs_1",
                "summary": [],
                "content": [{"type": "reasoning_text", "text": "Let me see."}],
            },
            {
                "type": "message",
                "id": "msg_1",
                "role": "assistant",
                "status": "completed",
                "content": [{"type": "output_text", "text": "Yes."}],
            },
        ],
    },
    "anthropic": {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "kimi-k2.6",
        "content": [{"type": "thinking", "thinking": "Let me see."}, {"type": "text", "text": "Yes."}],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    },
}
"""Thoughts that nobody signed, of each dialect that has them."""

_QUESTIONS: dict[DialectName, dict[str, Any]] = {
    "anthropic": {
        "model": "m",
        "max_tokens": 99,
        "messages": [
            {"role": "user", "content": "?"},
            {"role": "assistant", "content": "-"},
            {"role": "user", "content": "And?"},
        ],
    },
    "gemini": {
        "contents": [
            {"role": "user", "parts": [{"text": "?"}]},
            {"role": "model", "parts": [{"text": "-"}]},
            {"role": "user", "parts": [{"text": "And?"}]},
        ]
    },
}
_CHAT = {
    "model": "m",
    "messages": [
        {"role": "user", "content": "?"},
        {"role": "assistant", "content": "-"},
        {"role": "user", "content": "And?"},
    ],
}
_QUESTIONS["openai-chat"] = _CHAT
_QUESTIONS["openai-responses"] = {"model": "m", "input": _CHAT["messages"]}


def said(upstream: DialectName, body: dict[str, Any]) -> Any:
    """The turn of the model in a request, without what is spelling."""
    match upstream:
        case "gemini":
            return body["contents"][1]["parts"]
        case "openai-responses":
            keys = ("type", "role", "summary", "content")
            return [{key: item[key] for key in keys if key in item} for item in body["input"][1:-1]]
        case _:
            message = body["messages"][1]
            return {key: value for key, value in message.items() if key != "role"}


@rows("streamed", [False, True], ids=["whole", "streamed"])
@rows(("client", "upstream"), MAIN_PAIRS)
def test_an_unsigned_thought_comes_back_to_who_wrote_it(
    client: DialectName, upstream: DialectName, streamed: bool
) -> None:
    answer = THOUGHTS[upstream]
    reported = _reported(answer, upstream, client, streamed)
    asked = said_back(client, _QUESTIONS[client], reported)
    back = translate_request(asked, source=client, target=upstream)
    native = said_back(upstream, _QUESTIONS[upstream], answer)
    assert said(upstream, back.value) == said(upstream, native)
    assert not [loss for loss in back.losses if loss.action != "invented"]


@rows(("client", "upstream"), MAIN_PAIRS)
def test_an_unsigned_thought_goes_to_no_other_model(client: DialectName, upstream: DialectName) -> None:
    reported = translate_response(THOUGHTS[upstream], source=upstream, target=client)
    asked = said_back(client, _QUESTIONS[client], reported.value)
    for other in MAIN:
        target = dialect_name(other)
        back = translate_request(asked, source=client, target=target, model="another-model")
        if other != client:
            assert "Let me see." not in str(back.value)
            assert "reasoning.text" in {loss.feature for loss in back.losses}
        assert "V0cx" not in str(back.value)


HOSTED: dict[DialectName, list[dict[str, Any]]] = {
    "anthropic": [
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "q"}},
        {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []},
    ],
    "gemini": [
        {"executableCode": {"language": "PYTHON", "code": "1+1"}, "thoughtSignature": "c2ln"},
        {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "2"}},
    ],
    "openai-responses": [
        {
            "type": "web_search_call",
            "id": "ws_1",
            "status": "completed",
            "action": {"type": "search", "query": "q"},
        }
    ],
}
"""Parts of tools that the provider runs, before the text of the answer."""


def searched(upstream: DialectName) -> dict[str, Any]:
    answer: dict[str, Any] = decode(encode(THOUGHTS[upstream]))
    match upstream:
        case "anthropic":
            answer["content"][0:1] = HOSTED[upstream]
        case "gemini":
            answer["candidates"][0]["content"]["parts"][0:1] = HOSTED[upstream]
        case _:
            answer["output"][0:1] = HOSTED[upstream]
    return answer


@rows("streamed", [False, True], ids=["whole", "streamed"])
@rows(("client", "upstream"), [pair for pair in MAIN_PAIRS if pair[1] in HOSTED])
def test_what_a_hosted_tool_did_comes_back_to_its_provider(
    client: DialectName, upstream: DialectName, streamed: bool
) -> None:
    answer = searched(upstream)
    reported = _reported(answer, upstream, client, streamed)
    asked = said_back(client, _QUESTIONS[client], reported)
    back = translate_request(asked, source=client, target=upstream).value
    native = said_back(upstream, _QUESTIONS[upstream], answer)
    assert said(upstream, back) == said(upstream, native)
    for other in MAIN:
        if other != upstream:
            elsewhere = translate_request(asked, source=client, target=dialect_name(other))
            assert "V0cx" not in str(elsewhere.value)
            assert "foreign_part" in {loss.feature for loss in elsewhere.losses}


def test_what_a_hosted_tool_did_goes_to_no_other_provider_of_its_dialect() -> None:
    answer = searched("openai-responses")
    reported = translate_response(
        answer, source="openai-responses", target="anthropic", provider="openai"
    ).value
    asked = said_back("anthropic", _QUESTIONS["anthropic"], reported)
    same, other = (
        translate_request(asked, source="anthropic", target="openai-responses", provider=provider)
        for provider in ("openai", "openrouter")
    )
    assert "ws_1" in str(same.value)
    assert "ws_1" not in str(other.value)
    assert "foreign_part" in {loss.feature for loss in other.losses}


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_a_client_is_informed_that_it_does_not_see_a_hosted_tool(streamed: bool) -> None:
    answer = searched("anthropic")
    if streamed:
        whole = dialect("anthropic").parse_response(answer, Context())
        translator = StreamTranslator(source="anthropic", target="openai-responses")
        translator.feed(dialect("anthropic").stream_writer(Context(), None).write(unfold(whole)))
        translator.close()
        losses = translator.losses
    else:
        losses = list(translate_response(answer, source="anthropic", target="openai-responses").losses)
    assert [(loss.feature, loss.action) for loss in losses if loss.feature == "foreign_part"] == [
        ("foreign_part", "emulated")
    ] * 2


def _reported(
    answer: dict[str, Any], upstream: DialectName, client: DialectName, streamed: bool
) -> dict[str, Any]:
    if not streamed:
        return translate_response(answer, source=upstream, target=client).value
    context = Context()
    whole = dialect(upstream).parse_response(answer, context)
    data = dialect(upstream).stream_writer(context, None).write(unfold(whole))
    translator = StreamTranslator(source=upstream, target=client)
    data = translator.feed(data) + translator.close()
    heard = fold(read_stream(dialect(client), [data]))
    return dialect(client).render_response(heard, context).value


RECURRING = ToolCall("call_0", "look_up", '{"key":"b"}')
COUNTED_AGAIN = Request(
    "m",
    (
        Message("user", (Text("Look up a, then b."),)),
        Message("assistant", (ToolCall("call_0", "look_up", '{"key":"a"}'),)),
        Message("user", (ToolResult("call_0", (Text("1"),)),)),
    ),
    tools=(Tool("look_up", "Looks up.", {"type": "object", "properties": {"key": {"type": "string"}}}),),
    max_tokens=100,
)


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@rows(("client", "upstream"), MAIN_PAIRS)
def test_an_id_that_a_server_counts_again_is_another_one_to_the_client(
    client: DialectName, upstream: DialectName, streamed: bool
) -> None:
    asked = dialect(client).render_request(COUNTED_AGAIN, Context()).value
    calls = (RECURRING, msgspec.structs.replace(RECURRING, arguments='{"key":"c"}'))
    answer = Response("r1", "m", calls, Stop("end"), Usage(input=1, output=1))
    if streamed:
        data = dialect(upstream).stream_writer(Context()).write(list(unfold(answer)))
        translator = StreamTranslator(source=upstream, target=client, request=asked)
        out = translator.feed(data) + translator.close()
        content = fold(read_stream(dialect(client), [out])).content
    else:
        body = dialect(upstream).render_response(answer, Context()).value
        out_body = translate_response(body, source=upstream, target=client, request=asked).value
        content = dialect(client).parse_response(out_body, Context()).content
    ids = [part.id for part in content if type(part) is ToolCall]
    assert len({"call_0", *ids}) == 3, ids
