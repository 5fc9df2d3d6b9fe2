"""A gateway, and somebody who asks its inspector: with or without a browser's headers, cookies and tokens."""

from __future__ import annotations

import hashlib
import http.client
import json
from typing import Any, Protocol

from wireglot.testing.live_gateway import LiveGateway

ADMIN = "admin-secret-0123456789"
KEY = "wg-client-key-0123456789"


def keys_table(**keys: str) -> str:
    """[keys] of these names and secrets."""
    lines = [f'{name} = "sha256:{hashlib.sha256(key.encode()).hexdigest()}"' for name, key in keys.items()]
    return "[keys]\n" + "\n".join(lines) + "\n"


def configured(server: str = "", *tables: str) -> LiveGateway:
    """One with the demo model alone. `server`: lines of [server]."""
    return LiveGateway(f"[server]\n{server}\n[providers.demo]\n" + "\n".join(tables))


class Answer:
    def __init__(self, status: int, headers: list[tuple[str, str]], body: bytes) -> None:
        self.status = status
        self.pairs = [(name.lower(), value) for name, value in headers]
        self.headers = dict(self.pairs)
        self.body = body

    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def message(self) -> str:
        return str(self.json()["error"]["message"])

    @property
    def code(self) -> str:
        return str(self.json()["error"]["code"])


class Listening(Protocol):
    @property
    def port(self) -> int: ...


class Visitor:
    """Asks as a program does; as a browser does once `browse` was said. Keeps its cookie and its token."""

    def __init__(self, gateway: Listening) -> None:
        self._gateway = gateway
        self.cookie = ""
        self.csrf = ""
        self.headers: dict[str, str] = {}

    @property
    def port(self) -> int:
        return self._gateway.port

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def browse(self) -> Visitor:
        self.headers = {"sec-fetch-site": "same-origin", "sec-fetch-mode": "cors", "sec-fetch-dest": "empty"}
        return self

    def ask(self, method: str, path: str, document: Any = None, **headers: str | None) -> Answer:
        """`document`: bytes are sent as they are. `headers`: with _ for -; None leaves out one that would be
        sent."""
        sent: dict[str, str | None] = dict(self.headers)
        if self.cookie:
            sent["cookie"] = self.cookie
        if method not in ("GET", "HEAD"):
            sent |= {"x-wireglot-csrf": self.csrf or None, "origin": self.origin}
        body: bytes | None = document if isinstance(document, bytes) else None
        if document is not None and body is None:
            body = json.dumps(document).encode()
        if body is not None:
            sent["content-type"] = "application/json"
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        connection = http.client.HTTPConnection("127.0.0.1", self._gateway.port, timeout=60)
        try:
            connection.putrequest(method, path, skip_host="host" in sent, skip_accept_encoding=True)
            for name, value in sent.items():
                if value is not None:
                    connection.putheader(name, value)
            if body is not None and "content-length" not in sent:
                connection.putheader("content-length", str(len(body)))
            connection.endheaders(body)
            got = connection.getresponse()
            answer = Answer(got.status, got.getheaders(), got.read())
        finally:
            connection.close()
        return answer

    def get(self, path: str, **headers: str | None) -> Answer:
        return self.ask("GET", path, **headers)

    def post(self, path: str, document: Any, **headers: str | None) -> Answer:
        return self.ask("POST", path, document, **headers)

    def look(self) -> dict[str, Any]:
        """Learn who one is, and the token."""
        reported: dict[str, Any] = self.get("/inspector/api/session").json()
        self.csrf = reported["csrf"]
        return reported

    def sign_in(self, secret: str, **headers: str | None) -> Answer:
        answer = self.post("/inspector/api/session", {"secret": secret}, **headers)
        if answer.status == 200:
            self.cookie = answer.headers["set-cookie"].partition(";")[0]
            self.csrf = answer.json()["csrf"]
        return answer


def notes_of_start(gateway: LiveGateway) -> list[str]:
    return list(gateway.process._how_to_begin())
