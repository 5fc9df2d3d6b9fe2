"""Who may come in."""

import hashlib

import pytest

from tests.gateway.kit import head, match, settings
from tests.tiers import rows
from wireglot.gateway.entry.callers import LOCAL, Gatekeeper
from wireglot.gateway.entry.guard import check_body_form, check_host, check_origin
from wireglot.gateway.errors import RequestError
from wireglot.gateway.process_limits import ProcessLimits
from wireglot.gateway.settings import ClientKey, ServerSettings

LOOPBACK = ServerSettings()
PUBLIC = ServerSettings(host="0.0.0.0", hosts=("llm.example.org",))


def key(text: str, name: str = "team") -> ClientKey:
    return ClientKey(name, hashlib.sha256(text.encode()).hexdigest())


@rows("host", ["localhost", "localhost:8484", "127.0.0.1:1", "[::1]:8484", "127.9.9.9"])
def test_a_loopback_name_is_served_on_loopback(host: str):
    check_host(head("GET", "/", host=host), LOOPBACK)


@rows("host", ["evil.test", "evil.test:8484", "localhost.evil.test", "192.168.0.5", ""])
@rows("server", [LOOPBACK, PUBLIC])
def test_a_rebound_name_is_refused_on_a_loopback_connection(host: str, server: ServerSettings):
    """FAULTS 6, THREATS T2"""
    with pytest.raises(RequestError) as refused:
        check_host(head("GET", "/", host=host), server)
    assert refused.value.error.code == "host_not_allowed"


def test_a_configured_name_and_an_address_are_served_from_elsewhere():
    for host in ("llm.example.org", "10.0.0.7:8484"):
        check_host(head("GET", "/", peer="10.0.0.9", host=host), PUBLIC)
    with pytest.raises(RequestError):
        check_host(head("GET", "/", peer="10.0.0.9", host="evil.test"), PUBLIC)


def test_pages_may_not_call_unless_they_were_named():
    with pytest.raises(RequestError):
        check_origin(head("POST", "/v1/messages", origin="https://evil.test"), LOOPBACK)
    with pytest.raises(RequestError):
        check_origin(head("GET", "/v1/models", sec_fetch_site="cross-site"), LOOPBACK)
    named = ServerSettings(origins=("https://app.example.org",))
    check_origin(
        head("POST", "/v1/messages", origin="https://app.example.org", sec_fetch_site="cross-site"), named
    )


@rows(
    "headers",
    [
        {},
        {"content_type": "text/plain"},
        {"content_type": "application/x-www-form-urlencoded"},
        {"content_type": "application/json; charset=utf-16"},
        {"content_type": "application/json", "content_encoding": "gzip"},
    ],
)
def test_only_plain_json_is_taken(headers):
    """FAULTS 14, 15"""
    with pytest.raises(RequestError) as refused:
        check_body_form(head("POST", "/v1/messages", **headers))
    assert refused.value.error.status == 415


@pytest.mark.parametrize("kind", ["application/json", "application/json; charset=UTF-8", "Application/JSON"])
def test_json_is_taken_however_it_is_spelled(kind: str):
    check_body_form(head("POST", "/v1/messages", content_type=kind))


@rows(
    ("path", "query", "headers"),
    [
        ("/v1/messages", "", {"x_api_key": "secret"}),
        ("/v1/messages", "", {"authorization": "Bearer secret"}),
        ("/v1/messages", "", {"authorization": "bearer  secret "}),
        ("/v1/chat/completions", "", {"x_goog_api_key": "secret"}),
        ("/v1beta/models/m:generateContent", "key=secret", {}),
        # Claude Code with both settings sends both.
        ("/v1/messages", "", {"authorization": "Bearer other", "x_api_key": "secret"}),
    ],
)
def test_a_key_is_taken_from_wherever_clients_put_it(path, query, headers):
    """R-DE-06"""
    request = head("POST", path, query, **headers)
    on = settings(keys=(key("secret"),))
    assert Gatekeeper(lambda: 0.0).caller(request, match(request), on).name == "team"


@rows(
    ("path", "query", "headers"),
    [
        ("/v1/messages", "", {}),
        ("/v1/messages", "", {"x_api_key": "Secret"}),
        ("/v1/messages", "key=secret", {}),
        ("/v1/messages", "", {"authorization": "Basic secret"}),
        ("/v1/messages", "", {"x_api_key": "x" * 10_000_000}),
        ("/v1/messages", "", {"x_api_key": "a\x00'\"😀"}),
    ],
)
def test_a_wrong_key_is_refused_without_being_repeated(path, query, headers):
    """FAULTS 88"""
    request = head("POST", path, query, **headers)
    with pytest.raises(RequestError) as refused:
        Gatekeeper(lambda: 0.0).caller(request, match(request), settings(keys=(key("secret"),)))
    assert refused.value.error.status == 401
    assert "ecret" not in refused.value.error.message


def test_without_keys_everyone_is_the_local_caller():
    request = head("POST", "/v1/messages")
    assert Gatekeeper(lambda: 0.0).caller(request, match(request), settings()) is LOCAL


def test_guessing_is_slowed_down_for_one_address_only():
    """FAULTS 89"""
    now = [0.0]
    gatekeeper = Gatekeeper(lambda: now[0])
    on = settings(keys=(key("secret"),), limits=ProcessLimits(auth_failures=3))

    def ask(peer: str, offered: str) -> int:
        request = head("POST", "/v1/messages", peer=peer, x_api_key=offered)
        try:
            gatekeeper.caller(request, match(request), on)
        except RequestError as fault:
            return fault.error.status
        return 200

    assert [ask("1.1.1.1", "wrong") for _ in range(5)] == [401, 401, 401, 429, 429]
    assert ask("2.2.2.2", "wrong") == 401
    assert ask("1.1.1.1", "secret") == 200
    now[0] = 61.0
    assert ask("1.1.1.1", "wrong") == 401
