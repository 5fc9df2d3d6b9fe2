"""Pages: what is fetched, in which forms, and within which bounds."""

from __future__ import annotations

import asyncio
import base64
from typing import Any, get_args

import pytest

from tests.http.transport_kit import Peer, Server, answer, chunked
from tests.tiers import rows
from tests.web.fetch_kit import PUBLIC, Network, fetched, got, refused
from wireglot.http.transport import Answer, Outbound, Timeouts, TransportFault, TransportProblem
from wireglot.web.contract import MediaFile, Page, WebFailed
from wireglot.web.fetch import USER_AGENT, FetchPolicy, WebFetch


def page(url: str = "http://example.com/", **given: Any) -> Page:
    came, _, _ = got(url, **given)
    assert isinstance(came, Page), came
    return came


def failed(url: str = "http://example.com/", **given: Any) -> WebFailed:
    came, _, _ = got(url, **given)
    assert isinstance(came, WebFailed), came
    return came


def typed(body: bytes, mime: str) -> bytes:
    return answer(body, headers=f"content-type: {mime}\r\n" if mime else "")


TYPES = [
    ("text/html; charset=utf-8", b"<title>T</title><p>x", "T", "x"),
    ("TEXT/HTML", b"<p>x", "", "x"),
    ("application/xhtml+xml", b"<html><body><p>x</p></body></html>", "", "x"),
    ("text/plain", b"<p>x", "", "<p>x"),
    ("text/markdown", b"# x", "", "# x"),
    ("text/css", b"a {}", "", "a {}"),
    ("application/json", b'{"a": 1}', "", '{"a": 1}'),
    ("application/ld+json; x=y", b"{}", "", "{}"),
    ("application/xml", b"<a/>", "", "<a/>"),
    ("application/rss+xml", b"<rss/>", "", "<rss/>"),
    ("", b"  <html><p>x", "", "x"),
    ("", b"words", "", "words"),
    ("text/html ; x=1; Charset='ISO-8859-7' ", b"<p>\xe1", "", "α"),
    ("text/plain;charset=iso-8859-7,text/html", b"<p>\xe1", "", "<p>α"),
    ("text/plain; notcharset=iso-8859-7", b"\xe1", "", "á"),
]


@rows("mime, body, title, text", TYPES)
def test_text_of_these_types_is_read(mime, body, title, text):
    came = page(respond=typed(body, mime))
    assert (came.title, came.text, came.data) == (title, text, "")
    assert came.retrieved == "2026-05-28T20:26:40Z"


def test_a_pdf_is_passed_on_whole():
    body = b"%PDF-1.7\n\xff\x00 binary"
    for mime in ("application/pdf", ""):
        came = page("http://example.com/papers/one.pdf?x", respond=typed(body, mime))
        assert (came.mime, came.title, came.text) == ("application/pdf", "one.pdf", "")
        assert base64.b64decode(came.data) == body


@rows(
    "mime",
    ["image/png", "application/octet-stream", "application/zip", "video/mp4", "font/woff2", "x", "*/*"],
)
def test_other_types_are_refused_without_reading_them(mime):
    assert failed(respond=typed(b"x" * 100, mime)).code == "unsupported_content_type"


def test_a_pdf_is_known_by_its_mark_within_the_first_kilobyte():
    for before, fine in ((1019, True), (1020, False)):
        came, _, _ = got("http://example.com/", typed(b" " * before + b"%PDF-1.7", "application/pdf"))
        assert isinstance(came, Page) is fine, before
    assert page(respond=typed(b" \n%PDF-1.7", "")).mime == "application/pdf"
    assert page(respond=typed(b"x%PDF-1.7", "")).mime == "text/plain"
    assert page(respond=typed(b"x" * 1024 + b"\0", "")).text[1020:] == "xxxx\0"
    assert failed(respond=typed(b"x" * 1023 + b"\0", "")).code == "unsupported_content_type"


def test_the_type_that_is_refused_is_shown_in_short():
    came = failed(respond=typed(b"x", "image/" + "y" * 200))
    assert str(came) == (f"the page is image/{'y' * 94}: text, HTML, JSON, XML and PDF can be fetched")


def media(url: str, respond: bytes, policy: FetchPolicy | None = None, head: list[str] | None = None) -> Any:
    async def serve(peer: Peer) -> None:
        while True:
            await peer.request()
            if head is not None:
                head.append(peer.requests[-1].decode().lower())
            await peer.send(respond)

    async def run() -> Any:
        async with Server(serve) as server:
            network = Network({"example.com": [PUBLIC], "inside.example": ["10.0.0.1"]}, server.port)
            fetch = WebFetch(policy or FetchPolicy(), transport=network.transport())
            try:
                return await fetch.media(url)
            except WebFailed as failed:
                return failed
            finally:
                await fetch.close()

    return asyncio.run(run())


def test_a_picture_is_fetched_as_its_bytes_with_the_type_that_its_server_states():
    head: list[str] = []
    came = media(" http://example.com/a.png\n", typed(b"\x89PNG\0", "Image/PNG; q=1"), head=head)
    assert came == MediaFile("http://example.com/a.png", "image/png", b"\x89PNG\0")
    assert media("http://example.com/a", typed(b"x", "")).mime == ""
    (sent,) = head
    assert "accept: image/*, audio/*, video/*, application/pdf" in sent
    assert f"user-agent: {USER_AGENT}".lower() in sent
    assert "accept-language" not in sent


def test_a_picture_is_fetched_within_the_rules_and_limits_of_pages():
    picture = typed(b"x" * 11, "image/png")
    for url, policy, code in (
        ("http://inside.example/", None, "url_not_allowed"),
        ("http://example.com/", FetchPolicy(blocked_domains=("example.com",)), "url_not_allowed"),
        ("http://example.com/", FetchPolicy(max_bytes=10), "content_too_large"),
    ):
        assert media(url, picture, policy).code == code
    assert media("http://example.com/", answer(b"", status="404 No")).code == "url_not_accessible"


def test_white_space_around_a_url_is_left_out():
    assert page(" http://example.com/x \n", respond=typed(b"x", "text/plain")).url == "http://example.com/x"


@rows("status", ["200 OK", "201 Made", "299 Fine"])
def test_every_status_of_success_is_a_page(status):
    body = answer(b"x", status=status, headers="content-type: text/plain\r\n")
    assert page(respond=body).text == "x"


def test_a_redirect_that_leads_nowhere_is_an_error_status():
    assert str(failed(respond=answer(b"", status="302 Found"))) == "the host answered with status 302"
    assert (
        str(failed(respond=answer(b"", status="300 Many", headers="location: /x\r\n")))
        == "the host answered with status 300"
    )


def test_each_problem_of_a_connection_is_reported_in_words():
    """By their codes: a page that is not there, one that is too large, and no room for one more."""

    class Failing:
        def __init__(self, problem: TransportProblem) -> None:
            self._problem = problem

        async def send(self, outbound: Outbound, timeouts: Timeouts) -> Answer:
            raise TransportFault(self._problem, "secret detail")

        async def close(self) -> None: ...

    async def run(transport: Any) -> WebFailed:
        fetch = WebFetch(FetchPolicy(), transport=lambda guard: transport)
        with pytest.raises(WebFailed) as caught:
            await fetch.fetch("http://example.com/")
        await fetch.close()
        return caught.value

    for problem in get_args(TransportProblem):
        came = asyncio.run(run(Failing(problem)))
        expected = {"too_large": "content_too_large", "busy": "unavailable"}.get(
            problem, "url_not_accessible"
        )
        assert came.code == expected
        assert "secret" not in str(came)


def test_a_fetch_has_one_timeout_for_all_that_a_connection_waits_for():
    seen: list[Timeouts] = []

    class Noting:
        async def send(self, outbound: Outbound, timeouts: Timeouts) -> Answer:
            seen.append(timeouts)
            assert (outbound.method, outbound.proxy) == ("GET", "http://10.9.9.9:3128")
            raise TransportFault("connect", "")

        async def close(self) -> None: ...

    async def run() -> None:
        policy = FetchPolicy(timeout=7.0, proxy="http://10.9.9.9:3128")
        transport: Any = Noting()
        fetch = WebFetch(policy, transport=lambda guard: transport)
        with pytest.raises(WebFailed):
            await fetch.fetch(f"http://{PUBLIC}/")
        with pytest.raises(WebFailed, match="public internet"):
            await fetch.fetch("http://10.0.0.1/")

    asyncio.run(run())
    assert seen == [Timeouts(connect=7.0, tls=7.0, first_byte=7.0, idle=7.0, total=7.0)]


def test_what_only_says_that_it_is_a_pdf_is_refused():
    assert failed(respond=typed(b"MZ\x90\x00", "application/pdf")).code == "unsupported_content_type"


def test_bytes_without_a_type_that_are_no_text_are_refused():
    assert failed(respond=typed(b"\x7fELF\x00\x00", "")).code == "unsupported_content_type"


@rows(
    "status",
    ["400 Bad", "401 No", "403 No", "404 No", "410 Gone", "429 Later", "500 No", "503 No", "304 Same"],
)
def test_an_error_status_is_no_page(status):
    came = failed(respond=answer(b"text", status=status, headers="content-type: text/html\r\n"))
    assert (came.code, str(came)) == ("url_not_accessible", f"the host answered with status {status[:3]}")


def test_a_page_may_be_as_large_as_the_limit_and_no_larger():
    policy = FetchPolicy(max_bytes=1000)
    for framed in (
        lambda body: typed(body, "text/plain"),
        lambda body: chunked(body, headers="content-type: text/plain\r\n"),
    ):
        assert len(page(respond=framed(b"x" * 1000), policy=policy).text) == 1000
        assert failed(respond=framed(b"x" * 1001), policy=policy).code == "content_too_large"


def test_a_head_without_end_is_refused():
    assert failed(respond=answer(b"x", headers="x: " + "y" * 70_000 + "\r\n")).code == "url_not_accessible"
    many = "".join(f"x-{n}: y\r\n" for n in range(300))
    assert failed(respond=answer(b"x", headers=many)).code == "url_not_accessible"


@rows("sent", [b"nonsense\r\n\r\n", b"HTTP/1.1 101 Switching\r\nupgrade: x\r\n\r\n", b""])
def test_what_is_no_http_is_reported(sent):
    async def serve(peer: Peer) -> None:
        await peer.request()
        await peer.send(sent)

    assert against(serve).code == "url_not_accessible"


def against(serve, policy: FetchPolicy | None = None) -> WebFailed:
    async def run() -> WebFailed:
        async with Server(serve) as server:
            network = Network({"example.com": [PUBLIC]}, server.port)
            with pytest.raises(WebFailed) as caught:
                await fetched("http://example.com/", network, policy=policy)
            return caught.value

    return asyncio.run(run())


@pytest.mark.parametrize("stage", ["before the head", "in the head", "in the body", "drop by drop"])
def test_a_page_that_takes_too_long_is_given_up(stage):
    """The limit is for all of it: a byte now and then does not renew it."""

    async def serve(peer: Peer) -> None:
        await peer.request()
        if stage == "in the head":
            await peer.send(b"HTTP/1.1 200 OK\r\ncontent-")
        elif stage == "in the body":
            await peer.send(b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 9\r\n\r\nx")
        elif stage == "drop by drop":
            await peer.send(b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 99999\r\n\r\n")
            while True:
                await peer.send(b"x")
                await asyncio.sleep(0.01)
        await peer.gone()

    came = against(serve, FetchPolicy(timeout=0.3))
    assert came.code == "url_not_accessible"
    assert "0.3 s" in str(came) or "time" in str(came) or "took too long" in str(came)


def test_redirects_share_one_limit_of_time():
    async def serve(peer: Peer) -> None:
        while True:
            await peer.request()
            await asyncio.sleep(0.15)
            await peer.send(answer(b"", status="302 Found", headers="location: /again\r\n"))

    assert "0.3 s" in str(against(serve, FetchPolicy(timeout=0.3)))


def test_a_name_that_does_not_exist_and_a_host_that_does_not_listen_are_reported():
    assert str(refused("http://nowhere.example/", Network())) == "the host name cannot be resolved"
    assert (
        str(refused("http://closed.example/", Network({"closed.example": [PUBLIC]})))
        == "no connection to the host"
    )


def test_the_request_says_honestly_what_it_is_and_nothing_else():
    heads: list[str] = []

    async def run() -> None:
        async with Server(serve) as server:
            network = Network({"example.com": [PUBLIC]}, server.port)
            await fetched("http://example.com/x?y=1", network)

    async def serve(peer: Peer) -> None:
        await peer.request()
        heads.append(peer.requests[-1].decode())
        await peer.send(typed(b"x", "text/plain"))

    asyncio.run(run())
    (head,) = heads
    lines = head.lower().split("\r\n")
    assert lines[0] == "get /x?y=1 http/1.1"
    assert f"user-agent: {USER_AGENT}".lower() in lines
    names = {line.partition(":")[0] for line in lines[1:] if line}
    assert names == {"host", "user-agent", "accept", "accept-language", "accept-encoding"}
    assert "accept: text/html, application/xhtml+xml, application/pdf, text/*;q=0.9, */*;q=0.1" in lines
    assert "accept-language: en, *;q=0.5" in lines


def test_domains_of_the_request_and_of_the_operator_are_kept_to_at_every_hop():
    def respond(host: str, path: str) -> bytes:
        if path == "/away":
            return answer(b"", status="302 Found", headers="location: http://other.example/\r\n")
        return typed(host.encode(), "text/plain")

    names = {"docs.example.com": [PUBLIC], "other.example": [PUBLIC], "example.com": [PUBLIC]}
    fine = page("http://docs.example.com/", respond=respond, names=names, allowed_domains=["example.com"])
    assert fine.text == "docs.example.com"
    for url, given in (
        ("http://docs.example.com/away", {"allowed_domains": ["example.com"]}),
        ("http://docs.example.com/away", {"blocked_domains": ["other.example"]}),
        ("http://docs.example.com/", {"blocked_domains": ["example.com"]}),
        ("http://docs.example.com/", {"allowed_domains": ["docs.example.com/api"]}),
        ("http://docs.example.com/", {"policy": FetchPolicy(allowed_domains=("other.example",))}),
        ("http://docs.example.com/", {"policy": FetchPolicy(blocked_domains=("docs.example.com",))}),
        (
            "http://docs.example.com/",
            {"policy": FetchPolicy(allowed_domains=("example.com",)), "allowed_domains": ["other.example"]},
        ),
    ):
        came, network, _ = got(url, respond, names=names, **given)
        assert isinstance(came, WebFailed), url
        assert str(came) == "the domain is not among those that may be fetched from"
        assert len(network.connected) == url.endswith("/away")


def test_text_is_cut_at_the_smaller_limit_with_a_visible_mark():
    body = typed(b"word " * 1000, "text/plain")
    policy = FetchPolicy(max_tokens=100)
    mark = "\n\n[Truncated: the page goes on after about {} tokens.]"
    for asked, limit in ((None, 100), (10, 10), (5000, 100)):
        text = page(respond=body, policy=policy, max_tokens=asked).text
        assert text.endswith(mark.format(limit))
        assert len(text) <= 4 * limit + len(mark.format(limit))
    assert page(respond=typed(b"short", "text/plain"), policy=policy).text == "short"


def test_more_pages_than_fit_wait_for_one_another():
    """Each holds its bytes in memory."""
    begun: list[str] = []

    class Waiting:
        async def send(self, outbound: Outbound, timeouts: Timeouts) -> Answer:
            begun.append(outbound.url)
            await go_on.wait()
            raise TransportFault("connect", "")

    async def run() -> None:
        transport: Any = Waiting()
        fetch = WebFetch(FetchPolicy(timeout=60.0), transport=lambda guard: transport)
        tasks = [asyncio.ensure_future(fetch.fetch(f"http://example.com/{n}")) for n in range(80)]
        for _ in range(100):
            await asyncio.sleep(0)
        assert len(begun) == 32
        go_on.set()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert len(begun) == 80

    go_on = asyncio.Event()
    asyncio.run(run())


def test_a_cancelled_fetch_leaves_nothing_behind():
    async def serve(peer: Peer) -> None:
        await peer.request()
        arrived.set()
        await peer.gone()

    arrived = asyncio.Event()

    async def run() -> None:
        async with Server(serve) as server:
            network = Network({"example.com": [PUBLIC]}, server.port)
            fetch = WebFetch(FetchPolicy(timeout=60.0), transport=network.transport())
            task = asyncio.ensure_future(fetch.fetch("http://example.com/"))
            await arrived.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert fetch._transport.open_connections == 0  # type: ignore[attr-defined]  # of the real one
            await fetch.close()

    asyncio.run(run())


def test_a_policy_does_not_show_its_proxy():
    assert "hunter2" not in repr(FetchPolicy(proxy="http://user:hunter2@proxy:3128"))
