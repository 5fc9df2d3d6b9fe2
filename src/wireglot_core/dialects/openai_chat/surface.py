"""OpenAI's Chat Completions over HTTP."""

from __future__ import annotations

import re
from typing import Final

from wireglot_core.dialects.body import MEDIA_MARKS, glance_body, session_by_cache_key, stated_in
from wireglot_core.dialects.capabilities import HostedForm
from wireglot_core.dialects.envelope import BODY_MARK
from wireglot_core.dialects.faults import plain_status
from wireglot_core.dialects.openai_chat.embeddings import EMBEDDINGS
from wireglot_core.dialects.openai_chat.extras import DONE, NAME
from wireglot_core.dialects.openai_chat.outcome import USAGE_FIELDS, tells_usage
from wireglot_core.dialects.openai_chat.repeated_calls import CallRepair
from wireglot_core.dialects.openai_chat.tap import STREAM_USAGE, ChatTap, glance
from wireglot_core.dialects.openai_shared import MODELS, VENDOR, owns_error
from wireglot_core.dialects.passthrough import WORDS
from wireglot_core.dialects.surface import (
    ClientSide,
    ReasoningState,
    Route,
    StreamMarks,
    Surface,
    UpstreamSide,
    complains,
)

_MARKS: Final = StreamMarks(
    signs=(b"tool", b"unction_"),
    calls=re.compile(rb'"tool_calls"\s*:\s*\[\s*\{|"function_call"\s*:\s*\{'),
    thoughts=re.compile(rb'"(?:reasoning_content|reasoning)"\s*:\s*"[^"]'),
    more=re.compile(
        rb'"finish_reason"\s*:\s*"[^"]|\[DONE\]|"(?:text|content|refusal)"\s*:\s*"[^"]|"(?:images|audio)"\s*:\s*[\[{]'
    ),
)

_UNSERVED: Final = {
    "/v1/completions": "plain completions",
    "/images/generations": "images",
    "/images/edits": "images",
    "/images/variations": "images",
    "/audio/speech": "speech and transcriptions",
    "/audio/transcriptions": "speech and transcriptions",
    "/audio/translations": "speech and transcriptions",
    "/v1/moderations": "moderations",
    "/v1/files": "files",
    "/v1/uploads": "files",
    "/v1/batches": "batches",
    "/v1/vector_stores": "vector stores",
    "/v1/assistants": "assistants",
    "/v1/threads": "assistants",
    "/v1/videos": "videos",
    "/realtime/sessions": "realtime sessions",
}


_UNTAKEN: Final = (
    r"unsupported|not (?:be )?(?:supported|permitted|allowed)|extra (?:inputs|fields)"
    r"|unexpected|unknown|unrecognized"
)
_REASONING_REFUSED: Final = re.compile(
    rf"reasoning_content.{{0,60}}(?:{_UNTAKEN})|(?:{_UNTAKEN}).{{0,80}}reasoning_content"
    rf"|messages?\b.{{0,40}}\breasoning(?![\w.]).{{0,60}}(?:{_UNTAKEN})"
    rf"|(?:{_UNTAKEN}).{{0,80}}messages?\b.{{0,40}}\breasoning(?![\w.])",
    re.IGNORECASE | re.DOTALL,
)
"""Groq's wording ("property 'reasoning_content' is unsupported"), and that of servers that validate with
pydantic ("Extra inputs are not permitted, field: 'messages[1].reasoning_content'"): some servers return
reasoning in a field that they do not accept."""


SURFACE: Final = Surface(
    name=NAME,
    family=NAME,
    vendor=VENDOR,
    client=ClientSide(
        turns="messages",
        routes=(
            Route("POST", "/v1/chat/completions", "generate"),
            Route("POST", "/openai/v1/chat/completions", "generate"),
            Route("POST", "/v1beta/openai/chat/completions", "generate"),
            Route("POST", "/v1/embeddings", "embed"),
            Route("POST", "/openai/v1/embeddings", "embed"),
            Route("POST", "/v1beta/openai/embeddings", "embed"),
        ),
        lists=("/v1/models", "/openai/v1/models", "/v1beta/openai/models"),
        endpoints=("POST /v1/chat/completions", "POST /v1/embeddings"),
        prefixes=("/v1beta/openai/",),
        unserved=_UNSERVED,
        key_headers=(("authorization", "bearer "),),
        glance=glance_body,
        asked_output=stated_in("max_completion_tokens", "max_tokens"),
        asked_answers=stated_in("n"),
        timeout_field="timeout",
        session=session_by_cache_key,
        conversation_field="conversation",
        gateway_fields=frozenset({"conversation"}),
        sealed_marks=(BODY_MARK,),
        media_marks=MEDIA_MARKS,
        pings={"sse": b": ping\n\n"},
        words=WORDS,
        end_frame=DONE,
        leaves_out_calls=True,  # the finish reason shows that it was cut
        tells_usage=tells_usage,
        owns_error=owns_error,
        spent_quota="billing",
        hosted=HostedForm(tool_marks={"tools": (b"web_search",), "web_search_options": (b"",)}),
    ),
    upstream=UpstreamSide(
        paths={
            "generate": "/chat/completions",
            "stream": "/chat/completions",
            "embed": "/embeddings",
            "models": "/models",
        },
        passed_headers=("openai-beta",),
        returned_headers=("openai-processing-ms",),
        request_id_headers=("x-request-id", "msh-request-id"),  # the second one is Kimi's
        stream_usage=STREAM_USAGE,
        has_variants=True,
    ),
    stop_sequences="hidden",
    status=plain_status,
    tap=ChatTap,
    repair=CallRepair,
    marks=_MARKS,
    glance=glance,
    # Chat has no field for reasoning; the one for Gemini's signatures does not name the minter, and another
    # model or account would be sent them in vain.
    reasoning=ReasoningState(
        returns="own",
        drops_thoughts=True,
        shows=("on", "auto", "effort"),
        bare_signatures=True,
        hosts=("gemini",),
        takes_unsigned=lambda _: True,
        turn_marks=(b'"assistant"',),
        shown_marks=(b'"reasoning_content"', b'"reasoning"', b'"reasoning_details"', b'"thinking"'),
        is_refusal=complains(_REASONING_REFUSED),
    ),
    models=MODELS,
    check_usage=USAGE_FIELDS.problems,
    embeddings=EMBEDDINGS,
)
