"""Nulls: an answer has null only where its vendor writes null, or where the types of the vendor's SDK have a field
that is never missing and may be null.

A published schema alone is no reason: clients are tried with what the vendor sends, and some refuse a null that it
never sends.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final, Literal

import pytest

from tests.core.laws import neutral
from tests.core.laws.cases import FIXTURES, MAIN, RECORDINGS
from tests.core.laws.strange_answers import STRANGE
from tests.recordings import recordings
from wireglot_core import StreamTranslator, translate_response
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.registry import NAMES, DialectName, dialect, surface
from wireglot_core.ir.content import Text
from wireglot_core.ir.errors import WireglotError
from wireglot_core.ir.hosted import HostedCall, HostedResult, RanCall, WebPage, WebSource
from wireglot_core.ir.outcome import Response, Stop
from wireglot_core.ir.stream import PartStart, check
from wireglot_core.testing.check_dialect import fixtures
from wireglot_core.wire.json import BadJson, decode
from wireglot_core.wire.sse import SseDecoder

Evidence = Literal["recorded", "typed"]
"""`recorded`: traffic of the vendor's own servers has it. `typed`: @anthropic-ai/sdk 1.10 or openai 7.55 declare
`T | null` without a question mark, and AI SDK 5 to 7 read it."""

NULLS: Final[dict[str, dict[str, Evidence]]] = {
    "anthropic": {
        "error.request_id": "recorded",
        "message_start.stop_details": "recorded",
        "message_start.stop_reason": "recorded",
        "message_start.stop_sequence": "recorded",
        "message_start.container": "typed",
        "message_start.usage.cache_creation": "typed",
        "message_start.usage.inference_geo": "typed",
        "message_start.usage.output_tokens_details": "typed",
        "message_start.usage.server_tool_use": "typed",
        "message_start.usage.service_tier": "typed",
        "message_delta.delta.stop_details": "recorded",
        "message_delta.delta.stop_sequence": "recorded",
        "message_delta.delta.container": "typed",
        "message_delta.usage.output_tokens_details": "typed",
        "message_delta.usage.server_tool_use": "typed",
        "message.stop_details": "recorded",
        "message.stop_sequence": "recorded",
        "message.container": "typed",
        "message.usage.cache_creation": "typed",
        "message.usage.inference_geo": "typed",
        "message.usage.output_tokens_details": "typed",
        "message.usage.server_tool_use": "typed",
        "message.usage.service_tier": "typed",
        "tool_search_tool_result_error.error_message": "typed",
        "web_search_result.page_age": "recorded",
        "web_fetch_result.content.title": "recorded",
    },
    "openai-chat": {
        "answer.choices[].logprobs": "recorded",
        "answer.choices[].logprobs.refusal": "recorded",
        "answer.choices[].message.content": "recorded",
        "answer.choices[].message.refusal": "recorded",
        "chunk.choices[].delta.content": "recorded",
        "chunk.choices[].delta.refusal": "recorded",
        "chunk.choices[].finish_reason": "recorded",
        "chunk.choices[].logprobs": "recorded",
        "chunk.choices[].logprobs.content": "typed",
        "chunk.choices[].logprobs.refusal": "recorded",
        "chunk.usage": "recorded",
        "error.code": "recorded",
        "error.param": "recorded",
    },
    "openai-responses": {
        "begun.completed_at": "recorded",
        "begun.usage": "recorded",
        "answer.completed_at": "recorded",
        "answer.error": "recorded",
        "answer.incomplete_details": "recorded",
        "answer.instructions": "recorded",
        "answer.max_output_tokens": "recorded",
        "answer.max_tool_calls": "recorded",
        "answer.previous_response_id": "recorded",
        "answer.prompt_cache_key": "recorded",
        "answer.prompt_cache_retention": "recorded",
        "answer.reasoning.effort": "recorded",
        "answer.reasoning.summary": "recorded",
        "answer.safety_identifier": "recorded",
        "answer.tools[].description": "recorded",
        "answer.text.format.description": "recorded",
        "answer.user": "recorded",
        "failed.usage": "typed",
        "mcp_call.approval_request_id": "recorded",
        "mcp_call.error": "recorded",
        "mcp_call.output": "recorded",
        "tool_search_call.call_id": "recorded",
        "tool_search_output.call_id": "recorded",
        "error.code": "recorded",
        "error.param": "recorded",
    },
}
"""By family. A dialect that is not here writes no null at all."""

VENDORS: Final = {
    "anthropic": "api.anthropic.com",
    "openai-chat": "api.openai.com",
    "openai-responses": "api.openai.com",
}
AS_SENT: Final = ("wire", "wire_sanitized", "chunks")
"""Recordings whose bodies no SDK has written again."""

FREE: Final = frozenset(
    {"arguments", "args", "input", "input_schema", "schema", "metadata", "tools[].parameters"}
)
"""Values of the client, of a model or of a tool, in which null is theirs."""
_HEAD: Final = {
    "response.created": "begun",
    "response.queued": "begun",
    "response.in_progress": "begun",
    "response.completed": "answer",
    "response.incomplete": "answer",
    "response.failed": "failed",
    "chat.completion": "answer",
    "chat.completion.chunk": "chunk",
    "response": "answer",
}
_BLOCKS: Final = re.compile(r"_call|_result|_use|_output|_list_tools")


def nulls(document: Any) -> Iterator[str]:
    """Where a document has null: `KIND.path`, where KIND is the kind of the document, or of the block in it."""
    if isinstance(document, dict):
        kind = document.get("type") or document.get("object")
        head = (
            _HEAD.get(kind, kind) if isinstance(kind, str) else "error" if "error" in document else "answer"
        )
        for holder in ("response", "message"):  # events that hold the whole answer
            if head in ("begun", "answer", "failed", "message_start") and isinstance(
                document.get(holder), dict
            ):
                document = document[holder]
        yield from _within(document, head)


def _within(value: Any, path: str) -> Iterator[str]:
    if isinstance(value, list):
        for each in value:
            yield from _within(each, f"{path}[]")
    elif isinstance(value, dict):
        kind = value.get("type")
        if isinstance(kind, str) and _BLOCKS.search(kind):
            path = kind
        for name, each in value.items():
            place = f"{path}.{name}"
            if each is None:
                yield "error." + name if ".error." in place or path == "error.error" else place
            elif name not in FREE and not place.endswith("tools[].parameters"):
                yield from _within(each, place)


def spelled(found: Iterator[str]) -> Iterator[str]:
    """What an answer that has begun or failed repeats is listed once, as that of a whole answer."""
    for place in found:
        head, _, field = place.partition(".")
        whole = head in ("begun", "failed") and field not in ("completed_at", "usage")
        yield f"answer.{field}" if whole or place == "failed.completed_at" else place


def documents(data: bytes) -> Iterator[Any]:
    if data.startswith((b"{", b"[")):  # lines, or one array
        whole = data.split(b"\n") if data.startswith(b"{") else (data,)
        for line in whole:
            if line.strip():
                yield decode(line)
        return
    decoder = SseDecoder()
    for frame in decoder.feed(data) + decoder.close():
        with suppress(BadJson):  # some recordings are cut
            if frame.data and frame.data != b"[DONE]":
                yield decode(frame.data)


def translated(target: DialectName) -> Iterator[Any]:
    """Every fixture of another family, and every strange answer."""
    for source in NAMES:
        if surface(source).family == surface(target).family:
            continue
        for case in (*fixtures(FIXTURES, source, "responses"), *fixtures(FIXTURES, source, "errors")):
            try:
                yield translate_response(case.body, source=source, target=target, status=case.status).value
            except WireglotError:
                continue
        streams = [case.data for case in fixtures(FIXTURES, source, "streams")]
        if source in MAIN:
            streams += [strange.stream for strange in STRANGE[source]]
        for data in streams:
            translator = StreamTranslator(source=source, target=target)
            yield from documents(translator.feed(data) + translator.close())


def said(target: DialectName) -> Iterator[Any]:
    """Everything that the neutral form can say."""
    codec, context = dialect(target), Context(model="m", now=1700000001)
    for _, answer in neutral.answers(neutral.ELSEWHERE):
        yield codec.render_response(answer, context, neutral.ASKED).value
    for _, asked in neutral.requests(neutral.ELSEWHERE):
        yield codec.render_response(Response("r", "m", (Text("Yes."),), Stop("end")), context, asked).value
    for _, told in neutral.streams(neutral.ELSEWHERE):
        writer = codec.stream_writer(context, neutral.ASKED)
        yield from documents(b"".join(writer.write([event]) for event in check(told)))
    for error in neutral.errors():
        yield codec.render_error(error, context).value


def hosted(target: DialectName) -> Iterator[Any]:
    """Blocks and items of tools that a gateway ran, with as little in them as there can be."""
    form = surface(target).client.hosted
    source = WebSource("https://a.example")
    results = {
        "web_search": [HostedResult(sources=(source,)), HostedResult(error="unavailable")],
        "web_fetch": [
            HostedResult(page=WebPage("https://a.example", text="a")),
            HostedResult(error="unavailable"),
        ],
        "mcp": [HostedResult(text="a"), HostedResult(error="unavailable", message="no")],
        "tool_search": [HostedResult(), HostedResult(error="unavailable")],
    }
    for kind, given in results.items():
        call = HostedCall(kind, "1", name="f", server="s")
        events = [*form.announce(call, 0)]
        for result in given:
            events += form.report(RanCall("1", call, result), 0)
        for event in events:
            value = getattr(event.part if isinstance(event, PartStart) else event, "value", None)
            if value is not None:
                yield value


@pytest.mark.parametrize("target", NAMES)
def test_a_null_is_written_only_where_the_vendor_or_its_sdk_has_one(target: DialectName) -> None:
    allowed = NULLS.get(surface(target).family, {})
    found: dict[str, Any] = {}
    for document in (*translated(target), *said(target), *hosted(target)):
        for place in spelled(nulls(document)):
            found.setdefault(place, document)
    assert not {place: found[place] for place in sorted(found.keys() - allowed.keys())}
    never_written = sorted(allowed.keys() - found.keys())
    assert not never_written


@pytest.mark.parametrize("family", NULLS)
def test_what_is_called_recorded_is_in_recordings(family: str) -> None:
    files = [RECORDINGS / f"{family.replace('-', '_')}.{kind}.jsonl.gz" for kind in ("unary", "stream")]
    if not all(file.is_file() for file in files):
        pytest.skip("no recordings here")
    seen: set[str] = set()
    for row in (row for file in files for row in recordings(file)):
        response = row["response"]
        if row["provider"] != VENDORS[family] or row["provenance"] not in AS_SENT:
            continue
        for document in documents(response.encode()) if isinstance(response, str) else [response]:
            seen.update(spelled(nulls(document)))
    missing = sorted({place for place, evidence in NULLS[family].items() if evidence == "recorded"} - seen)
    assert not missing
