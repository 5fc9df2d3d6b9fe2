"""Paths and who can read the answer."""

import pytest

from tests.gateway.kit import ROUTES, head, match
from tests.tiers import rows
from wireglot.gateway.entry import routes
from wireglot.gateway.entry.routes import NoRoute, Routes
from wireglot.gateway.errors import RequestError
from wireglot_core.dialects.registry import surfaces


@rows(
    ("method", "path", "dialect", "operation", "model", "stream"),
    [
        ("POST", "/v1/messages", "anthropic", "generate", "", None),
        ("POST", "/v1/messages/count_tokens", "anthropic", "count", "", None),
        ("POST", "/anthropic/v1/messages", "anthropic", "generate", "", None),
        ("POST", "/v1/chat/completions", "openai-chat", "generate", "", None),
        ("POST", "/v1beta/openai/chat/completions", "openai-chat", "generate", "", None),
        ("POST", "/v1/responses", "openai-responses", "generate", "", None),
        ("POST", "/v1/responses/input_tokens", "openai-responses", "count", "", None),
        ("POST", "/v1beta/models/m:generateContent", "gemini", "generate", "m", False),
        ("POST", "/v1/models/m:streamGenerateContent", "gemini", "generate", "m", True),
        ("POST", "/v1beta/models/m:countTokens", "gemini", "count", "m", None),
        ("POST", "/v1beta/models/openai/gpt-5.5:generateContent", "gemini", "generate", "openai/gpt-5.5", False),
        ("POST", "/v1beta/openai/gpt-5.5:generateContent", "gemini", "generate", "openai/gpt-5.5", False),
        ("POST", "/v1/projects/p/locations/l/publishers/google/models/m:generateContent", "gemini", "generate", "m", False),
        ("POST", "/v1internal:streamGenerateContent", "code-assist", "generate", "", True),
        ("POST", "/v1internal:loadCodeAssist", "code-assist", "assist", "", None),
        ("POST", "/v1/gemini", "gemini-simple", "generate", "", None),
        ("GET", "/healthz", "openai-chat", "health", "", None),
        ("HEAD", "/readyz", "openai-chat", "ready", "", None),
        ("GET", "/v1beta/models", "gemini", "models", "", None),
        ("GET", "/v1beta/models/a/b", "gemini", "model", "a/b", None),
        ("GET", "/v1/models/a%20b", "openai-chat", "model", "a b", None),
    ],
)  # fmt: skip
def test_each_path_is_one_question_in_one_dialect(method, path, dialect, operation, model, stream):
    asked = match(head(method, path))
    assert (asked.dialect, asked.operation, asked.model, asked.stream) == (dialect, operation, model, stream)


@rows(
    ("method", "path", "operation", "verb", "ids"),
    [
        ("GET", "/v1/sessions", "state", "sessions.list", ()),
        ("GET", "/openai/v1/sessions/a%20b", "state", "sessions.get", ("a b",)),
        ("DELETE", "/v1/sessions/a%2Fb", "state", "sessions.delete", ("a/b",)),
        ("HEAD", "/v1/usage", "state", "usage", ()),
        ("GET", "/v1/requests/req_1/losses", "state", "losses.get", ("req_1",)),
        ("POST", "/v1/admin/keys", "admin", "keys.create", ()),
        ("PATCH", "/v1/admin/keys/a%20b", "admin", "keys.update", ("a b",)),
        ("DELETE", "/v1/admin/callers/me/data", "admin", "callers.wipe", ("me",)),
        ("GET", "/inspector", "inspector", "page", ()),
        ("GET", "/inspector/x/req_1", "inspector", "page", ()),
        ("GET", "/inspector/assets/page.js", "inspector", "asset", ("page.js",)),
        ("HEAD", "/inspector/api/session", "inspector", "session.get", ()),
        ("DELETE", "/inspector/api/session", "inspector", "session.end", ()),
        ("GET", "/inspector/api/exchanges/a%20b/export", "inspector", "exchanges.export", ("a b",)),
        ("POST", "/inspector/api/keys/me/delete", "inspector", "keys.delete", ("me",)),
    ],
)
def test_the_gateways_own_pages_are_found_with_the_ids_in_their_path(method, path, operation, verb, ids):
    asked = match(head(method, path, anthropic_version="2023-06-01"))
    assert (asked.operation, asked.verb, asked.ids) == (operation, verb, ids)
    assert asked.dialect == ("anthropic" if operation == "state" else "openai-chat")
    assert asked.open == (operation != "state"), "the admin's and the inspector's have checks of their own"


@rows(
    ("headers", "query", "dialect"),
    [
        ({}, "", "openai-chat"),
        ({"authorization": "Bearer x"}, "", "openai-chat"),
        ({"anthropic_version": "2026-10-21"}, "", "anthropic"),
        ({"x_goog_api_key": "x"}, "", "gemini"),
        ({}, "key=x", "gemini"),
    ],
)
def test_a_model_list_is_reported_in_the_dialect_of_who_asks(headers, query, dialect):
    """R-DE-04"""
    assert match(head("GET", "/v1/models", query, **headers)).dialect == dialect


@rows(
    ("method", "path", "dialect", "allowed"),
    [
        ("GET", "/v1/messages", "anthropic", ("POST",)),
        ("POST", "/v1/models", "openai-chat", ("GET",)),
        ("POST", "/v1/messages/batches", "anthropic", ()),
        ("POST", "/v1beta/cachedContents", "gemini", ()),
        ("POST", "/v1beta/models/x:batchGenerateContent", "gemini", ()),
        ("GET", "/v1internal:nothing", "code-assist", ("POST",)),
        ("PUT", "/v1/responses/x", "openai-responses", ("GET", "DELETE")),
        ("PUT", "/v1/responses/input_tokens", "openai-responses", ("POST",)),
        ("PUT", "/v1internal:getCodeAssistGlobalUserSetting", "code-assist", ("GET", "POST")),
        ("PUT", "/v1internal:countTokens", "code-assist", ("POST",)),
        ("GET", "/admin", "openai-chat", ()),
        ("PUT", "/openai/v1/sessions/x", "openai-chat", ("GET", "DELETE")),
        ("POST", "/metrics", "openai-chat", ("GET",)),
        ("PUT", "/inspector/api/session", "openai-chat", ("GET", "POST", "DELETE")),
        ("GET", "/inspector/api/nothing", "openai-chat", ()),
        ("POST", "/inspector/x", "openai-chat", ("GET",)),
        ("GET", "/inspectors", "openai-chat", ()),
    ],
)
def test_what_is_not_there_is_refused_in_the_callers_dialect(method, path, dialect, allowed):
    with pytest.raises(NoRoute) as refused:
        match(head(method, path))
    assert (refused.value.dialect, refused.value.allowed) == (dialect, allowed)


@rows(("path", "dialect"), [("/v1/admin/usage", "openai-chat"), ("/v1/usage", "gemini")])
def test_a_key_in_the_query_of_the_admin_api_is_a_filter_and_no_sign_of_a_dialect(path, dialect):
    assert ROUTES.dialect_of(head("GET", path, query="key=someone")) == dialect


def test_a_method_that_a_path_does_not_take_is_refused_with_those_that_it_takes():
    asked = head("PUT", "/v1/sessions/x")
    with pytest.raises(NoRoute) as lost:
        match(asked)
    error = ROUTES.nowhere(asked, lost.value).error
    assert (error.status, error.code) == (405, "method_not_allowed")
    assert error.message == "/v1/sessions/x supports GET, DELETE"


@rows(
    ("path", "headers", "status"),
    [
        ("/v1/responses", {}, 405),
        ("/v1/messages", {"upgrade": "websocket"}, 405),
    ],
)
def test_a_websocket_is_opened_only_where_a_dialect_has_them(path, headers, status):
    assert match(head("GET", "/v1/responses", upgrade="websocket")).operation == "websocket"
    asked = head("GET", path, **headers)
    with pytest.raises(NoRoute) as lost:
        match(asked)
    assert ROUTES.nowhere(asked, lost.value).error.status == status


def test_only_paths_without_names_and_ids_are_cached():
    """Clients choose names and ids: there is no end of them."""
    known = Routes(surfaces())
    for _ in range(2):
        assert known.match(head("POST", "/v1/messages")).operation == "generate"
        with pytest.raises(NoRoute):
            known.match(head("GET", "/v1/messages"))
        assert known.match(head("GET", "/v1/responses/a")).ids == ("a",)
        assert known.match(head("GET", "/v1/responses/b")).ids == ("b",)
    assert len(known._fixed) == 1


def test_only_health_and_probes_are_open():
    """THREATS T4: every route says whether it needs a key; this list is the exception."""
    asked = dict(routes.GET)
    for client in (surface.client for surface in surfaces()):
        for route in client.routes:
            asked[route.path] = match(head(route.method, route.path.replace("*", "x")))
        for path in client.lists:
            asked[path] = match(head("GET", path))
    assert len(asked) > 30
    assert {path for path, each in asked.items() if each.open} == {"/healthz", "/health", "/readyz"}


def test_an_encoded_slash_is_part_of_a_models_name_and_of_nothing_else():
    """SDKs write `models.retrieve("demo/demo")` so; THREATS T4"""
    assert match(head("GET", "/v1/models/demo%2Fdemo")).model == "demo/demo"
    assert match(head("POST", "/v1beta/models/demo%2fdemo:generateContent")).model == "demo/demo"
    for path in ("/v1%2Fmessages", "/v1/messages%2fcount_tokens", "/%2fhealthz"):
        with pytest.raises(RequestError):
            match(head("POST", path))


@rows(
    ("method", "path", "headers", "dialect", "what"),
    [
        ("POST", "/v1beta/models/m:asyncBatchEmbedContent", {}, "gemini", "batches"),
        ("POST", "/v1beta/models/m:embedText", {}, "gemini", "embeddings"),
        ("POST", "/v1/projects/p/locations/l/publishers/google/models/m:predict", {}, "gemini", "embeddings"),
        ("POST", "/v1/images/generations", {}, "openai-chat", "images"),
        ("POST", "/v1/messages/batches", {}, "anthropic", "batches"),
        ("POST", "/v1/files", {"anthropic_version": "2023-06-01"}, "anthropic", "files"),
        ("GET", "/v1/files", {}, "openai-chat", "files"),
    ],
)
def test_what_sdks_expect_and_nobody_serves_is_said_so(method, path, headers, dialect, what):
    """[L14] A 404 in the caller's own form that names it, not a bare "nothing at"."""
    asked = head(method, path, **headers)
    with pytest.raises(NoRoute) as lost:
        match(asked)
    fault = ROUTES.nowhere(asked, lost.value)
    assert lost.value.dialect == dialect
    assert (fault.error.status, fault.error.code) == (404, "not_served")
    assert what in fault.error.message
    assert "not served" in fault.error.message


@rows(
    ("method", "path", "headers", "dialect", "hint"),
    [
        ("POST", "/v1/v1/messages", {"anthropic_version": "2023-06-01"}, "anthropic", "remove /v1 from the end of"),
        ("POST", "/v1/v1/messages", {}, "anthropic", "remove /v1 from the end of"),
        ("POST", "/messages", {}, "anthropic", "add /v1 to the end of"),
        ("POST", "/v1/v1/chat/completions", {}, "openai-chat", "remove /v1 from the end of"),
        ("POST", "/chat/completions", {}, "openai-chat", "add /v1 to the end of"),
        ("POST", "/api/v1/chat/completions", {}, "openai-chat", "remove /api from the end of"),
        ("POST", "/v1/chat/completions/chat/completions", {}, "openai-chat", "remove /chat/completions from"),
        ("POST", "/v1/v1/responses", {}, "openai-responses", "remove /v1 from the end of"),
        ("POST", "/responses", {}, "openai-responses", "add /v1 to the end of"),
        ("GET", "/models", {}, "openai-chat", "add /v1 to the end of"),
        ("GET", "/models", {"anthropic_version": "2023-06-01"}, "anthropic", "add /v1 to the end of"),
        ("POST", "/models/m:generateContent", {}, "gemini", "add /v1 to the end of"),
        ("POST", "/gemini/v1beta/models/m:generateContent", {}, "gemini", "remove /gemini from the end of"),
        ("POST", "/v1/messages/", {}, "anthropic", "without the slash at its end"),
        ("GET", "/favicon.ico", {}, "openai-chat", "GET / lists the endpoints"),
        ("POST", "/", {}, "openai-chat", "GET / lists the endpoints"),
    ],
)  # fmt: skip
def test_a_wrong_base_url_is_reported_to_the_one_that_has_it(method, path, headers, dialect, hint):
    """In the first minute: with or without /v1, twice, below another path. A 404 in the caller's own form that
    says what to do."""
    asked = head(method, path, **headers)
    with pytest.raises(NoRoute) as lost:
        match(asked)
    fault = ROUTES.nowhere(asked, lost.value)
    assert lost.value.dialect == dialect
    assert (fault.error.status, fault.error.code) == (404, "unknown_url")
    assert fault.error.message.startswith(f"there is no endpoint {method} {path}: ")
    assert hint in fault.error.message
