"""Anthropic Messages in the form of Vertex AI: `rawPredict`, `streamRawPredict` and a counter.

Paths and bodies: the `anthropic` SDK 2.9.0 (lib/vertex/_client.py). Answers, streams and the errors of models
are Anthropic's; errors about paths and access are Google's (`google.rpc.Status`).
"""

from __future__ import annotations

import re
from functools import partial
from typing import Any, Final

from msgspec.structs import replace

from wireglot_core.dialects.anthropic import errors
from wireglot_core.dialects.anthropic.cloud_form import (
    HEADERS,
    glance,
    parse_request,
    plain_model,
    render_request,
)
from wireglot_core.dialects.anthropic.dialect import DIALECT as ANTHROPIC
from wireglot_core.dialects.anthropic.names import NAME as VENDOR
from wireglot_core.dialects.context import Context, Rendered
from wireglot_core.dialects.faults import own_status
from wireglot_core.dialects.fields import text_in
from wireglot_core.dialects.surface import CloudForm, RouteMatch
from wireglot_core.ir.errors import ApiError, ErrorKind

NAME: Final = "anthropic-vertex"
_VERSION: Final = "vertex-2023-10-16"
_COUNTER: Final = "count-tokens"
_PATH: Final = re.compile(
    r"(?:/v1|/v1beta1)?/projects/[^/]+/locations/[^/]+/publishers/anthropic/models/(.+):(rawPredict|streamRawPredict)"
)


def find(method: str, path: str) -> RouteMatch | None:
    """Parses a path. Clients' base URLs end in `/v1`, like Google's, or with the host."""
    found = _PATH.fullmatch(path) if method == "POST" else None
    if found is None:
        return None
    if found[1] == _COUNTER:
        return RouteMatch("count", verb=_COUNTER)
    return RouteMatch("generate", found[1], found[2] == "streamRawPredict", found[2])


_GOOGLE: Final[dict[tuple[ErrorKind, int], str]] = {
    ("auth", 401): "UNAUTHENTICATED",
    ("permission", 403): "PERMISSION_DENIED",
    ("not_found", 404): "NOT_FOUND",
    ("invalid_request", 405): "UNIMPLEMENTED",
}
"""Errors that Google reports before a model is called."""
_KINDS: Final = {name: kind for (kind, _), name in _GOOGLE.items()}


def render_error(error: ApiError, context: Context) -> Rendered[dict[str, Any]]:
    status = own_status(error)
    is_vendors = error.extra is not None and error.extra.dialect == VENDOR
    name = "" if is_vendors else _GOOGLE.get((error.kind, status), "")
    if not name:
        return errors.render_error(error, context)
    return Rendered({"error": {"code": status, "message": error.message, "status": name}})


def parse_error(body: Any, status: int = 0) -> ApiError | None:
    found = errors.parse_error(body, status)
    inner = body.get("error") if type(body) is dict else None
    kind = _KINDS.get(text_in(inner.get("status"))) if type(inner) is dict else None
    return replace(found, kind=kind) if found is not None and kind is not None else found


_PLAIN: Final = ANTHROPIC.surface
_PREFIX: Final = "/v1/projects/{project}/locations/{location}/publishers/anthropic/models"

SURFACE: Final = replace(
    _PLAIN,
    name=NAME,
    client=replace(
        _PLAIN.client,
        cloud=CloudForm(dialect=VENDOR, headers=HEADERS, plain_model=plain_model),
        routes=(),
        find=find,
        lists=(),
        probes={},
        unserved={},
        endpoints=(
            f"POST {_PREFIX}/{{model}}:rawPredict",
            f"POST {_PREFIX}/{{model}}:streamRawPredict",
            f"POST {_PREFIX}/{_COUNTER}:rawPredict",
        ),
        headers=(),
        prefixes=("/projects/",),
        glance=glance,
        key_hint="in Claude Code set ANTHROPIC_AUTH_TOKEN to it, and CLAUDE_CODE_SKIP_VERTEX_AUTH=1",
        managed=None,
        budgets=None,
    ),
    upstream=None,
    model_field="",
)

DIALECT: Final = replace(
    ANTHROPIC,
    surface=SURFACE,
    parse_request=parse_request,
    render_request=partial(render_request, version=_VERSION, without=frozenset({"model"})),
    render_error=render_error,
    parse_error=parse_error,
)
