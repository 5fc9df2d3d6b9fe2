"""Required fields: an answer has every field that its vendor's OpenAPI document requires, null where it says nothing.

The lists are those of the documents that llm-comply 0.5 brings; `make judges` checks against the documents themselves.
Fields that we add this way say nothing, so they are neither losses nor content when they come back.
"""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.core.laws.cases import FIXTURES, MAIN, MAIN_PAIRS, all_hold, recorded
from tests.tiers import rows
from wireglot_core import StreamTranslator, translate_response
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.registry import DialectName, dialect, dialect_name
from wireglot_core.ir.errors import WireglotError
from wireglot_core.ir.loss import Loss
from wireglot_core.testing.check_dialect import Case, fixtures
from wireglot_core.wire.json import decode
from wireglot_core.wire.sse import SseDecoder

REQUIRED = {
    "Message": "id type role content model stop_reason stop_sequence stop_details usage container",
    "Usage": "cache_creation cache_creation_input_tokens cache_read_input_tokens inference_geo input_tokens "
    "output_tokens output_tokens_details server_tool_use service_tier",
    "MessageDelta": "container stop_details stop_reason stop_sequence",
    "MessageDeltaUsage": "cache_creation_input_tokens cache_read_input_tokens input_tokens output_tokens "
    "output_tokens_details server_tool_use",
    "text": "citations text type",
    "tool_use": "caller id input name type",
    "thinking": "signature thinking type",
    "redacted_thinking": "data type",
    "chat.completion": "choices created id model object",
    "chat.completion.chunk": "choices created id model object",
    "choice": "finish_reason index message logprobs",
    "chunk choice": "delta finish_reason index",
    "ChatCompletionResponseMessage": "role content refusal",
    "ResponseResource": "id object created_at completed_at status incomplete_details model previous_response_id "
    "instructions output error tools tool_choice truncation parallel_tool_calls text top_p presence_penalty "
    "frequency_penalty top_logprobs temperature reasoning usage max_output_tokens max_tool_calls store background "
    "service_tier metadata safety_identifier prompt_cache_key",
    "message": "type id status role content",
    "function_call": "type id call_id name arguments status",
    "reasoning": "type id summary",
    "output_text": "type text annotations",
}
Objects = Iterator[tuple[str, dict[str, Any]]]


def of_anthropic(value: dict[str, Any]) -> Objects:
    match value.get("type"):
        case "message":
            yield "Message", value
            yield "Usage", value["usage"]
            for block in value["content"]:
                yield block["type"], block
        case "message_start":
            yield from of_anthropic(value["message"])
        case "content_block_start":
            yield value["content_block"]["type"], value["content_block"]
        case "message_delta":
            yield "MessageDelta", value["delta"]
            yield "MessageDeltaUsage", value["usage"]


def of_chat(value: dict[str, Any]) -> Objects:
    if "error" in value:
        return
    yield value["object"], value
    for choice in value["choices"]:
        if value["object"] == "chat.completion":
            yield "choice", choice
            yield "ChatCompletionResponseMessage", choice["message"]
        else:
            yield "chunk choice", choice


def of_responses(value: dict[str, Any]) -> Objects:
    if "response" in value:
        yield from of_responses(value["response"])
    if "item" in value:
        yield value["item"]["type"], value["item"]
    if value.get("object") == "response":
        yield "ResponseResource", value
        for item in value["output"]:
            yield item["type"], item
            for part in item.get("content") or ():
                yield part["type"], part


OBJECTS = {"anthropic": of_anthropic, "openai-chat": of_chat, "openai-responses": of_responses}


def complete(values: list[dict[str, Any]], target: str) -> None:
    missing = {
        f"{name}.{field}"
        for value in values
        for name, found in OBJECTS[target](value)
        for field in REQUIRED.get(name, "").split()
        if field not in found
    }
    assert not missing, f"{target}: {sorted(missing)}"


def crossed(case: Case, target: DialectName) -> list[dict[str, Any]]:
    if case.data:
        translator = StreamTranslator(source=dialect_name(case.dialect), target=target)
        decoder = SseDecoder()
        frames = decoder.feed(translator.feed(case.data) + translator.close()) + decoder.close()
        return [decode(frame.data) for frame in frames if frame.data and frame.data != b"[DONE]"]
    try:
        return [translate_response(case.body, source=dialect_name(case.dialect), target=target).value]
    except WireglotError:
        return []


@rows("kind", ["responses", "streams"])
@rows(("source", "target"), [pair for pair in MAIN_PAIRS if pair[1] in OBJECTS])
def test_a_translated_answer_has_every_required_field(source, target, kind):
    cases = (*fixtures(FIXTURES, source, kind), *recorded(source, kind, 30))
    all_hold(cases, lambda case: complete(crossed(case, target), target))


def says_the_same(case: Case, through: str) -> None:
    """Losses of an answer toward its own dialect, read back from another one."""
    there = dialect(through)
    answer = dialect(case.dialect).parse_response(case.body, Context())
    reported = there.render_response(answer, Context()).value
    if "error" in reported:
        return
    for name in MAIN:
        losses = dialect(name).render_response(there.parse_response(reported, Context()), Context()).losses
        made_up = [loss for loss in losses if loss.path.rpartition(".")[2] in _NULLS]
        assert not made_up, f"to {name}: {_named(made_up)}"


_NULLS = frozenset({"stop_details", "container", "inference_geo", "server_tool_use", "caller", "annotations"})


def _named(losses: list[Loss]) -> list[str]:
    return [f"{loss.path} {loss.feature}" for loss in losses]


@pytest.mark.parametrize("through", OBJECTS)
def test_a_field_that_is_null_by_our_making_is_no_loss_when_it_comes_back(through):
    plain = [case for name in MAIN if name != through for case in fixtures(FIXTURES, name, "responses")]
    all_hold(plain, lambda case: says_the_same(case, through))
