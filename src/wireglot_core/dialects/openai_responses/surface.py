"""OpenAI Responses over HTTP."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from msgspec.structs import replace

from wireglot_core.dialects.body import (
    MEDIA_MARKS,
    glance_body,
    one_answer,
    session_by_cache_key,
    stated_in,
)
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.counting import counting_only, input_tokens
from wireglot_core.dialects.envelope import BODY_MARK
from wireglot_core.dialects.faults import plain_status
from wireglot_core.dialects.openai_responses.hosted import HOSTED
from wireglot_core.dialects.openai_responses.outcome import USAGE_FIELDS
from wireglot_core.dialects.openai_responses.output import is_raw, without_ids
from wireglot_core.dialects.openai_responses.parse_request import parse_request
from wireglot_core.dialects.openai_responses.render_request import render_request
from wireglot_core.dialects.openai_responses.repair import ArgumentsRepair
from wireglot_core.dialects.openai_responses.socket import WEBSOCKETS
from wireglot_core.dialects.openai_responses.spelling import NAME
from wireglot_core.dialects.openai_responses.stored import STORED
from wireglot_core.dialects.openai_responses.tap import ResponsesTap, glance
from wireglot_core.dialects.openai_shared import MODELS, VENDOR, owns_error
from wireglot_core.dialects.passthrough import WORDS
from wireglot_core.dialects.surface import (
    ClientSide,
    Counts,
    ReasoningState,
    Route,
    StreamMarks,
    Surface,
    UpstreamSide,
    complains,
    in_every_answer,
    session_facts,
)
from wireglot_core.ir.content import Foreign, Part, Text
from wireglot_core.ir.purpose import Purpose, RequestFacts, client_word
from wireglot_core.ir.request import Request
from wireglot_core.ir.turns import last_words

_UNSIGNED: Final = b'"rs_wg'
"""Unsigned reasoning, marked by an id prefix of Wireglot."""

_STATE_REFUSED: Final = re.compile(
    r"encrypted.?content.{0,60}(?:could not be|cannot be|invalid|verif|decrypt|did not match)"
    r"|invalid_encrypted_content"
    r"|without its required '?(?:reasoning'? item|following item)"
    r"|item (?:with id )?'rs_[^']*' .{0,40}not found",
    re.IGNORECASE | re.DOTALL,
)

_MARKS: Final = StreamMarks(
    signs=(b"tool", b"unction_", b"se.created"),
    calls=re.compile(rb'"function_call"'),
    thoughts=re.compile(rb'"response\.reasoning_(?:summary_)?text\.delta"'),
    more=re.compile(rb'"response\.(?:output|completed|incomplete|failed)'),
    start=re.compile(rb'event: ?response\.created\s+data:[^\r\n]*|"response\.created"'),
)
_NO_STATE: Final = re.compile(r"encrypted.?content is not supported", re.IGNORECASE)
"""The wording of OpenAI and Azure for models that do not reason."""

_NO_SUMMARY: Final = re.compile(r"must be verified to generate reasoning summaries", re.IGNORECASE)
"""The wording of OpenAI for an organization that is not verified (BerriAI/litellm issue 16032)."""

_OWN_PATHS: Final = (
    Route("POST", "/v1/responses", "generate"),
    Route("POST", "/v1/responses/input_tokens", "count"),
    Route("POST", "/v1/responses/compact", "compact", "compact"),
    Route("GET", "/v1/responses/*", "state", "responses.get"),
    Route("DELETE", "/v1/responses/*", "state", "responses.delete"),
    Route("POST", "/v1/responses/*/cancel", "state", "responses.cancel"),
    Route("GET", "/v1/responses/*/input_items", "state", "responses.input_items"),
    Route("POST", "/v1/conversations", "state", "conversations.create"),
    Route("GET", "/v1/conversations/*", "state", "conversations.get"),
    Route("POST", "/v1/conversations/*", "state", "conversations.update"),
    Route("DELETE", "/v1/conversations/*", "state", "conversations.delete"),
    Route("POST", "/v1/conversations/*/items", "state", "items.create"),
    Route("GET", "/v1/conversations/*/items", "state", "items.list"),
    Route("GET", "/v1/conversations/*/items/*", "state", "items.get"),
    Route("DELETE", "/v1/conversations/*/items/*", "state", "items.delete"),
)
_ROOTS: Final = ("", "/openai")


def failed_search(request: Request, why: str, context: Context) -> tuple[Part, ...]:
    """The items of a web search that failed: its call, and an explanation."""
    asked = last_words(request.messages)
    call = {
        "type": "web_search_call",
        "id": context.new_id("ws", asked),
        "status": "failed",
        "action": {"type": "search", "query": asked, "queries": [asked]},
    }
    return Foreign(NAME, "web_search_call", call), Text(f"The web was not searched: {why}.")


COUNTED: Final = frozenset(
    {
        "model", "input", "instructions", "tools", "tool_choice", "parallel_tool_calls", "reasoning",
        "text", "truncation", "previous_response_id", "conversation", "personality",
    }
)  # fmt: skip
"""The request fields that the counter accepts; others (stream, sampling) are refused."""


def parse_count(body: dict[str, Any], context: Context) -> Request:
    if body.get("input") or not body.get("instructions"):
        return parse_request(body, context)
    # Instructions and tools alone can be counted, though not answered.
    request = parse_request({**body, "input": ""}, context)
    return replace(request, messages=request.messages[:1])


def render_count(tokens: int) -> dict[str, Any]:
    return {"object": "response.input_tokens", "input_tokens": tokens}


_COUNTS: Final = Counts(
    parse_request=parse_count,
    render_answer=render_count,
    render_request=counting_only(render_request, COUNTED),
    parse_answer=input_tokens,
    same_body=True,
)


_REQUEST_KIND: Final = re.compile(r'"request_kind": ?"([a-z_]{1,64})"')
_KINDS: Final[Mapping[str, Purpose]] = {
    "turn": "main",
    "compaction": "compaction",
    "compact": "compaction",
    "memory_consolidation": "background",
}
"""Codex's names for a request or a sub-agent. Any other sub-agent is `subagent`; any other request is
background."""


def facts(headers: Mapping[str, str]) -> RequestFacts:
    """Codex names the kind of a request in a JSON header, and its sub-agents in separate headers (seen with
    0.169.0)."""
    metadata = headers.get("x-codex-turn-metadata")
    agent = client_word(headers.get("x-openai-subagent"))
    if metadata is None and not agent:
        return session_facts(headers)
    found = _REQUEST_KIND.search(metadata or "")
    kind = found[1] if found is not None else ""
    purpose: Purpose = _KINDS.get(kind, "background") if kind else ""
    if not agent:
        return RequestFacts(purpose, kind)
    if purpose in ("", "main"):
        purpose = _KINDS.get(agent, "subagent")
    parent = client_word(headers.get("x-codex-parent-thread-id"))
    return RequestFacts(purpose, kind, agent, client_word(headers.get("thread-id")), parent)


SURFACE: Final = Surface(
    name=NAME,
    family=NAME,
    vendor=VENDOR,
    client=ClientSide(
        turns="input",
        failed_search=failed_search,
        hosted=HOSTED,
        routes=tuple(
            Route(route.method, root + route.path, route.operation, route.verb)
            for root in _ROOTS
            for route in _OWN_PATHS
        ),
        lists=("/v1/models", "/openai/v1/models"),
        endpoints=("POST /v1/responses", "POST /v1/responses/input_tokens"),
        prefixes=tuple(root + path for root in _ROOTS for path in ("/v1/responses", "/v1/conversations")),
        key_headers=(("authorization", "bearer "),),
        glance=glance_body,
        asked_output=stated_in("max_output_tokens"),
        asked_answers=one_answer,
        timeout_field="timeout",
        session=session_by_cache_key,
        facts=facts,
        conversation_field="conversation",  # a field of the dialect itself, not an extension of the gateway
        state_fields=("previous_response_id", "conversation", "background"),
        sealed_marks=(BODY_MARK, _UNSIGNED),
        media_marks=MEDIA_MARKS,
        pings={"sse": b": ping\n\n"},
        words=WORDS,
        leaves_out_calls=True,  # its item is incomplete
        tells_usage=in_every_answer,
        owns_error=owns_error,
        spent_quota="billing",
    ),
    upstream=UpstreamSide(
        paths={
            "generate": "/responses",
            "stream": "/responses",
            "compact": "/responses/compact",
            "count": "/responses/input_tokens",
            "models": "/models",
        },
        passed_headers=("openai-beta",),
        returned_headers=("openai-processing-ms",),
        request_id_headers=("x-request-id",),
    ),
    status=plain_status,
    tap=ResponsesTap,
    repair=ArgumentsRepair,
    marks=_MARKS,
    glance=glance,
    reasoning=ReasoningState(
        returns="own",
        takes_unsigned=is_raw,
        is_refusal=complains(_STATE_REFUSED, "invalid_encrypted_content"),
        has_none=complains(_NO_STATE),
        has_no_summary=complains(_NO_SUMMARY),
        without_state=without_ids,
    ),
    models=MODELS,
    counts=_COUNTS,
    check_usage=USAGE_FIELDS.problems,
    stored=STORED,
    websockets=WEBSOCKETS,
)
