"""Who may look at the inspector, and who may change anything by it."""

from __future__ import annotations

import hashlib
import json

import pytest

from tests.gateway.inspector.inspector_kit import ADMIN, KEY, Visitor, configured, keys_table
from tests.gateway.kit import head, settings
from tests.tiers import rows
from tests.waiting import wait_until
from wireglot.gateway.entry import callers
from wireglot.gateway.entry.callers import Gatekeeper
from wireglot.gateway.entry.routes import INSPECTOR_ROUTES
from wireglot.gateway.errors import RequestError
from wireglot.gateway.inspector import access
from wireglot.gateway.inspector.access import (
    CSRF,
    TICKET_SECONDS,
    Access,
    InspectorSessions,
    sign_in_ticket,
)
from wireglot.gateway.settings import ClientKey, Secret, ServerSettings
from wireglot.gateway.trace.peers import PeerCommand
from wireglot.testing.live_gateway import LiveGateway

OTHER_KEY = "wg-another-key-0123456789"
SESSION = "/inspector/api/session"
SETUP = "/inspector/api/setup"


@pytest.fixture(scope="module")
def open_gateway():
    with LiveGateway() as gateway:
        yield gateway


@pytest.fixture(scope="module")
def locked_gateway():
    with configured(
        f'admin_secret = "{ADMIN}"', "[limits]\nauth_failures = 1000", keys_table(a=KEY, b=OTHER_KEY)
    ) as gateway:
        yield gateway


# Open to this machine.


def test_without_keys_anyone_who_is_on_this_machine_may_look(open_gateway):
    visitor = Visitor(open_gateway).browse()
    reported = visitor.look()
    assert (reported["access"], reported["key"], reported["workers"]) == ("open", "", 1)
    assert visitor.get(SETUP).status == 200


def test_localhost_by_name_is_this_machine(open_gateway):
    host = f"localhost:{open_gateway.port}"
    assert Visitor(open_gateway).get(SETUP, host=host).status == 200
    assert Visitor(open_gateway).get(SETUP, host=f"[::1]:{open_gateway.port}").status == 200


@rows(
    "header",
    [
        "x-forwarded-for",
        "forwarded",
        "via",
        "x-real-ip",
        "x-forwarded-host",
        "x-forwarded-proto",
        "cf-connecting-ip",
    ],
)
def test_behind_a_proxy_nobody_is_on_this_machine(open_gateway, header):
    visitor = Visitor(open_gateway)
    assert visitor.get(SETUP, **{header: "203.0.113.9"}).status == 401
    reported = visitor.get(SESSION, **{header: "203.0.113.9"}).json()
    assert (reported["access"], reported["csrf"]) == ("none", "")
    assert "server.admin_secret" in reported["why"]


def test_a_name_of_the_proxy_is_not_this_machine():
    with configured('hosts = ["llm.example.com"]') as gateway:
        visitor = Visitor(gateway)
        assert visitor.get(SETUP).status == 200
        assert visitor.get(SETUP, host="llm.example.com").status == 401


def test_a_rebound_name_is_refused(open_gateway):
    answer = Visitor(open_gateway).get(SETUP, host="evil.example.com")
    assert (answer.status, answer.code) == (403, "host_not_allowed")
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_a_page_of_another_site_may_not_ask(open_gateway):
    visitor = Visitor(open_gateway)
    for site in ("cross-site", "same-site", "weird"):
        answer = visitor.get(SETUP, sec_fetch_site=site)
        assert (answer.status, answer.code) == (403, "origin_not_allowed"), site
    assert visitor.get(SETUP, sec_fetch_site="none").status == 200, "typed into the address bar"
    for origin in (
        "http://evil.example.com",
        "null",
        "http://127.0.0.1",
        f"http://localhost:{open_gateway.port}",
    ):
        assert visitor.get(SETUP, origin=origin).status == 403, origin


def test_what_may_call_the_api_may_not_look():
    origin = "https://app.example.com"
    with configured(f'origins = ["{origin}"]') as gateway:
        visitor = Visitor(gateway)
        assert visitor.get("/v1/models", origin=origin).status == 200
        assert visitor.get(SETUP, origin=origin).status == 403
        preflight = visitor.ask("OPTIONS", SETUP, origin=origin, access_control_request_method="POST")
        assert preflight.status in (403, 405)
        assert "access-control-allow-origin" not in preflight.headers


def test_a_link_from_elsewhere_leads_to_the_page_and_to_nothing_else(open_gateway):
    link = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}
    visitor = Visitor(open_gateway)
    assert visitor.get("/inspector/x/req_1", **link).status != 403
    assert visitor.get("/inspector/x/req_1", **link | {"sec-fetch-dest": "iframe"}).status == 403
    assert visitor.get("/inspector/x/req_1", **link | {"sec-fetch-dest": None}).status != 403
    assert visitor.get(SETUP, **link).status == 403


# Changes.


def test_a_change_needs_the_token_of_the_page(open_gateway):
    visitor = Visitor(open_gateway).browse()
    visitor.look()
    assert visitor.post("/inspector/api/ask", {}).status == 200
    for wrong in (None, "", "0" * 64, visitor.csrf[:-1], "é"):
        answer = visitor.post("/inspector/api/ask", {}, x_wireglot_csrf=wrong)
        assert (answer.status, answer.code) == (403, "csrf_token_wrong"), wrong


def test_a_change_from_another_origin_is_refused_even_with_the_token(open_gateway):
    visitor = Visitor(open_gateway)
    visitor.look()
    for origin in ("http://evil.example.com", "null", "http://127.0.0.1:1"):
        assert visitor.post("/inspector/api/ask", {}, origin=origin).status == 403, origin
    for site in ("cross-site", "same-site", "none"):
        assert visitor.post("/inspector/api/ask", {}, sec_fetch_site=site).status == 403, site


def test_a_form_of_another_page_cannot_post(open_gateway):
    visitor = Visitor(open_gateway)
    visitor.look()
    for kind in ("text/plain", "application/x-www-form-urlencoded", None):
        assert visitor.post("/inspector/api/ask", {}, content_type=kind).status == 415, kind


def test_the_token_of_one_session_is_no_other_ones(locked_gateway):
    one, other = Visitor(locked_gateway), Visitor(locked_gateway)
    assert one.sign_in(ADMIN).status == other.sign_in(ADMIN).status == 200
    assert one.csrf != other.csrf
    assert one.post("/inspector/api/keys", {"name": "x"}, x_wireglot_csrf=other.csrf).status == 403


# Every route there is, no matter who has added it.

ROUTES = [
    pytest.param(route.method, route.path.replace("*", "some-id"), id=f"{route.method} {route.path}")
    for route in INSPECTOR_ROUTES
    if not route.verb.startswith("session.")
]


@rows(("method", "path"), ROUTES)
def test_no_route_is_forgotten(locked_gateway, open_gateway, method, path):
    document: dict | None = None if method == "GET" else {}
    stranger = Visitor(locked_gateway).browse()
    assert stranger.ask(method, path, document).status == 401
    assert stranger.ask(method, path, document, cookie="wireglot-inspector=x").status == 401
    assert stranger.ask(method, path, document, authorization="Bearer wrong-0123456789").status == 401
    local = Visitor(open_gateway)
    local.look()
    for site in ("cross-site", "same-site"):
        assert local.ask(method, path, document, sec_fetch_site=site).status == 403
    for other in ("https://evil.example.com", "null"):
        assert local.ask(method, path, document, origin=other).status == 403
    assert local.ask(method, path, document, host="evil.example.com").status == 403
    assert local.ask(method, path, document, x_forwarded_for="203.0.113.9").status == 401
    if method != "GET":
        assert local.ask(method, path, document, x_wireglot_csrf="0" * 64).status == 403
        assert local.ask(method, path, b"{}", content_type="text/plain").status == 415


# Sessions.


def test_with_keys_nobody_may_look_without_one(locked_gateway):
    visitor = Visitor(locked_gateway).browse()
    reported = visitor.look()
    assert (reported["access"], reported["sign_in"]) == ("none", True)
    for path in (SETUP, "/inspector/api/dashboard", "/inspector/api/keys"):
        assert visitor.get(path).status == 401, path
    for path in ("/inspector/api/translate", "/inspector/api/ask"):
        assert visitor.post(path, {}).status == 401, path


def test_the_admin_secret_opens_everything(locked_gateway):
    visitor = Visitor(locked_gateway).browse()
    answer = visitor.sign_in(ADMIN)
    cookie = answer.headers["set-cookie"]
    for flag in ("HttpOnly", "SameSite=Strict", "Path=/inspector", "Max-Age="):
        assert flag in cookie, cookie
    assert "Secure" not in cookie
    assert ADMIN not in cookie
    assert answer.json()["access"] == "admin"
    assert visitor.get("/inspector/api/keys").status == 200


def test_behind_tls_the_cookie_is_for_tls_only(locked_gateway):
    visitor = Visitor(locked_gateway)
    over_tls = visitor.origin.replace("http:", "https:")
    assert "; Secure" in visitor.sign_in(ADMIN, origin=over_tls).headers["set-cookie"]
    assert "; Secure" in visitor.sign_in(ADMIN, x_forwarded_proto="https").headers["set-cookie"]


def test_a_client_key_sees_its_own_only(locked_gateway):
    visitor = Visitor(locked_gateway).browse()
    reported = visitor.sign_in(KEY).json()
    assert (reported["access"], reported["key"]) == ("key", "a")
    other = Visitor(locked_gateway).browse()
    other.sign_in(OTHER_KEY)
    assert other.post("/inspector/api/ask", {}).json()["status"] == 200
    assert visitor.get("/inspector/api/dashboard?by=key&key=b").json()["total"]["requests"] == 0
    mine = other.get("/inspector/api/dashboard?by=key&key=a").json()
    assert [group["name"] for group in mine["groups"]] == ["b"]
    assert "health" not in mine
    setup = visitor.get(SETUP).json()
    assert "providers" not in setup
    assert "config" not in setup


def test_a_client_key_changes_no_key(locked_gateway):
    visitor = Visitor(locked_gateway).browse()
    visitor.sign_in(KEY)
    keys = "/inspector/api/keys"
    for method, path in (
        ("GET", keys), ("POST", keys), ("GET", f"{keys}/a"), ("PATCH", f"{keys}/a"), ("DELETE", f"{keys}/a"),
        ("POST", f"{keys}/a/rotate"), ("POST", f"{keys}/a/delete"),
    ):  # fmt: skip
        answer = visitor.ask(method, path, None if method == "GET" else {"name": "c"})
        assert (answer.status, answer.code) == (403, "admin_needed"), (method, path)


def test_a_secret_in_a_header_needs_no_cookie_and_no_token(locked_gateway):
    program = Visitor(locked_gateway)
    assert program.get("/inspector/api/keys", authorization=f"Bearer {ADMIN}").status == 200
    asked = program.ask(
        "POST", "/inspector/api/ask", {}, authorization=f"Bearer {KEY}", x_wireglot_csrf=None, origin=None
    )
    assert asked.json()["status"] == 200
    assert program.get(SETUP, x_api_key="wg-wrong-0123456789").status == 401


def test_signing_out_ends_the_session(locked_gateway):
    visitor = Visitor(locked_gateway)
    visitor.sign_in(ADMIN)
    assert visitor.ask("DELETE", SESSION, x_wireglot_csrf="wrong").status == 403
    answer = visitor.ask("DELETE", SESSION)
    assert "Max-Age=0" in answer.headers["set-cookie"]
    assert visitor.get(SETUP).status == 401, "a copy of the cookie opens nothing either"


def test_odd_cookies_open_nothing(locked_gateway):
    visitor = Visitor(locked_gateway)
    visitor.sign_in(ADMIN)
    name, _, token = visitor.cookie.partition("=")
    flipped = ("A" if token[20] != "A" else "B").join((token[:20], token[21:]))
    for odd in (
        "", "=", ";;;", name, f"{name}=", f"{name}=x", f"{name}={flipped}", f"{name}={token[:-4]}", f"{name}={token}AAAA",
        f"{name}={token * 8}", f"{name}=%41{token}", f"{name}x={token}", f"wireglot-inspector={token}", f"{name}=\x80\xff",
        f"{name}={'A' * 7000}", f"{name}=null", f"{name}=eyJhbGciOiJub25lIn0.e30.", ",".join([f"{name}=a"] * 50),
        f"{name}=a; {name}=b; {name}=c; {name}=d; {name}={token}",
    ):  # fmt: skip
        visitor.cookie = odd
        answer = visitor.get(SETUP)
        assert answer.status == 401, odd
    visitor.cookie = f"theme=dark; {name}=broken; {name}={token}; other=1"
    assert visitor.get(SETUP).status == 200


def test_guesses_are_counted():
    with configured(f'admin_secret = "{ADMIN}"', "[limits]\nauth_failures = 3", keys_table(a=KEY)) as gateway:
        visitor = Visitor(gateway)
        statuses = [visitor.sign_in(f"guess-{number}-0123456789").status for number in range(5)]
        assert statuses == [401, 401, 401, 429, 429]
        assert "retry-after" in visitor.sign_in("one-more-0123456789").headers
        assert visitor.get(SETUP, authorization="Bearer guess-0123456789").status == 429, "by header, too"
        assert visitor.sign_in(ADMIN).status == 200, "nobody can lock the owner out"
        notes = gateway.wait_log(1, "inspector sign-in refused")
        assert "guess-0" not in json.dumps(notes)


def test_guesses_of_the_admin_secret_are_counted_where_everybody_may_look():
    with configured(f'admin_secret = "{ADMIN}"', "[limits]\nauth_failures = 2") as gateway:
        visitor = Visitor(gateway)
        assert visitor.look()["access"] == "open"
        wrong = [visitor.get(SESSION, authorization=f"Bearer guess-{number}").status for number in range(3)]
        assert wrong == [401, 401, 429]
        assert visitor.get(SESSION, authorization=f"Bearer {ADMIN}").json()["access"] == "admin"


@rows("secret", [None, "", "   ", 5, [], {}, "x" * 5000, True])
def test_a_secret_that_is_none_is_reported(locked_gateway, secret):
    answer = Visitor(locked_gateway).post(SESSION, {"secret": secret})
    assert answer.status == 400
    assert "secret" in answer.message


def test_a_stranger_can_send_no_more_than_a_secret(locked_gateway):
    visitor = Visitor(locked_gateway)
    assert visitor.post(SESSION, b"", content_length="20000").status == 413
    assert visitor.post("/inspector/api/translate", b"", content_length="20000").status == 401


def test_a_new_admin_secret_ends_sessions():
    toml = '[server]\nadmin_secret = "{}"\ninspector = "secret"\n[providers.demo]\n'
    gateway = LiveGateway(toml.format(ADMIN))
    with gateway:
        visitor = Visitor(gateway)
        visitor.sign_in(ADMIN)
        assert visitor.get(SETUP).status == 200
        gateway.reconfigure(toml.format("another-secret-0123456789"))
        wait_until(lambda: visitor.get(SETUP).status == 401)


def test_a_revoked_key_ends_its_session():
    with configured(f'admin_secret = "{ADMIN}"') as gateway:
        admin = Visitor(gateway)
        admin.sign_in(ADMIN)
        key = admin.post("/inspector/api/keys", {"name": "new"}).json()["key"]
        visitor = Visitor(gateway)
        assert visitor.sign_in(key).json()["key"] == "new"
        assert visitor.get(SETUP).status == 200
        assert admin.ask("DELETE", "/inspector/api/keys/new").status == 200
        assert visitor.get(SETUP).status == 401
        assert admin.get(SETUP).status == 200


def test_the_first_key_closes_the_open_door():
    with configured(f'admin_secret = "{ADMIN}"') as gateway:
        stranger, admin = Visitor(gateway), Visitor(gateway)
        assert stranger.look()["access"] == "open"
        admin.sign_in(ADMIN)
        assert admin.post("/inspector/api/keys", {"name": "first"}).status == 201
        assert stranger.look()["access"] == "none"
        assert stranger.get(SETUP).status == 401


def test_it_can_be_closed_and_turned_off():
    with configured('inspector = "secret"') as gateway:
        assert Visitor(gateway).get(SETUP).status == 401
    with configured('inspector = "off"') as gateway:
        for path in ("/inspector", SESSION, SETUP, "/inspector/assets/page.js"):
            assert Visitor(gateway).get(path).status == 404, path


def test_looking_is_no_traffic(open_gateway):
    before = len(open_gateway.log())
    visitor = Visitor(open_gateway)
    visitor.look()
    visitor.get(SETUP)
    visitor.get("/inspector")
    assert visitor.post("/inspector/api/ask", {"text": "hello"}).json()["status"] == 200
    lines = open_gateway.wait_log(before + 1)
    assert [line["operation"] for line in lines[before:]] == ["generate"]


# Without a server: peers and clocks that a test cannot be.


def viewed(visit, now=None, keys=(), **server):
    now = now or settings(server=ServerSettings(secret=Secret("s" * 32), **server), keys=keys)
    gatekeeper = Gatekeeper(lambda: 0.0)
    return Access(gatekeeper, InspectorSessions(), lambda: now).seen(visit, now).viewer


@pytest.mark.parametrize(
    ("method", "needs_token"), [("GET", False), ("HEAD", False), ("POST", True), ("DELETE", True)]
)
def test_only_a_question_that_changes_something_needs_the_token(method, needs_token):
    now = settings(server=ServerSettings(secret=Secret("s" * 32)))
    sessions = InspectorSessions()
    access = Access(Gatekeeper(lambda: 0.0), sessions, lambda: now)
    asked = head(method, SETUP)
    seen = access.seen(asked, now)
    if needs_token:
        with pytest.raises(RequestError, match="expected the token"):
            access.check(asked, seen, now)
        asked = head(method, SETUP, **{CSRF: sessions.csrf(seen.session, now)})
    assert access.check(asked, seen, now) is seen.viewer


@pytest.mark.parametrize("peer", ["192.0.2.7", "10.0.0.1", "2001:db8::1", "::ffff:192.0.2.7"])
def test_anyone_who_is_elsewhere_may_not_look(peer):
    assert viewed(head("GET", SETUP, peer=peer)) is None
    assert viewed(head("GET", SETUP, peer="127.0.0.1")) is not None
    assert viewed(head("GET", SETUP, peer="::ffff:127.0.0.1")) is not None


def test_a_gateway_that_others_can_reach_is_open_to_nobody():
    assert viewed(head("GET", SETUP), host="0.0.0.0") is None
    assert viewed(head("GET", SETUP), host="192.0.2.1") is None
    assert viewed(head("GET", SETUP, host="")) is None


def test_a_session_ends_with_its_time_and_with_its_key():
    key = ClientKey("a", hashlib.sha256(KEY.encode()).hexdigest())
    now = settings(server=ServerSettings(secret=Secret("s" * 32), admin_secret=Secret(ADMIN)), keys=(key,))
    clock = [1000.0]
    sessions = InspectorSessions(lambda: clock[0])
    gatekeeper = Gatekeeper(lambda: 0.0)
    current = [now]
    access = Access(gatekeeper, sessions, lambda: current[0])
    _, token = sessions.begin(gatekeeper.known("peer", [KEY], now), now)
    visit = head("GET", SETUP, cookie=f"wireglot-inspector-8484={token}")
    viewer = access.seen(visit, now).viewer
    assert viewer is not None
    assert (viewer.access, viewer.key, viewer.holds()) == ("key", "a", True)
    current[0] = settings(server=now.server)
    assert not viewer.holds(), "the key has gone"
    current[0] = now
    assert viewer.holds()
    clock[0] += 8 * 3600
    assert not viewer.holds()
    assert access.seen(visit, now).viewer is None


def test_a_token_of_another_gateway_opens_nothing():
    server = ServerSettings(secret=Secret("s" * 32), admin_secret=Secret(ADMIN), inspector="secret")
    ours, theirs = (
        settings(server=server),
        settings(
            server=ServerSettings(secret=Secret("t" * 32), admin_secret=Secret(ADMIN), inspector="secret")
        ),
    )
    gatekeeper, sessions = Gatekeeper(lambda: 0.0), InspectorSessions()
    who = gatekeeper.known("peer", [ADMIN], ours)
    for minted_by, opens in ((ours, True), (theirs, False)):
        _, token = sessions.begin(who, minted_by)
        visit = head("GET", SETUP, cookie=f"wireglot-inspector-8484={token}")
        found = Access(gatekeeper, sessions, lambda: ours).seen(visit, ours).viewer
        assert (found is not None) is opens


def test_every_worker_opens_the_sessions_of_the_others():
    now = settings(server=ServerSettings(secret=Secret("s" * 32), admin_secret=Secret(ADMIN)))
    gatekeeper = Gatekeeper(lambda: 0.0)
    one, other = InspectorSessions(), InspectorSessions()
    session, token = one.begin(gatekeeper.known("peer", [ADMIN], now), now)
    read = other.read(f"wireglot-inspector-8484={token}", "localhost:8484", now)
    assert read == session
    assert one.csrf(session, now) == other.csrf(session, now)


def test_a_client_that_knows_the_key_of_another_gateway_is_informed():
    now = settings(server=ServerSettings(secret=Secret("s" * 32), admin_secret=Secret(ADMIN)))
    with pytest.raises(RequestError, match="neither"):
        Gatekeeper(lambda: 0.0).known("peer", ["x" * 10_000, ""], now)


# Links that sign in once.


def test_a_ticket_signs_in_once_and_for_a_short_time():
    clock = [1000.0]
    sessions = InspectorSessions(lambda: clock[0], lambda: "operator")
    first, second, late = (sign_in_ticket("operator", clock[0]) for _ in range(3))
    assert sessions.redeem(first) is not None
    assert sessions.redeem(first) is None, "it is used up"
    assert sessions.redeem(second) is not None
    clock[0] += TICKET_SECONDS + 1
    assert sessions.redeem(late) is None


def test_a_ticket_that_another_worker_took_opens_nothing():
    one, other = (InspectorSessions(lambda: 1000.0, lambda: "operator") for _ in range(2))
    ticket = sign_in_ticket("operator", 1000.0)
    used = one.redeem(ticket)
    assert used is not None
    other.obey(used, is_new=True)
    assert other.redeem(ticket) is None


def test_signing_in_and_out_all_the_time_brings_no_used_ticket_back(monkeypatch):
    monkeypatch.setattr(access, "_MAX_ENDED", 3)
    clock = [1000.0]
    sessions = InspectorSessions(lambda: clock[0], lambda: "operator")
    ticket = sign_in_ticket("operator", clock[0])
    used = sessions.redeem(ticket)
    for number in range(10):
        sessions.obey(PeerCommand(clock[0], ended=f"session {number}", ends=9000), is_new=True)
    assert sessions.redeem(ticket) is None
    assert used in sessions.standing(), "a worker that starts now hears of it"
    clock[0] += TICKET_SECONDS + 1
    sessions.redeem(sign_in_ticket("operator", clock[0]))
    assert len(sessions._used) == 1, "what nobody can use any more is forgotten"


@rows("ticket", ["", "x", "!" * 38, "A" * 38, "é", "A" * 5000, sign_in_ticket("another", 1000.0)])
def test_what_is_no_ticket_of_this_gateway_opens_nothing(ticket):
    assert InspectorSessions(lambda: 1000.0, lambda: "operator").redeem(ticket) is None


def test_without_an_operator_key_no_ticket_opens_anything():
    assert InspectorSessions(lambda: 1000.0).redeem(sign_in_ticket("", 1000.0)) is None


def test_a_changed_ticket_opens_nothing():
    ticket = sign_in_ticket("operator", 1000.0)
    for index in (0, 8, 20, 37):
        changed = ticket[:index] + ("A" if ticket[index] != "A" else "B") + ticket[index + 1 :]
        assert InspectorSessions(lambda: 1000.0, lambda: "operator").redeem(changed) is None


def test_who_has_signed_in_by_a_ticket_may_look_until_the_process_ends():
    now = settings(server=ServerSettings(secret=Secret("s" * 32), inspector="secret"))
    key = ["operator"]
    sessions = InspectorSessions(operator_key=lambda: key[0])
    gatekeeper = Gatekeeper(lambda: 0.0)
    _, token = sessions.begin(callers.ADMIN, now)
    visit = head("GET", SETUP, cookie=f"wireglot-inspector-8484={token}")
    viewer = Access(gatekeeper, sessions, lambda: now).seen(visit, now).viewer
    assert viewer is not None
    assert viewer.access == "admin"
    key[0] = "that of the next process"
    assert not viewer.holds()
