"""Stored interactions over HTTP: ids of others, paths, versions, agents."""

from __future__ import annotations

import http.client
from collections.abc import Iterator
from typing import Any

import pytest

from tests.gateway.state.responses_kit import ALICE, BOB, Stage
from tests.waiting import DEADLINE_SECONDS
from wireglot_core.wire.json import encode

PATH = "/v1/interactions"
VERTEX = "/v1beta1/projects/p/locations/l/interactions"
HI: dict[str, Any] = {"model": "m1", "input": "hi"}


@pytest.fixture(scope="module")
def foreign() -> Iterator[Stage]:
    """Before an upstream of another dialect."""
    with Stage("openai-chat") as stage:
        yield stage


@pytest.fixture(scope="module")
def google() -> Iterator[Stage]:
    with Stage("gemini-interactions", routes='"research" = "mine/deep-research-1"\n') as stage:
        yield stage


def ask(stage: Stage, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return stage.ask(method, path, body, {"x-goog-api-key": ALICE, **named})


def ask_bytes(stage: Stage, body: bytes) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", stage.gateway.port, timeout=DEADLINE_SECONDS)
    try:
        headers = {"x-goog-api-key": ALICE, "content-type": "application/json"}
        connection.request("POST", PATH, body, headers)
        answer = connection.getresponse()
        assert (answer.status, bool(answer.read())) == (200, True)
    finally:
        connection.close()


def test_each_dialect_reads_only_its_own_documents(foreign: Stage) -> None:
    interaction = ask(foreign, "POST", PATH, HI)[1]["id"]
    response = ask(foreign, "POST", "/v1/responses", HI)[1]["id"]
    wrong = []
    for method, path in (
        ("GET", f"/v1/responses/{interaction}"),
        ("GET", f"/v1/responses/{interaction}/input_items"),
        ("GET", f"/v1/responses/{interaction}/input_items?after=x"),
        ("POST", f"/v1/responses/{interaction}/cancel"),
        ("DELETE", f"/v1/responses/{interaction}"),
        ("GET", f"{PATH}/{response}"),
        ("GET", f"{PATH}/{response}?stream=true"),
        ("POST", f"{PATH}/{response}/cancel"),
        ("DELETE", f"{PATH}/{response}"),
    ):
        status, _ = ask(foreign, method, path)
        if status != 404:
            wrong.append((method, path, status))
    assert not wrong
    assert ask(foreign, "GET", f"{PATH}/{interaction}")[0] == 200
    assert ask(foreign, "GET", f"/v1/responses/{response}")[0] == 200


def test_another_callers_interaction_looks_like_one_that_never_was(foreign: Stage) -> None:
    made = ask(foreign, "POST", PATH, HI)[1]["id"]
    never = "v1_" + "0" * 32
    for method, rest in (("GET", ""), ("GET", "?stream=true"), ("DELETE", ""), ("POST", "/cancel")):
        (status, body), unknown = (
            foreign.ask(method, f"{PATH}/{id}{rest}", headers={"x-goog-api-key": BOB}, key=BOB)
            for id in (made, never)
        )
        assert (status, body["error"]["code"]) == (404, "not_found")
        assert encode(body).replace(made.encode(), never.encode()) == encode(unknown[1])
    assert ask(foreign, "GET", f"{PATH}/{made}")[0] == 200


def test_every_wrong_verb_gets_an_error_of_this_dialect(foreign: Stage) -> None:
    """Vertex's long paths, too."""
    wrong = []
    for root in (PATH, VERTEX):
        for method, rest, allowed in (
            ("GET", "", "POST"),
            ("PUT", "", "POST"),
            ("PUT", "/v1_x", "GET, DELETE"),
            ("GET", "/v1_x/cancel", "POST"),
        ):
            status, body = ask(foreign, method, root + rest)
            error = body["error"]
            said = (status, error["code"], error["message"])
            if said != (405, "invalid_request", f"{root}{rest} supports {allowed}"):
                wrong.append((method, root + rest, said))
    assert not wrong
    status, body = ask(foreign, "POST", f"{PATH}/v1_x/stop")
    assert (status, body["error"]["code"]) == (404, "not_found")


def test_older_versions_of_the_api_are_refused(foreign: Stage) -> None:
    """They have other fields and events (`outputs`, `content.delta`), which their clients wait for."""
    made = ask(foreign, "POST", PATH, HI)[1]["id"]
    asked = len(foreign.upstream.requests)
    for method, path, body in (
        ("POST", PATH, HI),
        ("POST", VERTEX, HI),
        ("POST", PATH, {**HI, "background": True}),
        ("GET", f"{PATH}/{made}", None),
    ):
        status, said = ask(foreign, method, path, body, api_revision="2025-12-11")
        assert (status, said["error"]["code"]) == (400, "failed_precondition")
        assert "Api-Revision: 2026-05-20 or later" in said["error"]["message"]
    assert len(foreign.upstream.requests) == asked
    for served in ("2026-05-20", "2026-10-01", ""):
        assert ask(foreign, "POST", PATH, HI, api_revision=served)[0] == 200
        assert ask(foreign, "GET", f"{PATH}/{made}", api_revision=served)[0] == 200
    assert ask(foreign, "POST", "/v1/responses", HI, api_revision="2025-12-11")[0] == 200


AGENT: dict[str, Any] = {"agent": "deep-research-1", "input": "hi", "agent_config": {"type": "deep-research"}}


def test_an_agent_is_passed_on_to_a_google_upstream(google: Stage) -> None:
    """Google keeps what its agents did: ids of earlier interactions are its own."""
    wrong = []
    for more in (
        {},
        {"store": True},
        {"stream": True, "background": True},
        {"previous_interaction_id": "v1_of_google", "environment": "env_1"},
        {"model": None},
    ):
        sent = encode({**AGENT, **more})
        ask_bytes(google, sent)
        if google.upstream.requests[-1].body != sent:
            wrong.append((sent, google.upstream.requests[-1].body))
    assert not wrong


def test_an_agent_is_renamed_by_its_route(google: Stage) -> None:
    sent = encode({**AGENT, "agent": "research"})
    ask_bytes(google, sent)
    assert google.upstream.requests[-1].body == sent.replace(b'"research"', b'"deep-research-1"')


def test_what_an_agent_does_in_the_background_could_not_be_fetched(google: Stage) -> None:
    asked = len(google.upstream.requests)
    status, said = ask(google, "POST", PATH, {**AGENT, "background": True})
    assert (status, said["error"]["code"]) == (400, "failed_precondition")
    assert said["error"]["message"].startswith("background: ")
    assert len(google.upstream.requests) == asked


@pytest.mark.parametrize("dialect", ["openai-chat", "gemini"])
def test_an_agent_runs_nowhere_but_at_google(dialect: str) -> None:
    with Stage(dialect) as stage:
        for more in ({}, {"store": False}, {"stream": True}):
            status, said = ask(stage, "POST", PATH, {**AGENT, **more})
            assert (status, said["error"]["code"]) == (400, "invalid_request")
            assert said["error"]["message"].startswith("agent: ")
        status, said = ask(stage, "POST", PATH, {**AGENT, "agent": 5})
        assert (status, said["error"]["message"]) == (400, "agent: expected a string")
        assert not stage.upstream.requests
