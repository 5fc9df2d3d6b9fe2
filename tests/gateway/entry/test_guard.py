"""Who may come in."""

import hashlib
import socket

import pytest

from tests.gateway.kit import head, match, settings
from tests.tiers import rows
from wireglot.gateway.entry import callers
from wireglot.gateway.entry.callers import ADMIN, LOCAL, Gatekeeper, may_ask
from wireglot.gateway.entry.guard import check_body_form, check_host, check_origin, cors_preflight
from wireglot.gateway.errors import RequestError
from wireglot.gateway.process_limits import ProcessLimits
from wireglot.gateway.settings import ClientKey, Secret, ServerSettings

LOOPBACK = ServerSettings()
PUBLIC = ServerSettings(host="0.0.0.0", hosts=("llm.example.org",))


def key(text: str, name: str = "team") -> ClientKey:
    return ClientKey(name, hashlib.sha256(text.encode()).hexdigest())


@rows("host", ["localhost", "LocalHost:8484", "127.0.0.1:1", "[::1]:8484", "::1", "127.9.9.9"])
@rows("peer", ["127.0.0.1", "::1", "::ffff:127.0.0.1", "localhost", ""])
def test_a_loopback_name_is_served_on_loopback(host: str, peer: str):
    check_host(head("GET", "/", peer=peer, host=host), LOOPBACK)


@rows("host", ["evil.test", "evil.test:8484", "localhost.evil.test", "192.168.0.5", ""])
@rows("server", [LOOPBACK, PUBLIC])
def test_a_rebound_name_is_refused_on_a_loopback_connection(host: str, server: ServerSettings):
    """FAULTS 6, THREATS T2"""
    with pytest.raises(RequestError) as refused:
        check_host(head("GET", "/", host=host), server)
    assert refused.value.error.code == "host_not_allowed"


def test_a_configured_name_and_an_address_are_served_from_elsewhere():
    named = ServerSettings(host="Gateway.Test")
    for peer in ("10.0.0.9", "fe80::1%eth0"):
        for host in ("llm.example.org", "10.0.0.7:8484", "[fe80::1%25eth0]:8484", socket.gethostname()):
            check_host(head("GET", "/", peer=peer, host=host), PUBLIC)
        check_host(head("GET", "/", peer=peer, host="GATEWAY.test:80"), named)
        for host in ("evil.test", "localhost", ""):
            with pytest.raises(RequestError):
                check_host(head("GET", "/", peer=peer, host=host), PUBLIC)


def test_pages_may_not_call_unless_they_were_named():
    with pytest.raises(RequestError):
        check_origin(head("POST", "/v1/messages", origin="https://evil.test"), LOOPBACK)
    with pytest.raises(RequestError):
        check_origin(head("GET", "/v1/models", sec_fetch_site="cross-site"), LOOPBACK)
    named = ServerSettings(origins=("https://app.example.org",))
    check_origin(
        head("POST", "/v1/messages", origin="https://app.example.org", sec_fetch_site="cross-site"), named
    )
    for scheme in ("http", "https"):
        check_origin(
            head("POST", "/", origin=f"{scheme}://localhost:8484", sec_fetch_site="same-origin"), named
        )
    with pytest.raises(RequestError) as refused:
        check_origin(head("POST", "/", origin="http://localhost:8484", sec_fetch_site="cross-site"), named)
    assert (refused.value.error.status, refused.value.error.code) == (403, "origin_not_allowed")


def test_a_named_page_is_shown_what_it_may_send():
    page = "https://app.example.org"
    on = settings(server=ServerSettings(origins=(page,)))
    allowed = cors_preflight(
        head("OPTIONS", "/v1/messages", origin=page, access_control_request_headers="x-api-key"), on
    )
    assert allowed is not None
    assert (allowed.status, allowed.body) == (204, b"")
    assert dict(allowed.headers) == {
        "access-control-allow-origin": page,
        "access-control-allow-methods": "GET, POST, PATCH, DELETE",
        "access-control-allow-headers": "x-api-key",
        "access-control-max-age": "600",
        "vary": "origin",
    }
    plain = cors_preflight(head("OPTIONS", "/v1/messages", origin=page), on)
    assert plain is not None
    assert ("access-control-allow-headers", "content-type") in plain.headers
    for other in (
        head("POST", "/v1/messages", origin=page),
        head("OPTIONS", "/v1/messages", origin="https://evil.test"),
        head("OPTIONS", "/v1/messages"),
    ):
        assert cors_preflight(other, on) is None


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


def test_a_body_without_a_type_is_json_where_no_page_could_have_sent_it():
    signed = {"authorization": "AWS4-HMAC-SHA256 Credential=a"}
    check_body_form(head("POST", "/model/m/invoke", **signed), typed=False)
    for refused in ({}, {**signed, "content_type": "text/plain"}, {**signed, "content_type": ""}):
        with pytest.raises(RequestError):
            check_body_form(head("POST", "/model/m/invoke", **refused), typed=False)


def test_a_form_of_curl_is_json_to_clients_that_send_one():
    form = {"content_type": "application/x-www-form-urlencoded", "user_agent": "curl/7.88.1"}
    check_body_form(head("POST", "/api/generate", **form), typed=False)
    for refused in (
        {**form, "user_agent": "Mozilla/5.0"},
        {**form, "user_agent": ""},
        {**form, "origin": "null"},
        {**form, "sec_fetch_site": "same-origin"},
        {**form, "content_type": "text/plain"},
        {**form, "content_encoding": "gzip"},
    ):
        with pytest.raises(RequestError):
            check_body_form(head("POST", "/api/generate", **refused), typed=False)
    with pytest.raises(RequestError):
        check_body_form(head("POST", "/v1/messages", **form))


@rows(
    "kind",
    [
        "application/json",
        "Application/JSON ; charset=UTF-8",
        'application/json; charset="utf8"',
        "application/json; profile=x",
    ],
)
@rows("coding", [{}, {"content_encoding": " Identity"}])
def test_json_is_taken_however_it_is_spelled(kind: str, coding: dict[str, str]):
    check_body_form(head("POST", "/v1/messages", content_type=kind, **coding))


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
    assert Gatekeeper(lambda: 0.0).metrics(request, settings()) is LOCAL


def test_a_key_has_at_most_4096_characters():
    longest = "k" * 4096
    on = settings(keys=(key(longest), key(longest + "k", "other")))
    request = head("POST", "/v1/messages", x_api_key=longest)
    gatekeeper = Gatekeeper(lambda: 0.0)
    assert gatekeeper.caller(request, match(request), on).name == "team"
    assert gatekeeper.known("", [longest], on).name == "team"
    too_long = head("POST", "/v1/messages", x_api_key=longest + "k")
    with pytest.raises(RequestError):
        gatekeeper.caller(too_long, match(too_long), on)
    with pytest.raises(RequestError):
        gatekeeper.known("", [longest + "k"], on)


SECRETS = ServerSettings(admin_secret=Secret("of-the-admin"), metrics_key=Secret("of-the-scraper"))
GUESSED = settings(server=SECRETS, keys=(key("secret"),), limits=ProcessLimits(auth_failures=3))


class Guesser:
    """Offers keys to one of the four entrances."""

    def __init__(self, entrance: str) -> None:
        self.now = 1000.0
        self.gatekeeper = Gatekeeper(lambda: self.now)
        self.entrance = entrance
        self.wait: float | None = None

    def offer(self, offered: str, peer: str = "1.1.1.1", entrance: str = "") -> int:
        request = head("POST", "/v1/messages", peer=peer, x_api_key=offered)
        try:
            match entrance or self.entrance:
                case "api":
                    self.gatekeeper.caller(request, match(request), GUESSED)
                case "admin":
                    self.gatekeeper.admin(request, GUESSED)
                case "metrics":
                    self.gatekeeper.metrics(request, GUESSED)
                case _:
                    self.gatekeeper.known(peer, self.gatekeeper.secrets_in(request), GUESSED)
        except RequestError as fault:
            self.wait = fault.error.retry_after
            return fault.error.status
        return 200


ENTRANCES = {"api": "secret", "admin": "of-the-admin", "metrics": "of-the-scraper", "inspector": "secret"}


@pytest.mark.parametrize("entrance", ENTRANCES)
def test_guessing_is_slowed_down_for_one_address_and_one_entrance_only(entrance: str):
    """FAULTS 89"""
    guesser = Guesser(entrance)
    assert [guesser.offer("wrong") for _ in range(3)] == [401, 401, 401]
    guesser.now += 20
    assert [guesser.offer("wrong"), guesser.offer("wrong")] == [429, 429]
    assert guesser.wait == 40
    assert guesser.offer("wrong", "2.2.2.2") == 401
    assert guesser.offer(ENTRANCES[entrance]) == 200
    for other in ENTRANCES.keys() - {entrance}:
        assert guesser.offer("wrong", entrance=other) == 401
    guesser.now += 40
    assert [guesser.offer("wrong") for _ in range(4)] == [401, 401, 401, 429]
    assert guesser.wait == 60


def test_of_the_guessers_only_the_last_are_known(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(callers, "_MAX_PEERS", 5)
    guesser = Guesser("api")
    assert [guesser.offer("wrong") for _ in range(4)] == [401, 401, 401, 429]
    for number in range(4):
        guesser.offer("wrong", str(number))
    assert guesser.offer("wrong") == 429
    for number in range(5):
        guesser.offer("wrong", str(number))
    assert guesser.offer("wrong") == 401


def test_the_admin_secret_beside_a_key_is_checked_too():
    gatekeeper = Gatekeeper(lambda: 0.0)
    request = head("POST", "/v1/messages", x_api_key="secret", x_wireglot_admin="of-the-admin")
    assert gatekeeper.caller(request, match(request), GUESSED).name == "team"
    assert gatekeeper.secrets_in(request) == ["of-the-admin", "secret"]
    assert gatekeeper.known("", gatekeeper.secrets_in(request), GUESSED) is ADMIN
    wrong = head("POST", "/v1/messages", x_api_key="secret", x_wireglot_admin="secret")
    with pytest.raises(RequestError) as refused:
        gatekeeper.caller(wrong, match(wrong), GUESSED)
    assert refused.value.error.status == 401


@rows(
    ("models", "model", "may"),
    [
        ((), "anything", True),
        (("gpt-5",), "gpt-5", True),
        (("gpt-5",), "gpt-5.5", False),
        (("kimi-*", "gpt-5"), "kimi-k3", True),
        (("*",), "a/b", True),
        (("a[b]?*",), "a[b]?c", True),
        (("a[b]?*",), "abxc", False),
        (("GPT-5",), "gpt-5", False),
    ],
)
def test_a_key_is_for_the_models_that_it_names(models: tuple[str, ...], model: str, may: bool):
    assert may_ask(ClientKey("team", "", models=models), model) is may
    assert may_ask(None, model)
