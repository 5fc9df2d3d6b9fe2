"""What a client run says about the documents of the gateway."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from clients import documents
from clients.upstream import Exchange
from proofs.judges.oracle import Kind, Problem
from wireglot_core.wire.json import encode

ANSWER = {"object": "chat.completion"}
CHUNK = {"object": "chat.completion.chunk"}


class Vendors:
    """An oracle that has something against every document, and notes what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, Kind, Any]] = []

    def problems(self, dialect: str, kind: Kind, document: Any) -> list[Problem]:
        self.asked.append((dialect, kind, document))
        return [Problem(dialect, kind, "", "wrong")]


@pytest.fixture
def vendors(monkeypatch: pytest.MonkeyPatch) -> Vendors:
    found = Vendors()
    monkeypatch.setattr(documents, "installed", lambda: found)
    return found


def request(path: str, body: bytes, chunked: bool = False) -> bytes:
    if chunked:
        head = b"transfer-encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)
    else:
        head = b"content-length: %d\r\n\r\n%b" % (len(body), body)
    return b"POST %b HTTP/1.1\r\nhost: x\r\n%b" % (path.encode(), head)


def response(status: int, kind: str, body: bytes) -> bytes:
    head = f"HTTP/1.1 {status} Said\r\ncontent-type: {kind}\r\ncontent-length: {len(body)}\r\n\r\n"
    return head.encode() + body


def record(folder: Path, sent: bytes, received: bytes) -> Path:
    (folder / "001.sent").write_bytes(sent)
    (folder / "001.received").write_bytes(received)
    return folder


def test_every_answer_of_a_connection_is_checked_as_what_it_is(vendors: Vendors, tmp_path: Path) -> None:
    stream = b"data: %b\n\ndata: [DONE]\n\n" % encode(CHUNK)
    wire = record(
        tmp_path,
        request("/v1/chat/completions", b'{"a": 1}')
        + request("/v1/chat/completions", b'{"b": 22}', chunked=True)
        + request("/v1/chat/completions", b"{}")
        + request("/healthz", b""),
        response(200, "application/json", encode(ANSWER))
        + response(200, "text/event-stream", stream)
        + response(429, "application/json", encode({"error": {}}))
        + response(200, "application/json", b"{}"),
    )
    exchanges = [Exchange("gemini", encode({"contents": []}), b"{}")]
    assert documents.problems("openai-chat", "gemini", exchanges, wire) == [
        "gemini request $: wrong",
        "openai-chat answer $: wrong",
        "openai-chat event $: wrong",
        "openai-chat error $: wrong",
    ]
    assert vendors.asked == [
        ("gemini", "request", {"contents": []}),
        ("openai-chat", "answer", ANSWER),
        ("openai-chat", "event", CHUNK),
        ("openai-chat", "error", {"error": {}}),
    ]


def test_what_passes_unchanged_is_not_checked(vendors: Vendors, tmp_path: Path) -> None:
    wire = record(
        tmp_path,
        request("/v1/chat/completions", b"{}"),
        response(200, "application/json", encode(ANSWER)),
    )
    exchanges = [Exchange("openai-chat", b"{}", b"{}")]
    assert documents.problems("openai-chat", "openai-chat", exchanges, wire) == []
    assert vendors.asked == []


def test_half_an_answer_is_none(vendors: Vendors, tmp_path: Path) -> None:
    answer = response(200, "application/json", encode(ANSWER))
    wire = record(tmp_path, request("/v1/chat/completions", b"{}"), answer[:-5])
    assert documents.problems("openai-chat", "gemini", [], wire) == []
    assert vendors.asked == []
