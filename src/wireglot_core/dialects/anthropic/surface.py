"""Anthropic Messages over HTTP."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from wireglot_core.dialects.anthropic.budgets import BUDGETS
from wireglot_core.dialects.anthropic.errors import owns_error
from wireglot_core.dialects.anthropic.hosted import HOSTED
from wireglot_core.dialects.anthropic.invoked_stream import AMAZON, InvokedStream
from wireglot_core.dialects.anthropic.models import ALIAS, MODELS, managed_settings
from wireglot_core.dialects.anthropic.names import NAME
from wireglot_core.dialects.anthropic.outcome import USAGE_FIELDS
from wireglot_core.dialects.anthropic.parse_request import parse_request
from wireglot_core.dialects.anthropic.render_request import render_request
from wireglot_core.dialects.anthropic.repair import MessageRepair
from wireglot_core.dialects.anthropic.safeguards import ASKED
from wireglot_core.dialects.anthropic.settings import asks_thinking
from wireglot_core.dialects.anthropic.tap import MessageTap, glance, in_answer, in_opening
from wireglot_core.dialects.anthropic.tools import tool_changes
from wireglot_core.dialects.body import (
    MEDIA_MARKS,
    glance_body,
    one_answer,
    session_in_metadata,
    stated_in,
)
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.counting import counting_only, input_tokens
from wireglot_core.dialects.envelope import BODY_MARK
from wireglot_core.dialects.faults import UPSTREAM_AUTH, own_status
from wireglot_core.dialects.passthrough import WORDS
from wireglot_core.dialects.surface import (
    AskedModel,
    ClientSide,
    Counts,
    Probe,
    ReasoningState,
    Route,
    StreamMarks,
    Surface,
    Thread,
    UpstreamSide,
    complains,
    in_every_answer,
    session_facts,
)
from wireglot_core.ir.content import Extra, Foreign, Part, Text
from wireglot_core.ir.errors import MODEL_DENIED, ApiError
from wireglot_core.ir.purpose import Purpose, RequestFacts, client_word
from wireglot_core.ir.request import HostedTool, Request
from wireglot_core.ir.turns import last_words

VERSION: Final = "2023-06-01"

_NO_THREAD: Final = ApiError(
    "invalid_request",
    "thread: this model keeps no conversation on the server; send the whole history",
    code="thread_unsupported_request",
)
_STATE_REFUSED: Final = re.compile(
    r"invalid `?(?:signature|data)`? in `?(?:redacted_)?thinking"
    r"|thinking.{0,80}(?:cannot be modified|bound to a different)"
    r"|bound to a different (?:conversation|account|model|organi[sz]ation)"
    r"|expected `?thinking`? or `?redacted_thinking`?"
    r"|cannot contain `?(?:redacted_)?thinking"
    r"|thinking\.(?:signature|data)\b|redacted_thinking\.data\b",
    re.IGNORECASE | re.DOTALL,
)


def status(error: ApiError) -> int:
    if error.kind == "overloaded":
        return 529
    if error.code == MODEL_DENIED:
        return 400
    return 500 if error.code == UPSTREAM_AUTH else own_status(error)


_MARKS: Final = StreamMarks(
    signs=(b"tool", b"_st"),
    calls=re.compile(rb'"tool_use"'),
    thoughts=re.compile(rb'"thinking_delta"'),
    more=re.compile(rb'"stop_reason"\s*:\s*"|"text"\s*:\s*"[^"]'),
    start=re.compile(rb'event: ?message_start\s+data:[^\r\n]*|"message_start"'),
    blocks=b"content_block_st",
)

_UNSERVED: Final = {"/v1/messages/batches": "batches", "/v1/skills": "skills"}


_SEARCH_ERROR: Final = {"type": "web_search_tool_result_error", "error_code": "unavailable"}


def failed_search(request: Request, why: str, context: Context) -> tuple[Part, ...]:
    """The blocks of a web search that failed: its call, its error (HTTP stays 200), and an explanation."""
    asked = last_words(request.messages)
    identifier = context.new_id("srvtoolu", asked)
    fetches = all(isinstance(tool, HostedTool) and tool.kind == "web_fetch" for tool in request.tools)
    name, given = ("web_fetch", "url") if fetches else ("web_search", "query")
    caller = {"type": "direct"}
    call = {
        "type": "server_tool_use",
        "id": identifier,
        "name": name,
        "input": {given: asked},
        "caller": caller,
    }
    result = {
        "type": f"{name}_tool_result",
        "tool_use_id": identifier,
        "content": {**_SEARCH_ERROR, "type": f"{name}_tool_result_error"},
        "caller": caller,
    }
    return (
        Foreign(NAME, "server_tool_use", call),
        Foreign(NAME, f"{name}_tool_result", result),
        Text(f"The web was not searched: {why}."),
    )


COUNTED: Final = frozenset(
    {
        "model", "messages", "system", "tools", "tool_choice", "thinking", "output_config",
        "cache_control", "context_management", "compaction", "mcp_servers", "speed",
    }
)  # fmt: skip
"""The request fields that the counter accepts; others (max_tokens, stream, sampling) are refused."""


def render_count(tokens: int) -> dict[str, Any]:
    return {"input_tokens": tokens}


_COUNTS: Final = Counts(
    parse_request=parse_request,
    render_answer=render_count,
    render_request=counting_only(render_request, COUNTED),
    parse_answer=input_tokens,
    same_body=True,
)


_CLASSES: Final[Mapping[str, Purpose]] = {
    "main": "main",
    "side_reply": "main",
    "subagent": "subagent",
    "workflow": "subagent",
    "compaction": "compaction",
    "auxiliary": "auxiliary",
}
"""All request classes of Claude Code 2.1.326."""
_UNATTENDED: Final = frozenset({"summary-extraction", "followup-generation", "background-task"})
"""Values of its second header when no one waits. The safety checks of auto mode, web searches and the like
are `auxiliary` too, with `main` in that header: a model that is good enough for titles may not be for
them."""


def facts(headers: Mapping[str, str]) -> RequestFacts:
    """Claude Code always sends the ids of a sub-agent and its parent. Its request class and the type of the
    agent it sends to gateways only with `CLAUDE_CODE_GATEWAY_HINT_HEADERS=1` (seen with 2.1.326)."""
    word = headers.get("x-claude-code-request-class")
    agent = headers.get("x-claude-code-agent-id")
    if word is None and agent is None:
        return session_facts(headers)
    word = client_word(word)
    purpose = _CLASSES.get(word) or ("subagent" if agent else "")
    if purpose == "auxiliary":
        other = headers.get("x-claude-1p-request-class", "")
        purpose, word = ("background", other) if other in _UNATTENDED else (purpose, word)
    return RequestFacts(
        purpose,
        word,
        client_word(headers.get("x-claude-code-agent-type")),
        client_word(agent),
        client_word(headers.get("x-claude-code-parent-agent-id")),
    )


SURFACE: Final = Surface(
    name=NAME,
    family=NAME,
    client=ClientSide(
        turns="messages",
        safeguards=ASKED,
        alias_prefix=ALIAS,
        managed=managed_settings,
        failed_search=failed_search,
        hosted=HOSTED,
        routes=(
            Route("POST", "/v1/messages", "generate"),
            Route("POST", "/anthropic/v1/messages", "generate"),
            Route("POST", "/v1/messages/count_tokens", "count"),
            Route("POST", "/anthropic/v1/messages/count_tokens", "count"),
            Route("GET", "/managed/settings", "managed"),
            # OpenTelemetry over HTTP, which Claude Code sends to the gateway that it is signed in to.
            *(Route("POST", f"/v1/{name}", "telemetry", name) for name in ("metrics", "logs", "traces")),
            # Claude Code's `/usage` and status line, of a session that is signed in to a gateway.
            Route("GET", "/api/oauth/usage", "state", "budgets"),
            Route("GET", "/anthropic/api/oauth/usage", "state", "budgets"),
        ),
        lists=("/v1/models", "/anthropic/v1/models"),
        endpoints=("POST /v1/messages", "POST /v1/messages/count_tokens", "GET /api/oauth/usage"),
        probes={
            # Claude Code 2.1.325 warms its connection with HEAD here.
            "/api/hello": Probe(("GET", "HEAD"), {"message": "hello"}),
            # Claude Code's own usage events, if its base URL is a gateway: accepted and discarded unread.
            "/api/event_logging/batch": Probe(("POST",), {}),
            "/api/event_logging/v2/batch": Probe(("POST",), {}),
        },
        headers=("anthropic-version",),
        prefixes=("/anthropic/", "/v1/messages"),
        unserved=_UNSERVED,
        key_headers=(("authorization", "bearer "), ("x-api-key", "")),
        glance=glance_body,
        asked_output=stated_in("max_tokens"),
        asked_answers=one_answer,
        timeout_field="timeout",
        session_headers=("x-claude-code-session-id",),
        session=session_in_metadata,
        facts=facts,
        conversation_field="conversation",
        gateway_fields=frozenset({"conversation"}),
        sealed_marks=(BODY_MARK,),
        media_marks=MEDIA_MARKS,
        tool_changes=tool_changes,
        thread=Thread(
            "thread",
            _NO_THREAD,
            {
                "type": "error",
                "error": {
                    "type": "invalid_request_error",
                    "message": _NO_THREAD.message,
                    "details": {"error_code": "thread_unsupported_request", "unsupported": ["thread"]},
                },
            },
        ),
        pings={"sse": b'event: ping\ndata: {"type": "ping"}\n\n'},
        words=WORDS,
        pauses=True,
        leaves_out_calls=True,  # its block is closed, and the stop reason shows that it was cut
        tells_usage=in_every_answer,
        usage_first=True,
        owns_error=owns_error,
        call_prefix="toolu",
        identity_headers=("request-id",),
        spent_quota="billing",
        budgets=BUDGETS,
        asked_model=AskedModel(in_answer, in_opening),
    ),
    upstream=UpstreamSide(
        pauses=True,
        paths={
            "generate": "/v1/messages",
            "stream": "/v1/messages",
            "count": "/v1/messages/count_tokens",
            "models": "/v1/models",
        },
        passed_headers=("anthropic-version", "anthropic-beta"),
        body_headers=(
            (b'"mcp_servers":', ("anthropic-beta", "mcp-client-2025-11-20")),
            # https://platform.claude.com/docs/build-with-claude/fast-mode: some models refuse it without.
            (b'"speed":"fast"', ("anthropic-beta", "fast-mode-2026-02-01")),
        ),
        fixed_headers=(("anthropic-version", VERSION),),
        quota_headers=("anthropic-ratelimit-",),
        request_id_headers=("request-id", "x-amzn-requestid"),
        framings={AMAZON: InvokedStream},
    ),
    stop_sequences="told",
    status=status,
    tap=MessageTap,
    repair=MessageRepair,
    marks=_MARKS,
    glance=glance,
    reasoning=ReasoningState(
        returns="own",
        asks_thinking=asks_thinking,
        shows=("on",),
        shows_unasked=True,
        thinks_only_with_state=True,
        is_refusal=complains(_STATE_REFUSED, "invalid_thinking_signature"),
        unsigned=Extra(NAME, form={"signature": "absent"}),
        between_tools=Extra(NAME, {"type": "between_tools"}),
        shows_by_effort=False,
    ),
    models=MODELS,
    counts=_COUNTS,
    check_usage=USAGE_FIELDS.problems,
)
