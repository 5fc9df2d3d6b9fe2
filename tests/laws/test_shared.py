"""Shared: tools that came before are read, fitted and rendered as if they came for the first time."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.laws.cases import all_hold, of_kind, recorded
from wireglot import Unsupported, translate_request
from wireglot.dialects.base import Context
from wireglot.dialects.registry import NAMES, DialectName, dialect, dialect_name
from wireglot.ir.request import Request
from wireglot.providers.fit.fit import fit
from wireglot.providers.limits import BASE, Limits
from wireglot.testing.fixtures import Case
from wireglot.testing.strategies import requests
from wireglot.wire import shared
from wireglot.wire.json import decode, encode
from wireglot.wire.splice import Outline

_CONTEXT = Context(seed="s", provider="p")
_LIMITS = [
    *BASE.values(),
    Limits(tool_name="[a-z]+", tool_name_max=3),
    Limits(hosted_tools=False, strict_tools=False, tool_schema="openai"),
    Limits(tool_schema="gemini-json", custom_tools=False),
]


def _fitted(request: Request, limits: Limits, target: str) -> object:
    try:
        fitted = fit(request, limits, _CONTEXT, target)
    except Unsupported as fault:
        return str(fault)
    rendered = dialect(target).render_request(fitted.request, _CONTEXT)
    return (
        fitted.request,
        fitted.aliases,
        fitted.losses,
        [fitted.trail.of(tool) for tool in fitted.request.tools],
        [fitted.trail.retrace(loss, fitted.request) for loss in rendered.losses],
        encode(rendered.value),
    )


@given(requests(), st.lists(st.sampled_from(_LIMITS), min_size=1, max_size=4), st.sampled_from(NAMES[:4]))
def test_shared_tools_are_fitted_and_rendered_like_any(request, limits, target):
    fresh = [_fitted(request, each, target) for each in limits]
    known = shared._Shared(request.tools)
    before = encode(request.tools)
    shared._known[id(request.tools)] = known
    try:
        for _ in range(2):
            assert [_fitted(request, each, target) for each in limits] == fresh
    finally:
        shared._forget(id(request.tools))
    assert encode(request.tools) == before


def _translates_alike(case: Case, target: DialectName) -> None:
    body = encode(case.body)
    expected = _translated(decode(body), dialect_name(case.dialect), target)
    for _ in range(2):
        document = Outline(body).document("tools")
        assert document == decode(body)
        assert _translated(document, dialect_name(case.dialect), target) == expected
        assert encode(document) == body, "the input was changed"


def _translated(document: dict, source: DialectName, target: DialectName) -> object:
    try:
        rendered = translate_request(document, source=source, target=target)
    except Unsupported as fault:
        return str(fault)
    return encode(rendered.value), rendered.losses


@pytest.mark.parametrize("target", NAMES)
@pytest.mark.parametrize("case", of_kind("requests"))
def test_a_body_with_tools_seen_before_is_translated_like_any(case, target):
    _translates_alike(case, target)


@pytest.mark.parametrize("target", NAMES)
@pytest.mark.parametrize("source", NAMES)
def test_recorded_bodies_with_tools_seen_before_are_translated_like_any(source, target):
    all_hold(recorded(source, "requests", 30), lambda case: _translates_alike(case, target))
