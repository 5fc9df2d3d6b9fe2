"""Signing in through an identity provider: who is let in, and every answer of a provider that is not good."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Iterator
from typing import get_args
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest

from proofs.identity_provider import Fault, IdentityProvider, User
from tests.gateway.inspector.inspector_kit import ADMIN, KEY, Answer, Visitor, keys_table
from tests.gateway.login.login_kit import FORM, Browser, Device, ask, gateway, with_provider
from tests.waiting import DEADLINE_SECONDS, wait_until
from wireglot.testing.live_gateway import LiveGateway

GROUPS = "[groups.team]\nrequests_per_minute = 60\n[groups.others]\nrequests_per_minute = 1\n"


@pytest.fixture
def provider() -> Iterator[IdentityProvider]:
    with IdentityProvider() as running:
        yield running


@pytest.fixture
def running(provider: IdentityProvider) -> Iterator[LiveGateway]:
    with gateway(with_provider(provider)) as started:
        yield started


def approved(to: LiveGateway, provider: IdentityProvider) -> tuple[Device, Answer]:
    """A device that the provider's person has approved, and the page of the approval."""
    device, browser = Device(to), Browser(to)
    device.begin()
    browser.enter(device.user_code)
    back = browser.sign_in_at(provider)
    assert (back.status, back.headers["location"]) == (303, "/device"), back.body
    page = browser.get("/device", site="cross-site")
    assert browser.post({"action": "approve"}).status == 200
    return device, page


def keys_of(to: LiveGateway) -> dict[str, dict[str, object]]:
    listed = Visitor(to).get("/v1/admin/keys", authorization=f"Bearer {ADMIN}").json()["data"]
    return {key["name"]: key for key in listed}


def test_a_person_signs_in_and_approves(running: LiveGateway, provider: IdentityProvider):
    device, page = approved(running, provider)
    assert b"ada@example.com" in page.body
    tokens = device.poll().json()
    assert tokens["email"] == "ada@example.com"
    assert ask(running, tokens["access_token"]).status == 200
    key = keys_of(running)["ada@example.com"]
    assert (key["owner"], key["state"], key["group"]) == ("ada@example.com", "active", None)


def test_what_the_browser_is_sent_to_the_provider_with(running: LiveGateway, provider: IdentityProvider):
    device, browser = Device(running), Browser(running)
    device.begin()
    page = browser.enter(device.user_code)
    assert b'type="password"' not in page.body  # keys are not taken unless approval says so
    away = browser.get("/device/sign-in", site="same-origin").headers["location"]
    asked = {name: values[0] for name, values in parse_qs(urlsplit(away).query).items()}
    state, nonce, challenge = asked.pop("state"), asked.pop("nonce"), asked.pop("code_challenge")
    assert len({state, nonce, challenge}) == 3
    assert min(map(len, (state, nonce, challenge))) >= 43
    assert asked == {
        "response_type": "code",
        "client_id": provider.client_id,
        "redirect_uri": f"{running.url}/device/callback",
        "scope": "openid email profile",
        "code_challenge_method": "S256",
    }


def test_signing_in_is_no_approval_yet(running: LiveGateway, provider: IdentityProvider):
    device, browser = Device(running), Browser(running)
    device.begin()
    browser.enter(device.user_code)
    browser.sign_in_at(provider)
    browser.get("/device", site="cross-site")
    assert device.poll().json()["error"] == "authorization_pending"


def test_a_person_is_one_caller_however_often_they_sign_in(running: LiveGateway, provider: IdentityProvider):
    first = approved(running, provider)[0].poll().json()
    second = approved(running, provider)[0].poll().json()
    for tokens in (first, second):
        assert ask(running, tokens["access_token"]).status == 200
    keys = keys_of(running)
    assert [name for name, key in keys.items() if not key["sign_in_of"]] == ["ada@example.com"]
    assert [key["sign_in_of"] for key in keys.values() if key["sign_in_of"]] == ["ada@example.com"] * 2


def test_another_account_of_the_same_address_is_another_caller(
    running: LiveGateway, provider: IdentityProvider
):
    first = approved(running, provider)[0].poll().json()
    provider.user = User("somebody-else", "ada@example.com")
    second = approved(running, provider)[0].poll().json()
    assert first["email"] == second["email"]
    names = [name for name, key in keys_of(running).items() if not key["sign_in_of"]]
    assert len(names) == 2


def test_no_person_becomes_the_key_of_that_name(provider: IdentityProvider):
    """A key that the admin made is not a person's to sign in as."""
    with gateway(with_provider(provider)) as running:
        admin = Visitor(running)
        admin.post("/v1/admin/keys", {"name": "ada@example.com"}, authorization=f"Bearer {ADMIN}")
        provider.user = User("1", "ada@example.com")
        approved(running, provider)
        provider.user = User("ada")  # as a key of the configuration
        approved(running, provider)
        names = [name for name, key in keys_of(running).items() if not key["sign_in_of"]]
        assert [name.rpartition("-")[0] for name in names] == ["ada", "", "ada@example.com"]


def test_no_person_gets_what_a_removed_key_of_that_name_stored(provider: IdentityProvider):
    """A subject is often a user name, which people choose: it must not lead to another caller's data."""
    login = f"[login]\n{with_provider(provider)}\n"
    start = f'[server]\nadmin_secret = "{ADMIN}"\nrequire_key = true\n[providers.demo]\n{login}'
    with LiveGateway(start + keys_table(ci=KEY)) as running:
        made = Visitor(running).post("/v1/conversations", {}, authorization=f"Bearer {KEY}").json()["id"]
        running.reconfigure(start)
        running.wait_log(event="reloaded")
        provider.user = User("ci")
        token = approved(running, provider)[0].poll().json()["access_token"]
        assert ask(running, token).status == 200
        found = Visitor(running).get(f"/v1/conversations/{made}", authorization=f"Bearer {token}")
        assert found.status == 404, found.body


def test_a_person_whose_key_is_revoked_is_out(running: LiveGateway, provider: IdentityProvider):
    tokens = approved(running, provider)[0].poll().json()
    admin = Visitor(running)
    gone = admin.ask("DELETE", "/v1/admin/keys/ada@example.com", authorization=f"Bearer {ADMIN}")
    assert gone.status == 200
    assert ask(running, tokens["access_token"]).status == 401
    refused = Device(running).renew(tokens["refresh_token"])
    assert (refused.status, refused.json()["error"]) == (401, "invalid_grant")
    page = _refused(running, provider)
    assert page is not None
    assert b"revoked" in page.body


def test_another_address_makes_nobody_another_caller(provider: IdentityProvider):
    """Else a person gets a new budget with every change of the address, and is back after a revocation."""
    with gateway(with_provider(provider, OFFLINE)) as running:
        tokens = approved(running, provider)[0].poll().json()
        provider.user = User("ada", "ada.l@example.com", ("dev",))
        provider._refreshable = dict.fromkeys(provider._refreshable, provider.user)
        assert Device(running).renew(tokens["refresh_token"]).status == 200
        approved(running, provider)[0].poll()
        people = {name: key["owner"] for name, key in keys_of(running).items() if not key["sign_in_of"]}
        assert people == {"ada@example.com": "ada.l@example.com"}
        Visitor(running).ask("DELETE", "/v1/admin/keys/ada@example.com", authorization=f"Bearer {ADMIN}")
        provider.user = User("ada", "another@example.com", ("dev",))
        page = _refused(running, provider)
        assert page is not None
        assert b"revoked" in page.body


@pytest.mark.parametrize(
    ("user", "group"),
    [
        (User("1", "a@example.com", ("x", "dev")), "team"),
        (User("1", "a@example.com", ("ops", "dev")), "team"),
        (User("1", "a@example.com", ("x",)), "others"),
        (User("1", "a@example.com", None), "others"),
    ],
)
def test_groups_of_the_provider_become_groups_of_keys(provider: IdentityProvider, user: User, group: str):
    mapped = '[login.groups]\ndev = "team"\nops = "others"\n'
    lines = with_provider(provider, 'default_group = "others"')
    with gateway(lines, mapped, GROUPS) as running:
        provider.user = user
        approved(running, provider)
        assert keys_of(running)["a@example.com"]["group"] == group


def test_a_person_who_changes_groups_has_the_new_limits_after_the_next_sign_in(provider: IdentityProvider):
    mapped = '[login.groups]\ndev = "team"\nops = "others"\n'
    with gateway(with_provider(provider), mapped, GROUPS) as running:
        provider.user = User("1", "a@example.com", ("dev",))
        approved(running, provider)
        provider.user = User("1", "a@example.com", ("ops",))
        approved(running, provider)
        assert keys_of(running)["a@example.com"]["group"] == "others"


@pytest.mark.parametrize(
    ("lines", "user", "why"),
    [
        ("", User("1", "a@example.com", email_verified=False), b"not verified"),
        ('allowed_domains = ["example.com"]', User("1", "a@elsewhere.example"), b"domain"),
        ('allowed_domains = ["example.com"]', User("1", "a@sub.example.com"), b"domain"),
        ('allowed_domains = ["example.com"]', User("1", "a@example.com@elsewhere.example"), b"domain"),
        ('allowed_domains = ["example.com"]', User("1"), b"domain"),
        ('[login.groups]\ndev = "team"\n' + GROUPS, User("1", "a@example.com", ("x",)), b"not in a group"),
    ],
)
def test_people_who_may_not_sign_in(provider: IdentityProvider, lines: str, user: User, why: bytes):
    with gateway(with_provider(provider, lines)) as running:
        provider.user = user
        page = _refused(running, provider)
        assert page is not None
        assert page.status == 403
        assert why in page.body
        assert not keys_of(running)


def test_an_address_that_is_not_called_verified_is_taken_where_the_settings_say_so(
    provider: IdentityProvider,
):
    with gateway(with_provider(provider, "require_verified_email = false")) as running:
        provider.user = User("1", "a@example.com", email_verified=False)
        approved(running, provider)
        assert "a@example.com" in keys_of(running)


_AWAY = {"token_error", "jwks_error", "no_id_token"}
_BEFORE = {"discovery_error", "discovery_issuer"}
_UNUSED = {"", "userinfo_subject"}


@pytest.mark.parametrize("fault", sorted(set(get_args(Fault)) - _BEFORE - _UNUSED))
def test_a_provider_that_answers_wrongly_signs_nobody_in(
    running: LiveGateway, provider: IdentityProvider, fault: Fault
):
    provider.fault = fault
    page = _refused(running, provider)
    assert page is not None
    assert page.status == (502 if fault in _AWAY else 403), page.body
    assert not keys_of(running)


@pytest.mark.parametrize("fault", sorted(_BEFORE))
def test_a_provider_that_cannot_be_used_is_said_so(
    running: LiveGateway, provider: IdentityProvider, fault: Fault
):
    provider.fault = fault
    device, browser = Device(running), Browser(running)
    device.begin()
    browser.enter(device.user_code)
    assert browser.get("/device/sign-in", site="same-origin").status == 502
    provider.fault = ""
    assert browser.get("/device/sign-in", site="same-origin").status == 303


def test_keys_of_the_provider_are_fetched_again_when_they_change(
    running: LiveGateway, provider: IdentityProvider, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("wireglot.gateway.login.oidc._AGAIN_SECONDS", 0.0)
    approved(running, provider)
    provider.rotate()
    approved(running, provider)
    assert [request.path for request in provider.requests].count("/jwks") == 2


def test_unknown_keys_do_not_flood_the_provider(running: LiveGateway, provider: IdentityProvider):
    provider.fault = "unknown_key"
    for _ in range(4):
        assert _refused(running, provider) is not None
    assert [request.path for request in provider.requests].count("/jwks") == 1


def test_clocks_may_differ_by_a_minute(running: LiveGateway, provider: IdentityProvider):
    provider.skew = 45
    approved(running, provider)
    provider.skew = 3 * 3600
    assert _refused(running, provider) is not None


# The provider at each renewal.

OFFLINE = 'scopes = ["openid", "email", "offline_access"]'


def test_a_person_who_is_removed_at_the_provider_is_out_at_the_next_renewal(provider: IdentityProvider):
    with gateway(with_provider(provider, OFFLINE)) as running:
        first = approved(running, provider)[0].poll().json()
        second = Device(running).renew(first["refresh_token"]).json()
        third = Device(running).renew(second["refresh_token"]).json()
        assert ask(running, third["access_token"]).status == 200
        provider.sign_out()
        refused = Device(running).renew(third["refresh_token"])
        assert (refused.status, refused.json()["error"]) == (401, "invalid_grant")
        assert ask(running, third["access_token"]).status == 401


@pytest.mark.parametrize("fault", ["token_error", "wrong_issuer", "bad_signature"])
def test_a_provider_that_fails_at_a_renewal_signs_nobody_out(provider: IdentityProvider, fault: Fault):
    with gateway(with_provider(provider, OFFLINE)) as running:
        tokens = approved(running, provider)[0].poll().json()
        provider.fault = fault
        refused = Device(running).renew(tokens["refresh_token"])
        provider.fault = ""
        assert (refused.status, refused.json()["error"]) == (503, "temporarily_unavailable")
        assert ask(running, tokens["access_token"]).status == 200


def test_a_client_that_leaves_during_a_renewal_does_not_lose_the_sign_in(
    provider: IdentityProvider, monkeypatch: pytest.MonkeyPatch
):
    """The provider's refresh token has been used by then: its next one must be stored all the same."""
    came, go_on = threading.Event(), threading.Event()
    token = provider.token

    def slow(form: dict[str, str], authorization: str) -> dict[str, object]:
        tokens = token(form, authorization)
        if form["grant_type"] == "refresh_token":
            came.set()
            assert go_on.wait(DEADLINE_SECONDS)
        return tokens

    with gateway(with_provider(provider, OFFLINE)) as running:
        tokens = approved(running, provider)[0].poll().json()
        monkeypatch.setattr(provider, "token", slow)
        body = urlencode({"grant_type": "refresh_token", "refresh_token": tokens["refresh_token"]})
        leaving = http.client.HTTPConnection("127.0.0.1", running.port)
        leaving.request("POST", "/oauth/token", body, {"content-type": FORM})
        assert came.wait(DEADLINE_SECONDS)
        leaving.close()
        wait_until(lambda: any(line["outcome"] == "client_abort" for line in running.log()))
        go_on.set()

        def renewed() -> int:
            """Once the first renewal is over."""
            status = Device(running).renew(tokens["refresh_token"]).status
            return status if status != 503 else 0

        assert wait_until(renewed) == 200


def test_groups_follow_the_provider_at_each_renewal(provider: IdentityProvider):
    mapped = '[login.groups]\ndev = "team"\nops = "others"\n'
    with gateway(with_provider(provider, OFFLINE), mapped, GROUPS) as running:
        tokens = approved(running, provider)[0].poll().json()
        key = keys_of(running)["ada@example.com"]
        assert key["group"] == "team"
        provider._refreshable = dict.fromkeys(provider._refreshable, User("ada", "ada@example.com", ("ops",)))
        tokens = Device(running).renew(tokens["refresh_token"]).json()
        assert keys_of(running)["ada@example.com"]["group"] == "others"
        provider._refreshable = dict.fromkeys(provider._refreshable, User("bob", "bob@example.com", ("ops",)))
        assert Device(running).renew(tokens["refresh_token"]).status == 401


def test_without_offline_access_no_token_of_the_provider_is_kept(
    running: LiveGateway, provider: IdentityProvider
):
    tokens = approved(running, provider)[0].poll().json()
    provider.sign_out()
    assert Device(running).renew(tokens["refresh_token"]).status == 200


# Mixed-up browsers.


def test_an_answer_for_another_browser_is_refused(running: LiveGateway, provider: IdentityProvider):
    """A thief signs in and has the victim's browser open the way back."""
    device, thief, victim = Device(running), Browser(running), Browser(running)
    device.begin()
    thief.enter(device.user_code)
    victim.enter(device.user_code)
    away = thief.get("/device/sign-in", site="same-origin").headers["location"]
    victim.get("/device/sign-in", site="same-origin")
    assert victim.come_back(provider.log_in(away)).status == 403
    assert Browser(running).come_back(provider.log_in(away)).status == 403


def test_a_way_back_works_once(running: LiveGateway, provider: IdentityProvider):
    device, browser = Device(running), Browser(running)
    device.begin()
    browser.enter(device.user_code)
    away = browser.get("/device/sign-in", site="same-origin").headers["location"]
    back = provider.log_in(away)
    cookies = dict(browser.cookies)
    assert browser.come_back(back).status == 303
    assert browser.come_back(back).status == 403
    browser.cookies = cookies
    assert browser.come_back(back).status == 403  # the provider's code is used


def test_an_answer_in_the_name_of_another_provider_is_refused(
    running: LiveGateway, provider: IdentityProvider
):
    device, browser = Device(running), Browser(running)
    device.begin()
    browser.enter(device.user_code)
    away = browser.get("/device/sign-in", site="same-origin").headers["location"]
    back = provider.log_in(away)
    mixed = back.partition("&iss=")[0]
    for iss in ("", "&iss=https%3A%2F%2Felsewhere.example"):
        assert browser.come_back(mixed + iss).status == 403
    assert "/token" not in [request.path for request in provider.requests]


@pytest.mark.parametrize(
    "query", ["", "&".join(["a=1"] * 500), "state=%ff%00&code=%f0", "state=&code=x", "?&=&;"]
)
def test_a_way_back_that_nobody_went_is_refused(running: LiveGateway, query: str):
    device, browser = Device(running), Browser(running)
    device.begin()
    browser.enter(device.user_code)
    browser.get("/device/sign-in", site="same-origin")
    assert browser.get(f"/device/callback?{query}", site="cross-site").status == 403
    assert Browser(running).get(f"/device/callback?{query}", site="cross-site").status == 403


def test_parameters_lead_nowhere_else(running: LiveGateway, provider: IdentityProvider):
    device, browser = Device(running), Browser(running)
    device.begin()
    browser.enter(device.user_code)
    query = "next=https://elsewhere.example&redirect_uri=https://elsewhere.example"
    away = browser.get(f"/device/sign-in?{query}", site="same-origin").headers["location"]
    assert parse_qs(urlsplit(away).query)["redirect_uri"] == [f"{running.url}/device/callback"]
    back = browser.come_back(provider.log_in(away) + "&" + query)
    assert back.headers["location"] == "/device"
    assert Browser(running).get(f"/device/sign-in?{query}").headers["location"] == "/device"


# The inspector.


def test_the_same_sign_in_opens_the_inspector(running: LiveGateway, provider: IdentityProvider):
    browser = Browser(running)
    back = browser.sign_in_at(provider, "/login")
    assert (back.status, back.headers["location"]) == (303, "/inspector")
    visitor = Visitor(running)
    visitor.cookie = "; ".join(f"{name}={value}" for name, value in browser.cookies.items())
    reported = visitor.look()
    assert (reported["access"], reported["key"]) == ("key", "ada@example.com")
    assert visitor.get("/inspector/api/keys").status == 403
    gone = Visitor(running).ask("DELETE", "/v1/admin/keys/ada@example.com", authorization=f"Bearer {ADMIN}")
    assert gone.status == 200
    assert visitor.look()["access"] == "none"


def _refused(to: LiveGateway, provider: IdentityProvider) -> Answer | None:
    """The page of a sign-in that fails; None where it did not."""
    device, browser = Device(to), Browser(to)
    device.begin()
    browser.enter(device.user_code)
    back = browser.sign_in_at(provider)
    return back if back.status != 303 else None


@pytest.mark.parametrize(
    ("methods", "in_form"),
    [
        (["client_secret_post"], True),
        (["client_secret_basic"], False),
        (["client_secret_post", "client_secret_basic"], False),
        (["private_key_jwt"], False),
    ],
)
def test_the_secret_goes_where_the_provider_takes_it(
    provider: IdentityProvider, monkeypatch: pytest.MonkeyPatch, methods: list[str], in_form: bool
):
    discovery = provider.discovery
    monkeypatch.setattr(
        provider, "discovery", lambda: {**discovery(), "token_endpoint_auth_methods_supported": methods}
    )
    with gateway(with_provider(provider)) as running:
        approved(running, provider)
    (sent,) = [request for request in provider.requests if request.path == "/token"]
    assert ("authorization" in sent.headers) is not in_form
    assert (sent.form.get("client_secret") == provider.client_secret) is in_form
    assert (sent.form.get("client_id") == provider.client_id) is in_form


@pytest.mark.parametrize("keys", [1, 2])
def test_a_token_that_names_no_key_is_taken_where_there_is_only_one(
    provider: IdentityProvider, monkeypatch: pytest.MonkeyPatch, keys: int
):
    """RFC 7515, 4.1.4: a key need not be named."""
    jwks, provider.names_keys = provider.jwks, False

    def several() -> dict[str, object]:
        (key,) = jwks()["keys"]
        return {"keys": [{**key, "kid": f"{key['kid']}-{number}"} for number in range(keys)]}

    monkeypatch.setattr(provider, "jwks", several)
    with gateway(with_provider(provider)) as running:
        device, browser = Device(running), Browser(running)
        device.begin()
        browser.enter(device.user_code)
        back = browser.sign_in_at(provider)
        assert (back.status == 303) is (keys == 1), back.body


def test_a_provider_that_renews_without_a_token_of_the_person_signs_nobody_out(provider: IdentityProvider):
    with gateway(with_provider(provider, OFFLINE)) as running:
        tokens = approved(running, provider)[0].poll().json()
        provider.fault = "no_id_token"
        renewed = Device(running).renew(tokens["refresh_token"])
        provider.fault = ""
        assert renewed.status == 200
        assert ask(running, renewed.json()["access_token"]).status == 200
