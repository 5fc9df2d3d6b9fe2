"""Ollama's native API over HTTP."""

from __future__ import annotations

import re
from functools import partial
from typing import Final

from msgspec.structs import replace

from wireglot_core.dialects.body import (
    Body,
    RequestGlance,
    glance_body,
    one_answer,
    whole_number,
)
from wireglot_core.dialects.faults import UPSTREAM_AUTH, kind_of_message, kind_of_status, plain_status
from wireglot_core.dialects.ollama.answer import CHAT, idle_answer
from wireglot_core.dialects.ollama.contexts import CONTEXTS
from wireglot_core.dialects.ollama.embeddings import EMBEDDINGS
from wireglot_core.dialects.ollama.errors import owns_error
from wireglot_core.dialects.ollama.extras import NAME
from wireglot_core.dialects.ollama.framing import CONTENT_TYPE, LineFramer, LineUnframer
from wireglot_core.dialects.ollama.models import ASSIST, LATEST, MODELS
from wireglot_core.dialects.ollama.outcome import USAGE_FIELDS
from wireglot_core.dialects.ollama.tap import OllamaTap, glance
from wireglot_core.dialects.passthrough import WORDS
from wireglot_core.dialects.surface import (
    CONFIRM,
    ClientSide,
    Probe,
    ReasoningState,
    Route,
    StreamFraming,
    Surface,
    UpstreamFraming,
    UpstreamSide,
    complains,
    in_every_answer,
)
from wireglot_core.ir.errors import ApiError

KEY_ROOT: Final = "/ollama/"
"""Many of Ollama's clients cannot send a key: it may follow this path prefix."""

_UNSERVED: Final = {
    "/api/push": "uploads of models",
    "/api/create": "new models",
    "/api/copy": "copies of models",
    "/api/delete": "deletions of models",
}


def glance_request(body: Body) -> RequestGlance:
    """The model and stream flag; without the flag an answer is a stream."""
    seen = glance_body(body)
    return seen if seen.stream is not None else RequestGlance(seen.model, True)


def asked_output(body: Body) -> int:
    options = body.outline.get("options") if "options" in body.outline.members else None
    return whole_number(options.get("num_predict")) if type(options) is dict else 0


_NO_THINKING: Final = re.compile(
    r"does not support thinking|cannot unmarshal \w+ into Go struct field \S*\.think\b|invalid think value"
)
"""Also the words of servers that know `think` as a boolean only, before levels existed."""
_OF_SERVERS: Final = frozenset({"server", "overloaded", "timeout"})


def status(error: ApiError) -> int:
    """The error's own status, unless that means another kind of error: the body has no kind."""
    if error.code == UPSTREAM_AUTH:
        return 500
    stated = plain_status(error)
    kind = kind_of_message(kind_of_status(stated), error.message)
    if kind == error.kind or (kind in _OF_SERVERS and error.kind in _OF_SERVERS):
        return stated
    return plain_status(replace(error, status=0))


_WORDS: Final = re.compile(WORDS.pattern.replace(b"text|", b"text|response|"))


SURFACE: Final = Surface(
    name=NAME,
    family=NAME,
    client=ClientSide(
        turns="messages",
        routes=(
            Route("POST", "/api/chat", "generate"),
            Route("POST", "/api/embed", "embed"),
            Route("POST", "/api/embeddings", "embed", "embed_one"),
            Route("GET", "/api/tags", "models"),
            Route("POST", "/api/show", "model"),
            Route("POST", "/api/pull", "model", CONFIRM),
            Route("GET", "/api/ps", "assist", "ps"),
            Route("GET", "/api/version", "assist", "version"),
        ),
        endpoints=(
            "POST /api/chat",
            "POST /api/embed",
            "POST /api/embeddings",
            "GET /api/tags",
            "POST /api/show",
            "POST /api/pull",
            "GET /api/ps",
            "GET /api/version",
        ),
        prefixes=("/api/",),
        probes={KEY_ROOT.rstrip("/"): Probe(("GET", "HEAD"), text="Ollama is running")},
        unserved=_UNSERVED,
        key_headers=(("authorization", "bearer "),),
        key_root=KEY_ROOT,
        key_hint=f"a client that cannot send one takes it as part of its base URL: {KEY_ROOT}KEY",
        typed_bodies=False,  # the examples of Ollama's documentation use curl with `-d` alone
        framing=StreamFraming(CONTENT_TYPE, LineFramer),
        glance=glance_request,
        asked_output=asked_output,
        idle=partial(idle_answer, asks={"messages": ([],)}, shape=CHAT),
        asked_answers=one_answer,
        media_marks=(b'"images"',),
        pings={"sse": b": ping\n\n"},
        words=_WORDS,
        leaves_out_calls=True,  # they are sent in one piece
        tells_usage=in_every_answer,
        owns_error=owns_error,
        alias_suffix=LATEST,
    ),
    upstream=UpstreamSide(
        paths={
            "generate": "/api/chat",
            "stream": "/api/chat",
            "embed": "/api/embed",
            "embed_one": "/api/embeddings",
            "models": "/api/tags",
            "shown": "/api/show",
            "running": "/api/ps",
        },
        framing=UpstreamFraming(CONTENT_TYPE, LineUnframer),
        contexts=CONTEXTS,
    ),
    stop_sequences="hidden",
    status=status,
    tap=OllamaTap,
    glance=glance,
    reasoning=ReasoningState(
        returns="own",
        drops_thoughts=True,
        shows=("on", "auto", "effort"),
        shows_unasked=True,
        takes_unsigned=lambda _: True,
        turn_marks=(b'"assistant"',),
        shown_marks=(b'"thinking"',),
        has_none=complains(_NO_THINKING),
    ),
    models=MODELS,
    check_usage=USAGE_FIELDS.problems,
    assist=ASSIST,
    embeddings=EMBEDDINGS,
)
