"""Envoy AI Gateway's cases of its data plane: a request and an answer, and what is to become of both.

Each runs through our gateway with the same answer upstream. What the expected bodies state must be in ours,
up to their form: a text may be a list of one text block, ids and times differ. Streams are compared as the
answers that they amount to.
"""

from __future__ import annotations

import gzip
import http.client
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from proofs.judges import environments, go_tables
from proofs.judges.reasons import Reason, sort
from proofs.judges.results import Verdict
from wireglot.testing.live_gateway import LiveGateway
from wireglot.testing.scripted_upstream import Behaviour, Recorded, ScriptedUpstream
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.registry import dialect
from wireglot_core.ir.stream import StreamFailed, fold

TABLE: Final = "tests/data-plane/testupstream_test.go"
START: Final = "for _, tc := range []struct {"
ANSWERS: Final = "internal/translator/openai_gcpvertexai_test.go"
ANSWERS_START: Final = "func TestOpenAIToGCPVertexAITranslatorV1ChatCompletion_ResponseBody("
CLIENTS: Final = {
    "/v1/chat/completions": "openai-chat",
    "/v1/responses": "openai-responses",
    "/anthropic/v1/messages": "anthropic",
}
BACKENDS: Final = {
    "openai": "openai-chat",
    "azure-openai": "openai-chat",
    "anthropic": "anthropic",
    "gcp-anthropicai": "anthropic",
    "aws-anthropic": "anthropic",
    "gcp-vertexai": "gemini",
}
"""Their names of providers, and the dialects of these."""
NOT_RUN: Final = (
    Reason("embeddings", "embeddings are tested elsewhere", is_run=False),
    Reason("images", "images are not served by the gateway", is_run=False),
    Reason("aws-bedrock|^aws ", "Converse is not a dialect of the gateway", is_run=False),
    Reason("aws-event-stream", "event streams of AWS are not read by the gateway", is_run=False),
    Reason(
        "^modelname|^body-mutation|v1/models|^unknown",
        "about the configuration of Envoy AI Gateway",
        is_run=False,
    ),
    Reason("malformed JSON", "about the wording of an error", is_run=False),
)
REASONS: Final = (
    Reason("the model returned an empty answer", "an answer without content is an error"),
    Reason(r"^[^;]*\$\.usage is null[^;]*$", "a Chat stream has usage only if the request asks for it"),
    Reason("safety_ratings", "Chat has no place for safety ratings; the field is Envoy AI Gateway's own"),
    Reason(r"\$\.parts is null", "a stream that ends without a reason to stop is an error"),
    Reason(r"^[^;]*\$\.model is[^;]*$", "answers have the model name of the request"),
)
"""What the gateway does otherwise on purpose."""
_OWN_KEYS: Final = frozenset({"id", "created", "anthropic_version", "request_id"})
"""Made by a gateway, or belonging to the place where a provider is reached."""

_LIMITS: Final = {"limits": '{ max_tokens_field = "" }'}
"""Of OpenAI: without them a server gets the older name of the field."""
_TYPES: Final = ("STRING", "OBJECT", "ARRAY", "INTEGER", "NUMBER", "BOOLEAN")


class Outcome(NamedTuple):
    status: int
    body: bytes
    arrived: Recorded | None


def judge() -> Verdict:
    folder = environments.checkout("ai-gateway", "envoyproxy/ai-gateway")
    tests, others = list[tuple[str, str]](), list[tuple[str, str]]()
    for case in (*go_tables.cases(_text(folder / TABLE), START), *_answers(_text(folder / ANSWERS))):
        name = f"{case['name']} {case.get('responseType', '')}".strip()
        if any(re.search(reason.pattern, name) for reason in NOT_RUN):
            others.append((name, "not run"))
            continue
        client = CLIENTS[case["path"]]
        target = client if client == "openai-responses" else BACKENDS[case["backend"]]
        tests.append((name, "; ".join(differences(case, client, _send(case, target)))))
    return Verdict(
        "envoy-ai-gateway",
        environments.commit(folder),
        "Envoy AI Gateway's cases of its data plane and of Gemini answers: the same facts arrive upstream "
        "and return to the client",
        *sort(tests, REASONS).and_also(sort(others, NOT_RUN)),
    )


def _answers(source: str) -> Iterator[dict[str, str]]:
    """Cases of answers only, with a request for each."""
    for case in go_tables.cases(source[source.index(ANSWERS_START) :], "tests := []struct {"):
        stream = case.get("stream") == "true"
        request = {
            "model": "gemini",
            "messages": [{"role": "user", "content": "Hello"}],
            "stream": stream,
            **({"stream_options": {"include_usage": True}} if stream else {}),
        }
        yield {
            "name": f"gcp-vertexai answer - {case['name']}",
            "backend": "gcp-vertexai",
            "path": "/v1/chat/completions",
            "requestBody": json.dumps(request),
            "responseType": "sse" if stream else "",
            "responseBody": case.get("body", ""),
            "expStatus": "200",
            "expResponseBody": case.get("wantBodyMut", ""),
        }


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def differences(case: dict[str, str], client: str, outcome: Outcome) -> Iterator[str]:
    if outcome.status != int(case["expStatus"]):
        yield f"status {outcome.status} instead of {case['expStatus']}: {_message(outcome.body)}"
        return
    if expected := case.get("expRequestBody"):
        if outcome.arrived is None:
            yield "nothing arrived upstream"
        else:
            yield from (f"upstream {each}" for each in missing(json.loads(expected), outcome.arrived.json))
    expected = case.get("expResponseBody") or case["responseBody"]
    if outcome.status >= 400:
        theirs, ours = _message(expected.encode()), _message(outcome.body)
        if theirs not in ours:
            yield f"the error {ours!r} instead of {theirs!r}"
    elif "sse" in case.get("responseType", ""):
        yield from missing(_answer(client, _stream(expected)), _answer(client, outcome.body))
    else:
        yield from missing(json.loads(expected), json.loads(outcome.body))


def missing(expected: Any, actual: Any, path: str = "$") -> Iterator[str]:
    """What is stated in one document and not in the other; what says nothing need not be there."""
    expected, actual = _plain(expected), _plain(actual)
    if isinstance(expected, dict) and isinstance(actual, dict):
        for key, value in expected.items():
            if key not in _OWN_KEYS:
                yield from missing(value, actual.get(key), f"{path}.{key}")
    elif isinstance(expected, list) and isinstance(actual, list) and len(expected) == len(actual):
        for index, (one, other) in enumerate(zip(expected, actual, strict=True)):
            yield from missing(one, other, f"{path}[{index}]")
    elif expected != actual and expected not in (None, 0, "", [], {}):
        yield f"{path} is {json.dumps(actual)} instead of {json.dumps(expected)}"


def _plain(value: Any) -> Any:
    """One text block as its text, JSON in a text as its value, names of schema types in small letters."""
    match value:
        case [{"text": text, **rest}] if rest.keys() <= {"type", "citations"}:
            return _plain(text)
    if isinstance(value, str) and value[:1] in ("{", "["):
        try:
            return json.loads(value)
        except ValueError:
            return value
    return value.lower() if value in _TYPES else value


def _answer(client: str, stream: bytes) -> dict[str, Any]:
    reader = dialect(client).stream_reader(Context())
    try:
        answer = fold([*reader.read(stream), *reader.end()])
    except StreamFailed as failed:
        return {"failed": str(failed)}
    usage = answer.usage
    return {
        "parts": [
            {key: getattr(part, key) for key in ("text", "id", "name", "arguments") if hasattr(part, key)}
            | {"kind": type(part).__name__}
            for part in answer.content
        ],
        "stop": answer.stop.reason,
        "usage": None if usage is None else {"input": usage.input, "output": usage.output},
    }


def _send(case: dict[str, str], target: str) -> Outcome:
    with ScriptedUpstream() as upstream, LiveGateway.before(upstream, target, **_LIMITS) as gateway:
        upstream.otherwise = _behaviour(case)
        connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=60)
        path = case["path"].removeprefix("/anthropic")
        connection.request("POST", path, case["requestBody"], {"content-type": "application/json"})
        response = connection.getresponse()
        body = response.read()
        connection.close()
        return Outcome(response.status, body, next(iter(upstream.requests), None))


def _behaviour(case: dict[str, str]) -> Behaviour:
    kind, text = case.get("responseType", ""), case["responseBody"]
    streams, zipped = "sse" in kind, "gzip" in kind
    body = _stream(text) if streams else text.encode()
    headers = [("content-type", "text/event-stream" if streams else "application/json")]
    for pair in filter(None, case.get("responseHeaders", "").split(",")):
        name, _, value = pair.partition(":")
        headers = [*(each for each in headers if each[0] != name), (name, value)]
    if zipped:
        headers.append(("content-encoding", "gzip"))
    return Behaviour(
        status=int(case.get("responseStatus") or 200),
        headers=tuple(headers),
        body=gzip.compress(body) if zipped else body,
    )


def _stream(text: str) -> bytes:
    """Lines that are not framed yet are the data of one event each, as in the upstream of these tests."""
    if "\n\n" in text:
        return text.lstrip("\n").encode()
    return "".join(f"data: {line}\n\n" for line in text.split("\n") if line).encode()


def _message(body: bytes) -> str:
    document = json.loads(body)
    found = document[0] if isinstance(document, list) else document
    error = found.get("error", found)
    return str(error.get("message", error) if isinstance(error, dict) else error)
