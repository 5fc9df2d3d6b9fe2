"""`wireglot smoke` against a small HTTP server with the demo model behind it, whole and broken."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import complaint, configure, run
from tests.tiers import rows
from wireglot.demo.service import DemoTarget, serve, target_of
from wireglot.gateway.pages import models
from wireglot_core.dialects.listed_model import ListedModel
from wireglot_core.dialects.registry import surface
from wireglot_core.wire.json import encode

MODELS = tuple(ListedModel(name, "demo") for name in ("demo", "demo/demo"))


class _Handler(BaseHTTPRequestHandler):
    """`faults`: path -> (status, content type, body) in place of the true answer. `seen` grows."""

    protocol_version = "HTTP/1.1"
    faults: dict[str, tuple[int, str, bytes]]
    seen: list[tuple[str, dict[str, str], bytes]]

    def do_GET(self) -> None:
        self.answer(b"")

    def do_POST(self) -> None:
        self.answer(self.rfile.read(int(self.headers.get("content-length", 0))))

    def answer(self, body: bytes) -> None:
        path, _, query = self.path.partition("?")
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.seen.append((self.path, headers, body))
        if path in self.faults:
            return self.reply(*self.faults[path])
        if path.endswith("/models"):
            name = "gemini" if "v1beta" in path else "openai-chat"
            name = "anthropic" if "anthropic-version" in headers else name
            return self.reply(
                200, "application/json", encode(models.render_list(surface(name), MODELS, query))
            )
        if path.startswith("/v1/models/"):
            return self.reply(200, "application/json", b'{"id":"x"}')
        if path == "/api/show":
            return self.reply(200, "application/json", b'{"model_info":{"wireglot.context_length":9000}}')
        target = (
            DemoTarget("gemini-simple", "generate")
            if path == "/v1/gemini"
            else target_of(path, query, headers)
        )
        assert target is not None, path
        served = serve(target, body)
        if target.operation == "count":
            counts = surface(target.dialect).counts
            assert counts is not None
            return self.reply(200, "application/json", encode(counts.render_answer(7)))
        kind = dict(served.headers)["content-type"]
        return self.reply(served.status, kind, served.body)

    def reply(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        for name, value in (
            ("content-type", kind),
            ("content-length", str(len(body))),
            ("x-wireglot-route", "demo/demo"),
            ("x-wireglot-losses", "max_tokens"),
        ):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@contextmanager
def _gateway(
    **faults: tuple[int, str, bytes],
) -> Iterator[tuple[str, list[tuple[str, dict[str, str], bytes]]]]:
    seen: list[tuple[str, dict[str, str], bytes]] = []
    handler = type("Handler", (_Handler,), {"faults": faults, "seen": seen})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", seen
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_a_sound_gateway_passes_every_check():
    """R-DE-11"""
    with _gateway() as (url, seen):
        done = run("smoke", "--url", url, "--key", "secret")
    reported = done.stdout.decode()
    assert done.returncode == 0, reported
    assert "43 checks passed, 0 failed" in reported
    assert reported.count("PASS") == 43
    assert reported.count("demo/demo") == 43
    assert "max_tokens" in reported
    assert all(headers["authorization"] == "Bearer secret" for _, headers, _ in seen)
    generating = ("sync", "stream", "tools", "tools, stream")
    for endpoint, checks in {
        "GET /v1/models": ("models, openai-chat", "models, anthropic"),
        "GET /v1beta/models": ("models, gemini",),
        "POST /api/show": ("context 9000",),
        "POST /v1/messages/count_tokens": ("count",),
        "POST /v1/chat/completions": generating,
        "POST /v1/responses": generating,
        "POST /v1/messages": generating,
    }.items():
        for check in checks:
            assert re.search(rf"^{re.escape(endpoint)} +{check} +PASS ", reported, re.MULTILINE), (
                endpoint,
                check,
            )


def test_whether_an_answer_streams_is_said_in_the_path_or_in_the_body():
    """Google's APIs have a path for streams and refuse a field of that name."""
    with _gateway() as (url, seen):
        run("smoke", "--url", url, "--key", "secret")
    said: dict[str, list[object]] = {}
    for path, _, body in seen:
        if body:
            said.setdefault(path, []).append(json.loads(body).get("stream"))
    in_body = [False, True, False, True]
    assert said["/v1/messages"] == said["/v1/chat/completions"] == said["/v1/responses"] == in_body
    by_path = {path: set(fields) for path, fields in said.items() if "v1beta" in path or "v1internal" in path}
    assert by_path
    assert set().union(*by_path.values()) == {None}


@pytest.mark.parametrize(
    ("options", "model"),
    [
        ((), b'"demo"'),
        (("--provider", "demo"), b'"demo/demo"'),
        (("--model", "x"), b'"x"'),
        (("--provider", "p", "--model", "x"), b'"p/x"'),
    ],
)
def test_the_model_is_the_first_listed_or_the_one_named(options, model):
    with _gateway() as (url, seen):
        run("smoke", "--url", url, *options)
    bodies = [body for path, _, body in seen if path == "/v1/messages"]
    assert len(bodies) == 4
    assert all(b'"model":' + model in body for body in bodies)
    assert any(f"/models/{model.decode()[1:-1]}:streamGenerateContent?alt=sse" in path for path, _, _ in seen)


JSON = "application/json"


@rows(
    ("path", "fault", "failures", "reported"),
    [
        ("/v1/messages", (529, JSON, b'{"type":"error","error":{"type":"o","message":"busy"}}'), 4, "busy"),
        ("/v1/chat/completions", (200, JSON, b"{}"), 4, "FAIL"),
        ("/v1/responses", (200, "text/html", b"<html>"), 4, "expected a stream, got text/html"),
        ("/v1/gemini", (200, "text/event-stream", b"data: {"), 4, "FAIL"),
        ("/v1internal:countTokens", (200, JSON, b'{"totalTokens":0}'), 1, "expected a count in totalTokens"),
        ("/v1beta/models", (200, JSON, b'{"models":[]}'), 1, "the list is empty"),
    ],
)
def test_failures_are_reported_and_counted(path, fault, failures, reported):
    with _gateway(**{path: fault}) as (url, _):
        done = run("smoke", "--url", url)
    assert done.returncode == failures, done.stdout.decode()
    assert done.stdout.decode().count("FAIL") == failures
    assert reported in done.stdout.decode()


def test_a_model_that_ignores_the_tool_fails_the_tool_checks():
    """R-DE-11"""
    answer = {
        "id": "c",
        "object": "chat.completion",
        "created": 0,
        "model": "m",
        "choices": [
            {"index": 0, "message": {"role": "assistant", "content": "Sunny."}, "finish_reason": "stop"}
        ],
    }
    with _gateway(**{"/v1/chat/completions": (200, JSON, encode(answer))}) as (url, _):
        reported = run("smoke", "--url", url).stdout.decode()
    assert "the model did not call the tool" in reported
    assert reported.count("expected a stream, got application/json") == 2


def test_without_a_url_a_gateway_of_its_own_is_asked(tmp_path, monkeypatch):
    """A configuration that turns on nothing but the demo, wherever the tests run."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    configure("[providers.demo]\n", tmp_path)
    monkeypatch.chdir(tmp_path)
    done = run("smoke", "--provider", "demo")
    reported = done.stdout.decode()
    assert done.returncode == 0, reported + done.stderr.decode()
    assert "43 checks passed, 0 failed" in reported
    assert done.stderr == b""


def test_without_a_url_a_broken_configuration_is_reported(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    configure("[server]\nprot = 1\n", tmp_path)
    monkeypatch.chdir(tmp_path)
    done = run("smoke")
    assert done.returncode == 2
    assert b"prot" in done.stderr


def test_a_gateway_that_is_not_there_is_reported_in_one_line():
    with _gateway() as (url, _):
        pass
    assert complaint(run("smoke", "--url", url), 1).startswith(url)


def test_a_gateway_that_refuses_the_key_is_reported_in_one_line():
    refused = b'{"error":{"message":"no such key","type":"authentication_error"}}'
    with _gateway(**{"/v1/models": (401, JSON, refused)}) as (url, _):
        assert "the client key was rejected" in complaint(run("smoke", "--url", url, "--key", "x"), 1)
        assert "requires a client key" in complaint(run("smoke", "--url", url))


def test_a_provider_without_models_needs_a_name():
    with _gateway() as (url, _):
        assert "--model" in complaint(run("smoke", "--url", url, "--provider", "nobody"))


@rows("url", ["127.0.0.1:8484", "ftp://x", "http://", "http://h:99999", "http://[::1"])
def test_an_unusable_url_is_refused(url):
    assert complaint(run("smoke", "--url", url)).startswith("--url: ")


def test_a_gateway_of_ones_own_is_smoked_where_keys_are_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """[M6] With one stored key every check was refused."""
    monkeypatch.chdir(tmp_path)
    for name in ("HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    assert run("keys", "create", "somebody").returncode == 0
    done = run("smoke", "--model", "demo/demo")
    assert done.returncode == 0, done.stdout.decode()
    assert b"0 failed" in done.stdout
