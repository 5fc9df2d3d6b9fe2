"""The Code Assist envelope around Gemini, which Gemini CLI uses.

Requests are `{model, project, request: {...}}`, answers and chunks `{response: {...}, traceId}`; snake_case
outside, camelCase inside. `wrapped.py` unwraps them; they are wrapped here.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec.structs import replace

from wireglot_core.dialects.body import Body, RequestGlance, stated_model, stated_stream
from wireglot_core.dialects.context import Context, Rendered
from wireglot_core.dialects.fields import own_form
from wireglot_core.dialects.gemini import render_request as requests
from wireglot_core.dialects.gemini import response as responses
from wireglot_core.dialects.gemini import surface as gemini
from wireglot_core.dialects.gemini.assist import ASSIST, GET_VERBS
from wireglot_core.dialects.gemini.counts import WRAPPED_COUNTS
from wireglot_core.dialects.gemini.dialect import DIALECT as GEMINI
from wireglot_core.dialects.gemini.names import OWN
from wireglot_core.dialects.gemini.parse_request import bare_model
from wireglot_core.dialects.gemini.places import PLACES
from wireglot_core.dialects.gemini.stream_writer import GeminiWriter
from wireglot_core.dialects.gemini.tap import wrapped_glance, wrapped_tap
from wireglot_core.dialects.gemini.wrapped import FORM
from wireglot_core.dialects.surface import RouteMatch, UpstreamSide
from wireglot_core.ir.outcome import Response
from wireglot_core.ir.request import Request

_ROOT: Final = "/v1internal:"
_OPERATIONS: Final = "/v1internal/"


def render_response(
    answer: Response, context: Context, request: Request | None = None
) -> Rendered[dict[str, Any]]:
    rendered = responses.render_response(answer, context, request)
    inner = rendered.value
    form = own_form(answer.extra, OWN).get(FORM)
    if form is None:
        inner.pop("responseId", None)
        return Rendered(_wrap(inner, answer.id, {}), rendered.losses)
    if form.get("responseId") == "absent":
        inner.pop("responseId", None)
    return Rendered({"response": inner, **form["envelope"]}, rendered.losses)


def render_request(request: Request, context: Context) -> Rendered[dict[str, Any]]:
    rendered = requests.render_request(request, context)
    inner = rendered.value
    inner.pop("model", None)
    form = own_form(request.extra, OWN).get(FORM, {})
    inner.update(form.get("session", {}))
    envelope = dict(form.get("envelope", {}))
    stated = envelope.pop("model", None)
    body: dict[str, Any] = {}
    if type(stated) is str and bare_model(stated) == request.model:
        body["model"] = stated
    elif request.model:
        body["model"] = request.model
    if context.project:
        envelope["project"] = context.project
    return Rendered({**body, **envelope, "request": inner}, rendered.losses)


def _stream_writer(context: Context, request: Request | None = None) -> GeminiWriter:
    return GeminiWriter(context, _wrap)


def _wrap(chunk: dict[str, Any], identifier: str, form: dict[str, Any]) -> dict[str, Any]:
    envelope = {"traceId": identifier} if identifier else {}
    return {"response": chunk, **envelope, **form.get(FORM, {}).get("envelope", {})}


# --- over HTTP


def find(method: str, path: str) -> RouteMatch | None:
    if method == "GET" and path.startswith(_OPERATIONS):
        return RouteMatch("operation", verb=path[len(_OPERATIONS) :])
    if not path.startswith(_ROOT):
        return None
    verb = path[len(_ROOT) :]
    if method == "GET":
        return RouteMatch("assist", verb=verb) if verb in GET_VERBS else None
    if method != "POST":
        return None
    operation, stream = gemini.VERBS.get(verb, ("assist", None))
    return RouteMatch(operation, stream=stream, verb=verb)


def glance(body: Body) -> RequestGlance:
    """The model and stream flag. countTokens names the model inside the wrapped request."""
    model, stream = stated_model(body.outline), stated_stream(body.outline)
    if not model:
        inner = _inner(body).get("model")
        model = inner if isinstance(inner, str) else ""
    return RequestGlance(model.removeprefix("models/"), stream)


def asked_output(body: Body) -> int:
    return gemini.output_of(gemini.generation(_inner(body)))


def asked_answers(body: Body) -> int:
    return gemini.answers_of(gemini.generation(_inner(body)))


def _inner(body: Body) -> dict[str, Any]:
    inner = body.document().get("request")
    return inner if isinstance(inner, dict) else {}


SURFACE: Final = replace(
    gemini.SURFACE,
    name="code-assist",
    client=replace(
        gemini.SURFACE.client,
        find=find,
        lists=(),
        unserved={},
        endpoints=tuple(f"POST {_ROOT}{verb}" for verb in gemini.VERBS),
        prefixes=("/v1internal",),
        vendor_headers=(),
        glance=glance,
        asked_output=asked_output,
        asked_answers=asked_answers,
        conversation_field="",
        gateway_fields=frozenset(),
    ),
    upstream=UpstreamSide(
        paths={
            "generate": "/v1internal:generateContent",
            "stream": "/v1internal:streamGenerateContent?alt=sse",
            "count": "/v1internal:countTokens",
        },
        request_id_headers=("x-goog-request-id",),
        body_variables={"project": "project"},
        telemetry_operation="generate_content",
    ),
    model_field="model",
    tap=wrapped_tap,
    glance=wrapped_glance,
    counts=WRAPPED_COUNTS,
    assist=ASSIST,
    embeddings=None,
)

DIALECT: Final = replace(
    GEMINI,
    surface=SURFACE,
    render_response=render_response,
    stream_writer=_stream_writer,
    render_request=render_request,
    places=replace(PLACES, response_envelope="response"),
)
