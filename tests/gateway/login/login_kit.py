"""A gateway that people sign in to, a client that asks for tokens, and a browser without scripts."""

from __future__ import annotations

import http.client
import json
import re
from typing import Any
from urllib.parse import urlencode, urlsplit

from tests.gateway.inspector.inspector_kit import ADMIN, KEY, Answer, Listening, keys_table
from wireglot.testing.live_gateway import LiveGateway

DEVICE_GRANT = "urn:ietf:params:oauth:grant-type:device_code"
FORM = "application/x-www-form-urlencoded"
OTHER_KEY = "wg-other-key-0123456789"


def gateway(login: str = "", *tables: str, server: str = "") -> LiveGateway:
    """One with two client keys and the demo model. `login`: lines of [login]."""
    return LiveGateway(
        f'[server]\nadmin_secret = "{ADMIN}"\n{server}\n[providers.demo]\n[login]\n{login}\n'
        + "\n".join((*tables, keys_table(ada=KEY, bob=OTHER_KEY)))
    )


def with_provider(provider: Any, more: str = "") -> str:
    """Lines of [login] for an identity provider."""
    return (
        f'issuer = "{provider.url}"\nclient_id = "{provider.client_id}"\n'
        f'client_secret = "{provider.client_secret}"\n{more}'
    )


def send(to: Listening, method: str, path: str, body: bytes | None = None, **headers: Any) -> Answer:
    connection = http.client.HTTPConnection("127.0.0.1", to.port, timeout=60)
    sent = {name.replace("_", "-"): value for name, value in headers.items() if value is not None}
    try:
        connection.putrequest(method, path, skip_host="host" in sent, skip_accept_encoding=True)
        for name, value in sent.items():
            connection.putheader(name, value)
        if body is not None:
            connection.putheader("content-length", str(len(body)))
        connection.endheaders(body)
        got = connection.getresponse()
        return Answer(got.status, got.getheaders(), got.read())
    finally:
        connection.close()


class Device:
    """A client that signs in. `host`: what it calls the gateway."""

    def __init__(self, to: Listening, **headers: str) -> None:
        self._to = to
        self._headers = headers
        self.device_code = ""
        self.user_code = ""

    def form(self, path: str, fields: dict[str, str]) -> Answer:
        return send(self._to, "POST", path, urlencode(fields).encode(), content_type=FORM, **self._headers)

    def begin(self, **fields: str) -> dict[str, Any]:
        answer = self.form("/oauth/device_authorization", {"surface": "terminal", **fields})
        assert answer.status == 200, answer.body
        document: dict[str, Any] = answer.json()
        self.device_code, self.user_code = document["device_code"], document["user_code"]
        return document

    def poll(self) -> Answer:
        return self.form("/oauth/token", {"grant_type": DEVICE_GRANT, "device_code": self.device_code})

    def renew(self, refresh_token: str) -> Answer:
        return self.form("/oauth/token", {"grant_type": "refresh_token", "refresh_token": refresh_token})

    def revoke(self, token: str) -> Answer:
        return self.form("/oauth/revoke", {"token": token})


class Browser:
    """Follows nothing by itself, keeps cookies, and says what browsers say about where a request is from."""

    def __init__(self, to: Listening, **headers: str) -> None:
        self._to = to
        self._headers = headers
        self.cookies: dict[str, str] = {}
        self.csrf = ""

    def get(self, path: str, *, site: str = "none") -> Answer:
        return self._kept(
            send(self._to, "GET", path, **self._sent(sec_fetch_site=site, sec_fetch_mode="navigate"))
        )

    def post(self, fields: dict[str, str], *, site: str | None = "same-origin", **headers: str) -> Answer:
        body = urlencode({"csrf": self.csrf, **fields}).encode()
        sent = self._sent(content_type=FORM, sec_fetch_site=site, **headers)
        return self._kept(send(self._to, "POST", "/device", body, **sent))

    def enter(self, user_code: str) -> Answer:
        """Open the page of a code and go on, as a person does."""
        self.get(f"/device?user_code={user_code}")
        return self.post({"action": "code", "user_code": user_code})

    def sign_in(self, user_code: str, key: str) -> Answer:
        self.enter(user_code)
        return self.post({"action": "key", "key": key})

    def sign_in_at(self, provider: Any, start: str = "/device/sign-in") -> Answer:
        """To the identity provider and back to the callback."""
        away = self.get(start, site="same-origin")
        assert away.status == 303, away.body
        return self.come_back(provider.log_in(away.headers["location"]))

    def come_back(self, url: str) -> Answer:
        parts = urlsplit(url)
        return self.get(f"{parts.path}?{parts.query}", site="cross-site")

    def _sent(self, **headers: Any) -> dict[str, Any]:
        cookie = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        return {**self._headers, **({"cookie": cookie} if cookie else {}), **headers}

    def _kept(self, answer: Answer) -> Answer:
        for name, value in answer.pairs:
            if name == "set-cookie":
                cookie, _, content = value.partition(";")[0].partition("=")
                self.cookies[cookie] = content
                if "Max-Age=0" in value:
                    del self.cookies[cookie]
        found = re.search(rb'name="csrf" value="([0-9a-f]+)"', answer.body)
        if found is not None:
            self.csrf = found[1].decode()
        return answer


def ask(to: Listening, token: str) -> Answer:
    """A request to a model."""
    body = json.dumps({"model": "demo", "messages": [{"role": "user", "content": "Hi"}]}).encode()
    return send(
        to,
        "POST",
        "/v1/chat/completions",
        body,
        authorization=f"Bearer {token}",
        content_type="application/json",
    )


def signed_in(to: Listening, key: str = KEY) -> dict[str, Any]:
    """The tokens of a new device."""
    device, browser = Device(to), Browser(to)
    device.begin()
    assert browser.sign_in(device.user_code, key).status == 200
    answer = device.poll()
    assert answer.status == 200, answer.body
    tokens: dict[str, Any] = answer.json()
    return tokens
