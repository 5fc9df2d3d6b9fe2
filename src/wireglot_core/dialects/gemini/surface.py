"""Gemini over HTTP."""

from __future__ import annotations

import re
from typing import Any, Final

from wireglot_core.dialects.body import MEDIA_MARKS, Body, whole_number
from wireglot_core.dialects.envelope import BODY_MARK, PLACEHOLDERS
from wireglot_core.dialects.faults import UPSTREAM_AUTH, plain_status
from wireglot_core.dialects.gemini.counts import COUNTS
from wireglot_core.dialects.gemini.embeddings import EMBEDDINGS
from wireglot_core.dialects.gemini.errors import owns_error
from wireglot_core.dialects.gemini.generation import asks_thinking
from wireglot_core.dialects.gemini.hosted import HOSTED
from wireglot_core.dialects.gemini.names import OWN
from wireglot_core.dialects.gemini.outcome import check_usage
from wireglot_core.dialects.gemini.tap import GeminiTap, glance
from wireglot_core.dialects.google_shared import EMBED_VERBS, MODELS
from wireglot_core.dialects.passthrough import WORDS
from wireglot_core.dialects.surface import (
    ClientSide,
    Operation,
    ReasoningState,
    RouteMatch,
    StreamMarks,
    Surface,
    UpstreamSide,
    complains,
    in_every_answer,
)
from wireglot_core.ir.errors import ApiError

VERBS: Final[dict[str, tuple[Operation, bool | None]]] = {
    "generateContent": ("generate", False),
    "streamGenerateContent": ("generate", True),
    "countTokens": ("count", None),
}
_MARKS: Final = StreamMarks(
    signs=(b"tool", b"unctionC", b"MALFORMED_", b"TOOL_CALL", b"MISSING_"),
    calls=re.compile(
        rb'"functionCall"|MALFORMED_|UNEXPECTED_TOOL_CALL|TOO_MANY_TOOL_CALLS|MISSING_THOUGHT_SIGNATURE'
    ),
    thoughts=re.compile(rb'"thought"\s*:\s*true'),
    more=re.compile(rb'"finishReason"\s*:\s*"|"text"\s*:\s*"[^"]'),
    pieces=b'"willContinue"',
)
_VERSIONS: Final = ("/v1/", "/v1beta/", "/v1alpha/", "/v1beta1/")
_SAID_BY_HTTP: Final = frozenset({405, 408, 415, 426})
_STATE_REFUSED: Final = re.compile(r"thought.?signature", re.IGNORECASE)  # missing, corrupted, not base64


def find(method: str, path: str) -> RouteMatch | None:
    """`/v1beta/models/x:generateContent`, also without `models/` (the AI SDK, for names with a slash) and in
    Vertex's long form."""
    before, colon, verb = path.rpartition(":")
    known = VERBS.get(verb)
    if method != "POST" or not colon or not before.startswith(_VERSIONS):
        return None
    if known is None and verb not in EMBED_VERBS:
        return None
    name = before.partition("/models/")[2] or before.split("/", 2)[2]
    if known is None:
        return RouteMatch("embed", name, False, EMBED_VERBS[verb])
    return RouteMatch(known[0], name, known[1])


def status(error: ApiError) -> int:
    if error.kind == "auth":
        return 400
    if error.kind == "billing":
        return 429
    usual = plain_status(error)
    if error.kind == "invalid_request" and usual not in _SAID_BY_HTTP:
        return 400  # Google uses no other, and repeats it in the body
    return 500 if error.code == UPSTREAM_AUTH else usual


def asked_output(body: Body) -> int:
    return output_of(generation(body.outline))


def asked_answers(body: Body) -> int:
    return answers_of(generation(body.outline))


def generation(request: Any) -> dict[str, Any]:
    """The `generationConfig` of a request or of its outline."""
    for name in ("generationConfig", "generation_config"):
        found = request.get(name)
        if isinstance(found, dict):
            return found
    return {}


def output_of(config: dict[str, Any]) -> int:
    return whole_number(config.get("maxOutputTokens", config.get("max_output_tokens")))


def answers_of(config: dict[str, Any]) -> int:
    return whole_number(config.get("candidateCount", config.get("candidate_count")))


_UNSERVED: Final = {
    ":asyncBatchEmbedContent": "batches",
    ":embedText": "embeddings of PaLM",
    ":predict": "predictions (embeddings, images)",
    ":predictLongRunning": "videos",
    ":generateImages": "images",
    ":batchGenerateContent": "batches",
    ":bidiGenerateContent": "live sessions",
    "/v1beta/files": "files",
    "/v1/cachedContents": "explicit caches",
    "/v1beta/cachedContents": "explicit caches",
    "/v1beta/batches": "batches",
}


SURFACE: Final = Surface(
    name=OWN,
    family=OWN,
    client=ClientSide(
        turns="contents",
        find=find,
        lists=("/v1/models", "/v1beta/models", "/v1alpha/models", "/v1beta1/models"),
        endpoints=tuple(f"POST /v1beta/models/{{model}}:{verb}" for verb in (*VERBS, *EMBED_VERBS)),
        prefixes=("/v1beta/", "/v1alpha/", "/v1beta1/"),
        vendor_headers=("x-goog-api-key", "x-goog-api-client"),
        unserved=_UNSERVED,
        key_headers=(("x-goog-api-key", ""),),
        key_query="key",
        glance=None,
        asked_output=asked_output,
        asked_answers=asked_answers,
        timeout_field="timeout",
        conversation_field="conversation",
        gateway_fields=frozenset({"conversation"}),
        sealed_marks=(BODY_MARK,),
        media_marks=MEDIA_MARKS,
        pings={"sse": b"\n", "json-array": b" "},  # its clients would read a comment as data
        words=WORDS,
        leaves_out_calls=True,  # they are sent in one piece
        tells_usage=in_every_answer,
        owns_error=owns_error,
        hosted=HOSTED,
    ),
    upstream=UpstreamSide(
        paths={
            "generate": "/models/{model}:generateContent",
            "stream": "/models/{model}:streamGenerateContent?alt=sse",
            "count": "/models/{model}:countTokens",
            "embed": "/models/{model}:batchEmbedContents",
            "embed_one": "/models/{model}:embedContent",
            "models": "/models",
        },
        request_id_headers=("x-goog-request-id",),
        telemetry_operation="generate_content",
    ),
    model_field="",
    sse_query="alt=sse",
    stop_sequences="hidden",
    status=status,
    tap=GeminiTap,
    marks=_MARKS,
    glance=glance,
    # Gemini's command line leaves thoughts out.
    reasoning=ReasoningState(
        returns="own",
        drops_thoughts=True,
        bare_signatures=True,
        asks_thinking=asks_thinking,
        placeholders=tuple(text.encode() for text in sorted(PLACEHOLDERS)),
        returns_pieces=True,
        signs_texts=True,
        shown_marks=(b"thoughtSignature", b"thought_signature"),
        takes_bypass=True,
        is_refusal=complains(_STATE_REFUSED),
    ),
    models=MODELS,
    counts=COUNTS,
    check_usage=check_usage,
    embeddings=EMBEDDINGS,
)
