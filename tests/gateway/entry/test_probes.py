"""What clients probe beside the API."""

from __future__ import annotations

import pytest

from tests.gateway.kit import ROUTES, match
from tests.tiers import rows
from wireglot import __version__
from wireglot.http.application import Head
from wireglot_core.dialects.registry import NAMES, surfaces
from wireglot_core.wire.json import decode, encode


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_the_root_says_who_is_there(method):
    """R-DE-08"""
    found = ROUTES.probe(method, "/")
    assert found is not None
    assert found.body["name"] == "wireglot"
    assert found.body["version"] == __version__
    assert set(NAMES) <= set(found.body["endpoints"])
    assert "wireglot run CLIENT" in found.body["help"]


@pytest.mark.parametrize("path", ["/api/event_logging/batch", "/api/event_logging/v2/batch"])
def test_usage_events_of_clients_are_taken(path):
    """R-DE-08"""
    found = ROUTES.probe("POST", path)
    assert found is not None
    assert found.body == {}
    assert ROUTES.probe("GET", path) is None


def test_claude_code_may_warm_its_connection():
    assert ROUTES.probe("HEAD", "/api/hello") is not None


@pytest.mark.parametrize(("method", "path"), [("POST", "/"), ("GET", "/api"), ("GET", "/api/hello/")])
def test_nothing_else_is_answered(method, path):
    assert ROUTES.probe(method, path) is None


def test_every_probe_is_answered_with_json_and_open():
    known = [
        (method, path)
        for surface in surfaces()
        for path, probe in surface.client.probes.items()
        for method in probe.methods
    ]
    assert len(known) >= 4
    for method, path in [*known, ("GET", "/"), ("HEAD", "/")]:
        found = ROUTES.probe(method, path)
        assert found is not None
        assert decode(encode(found.body)) == found.body
        asked = match(Head(method, path, path, "", {}, ""))
        assert (asked.operation, asked.open) == ("stub", True)


@rows(
    ("dialect", "endpoint"),
    [(surface.name, each) for surface in surfaces() for each in surface.client.endpoints],
)
def test_every_endpoint_the_root_names_is_routed_to_its_dialect(dialect, endpoint):
    method, path = endpoint.split(" ")
    head = Head(method, path, path.replace("{model}", "m"), "", {}, "")
    assert match(head).dialect == dialect
