"""What is sent: every client dialect with every upstream dialect, the faults of both, and what is stored."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any, Final

from proofs.comparison.record import ADMIN, SECRET, Answer, Recorder, Setup
from wireglot.testing.live_gateway import BASES
from wireglot.testing.scripted_upstream import FAULTS, Behaviour
from wireglot_core.providers import spec as specs
from wireglot_core.providers.limits import Limits

_FIXTURES: Final = Path(__file__).parents[2] / "tests/fixtures"
CLIENTS: Final = ("anthropic", "openai-chat", "openai-responses", "gemini", "code-assist", "gemini-simple")
UPSTREAMS: Final = ("anthropic", "openai-chat", "openai-responses", "gemini", "code-assist")
_QUICK: Final = (
    "retry = { base = 0.001, wait_max = 0.05 }\nbreaker = { consecutive = 1000000, minimum = 1000000 }\n"
)
_FRAGILE: Final = (
    "retry = { retries = 0 }\nbreaker = { consecutive = 2, probe_after = 3600, probe_cap = 3600 }\n"
)
_IMPATIENT: Final = "timeouts = { first_byte = 0.4, idle = 0.4 }\n"
_MODELS_OF_A_ROUTE: Final = 4
_JSON: Final = (
    ("content-type", "application/json"),
    ("x-request-id", "upstream-1"),
    ("x-ratelimit-remaining", "7"),
)
_SSE: Final = (("content-type", "text/event-stream"), ("x-request-id", "upstream-1"))
_HTML: Final = (("content-type", "text/html"),)
_SLOW_FAULTS: Final = frozenset({"stall", "stall-midstream", "slow-head"})
"""These wait for a timeout."""
_SIZES: Final = {"endless-line": 120_000, "huge-headers": 1_000_000}
"""Far beyond the limits: near them it depends on how the bytes are cut."""
_GAPS: Final = {"close-midstream": 0.03, "reset-midstream": 0.03, "short-body": 0.03}
"""So that the client has the first events before the connection breaks."""
_HARMFUL: Final = frozenset({401, 402, 403, 429})
_SPARES: Final = 60

Streamed = bool
Scenario = Callable[[Recorder], None]


# Requests as clients send them, answers as upstreams send them


@cache
def fixture(dialect: str, kind: str, name: str) -> bytes:
    return (_FIXTURES / dialect / kind / name).read_bytes()


def names(dialect: str, kind: str, ending: str) -> list[str]:
    return sorted(path.name for path in (_FIXTURES / dialect / kind).glob(f"*{ending}"))


def addressed(
    dialect: str, body: dict[str, Any], model: str, streams: Streamed
) -> tuple[str, dict[str, Any]]:
    """The path and the body of a client's request for a model."""
    body = {key: value for key, value in body.items() if key not in ("model", "stream")}
    match dialect:
        case "gemini":
            verb = "streamGenerateContent?alt=sse" if streams else "generateContent"
            return f"/v1beta/models/{model}:{verb}", body
        case "code-assist":
            verb = "streamGenerateContent?alt=sse" if streams else "generateContent"
            return f"/v1internal:{verb}", {"model": model, **body}
        case "gemini-simple":
            return "/v1/gemini", {"model": model, **body, **({"stream": True} if streams else {})}
    path = {"anthropic": "messages", "openai-chat": "chat/completions", "openai-responses": "responses"}[
        dialect
    ]
    return f"/v1/{path}", {"model": model, **body, **({"stream": True} if streams else {})}


def said(dialect: str, text: str, *, thinks: bool = False) -> dict[str, Any]:
    """A request of one user's text."""
    effort: dict[str, Any]
    match dialect:
        case "anthropic":
            thinking = {"thinking": {"type": "enabled", "budget_tokens": 2048}} if thinks else {}
            return {"max_tokens": 4096, **thinking, "messages": [{"role": "user", "content": text}]}
        case "openai-chat":
            effort = {"reasoning_effort": "high"} if thinks else {}
            return {**effort, "messages": [{"role": "user", "content": text}]}
        case "openai-responses":
            effort = (
                {"reasoning": {"effort": "high"}, "include": ["reasoning.encrypted_content"]}
                if thinks
                else {}
            )
            return {**effort, "store": False, "input": [{"role": "user", "content": text}]}
        case "gemini-simple":
            return {"input": text}
    thinking = {"generationConfig": {"thinkingConfig": {"includeThoughts": True}}} if thinks else {}
    request = {**thinking, "contents": [{"role": "user", "parts": [{"text": text}]}]}
    return {"request": request} if dialect == "code-assist" else request


def whole(dialect: str, name: str = "text.json") -> Behaviour:
    return Behaviour(body=fixture(dialect, "responses", name), headers=_JSON)


def stream(dialect: str, name: str = "text.sse") -> Behaviour:
    data = fixture(dialect, "streams", name)
    return Behaviour(pieces=tuple(piece + b"\n\n" for piece in data.split(b"\n\n") if piece), headers=_SSE)


def text_answer(dialect: str, streams: Streamed) -> Behaviour:
    return stream(dialect) if streams else whole(dialect)


def shape(streams: Streamed) -> str:
    return "stream" if streams else "whole"


# Translation


def requests(client: str, recorder: Recorder) -> None:
    """Every request fixture of a client to every upstream."""
    for name in names(client, "requests", ".json"):
        body = json.loads(fixture(client, "requests", name))
        for upstream in UPSTREAMS:
            for streams in (False, True):
                path, sent = addressed(client, body, f"{upstream}/model-1", streams)
                title = f"{name.removesuffix('.json')}/{upstream}/{shape(streams)}"
                recorder.ask(title, path, sent, text_answer(upstream, streams))


def answers(upstream: str, recorder: Recorder) -> None:
    """Every answer and stream fixture of an upstream to every client."""
    for client in CLIENTS:
        for streams, kind, ending in ((False, "responses", ".json"), (True, "streams", ".sse")):
            for name in names(upstream, kind, ending):
                path, sent = addressed(
                    client, said(client, "Hello", thinks=True), f"{upstream}/model-1", streams
                )
                answer = stream(upstream, name) if streams else whole(upstream, name)
                recorder.ask(f"{client}/{shape(streams)}/{name.rpartition('.')[0]}", path, sent, answer)


def errors(upstream: str, recorder: Recorder) -> None:
    """Every error envelope of an upstream, before a whole answer and before a stream."""
    for number, client in enumerate(CLIENTS):
        for name in names(upstream, "errors", ".json"):
            status = int(name.split(".")[1])
            refusal = Behaviour(status=status, body=fixture(upstream, "errors", name), headers=_JSON)
            harms = status in _HARMFUL or "key" in name
            for streams in (number % 2 == 0,) if harms else (False, True):
                route = _spare(recorder, upstream) if harms else f"{upstream}/model-1"
                path, sent = addressed(client, said(client, "Hello"), route, streams)
                title = f"{client}/{shape(streams)}/{name.removesuffix('.json')}"
                recorder.ask(title, path, sent, *[refusal] * 3)


def retries(upstream: str, recorder: Recorder) -> None:
    """Failures that a further attempt makes good, and those that none does."""
    for number, client in enumerate(CLIENTS):
        for streams in (False, True):
            path, sent = addressed(client, said(client, "Hello"), f"{upstream}/model-1", streams)
            good = text_answer(upstream, streams)
            title = f"{client}/{shape(streams)}"
            recorder.ask(f"{title}/500-then-good", path, sent, Behaviour(error=500), good)
            recorder.ask(f"{title}/500-always", path, sent, *[Behaviour(error=500)] * 3)
            recorder.ask(f"{title}/closed-then-good", path, sent, Behaviour(fault="close"), good)
        streams = number % 2 == 0
        for name, wait in (("429-then-good", 0.01), ("429-for-long", 3600.0)):
            path, sent = addressed(client, said(client, "Hello"), _spare(recorder, upstream), streams)
            limited = Behaviour(error=429, retry_after=wait)
            recorder.ask(f"{client}/{name}", path, sent, limited, text_answer(upstream, streams))
            recorder.ask(f"{client}/{name}/next", path, sent, text_answer(upstream, streams))


def faults(upstream: str, recorder: Recorder) -> None:
    """Upstreams that break HTTP, JSON, the stream or their word: each with a third of the clients."""
    kinds: dict[str, Behaviour] = {
        fault: Behaviour(fault=fault, size=_SIZES.get(fault, 0), gap=_GAPS.get(fault))
        for fault in FAULTS
        if fault
    }
    kinds |= {name: Behaviour(body=body, headers=_JSON) for name, body in _BAD_BODIES.items()}
    kinds |= {name: Behaviour(pieces=pieces, headers=_SSE) for name, pieces in _BAD_STREAMS.items()}
    for status in (400, 401, 403, 404, 413, 422, 429, 503, 529):
        kinds[f"html-{status}"] = Behaviour(status=status, body=b"<html>no</html>", headers=_HTML)
    kinds["slow-head"] = Behaviour(delay=2.0)
    for number, (name, behaviour) in enumerate(kinds.items()):
        for place, client in enumerate(CLIENTS):
            if (place + number + UPSTREAMS.index(upstream)) % 3 or (name in _SLOW_FAULTS and place > 2):
                continue
            for streams in (False, True):
                route = f"{upstream}-hasty/model-1" if name in _SLOW_FAULTS else f"{upstream}/model-1"
                if behaviour.status in _HARMFUL:
                    route = _spare(recorder, upstream)
                path, sent = addressed(client, said(client, "Hello", thinks=True), route, streams)
                recorder.ask(f"{client}/{shape(streams)}/{name}", path, sent, *[behaviour] * 3)


def _spare(recorder: Recorder, upstream: str) -> str:
    """A route with an unused key: one that was refused, or asked to wait, rests for a while."""
    number = recorder.spares[upstream] = recorder.spares.get(upstream, -1) + 1
    assert number < _SPARES, f"{upstream} has no more spare routes"
    return f"{upstream}-{number}/model-1"


_BAD_BODIES: Final = {"no-object": b"[]", "null": b"null", "no-utf8": b'{"a":"\xff"}', "blank": b" "}
_BAD_STREAMS: Final = {
    "no-events": (b": nothing\n\n",),
    "bare-text": (b"this is no event\n\n",),
    "wrong-event": (b'event: surprise\ndata: {"type":"surprise"}\n\n',),
    "list-event": (b"data: [1,2]\n\n",),
    "done-only": (b"data: [DONE]\n\n",),
    "crlf": (b'data: {"type":"ping"}\r\n\r\n', b"data: [DONE]\r\n\r\n"),
}


# Clients that err, and the other endpoints


def client_faults(client: str, recorder: Recorder) -> None:
    model = "openai-chat/model-1"
    path, good = addressed(client, said(client, "Hello"), model, False)
    for name, body in {
        "no-json": b'{"model": ',
        "no-object": b"[1]",
        "empty-object": b"{}",
        "no-utf8": b'{"model":"\xff\xfe"}',
        "deep": b'{"a":' * 200 + b"1" + b"}" * 200,
        "twice": json.dumps(good)[:-1].encode() + b',"model":"gemini/model-2"}',
        "nan": b'{"model":"openai-chat/model-1","temperature":NaN}',
        "large": b'{"x":"' + b"x" * 300_000 + b'"}',
    }.items():
        recorder.ask(name, path, body)
    for name, wrong in _wrong_bodies(good):
        recorder.ask(f"wrong-{name}", path, wrong, text_answer("openai-chat", streams=False))
    for name, asked in {
        "unknown-model": "nothing",
        "unknown-provider": "nobody/model",
        "no-model": "",
    }.items():
        elsewhere, sent = addressed(client, said(client, "Hello"), asked, False)
        recorder.ask(name, elsewhere, sent)
    recorder.ask("wrong-method", path, method="PUT")
    recorder.ask("wrong-type", path, json.dumps(good).encode(), headers={"content-type": "text/plain"})
    recorder.ask("no-path", f"{path.split('?')[0]}/nowhere", good)
    recorder.ask("short-time", path, good, Behaviour(delay=2.0), headers={"x-wireglot-timeout": "0.1"})
    for policy in ("strict", "warn", "silent", "as-is", "other"):
        wanted = {"x-wireglot-loss-policy": policy, "x-wireglot-loss-details": "1"}
        for number, (elsewhere, sent) in enumerate(_lossy(client)):
            recorder.ask(f"losses-{policy}-{number}", elsewhere, sent, whole("gemini"), headers=wanted)


def _wrong_bodies(good: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """One field at a time of another type, or away."""
    for field in good:
        if field != "model":
            yield f"{field}-away", {key: value for key, value in good.items() if key != field}
        for name, value in (
            ("number", 7),
            ("list", [[]]),
            ("text", "word"),
            ("null", None),
            ("object", {"a": 1}),
        ):
            yield f"{field}-{name}", {**good, field: value}
    yield "unknown-field", {**good, "surprise": {"a": [1, None]}}
    yield "stream-text", {**good, "stream": "yes"}


def _lossy(client: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for name in ("settings.json", "agent_turn.json", "every_field.json"):
        if name in names(client, "requests", ".json"):
            yield addressed(client, json.loads(fixture(client, "requests", name)), "gemini/model-1", False)


def endpoints(recorder: Recorder) -> None:
    """Counts, lists of models, health, CORS, and paths that there are none of."""
    paths = {
        "anthropic": "/v1/messages/count_tokens",
        "openai-responses": "/v1/responses/input_tokens",
        "gemini": "/v1beta/models/{}:countTokens",
        "code-assist": "/v1internal:countTokens",
    }
    for client, path in paths.items():
        for upstream in UPSTREAMS:
            for name in ("plain_text.json", "agent_turn.json"):
                model = f"{upstream}/model-1"
                _, sent = addressed(client, json.loads(fixture(client, "requests", name)), model, False)
                recorder.ask(f"count/{client}/{upstream}/{name}", path.format(model), sent)
    for path in (
        "/v1/models",
        "/v1beta/models",
        "/v1beta/openai/models",
        "/anthropic/v1/models",
        "/openai/v1/models",
    ):
        for headers in ({}, {"anthropic-version": "2023-06-01"}, {"x-goog-api-key": "x"}):
            about = ",".join(headers)
            recorder.ask(f"list{path}/{about}", path, headers=headers)
            recorder.ask(f"list{path}/one/{about}", f"{path}/first", headers=headers)
            recorder.ask(f"list{path}/none/{about}", f"{path}/nothing", headers=headers)
            recorder.ask(f"list{path}/page/{about}", f"{path}?limit=1&pageSize=1", headers=headers)
    for verb in (
        "fetchAdminControls",
        "listExperiments",
        "loadCodeAssist",
        "onboardUser",
        "retrieveUserQuota",
    ):
        recorder.ask(f"code-assist/{verb}", f"/v1internal:{verb}", {"metadata": {}})
    for path in (
        "/",
        "/healthz",
        "/readyz",
        "/v1/embeddings",
        "/v1/completions",
        "/v1/responses",
        "/favicon.ico",
    ):
        recorder.ask(f"get{path}", path)
        recorder.ask(f"post{path}", path, {"model": "openai-chat/model-1", "input": "x"})
        recorder.ask(f"options{path}", path, method="OPTIONS", headers={"origin": "https://page.example"})
    path, sent = addressed("gemini", said("gemini", "Hello"), "anthropic/model-1", True)
    recorder.ask("json-array", path.split("?")[0], sent, stream("anthropic"))
    for prefix, client in (
        ("/anthropic", "anthropic"),
        ("/openai", "openai-chat"),
        ("/openai", "openai-responses"),
    ):
        path, sent = addressed(client, said(client, "Hello"), "gemini/model-1", False)
        recorder.ask(f"prefixed/{client}", prefix + path, sent, whole("gemini"))
    path, sent = addressed("openai-chat", said("openai-chat", "Hello"), "gemini/model-1", False)
    recorder.ask("openai-of-gemini", "/v1beta/openai/chat/completions", sent, whole("gemini"))
    good = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n"
    for name, data in {
        "no-http": b"hello\r\n\r\n",
        "other-host": good.replace(b"localhost", b"elsewhere.example") + b"connection: close\r\n\r\n",
        "bad-length": good + b"content-length: x\r\n\r\n",
        "two-lengths": good + b"content-length: 1\r\ncontent-length: 2\r\n\r\n",
        "long-header": good + b"x: " + b"x" * 20_000 + b"\r\n\r\n",
        "old-http": b"GET /healthz HTTP/1.0\r\n\r\n",
        "upgrade": good.replace(b"healthz", b"v1/responses")
        + b"upgrade: websocket\r\nconnection: upgrade\r\n\r\n",
    }.items():
        recorder.send_raw(f"raw/{name}", data)


# What the gateway keeps


def pairs(recorder: Recorder) -> None:
    """The same turn of an agent in every direction, and what the demo model makes of it."""
    for client in CLIENTS:
        name = "agent_turn.json" if client != "gemini-simple" else "every_field.json"
        body = json.loads(fixture(client, "requests", name))
        for upstream in UPSTREAMS:
            for streams in (False, True):
                path, sent = addressed(client, body, f"{upstream}/model-1", streams)
                recorder.ask(f"{client}/{upstream}/{shape(streams)}", path, sent, headers=_caller("team-a"))


def growing(recorder: Recorder) -> None:
    """Conversations of four turns that begin alike, with tools and thoughts, whose answers are sent back."""
    for client in ("anthropic", "openai-chat", "openai-responses", "gemini", "code-assist"):
        for upstream in UPSTREAMS:
            body = _with_tool(
                client, said(client, "[[demo:think]] [[demo:tool read_file {}]] Go.", thinks=True)
            )
            for turn in range(4):
                path, sent = addressed(client, body, f"{upstream}/model-1", turn == 2)
                title = f"{client}/{upstream}/{turn}"
                answer = recorder.ask(title, path, sent, headers=_caller("team-a"))
                if turn != 2 and answer.status == 200:
                    body = _continued(client, body, answer)


def _with_tool(client: str, body: dict[str, Any]) -> dict[str, Any]:
    schema = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
    tool = {"name": "read_file", "description": "Read a file."}
    match client:
        case "anthropic":
            return {**body, "tools": [{**tool, "input_schema": schema}]}
        case "openai-chat":
            return {**body, "tools": [{"type": "function", "function": {**tool, "parameters": schema}}]}
        case "openai-responses":
            return {**body, "tools": [{"type": "function", **tool, "parameters": schema, "strict": False}]}
    tools = {"tools": [{"functionDeclarations": [{**tool, "parameters": schema}]}]}
    return {"request": {**body["request"], **tools}} if client == "code-assist" else {**body, **tools}


def _continued(client: str, body: dict[str, Any], answer: Answer) -> dict[str, Any]:
    """The conversation with the model's turn in it, the results of its calls, and the next words."""
    document = answer.json()
    match client:
        case "anthropic":
            calls = [part for part in document["content"] if part["type"] == "tool_use"]
            results = [
                {"type": "tool_result", "tool_use_id": call["id"], "content": "done"} for call in calls
            ]
            turns = [
                {"role": "assistant", "content": document["content"]},
                {"role": "user", "content": [*results, {"type": "text", "text": "[[demo:think]] Go on."}]},
            ]
            return {**body, "messages": [*body["messages"], *turns]}
        case "openai-chat":
            message = document["choices"][0]["message"]
            results = [
                {"role": "tool", "tool_call_id": call["id"], "content": "done"}
                for call in message.get("tool_calls") or ()
            ]
            turns = [message, *results, {"role": "user", "content": "[[demo:think]] Go on."}]
            return {**body, "messages": [*body["messages"], *turns]}
        case "openai-responses":
            results = [
                {"type": "function_call_output", "call_id": item["call_id"], "output": "done"}
                for item in document["output"]
                if item["type"] == "function_call"
            ]
            turns = [*document["output"], *results, {"role": "user", "content": "[[demo:think]] Go on."}]
            return {**body, "input": [*body["input"], *turns]}
        case "code-assist":
            inner = _grown_gemini(body["request"], document["response"])
            return {**body, "request": inner}
    return _grown_gemini(body, document)


def _grown_gemini(body: dict[str, Any], document: dict[str, Any]) -> dict[str, Any]:
    content = document["candidates"][0]["content"]
    calls = [part["functionCall"] for part in content["parts"] if "functionCall" in part]
    results = [
        {"functionResponse": {"id": call.get("id"), "name": call["name"], "response": {"output": "done"}}}
        for call in calls
    ]
    said_next = {"role": "user", "parts": [*results, {"text": "[[demo:think]] Go on."}]}
    return {**body, "contents": [*body["contents"], content, said_next]}


def responses(recorder: Recorder) -> None:
    """Stored chains: made, continued, read, deleted; in the background, cancelled; made short."""
    headers = _caller("team-a")
    for upstream in UPSTREAMS:
        model = {"model": f"{upstream}/model-1"}

        def ask(name: str, path: str, body: Any = None, *, upstream: str = upstream, **more: Any) -> Answer:
            return recorder.ask(f"{upstream}/{name}", f"/v1/responses{path}", body, headers=headers, **more)

        first = ask(
            "first", "", {**model, "input": "[[demo:think]] One.", "reasoning": {"effort": "high"}}
        ).json()["id"]
        chained = {**model, "previous_response_id": first}
        second = ask(
            "second", "", {**chained, "input": "Two.", "metadata": {"a": "b"}, "instructions": "Be short."}
        )
        ask("streamed", "", {**chained, "input": "Three.", "stream": True})
        identifier = second.json()["id"]
        ask("fourth", "", {**model, "previous_response_id": identifier, "input": "Four."})
        ask("get", f"/{identifier}")
        ask("items", f"/{identifier}/input_items?limit=2&order=asc")
        ask("stream-again", f"/{identifier}?stream=true")
        ask("cancel-done", f"/{identifier}/cancel", {})
        ask("delete", f"/{identifier}", method="DELETE")
        ask("get-deleted", f"/{identifier}")
        ask("delete-again", f"/{identifier}", method="DELETE")
        ask("on-deleted", "", {**model, "previous_response_id": identifier, "input": "Five."})
        ask("unstored", "", {**model, "input": "Six.", "store": False})
        ask("compact", "/compact", {**model, "input": "Seven.", "previous_response_id": first})
        begun = ask("background", "", {**model, "input": "Eight.", "background": True}, waits=1).json()["id"]
        recorder.settle()
        ask("background-get", f"/{begun}")
        hung = ask("hung", "", {**model, "input": "[[demo:hang]] Nine.", "background": True}, waits=1).json()[
            "id"
        ]
        ask("hung-cancel", f"/{hung}/cancel", {})
        recorder.settle()
        ask("hung-get", f"/{hung}")
        ask("background-stream", "", {**model, "input": "Ten.", "background": True, "stream": True})
        ask("background-unstored", "", {**model, "input": "Ten.", "background": True, "store": False})
        recorder.ask(f"{upstream}/foreign", f"/v1/responses/{first}", headers=_caller("team-b"))


def conversations(recorder: Recorder) -> None:
    headers = _caller("team-a")

    def ask(name: str, path: str, body: Any = None, method: str = "") -> Answer:
        return recorder.ask(name, path, body, method=method, headers=headers)

    item = {"type": "message", "role": "user", "content": "My name is Ada."}
    made = ask("make", "/v1/conversations", {"items": [item], "metadata": {"a": "b"}}).json()["id"]
    place = f"/v1/conversations/{made}"
    ask("get", place)
    ask("change", place, {"metadata": {"c": "d"}})
    for upstream in UPSTREAMS:
        ask(
            f"turn/{upstream}",
            "/v1/responses",
            {"model": f"{upstream}/model-1", "conversation": made, "input": "Hi."},
        )
        ask(
            f"simple/{upstream}",
            "/v1/gemini",
            {"model": f"{upstream}/model-1", "conversation": made, "input": "Hi."},
        )
        ask(
            f"named/{upstream}",
            "/v1/gemini",
            {"model": f"{upstream}/model-1", "conversation": "mine", "input": "Hi."},
        )
    ask("add", f"{place}/items", {"items": [item]})
    first = ask("items", f"{place}/items?limit=3&order=asc").json()["data"][0]["id"]
    ask("item", f"{place}/items/{first}")
    ask("item-delete", f"{place}/items/{first}", method="DELETE")
    recorder.settle()
    ask("session-list", "/v1/sessions?limit=3")
    ask("session", f"/v1/sessions/{made}")
    ask("delete", place, method="DELETE")
    ask("get-deleted", place)
    ask("bad", "/v1/conversations", {"items": "x"})


def keys(recorder: Recorder) -> None:
    """Who may ask, for what, how much; and what they have used."""
    path, sent = addressed("anthropic", said("anthropic", "Hello"), "openai-chat/model-1", False)
    for client in CLIENTS:
        elsewhere, asked = addressed(client, said(client, "Hello"), "openai-chat/model-1", False)
        recorder.ask(f"none/{client}", elsewhere, asked)
        recorder.ask(f"wrong/{client}", elsewhere, asked, headers={"x-api-key": "not-a-key"})
        recorder.ask(f"models/{client}", elsewhere, asked, headers=_caller("choosy"))
    for header in ("x-api-key", "x-goog-api-key"):
        recorder.ask(header, path, sent, headers={header: "key-of-team-b"})
    recorder.ask("expired", path, sent, headers=_caller("late"))
    for number in range(3):
        recorder.ask(f"few-requests/{number}", path, sent, headers=_caller("few"))
        recorder.ask(f"small-budget/{number}", path, sent, headers=_caller("small"))
        recorder.ask(f"poor/{number}", path, sent, headers=_caller("poor"))
    recorder.ask("allowed", path, {**sent, "model": "gemini/model-1"}, headers=_caller("choosy"))
    recorder.ask(
        "strict-key",
        *addressed("openai-chat", {**said("openai-chat", "Hi"), "seed": 7}, "anthropic/m", False),
        headers=_caller("strict"),
    )
    for name in ("team-a", "team-b"):
        recorder.ask(f"list/{name}", "/v1/models", headers=_caller(name))
    again = {**_caller("team-b"), "idempotency-key": "order-1"}
    recorder.ask("once", path, sent, headers=again)
    recorder.ask("once-again", path, sent, headers=again)
    recorder.ask("once-other", path, {**sent, "max_tokens": 17}, headers=again)
    recorder.ask("session", path, sent, headers={**_caller("team-b"), "x-wireglot-session": "s-1"})
    traced = {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}
    recorder.ask("traceparent", path, sent, headers={**_caller("team-b"), **traced})
    lossy = recorder.ask("lossy", *next(_lossy("anthropic")), headers=_caller("team-b"))
    recorder.ask(
        "losses", f"/v1/requests/{lossy.header('x-wireglot-request-id')}/losses", headers=_caller("team-b")
    )
    recorder.ask(
        "losses-foreign",
        f"/v1/requests/{lossy.header('x-wireglot-request-id')}/losses",
        headers=_caller("few"),
    )
    recorder.settle()
    recorder.ask("usage", "/v1/usage?group_by=model,outcome", headers=_caller("team-b"))
    admin = {"authorization": f"Bearer {ADMIN}"}
    recorder.ask("admin/usage", "/v1/admin/usage?group_by=key,model,operation", headers=admin)
    recorder.ask("admin/make", "/v1/admin/keys", {"name": "made", "tokens_per_day": 5}, headers=admin)
    recorder.ask("admin/make-again", "/v1/admin/keys", {"name": "made"}, headers=admin)
    recorder.ask("admin/keys", "/v1/admin/keys", headers=admin)
    recorder.ask("admin/change", "/v1/admin/keys/made", {"concurrent": 2}, method="PATCH", headers=admin)
    recorder.ask("admin/rotate", "/v1/admin/keys/made/rotate", {}, headers=admin)
    recorder.ask("admin/revoke", "/v1/admin/keys/made", method="DELETE", headers=admin)
    recorder.ask("admin/store", "/v1/admin/store", headers=admin)
    recorder.ask("admin/none", "/v1/admin/keys")


def fallbacks(recorder: Recorder) -> None:
    """Two providers behind one name; a rule by effort; keys in a pool; a circuit breaker that opens."""
    headers = _caller("team-a")
    for client in CLIENTS:
        for streams in (False, True):
            path, sent = addressed(client, said(client, "Hello"), "both", streams)
            title = f"{client}/{shape(streams)}"
            fails = [Behaviour(error=500)] * 3
            recorder.ask(f"{title}/first", path, sent, text_answer("openai-chat", streams), headers=headers)
            recorder.ask(
                f"{title}/second", path, sent, *fails, text_answer("anthropic", streams), headers=headers
            )
            recorder.ask(f"{title}/none", path, sent, *fails, *fails, headers=headers)
            refused = Behaviour(error=400)
            recorder.ask(f"{title}/refused", path, sent, refused, headers=headers)
        path, sent = addressed(client, said(client, "Hello"), f"pooled-{client}/model-1", False)
        limited = Behaviour(error=429, retry_after=3600)
        recorder.ask(f"{client}/pool", path, sent, limited, whole("openai-chat"), headers=headers)
    for effort in ("low", "high"):
        path, sent = addressed(
            "openai-chat", {**said("openai-chat", "Hi"), "reasoning_effort": effort}, "smart", False
        )
        recorder.ask(f"effort/{effort}", path, sent, headers=headers)
    path, sent = addressed("anthropic", said("anthropic", "Hello"), "fragile/model-1", False)
    for number in range(4):
        recorder.ask(f"breaker/{number}", path, sent, Behaviour(error=500), headers=headers)


def catalog(recorder: Recorder) -> None:
    """What each provider of the catalog is sent of three requests that say much."""
    for provider, dialect, model in _catalog_routes():
        for client, name in (
            ("anthropic", "agent_turn"),
            ("openai-chat", "settings"),
            ("openai-responses", "settings"),
        ):
            body = json.loads(fixture(client, "requests", f"{name}.json"))
            path, sent = addressed(client, body, f"{provider}-{dialect}/{model}", False)
            recorder.ask(f"{provider}/{dialect}/{model}/{client}", path, sent, whole(dialect))


def _catalog_routes() -> Iterator[tuple[str, str, str]]:
    """Of each provider and dialect a few models, no two of which have the same limits."""
    for name in specs.names():
        spec = specs.provider(name)
        if spec.login or name == "demo":
            continue
        models = [entry.match for entry in spec.models if entry.is_name] or ["model-1"]
        for dialect in spec.dialects:
            seen: list[Limits] = []
            for model in models:
                limits = specs.limits_of(spec, dialect, model)
                if limits not in seen and len(seen) < _MODELS_OF_A_ROUTE:
                    seen.append(limits)
                    yield name, dialect, model


# Configurations


def _caller(name: str) -> dict[str, str]:
    return {"authorization": f"Bearer key-of-{name}"}


def _provider(name: str, dialect: str, *lines: str) -> str:
    base = f'dialect = "{dialect}"\nbase_url = "{{upstream}}{BASES.get(dialect, "")}"\n'
    return f"[providers.{name}]\n{base}" + "".join([_QUICK, *lines])


def _api_key(of: str) -> str:
    """None that holds a name: it would be redacted wherever the name is."""
    return f'api_key = "{hashlib.sha256(of.encode()).hexdigest()[:20]}"\n'


def _own_providers(*lines: str) -> str:
    return "".join(_provider(dialect, dialect, _api_key(dialect), *lines) for dialect in UPSTREAMS)


def _keys() -> str:
    tables = {
        "team-a": "",
        "team-b": "",
        "choosy": 'models = ["gemini/*"]',
        "few": "requests_per_minute = 2",
        "small": "tokens_per_day = 40",
        "poor": "cost_per_month = 0.0001",
        "strict": 'losses = "strict"',
        "late": "expires = 2020-01-01",
    }
    digests = {name: hashlib.sha256(f"key-of-{name}".encode()).hexdigest() for name in tables}
    return "".join(
        f'[keys.{name}]\nhash = "sha256:{digests[name]}"\n{limits}\n' for name, limits in tables.items()
    )


_SERVER: Final = f"""
[server]
secret = "{SECRET}"
admin_secret = "{ADMIN}"
origins = ["https://page.example"]
"""
_NO_OTHERS: Final = "[providers]\ndiscover = false\n"
_LIMITS: Final = "[limits]\nbody = 200000\nanthropic_body = 200000\nauth_failures = 100000\nevent = 60000\n"
_MODELS: Final = """
[models]
first = "openai-chat/model-1"
both = ["openai-chat/model-1", "anthropic/model-2"]
smart = [{ to = "gemini/model-1", effort = ["high"] }, { to = "openai-responses/model-1" }]
"claude-*" = "openai-chat/gpt-*"
[prices]
"*/*" = { input = 3, output = 15, cache_read = 0.3 }
"""


def _by_dialect(
    name: str, dialects: tuple[str, ...], play: Callable[[str, Recorder], None]
) -> dict[str, Scenario]:
    return {f"{name}-{dialect}": partial(play, dialect) for dialect in dialects}


def setups() -> tuple[Setup, ...]:
    hasty = "".join(
        _provider(f"{dialect}-hasty", dialect, _api_key("hasty"), _IMPATIENT) for dialect in UPSTREAMS
    )
    spares = "".join(
        _provider(f"{dialect}-{number}", dialect, _api_key(f"{dialect}-{number}"))
        for dialect in UPSTREAMS
        for number in range(_SPARES)
    )
    plain = _SERVER + _LIMITS + _NO_OTHERS + _own_providers() + hasty + spares + _MODELS
    pooled = "".join(
        _provider(f"pooled-{client}", "openai-chat", f'api_keys = ["1-{client}-1", "2-{client}-2"]\n')
        for client in CLIENTS
    )
    fragile = _provider("fragile", "openai-chat").replace(_QUICK, _FRAGILE)
    kept = _SERVER + _LIMITS + _NO_OTHERS + _own_providers() + pooled + fragile + _MODELS + _keys()
    frugal = _SERVER + _LIMITS + "remembered = 0\n" + _NO_OTHERS + _own_providers() + _MODELS + _keys()
    listed = "".join(
        f'[providers.{provider}-{dialect}]\ncatalog = "{provider}"\ndialects = ["{dialect}"]\n'
        f'base_url = "{{upstream}}{BASES.get(dialect, "")}"\n{_api_key(provider)}{_QUICK}'
        for provider, dialect in dict.fromkeys(
            (provider, dialect) for provider, dialect, _ in _catalog_routes()
        )
    )
    state: dict[str, Scenario] = {
        "pairs": pairs,
        "growing": growing,
        "responses": responses,
        "conversations": conversations,
        "keys": keys,
        "fallbacks": fallbacks,
    }
    return (
        Setup(
            "plain",
            plain,
            {
                **_by_dialect("requests", CLIENTS, requests),
                **_by_dialect("answers", UPSTREAMS, answers),
                # Behind them: only answers that came earn a provider its retries.
                **_by_dialect("retries", UPSTREAMS, retries),
                **_by_dialect("errors", UPSTREAMS, errors),
                **_by_dialect("faults", UPSTREAMS, faults),
                **_by_dialect("client-faults", CLIENTS, client_faults),
                "endpoints": endpoints,
            },
        ),
        Setup("kept", kept + '[trace]\nmode = "all"\n', state, traces=True),
        Setup("frugal", frugal + '[trace]\nmode = "errors"\n', {"growing": growing, "pairs": pairs}),
        Setup("catalog", _SERVER + _LIMITS + _NO_OTHERS + listed, {"catalog": catalog}),
    )
