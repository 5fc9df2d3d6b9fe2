"""What is recorded of one client key is nobody else's to see, whatever route is asked."""

from __future__ import annotations

import ast
import http.client
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

import wireglot.gateway
from tests.gateway.inspector.inspector_kit import ADMIN, KEY, Visitor, configured, keys_table
from tests.waiting import DEADLINE_SECONDS, wait_until
from wireglot.gateway.errors import RequestError
from wireglot_core.dialects.openai_shared import type_and_code

OTHER_KEY = "wg-another-key-0123456789"
API = "/inspector/api"


@pytest.fixture(scope="module")
def seen():
    """Three visitors, and an exchange of each of two keys, recorded whole."""
    tables = ('[trace]\nmode = "all"', keys_table(a=KEY, b=OTHER_KEY))
    with configured(f'admin_secret = "{ADMIN}"', *tables) as gateway:
        visitors = [Visitor(gateway).browse() for _ in range(3)]
        for visitor, secret in zip(visitors, (KEY, OTHER_KEY, ADMIN), strict=True):
            assert visitor.sign_in(secret).status == 200
        a, b, admin = visitors
        ids = [each.post(f"{API}/ask", {"text": "the secret word"}).json()["id"] for each in (a, b)]
        wait_until(lambda: {admin.get(f"{API}/exchanges/{id}/export").status for id in ids} == {200})
        yield a, b, admin, ids


def listed(visitor: Visitor, query: str = "") -> set[str]:
    return {row["id"] for row in visitor.get(f"{API}/exchanges{query}").json()["rows"]}


def test_lists_and_searches_hold_ones_own(seen):
    a, b, admin, (of_a, of_b) = seen
    for query in ("", "?q=secret", "?key=a", "?key=b", "?limit=1000"):
        assert listed(a, query) <= {of_a}, query
        assert listed(b, query) <= {of_b}, query
    assert listed(a) == {of_a}
    assert listed(b, "?q=secret%20word") == {of_b}
    assert listed(admin) == {of_a, of_b}


def test_an_error_has_the_code_that_the_reference_promises(seen):
    a, _, _, (of_a, _) = seen
    nobody = "req_" + "0" * 24
    assert a.get(f"{API}/exchanges/{nobody}").code == "exchange_not_found"
    assert a.get(f"{API}/exchanges/{nobody}/export").code == "exchange_not_found"
    for part in ("client", "nowhere"):
        assert a.get(f"{API}/exchanges/{of_a}/image?part={part}&pointer=/messages/0").code == "no_picture"
    asked = {"id": nobody, "to": "demo/demo", "dry": True}
    assert a.post(f"{API}/replay", asked).code == "exchange_not_found"


# Parsed before anything runs: Python 3.11 cannot parse in two threads at once, and a traceback is parsed too.
TREES = {
    folder: [
        (file, ast.parse(file.read_text()))
        for file in sorted((Path(wireglot.gateway.__file__).parent / folder).glob("*.py"))
    ]
    for folder in ("inspector", "trace")
}


@pytest.mark.parametrize("folder", TREES)
def test_every_code_that_is_written_down_is_reported_as_it_is(folder):
    """A kind of error has a usual code, which stood in place of those that nobody had listed."""
    codes = set()
    for file, tree in TREES[folder]:
        for call in ast.walk(tree):
            if (
                isinstance(call, ast.Call)
                and isinstance(call.func, ast.Name)
                and call.func.id == "RequestError"
            ):
                # One that is handed on is written down where it is made.
                given = [
                    each.value
                    for each in call.keywords
                    if each.arg == "code" and isinstance(each.value, ast.Constant)
                ]
                for kind, code in zip(call.args, given, strict=False):
                    error = RequestError(ast.literal_eval(kind), "no", code=ast.literal_eval(code)).error
                    assert type_and_code(error)[1] == ast.literal_eval(code), file
                    codes.add(ast.literal_eval(code))
    assert codes


def test_another_ones_exchange_is_as_if_it_were_not_there(seen):
    a, b, admin, (of_a, of_b) = seen
    for path in ("", "/export", "/image?part=client&pointer=/messages/0"):
        theirs = a.get(f"{API}/exchanges/{of_b}{path}")
        nobodys = a.get(f"{API}/exchanges/{'req_' + '0' * 24}{path}")
        assert theirs.status == nobodys.status == 404, path
        assert theirs.message.replace(of_b, "") == nobodys.message.replace("req_" + "0" * 24, ""), path
    replayed = {"id": of_a, "to": "demo/demo", "dry": True}
    assert b.post(f"{API}/replay", replayed).status == 404
    assert a.post(f"{API}/replay", replayed).status == 200
    assert a.get(f"{API}/exchanges?before={of_b}").status == 400
    assert a.get(f"{API}/exchanges?before={of_a}").status == 200
    assert admin.get(f"{API}/exchanges/{of_b}").status == 200


def test_only_who_sees_everything_turns_recording_on(seen):
    a, _, admin, _ = seen
    assert a.post(f"{API}/recording", {"minutes": 5}).status == 403
    assert admin.post(f"{API}/recording", {"minutes": 0}).status == 200


def test_no_secret_is_in_what_was_recorded(seen):
    a, _, admin, (of_a, _) = seen
    for visitor in (a, admin):
        body = (
            visitor.get(f"{API}/exchanges/{of_a}").body + visitor.get(f"{API}/exchanges/{of_a}/export").body
        )
        for secret in (KEY, OTHER_KEY, ADMIN, a.cookie.partition("=")[2], a.csrf):
            assert secret.encode() not in body


def test_one_key_cannot_take_all_places_at_the_live_list(seen):
    a, b, admin, _ = seen
    with ExitStack() as open_pages:
        for _ in range(6):
            assert open_pages.enter_context(following(a)).status == 200
        refused = a.get(f"{API}/live")
        assert (refused.status, refused.code) == (429, "too_many_listeners")
        assert "close one of them" in refused.message
        assert open_pages.enter_context(following(b)).status == 200
        assert open_pages.enter_context(following(admin)).status == 200
    wait_until(lambda: _may_follow(a), "a place is free again once a page is closed")


def _may_follow(visitor: Visitor) -> bool:
    with following(visitor) as answer:
        return answer.status == 200


@contextmanager
def following(visitor: Visitor) -> Iterator[http.client.HTTPResponse]:
    """A page that listens, until it is closed."""
    connection = http.client.HTTPConnection("127.0.0.1", visitor.port, timeout=DEADLINE_SECONDS)
    try:
        connection.request("GET", f"{API}/live", headers={**visitor.headers, "cookie": visitor.cookie})
        yield connection.getresponse()
    finally:
        connection.close()
