"""docs/reference/openapi.json is valid, has every route of the gateway, and tells no other."""

import json
import re
from pathlib import Path
from typing import Any

import httpx2
import jsonschema
import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator

from tests.tiers import rows
from tools.http_api.document import (
    _ERRORS,
    ANSWER_HEADERS,
    ERROR_HEADERS,
    INSPECTOR_HEADERS,
    REQUEST_HEADERS,
    SERVER,
    Undocumented,
    document,
)
from tools.http_api.operations import OPERATIONS
from tools.http_api.page import page
from tools.http_api.routes import served
from wireglot.gateway.entry import routes
from wireglot.gateway.entry.routes import INSPECTOR_ROOT, INSPECTOR_ROUTES, OwnRoute, Routes
from wireglot.gateway.errors import _CLASSES
from wireglot.http.application import Head
from wireglot.testing.live_gateway import LiveGateway
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.registry import dialect, names, surfaces
from wireglot_core.ir.errors import ApiError

DOCUMENT = document()
ROOT = Path(__file__).parents[2]
METHODS = ("get", "head", "post", "patch", "put", "delete")
ADMIN = "an-admin-secret-of-tests"
_PLACE = re.compile(r"\{(\w+)\}")
VALUES = {"model": "demo", "project": "p", "location": "l", "publisher": "google"}
FILE = {
    (method.upper(), server["url"].removeprefix(SERVER) + path, json.dumps(item.get("parameters", [])))
    for path, item in DOCUMENT["paths"].items()
    for server in item.get("servers", DOCUMENT["servers"])
    for method in METHODS
    if method in item
}


def filled(path, parameters, **values):
    """A path with something in place of its parameters; of several choices, each once."""
    paths = [path]
    for parameter in parameters:
        name = parameter["name"]
        choices = parameter["schema"].get("enum") or [{**VALUES, **values}.get(name, "some-id")]
        paths = [each.replace(f"{{{name}}}", choice) for each in paths for choice in choices]
    return paths


ASKED = sorted((method, each) for method, path, said in FILE for each in filled(path, json.loads(said)))


def head(method, path, headers=None):
    return Head(method, path, path, "", headers or {}, "127.0.0.1")


# The file itself.


def test_it_is_a_valid_document():
    OpenAPIV31SpecValidator(DOCUMENT).validate()


def test_every_schema_in_it_is_one():
    for schema in DOCUMENT["components"]["schemas"].values():
        jsonschema.Draft202012Validator.check_schema(schema)


def test_examples_are_as_their_schemas_say():
    for name, response in DOCUMENT["components"]["responses"].items():
        example = response["content"]["application/json"].get("example")
        if example is not None:
            strictly(name).validate(example)


def test_operations_have_names_of_their_own():
    ids = [
        item[method]["operationId"]
        for item in DOCUMENT["paths"].values()
        for method in METHODS
        if method in item
    ]
    assert len(ids) == len(set(ids))
    assert {reported.id for reported in OPERATIONS.values()} <= set(ids)


def test_headers_of_ours_are_those_of_the_source():
    sources = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py"))
    reported = {*REQUEST_HEADERS, *ANSWER_HEADERS, *ERROR_HEADERS, *INSPECTOR_HEADERS}
    assert all(f'"{name}"' in sources for name in reported - {"traceparent"})
    assert {name for name in reported if name.startswith("x-wireglot-")} == set(
        re.findall(r"x-wireglot-[a-z-]+", sources)
    )


# Routes.


def test_every_path_of_the_file_is_a_route():
    known = Routes(surfaces())
    for method, path in ASKED:
        known.match(head(method, path))


def test_every_route_is_in_the_file():
    """Of each table that the gateway looks into: those of the dialects, lists, probes, its own pages."""
    asked = {(method, path) for method, path in ASKED}
    for surface in surfaces():
        client = surface.client
        assert {(route.method, route.path.replace("*", "some-id")) for route in client.routes} <= asked
        assert {
            tuple(_PLACE.sub(lambda found: VALUES[found[1]], each).split(" ", 1)) for each in client.endpoints
        } <= asked
        assert {("GET", path) for path in client.lists} <= asked
        assert {("GET", f"{path}/demo") for path in client.lists} <= asked
        assert {(method, path) for path, probe in client.probes.items() for method in probe.methods} <= asked
    for own in routes.OWN:
        for root in ("", routes.SECOND_ROOT):
            assert (own.method, root + own.path.replace("*", "some-id")) in asked
    assert {("GET", path) for path in (*routes.GET, "/", INSPECTOR_ROOT)} <= asked
    assert {(own.method, own.path.replace("*", "some-id")) for own in INSPECTOR_ROUTES} <= asked


def test_what_a_path_is_said_to_be_is_what_the_gateway_takes_it_for():
    known = Routes(surfaces())
    for route in served():
        for path in route.full_paths():
            found = known.match(head(route.method, path.replace("{model}", "demo")))
            assert found.operation == route.operation
            if route.dialect and route.operation != "stub":
                assert found.dialect == route.dialect


def test_a_route_that_nobody_tells_of_is_reported(monkeypatch):
    new = OwnRoute("GET", "/v1/sessions/*/turns", "sessions.turns")
    monkeypatch.setattr(routes, "OWN", (*routes.OWN, new))
    with pytest.raises(Undocumented, match=r"state sessions\.turns: served, reported nowhere"):
        document()


def test_a_row_without_a_route_is_reported(monkeypatch):
    monkeypatch.setattr(routes, "OWN", routes.OWN[1:])
    with pytest.raises(Undocumented, match=r"state sessions\.list: reported, served nowhere"):
        document()


@rows("name", names())
def test_errors_are_as_their_schemas_say(name):
    """The errors of every class, as every dialect tells them."""
    spoken = dialect(name)
    for kind, status, code in _CLASSES.values():
        error = ApiError(kind, "words", status=status, code=code, request_id="req_1", param="model")
        body = spoken.render_error(error, Context()).value
        strictly(_ERRORS[name]).validate(body)


# A running gateway.


@pytest.fixture(scope="module")
def gateway():
    with LiveGateway(f'[server]\nadmin_secret = "{ADMIN}"\n[providers.demo]\n') as running:
        yield running


@pytest.fixture
def client(gateway):
    with httpx2.Client(base_url=gateway.url, timeout=60) as http:
        yield http


@pytest.fixture
def admin(gateway):
    headers = {"authorization": f"Bearer {ADMIN}"}
    with httpx2.Client(base_url=gateway.url, headers=headers, timeout=60) as http:
        yield http


@pytest.fixture
def whole():
    """One with everything that is off by default."""
    toml = f'[server]\nadmin_secret = "{ADMIN}"\nrequire_key = true\n[providers.demo]\n[login]\n'
    headers = {"authorization": f"Bearer {ADMIN}"}
    with LiveGateway(toml) as running, httpx2.Client(base_url=running.url, headers=headers) as http:
        yield http


def test_a_running_gateway_knows_every_path_of_the_file(whole):
    lost = []
    for method, path in ASKED:
        body: dict[str, Any] = {"json": {}} if method in ("POST", "PATCH") else {}
        with whole.stream(method, path, **body) as answer:
            # The inspector's list of exchanges as they happen has no end.
            is_endless = answer.headers.get("content-type", "").startswith("text/event-stream")
            text = "" if is_endless else answer.read().decode()
        by_route = answer.status_code == 405 or (
            answer.status_code == 404 and ("there is no endpoint" in text or "not served" in text)
        )
        if by_route or answer.status_code >= 500:
            lost.append(f"{method} {path}: {answer.status_code} {text[:100]}")
    assert lost == []


def strictly(name):
    """A validator of a schema that takes no field that is not reported."""
    closed = json.loads(json.dumps(DOCUMENT["components"]["schemas"]))
    _close(closed)
    root = {"$ref": f"#/components/schemas/{name}", "components": {"schemas": closed}}
    return jsonschema.Draft202012Validator(root)


def _close(schema: Any) -> None:
    if isinstance(schema, dict):
        if "properties" in schema:
            schema.setdefault("additionalProperties", False)
        for value in schema.values():
            _close(value)
    if isinstance(schema, list):
        for value in schema:
            _close(value)


def answered(answer, method, path):
    """The answer's document, which is as the file says of that path."""
    operation = DOCUMENT["paths"][path][method.lower()]
    good = operation["responses"][str(answer.status_code)]
    (kind,) = (kind for kind in good["content"] if answer.headers["content-type"].startswith(kind))
    reference = good["content"][kind]["schema"]["$ref"]
    value = answer.json()
    strictly(reference.rpartition("/")[2]).validate(value)
    for name in good.get("headers", {}):
        if name == "x-wireglot-request-id":
            assert name in answer.headers
    return value


def test_keys_are_as_the_file_says(admin):
    body = {
        "name": "team-a",
        "models": ["demo*"],
        "losses": "warn",
        "requests_per_minute": 60,
        "cost_per_day": 2.5,
    }
    one = "/v1/admin/keys/{name}"
    try:
        strictly("KeyToMake").validate(body)
        made = answered(admin.post("/v1/admin/keys", json=body), "post", "/v1/admin/keys")
        assert made["key"].startswith("wg-")
        listed = answered(admin.get("/v1/admin/keys"), "get", "/v1/admin/keys")
        assert [key["name"] for key in listed["data"]] == ["team-a"]
        strictly("KeyChange").validate({"models": None, "concurrent": 3, "losses": None})
        changed = admin.patch("/v1/admin/keys/team-a", json={"models": None, "concurrent": 3, "losses": None})
        assert answered(changed, "patch", one)["concurrent"] == 3
        turned = admin.post("/v1/admin/keys/team-a/rotate", json={"overlap": 60})
        assert answered(turned, "post", f"{one}/rotate")["old_key_until"]
        answered(admin.get("/v1/admin/keys/team-a"), "get", one)
        assert answered(admin.delete("/v1/admin/keys/team-a"), "delete", one)["state"] == "revoked"
    finally:
        gone = admin.post("/v1/admin/keys/team-a/delete")
    answered(gone, "post", f"{one}/delete")


def test_what_was_used_and_lost_is_reported_as_the_file_says(client, admin):
    body = {"model": "demo-anthropic", "seed": 7, "messages": [{"role": "user", "content": "Hi"}]}
    headers = {"x-wireglot-session": "talk"}
    asked = client.post("/v1/chat/completions", json=body, headers=headers)
    assert asked.status_code == 200
    assert "x-wireglot-losses" in asked.headers
    losses = f"/v1/requests/{asked.headers['x-wireglot-request-id']}/losses"
    answered(client.get(losses), "get", "/v1/requests/{request_id}/losses")
    used = client.get("/v1/usage", params={"group_by": "key,model,provider,day,session,outcome"})
    assert answered(used, "get", "/v1/usage")["data"][0]["requests"] >= 1
    answered(client.get("/v1/usage", params={"start": "0", "end": "1"}), "get", "/v1/usage")
    answered(admin.get("/v1/admin/usage", params={"key": "local"}), "get", "/v1/admin/usage")
    (session, *_) = answered(client.get("/v1/sessions"), "get", "/v1/sessions")["data"]
    answered(client.get(f"/v1/sessions/{session['id']}"), "get", "/v1/sessions/{session_id}")
    answered(client.delete(f"/v1/sessions/{session['id']}"), "delete", "/v1/sessions/{session_id}")
    answered(admin.get("/v1/admin/store"), "get", "/v1/admin/store")
    answered(admin.delete("/v1/admin/callers/local/data"), "delete", "/v1/admin/callers/{name}/data")


def test_the_inspector_answers_as_the_file_says(client):
    session = answered(client.get("/inspector/api/session"), "get", "/inspector/api/session")
    token = {"x-wireglot-csrf": session["csrf"]}
    chat = {"model": "m", "messages": [{"role": "user", "content": "Hi"}], "seed": 7}
    document = {"dialect": "openai-chat", "kind": "request", "text": json.dumps(chat)}
    strictly("ToTranslate").validate(document)
    path = "/inspector/api/translate"
    reported = answered(client.post(path, json=document, headers=token), "post", path)
    assert any(there["losses"] for there in reported["dialects"].values())
    document["text"] = "{"
    assert answered(client.post(path, json=document, headers=token), "post", path)["problem"]
    path = "/inspector/api/ask"
    assert answered(client.post(path, json={"text": "Hi"}, headers=token), "post", path)["status"] == 200
    answered(client.post(path, json={"model": "nothing"}, headers=token), "post", path)
    path = "/inspector/api/session"
    signed_in = answered(client.post(path, json={"secret": ADMIN}), "post", path)
    answered(client.delete(path, headers={"x-wireglot-csrf": signed_in["csrf"]}), "delete", path)


@pytest.mark.parametrize("path", ["/", "/health", "/healthz", "/readyz"])
def test_the_condition_of_the_gateway_is_reported_as_the_file_says(client, path):
    answered(client.get(path), "get", path)


def test_the_simplified_form_takes_what_the_file_says(client):
    body = {"model": "demo", "input": "Hello", "temperature": 0.5, "max_output_tokens": 50, "timeout": 30}
    strictly("SimpleRequest").validate(body)
    assert client.post("/v1/gemini", json=body).status_code == 200


def test_the_page_and_the_file_are_those_of_the_code():
    """As `make docs` writes them."""
    written = json.loads((ROOT / "docs" / "reference" / "openapi.json").read_text(encoding="utf-8"))
    assert written["paths"].keys() == DOCUMENT["paths"].keys()


def test_only_paths_with_a_verb_end_in_one():
    text = "\n".join(page(DOCUMENT))
    assert "/interactions`, where" in text
    assert "/interactions:" not in text
    assert "/models/{model}:...`, where" in text
