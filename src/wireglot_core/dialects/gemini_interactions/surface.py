"""Gemini Interactions over HTTP."""

from __future__ import annotations

import re
from typing import Final

from wireglot_core.dialects.body import (
    MEDIA_MARKS,
    BadField,
    Body,
    RequestGlance,
    glance_body,
    one_answer,
    whole_number,
)
from wireglot_core.dialects.envelope import BODY_MARK, PLACEHOLDERS
from wireglot_core.dialects.faults import plain_status
from wireglot_core.dialects.fields import object_in
from wireglot_core.dialects.gemini_interactions.errors import owns_error
from wireglot_core.dialects.gemini_interactions.hosted import HOSTED
from wireglot_core.dialects.gemini_interactions.names import OWN
from wireglot_core.dialects.gemini_interactions.outcome import USAGE_FIELDS
from wireglot_core.dialects.gemini_interactions.render_steps import resumed
from wireglot_core.dialects.gemini_interactions.settings import GENERATION
from wireglot_core.dialects.gemini_interactions.stored import STORED
from wireglot_core.dialects.gemini_interactions.tap import MARKS, InteractionsTap, glance
from wireglot_core.dialects.google_shared import MODELS, VENDOR
from wireglot_core.dialects.passthrough import WORDS
from wireglot_core.dialects.surface import (
    ClientSide,
    ReasoningState,
    Route,
    RouteMatch,
    Surface,
    UpstreamSide,
    complains,
    in_every_answer,
)

_STATE_REFUSED: Final = re.compile(r"thought.{0,12}signature", re.IGNORECASE)
_VERSIONS: Final = ("/v1", "/v1beta")
VERTEX_VERSIONS: Final = ("v1", "v1beta1")
_VERTEX: Final = re.compile(
    rf"/(?:{'|'.join(VERTEX_VERSIONS)})/projects/[^/]+/locations/[^/]+/interactions(?:/([^/]+)(/cancel)?)?/?"
)
AGENT: Final = "agent"
_PATHS: Final = (
    Route("POST", "/interactions", "generate"),
    Route("GET", "/interactions/*", "state", "responses.get"),
    Route("DELETE", "/interactions/*", "state", "responses.delete"),
    Route("POST", "/interactions/*/cancel", "state", "responses.cancel"),
)


def find(method: str, path: str) -> RouteMatch | None:
    """Parses Vertex's long form of the paths."""
    found = _VERTEX.fullmatch(path)
    if found is None:
        return None
    id, cancel = found.groups()
    if id is None:
        return RouteMatch("generate") if method == "POST" else None
    verb = {("GET", None): "get", ("DELETE", None): "delete", ("POST", "/cancel"): "cancel"}.get(
        (method, cancel)
    )
    return RouteMatch("state", verb=f"responses.{verb}", ids=(id,)) if verb is not None else None


def glance_request(body: Body) -> RequestGlance:
    """An agent is routed by its name, like a model."""
    seen, agent = glance_body(body), body.outline.get(AGENT)
    if agent is None or seen.model:
        return seen
    if type(agent) is not str:
        raise BadField("agent: expected a string", "$.agent")
    if body.outline.get("background") is True and not seen.stream:
        detail = (
            "background results of an agent are stored by Google: stream the request, or call Google directly"
        )
        raise BadField(f"background: {detail}", "$.background", "failed_precondition")
    return RequestGlance(agent, seen.stream)


def asked_output(body: Body) -> int:
    return whole_number(object_in(body.outline.get(GENERATION)).get("max_output_tokens"))


SURFACE: Final = Surface(
    name=OWN,
    family=OWN,
    vendor=VENDOR,
    client=ClientSide(
        turns="input",
        routes=tuple(
            Route(route.method, version + route.path, route.operation, route.verb)
            for version in _VERSIONS
            for route in _PATHS
        ),
        find=find,
        endpoints=("POST /v1/interactions", "POST /v1beta/interactions"),
        prefixes=tuple(f"{version}/interactions" for version in _VERSIONS),
        version=("Api-Revision", "2026-05-20"),  # before it: `outputs` in place of `steps`
        key_headers=(("x-goog-api-key", ""),),
        key_query="key",
        glance=glance_request,
        agent_field=AGENT,
        asked_output=asked_output,
        asked_answers=one_answer,
        timeout_field="timeout",
        conversation_field="conversation",
        gateway_fields=frozenset({"conversation"}),
        state_fields=("previous_interaction_id", "conversation", "background"),
        sealed_marks=(BODY_MARK,),
        media_marks=(*MEDIA_MARKS, b'"mime_type"'),
        pings={"sse": b": ping\n\n"},
        words=WORDS,
        leaves_out_calls=True,  # the status shows that it is incomplete
        tells_usage=in_every_answer,
        owns_error=owns_error,
        hosted=HOSTED,
    ),
    upstream=UpstreamSide(
        paths={"generate": "/interactions", "stream": "/interactions", "models": "/models"},
        request_id_headers=("x-goog-request-id",),
        resume=resumed,
        telemetry_operation="generate_content",
    ),
    stop_sequences="hidden",
    status=plain_status,
    tap=InteractionsTap,
    marks=MARKS,
    glance=glance,
    reasoning=ReasoningState(
        returns="own",
        placeholders=tuple(text.encode() for text in sorted(PLACEHOLDERS)),
        shown_marks=(b'"signature"', b'"thought_signature"'),
        is_refusal=complains(_STATE_REFUSED),
    ),
    models=MODELS,
    check_usage=USAGE_FIELDS.problems,
    stored=STORED,
)
