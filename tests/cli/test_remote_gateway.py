"""The address of a gateway that runs elsewhere, and what is said where none answers."""

import http.client
import json
import socket
import ssl
from typing import Any

import pytest

from wireglot.cli import remote_gateway
from wireglot.cli.remote_gateway import GatewayAnswer, GatewayUnreachable, address_of, ask


@pytest.mark.parametrize(
    "url",
    ["http://a.example", "https://a.example:8443", "http://[::1]:4000", "https://a.example/team%20a", "http://[::1]"],
)  # fmt: skip
def test_an_address_is_shown_as_it_was_given_whatever_follows_it(url: str) -> None:
    for end in ("", "/", "/v1", "/v1/"):
        assert address_of(url + end).url == url


def unreachable(url: str, fault: Exception, monkeypatch: pytest.MonkeyPatch) -> str:
    def fail(_: Any) -> None:
        raise fault

    monkeypatch.setattr(http.client.HTTPConnection, "connect", fail)
    monkeypatch.setattr(http.client.HTTPSConnection, "connect", fail)
    with pytest.raises(GatewayUnreachable) as told:
        ask(address_of(url), "GET", "/", seconds=2.5)
    assert str(told.value).startswith(f"{url}: ")
    return str(told.value).removeprefix(f"{url}: ")


def tls(reason: str) -> ssl.SSLError:
    fault = ssl.SSLError(1, reason)
    fault.reason = reason
    return fault


@pytest.mark.parametrize(
    ("fault", "plain", "secure"),
    [
        (ConnectionRefusedError(), "connection refused", "connection refused"),
        (socket.gaierror(), "unknown host name", "unknown host name"),
        (TimeoutError(), "no answer within 2.5 s", "no answer within 2.5 s"),
        (tls("WRONG_VERSION_NUMBER"), "use http://", "use http://"),
        (tls("RECORD_LAYER_FAILURE"), "use http://", "use http://"),
        (tls("HTTP_REQUEST"), "use http://", "use http://"),
        (tls("UNEXPECTED_EOF_WHILE_READING"), "use http://", "use http://"),
        (
            tls("NO_SHARED_CIPHER"),
            "TLS handshake failed: NO_SHARED_CIPHER",
            "TLS handshake failed: NO_SHARED_CIPHER",
        ),
        (ConnectionResetError(104, "it was reset"), "use https://", "it was reset"),
        (http.client.BadStatusLine("x"), "use https://", "does not speak HTTP (BadStatusLine)"),
        (OSError(101, "no way there"), "no way there", "no way there"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_why_nothing_answers_is_told_with_what_to_do(
    fault: Exception, plain: str, secure: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert plain in unreachable("http://a.example", fault, monkeypatch)
    assert secure in unreachable("https://a.example", fault, monkeypatch)


def answer(status: int, document: Any, **headers: str) -> GatewayAnswer:
    return GatewayAnswer(status, headers, json.dumps(document).encode())


def test_an_error_is_told_in_the_gateways_own_words() -> None:
    assert answer(400, {"error": {"message": "two\nlines"}}).complaint() == "two lines"
    others: list[Any] = [[], {"error": "x"}, {"error": {"message": 5}}, {"error": {"message": ""}}]
    for unreadable in others:
        assert answer(400, unreadable).complaint().startswith("status 400, not from a Wireglot gateway")
    moved = answer(302, {}, location="https://user:hush@other.example/x?key=hush").complaint()
    assert "https://other.example/x: use that address" in moved
    assert "hush" not in moved
    assert "status 302" in answer(302, {}).complaint()
    assert "status 200" in answer(200, {}, location="https://other.example").complaint()


def test_a_key_is_given_or_it_is_the_admin_secret_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    from wireglot.cli.keys import KeysAtGateway

    sent: list[str] = []

    def note(*_: Any, key: str, **__: Any) -> GatewayAnswer:
        sent.append(key)
        return answer(200, {"data": []})

    monkeypatch.setattr("wireglot.cli.keys.ask", note)
    monkeypatch.setenv(remote_gateway.ADMIN_SECRET, "of-the-environment")
    for given in ("", "another"):
        coroutine = KeysAtGateway("http://a.example", given).list()
        with pytest.raises(StopIteration):
            coroutine.send(None)
    assert sent == ["of-the-environment", "another"]
