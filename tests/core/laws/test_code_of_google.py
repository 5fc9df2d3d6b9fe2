"""Code that the provider ran, between the two APIs of Google: each shows it in its own form, in answers and in
histories, and the provider that ran it gets back its own parts."""

from __future__ import annotations

from typing import Any

import pytest

from wireglot_core import StreamTranslator, translate_request, translate_response
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.registry import DialectName, dialect
from wireglot_core.ir.loss import Loss
from wireglot_core.ir.stream import fold, unfold
from wireglot_core.testing.laws import read_stream

GEMINI: DialectName = "gemini"
INTERACTIONS: DialectName = "gemini-interactions"
CODE = "print(1 + 1)"
PARTS: list[dict[str, Any]] = [
    {"executableCode": {"language": "PYTHON", "code": CODE}, "thoughtSignature": "c2ln"},
    {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "2\n"}},
    {"executableCode": {"language": "PYTHON", "code": "1 / 0"}},
    {"codeExecutionResult": {"outcome": "OUTCOME_FAILED", "output": "ZeroDivisionError"}},
]
STEPS: list[dict[str, Any]] = [
    {
        "type": "code_execution_call",
        "id": "c1",
        "arguments": {"code": CODE, "language": "python"},
        "signature": "c2ln",
    },
    {"type": "code_execution_result", "call_id": "c1", "result": "2\n", "signature": "c2lo"},
    {"type": "code_execution_call", "id": "c2", "arguments": {"code": "1 / 0", "language": "python"}},
    {"type": "code_execution_result", "call_id": "c2", "result": "ZeroDivisionError", "is_error": True},
]
SPOKEN: dict[str, Any] = {
    GEMINI: {
        "candidates": [
            {
                "content": {"role": "model", "parts": [*PARTS, {"text": "It is 2."}]},
                "finishReason": "STOP",
                "index": 0,
            }
        ],
        "usageMetadata": {"promptTokenCount": 3, "candidatesTokenCount": 4, "totalTokenCount": 7},
        "modelVersion": "m",
        "responseId": "r1",
    },
    INTERACTIONS: {
        "id": "v1_1",
        "object": "interaction",
        "status": "completed",
        "model": "m",
        "steps": [*STEPS, {"type": "model_output", "content": [{"type": "text", "text": "It is 2."}]}],
        "usage": {"total_input_tokens": 3, "total_output_tokens": 4, "total_tokens": 7},
    },
}
ASKED: dict[str, Any] = {
    GEMINI: {
        "contents": [{"role": "user", "parts": [{"text": "1+1?"}]}],
        "tools": [{"codeExecution": {}}],
    },
    INTERACTIONS: {
        "model": "m",
        "input": [{"type": "user_input", "content": [{"type": "text", "text": "1+1?"}]}],
        "tools": [{"type": "code_execution"}],
        "store": False,
    },
}
PAIRS = [(GEMINI, INTERACTIONS), (INTERACTIONS, GEMINI)]
STREAMED = pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
BETWEEN = pytest.mark.parametrize(("client", "upstream"), PAIRS)


def reported(
    client: DialectName, upstream: DialectName, streamed: bool, answer: dict[str, Any] | None = None
) -> list[dict[str, Any]]:
    """The turn that the client gets, as parts or steps."""
    said = answer or SPOKEN[upstream]
    context, asked = Context(), ASKED[client]
    if not streamed:
        out = translate_response(said, source=upstream, target=client, request=asked).value
    else:
        events = unfold(dialect(upstream).parse_response(said, context))
        translator = StreamTranslator(source=upstream, target=client, request=asked)
        data = translator.feed(dialect(upstream).stream_writer(context, None).write(events))
        heard = fold(read_stream(dialect(client), [data + translator.close()]))
        out = dialect(client).render_response(heard, context).value
    turn: list[dict[str, Any]] = turn_of(client, out)
    return turn


def turn_of(client: DialectName, answer: dict[str, Any]) -> Any:
    return answer["candidates"][0]["content"]["parts"] if client == GEMINI else answer["steps"]


def history(client: DialectName, turn: list[dict[str, Any]]) -> dict[str, Any]:
    """A request that continues after the turn."""
    asked = ASKED[client]
    if client == GEMINI:
        more = {"role": "user", "parts": [{"text": "Sure?"}]}
        return {**asked, "contents": [*asked["contents"], {"role": "model", "parts": turn}, more]}
    more = {"type": "user_input", "content": [{"type": "text", "text": "Sure?"}]}
    return {**asked, "input": [*asked["input"], *turn, more]}


def sent(upstream: DialectName, body: dict[str, Any]) -> Any:
    """The turn of the model in a request."""
    return body["contents"][1]["parts"] if upstream == GEMINI else body["input"][1:-1]


def in_own_form(turn: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """What a client sees of the code: what ran, and how it ended. Ids pair each result with its call."""
    seen: list[tuple[Any, ...]] = []
    called: list[str] = []
    for each in turn:
        if "executableCode" in each:
            seen.append((each["executableCode"]["language"].lower(), each["executableCode"]["code"]))
        elif "codeExecutionResult" in each:
            result = each["codeExecutionResult"]
            seen.append((result["output"], result["outcome"] != "OUTCOME_OK"))
        elif each.get("type") == "code_execution_call":
            called.append(each["id"])
            seen.append((each["arguments"]["language"], each["arguments"]["code"]))
        elif each.get("type") == "code_execution_result":
            assert each["call_id"] == called[-1]
            seen.append((each["result"], each.get("is_error", False)))
    assert len({*called}) == len(called)
    return seen


RAN = [("python", CODE), ("2\n", False), ("python", "1 / 0"), ("ZeroDivisionError", True)]


@STREAMED
@BETWEEN
def test_a_client_sees_the_code_that_ran_in_its_own_form(
    client: DialectName, upstream: DialectName, streamed: bool
) -> None:
    assert in_own_form(reported(client, upstream, streamed)) == RAN


@STREAMED
@BETWEEN
def test_the_code_comes_back_to_its_provider_once_and_signed(
    client: DialectName, upstream: DialectName, streamed: bool
) -> None:
    asked = history(client, reported(client, upstream, streamed))
    back = translate_request(asked, source=client, target=upstream)
    own = history(upstream, turn_of(upstream, SPOKEN[upstream]))
    native = translate_request(own, source=upstream, target=upstream).value
    assert sent(upstream, back.value) == sent(upstream, native)
    assert not [loss for loss in back.losses if loss.feature in ("foreign_part", "reasoning.signature")]


@BETWEEN
def test_code_of_the_clients_own_history_is_sent_in_the_providers_form(
    client: DialectName, upstream: DialectName
) -> None:
    own = turn_of(client, SPOKEN[client])
    out = translate_request(history(client, own), source=client, target=upstream)
    assert in_own_form(sent(upstream, out.value)) == RAN
    assert "c2l" not in str(out.value)
    place = "$.contents[1].parts" if client == GEMINI else "$.input"
    assert {(loss.feature, loss.action) for loss in out.losses if loss.path.startswith(place)} == {
        ("reasoning.signature", "dropped")
    }


@BETWEEN
def test_another_provider_reads_the_code_of_the_last_one(client: DialectName, upstream: DialectName) -> None:
    """What only its own provider can read is reported; the code itself is not lost."""
    out = translate_response(
        SPOKEN[upstream], source=upstream, target=client, request=ASKED[client], provider="gemini"
    ).value
    asked = history(client, turn_of(client, out))
    out = translate_request(asked, source=client, target=upstream, provider="vertex").value
    assert in_own_form(sent(upstream, out)) == RAN
    assert "c2l" not in str(out)
    own = translate_request(asked, source=client, target=client).value
    assert in_own_form(sent(client, own)) == RAN


def named(losses: tuple[Loss, ...]) -> list[tuple[str, str, str]]:
    """The losses of the conversation."""
    return [
        (loss.path, loss.feature, loss.action)
        for loss in losses
        if loss.feature not in ("model", "hosted_tool")
    ]


def test_what_a_form_has_no_place_for_is_reported() -> None:
    picture = {"type": "image", "data": "aGk=", "mime_type": "image/png"}
    steps: list[dict[str, Any]] = [
        {"type": "code_execution_call", "id": "c1", "arguments": {"code": "ls", "language": "bash"}},
        {
            "type": "code_execution_result",
            "call_id": "c1",
            "result": [{"type": "text", "text": "a"}, picture],
        },
    ]
    out = translate_request(history(INTERACTIONS, steps), source=INTERACTIONS, target=GEMINI)
    assert sent(GEMINI, out.value) == [
        {"executableCode": {"language": "LANGUAGE_UNSPECIFIED", "code": "ls", "id": "c1"}},
        {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "a", "id": "c1"}},
    ]
    assert named(out.losses) == [
        ("$.input[1]", "foreign_part", "approximated"),
        ("$.input[2]", "image", "dropped"),
    ]
    late = {"codeExecutionResult": {"outcome": "OUTCOME_DEADLINE_EXCEEDED", "output": ""}}
    out = translate_request(history(GEMINI, [PARTS[2], late]), source=GEMINI, target=INTERACTIONS)
    assert sent(INTERACTIONS, out.value)[1]["is_error"] is True
    assert named(out.losses) == [("$.contents[1].parts[1]", "foreign_part", "approximated")]


def test_results_in_another_order_stay_with_their_code() -> None:
    turn = [STEPS[0], STEPS[2], STEPS[3], STEPS[1]]
    there = translate_request(history(INTERACTIONS, turn), source=INTERACTIONS, target=GEMINI).value
    kinds = ("executableCode", "codeExecutionResult")
    ids = [part[kind]["id"] for part in sent(GEMINI, there) for kind in kinds if kind in part]
    assert ids == ["c1", "c2", "c2", "c1"]
    back = translate_request(there, source=GEMINI, target=INTERACTIONS).value
    assert sent(INTERACTIONS, back) == [
        {key: value for key, value in step.items() if key != "signature"} for step in turn
    ]


@BETWEEN
@pytest.mark.parametrize("place", [0, 1], ids=["code", "result"])
def test_code_without_a_result_is_reported_and_a_result_without_code(
    client: DialectName, upstream: DialectName, place: int
) -> None:
    turn = turn_of(client, SPOKEN[client])[place : place + 1]
    out = translate_request(history(client, [*turn, *_words(client)]), source=client, target=upstream)
    assert in_own_form(sent(upstream, out.value)) == []
    assert [loss.action for loss in out.losses if loss.feature == "foreign_part"] == ["dropped"]


def _words(client: DialectName) -> list[dict[str, Any]]:
    return [turn_of(client, SPOKEN[client])[-1]]


@STREAMED
@BETWEEN
def test_a_client_that_asked_for_no_code_execution_is_shown_none(
    client: DialectName, upstream: DialectName, streamed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = {key: value for key, value in ASKED[client].items() if key != "tools"}
    monkeypatch.setitem(ASKED, client, asked)
    assert in_own_form(reported(client, upstream, streamed)) == []


@STREAMED
@pytest.mark.parametrize("upstream", [GEMINI, INTERACTIONS])
def test_clients_without_a_form_for_it_are_shown_no_code(upstream: DialectName, streamed: bool) -> None:
    tools = [
        {"type": "web_search_20250305", "name": "web_search"},
        {"type": "code_execution_20250825", "name": "code_execution"},
    ]
    asked = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "?"}], "tools": tools}
    if not streamed:
        out = translate_response(SPOKEN[upstream], source=upstream, target="anthropic", request=asked).value
        assert {block["type"] for block in out["content"]} == {"redacted_thinking", "text"}
        return
    events = unfold(dialect(upstream).parse_response(SPOKEN[upstream], Context()))
    translator = StreamTranslator(source=upstream, target="anthropic", request=asked)
    data = translator.feed(dialect(upstream).stream_writer(Context(), None).write(events))
    assert b'"type":"server_tool_use"' not in data + translator.close()
