"""A recorded request asked again: elsewhere, in another dialect, or changed."""

from __future__ import annotations

import hashlib
import http.client
import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.gateway.faults.faults_kit import BY_NAME, ask, post
from tests.gateway.trace.trace_kit import Document, Stage, id_of, stage, text_of
from tests.tiers import rows
from tests.waiting import wait_until
from wireglot_core.wire.json import decode

A, C, R, G = (BY_NAME[name] for name in ("anthropic", "openai-chat", "openai-responses", "gemini"))
FOUR = ("anthropic", "openai-chat", "openai-responses", "gemini")


@pytest.fixture(scope="module")
def made() -> Iterator[Stage]:
    with stage() as prepared:
        yield prepared


def recorded(made: Stage, name: str, **more: Any) -> str:
    id = id_of(ask(made.gateway, BY_NAME[name], "openai-chat-up/m1", "Say it again.", **more))
    made.look.trace(id)
    return id


def again(made: Stage, id: str, **more: Any) -> Document:
    reported = made.look.post("replay", {"id": id, **more})
    assert reported["status"] == 200, reported
    return made.look.trace(reported["id"])


@pytest.mark.sampled("name", "to")
@rows("stream", [False, True])
@rows("to", FOUR)
@rows("name", FOUR)
def test_a_request_goes_to_another_provider(made: Stage, name: str, to: str, stream: bool) -> None:
    trace = again(made, recorded(made, name, stream=stream), to=f"{to}-up/other")
    assert trace["row"]["dialect"] == name
    assert (trace["row"]["provider"], trace["row"]["model"]) == (f"{to}-up", "other")
    assert trace["row"].get("stream", False) is stream
    assert "Say it again." in trace["attempts"][0]["request"]["body"]
    assert text_of(trace["answer"])


@pytest.mark.parametrize("spoken", FOUR)
def test_a_request_is_asked_in_another_dialect(made: Stage, spoken: str) -> None:
    trace = again(made, recorded(made, "anthropic"), dialect=spoken, to="gemini-up/m1")
    assert trace["row"]["dialect"] == spoken
    assert "Say it again." in trace["request"]["body"]


def test_a_request_is_changed_before_it_is_asked(made: Stage) -> None:
    id = recorded(made, "openai-chat")
    body = decode(made.look.trace(id)["request"]["body"])
    body["messages"][0]["content"] = "Something else."
    trace = again(made, id, to="gemini-up/m1", body=body)
    assert "Something else." in trace["attempts"][0]["request"]["body"]


def test_a_replay_goes_on_with_no_conversation_and_never_in_the_background(made: Stage) -> None:
    id = recorded(made, "openai-responses")
    body = decode(made.look.trace(id)["request"]["body"])
    state = {"previous_response_id": "resp_of_another", "conversation": "conv_1", "background": True}
    trace = again(made, id, to="openai-responses-up/m1", body=body | state)
    assert not decode(trace["request"]["body"]).keys() & state.keys()


def test_what_it_may_cost_is_reported_before_and_nothing_is_asked(made: Stage) -> None:
    id = recorded(made, "anthropic")
    before = len(made.upstream.requests)
    reported = made.look.post("replay", {"id": id, "to": "gemini-up/m1", "dry": True})
    assert (reported["provider"], reported["model"]) == ("gemini-up", "m1")
    assert reported["pays"] == "config"
    assert reported["estimate"]["input"] > 0
    assert reported["estimate"]["max_output"] == 4096
    assert reported["estimate"]["cost"] is None
    assert len(made.upstream.requests) == before


@rows(
    ("more", "status"),
    [
        ({"id": "req_unknown"}, 404),
        ({"to": "nobody/m1", "dry": True}, 404),
        ({"dialect": "latin"}, 400),
        ({"body": "{"}, 400),
        ({"body": []}, 400),
        ({"to": 5}, 400),
        ({"dryy": True}, 400),
        ({"dry": "no"}, 400),
        ({"stream": "no"}, 400),
        ({"id": "", "dialect": "gemini"}, 400),
        ({"id": "", "body": {}}, 400),
    ],
)
def test_what_cannot_be_asked_is_reported(made: Stage, more: Document, status: int) -> None:
    id = recorded(made, "anthropic")
    assert made.look.raw("replay", "POST", {"id": id, "to": "gemini-up/m1", **more}).status == status


def test_a_change_without_the_token_is_refused(made: Stage) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", made.gateway.port)
    connection.request("POST", "/inspector/api/replay", b'{"id": "x"}', {"content-type": "application/json"})
    assert connection.getresponse().status == 403
    connection.close()


def test_a_key_is_given_no_price_of_what_it_may_not_ask() -> None:
    key = "alice-key-0123456789abcdef"
    digest = hashlib.sha256(key.encode()).hexdigest()
    table = f'[keys.alice]\nhash = "sha256:{digest}"\nmodels = ["openai-chat-up/*"]\n'
    with stage(more=lambda upstream: table) as kept:
        id = id_of(ask(kept.gateway, A, "openai-chat-up/m1", headers={"x-api-key": key}))
        headers = {"x-api-key": key, "content-type": "application/json"}

        def priced(to: str) -> int:
            asked = json.dumps({"id": id, "to": to, "dry": True}).encode()
            return post(kept.gateway.port, "/inspector/api/replay", asked, headers).status

        wait_until(lambda: priced("openai-chat-up/m1") == 200)
        assert priced("gemini-up/m1") == 403


def test_a_provider_that_is_named_is_asked_whatever_the_patterns_of_the_models_say() -> None:
    with stage(more=lambda _: '[models]\n"*" = "openai-chat-up/caught"\n') as made:
        id = id_of(ask(made.gateway, A, "anything", "Say it again."))
        made.look.trace(id)
        reported = made.look.post("replay", {"id": id, "to": "gemini-up/m1", "dry": True})
        assert (reported["provider"], reported["model"]) == ("gemini-up", "m1")
        trace = again(made, id, to="gemini-up/m1")
        assert (trace["row"]["provider"], trace["row"]["model"]) == ("gemini-up", "m1")
        assert again(made, id, to="a-name")["row"]["model"] == "caught"
        assert again(made, id)["row"]["model"] == "caught"
