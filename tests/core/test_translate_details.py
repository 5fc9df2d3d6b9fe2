"""The public functions in detail: defaults, what the request brings back, what a stream loses, limits."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec.structs import replace

import wireglot_core
from tests.core.dialects import acme
from tests.tiers import rows
from wireglot_core import Context, StreamTranslator, translate_request, translate_response
from wireglot_core.dialects.envelope import unseal
from wireglot_core.dialects.registry import register, unregister
from wireglot_core.ir.content import Message, Text
from wireglot_core.ir.loss import Loss
from wireglot_core.ir.request import Request, Sampling
from wireglot_core.providers.fit.fit import Fitter
from wireglot_core.providers.spec import limits_for
from wireglot_core.translate import NO_MODEL, plan, refuse_losses

ASKED: dict[str, Any] = {
    "model": "claude-sonnet-4-5",
    "max_tokens": 100,
    "messages": [{"role": "user", "content": "hi"}],
}
REQUEST = Request("", (Message("user", (Text("hi"),)),), sampling=Sampling(seed=1))


def responded(*texts: str) -> dict[str, Any]:
    """An answer of the Responses API."""
    content = [{"type": "output_text", "text": text, "annotations": []} for text in texts]
    message = {
        "type": "message",
        "id": "msg_1",
        "role": "assistant",
        "status": "completed",
        "content": content,
    }
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "model": "gpt-5",
        "status": "completed",
        "output": [message],
        "usage": {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3},
    }


def gemini(*parts: dict[str, Any], **more: Any) -> dict[str, Any]:
    content = {"role": "model", "parts": list(parts)}
    candidate = {"content": content, "finishReason": "STOP", "index": 0}
    return {"candidates": [candidate], "modelVersion": "gemini-3-pro", "responseId": "r", **more}


def chat(content: str | None = None, calls: Any = None, reason: str = "stop") -> dict[str, Any]:
    message = {"role": "assistant", "content": content, **({"tool_calls": calls} if calls else {})}
    choices = [{"index": 0, "message": message, "finish_reason": reason}]
    return {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": choices}


def streamed(translator: StreamTranslator, *documents: dict[str, Any]) -> str:
    frames = [translator.feed(b"data: " + json.dumps(each).encode() + b"\n\n") for each in documents]
    return (b"".join(frames) + translator.close()).decode()


# --- a plan


def test_a_model_is_invented_only_where_the_dialect_demands_one_and_no_one_names_it():
    for source, target, model, name, invented in (
        ("gemini", "openai-chat", None, NO_MODEL, True),
        (None, "openai-chat", None, NO_MODEL, True),
        ("gemini", "gemini", None, "", False),
        ("openai-chat", "openai-chat", None, "", False),
        ("openai-chat", "gemini", None, "", False),
        ("gemini", "openai-chat", "mine", "mine", False),
    ):
        planned = plan(REQUEST, source=source, target=target, model=model)
        assert planned.upstream.model == name
        assert any(loss.feature == "model" for loss in planned.losses) is invented
    kept = plan(replace(REQUEST, model="theirs"), source="gemini", target="openai-chat")
    assert kept.upstream.model == "theirs"


def test_a_plan_knows_who_answers_as_far_as_the_caller_says():
    context = Context(provider="kimi", model="before", seed="s")
    for provider, model, known in ((None, None, ("kimi", "")), ("openai", "m", ("openai", "m"))):
        found = plan(
            REQUEST, source="gemini", target="openai-chat", provider=provider, model=model, context=context
        ).context
        assert (found.provider, found.model, found.seed) == (*known, "s")


def test_a_request_of_the_same_dialect_is_fitted_where_a_provider_is_stated():
    named = Request("m", (Message("user", (Text("hi"),), "ann"),))
    strict = replace(limits_for("openai-chat", "m", ""), message_names=False)
    for stated, changed in (
        ({}, False),
        ({"limits": strict}, True),
        ({"fitter": Fitter.between(strict, "openai-chat", "openai-chat")}, True),
        ({"provider": "openai"}, True),
    ):
        given: dict[str, Any] = stated
        planned = plan(named, source="openai-chat", target="openai-chat", **given)
        assert (planned.trail is not None) is changed, stated
        loses = "limits" in stated or "fitter" in stated
        assert planned.upstream.messages[0].name == ("" if loses else "ann")
        assert [loss.feature for loss in planned.losses] == (["message.name"] if loses else [])
        assert planned.client is named


def test_a_model_that_does_not_reason_is_not_asked_for_its_thoughts():
    for target, model, reasons in (
        ("openai-responses", "gpt-5", True),
        ("openai-responses", "gpt-4.1", False),
        ("anthropic", "claude-sonnet-4-5", True),
    ):
        assert plan(REQUEST, source="gemini", target=target, model=model).context.reasons is reasons, model
    base = limits_for("openai-responses", "gpt-5", "")
    for limits, model in ((replace(base, thinking="none"), "gpt-5"), (base, "gpt-4.1")):
        planned = plan(REQUEST, source="gemini", target="openai-responses", model=model, limits=limits)
        assert not planned.context.reasons


def test_losses_of_a_renderer_are_reported_at_the_places_of_the_client():
    body = {**ASKED, "system": "be good", "messages": [{"role": "user", "content": "hi"}], "top_k": 3}
    out = translate_request(body, source="anthropic", target="openai-chat", model="m")
    assert [(loss.path, loss.feature) for loss in out.losses] == [("$.top_k", "sampling.top_k")]
    planned = plan(REQUEST, source="gemini", target="anthropic", model="m")
    assert planned.retraced(()) == ()
    loss = Loss("$.stop", "stop_sequences", "dropped")
    unfitted = plan(REQUEST, source="gemini", target="gemini", model="m")
    assert unfitted.retraced((loss,)) == (loss,)


# --- a request


def test_a_request_can_be_made_a_stream_or_a_whole_answer():
    for stated, stream, sent in ((True, None, True), (None, True, True), (True, False, False)):
        body = {**ASKED, **({"stream": stated} if stated is not None else {})}
        out = translate_request(body, source="anthropic", target="openai-chat", model="m", stream=stream)
        assert out.value.get("stream", False) is sent


def test_the_context_of_a_caller_is_used():
    """Its secret, which seals foreign state, and its ids."""
    mine = Context(secret=b"mine", seed="x")
    answer = gemini({"text": "hm", "thought": True}, {"text": "a"})
    for context, secret in ((mine, b"mine"), (None, Context().secret)):
        out = translate_response(answer, source="gemini", target="anthropic", context=context).value
        sealed = unseal(out["content"][0]["signature"], secret)
        assert sealed is not None
        assert sealed.signature.origin.dialect == "gemini"


def test_a_dialect_without_places_reports_neutral_ones():
    register(acme.DIALECT)
    try:
        assert acme.DIALECT.places is None
        body = {"engine": "x", "talk": [{"role": "user", "content": "Hello"}]}
        name = wireglot_core.dialect_name("acme")
        out = translate_request(body, source=name, target="anthropic")
        assert [(loss.path, loss.feature) for loss in out.losses] == [("$.max_tokens", "max_tokens")]
        back = translate_response(responded("Hi"), source="openai-responses", target=name)
        assert back.value["replies"][0]["message"]["content"] == "Hi"
    finally:
        unregister("acme")


# --- an answer


@rows(
    "stop, text, reason, ended",
    [(["END"], "one ", "stop_sequence", "END"), ([], "one END two", "end_turn", None)],
)
def test_stop_sequences_that_the_upstream_lacks_are_kept_by_cutting_the_answer(stop, text, reason, ended):
    asked = {**ASKED, "stop_sequences": stop}
    out = translate_response(
        responded("one END two"), source="openai-responses", target="anthropic", request=asked
    ).value
    assert (out["content"][0]["text"], out["stop_reason"], out["stop_sequence"]) == (text, reason, ended)


def test_stop_sequences_cut_a_stream_too():
    asked = {**ASKED, "stop_sequences": ["END"]}
    for request, text in ((asked, "one "), (ASKED, "one END two")):
        stream = StreamTranslator(source="openai-responses", target="anthropic", request=request)
        base = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
        whole = responded("one END two")
        begun = {**whole, "status": "in_progress", "output": [], "usage": None}
        item = {"type": "message", "id": "msg_1", "role": "assistant", "status": "in_progress", "content": []}
        part = {"type": "output_text", "text": "", "annotations": []}
        written = streamed(
            stream,
            {"type": "response.created", "response": begun},
            {"type": "response.output_item.added", "output_index": 0, "item": item},
            {"type": "response.content_part.added", **base, "part": part},
            {"type": "response.output_text.delta", **base, "delta": "one END"},
            {"type": "response.output_text.delta", **base, "delta": " two"},
            {"type": "response.output_text.done", **base, "text": "one END two"},
            {"type": "response.output_item.done", "output_index": 0, "item": whole["output"][0]},
            {"type": "response.completed", "response": whole},
        )
        deltas = [json.loads(line[6:]) for line in written.split("\n") if line.startswith("data: ")]
        said = "".join(
            each["delta"].get("text", "") for each in deltas if each["type"] == "content_block_delta"
        )
        assert said == text


def test_the_status_of_an_answer_makes_it_an_error():
    out = translate_response({"x": 1}, source="openai-chat", target="anthropic", status=503).value
    assert out["error"] == {"type": "overloaded_error", "message": "the upstream answered with status 503"}
    fine = translate_response(chat("hi"), source="openai-chat", target="anthropic").value
    assert fine["type"] == "message"


def test_what_an_answer_loses_is_refused_where_nothing_may_be_lost():
    ran = {"executableCode": {"language": "PYTHON", "code": "1"}}
    with pytest.raises(wireglot_core.StrictLoss) as refused:
        translate_response(gemini(ran, ran), source="gemini", target="anthropic", strict=True)
    assert refused.value.path == "$.content[0]"
    assert refused.value.message == (
        "foreign_part would be emulated: executableCode of gemini: carried, and returned unchanged (and 1 more)"
    )
    kept = translate_response(gemini(ran, ran), source="gemini", target="anthropic")
    assert [loss.path for loss in kept.losses] == ["$.content[0]", "$.content[1]"]
    fine = translate_response(gemini({"text": "a"}), source="gemini", target="anthropic", strict=True)
    assert fine.losses == ()


def test_losses_are_refused_with_the_worst_first():
    losses = (
        Loss("$.a", "metadata", "approximated", "one"),
        Loss("$.b", "image", "dropped", "two"),
    )
    for given, text, path in (
        (losses, "image would be dropped: two (and 1 more)", "$.b"),
        (losses[:1], "metadata would be approximated: one", "$.a"),
    ):
        with pytest.raises(wireglot_core.StrictLoss) as refused:
            refuse_losses(given)
        assert (refused.value.message, refused.value.path) == (text, path)
        refuse_losses(given, strict=False)
    refuse_losses(())


def test_what_nobody_signed_names_who_wrote_it():
    """By the model and provider that the caller names, or the model that the answer names."""
    answer = gemini({"text": "hm", "thought": True}, {"text": "a"})
    for how, provider, model in (
        ({}, "", "gemini-3-pro"),
        ({"model": "other", "provider": "gemini"}, "gemini", "other"),
        ({"context": Context(provider="vertex", model="before")}, "vertex", "before"),
    ):
        given: dict[str, Any] = how
        out = translate_response(answer, source="gemini", target="anthropic", **given).value
        sealed = unseal(out["content"][0]["signature"], Context().secret)
        assert sealed is not None
        origin = sealed.signature.origin
        assert (origin.dialect, origin.provider, origin.model) == ("gemini", provider, model)
        stream = StreamTranslator(source="gemini", target="anthropic", **given)
        assert out["content"][0]["signature"] in streamed(stream, answer)
    own = translate_response(answer, source="gemini", target="gemini").value
    assert own["candidates"][0]["content"]["parts"][0] == {"text": "hm", "thought": True}


def test_made_up_ids_differ_from_turn_to_turn_and_begin_as_the_client_expects():
    answer = gemini({"functionCall": {"name": "f", "args": {}}})
    turns = [
        [{"role": "user", "content": "hi"}],
        [
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": "a"},
            {"role": "user", "content": "b"},
        ],
    ]
    ids = []
    for messages in turns:
        asked = {**ASKED, "messages": messages}
        out = translate_response(answer, source="gemini", target="anthropic", request=asked).value
        ids.append(out["content"][0]["id"])
    assert len(set(ids)) == 2
    assert all(each.startswith("toolu_") for each in ids)
    seeded = [
        translate_response(
            answer,
            source="gemini",
            target="anthropic",
            request={**ASKED, "messages": messages},
            context=Context(seed="mine"),
        ).value["content"][0]["id"]
        for messages in turns
    ]
    assert seeded[0] == seeded[1]


def test_a_malformed_call_is_reported_as_its_dialect_has_it():
    answer = {
        "candidates": [
            {"content": {"role": "model", "parts": []}, "finishReason": "MALFORMED_FUNCTION_CALL"}
        ],
        "modelVersion": "m",
    }
    out = translate_response(answer, source="gemini", target="gemini").value
    assert out["candidates"][0]["finishReason"] == "MALFORMED_FUNCTION_CALL"
    other = translate_response(answer, source="gemini", target="openai-chat").value
    assert other["error"]["code"] == "malformed_tool_call"


def test_an_empty_answer_is_for_the_caller_to_judge():
    out = translate_response(chat(""), source="openai-chat", target="anthropic", request=ASKED).value
    assert (out["type"], out["content"]) == ("message", [])
    stream = StreamTranslator(source="openai-chat", target="anthropic", request=ASKED)
    chunk = {"id": "c", "created": 1, "model": "m", "object": "chat.completion.chunk"}
    text = streamed(stream, {**chunk, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    assert "message_stop" in text
    assert not stream.failed


def test_leaked_calls_are_read_in_the_same_dialect_as_well():
    leaked = (
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.weather:0"
        '<|tool_call_argument_begin|>{"city": "Paris"}<|tool_call_end|><|tool_calls_section_end|>'
    )
    tool = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}
    asked = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "tools": [tool]}
    for leaks, reason in ((True, "tool_calls"), (False, "stop")):
        out = translate_response(
            chat(leaked), source="openai-chat", target="openai-chat", request=asked, leaks_calls=leaks
        ).value
        assert out["choices"][0]["finish_reason"] == reason


def test_only_an_answer_may_be_in_an_array_of_one():
    for body, fine in ((b"[{}]", False), (b"[]", False), (b"[1]", False), (b"[{},{}]", False), (b"1", False)):
        with pytest.raises(wireglot_core.ClientFault, match="expected a JSON object"):
            translate_request(body, source="anthropic", target="gemini")
        if body != b"[{}]":
            with pytest.raises(wireglot_core.UpstreamFault, match="expected a JSON object"):
                translate_response(body, source="gemini", target="anthropic")
        assert not fine
    wrapped = json.dumps([gemini({"text": "a"})])
    out = translate_response(wrapped, source="gemini", target="anthropic").value
    assert out["content"][0]["text"] == "a"
    with pytest.raises(wireglot_core.UpstreamFault, match=r"expected a JSON object: the text ends too early"):
        translate_response(b"{", source="gemini", target="anthropic")


# --- a stream


def test_a_stream_says_nothing_until_it_has_something_to_say():
    stream = StreamTranslator(source="gemini", target="anthropic")
    assert stream.feed(b"") == b""
    assert stream.feed(b'data: {"candid') == b""
    assert stream.losses == []
    assert not stream.failed


def test_the_losses_of_a_stream_are_those_of_all_that_was_done_to_it():
    ran = {"executableCode": {"language": "PYTHON", "code": "1"}}
    answer = gemini({"text": "hm", "thought": True}, ran, {"text": "a"})
    stream = StreamTranslator(source="gemini", target="openai-chat", request=ASKED)
    streamed(stream, answer)
    whole = translate_response(answer, source="gemini", target="openai-chat", request=ASKED)
    assert {loss.feature for loss in stream.losses} == {loss.feature for loss in whole.losses} != set()
    assert stream.losses is not stream.losses, "a list of one's own"


def test_an_error_in_a_stream_is_written_as_the_clients_own():
    stream = StreamTranslator(source="anthropic", target="openai-chat")
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "later"}}
    text = stream.feed(b"event: error\ndata: " + json.dumps(error).encode() + b"\n\n") + stream.close()
    assert b"later" in text
    assert stream.failed


def test_a_leaked_call_of_a_renamed_function_comes_back_under_the_clients_name():
    tool = {"type": "function", "name": "read", "parameters": {"type": "object"}}
    space = {"type": "namespace", "name": "files", "description": "", "tools": [tool]}
    asked = {"model": "m", "input": "go", "tools": [space]}
    leaked = (
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.files__read:0"
        '<|tool_call_argument_begin|>{"path": "a"}<|tool_call_end|><|tool_calls_section_end|>'
    )
    how: dict[str, Any] = {"request": asked, "leaks_calls": True}
    out = translate_response(chat(leaked), source="openai-chat", target="openai-responses", **how).value
    (item,) = out["output"]
    assert (item["type"], item["namespace"], item["name"]) == ("function_call", "files", "read")
    stream = StreamTranslator(source="openai-chat", target="openai-responses", **how)
    delta = {"role": "assistant", "content": leaked}
    chunk = {"id": "c", "created": 1, "model": "m", "object": "chat.completion.chunk"}
    text = streamed(stream, {**chunk, "choices": [{"index": 0, "delta": delta, "finish_reason": "stop"}]})
    assert '"namespace":"files"' in text
