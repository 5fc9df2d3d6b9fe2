"""A client of Amazon Bedrock over plain HTTP: its frames while an upstream is silent or fails, and its refusals."""

from __future__ import annotations

import base64
import http.client
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest

from tests.gateway.faults.faults_kit import Answered, Call
from tests.tiers import rows
from tests.waiting import DEADLINE_SECONDS, wait_until
from wireglot.testing.live_gateway import LiveGateway
from wireglot.testing.scripted_upstream import Behaviour, ScriptedUpstream
from wireglot_core.dialects.anthropic.invoked_stream import InvokedStream
from wireglot_core.wire.event_stream import EventStreamDecoder
from wireglot_core.wire.json import decode, encode
from wireglot_core.wire.sse import SseDecoder

MODEL = "/model/us.anthropic.claude-x-v1%3A0"
BODY = {
    "anthropic_version": "bedrock-2023-05-31",
    "max_tokens": 300,
    "messages": [{"role": "user", "content": "[[demo:text 60]]"}],
}
Stage = tuple[LiveGateway, ScriptedUpstream]


@pytest.fixture(scope="module", params=("anthropic", "openai-chat"), name="running")
def _running(request: pytest.FixtureRequest) -> Iterator[Stage]:
    once = {"retry": "{retries = 0}", "breaker": "{consecutive = 1000000, minimum = 1000000}"}
    with (
        ScriptedUpstream() as upstream,
        LiveGateway.before(upstream, request.param, "[limits]\nping = 0.02\n", **once) as gateway,
    ):
        yield gateway, upstream


@pytest.fixture(name="stage")
def _stage(running: Stage) -> Stage:
    running[1].reset()
    return running


def start(stage: Stage, verb: str = "invoke-with-response-stream", body: bytes = encode(BODY)) -> Call:
    return Call(stage[0].port, f"{MODEL}/{verb}", body)


def events(answered: Answered) -> list[dict[str, Any]]:
    assert answered.headers["content-type"] == "application/vnd.amazon.eventstream"
    assert answered.whole
    unframer = InvokedStream(1024 * 1024)
    found = SseDecoder().feed(unframer.feed(answered.body))
    unframer.close()
    return [decode(each.data) for each in found]


def kinds(found: list[dict[str, Any]]) -> list[str]:
    return [each["type"] for each in found]


def test_a_silent_upstream_is_bridged_by_pings_in_frames(stage: Stage) -> None:
    stage[1].next(Behaviour(delay=0.2))
    found = events(start(stage).rest())
    assert kinds(found)[0] == "ping"
    assert kinds([each for each in found if each["type"] != "ping"])[0] == "message_start"
    assert kinds(found)[-1] == "message_stop"


def test_a_stream_that_breaks_ends_in_an_exception_and_nothing_after_it(stage: Stage) -> None:
    for fault in ("no-terminal", "error-midstream", "reset-midstream"):
        stage[1].reset()
        stage[1].next(Behaviour(fault=fault))
        answered = start(stage).rest()
        messages = EventStreamDecoder(1024 * 1024).feed(answered.body)
        said = [each.headers[":message-type"] for each in messages]
        assert said == ["event"] * (len(said) - 1) + ["exception"], fault
        assert decode(messages[-1].payload)["message"], fault
        assert "message_stop" not in kinds(events(answered)), fault


def test_a_failure_after_pings_is_an_exception(stage: Stage) -> None:
    stage[1].next(Behaviour(error=429, delay=0.2))
    found = events(start(stage).rest())
    assert set(kinds(found[:-1])) == {"ping"}
    assert found[-1]["error"]["type"] == "rate_limit_error"


def test_a_client_that_leaves_ends_the_upstreams_stream(stage: Stage) -> None:
    stage[1].next(Behaviour(fault="stall-midstream"))
    call = start(stage)
    call.until(base64.b64encode(b'{"type":"mes')[:12])
    call.leave()
    assert stage[1].requests[-1].abandoned.wait(DEADLINE_SECONDS)
    wait_until(lambda: stage[0].process.gateway.in_flight == 0)


def test_a_stream_that_is_sent_again_has_frames_too(stage: Stage) -> None:
    path, once = f"{MODEL}/invoke-with-response-stream", {"idempotency-key": f"again-{stage[0].port}"}
    first, again = (Call(stage[0].port, path, encode(BODY), once).rest() for _ in range(2))
    assert again.headers["idempotent-replayed"] == "true"
    assert [each for each in events(again) if each["type"] != "ping"] == [
        each for each in events(first) if each["type"] != "ping"
    ]


def test_a_request_that_waits_for_a_whole_answer_gets_json(stage: Stage) -> None:
    answered = start(stage, "invoke").rest()
    assert (answered.status, answered.headers["content-type"]) == (200, "application/json")
    assert answered.json["model"] == "claude-x"
    assert answered.headers["x-amzn-requestid"] == answered.headers["x-wireglot-request-id"]


@rows(
    ("method", "path", "body", "status", "kind", "said"),
    [
        ("POST", f"{MODEL}/invoke", b"{", 400, "ValidationException", "JSON"),
        ("POST", f"{MODEL}/invoke", b"[]", 400, "ValidationException", "object"),
        ("POST", f"{MODEL}/invoke", b"{}", 400, "ValidationException", "messages"),
        ("POST", f"{MODEL}/invoke-with-response-stream", b'{"messages":1}', 400, "ValidationException", "messages"),
        ("POST", f"{MODEL}/converse", b"{}", 404, "ResourceNotFoundException", "not served"),
        ("POST", "/model/m/other", b"{}", 404, "ResourceNotFoundException", "/model/m/other"),
        ("GET", f"{MODEL}/invoke", b"", 405, "ValidationException", "POST"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_reported_as_amazon_does(
    running: Stage, method: str, path: str, body: bytes, status: int, kind: str, said: str
) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", running[0].port, timeout=DEADLINE_SECONDS)
    connection.request(method, path, body, {"content-type": "application/json"})
    answer = connection.getresponse()
    document = decode(answer.read())
    connection.close()
    assert (answer.status, answer.headers["x-amzn-errortype"]) == (status, kind), document
    assert document["__type"] == kind
    assert said in document["message"]


def test_a_signed_request_passes_where_no_key_is_required(stage: Stage) -> None:
    signed = {
        "authorization": "AWS4-HMAC-SHA256 Credential=AKID/20261118/us-east-1/bedrock/aws4_request, Signature=0"
    }
    assert Call(stage[0].port, f"{MODEL}/invoke", encode(BODY), signed).rest().status == 200


def test_amazons_own_sdk_is_answered(stage: Stage) -> None:
    client = (
        import_module("botocore.session")
        .get_session()
        .create_client(
            "bedrock-runtime",
            region_name="us-east-1",
            endpoint_url=stage[0].url,
            aws_access_key_id="a",
            aws_secret_access_key="b",
        )
    )
    asked = {"modelId": "us.anthropic.claude-x-v1:0", "body": encode(BODY)}
    whole = decode(client.invoke_model(**asked)["body"].read())
    stream = client.invoke_model_with_response_stream(**asked)["body"]
    found = [decode(each["chunk"]["bytes"]) for each in stream]
    said = "".join(each["delta"]["text"] for each in found if each["type"] == "content_block_delta")
    assert said == whole["content"][0]["text"]
    assert kinds(found)[-1] == "message_stop"
    count = {"invokeModel": {"body": encode(BODY)}}
    assert client.count_tokens(modelId=asked["modelId"], input=count)["inputTokens"] > 0
    stage[1].next(Behaviour(fault="error-midstream"))
    with pytest.raises(import_module("botocore.exceptions").EventStreamError, match="in the middle"):
        list(client.invoke_model_with_response_stream(**asked)["body"])


def test_log_and_metrics_name_the_form(stage: Stage) -> None:
    identifier = start(stage, "invoke").rest().headers["x-wireglot-request-id"]
    wait_until(lambda: any(line["id"] == identifier for line in stage[0].log()))
    (line,) = (line for line in stage[0].log() if line["id"] == identifier)
    assert (line["dialect"], line["model"]) == ("anthropic-bedrock", "claude-x")
    connection = http.client.HTTPConnection("127.0.0.1", stage[0].port, timeout=DEADLINE_SECONDS)
    connection.request("GET", "/metrics")
    assert b'dialect="anthropic-bedrock"' in connection.getresponse().read()
    connection.close()


@rows(
    ("flags", "sent"),
    [
        (["a-1", "b-2"], "a-1,b-2"),
        ("a-1", "a-1"),
        ([], None),
        (None, None),
        ([" "], None),
        (["a\r\nx-api-key: b"], 400),
        (["a\x00"], 400),
        (["\u20ac"], 400),
        ([1, "a-1"], 400),
        ({"a-1": True}, 400),
        (True, 400),
    ],
)
def test_beta_flags_are_a_header_or_refused(stage: Stage, flags: Any, sent: str | int | None) -> None:
    """What no header can hold must not fail at the upstream: its circuit breaker would open for everyone."""
    stage[1].reset()
    answered = start(stage, "invoke", encode({**BODY, "anthropic_beta": flags})).rest()
    if sent == 400:
        assert (answered.status, answered.json["__type"]) == (400, "ValidationException")
        assert "anthropic_beta" in answered.json["message"]
        assert not stage[1].requests
    else:
        assert answered.status == 200
        if stage[1].requests[-1].path == "/v1/messages":
            assert stage[1].requests[-1].headers.get("anthropic-beta") == sent
