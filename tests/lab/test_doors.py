"""The trial of the doors notices an open one: each class, where somebody is let in."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from proofs.lab.doors import callers, envelopes, keys, origins, providers, routes, smuggling, ssrf, tls
from proofs.lab.doors.knocking import Book, answers, request
from proofs.lab.doors.stage import ANN, BOB, KEYS, Canary, Stage, staged
from proofs.lab.marking_upstream import MarkingUpstream
from proofs.served import keys_table
from wireglot.gateway.entry.routes import GET, OWN

LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)


def tried(module: ModuleType, folder: Path, *, every: int) -> Book:
    book = Book(module.__name__, every=every)
    asyncio.run(module.trial(book, folder))
    return book


def staged_with(**changes: str) -> Callable[..., Any]:
    """The stage of a class, but for some of its configuration."""
    return lambda folder, **usual: staged(folder, **{**usual, **changes})


async def _forward(port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """A front that knows lengths alone, and passes on whatever it reads as a body."""
    try:
        while head := await reader.readuntil(b"\r\n\r\n"):
            reported = LENGTH.search(head)
            body = await reader.readexactly(int(reported[1]) if reported else 0)
            if b"mark" in body:
                _, upstream = await asyncio.open_connection("127.0.0.1", port)
                upstream.write(request("POST", "/v1/chat/completions", body))
                await upstream.drain()
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
            if b"connection: close" in head:
                break
    except (asyncio.IncompleteReadError, ConnectionError, ValueError):
        pass
    finally:
        writer.close()


@asynccontextmanager
async def careless_front(folder: Path) -> AsyncIterator[Stage]:
    stage = Stage(folder, MarkingUpstream(record=True), Canary())
    port = await stage.upstream.start()
    server = await asyncio.start_server(lambda *streams: _forward(port, *streams), "127.0.0.1", 0)
    stage.port = server.sockets[0].getsockname()[1]
    yield stage
    server.close()
    await stage.upstream.stop()


def test_a_front_that_reads_lengths_alone_is_found_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(smuggling, "staged", careless_front)
    monkeypatch.setattr(smuggling, "PATIENCE_SECONDS", 1.0)
    found = tried(smuggling, tmp_path, every=400).admitted
    assert [one for one in found if "the hidden request was asked" in one]


def test_an_answer_with_nobodys_mark_is_found_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def hidden(made: providers.Made, said: bytes, body: bytes) -> bytes:
        return providers._hidden(said, body)

    monkeypatch.setattr(providers, "_followed", hidden)
    book = tried(providers, tmp_path, every=200)
    assert len(book.admitted) == book.attempts > 0


@pytest.mark.whole
@pytest.mark.parametrize(
    ("module", "changes", "every"),
    [
        (origins, {"server": 'origins = ["https://evil.test"]\nhosts = ["evil.test"]\n'}, 41),
        (keys, {"tables": ""}, 97),
        (envelopes, {"server": f'secret = "{envelopes.FOREIGN}"\n'}, 37),
    ],
    ids=["origins", "keys", "envelopes"],
)
def test_a_door_that_stands_open_is_found_out(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    module: ModuleType,
    changes: dict[str, str],
    every: int,
) -> None:
    monkeypatch.setattr(module, "staged", staged_with(**changes))
    assert tried(module, tmp_path, every=every).admitted


@pytest.mark.whole
def test_a_header_that_is_passed_on_is_found_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ssrf, "_NOT_PASSED", ("user-agent",))
    assert tried(ssrf, tmp_path, every=499).admitted


@pytest.mark.whole
def test_two_callers_who_are_one_are_found_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(KEYS, BOB, KEYS[ANN])
    only = keys_table({ANN: KEYS[ANN]})
    monkeypatch.setattr(callers, "staged", staged_with(tables=only))
    found = tried(callers, tmp_path, every=4).admitted
    assert [one for one in found if "he is informed of hers" in one]


@pytest.mark.whole
def test_a_provider_that_is_trusted_is_found_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tls, "BAD", {"good": tls.Certificate()})
    found = tried(tls, tmp_path, every=8).admitted
    assert [one for one in found if "bytes were said" in one]


def test_no_route_admits_a_page_of_a_browser(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every route and one attack of each kind; the trial itself has all of them."""
    monkeypatch.setattr(origins, "_HOSTS", ("evil.test",))
    monkeypatch.setattr(origins, "_ORIGINS", ("https://evil.test",))
    monkeypatch.setattr(origins, "_SIMPLE", ("text/plain",))
    book = tried(origins, tmp_path, every=1)
    assert (book.admitted, book.shut) == ([], [])
    assert book.attempts > 10 * len(routes.every_route())


def test_no_route_admits_a_caller_without_a_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keys, "METHODS", ("GET", "POST", "DELETE"))
    monkeypatch.setattr(keys, "_tricks", lambda path: [f"{path}/", f"/x/..{path}"])
    monkeypatch.setattr(keys, "_wrong", lambda: [("no key", {}), ("cut", {"x-api-key": keys._KEY[:-1]})])
    book = tried(keys, tmp_path, every=1)
    assert (book.admitted, book.shut) == ([], [])
    assert book.attempts > 10 * len(routes.every_route())


def test_all_routes_of_the_gateway_are_attacked() -> None:
    known = routes.every_route()
    assert {(own.method, own.path) for own in OWN} <= set(known)
    assert set(GET) <= {route.path for route in known}
    public = {route.path for route in known if routes.is_public(*route)}
    assert public == {
        "/", "/api/event_logging/batch", "/api/event_logging/v2/batch", "/api/hello", "/health", "/healthz",
        "/inference-profiles", "/ollama", "/readyz",
    }  # fmt: skip


def test_answers_are_distinguished() -> None:
    one = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
    two = b"HTTP/1.1 404 No\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
    reported = b"HTTP/1.1 100 Continue\r\n\r\n"
    assert [said.status for said in answers(reported + one + two + one)] == [100, 200, 404, 200]
    headless = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n"
    assert [said.status for said in answers(headless + two, is_head=True)] == [200, 404]
    assert [said.status for said in answers(one + b"junk")] == [200, 0]
