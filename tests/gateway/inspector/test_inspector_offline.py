"""The inspector without sockets: sessions, sign-in, files, and what is copied into clients."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import re
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.gateway.kit import head
from tests.gateway.offline import Got, Offline
from tests.tiers import rows
from wireglot import __version__
from wireglot.gateway.entry.callers import ADMIN as ADMIN_CALLER
from wireglot.gateway.entry.callers import Caller
from wireglot.gateway.errors import RequestError
from wireglot.gateway.inspector import access, dashboard, setup_page
from wireglot.gateway.inspector.access import (
    InspectorSession,
    InspectorSessions,
    check_form,
    check_site,
    cookie_name,
    cookie_pairs,
    is_behind_tls,
    secured,
    set_cookie,
)
from wireglot.gateway.inspector.inspector import Site, _is_known, _provider, _takes_gzip, max_body_bytes
from wireglot.gateway.request.collected_reply import CollectedReply
from wireglot.gateway.request.viewer import Viewer
from wireglot.gateway.settings import ClientKey, LoginSettings
from wireglot.gateway.trace.peers import PeerCommand
from wireglot.http.application import Head
from wireglot_core.wire.json import encode

KEY, ADMIN = "wg-ada-key-0123456789", "an-admin-secret-0123456789"
MINE = {"mine": {"dialect": "openai-chat", "base_url": "https://h.example:8443/v1"}}


def opened(**tables: Any) -> Offline:
    return Offline(**{"providers": MINE, **tables})


def locked(**tables: Any) -> Offline:
    digest = hashlib.sha256(KEY.encode()).hexdigest()
    server = {"log": "off", "admin_secret": ADMIN, "secret": "s" * 40}
    return opened(**{"server": server, "keys": {"ada": f"sha256:{digest}"}, **tables})


@pytest.fixture
def offline() -> Iterator[Offline]:
    with locked() as made:
        yield made


def ask(offline: Offline, path: str, method: str = "GET", document: Any = None, **headers: str) -> Got:
    body = b"" if document is None else encode(document)
    return offline.ask(f"/inspector/api/{path}", body, method, **headers)


# Sessions.


def _caller(name: str) -> Caller:
    return Caller(name, ClientKey(name, hashlib.sha256(name.encode()).hexdigest()))


def sessions(now: float = 1000.0) -> tuple[InspectorSessions, list[float]]:
    clock = [now]
    return InspectorSessions(lambda: clock[0]), clock


def test_a_session_lasts_eight_hours_and_ends_before_where_that_is_said(offline: Offline) -> None:
    made, clock = sessions()
    session, token = made.begin(ADMIN_CALLER, offline.settings)
    assert (session.by, session.ends, len(session.nonce)) == ("admin", 1000 + 8 * 3600, 32)
    cookies = f"other=1; wireglot-inspector-8484={token}"
    host = "localhost:8484"
    assert made.read(cookies, host, offline.settings) == session
    assert made.read(cookies, "localhost:1", offline.settings) is None
    clock[0] = session.ends - 1
    assert made.read(cookies, host, offline.settings) == session
    clock[0] = session.ends
    assert made.read(cookies, host, offline.settings) is None
    clock[0] = 1000.0
    made.obey(PeerCommand(1000.0, ended=session.nonce, ends=session.ends), is_new=True)
    assert made.read(cookies, host, offline.settings) is None, "an older version does not say whose it is"
    assert made.standing() == [PeerCommand(1000.0, ended=session.nonce, ends=session.ends)]
    clock[0] = session.ends
    assert made.standing() == []


def test_four_cookies_are_tried_and_no_long_or_odd_one(offline: Offline) -> None:
    made, _ = sessions()
    session, token = made.begin(ADMIN_CALLER, offline.settings)
    wrong, right = "wireglot-inspector=x", f"wireglot-inspector={token}"
    assert made.read("; ".join([wrong] * 3 + [right]), "h", offline.settings) == session
    assert made.read("; ".join([wrong] * 4 + [right]), "h", offline.settings) is None
    for odd in ("A" * 1025, "é" * 8, token[:-3], ""):
        assert made.read(f"wireglot-inspector={odd}", "h", offline.settings) is None


def test_a_flood_of_sign_outs_makes_no_ended_session_valid_again(
    offline: Offline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(access, "_MAX_ENDED", 100)
    made, clock = sessions()
    settings, other = offline.settings, InspectorSessions(lambda: clock[0])

    def read(token: str, by: InspectorSessions = made) -> InspectorSession | None:
        return by.read(f"wireglot-inspector={token}", "h", settings)

    flood = [made.begin(_caller("mallory"), settings) for _ in range(1000)]
    stolen, stolen_token = made.begin(ADMIN_CALLER, settings)
    _, kept = made.begin(ADMIN_CALLER, settings)
    _, of_another = made.begin(_caller("ada"), settings)
    made.obey(made.end(stolen), is_new=True)
    for session, _ in flood:
        made.obey(made.end(session), is_new=True)
        assert len(made.standing()) <= 100, "what is held is bounded"
    clock[0] += 1
    for known in made.standing():
        other.obey(known, is_new=False)
    for process in (made, other):
        assert read(stolen_token, process) is None
        assert [read(token, process) for _, token in flood] == [None] * 1000
        assert read(kept, process) is not None, "another's flood signs nobody else out"
        assert read(of_another, process) is not None
    assert read(made.begin(_caller("mallory"), settings)[1]) is not None, "the key may sign in again"
    clock[0] = stolen.ends + 10
    assert made.standing() == []


def test_of_more_callers_than_are_known_all_are_signed_out(
    offline: Offline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(access, "_MAX_ENDED", 20)
    made, _ = sessions()
    ended = [made.begin(_caller(f"key{number}"), offline.settings) for number in range(50)]
    _, kept = made.begin(ADMIN_CALLER, offline.settings)
    for session, _ in ended:
        made.obey(made.end(session), is_new=True)
        assert len(made.standing()) <= 20
    tokens = [token for _, token in ended] + [kept]
    found = [made.read(f"wireglot-inspector={token}", "h", offline.settings) for token in tokens]
    assert found == [None] * 51
    _, token = made.begin(ADMIN_CALLER, offline.settings)
    assert made.read(f"wireglot-inspector={token}", "h", offline.settings) is not None


def test_a_token_of_a_form_is_bound_to_its_session(offline: Offline) -> None:
    made, _ = sessions()
    one, _ = made.begin(ADMIN_CALLER, offline.settings)
    two, _ = made.begin(ADMIN_CALLER, offline.settings)
    tokens = [made.csrf(each, offline.settings) for each in (one, two, None)]
    assert len(set(tokens)) == 3
    assert [len(token) for token in tokens] == [64] * 3
    assert made.csrf(one, offline.settings) == tokens[0]


@rows(
    ("host", "name"),
    [
        ("localhost:8484", "wireglot-inspector-8484"),
        ("gateway.example", "wireglot-inspector"),
        ("[::1]:80", "wireglot-inspector-80"),
        ("h:123456", "wireglot-inspector"),
    ],
)
def test_cookies_are_named_by_the_port(host: str, name: str) -> None:
    assert cookie_name(host) == name
    flags = "Max-Age=28800; Path=/inspector; HttpOnly; SameSite=Strict"
    assert set_cookie(host, "t", secure=False) == ("set-cookie", f"{name}=t; {flags}")
    assert set_cookie(host, "t", secure=True) == ("set-cookie", f"{name}=t; {flags}; Secure")
    assert "Max-Age=0;" in set_cookie(host, "", secure=False, seconds=0)[1]


def test_cookies_of_a_request() -> None:
    assert cookie_pairs('a=1; b="2",c=3=4;;nothing; d=') == [("a", "1"), ("b", "2"), ("c", "3=4"), ("d", "")]


# Which sites may ask.

API, PAGE = "/inspector/api/session", "/inspector/keys"


@rows(
    ("method", "path", "headers", "may"),
    [
        ("GET", API, {}, True),
        ("POST", API, {}, True),
        ("GET", API, {"origin": "http://localhost:8484"}, True),
        ("GET", API, {"origin": "https://localhost:8484"}, True),
        ("GET", API, {"origin": "http://other.example"}, False),
        ("POST", API, {"sec_fetch_site": "same-origin"}, True),
        ("GET", API, {"sec_fetch_site": "none"}, True),
        ("HEAD", API, {"sec_fetch_site": "none"}, True),
        ("POST", API, {"sec_fetch_site": "none"}, False),
        ("GET", API, {"sec_fetch_site": "cross-site", "sec_fetch_mode": "navigate"}, False),
        (
            "GET",
            "/inspector/assets/x.js",
            {"sec_fetch_site": "cross-site", "sec_fetch_mode": "navigate"},
            False,
        ),
        ("GET", PAGE, {"sec_fetch_site": "cross-site", "sec_fetch_mode": "navigate"}, True),
        ("POST", PAGE, {"sec_fetch_site": "cross-site", "sec_fetch_mode": "navigate"}, False),
        ("GET", PAGE, {"sec_fetch_site": "cross-site", "sec_fetch_mode": "no-cors"}, False),
        (
            "GET",
            PAGE,
            {"sec_fetch_site": "cross-site", "sec_fetch_mode": "navigate", "sec_fetch_dest": "iframe"},
            False,
        ),
    ],
)
def test_which_site_may_ask(method: str, path: str, headers: Any, may: bool) -> None:
    made = head(method, path, **headers)
    if may:
        check_site(made)
        return
    with pytest.raises(RequestError, match="cross-site requests to the inspector") as raised:
        check_site(made)
    assert (raised.value.error.kind, raised.value.error.code) == ("permission", "origin_not_allowed")


@rows(
    ("headers", "behind"),
    [
        ({}, False),
        ({"origin": "https://h"}, True),
        ({"origin": "http://h"}, False),
        ({"x_forwarded_proto": "HTTPS , http"}, True),
        ({"x_forwarded_proto": "http, https"}, False),
    ],
)
def test_whether_tls_is_in_front(headers: Any, behind: bool) -> None:
    assert is_behind_tls(head("GET", API, **headers)) is behind


def test_only_a_body_must_be_json() -> None:
    check_form(head("GET", API, content_length="5", content_type="text/plain"))
    check_form(head("POST", API, content_length="0", content_type="text/plain"))
    check_form(head("POST", API, content_type="text/plain"))
    with pytest.raises(RequestError):
        check_form(head("POST", API, content_length="5", content_type="text/plain"))


def test_headers_that_every_answer_has() -> None:
    assert access.SECURITY_HEADERS[:6] == [
        ("x-content-type-options", "nosniff"),
        ("x-frame-options", "DENY"),
        ("referrer-policy", "no-referrer"),
        ("cross-origin-opener-policy", "same-origin"),
        ("cross-origin-resource-policy", "same-origin"),
        ("origin-agent-cluster", "?1"),
    ]
    name, policy = access.SECURITY_HEADERS[6]
    assert name == "permissions-policy"
    off = "accelerometer camera clipboard-read display-capture geolocation gyroscope hid magnetometer microphone midi"
    off += " payment publickey-credentials-get screen-wake-lock serial usb xr-spatial-tracking"
    assert policy == ", ".join(f"{each}=()" for each in off.split())
    assert access.PAGE_CSP == (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "worker-src 'self'; font-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
        "require-trusted-types-for 'script'; trusted-types wireglot"
    )
    data = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; sandbox"
    given = [("x-frame-options", "ALLOW"), ("a", "1")]
    for path, csp in ((API, data), (PAGE, access.PAGE_CSP)):
        assert secured(path, list(given)) == [
            ("a", "1"),
            ("cache-control", "no-store"),
            *access.SECURITY_HEADERS,
            ("content-security-policy", csp),
        ]
    kept = secured(PAGE, [("cache-control", "public")])
    assert [value for name, value in kept if name == "cache-control"] == ["public"]


# Signing in.


def reported(**more: Any) -> dict[str, Any]:
    return {
        "access": "none",
        "key": "",
        "csrf": "",
        "until": None,
        "version": __version__,
        "workers": 1,
        "currency": "USD",
        "admin": True,
        "sign_in": True,
        "provider": "",
        **more,
    }


def test_a_visitor_signs_in_and_out(offline: Offline) -> None:
    notes: list[Any] = []
    inside: Any = offline.gateway
    signing = inside._parts.pages.inspector._signing["session.begin"].__self__
    signing._note = lambda level, event, **fields: notes.append((level, event, fields))
    why = "sign in with the admin secret or a client key"
    assert ask(offline, "session").json == reported(why=why)
    refused = ask(offline, "session", "POST", {"secret": "wg-wrong-key-0123456789"})
    assert refused.status == 401
    assert notes.pop()[:2] == ("warn", "inspector sign-in refused")
    for secret, name, level in ((ADMIN, "admin", "admin"), (f" {KEY} ", "ada", "key")):
        got = ask(offline, "session", "POST", {"secret": secret})
        assert notes == [("info", "inspector sign-in", {"peer": "127.0.0.1", "caller": name})]
        notes.clear()
        csrf, until = got.json["csrf"], got.json["until"]
        assert got.json == reported(access=level, csrf=csrf, until=until, key="ada" if level == "key" else "")
        assert re.fullmatch(r"wireglot-inspector-8484=[\w-]+; Max-Age=28800; .*", got.headers["set-cookie"])
        cookie = got.headers["set-cookie"].partition(";")[0]
        assert ask(offline, "session", cookie=cookie).json == got.json
        again = ask(offline, "session", "POST", {"secret": secret}, cookie=cookie)
        notes.clear()
        assert ask(offline, "session", cookie=cookie).json["access"] == "none", "one session at a time"
        cookie, csrf = again.headers["set-cookie"].partition(";")[0], again.json["csrf"]
        left = ask(offline, "session", "DELETE", cookie=cookie)
        assert (left.status, left.json["error"]["code"]) == (403, "csrf_token_wrong")
        left = ask(offline, "session", "DELETE", cookie=cookie, x_wireglot_csrf=csrf)
        assert left.json == {"access": "none"}
        assert "Max-Age=0;" in left.headers["set-cookie"]
        assert ask(offline, "session", cookie=cookie).json["access"] == "none"


@rows("secret", [None, "", "  ", 7, "x" * 4097])
def test_a_secret_that_is_none(offline: Offline, secret: Any) -> None:
    got = ask(offline, "session", "POST", {"secret": secret})
    assert (got.status, got.json["error"]["param"]) == (400, "secret")


def test_a_machine_that_cannot_be_reached_is_reported(offline: Offline) -> None:
    async def command(sent: Any) -> str:
        return "the store is away"

    inside: Any = offline.gateway
    inside._parts.pages.inspector._signing["session.end"].__self__._command = command
    got = ask(offline, "session", "POST", {"secret": ADMIN})
    cookie = got.headers["set-cookie"].partition(";")[0]
    left = ask(offline, "session", "DELETE", cookie=cookie, x_wireglot_csrf=got.json["csrf"])
    assert left.json["unreached"].endswith("once the store is back: the store is away")


def test_without_keys_this_machine_alone_may_look() -> None:
    with opened() as offline:
        got = ask(offline, "session").json
        assert (got["access"], got["sign_in"], got["admin"], got["until"]) == ("open", False, False, None)
        elsewhere = ask(offline, "session", x_forwarded_for="192.0.2.1").json
        assert elsewhere["access"] == "none"
        assert elsewhere["why"].startswith("the inspector only accepts direct connections from this machine")


@rows(
    ("login", "host"),
    [
        (None, ""),
        (LoginSettings(approval=("key",), issuer="https://idp.example/x"), ""),
        (LoginSettings(approval=("oidc",), issuer="https://idp.example/x"), "idp.example"),
    ],
    ids=["none", "key", "oidc"],
)
def test_the_provider_that_people_sign_in_through(login: Any, host: str) -> None:
    assert _provider(login) == host


@rows(
    ("verb", "most"),
    [
        *((verb, 16 * 1024) for verb in ("page", "asset", "session.get", "session.begin", "session.end")),
        ("keys.list", 4 * 1024 * 1024),
    ],
)
def test_bodies_have_a_maximum_of_bytes(verb: str, most: int) -> None:
    asked: Any = SimpleNamespace(verb=verb)
    assert max_body_bytes(asked) == most


def test_a_login_form_has_a_maximum_of_bytes() -> None:
    with locked(login={}) as offline:
        made = head("POST", "/oauth/token", content_type="application/x-www-form-urlencoded")
        assert offline.gateway.admit(made) is None
        assert offline.gateway.body_limit(made) == 16 * 1024


# Files of the page.


@rows(
    ("accepted", "takes"),
    [
        ("gzip", True),
        ("br, GZIP;q=0.5", True),
        ("gzip; q=0", False),
        ("gzip;q=0.0", False),
        ("gzip;q=0.00", False),
        ("gzip;q=0.000", False),
        ("br", False),
        ("", False),
    ],
)
def test_who_takes_gzip(accepted: str, takes: bool) -> None:
    assert _takes_gzip(accepted) is takes


@rows(
    ("tags", "known"),
    [("", False), ('"a"', True), ('W/"a"', True), ('"b", "a"', True), ("*", True), ('"b"', False)],
)
def test_which_tags_are_known(tags: str, known: bool) -> None:
    assert _is_known(tags, '"a"') is known


@rows(
    ("name", "size", "type", "kept"),
    [
        ("index.html", 1023, "text/html; charset=utf-8", "no-cache"),
        ("page.js", 1024, "text/javascript; charset=utf-8", "no-cache"),
        ("page-0123abcd.css", 9, "text/css; charset=utf-8", "public, max-age=31536000, immutable"),
        ("page.0123abc.svg", 9, "image/svg+xml", "no-cache"),
        ("notes.txt", 2000, "text/plain; charset=utf-8", "no-cache"),
    ],
)
def test_a_file_of_the_page(tmp_path: Path, name: str, size: int, type: str, kept: str) -> None:
    data = b"x" * size
    (tmp_path / name).write_bytes(data)
    site = Site(tmp_path)
    digest = hashlib.sha256(data).hexdigest()[:32]

    def get(**headers: str) -> CollectedReply:
        reply = CollectedReply(99_999)
        answered = SimpleNamespace(answered=lambda status: None)
        asked = SimpleNamespace(ids=(name,))
        page: Any = SimpleNamespace(
            head=head("GET", "/x", **headers), reply=reply, record=answered, asked=asked
        )
        asyncio.run(site.page(page) if name == "index.html" else site.asset(page))
        return reply

    plain = get()
    assert (plain.status, bytes(plain.body)) == (200, data)
    assert plain.headers == [
        ("cache-control", kept),
        ("etag", f'"{digest}"'),
        ("vary", "accept-encoding"),
        ("content-type", type),
    ]
    zipped = get(accept_encoding="gzip")
    is_zipped = size >= 1024
    assert (dict(zipped.headers).get("content-encoding") == "gzip") is is_zipped
    assert dict(zipped.headers)["etag"] == (f'"{digest}-gzip"' if is_zipped else f'"{digest}"')
    body = bytes(zipped.body)
    assert (gzip.decompress(body) if is_zipped else body) == data
    known = get(if_none_match=f'"{digest}"')
    assert (known.status, bytes(known.body), dict(known.headers)["etag"]) == (304, b"", f'"{digest}"')
    assert "content-type" not in dict(known.headers)


# What is copied into clients.


def test_what_is_copied_into_each_client() -> None:
    named = [(each.name, each.kind, each.run, each.page) for each in setup_page.CLIENTS]
    assert named == [
        ("claude-code", "sh", "wireglot run claude", "docs/howto/claude-code.md"),
        ("codex", "toml", "wireglot run codex", "docs/howto/codex.md"),
        ("gemini-cli", "sh", "wireglot run gemini", "docs/howto/gemini-cli.md"),
        ("openai-sdk", "python", "", "docs/clients.md"),
        ("anthropic-sdk", "python", "", "docs/clients.md"),
        ("google-genai", "python", "", "docs/clients.md"),
        ("curl", "sh", "", "docs/clients.md"),
        ("any", "sh", "wireglot run -- PROGRAM", "docs/clients.md"),
    ]
    titles = [each.title for each in setup_page.CLIENTS]
    assert titles[:7] == [
        "Claude Code", "Codex", "Gemini CLI", "OpenAI SDK", "Anthropic SDK", "google-genai", "curl",
    ]  # fmt: skip
    for each in setup_page.CLIENTS:
        text = setup_page.filled(each.text, url="http://h:1", key="k", model="m")
        assert "http://h:1" in text
        assert not re.search(r"\{(?:url|key|model)\}", text)


@rows(
    ("host", "headers", "url"),
    [
        ("localhost:8484", {}, "http://localhost:8484"),
        ("g.example", {"x_forwarded_proto": "https"}, "https://g.example"),
        ("[::1]:80", {}, "http://[::1]:80"),
        ("h:123456", {}, "http://127.0.0.1:8080"),
        ("h;rm", {}, "http://127.0.0.1:8080"),
        ("", {}, "http://127.0.0.1:8080"),
    ],
)
def test_the_address_that_is_copied(host: str, headers: Any, url: str) -> None:
    server = SimpleNamespace(host="127.0.0.1", port=8080)
    made: Head = head("GET", API, host=host, **headers)
    page: Any = SimpleNamespace(head=made, settings=SimpleNamespace(server=server))
    assert setup_page.base_url(page) == url


def test_what_is_on_and_why_the_rest_is_not() -> None:
    with opened(models={"fast": ["mine/m"]}) as offline:
        got = ask(offline, "setup").json
        assert (got["needs_key"], got["demo"], got["base_url"]) == (False, False, "http://localhost:8484")
        assert got["model_count"] == len(got["models"])
        (on, *off) = got["providers"]
        assert on == {
            "name": "mine",
            "title": on["title"],
            "on": True,
            "why": on["why"],
            "dialects": ["openai-chat"],
            "host": "h.example",
            "models": 0,
            "key": "unneeded",
            "kept": "",
            "keeps_as": "",
            "instead": "",
        }
        assert got["rules"] == [{"match": "fast", "to": ["mine/m"]}]
        assert "api_key=none" not in str(got["clients"])
        assert {each["on"] for each in off} == {False}
        by_name = {each["name"]: each for each in off}
        assert by_name["kimi"]["why"].endswith(" is not set")
        assert by_name["kimi"]["variables"][0] in by_name["kimi"]["why"]
        assert by_name["ollama"]["why"] == "it needs no key: [providers.ollama] turns it on"
        homes = [each["name"] for each in off][:3]
        assert homes == sorted(homes)
    with locked() as offline:
        got = ask(offline, "setup", authorization=f"Bearer {KEY}").json
        assert (got["needs_key"], "providers" in got, "config" in got) == (True, False, False)
        assert "YOUR_KEY" in got["clients"][0]["text"]


# The dashboard.


@rows(("form", "is_file"), [("", False), ("json", True), ("csv", True)])
def test_a_file_has_all_groups_and_a_page_the_largest(
    monkeypatch: pytest.MonkeyPatch, form: str, is_file: bool
) -> None:
    asked: list[bool] = []

    class Page(dashboard.DashboardPage):
        async def _reported(self, *given: Any, is_file: bool) -> dict[str, Any]:
            asked.append(is_file)
            return {}

        async def _grades(self, *given: Any) -> dict[str, Any]:
            return {"grades": {}}

        async def _budgets(self, *given: Any) -> list[dict[str, Any]] | None:
            return None

    async def flush(seconds: float) -> None: ...

    monkeypatch.setattr(dashboard, "as_csv", lambda reported: b"a,b")
    usage: Any = SimpleNamespace(flush=flush)
    nothing: Any = None
    reply = CollectedReply(99)
    sent: list[Any] = []
    request: Any = SimpleNamespace(
        query=lambda name: form if name == "format" else "",
        number=lambda name, default, least, most: default,
        record=SimpleNamespace(id="req_1"),
        asked=SimpleNamespace(dialect="openai-chat"),
        settings=None,
        reply=reply,
        send=sent.append,
    )
    page = Page(usage, nothing, nothing, nothing, traces=nothing, quotas=nothing, keys=nothing)
    asyncio.run(page.dashboard(request, Viewer("key", "ada")))
    assert asked == [is_file]
    if is_file:
        disposition = f'attachment; filename="wireglot-dashboard.{form}"'
        assert dict(reply.headers)["content-disposition"] == disposition
        assert bytes(reply.body) == (b"a,b" if form == "csv" else b'{"grades":{},"budgets":null}')
    assert sent == ([] if is_file else [{"grades": {}, "budgets": None}])


def test_keys_that_are_not_used_are_listed_with_their_seconds(offline: Offline) -> None:
    inside: Any = offline.gateway
    page = inside._parts.pages.inspector._handlers["dashboard"].__self__
    health = inside._parts.health
    now = offline.loop.time()
    health.cool("mine", "a1", "m", now + 12.34)
    health.reject("mine", "a2", now, "no")
    (mine,) = offline.call(page._condition(offline.settings))["providers"]
    assert mine["name"] == "mine"
    assert mine["cooling"] == [{"model": "m", "account": "a1", "seconds": 12.3}]
    ((rejected),) = mine["rejected"]
    assert sorted(rejected) == ["account", "seconds"]
    assert rejected["account"] == "a2"
    assert rejected["seconds"] > 0
