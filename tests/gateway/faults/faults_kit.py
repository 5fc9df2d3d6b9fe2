"""Clients of every dialect over plain HTTP, before a gateway whose upstream misbehaves, and what §1 and §2 of
the fault matrix demand of the answers, byte by byte."""

from __future__ import annotations

import http.client
import re
import socket
import struct
import urllib.request
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from tests.waiting import DEADLINE_SECONDS, wait_until
from wireglot.testing.live_gateway import BASES, LiveGateway
from wireglot.testing.scripted_upstream import ScriptedUpstream
from wireglot_core.wire.json import decode, encode

KEY: Final = "upstream-key-0123456789"
ONCE: Final = "retry = { retries = 0 }\nbreaker = { consecutive = 1000000, minimum = 1000000 }\n"
"""A provider that is asked once and whose circuit breaker never opens: what happens to one request touches no other."""
VERTEX: Final = "/v1/projects/p/locations/l/publishers/anthropic/models"


class Client(msgspec.Struct, frozen=True):
    """`family` says whose error bodies and streams it reads: A, C, R or G. `dialect`: what it speaks, in a cloud's
    form or not."""

    name: str
    dialect: str
    family: str

    def path(self, model: str, stream: bool) -> str:
        verb = "streamGenerateContent" if stream else "generateContent"
        if self.name == "anthropic-vertex":
            return f"{VERTEX}/{model}:{'streamRawPredict' if stream else 'rawPredict'}"
        query = "?alt=sse" if stream and self.name != "gemini-array" else ""
        return {
            "anthropic": "/v1/messages",
            "openai-chat": "/v1/chat/completions",
            "openai-responses": "/v1/responses",
            "gemini": f"/v1beta/models/{model}:{verb}{query}",
            "code-assist": f"/v1internal:{verb}{query}",
            "gemini-simple": "/v1/gemini",
            "gemini-interactions": "/v1beta/interactions",
        }[self.dialect]

    def body(self, model: str, text: str, stream: bool) -> dict[str, Any]:
        turn = [{"role": "user", "content": text}]
        contents = {"contents": [{"role": "user", "parts": [{"text": text}]}]}
        match self.dialect:
            case "anthropic" if self.name == "anthropic-vertex":
                return {"anthropic_version": "vertex-2023-10-16", "max_tokens": 4096, "messages": turn}
            case "anthropic":
                return {"model": model, "max_tokens": 4096, "stream": stream, "messages": turn}
            case "openai-chat":
                return {"model": model, "stream": stream, "messages": turn}
            case "openai-responses" | "gemini-interactions":  # what nobody stores passes through
                return {"model": model, "stream": stream, "store": False, "input": text}
            case "gemini":
                return contents
            case "code-assist":
                return {"model": model, "project": "p", "request": contents}
            case _:
                return {"model": model, "stream": stream, "input": text}

    @property
    def is_array(self) -> bool:
        return self.name == "gemini-array"


CLIENTS: Final = (
    Client("anthropic", "anthropic", "A"),
    Client("openai-chat", "openai-chat", "C"),
    Client("openai-responses", "openai-responses", "R"),
    Client("gemini", "gemini", "G"),
    Client("gemini-array", "gemini", "G"),
    Client("code-assist", "code-assist", "G"),
    Client("gemini-simple", "gemini-simple", "G"),
    Client("anthropic-vertex", "anthropic", "A"),
)
BY_NAME: Final = {client.name: client for client in CLIENTS}
UPSTREAMS: Final = (
    "anthropic",
    "openai-chat",
    "openai-responses",
    "gemini",
    "code-assist",
    "gemini-interactions",
)
UPSTREAMS_ALONE: Final = frozenset({"gemini-interactions"})
"""Whose clients are not among these: tests/gateway/sdk/test_sdk_interactions.py has Google's own."""


def provider(name: str, upstream: ScriptedUpstream, dialect: str, lines: str = ONCE) -> str:
    """A table of the configuration."""
    key = "" if "api_key" in lines else f'api_key = "{KEY}"\n'
    address = f'dialect = "{dialect}"\nbase_url = "{upstream.url}{BASES[dialect]}"\n'
    return f"[providers.{name}]\n{address}{key}{lines}\n"


def every_dialect(upstream: ScriptedUpstream, lines: str = ONCE) -> str:
    """One provider for each dialect, named like it: `anthropic-up/m1`."""
    return "".join(provider(f"{dialect}-up", upstream, dialect, lines) for dialect in UPSTREAMS)


def without_estimate(body: bytes) -> bytes:
    """The beginning of a Messages stream may report an estimate, which gets better from answer to answer."""
    return re.sub(rb'("message_start".*?"input_tokens":)\d+', rb"\g<1>0", body)


def model_at(dialect: str) -> str:
    return f"{dialect}-up/m1"


class Answered(msgspec.Struct, frozen=True):
    """`whole`: the answer ended as HTTP says that it should."""

    status: int
    headers: dict[str, str]
    body: bytes
    whole: bool = True

    @property
    def json(self) -> Any:
        return decode(self.body)


class Call:
    """A request that was sent, whose answer is read piece by piece, or not at all."""

    def __init__(self, port: int, path: str, body: bytes, headers: Mapping[str, str] = {}) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=DEADLINE_SECONDS)
        self._connection.request("POST", path, body, {"content-type": "application/json", **headers})
        self._response: http.client.HTTPResponse | None = None

    @property
    def response(self) -> http.client.HTTPResponse:
        if self._response is None:
            self._response = self._connection.getresponse()
        return self._response

    def until(self, mark: bytes) -> bytes:
        """What has come once `mark` stands in it."""
        have = b""
        while mark not in have:
            piece = self.response.read1(65536)
            assert piece, f"the answer ended without {mark!r}: {have!r}"
            have += piece
        return have

    def rest(self) -> Answered:
        response = self.response
        headers = {name.lower(): value for name, value in response.getheaders()}
        try:
            return Answered(response.status, headers, response.read())
        except http.client.IncompleteRead as cut:
            return Answered(response.status, headers, cut.partial, whole=False)
        except ConnectionResetError:
            return Answered(response.status, headers, b"", whole=False)
        finally:
            self.leave()

    def leave(self, *, reset: bool = False, half: bool = False) -> None:
        sock = self._connection.sock or (self._response and _socket_of(self._response))
        if half and sock:
            sock.shutdown(socket.SHUT_WR)
            return
        if reset and sock:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        if self._response is not None:
            self._response.close()
        self._connection.close()


def _socket_of(response: http.client.HTTPResponse) -> socket.socket | None:
    """A response that closes its connection keeps the socket to itself."""
    raw = getattr(response.fp, "raw", None)
    return getattr(raw, "_sock", None)


def start(
    gateway: LiveGateway,
    client: Client,
    model: str = "m1",
    text: str = "hi",
    *,
    stream: bool = False,
    headers: Mapping[str, str] = {},
    **more: Any,
) -> Call:
    body = encode({**client.body(model, text, stream), **more})
    return Call(gateway.port, client.path(model, stream), body, headers)


def ask(gateway: LiveGateway, client: Client, model: str = "m1", text: str = "hi", **more: Any) -> Answered:
    return start(gateway, client, model, text, **more).rest()


def post(port: int, path: str, body: bytes, headers: Mapping[str, str] = {}) -> Answered:
    return Call(port, path, body, headers).rest()


class Reported(msgspec.Struct, frozen=True):
    """What an error says, whatever its dialect. `type` is the status name for Gemini."""

    type: str
    code: Any
    message: str
    details: list[dict[str, Any]] = []


_OF_GOOGLE: Final = {
    "UNAUTHENTICATED": "authentication_error",
    "NOT_FOUND": "not_found_error",
    "UNIMPLEMENTED": "invalid_request_error",
}
"""What Vertex AI reports itself, and what Anthropic calls it."""


def reported(client: Client, answered: Answered) -> Reported:
    """An error before the stream has begun: checks the exact shape of §1 on the way."""
    assert answered.headers["content-type"] == "application/json", answered
    document = answered.json
    if client.name == "anthropic-vertex" and list(document) == ["error"]:
        error = document["error"]
        assert error["code"] == answered.status
        return _checked(Reported(_OF_GOOGLE[error["status"]], None, error["message"]))
    if client.family == "A":
        assert list(document) == ["type", "error", "request_id"], document
        assert document["type"] == "error"
        assert document["request_id"] == answered.headers["request-id"] == answered.headers["x-request-id"]
        return _checked(Reported(document["error"]["type"], None, document["error"]["message"]))
    assert answered.headers["x-request-id"].startswith("req_")
    assert list(document) == ["error"], document
    error = document["error"]
    if client.family == "G":
        assert set(error) <= {"code", "message", "status", "details"}, error
        assert error["code"] == answered.status
        return _checked(Reported(error["status"], error["code"], error["message"], error.get("details", [])))
    assert set(error) == {"message", "type", "param", "code"}, error
    return _checked(Reported(error["type"], error["code"], error["message"]))


FORMS: Final[dict[str, tuple[tuple[int, str], tuple[int, str, str | None], tuple[int, str]]]] = {
    "bad": ((400, "invalid_request_error"), (400, "invalid_request_error", "invalid_json"), (400, "INVALID_ARGUMENT")),
    "auth": ((401, "authentication_error"), (401, "invalid_request_error", "invalid_api_key"), (400, "INVALID_ARGUMENT")),
    "permission": ((400, "invalid_request_error"), (403, "permission_error", "model_not_allowed"), (403, "PERMISSION_DENIED")),
    "not_found": ((404, "not_found_error"), (404, "invalid_request_error", "model_not_found"), (404, "NOT_FOUND")),
    "conflict": ((409, "invalid_request_error"), (409, "invalid_request_error", "idempotency_conflict"), (409, "ABORTED")),
    "too_large": ((413, "request_too_large"), (413, "invalid_request_error", "request_too_large"), (413, "INVALID_ARGUMENT")),
    "media": ((415, "invalid_request_error"), (415, "invalid_request_error", "unsupported_media_type"), (415, "INVALID_ARGUMENT")),
    "rate": ((429, "rate_limit_error"), (429, "rate_limit_error", "rate_limit_exceeded"), (429, "RESOURCE_EXHAUSTED")),
    "shed": ((529, "overloaded_error"), (503, "server_error", "server_is_overloaded"), (503, "UNAVAILABLE")),
    "internal": ((500, "api_error"), (500, "server_error", "internal_error"), (500, "INTERNAL")),
    "upstream_bad": ((502, "api_error"), (502, "server_error", "upstream_error"), (502, "UNAVAILABLE")),
    "upstream_down": ((503, "api_error"), (503, "server_error", "upstream_unavailable"), (503, "UNAVAILABLE")),
    "upstream_timeout": ((504, "timeout_error"), (504, "server_error", "upstream_timeout"), (504, "DEADLINE_EXCEEDED")),
    "upstream_auth": ((500, "api_error"), (502, "server_error", "upstream_auth_failed"), (500, "INTERNAL")),
}  # fmt: skip


def is_of(kind: str, client: Client, answered: Answered) -> None:
    anthropic, openai, gemini = FORMS[kind]
    said = reported(client, answered)
    found = (answered.status, said.type)
    if client.family == "A":
        assert found == anthropic, (found, kind)
    elif client.family == "G":
        assert found == gemini, (found, kind)
    else:
        assert (*found, said.code) == openai, (*found, said.code, kind)


def reported_in_stream(client: Client, answered: Answered, *, own: bool = False) -> Reported:
    """An error after the stream has begun: exactly one, in the exact form of §2, and nothing after it.

    `own`: it is the upstream's own event, which goes on as it came.
    """
    assert answered.status == 200, answered
    assert answered.whole, answered
    body = answered.body
    assert not invented_end(client, body), body[-300:]
    if client.is_array:
        return _reported_in_array(body)
    if client.family == "R":
        return _reported_in_responses(body)
    if client.family == "A":
        found = re.search(rb"(?:\A|\n\n)event: error\ndata: (\{[^\n]*\})\n\n\Z", body)
        assert found, body[-600:]
        assert body.count(b"event: error") == 1, body
        document = decode(found[1])
        assert list(document) == ["type", "error", "request_id"], document
        assert document["type"] == "error"
        assert own or document["request_id"] == answered.headers["request-id"]
        return _checked(Reported(document["error"]["type"], None, document["error"]["message"]))
    gap = rb"\r\n\r\n" if client.family == "G" else rb"\n\n"
    found = re.search(rb'(?:\A|\n)data: (\{"error":\{[^\n]*\}\})' + gap + rb"\Z", body)
    assert found, body[-600:]
    assert body.count(b'data: {"error"') == 1, body
    error = decode(found[1])["error"]
    if client.family == "G":
        assert type(error["code"]) is int
        return _checked(Reported(error["status"], error["code"], error["message"]))
    assert set(error) == {"message", "type", "param", "code"}, error
    return _checked(Reported(error["type"], error["code"], error["message"]))


def _reported_in_array(body: bytes) -> Reported:
    documents = decode(body)
    assert type(documents) is list, body[-300:]
    assert [next(iter(document)) == "error" for document in documents].count(True) == 1, body[-600:]
    error = documents[-1]["error"]
    assert type(error["code"]) is int
    return _checked(Reported(error["status"], error["code"], error["message"]))


def _reported_in_responses(body: bytes) -> Reported:
    found = re.search(
        rb"(?:\A|\n\n)event: error\ndata: (\{[^\n]*\})\n\nevent: response.failed\ndata: (\{[^\n]*\})\n\n\Z",
        body,
    )
    assert found, body[-600:]
    assert body.count(b"event: error\n") == body.count(b"event: response.failed\n") == 1, body
    error, failed = decode(found[1]), decode(found[2])
    assert set(error) == {"type", "sequence_number", "code", "message", "param", "error"}, error
    assert (error["error"]["code"], error["error"]["message"]) == (error["code"], error["message"])
    numbers = [int(number) for number in re.findall(rb'"sequence_number":(\d+)', body)]
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers))), numbers
    assert failed["response"]["status"] == "failed"
    assert failed["response"]["error"]["message"] == error["message"]
    return _checked(Reported(error["error"]["type"], error["code"], error["message"]))


_ENDS: Final = {
    "A": (b"message_stop",),
    "C": (b"[DONE]",),
    "R": (b"response.completed", b"response.incomplete"),
    "G": (b'"finishReason"', b"[DONE]"),
}


def invented_end(client: Client, body: bytes) -> bool:
    """Whether a stream says that its answer is complete."""
    return any(end in body for end in _ENDS[client.family])


def is_complete(client: Client, answered: Answered) -> bool:
    return answered.status == 200 and answered.whole and invented_end(client, answered.body)


def _checked(reported: Reported) -> Reported:
    assert 0 < len(reported.message) <= 512
    assert reported.message.isprintable(), reported.message
    # Callers on the same machine are shown where to look, behind the bar.
    for secret in (KEY, "127.0.0.1", "Traceback", ".py", " at 0x"):
        assert secret not in reported.message.partition(" | ")[0], reported.message
    assert KEY not in reported.message
    return reported


def logged(gateway: LiveGateway, answered: Answered) -> dict[str, Any]:
    """The log line of an answer; it is written by another thread, after the answer."""
    return line_of(gateway, answered.headers["x-wireglot-request-id"])


def line_of(gateway: LiveGateway, mark: str) -> dict[str, Any]:
    """The one log line of a request that holds some text. Only that one is decoded: there may be many."""
    found: list[bytes] = []
    wanted, log = mark.encode(), gateway.folder / "log"

    def look() -> bool:
        data = log.read_bytes()
        whole = data[: data.rfind(b"\n") + 1]
        found.clear()
        at = whole.find(wanted)
        while at >= 0:
            end = whole.index(b"\n", at)
            line = whole[whole.rfind(b"\n", 0, at) + 1 : end]
            if b'"event":"request"' in line:
                found.append(line)
            at = whole.find(wanted, end)
        return bool(found)

    wait_until(look)
    assert len(found) == 1, "a request is reported exactly once"
    line: dict[str, Any] = decode(found[0])
    return line


def figure(gateway: LiveGateway, name: str) -> int:
    """One of the metrics."""
    with urllib.request.urlopen(f"http://127.0.0.1:{gateway.port}/metrics") as page:
        found = re.search(rb"^wireglot_%b (\d+)$" % name.encode(), page.read(), re.MULTILINE)
    assert found is not None, name
    return int(found[1])
