"""Anthropic Messages in a cloud's form: the model and the kind of answer are in the path, the version and the
beta flags in the body."""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from wireglot_core.dialects.anthropic import parse_request as parsing
from wireglot_core.dialects.anthropic import render_request as rendering
from wireglot_core.dialects.anthropic.names import NAME
from wireglot_core.dialects.body import BadField, Body, RequestGlance, glance_body
from wireglot_core.dialects.context import Context, Rendered
from wireglot_core.dialects.fields import own_form
from wireglot_core.ir.content import Extra
from wireglot_core.ir.request import Request

FORM: Final = "cloud"
_VERSION: Final = "anthropic_version"
_BETA: Final = "anthropic_beta"

HEADERS: Final = {_VERSION: "", _BETA: "anthropic-beta"}
"""The versions are the cloud's own: `vertex-2023-10-16`, `bedrock-2023-05-31`."""

_AMAZON: Final = re.compile(
    r"(?:arn:[^/]*/)?(?:[a-z-]+\.)?anthropic\.(claude-.+?)(?:-v\d+(?::\d+(?::\w+)?)?)?"
)
_GOOGLE: Final = re.compile(r"(claude-[^@]+)@(\w+)")


def plain_model(model: str) -> str:
    """The name on Anthropic's own API, `claude-sonnet-4-5-20250929`, for
    `us.anthropic.claude-sonnet-4-5-20250929-v1:0` or `claude-sonnet-4-5@20250929`."""
    found = _AMAZON.fullmatch(model)
    if found is not None:
        return found[1]
    found = _GOOGLE.fullmatch(model)
    if found is None:
        return model
    return f"{found[1]}-{found[2]}" if found[2].isdigit() else found[1]


def glance(body: Body) -> RequestGlance:
    """Raises BadField for beta flags left in the body: those that fit in a header have been moved there."""
    if _BETA in body.outline.members:
        raise BadField(f"{_BETA}: expected strings of visible ASCII characters", f"$.{_BETA}")
    return glance_body(body)


def parse_request(body: dict[str, Any], context: Context) -> Request:
    held = {name: body[name] for name in HEADERS if name in body}
    plain = {name: value for name, value in body.items() if name not in held} if held else body
    request = parsing.parse_request(plain, context)
    extra = request.extra or Extra(NAME)
    return msgspec.structs.replace(request, extra=Extra(NAME, extra.fields, {**extra.form, FORM: held}))


def render_request(
    request: Request, context: Context, *, version: str, without: frozenset[str]
) -> Rendered[dict[str, Any]]:
    rendered = rendering.render_request(request, context)
    held = own_form(request.extra, NAME).get(FORM, {_VERSION: version})
    plain = {name: value for name, value in rendered.value.items() if name not in without}
    return Rendered({**held, **plain}, rendered.losses)
