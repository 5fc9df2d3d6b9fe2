"""Signing in with a client key: metadata, device codes, the page, tokens, renewal, revocation."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from tests.gateway.inspector.inspector_kit import ADMIN, KEY, Answer, Visitor, keys_table
from tests.gateway.login.login_kit import (
    OTHER_KEY,
    Browser,
    Device,
    ask,
    gateway,
    send,
    signed_in,
)
from tests.waiting import wait_until
from wireglot.gateway.login.device_codes import MAX_REQUESTS, MAX_WRONG_CODES
from wireglot.testing.live_gateway import LiveGateway


@pytest.fixture(scope="module")
def shared() -> Iterator[LiveGateway]:
    """For tests that neither count requests nor change keys."""
    with gateway('notice = "Ask the help desk."') as running:
        yield running


@pytest.fixture
def running() -> Iterator[LiveGateway]:
    with gateway() as started:
        yield started


def error_of(answer: Answer) -> tuple[int, str]:
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["content-type"] == "application/json"
    return answer.status, answer.json()["error"]


def test_metadata_names_the_endpoints(shared: LiveGateway):
    answer = send(shared, "GET", "/.well-known/oauth-authorization-server")
    base = shared.url
    assert answer.status == 200
    assert answer.json() == {
        "issuer": base,
        "device_authorization_endpoint": f"{base}/oauth/device_authorization",
        "token_endpoint": f"{base}/oauth/token",
        "revocation_endpoint": f"{base}/oauth/revoke",
        "grant_types_supported": ["urn:ietf:params:oauth:grant-type:device_code", "refresh_token"],
        "response_types_supported": [],
        "token_endpoint_auth_methods_supported": ["none"],
        "revocation_endpoint_auth_methods_supported": ["none"],
    }


def test_a_device_code_has_all_that_a_client_needs(shared: LiveGateway):
    document = Device(shared).begin(client_id="unknown", scope="all")
    code = document.pop("user_code")
    assert len(document.pop("device_code")) >= 43
    assert set(code.replace("-", "")) <= set("BCDFGHJKLMNPQRSTVWXZ")
    assert (len(code), code[4]) == (9, "-")
    assert document == {
        "verification_uri": f"{shared.url}/device",
        "verification_uri_complete": f"{shared.url}/device?user_code={code}",
        "expires_in": 600,
        "interval": 5,
        "login_notice": "Ask the help desk.",
    }


def test_a_device_that_waits_for_its_user_fills_no_log(running: LiveGateway):
    def polls() -> list[int]:
        return [line["status"] for line in running.log() if line.get("path") == "/oauth/token"]

    device, before = Device(running), len(polls())
    device.begin()
    assert error_of(device.poll()) == (400, "authorization_pending")
    assert error_of(device.poll()) == (429, "slow_down")
    device.device_code = "unknown"
    assert device.poll().status == 400
    wait_until(lambda: len(polls()) > before)
    assert polls()[before:] == [400], "the last one"
    rows = running.process.gateway.traces.rows
    assert list(rows.formatted(rows.snapshot())) == [], "nor the inspector's list"


def test_a_person_with_a_key_signs_a_device_in(running: LiveGateway):
    device, browser = Device(running), Browser(running)
    device.begin()
    assert error_of(device.poll()) == (400, "authorization_pending")
    browser.get("/device")
    page = browser.post({"action": "code", "user_code": device.user_code.lower().replace("-", " ")})
    assert page.status == 200
    for shown in (device.user_code.encode(), b"terminal", b"127.0.0.1", b"UTC"):
        assert shown in page.body
    done = browser.post({"action": "key", "key": KEY})
    assert (done.status, b"signed in" in done.body) == (200, True)
    answer = device.poll()
    assert answer.status == 200
    assert answer.headers["cache-control"] == "no-store"
    tokens = answer.json()
    assert (tokens["token_type"], tokens["expires_in"]) == ("Bearer", 3600)
    assert "email" not in tokens
    assert ask(running, tokens["access_token"]).status == 200
    wait_until(lambda: "ada" in [line.get("key") for line in running.wait_log(1, "request")])


@pytest.mark.parametrize("trace", ["off", "all"])
def test_tokens_are_in_no_log_and_no_recording(trace: str):
    with gateway("", f'[trace]\nmode = "{trace}"') as running:
        tokens = signed_in(running)
        log = (running.folder / "log").read_bytes()
        stored = b"".join(
            file.read_bytes() for file in running.folder.rglob("*") if file.is_file() and file.name != "log"
        )
    for secret in (tokens["access_token"], tokens["refresh_token"], KEY):
        assert secret.encode() not in log
        assert secret.encode() not in stored


def test_a_refusal_ends_the_device_code(running: LiveGateway):
    device, browser = Device(running), Browser(running)
    device.begin()
    browser.enter(device.user_code)
    assert browser.post({"action": "deny"}).status == 200
    assert error_of(device.poll()) == (400, "access_denied")
    assert error_of(device.poll()) == (400, "expired_token")


def test_a_device_code_works_once(running: LiveGateway):
    device, browser = Device(running), Browser(running)
    device.begin()
    browser.sign_in(device.user_code, KEY)
    assert device.poll().status == 200
    assert error_of(device.poll()) == (400, "expired_token")
    again = Browser(running).enter(device.user_code)
    assert (again.status, b"has expired" in again.body) == (400, True)


def test_of_polls_at_the_same_time_one_gets_a_token(running: LiveGateway):
    device, browser = Device(running), Browser(running)
    device.begin()
    browser.sign_in(device.user_code, KEY)
    answers: list[Answer] = []
    threads = [threading.Thread(target=lambda: answers.append(device.poll())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    statuses = sorted(answer.status for answer in answers)
    assert statuses == [200, *[400] * 7]


def test_of_two_decisions_the_first_holds(running: LiveGateway):
    device, browser, other = Device(running), Browser(running), Browser(running)
    device.begin()
    browser.enter(device.user_code)
    other.enter(device.user_code)
    assert browser.post({"action": "deny"}).status == 200
    assert other.post({"action": "key", "key": KEY}).status == 400
    assert error_of(device.poll()) == (400, "access_denied")


def test_polls_before_the_interval_are_slowed_down(shared: LiveGateway):
    device = Device(shared)
    device.begin()
    assert error_of(device.poll()) == (400, "authorization_pending")
    assert error_of(device.poll()) == (429, "slow_down")


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, (400, "unsupported_grant_type")),
        ({"grant_type": "password"}, (400, "unsupported_grant_type")),
        ({"grant_type": "refresh_token"}, (400, "invalid_request")),
        ({"grant_type": "refresh_token", "refresh_token": "x"}, (401, "invalid_grant")),
        ({"grant_type": "urn:ietf:params:oauth:grant-type:device_code"}, (400, "invalid_request")),
        (
            {"grant_type": "urn:ietf:params:oauth:grant-type:device_code", "device_code": "x"},
            (400, "expired_token"),
        ),
        (
            {"grant_type": "urn:ietf:params:oauth:grant-type:device_code", "device_code": "x" * 9000},
            (400, "expired_token"),
        ),
    ],
)
def test_a_wrong_token_request_is_an_oauth_error(
    shared: LiveGateway, fields: dict[str, str], expected: tuple[int, str]
):
    assert error_of(Device(shared).form("/oauth/token", fields)) == expected


@pytest.mark.parametrize("path", ["/oauth/token", "/oauth/revoke", "/oauth/device_authorization"])
@pytest.mark.parametrize("kind", ["application/json", "text/plain"])
def test_only_forms_are_read(shared: LiveGateway, path: str, kind: str):
    assert error_of(send(shared, "POST", path, b"{}", content_type=kind)) == (400, "invalid_request")


# Renewal and the end of a sign-in.


def test_a_refresh_token_is_exchanged_for_others(running: LiveGateway):
    first = signed_in(running)
    second = Device(running).renew(first["refresh_token"]).json()
    assert second["refresh_token"] != first["refresh_token"]
    assert ask(running, second["access_token"]).status == 200
    assert ask(running, first["access_token"]).status == 200  # requests that are under way have it
    third = Device(running).renew(second["refresh_token"]).json()
    assert ask(running, first["access_token"]).status == 401
    assert ask(running, third["access_token"]).status == 200


def test_a_used_refresh_token_is_refused_and_the_other_session_of_the_machine_goes_on(running: LiveGateway):
    first = signed_in(running)
    second = Device(running).renew(first["refresh_token"]).json()
    assert error_of(Device(running).renew(first["refresh_token"])) == (401, "invalid_grant")
    assert ask(running, second["access_token"]).status == 200
    assert Device(running).renew(second["refresh_token"]).status == 200


def test_of_renewals_at_the_same_time_one_gets_tokens(running: LiveGateway):
    first = signed_in(running)
    answers: list[Answer] = []
    threads = [
        threading.Thread(target=lambda: answers.append(Device(running).renew(first["refresh_token"])))
        for _ in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answer.status for answer in answers) == [200, *[401] * 5]


@pytest.mark.parametrize("which", ["access_token", "refresh_token"])
def test_either_token_signs_the_device_out(running: LiveGateway, which: str):
    tokens, others = signed_in(running), signed_in(running)
    answer = Device(running).revoke(tokens[which])
    assert answer.status == 200
    refused = ask(running, tokens["access_token"])
    assert (refused.status, refused.headers["x-should-retry"]) == (401, "false")
    assert error_of(Device(running).renew(tokens["refresh_token"])) == (401, "invalid_grant")
    assert ask(running, others["access_token"]).status == 200


def test_revoking_a_token_that_is_none_changes_nothing(running: LiveGateway):
    tokens = signed_in(running)
    name = tokens["refresh_token"].partition(".")[0]
    for other in ("unknown", KEY, f"{name}.{'x' * 43}.{'y' * 43}"):
        assert Device(running).revoke(other).status == 200
    assert ask(running, KEY).status == 200
    assert ask(running, tokens["access_token"]).status == 200


def test_a_guessed_refresh_token_of_a_known_sign_in_ends_nothing(running: LiveGateway):
    tokens = signed_in(running)
    name, family, _ = tokens["refresh_token"].split(".")
    device = Device(running)
    assert error_of(device.renew(f"{name}.{'x' * 43}.{'y' * 43}")) == (401, "invalid_grant")
    assert error_of(device.renew(f"{name}.{family}")) == (401, "invalid_grant")
    assert device.renew(tokens["refresh_token"]).status == 200


def test_a_sign_in_ends_with_its_key(running: LiveGateway):
    admin = Visitor(running)
    made = admin.post("/v1/admin/keys", {"name": "cleo"}, authorization=f"Bearer {ADMIN}").json()
    tokens = signed_in(running, made["key"])
    listed = admin.get("/v1/admin/keys", authorization=f"Bearer {ADMIN}").json()["data"]
    assert [key["sign_in_of"] for key in listed] == [None, "cleo"]
    assert admin.ask("DELETE", "/v1/admin/keys/cleo", authorization=f"Bearer {ADMIN}").status == 200
    assert ask(running, tokens["access_token"]).status == 401
    assert error_of(Device(running).renew(tokens["refresh_token"])) == (401, "invalid_grant")
    listed = admin.get("/v1/admin/keys", authorization=f"Bearer {ADMIN}").json()["data"]
    assert [key["state"] for key in listed] == ["revoked", "revoked"]


def test_a_sign_in_ends_when_its_key_is_rotated(running: LiveGateway):
    admin = Visitor(running)
    made = admin.post("/v1/admin/keys", {"name": "cleo"}, authorization=f"Bearer {ADMIN}").json()
    tokens = signed_in(running, made["key"])
    assert admin.post("/v1/admin/keys/cleo/rotate", {}, authorization=f"Bearer {ADMIN}").status == 200
    assert ask(running, tokens["access_token"]).status == 401
    assert error_of(Device(running).renew(tokens["refresh_token"])) == (401, "invalid_grant")


def test_a_sign_in_ends_when_its_key_leaves_the_configuration(running: LiveGateway):
    tokens = signed_in(running, OTHER_KEY)
    running.reconfigure(
        f'[server]\nadmin_secret = "{ADMIN}"\n[providers.demo]\n[login]\n{keys_table(ada=KEY)}'
    )
    running.wait_log(1, "reloaded")
    assert ask(running, tokens["access_token"]).status == 401
    assert error_of(Device(running).renew(tokens["refresh_token"])) == (401, "invalid_grant")


def test_one_sign_in_is_revoked_by_its_name_and_cannot_be_changed(running: LiveGateway):
    tokens, others = signed_in(running), signed_in(running)
    name = "login-" + tokens["refresh_token"].partition(".")[0].removeprefix("wgr-")
    admin = Visitor(running)
    changed = admin.ask("PATCH", f"/v1/admin/keys/{name}", {"models": ["x"]}, authorization=f"Bearer {ADMIN}")
    assert (changed.status, "sign-in of the key ada" in changed.message) == (409, True)
    assert admin.ask("DELETE", f"/v1/admin/keys/{name}", authorization=f"Bearer {ADMIN}").status == 200
    assert ask(running, tokens["access_token"]).status == 401
    assert ask(running, others["access_token"]).status == 200


def test_limits_and_models_of_the_key_hold_for_its_devices(running: LiveGateway):
    admin = Visitor(running)
    fields = {"name": "cleo", "models": ["other"], "requests_per_minute": 1}
    made = admin.post("/v1/admin/keys", fields, authorization=f"Bearer {ADMIN}").json()
    tokens = signed_in(running, made["key"])
    assert ask(running, tokens["access_token"]).status == 403
    changed = admin.ask("PATCH", "/v1/admin/keys/cleo", {"models": None}, authorization=f"Bearer {ADMIN}")
    assert changed.status == 200
    # One budget, however it is reached.
    assert ask(running, made["key"]).status == 200
    assert ask(running, tokens["access_token"]).status == 429


def test_a_token_signs_no_other_device_in(running: LiveGateway):
    tokens = signed_in(running)
    device, browser = Device(running), Browser(running)
    device.begin()
    page = browser.sign_in(device.user_code, tokens["access_token"])
    assert (page.status, b"not a client key" in page.body) == (400, True)
    assert error_of(device.poll()) == (400, "authorization_pending")


# The page.


def test_a_code_in_the_link_is_filled_in_and_not_submitted(running: LiveGateway):
    device, browser = Device(running), Browser(running)
    device.begin()
    page = browser.get(f"/device?user_code={device.user_code}", site="cross-site")
    assert page.status == 200
    assert f'value="{device.user_code}"'.encode() in page.body
    assert b"<script" not in page.body
    assert b"terminal" not in page.body  # nothing is shown of the request before the person goes on
    assert error_of(device.poll()) == (400, "authorization_pending")


def test_the_page_is_protected_as_the_inspector_is(shared: LiveGateway):
    page = Browser(shared).get("/device?user_code=%22%3E%3Cscript%3Ealert(1)%3C/script%3E")
    assert b"<script" not in page.body
    assert page.headers["content-security-policy"] == (
        "default-src 'none'; style-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    )
    assert page.headers["x-frame-options"] == "DENY"
    assert page.headers["x-content-type-options"] == "nosniff"
    assert page.headers["cache-control"] == "no-store"
    assert page.headers["referrer-policy"] == "same-origin"
    cookie = page.headers["set-cookie"]
    assert "; HttpOnly; SameSite=Lax" in cookie
    assert send(shared, "GET", "/device/page.css").headers["content-type"] == "text/css; charset=utf-8"


@pytest.mark.parametrize(
    "how",
    [
        {"site": "cross-site"},
        {"site": "same-site"},
        {"site": None, "origin": "https://elsewhere.example"},
        {"site": None, "origin": "null"},
    ],
)
def test_a_form_of_another_site_decides_nothing(running: LiveGateway, how: dict[str, str | None]):
    device, browser = Device(running), Browser(running)
    device.begin()
    browser.enter(device.user_code)
    answer = browser.post({"action": "key", "key": KEY}, **how)  # type: ignore[arg-type]  # None leaves a header out
    assert answer.status == 403
    assert error_of(device.poll()) == (400, "authorization_pending")


def test_a_form_without_the_token_or_the_cookie_of_its_browser_decides_nothing(running: LiveGateway):
    device, browser, other = Device(running), Browser(running), Browser(running)
    device.begin()
    browser.enter(device.user_code)
    other.enter(device.user_code)
    assert browser.post({"action": "deny", "csrf": ""}).status == 403
    browser.enter(device.user_code)
    assert browser.post({"action": "deny", "csrf": other.csrf}).status == 403
    browser.enter(device.user_code)
    browser.cookies.clear()
    assert browser.post({"action": "deny"}).status == 403
    browser.enter(device.user_code)
    browser.cookies = {name: value[:-4] + "AAAA" for name, value in browser.cookies.items()}
    assert browser.post({"action": "deny"}).status == 403
    assert error_of(device.poll()) == (400, "authorization_pending")


def test_nobody_approves_without_signing_in(running: LiveGateway):
    device, browser = Device(running), Browser(running)
    device.begin()
    browser.enter(device.user_code)
    assert browser.post({"action": "approve"}).status == 400
    assert browser.post({"action": "assign", "name": "ada"}).status == 400
    assert browser.post({"action": "key", "key": "wg-wrong"}).status == 401
    assert browser.post({"action": "key", "key": ADMIN}).status == 400  # approval is by key alone
    assert browser.post({"action": "unknown"}).status == 400
    assert error_of(device.poll()) == (400, "authorization_pending")


def test_the_admin_signs_a_person_in():
    with gateway('approval = ["key", "admin"]', "[groups.dev]\nrequests_per_minute = 60") as running:
        device, browser = Device(running), Browser(running)
        device.begin()
        page = browser.sign_in(device.user_code, ADMIN)
        assert b"For whom" in page.body
        assert browser.post({"action": "assign", "name": "not/a/name"}).status == 400
        done = browser.post({"action": "assign", "name": "dan@example.com", "group": "dev"})
        assert done.status == 200
        tokens = device.poll().json()
        assert tokens["email"] == "dan@example.com"
        assert ask(running, tokens["access_token"]).status == 200
        made = Visitor(running).get("/v1/admin/keys/dan@example.com", authorization=f"Bearer {ADMIN}").json()
        assert (made["group"], made["owner"]) == ("dev", "dan@example.com")
        # One of the configuration.
        device.begin()
        browser.sign_in(device.user_code, ADMIN)
        assert browser.post({"action": "assign", "name": "bob"}).status == 200
        assert device.poll().status == 200


# Attacks by number.


def test_codes_cannot_be_guessed_from_one_address(running: LiveGateway):
    device, browser = Device(running), Browser(running)
    device.begin()
    browser.enter(device.user_code)  # the right one does not count
    for _ in range(MAX_WRONG_CODES):
        assert browser.post({"action": "code", "user_code": "BCDF-GHJK"}).status == 400
    blocked = browser.post({"action": "code", "user_code": device.user_code})
    assert blocked.status == 429
    assert int(blocked.headers["retry-after"]) > 0


def test_one_address_gets_a_bounded_number_of_codes(running: LiveGateway):
    device = Device(running)
    for _ in range(MAX_REQUESTS):
        device.begin()
    refused = device.form("/oauth/device_authorization", {})
    assert error_of(refused) == (429, "slow_down")
    assert "error_description" in refused.json()
    assert int(refused.headers["retry-after"]) > 0


GARBAGE = (
    b"\xff\xfe\x00",
    b"&" * 100,
    b"a=1&" * 100,
    b"grant_type=%00%ff&device_code=%00&refresh_token=%00&token=%00&csrf=%00&action=code&user_code=%00",
    b"grant_type=refresh_token&refresh_token=wgr-0123456789ab.%f0%9f%98%80",
    b"action=assign&name=%00&csrf=" + b"x" * 5000,
    b"surface=" + b"%00" * 60,
)


@pytest.mark.parametrize(
    "kind", ["application/x-www-form-urlencoded", "application/x-www-form-urlencoded; charset=x"]
)
def test_garbage_is_refused_or_ignored(shared: LiveGateway, kind: str):
    for path in ("/oauth/token", "/oauth/revoke", "/device"):
        for body in GARBAGE:
            assert send(shared, "POST", path, body, content_type=kind).status < 500
    too_large = send(shared, "POST", "/oauth/token", b"a" * 20_000, content_type=kind)
    assert too_large.status == 413


# Where it is off, and whose word counts.


def test_it_is_off_without_its_table_and_where_no_key_is_needed():
    bare = LiveGateway(f"[providers.demo]\n{keys_table(ada=KEY)}")
    open_door = LiveGateway("[providers.demo]\n[login]\n")
    for each in (bare, open_door):
        with each as running:
            assert send(running, "GET", "/.well-known/oauth-authorization-server").status == 404
            assert send(running, "GET", "/device").status == 404
            form = send(
                running, "POST", "/oauth/token", b"", content_type="application/x-www-form-urlencoded"
            )
            assert form.status == 404


@pytest.mark.parametrize(
    "headers",
    [
        {"host": "elsewhere.example"},
        {"host": "127.0.0.1.elsewhere.example:80"},
        {"host": "allowed.example"},
        {"x_forwarded_host": "elsewhere.example"},
    ],
)
def test_a_host_header_makes_no_address_of_the_gateway(headers: dict[str, Any]):
    with gateway(server='hosts = ["allowed.example"]') as running:
        for path in ("/.well-known/oauth-authorization-server", "/device"):
            answer = send(running, "GET", path, **headers)
            assert answer.status in (403, 404)
            assert b"http://allowed" not in answer.body
            assert b"elsewhere" not in answer.body


def test_the_public_url_is_the_address_whatever_the_host_header_says():
    with gateway('public_url = "https://gateway.example.com"') as running:
        answer = send(running, "GET", "/.well-known/oauth-authorization-server", host="gateway.example.com")
        assert answer.json()["issuer"] == "https://gateway.example.com"
        document = Device(running, host="localhost:1").begin()
        assert document["verification_uri"] == "https://gateway.example.com/device"
        browser = Browser(running, host="gateway.example.com")
        page = browser.get("/device")
        assert page.headers["set-cookie"].startswith("__Host-wireglot-login=")
        assert page.headers["set-cookie"].endswith("; Secure")


def test_another_site_gets_no_codes(shared: LiveGateway):
    refused = Device(shared, origin="https://elsewhere.example").form("/oauth/device_authorization", {})
    assert refused.status == 403


def test_other_methods_are_refused(shared: LiveGateway):
    answer = send(shared, "GET", "/oauth/token")
    assert (answer.status, answer.headers["allow"]) == (405, "POST")
