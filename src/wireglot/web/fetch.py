"""Fetches one page of the web: guarded, bounded in bytes, time, redirects and content types."""

from __future__ import annotations

import asyncio
import base64
import time
from collections.abc import Callable, Coroutine, Sequence
from datetime import UTC, datetime
from typing import Any, Final, TypeVar
from urllib.parse import urljoin, urlsplit

import msgspec

from wireglot import __version__
from wireglot.http.client.client import HttpTransport
from wireglot.http.client.dial import literal
from wireglot.http.client.origin import parse_url
from wireglot.http.transport import Answer, Outbound, Timeouts, Transport, TransportFault, TransportProblem
from wireglot.web.contract import MediaFile, Page, WebFailed, WebProblem
from wireglot.web.domains import DomainFilter, domain_filter
from wireglot.web.guard import Guard, parse_private_host
from wireglot.web.page_text import read_page

T = TypeVar("T")

# Redirects that are followed for one page.
MAX_REDIRECTS: Final = 5
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_MAX_CONCURRENT: Final = 32
"""Pages that are fetched at once; any more wait."""
USER_AGENT: Final = f"Wireglot/{__version__} (web fetch for a language model)"
_HEADERS: Final = [
    ("user-agent", USER_AGENT),
    ("accept", "text/html, application/xhtml+xml, application/pdf, text/*;q=0.9, */*;q=0.1"),
    ("accept-language", "en, *;q=0.5"),
]
_MEDIA_HEADERS: Final = [
    ("user-agent", USER_AGENT),
    ("accept", "image/*, audio/*, video/*, application/pdf, text/*;q=0.5, */*;q=0.1"),
]
_PDF: Final = "application/pdf"
_TEXTS: Final = frozenset({"application/json", "application/xml"})
_PROBLEMS: Final[dict[TransportProblem, tuple[WebProblem, str]]] = {
    "dns": ("url_not_accessible", "the host name cannot be resolved"),
    "connect": ("url_not_accessible", "no connection to the host"),
    "tls": ("url_not_accessible", "the TLS certificate of the host is not valid, or TLS failed"),
    "first_byte_timeout": ("url_not_accessible", "the host did not answer in time"),
    "idle_timeout": ("url_not_accessible", "the host stopped sending"),
    "total_timeout": ("url_not_accessible", "the page took too long"),
    "broken": ("url_not_accessible", "the host closed the connection too early"),
    "too_large": ("content_too_large", "the page is too large"),
    "protocol": ("url_not_accessible", "the host does not answer in valid HTTP"),
    "busy": ("unavailable", "no connection is free"),
}


class FetchPolicy(msgspec.Struct, frozen=True):
    """Limits of fetches."""

    max_bytes: int = 10 * 1024 * 1024
    """Size of a page, after decompression."""
    max_tokens: int = 50_000
    """Length of its text, by estimate."""
    timeout: float = 15.0
    allowed_domains: tuple[str, ...] = ()
    blocked_domains: tuple[str, ...] = ()
    private_hosts: tuple[str, ...] = ()
    """In the form of `guard.parse_private_host`."""
    proxy: str = ""

    def __repr__(self) -> str:
        return f"FetchPolicy({self.max_bytes} bytes)"


class _PoolLimits(msgspec.Struct, frozen=True):
    """Implements `ClientLimits`. Connections are not kept: pages of one host are rarely fetched in
    succession."""

    pool: int = _MAX_CONCURRENT
    queue: int = 0
    queue_time: float = 1.0
    pool_idle: float = 0.001
    write_pending: int = 64 * 1024


class WebFetch:
    """Implements `Fetch` and `FetchMedia`."""

    def __init__(
        self,
        policy: FetchPolicy,
        *,
        transport: Callable[[Guard], Transport] | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        """`transport` creates the transport, which must pass addresses to the guard."""
        private = (parse_private_host(text) for text in policy.private_hosts)
        self._guard = Guard([host for host in private if host is not None])
        self._policy = policy
        self._transport = (transport or _guarded)(self._guard)
        self._always = domain_filter(policy.allowed_domains, policy.blocked_domains)
        self._places = asyncio.Semaphore(_MAX_CONCURRENT)
        self._now = now

    async def fetch(
        self,
        url: str,
        *,
        allowed_domains: Sequence[str] = (),
        blocked_domains: Sequence[str] = (),
        max_tokens: int | None = None,
    ) -> Page:
        admitted = domain_filter(allowed_domains, blocked_domains).within(self._always)
        return await self._bounded(self._page(url.strip(), admitted, max_tokens))

    async def media(self, url: str) -> MediaFile:
        return await self._bounded(self._media(url.strip()))

    async def _bounded(self, work: Coroutine[Any, Any, T]) -> T:
        seconds = self._policy.timeout
        try:
            async with asyncio.timeout(seconds), self._places:
                return await work
        except TimeoutError:
            raise WebFailed("url_not_accessible", f"the page took more than {seconds:g} s") from None
        except TransportFault as fault:
            raise WebFailed(*_PROBLEMS[fault.problem]) from None
        finally:
            work.close()

    async def close(self) -> None:
        await self._transport.close()

    async def _page(self, url: str, admitted: DomainFilter, max_tokens: int | None) -> Page:
        place, answer = await self._followed(url, admitted, _HEADERS)
        mime, charset = _content_type(answer.headers.get("content-type", ""))
        if mime and not _is_supported(mime):
            answer.abort()
            raise _unsupported(mime)
        body = await answer.read(self._policy.max_bytes)
        mime = mime or _sniffed(body)
        moment = datetime.fromtimestamp(self._now(), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        if mime == _PDF:
            if b"%PDF-" not in body[:1024]:
                raise _unsupported("something that is no PDF")
            name = urlsplit(place).path.rpartition("/")[2]
            return Page(place, name, mime, data=base64.b64encode(body).decode("ascii"), retrieved=moment)
        limit = self._policy.max_tokens if max_tokens is None else min(max_tokens, self._policy.max_tokens)
        title, text = await asyncio.to_thread(read_page, body, mime, charset, place, limit)
        return Page(place, title, mime, text=text, retrieved=moment)

    async def _media(self, url: str) -> MediaFile:
        place, answer = await self._followed(url, self._always, _MEDIA_HEADERS)
        mime, _ = _content_type(answer.headers.get("content-type", ""))
        return MediaFile(place, mime, await answer.read(self._policy.max_bytes))

    async def _followed(
        self, url: str, admitted: DomainFilter, headers: list[tuple[str, str]]
    ) -> tuple[str, Answer]:
        """The answer after redirects, and its URL."""
        seconds = self._policy.timeout
        timeouts = Timeouts(connect=seconds, tls=seconds, first_byte=seconds, idle=seconds, total=seconds)
        for _ in range(MAX_REDIRECTS + 1):
            url = self._guard.checked_url(url)
            if not admitted.admits(url):
                raise WebFailed("url_not_allowed", "the domain is not among those that may be fetched from")
            if self._policy.proxy:
                await self._check_before_proxy(url)
            outbound = Outbound("GET", url, headers, proxy=self._policy.proxy)
            answer = await self._transport.send(outbound, timeouts)
            location = answer.headers.get("location", "")
            if answer.status in _REDIRECTS and location:
                answer.abort()
                url = _joined(url, location)
            elif not 200 <= answer.status < 300:
                answer.abort()
                raise WebFailed("url_not_accessible", f"the host answered with status {answer.status}")
            else:
                return url, answer
        raise WebFailed("url_not_accessible", f"more than {MAX_REDIRECTS} redirects")

    async def _check_before_proxy(self, url: str) -> None:
        """The proxy resolves the name itself. Its addresses by the local resolver are checked all the same; a
        name that only the proxy can resolve is left to it."""
        origin, _ = parse_url(url, "", "")
        addresses = literal(origin.host, origin.port)
        if addresses is None:
            loop = asyncio.get_running_loop()
            try:
                found = await loop.getaddrinfo(origin.host, origin.port)
            except OSError:
                return
            addresses = [(family, str(where[0]), int(where[1])) for family, _, _, _, where in found]
        self._guard.check_addresses(origin, addresses)


def _guarded(guard: Guard) -> Transport:
    return HttpTransport(_PoolLimits(), screen=guard.check_addresses)


def _joined(url: str, location: str) -> str:
    try:
        return urljoin(url, location)
    except ValueError:
        raise WebFailed("url_not_accessible", "the host redirects to something that is no URL") from None


def _content_type(header: str) -> tuple[str, str]:
    """The media type in lower case and its charset, "" if one is not stated."""
    mime, _, rest = header.partition(",")[0].partition(";")
    charset = ""
    for parameter in rest.split(";"):
        name, _, value = parameter.partition("=")
        if name.strip().lower() == "charset":
            charset = value.strip().strip("\"'").lower()
    return mime.strip().lower(), charset


def _is_supported(mime: str) -> bool:
    return mime.startswith("text/") or mime == _PDF or mime in _TEXTS or mime.endswith(("+json", "+xml"))


def _sniffed(body: bytes) -> str:
    """The type of a body whose server states none."""
    start = body[:1024].lstrip()
    if start.startswith(b"%PDF-"):
        return _PDF
    if b"\0" in start:
        raise _unsupported("something that is no text")
    return "text/html" if start[:1] == b"<" else "text/plain"


def _unsupported(what: str) -> WebFailed:
    known = "text, HTML, JSON, XML and PDF can be fetched"
    return WebFailed("unsupported_content_type", f"the page is {what[:100]}: {known}")
