"""A client that was given the wrong address: what it is given, over HTTP and through the vendors' SDKs."""

from __future__ import annotations

import json
import socket
import ssl
import urllib.error
import urllib.request
from collections.abc import Iterator

import anthropic
import openai
import pytest

from tests.waiting import wait_until
from wireglot.testing.live_gateway import LiveGateway


@pytest.fixture(scope="module")
def gateway() -> Iterator[LiveGateway]:
    with LiveGateway() as running:
        yield running


def test_the_anthropic_sdk_with_a_v1_too_many_says_what_to_do(gateway: LiveGateway) -> None:
    client = anthropic.Anthropic(base_url=f"{gateway.url}/v1", api_key="x", max_retries=0)
    with pytest.raises(anthropic.NotFoundError) as reported:
        client.messages.create(model="demo", max_tokens=9, messages=[{"role": "user", "content": "Hello"}])
    assert reported.value.body is not None
    message = json.loads(reported.value.response.text)["error"]["message"]
    assert message == (
        "there is no endpoint POST /v1/v1/messages: /v1/messages is served; "
        "remove /v1 from the end of the client's base URL"
    )


@pytest.mark.parametrize(
    ("base", "fix"),
    [
        ("", "add /v1 to the end of the client's base URL"),
        ("/v1/v1", "remove /v1 from the end of the client's base URL"),
        ("/v1/chat/completions", "remove /chat/completions from the end of the client's base URL"),
    ],
)
def test_the_openai_sdk_with_another_base_url_says_what_to_do(
    gateway: LiveGateway, base: str, fix: str
) -> None:
    client = openai.OpenAI(base_url=gateway.url + base, api_key="x", max_retries=0)
    with pytest.raises(openai.NotFoundError) as reported:
        client.chat.completions.create(model="demo", messages=[{"role": "user", "content": "Hello"}])
    assert fix in reported.value.message


def test_a_base_url_with_a_slash_at_its_end_is_reported(gateway: LiveGateway) -> None:
    """Clients that put their path behind it as it is ask for //v1/messages."""
    status, document = asked(f"{gateway.url}//v1/messages", b"{}")
    assert status == 400
    assert "remove the slash at the end of the client's base URL" in document["error"]["message"]


def test_tls_at_the_port_is_reported_in_the_log(gateway: LiveGateway) -> None:
    """The client cannot read the answer; anyone who looks at the gateway finds out, and once is enough."""
    host, _, port = gateway.url.removeprefix("http://").partition(":")
    for _ in range(2):
        with socket.create_connection((host, int(port))) as plain, pytest.raises(ssl.SSLError):
            ssl.create_default_context().wrap_socket(plain, server_hostname="localhost")

    def notes() -> list[dict[str, str]]:
        return [line for line in gateway.log("refused") if line.get("code") == "tls_not_spoken"]

    wait_until(notes)
    wait_until(lambda: gateway.process.server.refused.get("tls_not_spoken") == 2)
    (note,) = notes()
    assert (note["level"], note["event"]) == ("warn", "refused")
    assert "start the client's base URL with http://" in note["detail"]


def test_a_browser_at_the_root_is_shown_how_to_go_on(gateway: LiveGateway) -> None:
    request = urllib.request.Request(
        f"{gateway.url}/", headers={"accept": "text/html", "user-agent": "Mozilla/5.0"}
    )
    with urllib.request.urlopen(request) as answer:
        assert answer.headers["content-type"] == "application/json"
        document = json.load(answer)
    assert "wireglot run CLIENT" in document["help"]
    assert "POST /v1/messages" in document["endpoints"]["anthropic"]


def test_a_browser_at_an_endpoint_is_given_the_method(gateway: LiveGateway) -> None:
    status, document = asked(f"{gateway.url}/v1/messages")
    assert status == 405
    assert document["error"]["message"] == "/v1/messages supports POST"


def asked(url: str, body: bytes | None = None) -> tuple[int, dict[str, dict[str, str]]]:
    request = urllib.request.Request(url, body, {"content-type": "application/json"})
    with pytest.raises(urllib.error.HTTPError) as refused, urllib.request.urlopen(request):
        pass
    with refused.value:
        return refused.value.code, json.load(refused.value)
