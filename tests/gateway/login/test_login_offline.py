"""Signing in at a gateway without sockets: every page, form and error."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlencode

import pytest
from msgspec.structs import replace

from tests.gateway.kit import head
from tests.gateway.offline import Got, Offline, Said
from tests.tiers import rows
from wireglot.gateway.errors import RequestError
from wireglot.gateway.login import pages
from wireglot.gateway.login.device_codes import TooMany
from wireglot.gateway.login.oidc import ProviderDown
from wireglot.gateway.login.replies import BUSY, OAuthError, base_url, form_fields, is_same_site, retry_after
from wireglot.gateway.login.tokens import Person, SignInRefused
from wireglot.gateway.settings import LoginSettings
from wireglot.stores import StoreDown

KEY, ADMIN = "wg-ada-key-0123456789", "an-admin-secret-0123456789"
FORM = "application/x-www-form-urlencoded"
DEVICE_GRANT = "urn:ietf:params:oauth:grant-type:device_code"
BASE = "http://localhost:8484"
EXPIRED = "This code is not known, was used, or has expired. Start again in your application."
PAGE_HEADERS = {
    "content-type": "text/html; charset=utf-8",
    "cache-control": "no-store",
    "pragma": "no-cache",
    "referrer-policy": "same-origin",
    "content-security-policy": (
        "default-src 'none'; style-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
}


class Door:
    """A gateway that people sign in to, and one browser."""

    def __init__(self, offline: Offline) -> None:
        self.offline = offline
        inside: Any = offline.gateway
        self.pages: Any = inside._parts.pages.login
        self.notes: list[tuple[str, str, dict[str, Any]]] = []
        protocol = self.pages._protocol
        for noting in (protocol, protocol._tokens, self.pages._approval, self.pages._at_provider):
            noting._note = self._note
        self.cookie = ""
        self.csrf = ""

    def _note(self, level: str, event: str, **fields: Any) -> None:
        self.notes.append((level, event, fields))

    def form(self, path: str, **fields: str) -> Got:
        return self.offline.ask(path, urlencode(fields).encode(), content_type=FORM)

    def get(self, path: str, **headers: str) -> Got:
        return self._kept(self.offline.ask(path, b"", "GET", cookie=self.cookie, **headers))

    def post(self, **fields: str) -> Got:
        body = urlencode({"csrf": self.csrf, **fields}).encode()
        return self._kept(self.offline.ask("/device", body, content_type=FORM, cookie=self.cookie))

    def _kept(self, got: Got) -> Got:
        if "set-cookie" in got.headers:
            self.cookie = got.headers["set-cookie"].partition(";")[0]
        if (found := re.search(rb'name="csrf" value="([0-9a-f]+)"', got.body)) is not None:
            self.csrf = found[1].decode()
        return got

    def begin(self, **fields: str) -> dict[str, Any]:
        got = self.form("/oauth/device_authorization", **fields)
        assert got.status == 200, got.body
        document: dict[str, Any] = got.json
        return document

    def enter(self, user_code: str) -> Got:
        self.get("/device")
        return self.post(action="code", user_code=user_code)

    def poll(self, device_code: str) -> Got:
        return self.form("/oauth/token", grant_type=DEVICE_GRANT, device_code=device_code)


def opened(**tables: Any) -> Offline:
    digest = hashlib.sha256(KEY.encode()).hexdigest()
    given = {
        "providers": {"mine": {"dialect": "openai-chat", "base_url": "https://h.example/v1"}},
        "server": {"log": "off", "admin_secret": ADMIN},
        "keys": {"ada": f"sha256:{digest}"},
        "login": {},
        "groups": {"team": {}},
        **tables,
    }
    return Offline(**given)


@pytest.fixture
def door() -> Iterator[Door]:
    with opened() as offline:
        yield Door(offline)


def text(got: Got) -> str:
    return got.body.decode()


# The protocol.


def test_metadata_and_codes(door: Door) -> None:
    got = door.offline.ask("/.well-known/oauth-authorization-server", b"", "GET")
    assert got.json == {
        "issuer": BASE,
        "device_authorization_endpoint": f"{BASE}/oauth/device_authorization",
        "token_endpoint": f"{BASE}/oauth/token",
        "revocation_endpoint": f"{BASE}/oauth/revoke",
        "grant_types_supported": [DEVICE_GRANT, "refresh_token"],
        "response_types_supported": [],
        "token_endpoint_auth_methods_supported": ["none"],
        "revocation_endpoint_auth_methods_supported": ["none"],
    }
    assert got.headers["cache-control"] == "no-store"
    got = door.form("/oauth/device_authorization", surface="terminal")
    document = got.json
    code = document["user_code"]
    assert len(document.pop("device_code")) == 43
    assert re.fullmatch(r"[BCDFGHJKLMNPQRSTVWXZ]{4}-[BCDFGHJKLMNPQRSTVWXZ]{4}", code)
    assert document == {
        "user_code": code,
        "verification_uri": f"{BASE}/device",
        "verification_uri_complete": f"{BASE}/device?user_code={code}",
        "expires_in": 600,
        "interval": 5,
    }
    assert (got.headers["cache-control"], got.headers["pragma"]) == ("no-store", "no-cache")
    with opened(login={"notice": "Only for work."}) as offline:
        assert Door(offline).begin()["login_notice"] == "Only for work."


@rows(
    ("surface", "shown"),
    [
        ("terminal", "terminal"),
        ("x" * 64, "x" * 64),
        ("x" * 65, "not named"),
        ("a\x07", "not named"),
        ("", "not named"),
    ],
)
def test_the_application_is_shown_to_the_person(door: Door, surface: str, shown: str) -> None:
    page = text(door.enter(door.begin(surface=surface)["user_code"]))
    assert f"<dt>Application</dt><dd>{shown}</dd>" in page


@rows(
    ("path", "fields", "status", "error"),
    [
        ("/oauth/token", {}, 400, "unsupported_grant_type"),
        ("/oauth/token", {"grant_type": "password"}, 400, "unsupported_grant_type"),
        ("/oauth/token", {"grant_type": DEVICE_GRANT}, 400, "invalid_request: device_code is missing"),
        ("/oauth/token", {"grant_type": DEVICE_GRANT, "device_code": "x"}, 400, "expired_token"),
        ("/oauth/token", {"grant_type": "refresh_token"}, 400, "invalid_request: refresh_token is missing"),
        (
            "/oauth/token",
            {"grant_type": "refresh_token", "refresh_token": "x"},
            401,
            "invalid_grant: sign in again",
        ),
        ("/oauth/revoke", {}, 400, "invalid_request: token is missing"),
    ],
)
def test_errors_of_the_protocol(door: Door, path: str, fields: Any, status: int, error: str) -> None:
    got = door.form(path, **fields)
    code, _, description = error.partition(": ")
    expected = {"error": code, **({"error_description": description} if description else {})}
    assert (got.status, got.json) == (status, expected)
    assert (got.headers["cache-control"], "retry-after" in got.headers) == ("no-store", False)


@rows(
    ("problem", "status", "document", "wait"),
    [
        (OAuthError("x", "y", 418, 7.2), 418, {"error": "x", "error_description": "y"}, "7"),
        (TooMany(90.0), 429, {"error": "slow_down", "error_description": BUSY}, "90"),
        (
            StoreDown("away"),
            503,
            {
                "error": "temporarily_unavailable",
                "error_description": "the gateway's store is not available",
            },
            "2",
        ),
        (
            ProviderDown("away"),
            503,
            {
                "error": "temporarily_unavailable",
                "error_description": "the identity provider cannot be reached",
            },
            "2",
        ),
        (
            RequestError("shed", "later"),
            503,
            {"error": "temporarily_unavailable", "error_description": "later"},
            "2",
        ),
    ],
    ids=["oauth", "many", "store", "provider", "request"],
)
def test_what_fails_is_an_error_of_the_protocol(
    door: Door, problem: Exception, status: int, document: Any, wait: str
) -> None:
    async def failing(page: Any, login: Any) -> None:
        raise problem

    door.notes.clear()
    door.pages._protocol._handlers["login.revoke"] = failing
    got = door.form("/oauth/revoke", token="x")
    assert (got.status, got.json, got.headers["retry-after"]) == (status, document, wait)
    said = [("error", "identity provider not usable", {"detail": "away"})]
    assert door.notes == (said if isinstance(problem, ProviderDown) else [])


@rows(
    ("problem", "status", "title", "said", "wait"),
    [
        (TooMany(90.4), 429, "Too many attempts", BUSY, "90"),
        (StoreDown("away"), 503, "Not available", pages._LATER, None),
        (RequestError("shed", "later"), 503, "Not possible", "later", None),
        (RequestError("bad", "wrong"), 400, "Not possible", "wrong", None),
    ],
    ids=["many", "store", "request", "bad"],
)
def test_what_fails_is_a_page(
    door: Door, problem: Exception, status: int, title: str, said: str, wait: str | None
) -> None:
    async def failing(page: Any, login: Any) -> None:
        raise problem

    door.pages._pages["login.device"] = failing
    got = door.get("/device")
    assert got.status == status
    assert f"<h1>{title}</h1><p>{said}</p>" in text(got)
    if wait is not None:
        assert got.headers["retry-after"] == wait
    assert {name: got.headers[name] for name in PAGE_HEADERS} == PAGE_HEADERS


@rows(("seconds", "header"), [(0.0, "1"), (0.4, "1"), (1.4, "1"), (2.6, "3"), (600.0, "600")])
def test_seconds_to_wait(seconds: float, header: str) -> None:
    assert retry_after(seconds) == ("retry-after", header)


@rows(
    ("workers", "shared", "url", "waits"),
    [
        (1, "", "memory:", False),
        (1, "", "sqlite:x", False),
        (2, "", "memory:", True),
        (1, "redis://h", "memory:", True),
        (1, "", "postgres://h", True),
    ],
)
def test_a_new_token_is_known_everywhere_before_it_is_sent(
    door: Door, workers: int, shared: str, url: str, waits: bool
) -> None:
    store = SimpleNamespace(shared=SimpleNamespace(value=shared), url=SimpleNamespace(value=url))
    settings = SimpleNamespace(store=store, server=SimpleNamespace(workers=workers))
    before = door.offline.seconds
    door.offline.call(door.pages._protocol._settled(settings))
    look = door.offline.state.pace.keys_look_seconds
    assert round(door.offline.seconds - before, 6) == (round(1.2 * look + 0.3, 6) if waits else 0.0)


# A device signs in.


def test_tokens_of_a_device(door: Door) -> None:
    begun = door.begin(surface="terminal")
    assert door.poll(begun["device_code"]).json == {"error": "authorization_pending"}
    again = door.poll(begun["device_code"])
    assert (again.status, again.json) == (429, {"error": "slow_down"})
    page = door.enter(begun["user_code"])
    assert page.status == 200
    assert "<h1>Approve this device?</h1>" in text(page)
    approved = door.post(action="key", key=f" {KEY} ")
    assert "<h1>Approved</h1><p>Your application is signed in." in text(approved)
    assert "Max-Age=0" in approved.headers["set-cookie"]
    got = door.poll(begun["device_code"])
    assert got.status == 200
    assert (got.json["token_type"], got.json["expires_in"], "email" in got.json) == ("Bearer", 3600, False)
    assert sorted(got.json) == ["access_token", "expires_in", "refresh_token", "token_type"]
    assert re.fullmatch(r"wgr-[0-9a-f]{12}\.[\w-]{43}\.[\w-]{43}", got.json["refresh_token"])
    (approval, signed_in) = door.notes
    assert approval == (
        "info",
        "sign-in approved",
        {"caller": "ada", "surface": "terminal", "peer": "127.0.0.1"},
    )
    assert signed_in[:2] == ("info", "device signed in")
    assert re.fullmatch("login-[0-9a-f]{12}", signed_in[2].pop("name"))
    assert signed_in[2] == {"caller": "ada", "surface": "terminal", "peer": "127.0.0.1"}
    renewed = door.form("/oauth/token", grant_type="refresh_token", refresh_token=got.json["refresh_token"])
    assert renewed.status == 200
    door.notes.clear()
    assert door.form("/oauth/revoke", token=renewed.json["access_token"]).json == {}
    ((level, event, fields),) = door.notes
    assert (level, event, sorted(fields)) == ("info", "device signed out", ["name", "peer"])
    refused = door.form(
        "/oauth/token", grant_type="refresh_token", refresh_token=renewed.json["refresh_token"]
    )
    assert refused.status == 401


def test_a_person_denies(door: Door) -> None:
    begun = door.begin(surface="terminal")
    door.enter(begun["user_code"])
    denied = door.post(action="deny")
    assert "<h1>Denied</h1><p>The application gets no access." in text(denied)
    assert "Max-Age=0" in denied.headers["set-cookie"]
    assert door.notes == [("info", "sign-in denied", {"peer": "127.0.0.1", "surface": "terminal"})]
    got = door.poll(begun["device_code"])
    assert (got.status, got.json) == (400, {"error": "access_denied"})


def test_a_code_is_decided_once(door: Door) -> None:
    begun = door.begin()
    door.enter(begun["user_code"])
    cookie, csrf = door.cookie, door.csrf
    assert door.post(action="key", key=KEY).status == 200
    door.cookie, door.csrf = cookie, csrf
    late = door.post(action="key", key=KEY)
    assert (late.status, EXPIRED in text(late)) == (400, True)
    assert door.enter(begun["user_code"]).status == 400


@rows(
    ("approval", "secret", "status", "said"),
    [
        (["key"], "", 400, "Enter a key."),
        (["key"], "  ", 400, "Enter a key."),
        (["key"], "wg-unknown-key-0123456789", 401, 'class="problem"'),
        (["key"], ADMIN, 400, "does not accept this kind of key here"),
        (["key"], KEY, 200, "<h1>Approved</h1>"),
        (["admin"], KEY, 400, "does not accept this kind of key here"),
        (["admin"], ADMIN, 200, "For whom is this device?"),
        (["key", "admin"], KEY, 200, "<h1>Approved</h1>"),
        (["key", "admin"], ADMIN, 200, "<option></option><option>team</option>"),
    ],
)
def test_which_secret_approves(approval: list[str], secret: str, status: int, said: str) -> None:
    with opened(login={"approval": approval}) as offline:
        door = Door(offline)
        door.enter(door.begin()["user_code"])
        got = door.post(action="key", key=secret)
        assert (got.status, said in text(got)) == (status, True), text(got)
        noted = [(level, event) for level, event, _ in door.notes]
        if status != 200:
            assert noted == [("warn", "sign-in refused")]
            assert 'name="key"' in text(got), "the form again"
            assert door.notes[0][2]["peer"] == "127.0.0.1"


def test_a_token_of_another_sign_in_approves_nothing(door: Door) -> None:
    begun = door.begin()
    door.enter(begun["user_code"])
    door.post(action="key", key=KEY)
    token = door.poll(begun["device_code"]).json["access_token"]
    door.enter(door.begin()["user_code"])
    got = door.post(action="key", key=token)
    assert (got.status, "a token of another sign-in" in text(got)) == (400, True)


@rows(
    ("fields", "status", "said", "row"),
    [
        ({"name": "ada"}, 200, "Approved", None),
        ({"name": " bob@example.com ", "group": "team"}, 200, "Approved", ("team", "bob@example.com")),
        ({"name": "laptop"}, 200, "Approved", ("", "")),
        ({"name": "a\x07"}, 400, "name: expected", None),
        ({"name": ""}, 400, "name: expected", None),
        ({"name": "laptop", "group": "nothing"}, 400, "nothing", None),
    ],
)
def test_the_administrator_names_the_key(fields: Any, status: int, said: str, row: Any) -> None:
    with opened(login={"approval": ["admin"]}) as offline:
        door = Door(offline)
        begun = door.begin()
        door.enter(begun["user_code"])
        door.post(action="key", key=ADMIN)
        got = door.post(action="assign", **fields)
        assert (got.status, said in text(got)) == (status, True), text(got)
        name = fields["name"].strip()
        stored = offline.call(offline.state.engine.keys.get(name)) if name else None
        assert (stored and (stored.group, stored.owner)) == row
        if row is not None:
            assert door.notes[0] == ("info", "key changed", {"name": name, "change": "create"})
        if status == 200:
            tokens = door.poll(begun["device_code"])
            assert tokens.status == 200
            assert tokens.json.get("email") == (name if "@" in name else None)
            again = door.begin()
            door.enter(again["user_code"])
            door.post(action="key", key=ADMIN)
            assert door.post(action="assign", name=name).status == 200, "the same key again"
        else:
            assert 'name="name"' in text(got), "the form again"


def test_no_key_that_is_revoked_or_a_sign_in_is_given(door: Door) -> None:
    with opened(login={"approval": ["admin", "key"]}) as offline:
        door = Door(offline)
        keys = offline.state.engine.keys
        begun = door.begin()
        door.enter(begun["user_code"])
        door.post(action="key", key=KEY)
        door.poll(begun["device_code"])
        (sign_in,) = [each.name for each in offline.state.keys.sign_ins_of("ada")]
        door.enter(door.begin()["user_code"])
        door.post(action="key", key=ADMIN)
        got = door.post(action="assign", name=sign_in)
        assert (got.status, "was revoked, or is a sign-in" in text(got)) == (400, True)
        assert offline.call(keys.get(sign_in)) is not None


@rows("action", ["approve", "assign"])
def test_nobody_approves_without_signing_in(door: Door, action: str) -> None:
    door.enter(door.begin()["user_code"])
    got = door.post(action=action, name="ada")
    assert (got.status, "Sign in first." in text(got)) == (400, True)


@rows("action", ["", "nothing"])
def test_an_unknown_action_starts_again(door: Door, action: str) -> None:
    door.enter(door.begin()["user_code"])
    got = door.post(action=action)
    assert (got.status, EXPIRED in text(got)) == (400, True)


def test_a_wrong_code_is_asked_for_again(door: Door) -> None:
    got = door.enter("BCDF-GHJK")
    assert (got.status, EXPIRED in text(got)) == (400, True)
    assert 'name="user_code"' in text(got)
    got = door.get("/device?user_code=bcdf%20ghjk")
    assert (got.status, 'value="BCDF-GHJK"' in text(got)) == (200, True)
    assert 'value=""' in text(door.get("/device"))


def test_a_form_without_its_session_decides_nothing(door: Door) -> None:
    door.enter(door.begin()["user_code"])
    csrf, door.csrf = door.csrf, "0" * 64
    got = door.post(action="key", key=KEY)
    assert (got.status, "This page has expired" in text(got)) == (403, True)
    door.cookie, door.csrf = "", csrf
    assert door.post(action="key", key=KEY).status == 403


def test_the_style_is_cached(door: Door) -> None:
    got = door.get("/device/page.css")
    assert (got.status, got.headers["content-type"]) == (200, "text/css; charset=utf-8")
    assert got.headers["cache-control"] == "public, max-age=3600"
    assert got.headers["x-content-type-options"] == "nosniff"
    assert got.body.startswith(b":root{color-scheme")
    assert got.record is None or got.record.status == 200


# Addresses and forms.


@rows(
    ("host", "more", "base"),
    [
        ("localhost:8484", {}, "http://localhost:8484"),
        ("127.0.0.1:1", {}, "http://127.0.0.1:1"),
        ("[::1]:8484", {}, "http://[::1]:8484"),
        ("gateway.example", {}, None),
        ("localhost/x", {}, None),
        ("", {}, None),
        ("localhost:" + "8" * 60, {}, None),
        ("localhost:8484", {"x_forwarded_for": "192.0.2.1"}, None),
    ],
)
def test_the_address_of_the_gateway(host: str, more: Any, base: str | None) -> None:
    made = head("GET", "/device", host=host, **more)
    assert base_url(made, LoginSettings(public_url="https://g.example")) == "https://g.example"
    if base is not None:
        assert base_url(made, LoginSettings()) == base
        return
    with pytest.raises(RequestError, match=r"login\.public_url") as raised:
        base_url(made, LoginSettings())
    assert (raised.value.error.kind, raised.value.error.code) == ("not_found", "unknown_url")


@rows(
    ("headers", "same"),
    [
        ({}, True),
        ({"origin": BASE}, True),
        ({"origin": "http://other.example"}, False),
        ({"sec_fetch_site": "same-origin", "origin": "http://other.example"}, True),
        ({"sec_fetch_site": "same-site", "origin": BASE}, False),
        ({"sec_fetch_site": "none"}, False),
    ],
)
def test_whether_a_form_is_ours(headers: Any, same: bool) -> None:
    assert is_same_site(head("POST", "/device", **headers), BASE) is same


def _page(body: bytes, verb: str = "login.token", **headers: str) -> Any:
    asked = SimpleNamespace(verb=verb)
    return SimpleNamespace(head=head("POST", "/x", **headers), body=body, asked=asked)


@rows(
    ("kind", "body", "fields"),
    [
        (FORM, b"a=1&b=2", {"a": "1", "b": "2"}),
        (f"{FORM.upper()} ; charset=utf-8", b"a=1", {"a": "1"}),
        (FORM, b"a=1&a=2", {"a": "1"}),
        (FORM, b"a=", {"a": ""}),
        ("", b"", {}),
        ("", b"a=1", None),
        ("application/json", b"", None),
        (FORM, b"a=%FF", None),
        (FORM, b"\xff", None),
        (
            FORM,
            b"&".join(b"a%d=" % number for number in range(64)),
            {f"a{number}": "" for number in range(64)},
        ),
        (FORM, b"&".join(b"a%d=" % number for number in range(65)), None),
    ],
)
def test_fields_of_a_form(kind: str, body: bytes, fields: Any) -> None:
    headers = {"content_type": kind} if kind else {}
    if fields is not None:
        assert form_fields(_page(body, **headers)) == fields
        return
    with pytest.raises(OAuthError) as refused:
        form_fields(_page(body, **headers))
    assert (refused.value.error, refused.value.status) == ("invalid_request", 400)
    with pytest.raises(RequestError, match="expected a form") as raised:
        form_fields(_page(body, "login.decide", **headers))
    assert raised.value.error.code == "invalid_value"


# The identity provider.

ISSUER = "https://idp.example"
OIDC = {"issuer": ISSUER, "client_id": "gateway", "public_url": "https://g.example"}
METADATA = {
    "issuer": ISSUER,
    "authorization_endpoint": f"{ISSUER}/authorize",
    "token_endpoint": f"{ISSUER}/token",
    "jwks_uri": f"{ISSUER}/keys",
}


def test_the_way_to_the_identity_provider_and_back() -> None:
    with opened(login=OIDC) as offline:
        door = Door(offline)
        offline.upstream.say(Said(body=METADATA))
        for path in ("/device/sign-in", "/device/callback"):
            got = door.get(path)
            refused = "This sign-in was begun in another browser or has expired: start again."
            if path == "/device/callback":
                assert (got.status, refused in text(got)) == (403, True)
                assert '<a href="/device">Start again</a>' in text(got)
                assert door.notes.pop()[:2] == ("warn", "sign-in refused")
            else:
                assert (got.status, got.headers["location"]) == (303, "/device")
        page = text(door.enter(door.begin()["user_code"]))
        assert '<a class="main" href="/device/sign-in">Sign in with idp.example</a>' in page
        away = door.get("/device/sign-in")
        assert away.status == 303
        assert away.headers["location"].startswith(f"{ISSUER}/authorize?")
        assert "redirect_uri=https%3A%2F%2Fg.example%2Fdevice%2Fcallback" in away.headers["location"]
        assert away.headers["set-cookie"].startswith("__Host-wireglot-login=")
        back = door.get("/device/callback?state=wrong&state=more&code=c")
        assert (back.status, "begun in another window" in text(back)) == (403, True)
        assert "Max-Age=0" in back.headers["set-cookie"]


def test_a_provider_that_is_down_is_a_page() -> None:
    with opened(login=OIDC) as offline:
        door = Door(offline)
        door.enter(door.begin()["user_code"])
        offline.upstream.say(Said(500, b"{}"))
        got = door.get("/device/sign-in")
        assert (got.status, "<h1>Not available</h1>" in text(got)) == (502, True)
        assert '<a href="/device">Start again</a>' in text(got)
        assert door.notes == [("error", "identity provider not usable", {"detail": "discovery: status 500"})]


@rows(
    ("login", "server", "away"),
    [
        (OIDC, {}, True),
        (OIDC, {"inspector": "off"}, False),
        ({"public_url": "https://g.example"}, {}, False),
    ],
)
def test_the_same_sign_in_for_the_inspector(login: Any, server: Any, away: bool) -> None:
    with opened(login=login, server={"log": "off", "admin_secret": ADMIN, **server}) as offline:
        door = Door(offline)
        offline.upstream.say(Said(body=METADATA))
        got = door.get("/login")
        assert got.status == 303
        assert got.headers["location"].startswith(ISSUER if away else "/inspector")


class People:
    """In the place of the identity provider's answers."""

    def __init__(self, door: Door, owner: str = "Eve@Example.com", refresh_token: str = "") -> None:
        self.asked: list[Any] = []
        self.problem: Exception | None = None
        self._person = Person(f"{ISSUER}\neve", owner, "team")
        self._refresh_token = refresh_token
        door.pages._at_provider._provider.person = self.person

    async def person(self, login: Any, attempt: Any, query: Any, back: str) -> tuple[Person, str]:
        self.asked.append((attempt, query, back))
        if self.problem is not None:
            raise self.problem
        return self._person, self._refresh_token


def away(door: Door, path: str = "/device/sign-in") -> None:
    door.offline.upstream.say(Said(body=METADATA))
    assert door.get(path).status == 303


def test_a_person_signs_in_and_approves() -> None:
    with opened(login={**OIDC, "scopes": ["openid", "offline_access"]}) as offline:
        door = Door(offline)
        people = People(door, refresh_token="of-the-provider")
        begun = door.begin(surface="terminal")
        door.enter(begun["user_code"])
        assert "Sign in first." in text(door.post(action="approve"))
        away(door)
        back = door.get("/device/callback?code=c&state=s&code=d")
        assert (back.status, back.headers["location"]) == (303, "/device")
        ((attempt, query, url),) = people.asked
        assert (query, url) == ({"code": "c", "state": "s"}, "https://g.example/device/callback")
        assert attempt is not None
        page = door.get("/device")
        assert "You are signed in as <strong>Eve@Example.com</strong>" in text(page)
        assert 'value="approve"' in text(page)
        other = door.get("/device?user_code=BCDF-GHJK")
        assert 'name="user_code" value="BCDF-GHJK"' in text(other), "a code in the link begins again"
    with opened(login={**OIDC, "scopes": ["openid", "offline_access"]}) as offline:
        door = Door(offline)
        People(door, refresh_token="of-the-provider")
        begun = door.begin(surface="terminal")
        door.enter(begun["user_code"])
        away(door)
        door.get("/device/callback?code=c&state=s")
        door.get("/device")
        assert "<h1>Approved</h1>" in text(door.post(action="approve"))
        tokens = door.poll(begun["device_code"])
        assert (tokens.status, tokens.json["email"]) == (200, "Eve@Example.com")
        (row,) = offline.state.keys.sign_ins_of("eve@example.com")
        assert row.sign_in is not None
        assert len(row.sign_in.grant) == 32, "its refresh token is kept"


def test_a_key_without_an_owner_is_shown_by_its_name() -> None:
    with opened(login=OIDC) as offline:
        door = Door(offline)
        digest = f"sha256:{hashlib.sha256(KEY.encode()).hexdigest()}"
        known = next(key.digest for key in offline.settings.keys if digest.endswith(key.digest))
        begun = door.begin()
        code = begun["user_code"].replace("-", "")
        session = replace(door.pages._approval._browsers.begin(), user_code=code, parent=known)
        door.cookie = door.pages._approval._browsers.cookie(session, "https://g.example")[1].partition(";")[0]
        assert "You are signed in as <strong>ada</strong>" in text(door.get("/device"))


@rows(
    ("problem", "status", "title", "level"),
    [
        (SignInRefused("you are in no group"), 403, "Not signed in", "warn"),
        (ProviderDown("keys: status 500"), 502, "Not available", "error"),
    ],
    ids=["refused", "down"],
)
def test_a_person_who_is_not_signed_in(problem: Exception, status: int, title: str, level: str) -> None:
    with opened(login=OIDC) as offline:
        door = Door(offline)
        people = People(door)
        people.problem = problem
        door.enter(door.begin()["user_code"])
        away(door)
        got = door.get("/device/callback?code=c&state=s")
        assert (got.status, f"<h1>{title}</h1>" in text(got)) == (status, True)
        assert '<a href="/device">Start again</a>' in text(got)
        assert [note[0] for note in door.notes] == [level]
        if status == 403:
            assert "<p>You are in no group.</p>" in text(got)


def test_a_person_looks_at_their_own_exchanges() -> None:
    with opened(login=OIDC) as offline:
        door = Door(offline)
        People(door)
        away(door, "/login")
        got = door.get("/device/callback?code=c&state=s")
        assert (got.status, got.headers["location"]) == (303, "/inspector")
        assert door.notes[-1] == (
            "info",
            "inspector sign-in",
            {"peer": "127.0.0.1", "caller": "eve@example.com"},
        )
        assert "Max-Age=0" in got.headers["set-cookie"], "its own session is over"


def test_login_is_on_where_keys_are_needed(door: Door) -> None:
    settings = door.offline.settings
    assert door.pages.is_on(settings)
    with opened(login=None) as offline:
        assert not Door(offline).pages.is_on(offline.settings)
