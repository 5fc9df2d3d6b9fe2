"""What `make watch` reads from the wire, and what it takes for news."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from clients import watch
from clients.install import CannotInstall
from clients.packages import Package
from clients.watch import Seen, Sent, changes, facts, recorded, requests, unknown


def _request(path: str, body: dict[str, object] | None = None, **headers: str) -> bytes:
    data = json.dumps(body).encode() if body is not None else b""
    named = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
    method = "POST" if body is not None else "GET"
    head = f"{method} {path} HTTP/1.1\r\nHost: x\r\n{named}Content-Length: {len(data)}\r\n\r\n"
    return head.encode() + data


def test_all_requests_of_a_connection_are_read_and_a_cut_one_is_not() -> None:
    first = _request("/v1/models?limit=5")
    second = _request("/v1/messages", {"model": "m"}, anthropic_beta="a, b")
    found = list(requests(first + second + second[:-3]))
    assert [(sent.method, sent.path, sent.query) for sent in found] == [
        ("GET", "/v1/models", "limit=5"),
        ("POST", "/v1/messages", ""),
    ]
    assert found[1].body == b'{"model": "m"}'
    assert list(requests(b"\x16\x03\x01 no HTTP")) == []


def test_facts_are_names_and_enumerations_and_never_texts_or_the_insides_of_tools() -> None:
    body = {
        "thinking": {"type": "adaptive"},
        "messages": [{"role": "user", "content": [{"type": "text", "text": "a secret"}]}],
        "tools": [{"name": "f", "input_schema": {"properties": {"own": {}}}}],
        "input": {"own": 1},
    }
    sent = Sent(
        "POST", "/v1beta/models/gemini-x:generateContent", "alt=sse",
        {"anthropic-beta": "one, two", "authorization": "Bearer key", "x-app": "cli"},
        json.dumps(body).encode(),
    )  # fmt: skip
    found = set(facts(sent))
    assert {
        "path POST /v1beta/models/*:generateContent",
        "query alt",
        "header authorization",
        "value anthropic-beta: one",
        "value anthropic-beta: two",
        "value x-app: cli",
        "value $.thinking.type: adaptive",
        "value $.messages[].content[].type: text",
        "field $.tools[].input_schema",
        "field $.input",
    } <= found
    assert not [fact for fact in found if "secret" in fact or "key" in fact.split()[-1] or "own" in fact]


def test_a_field_that_no_codec_knows_is_reported() -> None:
    body = {"model": "m", "max_tokens": 1, "messages": [{"role": "user", "content": "hi"}], "brand_new": 1}
    sent = Sent("POST", "/v1/messages", "", {}, json.dumps(body).encode())
    assert list(unknown(sent, "anthropic")) == ["$.brand_new"]


def test_only_what_is_new_is_news_and_a_record_reads_as_it_was_written(tmp_path: Path) -> None:
    before = Seen("client@1", frozenset({"header a", "field $.x"}), frozenset({"$.old"}))
    (tmp_path / "client.txt").write_text(before.text())
    assert recorded("client", tmp_path) == before
    now = Seen("client@2", frozenset({"header a", "header b"}), frozenset({"$.old", "$.z"}))
    assert changes(before, now) == ["new: header b", "unknown to the codecs: $.z"]
    assert changes(recorded("nobody", tmp_path), before)[0] == "new: field $.x"


def test_a_release_that_cannot_be_installed_keeps_no_other_client_from_being_watched(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    broken, sound = Package("broken", "npm", ("b@1.0.0",)), Package("sound", "npm", ("s@1.0.0",))

    def install(package: Package) -> str:
        if package.name == "broken":
            raise CannotInstall("broken: no matching version of a dependency")
        return "installed"

    monkeypatch.setattr(watch, "newest", lambda package: replace(package, specs=(f"{package.name}@2.0.0",)))
    monkeypatch.setattr(watch, "install", install)
    assert watch.renewed([broken, sound]) == ({"sound": "sound@2.0.0"}, ["broken"])
    assert "no matching version" in capsys.readouterr().err
