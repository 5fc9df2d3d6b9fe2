"""What clients probe beside the API."""

from __future__ import annotations

import pytest

from wireglot import __version__
from wireglot.dialects.registry import NAMES
from wireglot.gateway.entry.probes import ENDPOINTS, STUBS, stub
from wireglot.gateway.entry.routes import match
from wireglot.http.application import Head
from wireglot.wire.json import decode, encode


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_the_root_says_who_is_there(method):
    """R-DE-08"""
    found = stub(method, "/")
    assert found is not None
    assert found.body["name"] == "wireglot"
    assert found.body["version"] == __version__
    assert set(NAMES) <= set(found.body["endpoints"])


@pytest.mark.parametrize("path", ["/api/event_logging/batch", "/api/event_logging/v2/batch"])
def test_usage_events_of_clients_are_taken(path):
    """R-DE-08"""
    found = stub("POST", path)
    assert found is not None
    assert found.body == {}
    assert stub("GET", path) is None


def test_claude_code_may_warm_its_connection():
    assert stub("HEAD", "/api/hello") is not None


@pytest.mark.parametrize(("method", "path"), [("POST", "/"), ("GET", "/api"), ("GET", "/api/hello/")])
def test_nothing_else_is_answered(method, path):
    assert stub(method, path) is None


def test_every_stub_is_json_and_open():
    for found in STUBS.values():
        assert decode(encode(found.body)) == found.body
        assert found.open


@pytest.mark.parametrize(
    ("dialect", "endpoint"), [(name, each) for name in ENDPOINTS for each in ENDPOINTS[name]]
)
def test_every_endpoint_the_root_names_is_routed_to_its_dialect(dialect, endpoint):
    method, path = endpoint.split(" ")
    head = Head(method, path, path.replace("{model}", "m"), "", {}, "")
    assert match(head).dialect == dialect
