"""Requests made ready for an upstream, and answers on their way back."""

from __future__ import annotations

from typing import Any

import pytest

from tests.gateway.offline import CHAT, CHAT_PATH, MESSAGE, MESSAGES_PATH, Offline, Said, asked
from tests.gateway.relay.test_attempts import chat, claude, refusal
from tests.tiers import rows
from wireglot.gateway.request.headers import ESTIMATE
from wireglot.http.transport import TransportFault
from wireglot_core.wire.json import decode, encode

TOOL = {"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}


def event(document: dict[str, Any] | str) -> bytes:
    return b"data: " + (document.encode() if isinstance(document, str) else encode(document)) + b"\n\n"


def chunk(delta: dict[str, Any], reason: str | None = None, **more: Any) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": reason}
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    return event({**head, "choices": [choice], **more})


USED = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}
STREAM = (
    chunk({"role": "assistant", "content": "Hel"}),
    chunk({"content": "lo."}),
    chunk({}, "stop"),
    event(
        {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [],
         "usage": USED}
    ),
    event("[DONE]"),
)  # fmt: skip


def events(body: bytes) -> list[Any]:
    lines = [line.removeprefix(b"data: ") for line in body.split(b"\n") if line.startswith(b"data: ")]
    return [decode(line) if line != b"[DONE]" else "[DONE]" for line in lines]


def test_a_stream_passes_and_is_counted() -> None:
    with Offline(providers={"mine": chat()}) as offline:
        offline.upstream.say(Said(pieces=STREAM))
        got = offline.ask(CHAT_PATH, asked(stream=True))
    assert offline.upstream.headers["accept"] == "text/event-stream"
    assert got.headers["content-type"].startswith("text/event-stream")
    assert (
        "".join(
            each["choices"][0]["delta"].get("content", "")
            for each in events(got.body)[:-1]
            if each["choices"]
        )
        == "Hello."
    )
    assert events(got.body)[-1] == "[DONE]"
    assert got.record is not None
    assert (got.record.usage_source, got.record.stop, got.record.stream) == ("provider", "end", True)
    assert got.record.usage is not None
    assert (got.record.usage.input, got.record.usage.output) == (3, 2)


@rows(("given", "client_asked"), [({}, False), ({"stream_options": {"include_usage": True}}, True)])
def test_a_known_provider_is_asked_for_the_usage_of_a_stream(
    given: dict[str, Any], client_asked: bool
) -> None:
    """The ledger needs it; a client that has not asked for it does not see it."""
    with Offline(providers={"kimi": {"api_key": "k"}}) as offline:
        offline.upstream.say(Said(pieces=STREAM))
        got = offline.ask(CHAT_PATH, asked("kimi/kimi-k3", stream=True, **given))
        assert offline.upstream.json["stream_options"] == {"include_usage": True}
        assert any(each.get("usage") for each in events(got.body)[:-1]) is client_asked
        offline.upstream.say(Said(body=CHAT))
        offline.ask(CHAT_PATH, asked("kimi/kimi-k3"))
        assert "stream_options" not in offline.upstream.json


def test_an_unknown_server_is_not_asked_for_what_it_may_not_know() -> None:
    with Offline(providers={"mine": chat()}) as offline:
        offline.upstream.say(Said(pieces=STREAM))
        offline.ask(CHAT_PATH, asked(stream=True))
    assert "stream_options" not in offline.upstream.json


@rows(
    ("streams", "wants", "sent", "pieces"),
    [
        ("both", True, True, True),
        ("both", False, None, False),
        ("only", True, True, True),
        ("only", False, True, True),
        ("never", True, None, False),
        ("never", False, None, False),
    ],
)
def test_upstreams_that_only_stream_or_never_do_serve_every_client(
    streams: str, wants: bool, sent: bool | None, pieces: bool
) -> None:
    with Offline(providers={"mine": chat(streams=streams)}) as offline:
        offline.upstream.say(Said(pieces=STREAM) if pieces else Said(body=CHAT))
        got = offline.ask(CHAT_PATH, asked(stream=wants))
        assert got.status == 200
        assert offline.upstream.json.get("stream") in ((sent, False) if sent is None else (sent,))
        if wants:
            said = [each for each in events(got.body)[:-1] if each["choices"]]
            assert "".join(each["choices"][0]["delta"].get("content") or "" for each in said) == "Hello."
        else:
            assert got.json["choices"][0]["message"]["content"] == "Hello."
            assert got.json["usage"]["total_tokens"] == 5
        assert got.record is not None
        assert got.record.passthrough is ((streams == "both") or (streams == "only") == wants)


# Losses: reported, refused, or of no interest.

LOSING: dict[str, Any] = {"logit_bias": {"1": 2}, "seed": 7, "frequency_penalty": 1.0, "presence_penalty": 1.0, "logprobs": True,
          "top_logprobs": 2}  # fmt: skip


def lossy(offline: Offline, **headers: str) -> Any:
    offline.upstream.say(Said(body=MESSAGE))
    return offline.ask(CHAT_PATH, asked(**LOSING), **headers)


def test_losses_are_reported_unless_the_caller_wants_silence() -> None:
    with Offline(providers={"mine": claude()}) as offline:
        got = lossy(offline)
        assert got.status == 200
        assert got.record.losses
        assert got.headers["x-wireglot-losses"] == (
            "logprobs,sampling.frequency_penalty,sampling.presence_penalty,sampling.seed,unknown_field"
        )
        silent = lossy(offline, x_wireglot_loss_policy="silent")
        assert not [name for name in silent.headers if name.startswith("x-wireglot-loss")]
        assert silent.record.losses == got.record.losses


def test_who_wants_no_losses_is_told_the_worst_and_some_others() -> None:
    with Offline(providers={"mine": claude()}) as offline:
        got = lossy(offline, x_wireglot_loss_policy="strict")
        assert (got.status, len(offline.upstream.sent)) == (400, 0)
        error = got.json["error"]
        assert (error["code"], error["param"]) == ("loss_refused", error["message"].partition(":")[0])
        assert error["param"] in LOSING
        named, _, more = error["message"].partition(" (and ")
        count, _, others = more.removesuffix(")").partition(" more: ")
        kept = [each for each in others.split(", ") if each != "..."]
        assert len(kept) == min(int(count), 4)
        assert others.endswith(", ...") is (int(count) > 4)
        assert all(" at " in each for each in kept)
        assert named
        assert [name for name in got.headers if name.startswith("x-wireglot-loss")]


def test_a_single_loss_is_refused_without_a_list() -> None:
    with Offline(providers={"mine": claude()}) as offline:
        offline.upstream.say(Said(body=MESSAGE))
        got = offline.ask(CHAT_PATH, asked(seed=7), x_wireglot_loss_policy="strict")
    assert got.json["error"]["param"] == "seed"
    assert " more: " not in got.json["error"]["message"]


def test_what_cannot_be_forwarded_unchanged_is_refused_and_says_why() -> None:
    tables = {"mine": claude(), "slow": chat(streams="only")}
    with Offline(providers=tables) as offline:
        offline.upstream.say(Said(body=MESSAGE))
        for model, said in (
            ("mine/m", "mine speaks anthropic: "),
            ("slow/m", "slow speaks openai-chat, streams: only: "),
        ):
            got = offline.ask(CHAT_PATH, asked(model), x_wireglot_loss_policy="as-is")
            assert (got.status, got.json["error"]["code"]) == (400, "as_is_impossible")
            assert got.json["error"]["message"].startswith(said)
        assert not offline.upstream.sent
        assert offline.ask(MESSAGES_PATH, asked(), x_wireglot_loss_policy="as-is").status == 200


def test_the_loss_policy_of_the_caller_comes_before_that_of_the_route_and_of_all() -> None:
    tables = {"providers": {"mine": claude(losses="strict")}, "losses": "silent"}
    with Offline(**tables) as offline:
        assert lossy(offline).status == 400
        assert lossy(offline, x_wireglot_loss_policy="warn").status == 200


SCHEMA = {
    "type": "object",
    "properties": {"a": {"type": "string"}},
    "required": ["a"],
    "additionalProperties": False,
}
FORMAT = {"output_config": {"format": {"type": "json_schema", "schema": SCHEMA}}}
OLLAMA = {"ollama": {"base_url": "https://o.example/v1", "base_urls": {"anthropic": "https://o.example"}}}
PDF = {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "QQ=="}}


@rows(
    ("policy", "more", "path", "status"),
    [
        ("warn", {}, "/v1/messages", 200),
        ("warn", FORMAT, "/v1/chat/completions", 200),
        ("strict", FORMAT, "/v1/chat/completions", 200),
        ("silent", FORMAT, "/v1/chat/completions", 200),
        ("as-is", FORMAT, "/v1/messages", 200),
        ("warn", {"messages": [{"role": "user", "content": [PDF]}]}, "/v1/messages", 200),
        ("strict", {"messages": [{"role": "user", "content": [PDF]}]}, "", 400),
    ],
)
def test_a_request_goes_out_in_the_dialect_of_the_provider_that_loses_least(
    policy: str, more: dict[str, Any], path: str, status: int
) -> None:
    with Offline(providers=OLLAMA) as offline:
        offline.upstream.say(Said(body=MESSAGE if path == "/v1/messages" else {**CHAT, "choices": [
            {"index": 0, "message": {"role": "assistant", "content": '{"a":"b"}'}, "finish_reason": "stop"}]}))  # fmt: skip
        got = offline.ask(MESSAGES_PATH, asked("ollama/m", **more), x_wireglot_loss_policy=policy)
        assert got.status == status
        assert [sent.url.removeprefix("https://o.example") for sent in offline.upstream.sent] == [
            path
        ] * bool(path)
        if path:
            assert got.record is not None
            assert got.record.upstream_dialect == ("anthropic" if path == "/v1/messages" else "openai-chat")
            assert got.json["type"] == "message"


# What becomes of an answer.


def test_a_stream_that_breaks_before_it_begins_is_tried_again() -> None:
    broken = Said(pieces=(TransportFault("broken", "the connection ended"),))
    with Offline(providers={"mine": chat()}) as offline:
        offline.upstream.say(broken, Said(pieces=STREAM))
        got = offline.ask(CHAT_PATH, asked(stream=True))
    assert (got.status, len(offline.upstream.sent)) == (200, 2)
    assert events(got.body)[-1] == "[DONE]"


def test_a_stream_that_breaks_later_ends_in_an_error_and_counts_against_the_provider() -> None:
    broken = Said(pieces=(*STREAM[:1], TransportFault("broken", "the connection ended")))
    with Offline(providers={"mine": chat(breaker={"consecutive": 1})}) as offline:
        offline.upstream.say(broken)
        got = offline.ask(CHAT_PATH, asked(stream=True))
        assert (got.status, len(offline.upstream.sent)) == (200, 1)
        assert "error" in events(got.body)[-1]
        assert b"[DONE]" not in got.body
        assert got.record is not None
        assert got.record.outcome == "error"
        assert offline.gateway.health.breakers["mine/m"].is_open


def test_an_error_in_place_of_a_stream_is_one() -> None:
    with Offline(providers={"mine": chat(retry={"retries": 0})}) as offline:
        offline.upstream.say(Said(pieces=(event({"error": {"message": "no room", "code": 503}}),)))
        got = offline.ask(CHAT_PATH, asked(stream=True))
    assert got.record is not None
    assert got.record.outcome == "error"
    assert "no room" in got.record.error_message


def test_an_answer_in_one_piece_where_a_stream_was_wanted() -> None:
    with Offline(providers={"mine": chat()}) as offline:
        offline.upstream.say(Said(body=CHAT))
        got = offline.ask(CHAT_PATH, asked(stream=True))
    assert got.record is not None
    assert b"Hello." in got.body
    assert got.headers["content-type"].startswith("text/event-stream")


EMPTY = {
    **CHAT,
    "choices": [{"index": 0, "message": {"role": "assistant", "content": ""}, "finish_reason": "stop"}],
}


def test_an_empty_answer_is_asked_for_once_more_and_what_it_cost_is_counted() -> None:
    with Offline(providers={"mine": chat(breaker={"consecutive": 1})}) as offline:
        offline.upstream.say(Said(body=EMPTY), Said(body=CHAT))
        got = offline.ask(CHAT_PATH, asked())
        assert (got.status, len(offline.upstream.sent)) == (200, 2)
        assert got.record is not None
        assert got.record.usage is not None
        assert (got.record.usage.input, got.record.usage.output) == (6, 4)
        offline.upstream.say(Said(body=EMPTY))
        got = offline.ask(CHAT_PATH, asked())
        assert (got.status, len(offline.upstream.sent)) == (502, 4)
        assert not offline.gateway.health.breakers["mine/m"].is_open


@pytest.mark.parametrize("body", [b"\xff{}", b'{"id": "\xff"}'])
def test_an_answer_that_is_not_utf8_is_an_error(body: bytes) -> None:
    with Offline(providers={"mine": chat(retry={"retries": 0})}) as offline:
        offline.upstream.say(Said(body=body))
        assert offline.ask(CHAT_PATH, asked()).status == 502


def test_a_document_in_a_list_is_read() -> None:
    with Offline(providers={"mine": chat(retry={"retries": 0})}) as offline:
        offline.upstream.say(Said(body=encode([CHAT])))
        assert offline.ask(MESSAGES_PATH, asked()).status == 200
        offline.upstream.say(Said(body=encode([CHAT, CHAT])))
        assert offline.ask(MESSAGES_PATH, asked()).status == 502
        offline.upstream.say(Said(body=encode([{"error": {"message": "no room", "code": 503}}])))
        got = offline.ask(MESSAGES_PATH, asked())
        assert "no room" in got.json["error"]["message"]


def test_usage_that_no_provider_reports_is_estimated_and_says_so() -> None:
    with Offline(providers={"mine": chat()}) as offline:
        offline.upstream.say(Said(body={name: value for name, value in CHAT.items() if name != "usage"}))
        got = offline.ask(MESSAGES_PATH, asked())
        assert ESTIMATE in got.headers.items()
        assert got.record is not None
        assert got.record.usage_source == "estimated"
        assert got.json["usage"]["output_tokens"] > 0
        assert got.json["usage"]["input_tokens"] > 0


def test_a_translated_answer_names_the_model_that_was_asked_for() -> None:
    with Offline(providers={"mine": chat()}) as offline:
        offline.upstream.say(Said(body={**CHAT, "model": "m-2026-01-01"}))
        got = offline.ask(MESSAGES_PATH, asked())
    assert got.json["model"] == "mine/m"
    assert got.record is not None
    assert (got.record.response_model, got.record.stop) == ("m-2026-01-01", "end")


# Several answers.


def test_further_answers_are_separate_requests_with_other_seeds() -> None:
    with Offline(providers={"mine": claude()}) as offline:
        offline.upstream.say(Said(body=MESSAGE))
        got = offline.ask(CHAT_PATH, asked(n=3), x_wireglot_timeout="50", x_session_id="s1")
        assert [choice["message"]["content"] for choice in got.json["choices"]] == ["Hello."] * 3
        assert got.json["usage"]["total_tokens"] == 15
        assert len(offline.upstream.sent) == 3
        assert {decode(sent.body)["model"] for sent in offline.upstream.sent} == {"m"}
        assert [decode(sent.body)["max_tokens"] for sent in offline.upstream.sent] == [9, 9, 9]
        own = [record for record in offline.records if record.within]
        assert len(own) == 2
        assert {record.operation for record in own} == {"candidate"}
        assert {record.session for record in own} == {"s1"}
        assert {record.agent for record in own} == {"wireglot-candidate"}
        assert {timeouts.total for timeouts in offline.upstream.timeouts} == {50.0}
        assert got.record is not None
        assert {record.within for record in own} == {got.record.id}


def test_a_further_answer_that_fails_is_named() -> None:
    with Offline(providers={"mine": claude(retry={"retries": 0})}) as offline:
        offline.upstream.say(Said(body=MESSAGE), Said(body=MESSAGE), refusal(400, "not again"))
        got = offline.ask(CHAT_PATH, asked(n=3))
    assert got.status == 400
    assert got.json["error"]["message"].startswith("answer 3: ")


# Headers.


@rows(
    ("given", "sent"),
    [
        ({}, {"anthropic-version": "2023-06-01"}),
        ({"anthropic_version": "2024-01-01"}, {"anthropic-version": "2024-01-01"}),
        ({"anthropic_beta": "a,b"}, {"anthropic-version": "2023-06-01", "anthropic-beta": "a,b"}),
    ],
)
def test_headers_of_the_dialect_are_forwarded_and_the_fixed_ones_added_where_they_lack(
    given: dict[str, str], sent: dict[str, str]
) -> None:
    with Offline(providers={"mine": claude(headers={"x-more": "1"})}) as offline:
        offline.upstream.say(Said(body=MESSAGE))
        offline.ask(MESSAGES_PATH, asked(), x_other="no", **given)
        headers = offline.upstream.sent[-1].headers
        assert sorted(header for header in headers if header[0].startswith("anthropic-")) == sorted(
            sent.items()
        )
        assert ("x-more", "1") in headers
        assert "x-other" not in dict(headers)
        # A client of another dialect cannot speak for this one.
        offline.ask(CHAT_PATH, asked(), **given)
        others = [
            header for header in offline.upstream.sent[-1].headers if header[0].startswith("anthropic-")
        ]
        assert others == [("anthropic-version", "2023-06-01")]


def test_a_list_of_events_is_asked_for_where_the_client_wants_one() -> None:
    table = {"dialect": "gemini", "base_url": "https://g.example/v1beta", "api_key": "k"}
    body = {"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]}
    said = {
        "candidates": [{"content": {"role": "model", "parts": [{"text": "Hello."}]}, "finishReason": "STOP"}]
    }
    with Offline(providers={"mine": table}, models={"m": "mine/m"}) as offline:
        offline.upstream.say(Said(body=encode([said])))
        got = offline.ask("/v1beta/models/m:streamGenerateContent", body)
        assert offline.upstream.sent[-1].url.endswith("/models/m:streamGenerateContent")
        assert got.json[0]["candidates"][0]["content"]["parts"][0]["text"] == "Hello."
        offline.upstream.say(Said(pieces=(event(said),)))
        offline.ask("/v1beta/models/m:streamGenerateContent?alt=sse", body)
        assert offline.upstream.sent[-1].url.endswith("/models/m:streamGenerateContent?alt=sse")


def test_a_model_is_replaced_in_the_body_only_where_its_name_differs() -> None:
    with Offline(providers={"mine": chat()}, models={"m": "mine/m", "other": "mine/m"}) as offline:
        offline.upstream.say(Said(body=CHAT))
        body = b'{ "model" : "m", "messages": [{"role": "user", "content": "Hi"}] }'
        offline.ask(CHAT_PATH, body)
        assert offline.upstream.sent[-1].body == body
        offline.ask(CHAT_PATH, body.replace(b'"m"', b'"other"'))
        assert offline.upstream.sent[-1].body == body


def test_a_project_is_filled_in_from_the_variables_of_the_provider() -> None:
    table = {"dialect": "code-assist", "base_url": "https://g.example", "api_key": "k"}
    request = {"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]}
    said = {
        "response": {
            "candidates": [
                {"content": {"role": "model", "parts": [{"text": "Hello."}]}, "finishReason": "STOP"}
            ]
        }
    }
    for variables, filled in ({"project": "p-1"}, "p-1"), ({}, None):
        with Offline(
            providers={"mine": {**table, "variables": variables}}, models={"m": "mine/m"}
        ) as offline:
            offline.upstream.say(Said(body=said))
            own = offline.ask("/v1internal:generateContent", {"model": "m", "request": request})
            assert (own.status, offline.upstream.json.get("project")) == (200, filled)
            translated = offline.ask(CHAT_PATH, asked("m"))
            assert (translated.status, offline.upstream.json.get("project")) == (200, filled)


LEAKED = "<|tool_call_begin|>functions.look:0<|tool_call_argument_begin|>{}<|tool_call_end|>"


def test_a_call_that_a_model_writes_as_text_becomes_one_unless_the_answer_must_pass_unchanged() -> None:
    answer = {"role": "assistant", "content": LEAKED}
    said = {**CHAT, "choices": [{"index": 0, "message": answer, "finish_reason": "stop"}]}
    table = chat(limits={"leaks_calls": True})
    with Offline(providers={"mine": table}) as offline:
        offline.upstream.say(Said(body=said))
        got = offline.ask(CHAT_PATH, asked(tools=[TOOL]))
        assert got.json["choices"][0]["message"]["tool_calls"][0]["function"]["name"] == "look"
        unchanged = offline.ask(CHAT_PATH, asked(tools=[TOOL]), x_wireglot_loss_policy="as-is")
        assert unchanged.json == said
