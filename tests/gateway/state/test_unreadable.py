"""What another secret has sealed is not taken for nothing: nobody writes over a conversation that is only locked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from wireglot.testing.live_gateway import LiveGateway

SECRETS = ("the-first-secret-of-all", "another-one-that-came-later")


def gateway(folder: Path, secret: str, more: str = "") -> LiveGateway:
    return LiveGateway(f'[providers.demo]\n[server]\nsecret = "{secret}"\n{more}', folder=folder)


def ask(live: LiveGateway, method: str, path: str, body: Any = None) -> tuple[int, Any]:
    content = None if body is None else json.dumps(body).encode()
    request = Request(live.url + path, content, {"content-type": "application/json"}, method=method)
    try:
        with urlopen(request) as answer:
            return answer.status, json.loads(answer.read())
    except HTTPError as refused:
        return refused.code, json.loads(refused.read())


def turn(live: LiveGateway) -> tuple[int, Any]:
    body = {"model": "demo", "messages": [{"role": "user", "content": "hi"}], "conversation": "trip"}
    return ask(live, "POST", "/v1/chat/completions", body)


def test_a_conversation_of_another_secret_is_refused_until_it_is_deleted(tmp_path: Path) -> None:
    with gateway(tmp_path, SECRETS[0]) as live:
        assert turn(live)[0] == 200
    with gateway(tmp_path, SECRETS[1]) as live:
        status, reported = turn(live)
        assert (status, reported["error"]["code"]) == (503, "storage_unavailable")
        live.wait_log(1, "unreadable")
        assert ask(live, "DELETE", "/v1/sessions/trip")[0] == 200
        assert turn(live)[0] == 200
        assert len(ask(live, "GET", "/v1/sessions/trip")[1]["items"]) == 2


def test_an_old_secret_still_opens_what_it_sealed(tmp_path: Path) -> None:
    with gateway(tmp_path, SECRETS[0]) as live:
        assert turn(live)[0] == 200
    with gateway(tmp_path, SECRETS[1], f'old_secrets = ["{SECRETS[0]}"]\n') as live:
        assert turn(live)[0] == 200
        assert len(ask(live, "GET", "/v1/sessions/trip")[1]["items"]) == 4
