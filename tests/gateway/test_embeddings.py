"""Embeddings through a live gateway: forwarded byte by byte, translated, retried, counted and limited."""

from __future__ import annotations

import hashlib
import http.client
import threading
from collections.abc import Iterator
from typing import Any, Final

import ollama
import pytest

from tests.gateway.faults.faults_kit import provider
from tests.gateway.trace.trace_kit import Look
from tests.gateway.trace.trace_kit import stage as traced_stage
from tests.tiers import rows
from tests.waiting import DEADLINE_SECONDS, wait_until
from wireglot.gateway.request.exchange import MAX_REPORTED_LOSSES
from wireglot.testing.live_gateway import LiveGateway
from wireglot.testing.scripted_upstream import Behaviour, ScriptedUpstream
from wireglot_core.wire.json import decode, encode

QUICK: Final = "retry = { base = 0.001 }\nbreaker = { consecutive = 1000000, minimum = 1000000 }"
TEXTS: Final = ["the first text", "a second one"]
PATHS: Final = {
    "openai-chat": "/v1/embeddings",
    "gemini": "/v1beta/models/{}:batchEmbedContents",
    "gemini-one": "/v1beta/models/{}:embedContent",
}


def key_table(name: str, lines: str) -> str:
    return f'[keys.{name}]\nhash = "sha256:{hashlib.sha256(name.encode()).hexdigest()}"\n{lines}\n'


def toml(upstream: ScriptedUpstream, sick: ScriptedUpstream) -> str:
    return (
        provider("chat", upstream, "openai-chat", QUICK)
        + provider("goog", upstream, "gemini", QUICK)
        + f'[providers.llama]\ndialect = "ollama"\nbase_url = "{upstream.url}"\n{QUICK}\n'
        + provider("sick", sick, "gemini", QUICK)
        + "".join(provider(name, sick, "gemini", QUICK) for name in ("parts", "unread", "spent", "left"))
        + provider("deaf", upstream, "anthropic", QUICK)
        + '[models]\nfallen = ["deaf/x", "sick/second", "chat/third"]\nspent-first = ["spent/second", "chat/third"]\nnobody = "deaf/x"\n'
        + '[prices]\n"chat/*" = { input = 1000, output = 0 }\n"goog/*" = { input = 2000, output = 0 }\n'
        + key_table("open", "")
        + key_table("narrow", 'models = ["chat/only"]')
        + key_table("slow", "requests_per_minute = 1")
        + key_table("poor", "cost_per_day = 0.000001")
        + key_table("small", "tokens_per_day = 40")
        + "".join(key_table(f"unsaid{number}", "tokens_per_day = 100") for number in range(4))
        + key_table("pictures", "tokens_per_day = 20000")
    )


class Stage:
    """`sick`: the upstream of a provider that is tried before another."""

    def __init__(self, upstream: ScriptedUpstream, sick: ScriptedUpstream, gateway: LiveGateway) -> None:
        self.upstream, self.sick, self.gateway = upstream, sick, gateway

    def reset(self) -> None:
        self.upstream.reset()
        self.sick.reset()

    def post(
        self, path: str, body: Any, key: str = "open", **headers: str
    ) -> tuple[int, dict[str, str], bytes]:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        connection = http.client.HTTPConnection("127.0.0.1", self.gateway.port, timeout=DEADLINE_SECONDS)
        try:
            data = body if isinstance(body, bytes) else encode(body)
            sent = {"content-type": "application/json", "authorization": f"Bearer {key}", **named}
            connection.request("POST", path, data, sent)
            answer = connection.getresponse()
            return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()
        finally:
            connection.close()

    def embed(self, model: str, given: Any = TEXTS, key: str = "open", **more: Any) -> Any:
        status, _, body = self.post("/v1/embeddings", {"model": model, "input": given, **more}, key)
        assert status == 200, body
        return decode(body)

    def rows_by_model(self) -> dict[str, dict[str, Any]]:
        return {row["model"]: row for row in self.rows("model")}

    def rows(self, group: str) -> list[dict[str, Any]]:
        connection = http.client.HTTPConnection("127.0.0.1", self.gateway.port, timeout=DEADLINE_SECONDS)
        try:
            connection.request("GET", f"/v1/usage?group_by={group}", headers={"authorization": "Bearer open"})
            found: list[dict[str, Any]] = decode(connection.getresponse().read())["data"]
            return found
        finally:
            connection.close()


@pytest.fixture(scope="module")
def running() -> Iterator[Stage]:
    with (
        ScriptedUpstream() as upstream,
        ScriptedUpstream() as sick,
        LiveGateway(toml(upstream, sick)) as gateway,
    ):
        yield Stage(upstream, sick, gateway)


@pytest.fixture
def stage(running: Stage) -> Stage:
    running.reset()
    return running


def gemini_batch(*texts: str, model: str = "m", **more: Any) -> dict[str, Any]:
    return {
        "requests": [
            {"model": f"models/{model}", "content": {"parts": [{"text": text}]}, **more} for text in texts
        ]
    }


# Forwarded.


@rows(
    ("path", "body", "sent_path", "sent"),
    [
        (
            "/v1/embeddings",
            b'{ "model":"chat/m",\n "input": ["\\u00e4", "b"], "z": 1.50, "dimensions":4}',
            "/v1/embeddings",
            b'{ "model":"m",\n "input": ["\\u00e4", "b"], "z": 1.50, "dimensions":4}',
        ),
        ("/v1/embeddings", b'{"input":[[1, 2]],"model":"chat/m","stream":true}', "/v1/embeddings", b'{"input":[[1, 2]],"model":"m","stream":true}'),
        ("/api/embed", b'{"model":"llama/m:latest", "input": "x", "options": {"a": 1.0}}', "/api/embed", b'{"model":"m", "input": "x", "options": {"a": 1.0}}'),
        ("/api/embeddings", b'{"prompt": "x", "model":"llama/m"}', "/api/embeddings", b'{"prompt": "x", "model":"m"}'),
        (
            "/v1beta/models/goog/m:embedContent",
            b'{"content": {"parts":[ {"text":"a"}]}, "new": 1.0}',
            "/v1beta/models/m:embedContent",
            b'{"content": {"parts":[ {"text":"a"}]}, "new": 1.0}',
        ),
        (
            "/v1beta/models/goog/m:batchEmbedContents",
            b'{"requests":[{"model":"models/goog/m", "content": {"parts":[ {"text":"a"}]}, "new": 1.0}]}',
            "/v1beta/models/m:batchEmbedContents",
            b'{"requests":[{"model":"models/m", "content": {"parts":[ {"text":"a"}]}, "new": 1.0}]}',
        ),
    ],
)  # fmt: skip
def test_in_its_own_dialect_only_the_models_name_changes(running, path, body, sent_path, sent):
    running.reset()
    answer = b'{ "usage": {"prompt_tokens": 7, "total_tokens": 7}, "usageMetadata": {"promptTokenCount": 7}, "prompt_eval_count": 7, "odd": [1.50] }'
    running.upstream.next(Behaviour(body=answer))
    status, headers, body = running.post(path, body)
    assert (status, body) == (200, answer)
    assert "x-wireglot-losses" not in headers
    (request,) = running.upstream.requests
    assert (request.path, request.body) == (sent_path, sent)
    line = running.gateway.wait_log(1)[-1]
    assert line["operation"] == "embed"


def test_the_usage_of_a_forwarded_answer_is_charged(stage: Stage) -> None:
    stage.embed("chat/charged-once")
    stage.embed("goog/charged-double")
    rows = {row["model"]: row for row in stage.rows("model")}
    once, double = rows["charged-once"], rows["charged-double"]
    tokens = sum(-(-len(text) // 4) for text in TEXTS)
    assert once["input_tokens"] == double["input_tokens"] == tokens
    assert once["output_tokens"] == double["output_tokens"] == 0
    assert (once["cost_micros"], double["cost_micros"]) == (1000 * tokens, 2000 * tokens)
    assert {row["operation"]: row["requests"] for row in stage.rows("operation")}["embed"] >= 2


# Translated.


def test_openai_to_gemini(stage: Stage) -> None:
    status, headers, body = stage.post(
        "/v1/embeddings", {"model": "goog/m", "input": TEXTS, "dimensions": 8, "user": "u", "extra": 1}
    )
    answer = decode(body)
    assert status == 200
    assert [entry["index"] for entry in answer["data"]] == [0, 1]
    assert [len(entry["embedding"]) for entry in answer["data"]] == [8, 8]
    assert answer["usage"]["prompt_tokens"] == answer["usage"]["total_tokens"] > 0
    (request,) = stage.upstream.requests
    assert request.path == "/v1beta/models/m:batchEmbedContents"
    assert request.json == gemini_batch(*TEXTS, outputDimensionality=8)
    assert set(headers["x-wireglot-losses"].replace(" ", "").split(",")) == {"user", "unknown_field"}
    direct = stage.post(
        "/v1beta/models/goog/m:batchEmbedContents", gemini_batch(*TEXTS, outputDimensionality=8)
    )[2]
    assert [entry["embedding"] for entry in answer["data"]] == [
        entry["values"] for entry in decode(direct)["embeddings"]
    ]


def test_one_input_goes_to_the_endpoint_for_one(stage: Stage) -> None:
    answer = stage.embed("goog/m", "hello", encoding_format="base64")
    (request,) = stage.upstream.requests
    assert request.path == "/v1beta/models/m:embedContent"
    assert request.json == {"content": {"parts": [{"text": "hello"}]}}
    assert type(answer["data"][0]["embedding"]) is str


def test_gemini_to_openai(stage: Stage) -> None:
    body = gemini_batch(*TEXTS, model="chat/m", taskType="RETRIEVAL_QUERY", title="t", outputDimensionality=8)
    status, headers, answered = stage.post(
        "/v1beta/models/chat/m:batchEmbedContents", body, x_wireglot_explain="losses"
    )
    assert status == 200
    assert [len(each["values"]) for each in decode(answered)["embeddings"]] == [8, 8]
    assert decode(answered)["usageMetadata"]["promptTokenCount"] > 0
    assert stage.upstream.requests[0].json == {"model": "m", "input": TEXTS, "dimensions": 8}
    assert "embedding.task" in headers["x-wireglot-losses"]
    assert "embedding.title" in headers["x-wireglot-losses"]
    one = stage.post("/v1beta/models/chat/m:embedContent", {"content": {"parts": [{"text": "x"}]}})
    assert (one[0], len(decode(one[2])["embedding"]["values"])) == (200, 256)


def test_ollama_to_others_and_back(stage: Stage) -> None:
    asked = {"model": "goog/m", "input": TEXTS, "dimensions": 8, "truncate": True, "keep_alive": "5m"}
    status, headers, body = stage.post("/api/embed", asked)
    answer = decode(body)
    assert (status, answer["model"]) == (200, "goog/m")
    assert [len(vector) for vector in answer["embeddings"]] == [8, 8]
    assert answer["prompt_eval_count"] > 0
    assert stage.upstream.requests[-1].json == gemini_batch(*TEXTS, outputDimensionality=8)
    lost = set(headers["x-wireglot-losses"].replace(" ", "").split(","))
    assert lost == {"embedding.truncation", "unknown_field"}
    old = stage.post("/api/embeddings", {"model": "chat/m", "prompt": "x"})
    assert (old[0], len(decode(old[2])["embedding"])) == (200, 256)
    new = stage.embed("llama/m", TEXTS, dimensions=8)
    assert [entry["embedding"] for entry in new["data"]] == answer["embeddings"]
    assert stage.upstream.requests[-1].json == {"model": "m", "input": TEXTS, "dimensions": 8}
    assert new["usage"]["prompt_tokens"] == answer["prompt_eval_count"]
    before = len(stage.upstream.requests)
    loaded = stage.post("/api/embed", {"model": "goog/m", "input": []})
    assert (loaded[0], decode(loaded[2])) == (200, {"model": "goog/m", "embeddings": []})
    assert len(stage.upstream.requests) == before, "as of an Ollama server, which only loads its model"


@pytest.mark.parametrize("model", ["chat/m", "goog/m", "llama/m"])
def test_ollamas_own_package_reads_the_vectors(stage: Stage, model: str) -> None:
    client = ollama.Client(host=f"{stage.gateway.url}/ollama/open")
    new = client.embed(model=model, input=TEXTS, dimensions=8)
    assert [len(vector) for vector in new.embeddings] == [8, 8]
    assert (new.prompt_eval_count or 0) > 0
    old = client.embeddings(model=model, prompt=TEXTS[0])
    assert len(old.embedding) == 256
    assert list(client.embed(model=model, input=[]).embeddings) == []


def test_many_inputs_are_sent_in_several_requests(stage: Stage) -> None:
    texts = [f"text {number}" for number in range(230)]
    answer = stage.embed("goog/m", texts, dimensions=4)
    assert [len(request.json["requests"]) for request in stage.upstream.requests] == [100, 100, 30]
    assert len(answer["data"]) == 230
    assert [entry["index"] for entry in answer["data"]] == list(range(230))
    assert answer["usage"]["prompt_tokens"] == sum(-(-len(text) // 4) for text in texts)
    alone = stage.embed("goog/m", texts[229:], dimensions=4)
    assert answer["data"][229]["embedding"] == alone["data"][0]["embedding"]


def test_a_part_that_fails_is_no_half_answer_and_what_was_paid_is_charged(stage: Stage) -> None:
    texts = ["four"] * 150
    stage.sick.next(Behaviour(), Behaviour(error=500))
    answer = stage.embed("parts/in-parts", texts, dimensions=4)
    assert len(answer["data"]) == 150
    # What has been answered is not sent, nor paid for, a second time.
    assert [len(request.json["requests"]) for request in stage.sick.requests] == [100, 50, 50]
    assert answer["usage"]["prompt_tokens"] == 150
    assert stage.rows_by_model()["in-parts"]["input_tokens"] == 150


def test_a_part_that_cannot_be_read_is_asked_for_again_with_all_others(stage: Stage) -> None:
    stage.sick.next(
        Behaviour(), Behaviour(body=encode({"embeddings": [], "usageMetadata": {"promptTokenCount": 7}}))
    )
    answer = stage.embed("unread/unread-part", ["four"] * 150, dimensions=4)
    assert len(answer["data"]) == 150
    assert [len(request.json["requests"]) for request in stage.sick.requests] == [100, 50, 100, 50]
    assert answer["usage"]["prompt_tokens"] == 150
    assert stage.rows_by_model()["unread-part"]["input_tokens"] == 100 + 7 + 150


def test_parts_of_one_model_are_never_joined_with_those_of_another(stage: Stage) -> None:
    stage.sick.next(Behaviour(), *[Behaviour(error=500)] * 9)
    answer = stage.embed("spent-first", ["four"] * 150, dimensions=4)
    assert len(stage.sick.requests[0].json["requests"]) == 100
    (request,) = stage.upstream.requests
    assert len(request.json["input"]) == len(answer["data"]) == 150
    assert answer["usage"]["prompt_tokens"] == 150


def test_parts_of_an_answer_that_no_client_waits_for_are_charged(stage: Stage) -> None:
    gate = threading.Event()
    stage.sick.next(Behaviour(), Behaviour(gate=gate))
    connection = http.client.HTTPConnection("127.0.0.1", stage.gateway.port, timeout=DEADLINE_SECONDS)
    body = encode({"model": "left/left", "input": ["four"] * 150, "dimensions": 4})
    try:
        connection.request(
            "POST",
            "/v1/embeddings",
            body,
            {"authorization": "Bearer open", "content-type": "application/json"},
        )
        wait_until(lambda: len(stage.sick.requests) == 2, "the second part to be asked for")
    finally:
        connection.close()
        wait_until(lambda: "left" in stage.rows_by_model(), "the account of the request")
        gate.set()
    assert stage.rows_by_model()["left"]["input_tokens"] == 100


def test_usage_that_only_some_parts_report_is_estimated_for_the_others(stage: Stage) -> None:
    unsaid = encode({"embeddings": [GOOD] * 50})
    stage.sick.next(Behaviour(), Behaviour(body=unsaid))
    texts = ["four and twenty words"] * 150
    body = {"model": "parts/some", "input": texts, "dimensions": 1}
    status, headers, answered = stage.post("/v1/embeddings", body)
    assert (status, headers["x-wireglot-estimate"]) == (200, "true")
    reported = sum(-(-len(text) // 4) for text in texts[:100])
    assert decode(answered)["usage"]["prompt_tokens"] > reported
    assert stage.rows_by_model()["some"]["input_tokens"] == decode(answered)["usage"]["prompt_tokens"]


# Refused.


@rows(
    ("path", "body", "status", "said"),
    [
        ("/v1/embeddings", {"model": "goog/m", "input": [[1, 2]]}, 400, "input: only the model's own provider"),
        ("/v1/embeddings", {"model": "goog/m", "input": ["a", [1]]}, 400, "input[1]: only the model's own provider"),
        ("/v1/embeddings", {"model": "goog/m", "input": []}, 400, "input: expected at least one input"),
        ("/v1/embeddings", {"model": "goog/m"}, 400, "input: expected a string or an array"),
        ("/v1/embeddings", {"model": "goog/m", "input": ["a"] * 6401}, 400, "input[6400]: at most 6400 inputs"),
        ("/v1/embeddings", {"input": "x"}, 400, "model: expected the name of a model"),
        ("/v1/embeddings", {"model": 1, "input": "x"}, 400, "model: expected a string"),
        ("/v1/embeddings", {"model": "nobody", "input": "x"}, 400, "model: nobody has no embeddings API (deaf)"),
        ("/v1/embeddings", {"model": "unknown-model", "input": "x"}, 404, "unknown-model"),
        ("/v1/embeddings", b"[1]", 400, "expected a JSON object"),
        ("/v1/embeddings", b'{"model":"chat/m","input":[NaN]}', 400, "number"),
        ("/v1beta/models/chat/m:embedContent", {"content": {"parts": [{"inlineData": {"mimeType": "image/png", "data": "aGk="}}]}}, 400, "content.parts[0]: only texts can be embedded"),
        ("/v1beta/models/chat/m:batchEmbedContents", {"requests": [{"content": {"parts": [{"text": "a"}]}, "outputDimensionality": 1}, {"content": {"parts": [{"text": "a"}]}}]}, 400, "requests[1].outputDimensionality: all inputs"),
    ],
)  # fmt: skip
def test_what_cannot_be_asked_is_refused_by_its_place(running, path, body, status, said):
    running.reset()
    found, _, answer = running.post(path, body)
    assert found == status
    assert said in decode(answer)["error"]["message"]
    assert not running.upstream.requests


def test_who_wants_no_losses_is_refused(stage: Stage) -> None:
    body = gemini_batch("a", model="chat/m", taskType="CLUSTERING")
    path = "/v1beta/models/chat/m:batchEmbedContents"
    status, _, answer = stage.post(path, body, x_wireglot_loss_policy="strict")
    assert status == 400
    assert "requests[0].taskType: embedding.task would be dropped" in decode(answer)["error"]["message"]
    status, _, answer = stage.post(path, body, x_wireglot_loss_policy="as-is")
    assert status == 400
    assert "cannot be forwarded unchanged" in decode(answer)["error"]["message"]
    assert not stage.upstream.requests
    own = {"model": "chat/m", "input": "x"}
    assert stage.post("/v1/embeddings", own, x_wireglot_loss_policy="as-is")[0] == 200


# Failures.


def test_a_target_that_fails_is_tried_again_and_then_the_next_that_embeds(stage: Stage) -> None:
    stage.sick.next(*[Behaviour(error=500)] * 5)
    answer = stage.embed("fallen", dimensions=4)
    assert len(stage.sick.requests) > 1
    assert {request.path for request in stage.sick.requests} == {"/v1beta/models/second:batchEmbedContents"}
    (request,) = stage.upstream.requests
    assert (request.path, request.json["model"]) == ("/v1/embeddings", "third")
    assert len(answer["data"]) == 2


GOOD: Final = {"values": [0.5]}


@rows(
    "answer",
    [
        {"embeddings": [GOOD]},
        {"embeddings": [GOOD, GOOD, GOOD]},
        {"embeddings": [GOOD, {"values": []}]},
        {"embeddings": [GOOD, {"values": [None]}]},
        {"embeddings": 1},
        {},
        [],
        b'{"embeddings":[{"values":[NaN]},{"values":[1]}]}',
        b"<html>",
        b'{"embeddings":[{"values":[1' + b"0" * 400 + b']},{"values":[1]}]}',
        {"error": {"code": 503, "message": "busy", "status": "UNAVAILABLE"}},
    ],
)
def test_an_answer_that_cannot_be_given_is_the_upstreams_fault(running, answer):
    """The next target is asked; where there is none, the client is told, and gets no half answer."""
    running.reset()
    bad = Behaviour(body=answer if isinstance(answer, bytes) else encode(answer))
    running.sick.next(*[bad] * 5)
    assert len(running.embed("fallen", dimensions=4)["data"]) == 2
    assert running.sick.requests
    assert running.upstream.requests[-1].path == "/v1/embeddings"
    running.sick.next(*[bad] * 5)
    status, _, body = running.post("/v1/embeddings", {"model": "sick/m", "input": TEXTS})
    assert status in (502, 503)
    assert decode(body)["error"]["message"]


def test_vectors_out_of_order_are_put_in_order(stage: Stage) -> None:
    entries = [{"index": 1, "embedding": [2.0]}, {"index": 0, "embedding": [1.0]}]
    stage.upstream.next(Behaviour(body=encode({"data": entries, "model": "m"})))
    status, headers, body = stage.post("/v1beta/models/chat/m:batchEmbedContents", gemini_batch(*TEXTS))
    assert (status, decode(body)) == (200, {"embeddings": [{"values": [1.0]}, {"values": [2.0]}]})
    assert "x-wireglot-estimate" not in headers


def test_usage_that_no_one_reports_is_estimated_and_marked(stage: Stage) -> None:
    stage.upstream.next(Behaviour(body=encode({"embeddings": [GOOD, GOOD]})))
    status, headers, body = stage.post("/v1/embeddings", {"model": "goog/quiet", "input": TEXTS})
    assert (status, headers["x-wireglot-estimate"]) == (200, "true")
    assert decode(body)["usage"]["prompt_tokens"] > 0
    assert "usage.detail" in headers["x-wireglot-losses"]


def test_a_refusal_of_the_upstream_goes_on_as_it_came(stage: Stage) -> None:
    refusal = (
        b'{"error": {"message": "too long", "type": "invalid_request_error", "param": "input", "code": null}}'
    )
    stage.upstream.next(Behaviour(status=400, body=refusal))
    status, _, body = stage.post("/v1/embeddings", {"model": "chat/m", "input": "x"})
    assert (status, body) == (400, refusal)
    assert len(stage.upstream.requests) == 1


# Limits.


def test_a_key_may_ask_for_its_models_only(stage: Stage) -> None:
    assert stage.post("/v1/embeddings", {"model": "chat/other", "input": "x"}, "narrow")[0] == 403
    assert stage.post("/v1/embeddings", {"model": "chat/only", "input": "x"}, "narrow")[0] == 200
    assert stage.post("/v1/embeddings", {"model": "chat/only", "input": "x"}, "wrong")[0] == 401


def test_requests_tokens_and_money_are_limited(stage: Stage) -> None:
    body = {"model": "chat/m", "input": "x"}
    assert [stage.post("/v1/embeddings", body, "slow")[0] for _ in range(2)] == [200, 429]
    assert [stage.post("/v1/embeddings", body, "poor")[0] for _ in range(2)] == [200, 429]
    # No answer is reserved for beside the body: two that fit the budget are let in.
    assert [stage.post("/v1/embeddings", body, "small")[0] for _ in range(2)] == [200, 200]
    long = {"model": "chat/m", "input": "word " * 100}
    assert [stage.post("/v1/embeddings", long, "small")[0] for _ in range(2)] == [200, 429]


LONG_TEXT: Final = "word " * 100


@rows(
    ("key", "path", "body", "answer"),
    [
        ("unsaid0", "/v1/embeddings", {"model": "chat/m", "input": LONG_TEXT}, {"data": [{"index": 0, "embedding": [1.0]}]}),
        ("unsaid1", "/v1beta/models/chat/m:embedContent", {"content": {"parts": [{"text": LONG_TEXT}]}}, {"data": [{"index": 0, "embedding": [1.0]}]}),
        ("unsaid2", "/v1beta/models/llama/m:batchEmbedContents", {"requests": [{"content": {"parts": [{"text": LONG_TEXT}]}}]}, {"embeddings": [[1.0]]}),
        ("unsaid3", "/api/embeddings", {"model": "goog/m", "prompt": LONG_TEXT}, {"embedding": {"values": [1.0]}}),
    ],
)  # fmt: skip
def test_an_answer_without_usage_is_charged_to_a_budget(running, key, path, body, answer):
    running.reset()
    running.upstream.next(*[Behaviour(body=encode(answer))] * 2)
    assert [running.post(path, body, key)[0] for _ in range(2)] == [200, 429]


@rows("dialect", ["openai-chat", "gemini"])
def test_an_answer_that_is_too_large_to_be_read_is_charged(dialect: str) -> None:
    """The provider has embedded the text, and asks for its price."""
    more = "[limits]\nresponse = 1000\n"
    with ScriptedUpstream() as upstream, LiveGateway.before(upstream, dialect, more) as gateway:
        upstream.next(*[Behaviour(body=encode({"data": [{"index": 0, "embedding": [1.0] * 999}]}))] * 4)
        stage = Stage(upstream, upstream, gateway)
        status, _, body = stage.post("/v1/embeddings", {"model": "m", "input": LONG_TEXT})
        assert status == 502, body
        (row,) = stage.rows("model")
        assert row["input_tokens"] >= 100, row


def test_a_picture_is_reserved_for_by_its_tokens(stage: Stage) -> None:
    """Not by the length of its base64: another request with the same budget would be refused meanwhile."""
    picture = {"inlineData": {"mimeType": "image/png", "data": "A" * 400_000}}
    body = {"content": {"parts": [picture]}}
    path, answer = "/v1beta/models/goog/m:embedContent", encode({"embedding": {"values": [1.0]}})
    gate = threading.Event()
    stage.upstream.next(Behaviour(body=answer, gate=gate), Behaviour(body=answer))
    statuses: list[int] = []
    first = threading.Thread(target=lambda: statuses.append(stage.post(path, body, "pictures")[0]))
    first.start()
    try:
        wait_until(lambda: stage.upstream.requests, "the first request")
        statuses.append(stage.post(path, body, "pictures")[0])
    finally:
        gate.set()
        first.join()
    assert statuses == [200, 200]


def test_a_request_is_answered_once_for_an_idempotency_key(stage: Stage) -> None:
    body = {"model": "chat/m", "input": "once"}
    first = stage.post("/v1/embeddings", body, idempotency_key="k1")
    again = stage.post("/v1/embeddings", body, idempotency_key="k1")
    assert (first[0], first[2]) == (again[0], again[2])
    assert again[1]["idempotent-replayed"] == "true"
    assert len(stage.upstream.requests) == 1


# What is seen of it.


def test_a_sealed_text_is_a_text(stage: Stage) -> None:
    """What looks like the gateway's own state in a text to embed is none."""
    text = "wgs1.AAAA " * 3 + "wireglot"
    assert len(stage.embed("goog/m", [text, text])["data"]) == 2


def test_a_trace_shows_both_sides_and_the_losses() -> None:
    """The inspector reads and compares conversations: what is none must not break it."""
    with traced_stage() as seen:
        connection = http.client.HTTPConnection("127.0.0.1", seen.gateway.port, timeout=DEADLINE_SECONDS)
        ids = {}
        for name, path, body in (
            ("translated", "/v1/embeddings", {"model": "gemini-up/m", "input": TEXTS, "user": "u"}),
            ("forwarded", "/v1/embeddings", {"model": "openai-chat-up/m", "input": "x"}),
            ("refused", "/v1/embeddings", {"model": "gemini-up/m", "input": [[1]]}),
            (
                "many",
                "/v1beta/models/openai-chat-up/m:batchEmbedContents",
                gemini_batch(*["x"] * 300, taskType="CLUSTERING", title="t"),
            ),
        ):
            connection.request("POST", path, encode(body), {"content-type": "application/json"})
            answer = connection.getresponse()
            answer.read()
            ids[name] = answer.getheader("x-wireglot-request-id") or ""
        connection.close()
        translated = seen.look.trace(ids["translated"])
        assert translated["row"]["operation"] == "embed"
        assert translated["row"]["asked"] == "gemini-up/m"
        (attempt,) = translated["attempts"]
        assert "batchEmbedContents" in attempt["request"]["url"]
        assert {loss["feature"] for loss in attempt["losses"]} == {"user"}
        assert not translated.get("notes")
        assert [loss["pointer"] for loss in translated["losses"]] == ["/user"]
        assert seen.look.trace(ids["forwarded"])["row"]["passthrough"]
        lost = seen.look.trace(ids["many"])["attempts"][0]["losses"]
        assert {loss["feature"] for loss in lost} == {"embedding.task", "embedding.title"}
        assert len(lost) <= MAX_REPORTED_LOSSES
        replayed = seen.look.raw("replay", "POST", {"id": ids["translated"], "dry": True})
        assert (replayed.status, replayed.json["error"]["code"]) == (400, "unsupported")
        assert seen.look.over(ids["refused"])["status"] == 400
        assert seen.look.raw(f"exchanges/{ids['translated']}/export").status == 200
        assert seen.look.get("conversations")["conversations"] == []


def test_models_that_embed_are_listed_where_they_can_be_asked_for() -> None:
    with LiveGateway() as gateway:

        def listed(path: str, **headers: str) -> list[dict[str, Any]]:
            connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=DEADLINE_SECONDS)
            try:
                named = {name.replace("_", "-"): value for name, value in headers.items()}
                connection.request("GET", path, headers=named)
                document = decode(connection.getresponse().read())
                return list(document.get("data") or document["models"])
            finally:
                connection.close()

        assert "demo-embedding" in {each["id"] for each in listed("/v1/models")}
        gemini = {each["name"]: each for each in listed("/v1beta/models")}
        methods = gemini["models/demo-embedding"]["supportedGenerationMethods"]
        assert methods == ["embedContent", "batchEmbedContents"]
        ollama = {each["name"]: each for each in listed("/api/tags")}
        assert ollama["demo-embedding"]["capabilities"] == ["embedding"]
        assert ollama["demo-embedding"]["details"]["embedding_length"] == 256
        claude = {each["id"] for each in listed("/v1/models", anthropic_version="2023-06-01")}
        assert "demo" in claude
        assert "demo-embedding" not in claude
        look = Look(gateway.port)
        assert "demo-embedding" not in look.get("setup")["models"]
        assert "demo" in look.get("setup")["models"]
