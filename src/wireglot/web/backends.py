"""Search backends over HTTP: what each takes and returns, and the one client for all of them.

Requests, responses and list prices follow the vendors' references as of November 2026: SearXNG
docs.searxng.org/dev/search_api, Brave api-dashboard.search.brave.com (web search), Tavily docs.tavily.com
(POST /search), Exa exa.ai/docs (POST /search), Google developers.google.com/custom-search/v1 (cse.list).
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final, Literal, get_args
from urllib.parse import urlencode, urlsplit

import msgspec

from wireglot.http.application import Headers
from wireglot.http.transport import Outbound, Timeouts, Transport, TransportFault
from wireglot.web.contract import Hit, Query, WebFailed, WebProblem
from wireglot.web.countries import BRAVE_COUNTRIES, COUNTRY_NAMES
from wireglot.web.domains import DomainFilter, domain_filter
from wireglot.web.guard import MAX_URL
from wireglot_core.wire.json import BadJson, decode, encode

HttpBackend = Literal["searxng", "brave", "tavily", "exa", "google"]

# Bytes of a search engine's answer.
_MAX_ANSWER_BYTES: Final = 8 * 1024 * 1024
# Results of a search engine's answer that are looked at: each is compared with each domain rule of the
# request. No engine is asked for more than 20.
MAX_RESULTS: Final = 200
# Characters of a result's title.
_MAX_TITLE: Final = 300
_TEXT: Final = {"low": 400, "medium": 1500, "high": 5000}
"""Characters of text per result, by the context size."""
_JSON: Final = ("content-type", "application/json")
_POOL: Final = "web-search"


class BackendQuery(msgspec.Struct, frozen=True):
    """A query with everything that its backend needs."""

    text: str
    filter: DomainFilter
    location: dict[str, str]
    count: int
    """Number of wanted results."""
    characters: int
    """Characters of text per result."""
    key: str
    engine: str

    @property
    def country(self) -> str:
        return self.location.get("country", "").upper()


class BackendRequest(msgspec.Struct, frozen=True):
    """A request to a backend: what follows its base URL, and the body of a POST."""

    path: str
    headers: Headers = []
    body: dict[str, Any] | None = None


class BackendForm(msgspec.Struct, frozen=True):
    """The API of one backend."""

    title: str
    write: Callable[[BackendQuery], BackendRequest]
    read: Callable[[dict[str, Any]], Iterator[Hit]]
    url: str = ""
    """"": each user has another one."""
    price: float = 0.0
    """USD per search by the vendor's list, pay as you go."""
    variables: tuple[str, ...] = ()
    """Environment variables with its key; () if it needs none."""
    max_count: int = 20
    max_characters: int = 2000
    """Maximum length of a query."""
    max_words: int = 1000


# SearXNG


def _write_searxng(asked: BackendQuery) -> BackendRequest:
    query = asked.filter.with_operators(asked.text, _SEARXNG.max_characters, _SEARXNG.max_words)
    headers: Headers = [("authorization", f"Bearer {asked.key}")] if asked.key else []
    return BackendRequest("/search?" + urlencode({"q": query, "format": "json"}), headers)


def _read_searxng(document: dict[str, Any]) -> Iterator[Hit]:
    results = _objects(document, "results")
    unresponsive = document.get("unresponsive_engines")
    if not results and unresponsive and type(unresponsive) is list:
        count = len(unresponsive)
        raise WebFailed("unavailable", f"SearXNG found nothing, and {count} of its engines did not answer")
    for each in results:
        yield Hit(
            _text(each, "url"), _text(each, "title"), _text(each, "content"), _text(each, "publishedDate")
        )


_SEARXNG: Final = BackendForm("SearXNG", _write_searxng, _read_searxng)


# Brave


def _write_brave(asked: BackendQuery) -> BackendRequest:
    query = asked.filter.with_operators(asked.text, _BRAVE.max_characters, _BRAVE.max_words)
    fields = {"q": query, "count": str(asked.count), "result_filter": "web", "text_decorations": "false"}
    if asked.characters > _TEXT["low"]:
        fields["extra_snippets"] = "true"
    if asked.country in BRAVE_COUNTRIES:
        fields["country"] = asked.country
    headers: Headers = [("x-subscription-token", asked.key), ("accept", "application/json")]
    for header, name in (
        ("x-loc-city", "city"),
        ("x-loc-state-name", "region"),
        ("x-loc-country", "country"),
        ("x-loc-timezone", "timezone"),
    ):
        value = asked.location.get(name, "")
        if value and value.isascii() and value.isprintable():
            headers.append((header, value))
    return BackendRequest("/res/v1/web/search?" + urlencode(fields), headers)


def _read_brave(document: dict[str, Any]) -> Iterator[Hit]:
    web = document.get("web")
    for each in _objects(web, "results") if type(web) is dict else ():
        extra = each.get("extra_snippets")
        more = [text for text in extra if type(text) is str] if type(extra) is list else []
        text = "\n".join((_text(each, "description"), *more))
        yield Hit(
            _text(each, "url"), _text(each, "title"), text, _text(each, "page_age") or _text(each, "age")
        )


_BRAVE: Final = BackendForm(
    "Brave Search",
    _write_brave,
    _read_brave,
    url="https://api.search.brave.com",
    price=0.005,
    variables=("BRAVE_API_KEY", "BRAVE_SEARCH_API_KEY"),
    max_characters=400,
    max_words=50,
)


# Tavily


def _write_tavily(asked: BackendQuery) -> BackendRequest:
    body: dict[str, Any] = {"query": asked.text, "max_results": asked.count, "search_depth": "basic"}
    if asked.characters > _TEXT["medium"]:
        body["include_raw_content"] = "text"
    # The longest lists that it accepts. The rest is filtered here.
    if 0 < len(asked.filter.allowed_hosts) <= 300:
        body["include_domains"] = asked.filter.allowed_hosts
    if asked.filter.blocked_hosts:
        body["exclude_domains"] = asked.filter.blocked_hosts[:150]
    if asked.country in COUNTRY_NAMES:
        body["country"] = COUNTRY_NAMES[asked.country]
    return BackendRequest("/search", [("authorization", f"Bearer {asked.key}"), _JSON], body)


def _read_tavily(document: dict[str, Any]) -> Iterator[Hit]:
    for each in _objects(document, "results"):
        text = _text(each, "raw_content") or _text(each, "content")
        yield Hit(_text(each, "url"), _text(each, "title"), text, _text(each, "published_date"))


_TAVILY: Final = BackendForm(
    "Tavily",
    _write_tavily,
    _read_tavily,
    url="https://api.tavily.com",
    price=0.008,
    variables=("TAVILY_API_KEY",),
    max_characters=400,
)


# Exa


def _write_exa(asked: BackendQuery) -> BackendRequest:
    kind = "text" if asked.characters > _TEXT["medium"] else "highlights"
    body: dict[str, Any] = {
        "query": asked.text,
        "type": "auto",
        "numResults": asked.count,
        "contents": {kind: {"maxCharacters": asked.characters}},
    }
    if asked.filter.allowed_hosts:
        body["includeDomains"] = asked.filter.allowed_hosts
    elif asked.filter.blocked_hosts:
        body["excludeDomains"] = asked.filter.blocked_hosts
    if len(asked.country) == 2:
        body["userLocation"] = asked.country
    return BackendRequest("/search", [("x-api-key", asked.key), _JSON], body)


def _read_exa(document: dict[str, Any]) -> Iterator[Hit]:
    for each in _objects(document, "results"):
        parts = each.get("highlights")
        found = [text for text in parts if type(text) is str] if type(parts) is list else []
        text = _text(each, "text") or "\n".join(found)
        yield Hit(_text(each, "url"), _text(each, "title"), text, _text(each, "publishedDate"))


_EXA: Final = BackendForm(
    "Exa",
    _write_exa,
    _read_exa,
    url="https://api.exa.ai",
    price=0.007,
    variables=("EXA_API_KEY",),
)


# Google


def _write_google(asked: BackendQuery) -> BackendRequest:
    fields = {"q": asked.text, "cx": asked.engine, "num": str(asked.count)}
    allowed, blocked = asked.filter.allowed_hosts, asked.filter.blocked_hosts
    if len(allowed) == 1:
        fields |= {"siteSearch": allowed[0], "siteSearchFilter": "i"}
    elif not allowed and len(blocked) == 1:
        fields |= {"siteSearch": blocked[0], "siteSearchFilter": "e"}
    else:
        fields["q"] = asked.filter.with_operators(asked.text, _GOOGLE.max_characters, _GOOGLE.max_words)
    if len(asked.country) == 2:
        fields["gl"] = asked.country.lower()
    # As a header: a URL is written to more logs.
    return BackendRequest("/customsearch/v1?" + urlencode(fields), [("x-goog-api-key", asked.key)])


def _read_google(document: dict[str, Any]) -> Iterator[Hit]:
    for each in _objects(document, "items"):
        yield Hit(_text(each, "link"), _text(each, "title"), _text(each, "snippet"))


_GOOGLE: Final = BackendForm(
    "Google Programmable Search",
    _write_google,
    _read_google,
    url="https://www.googleapis.com",
    price=0.005,
    variables=("GOOGLE_SEARCH_API_KEY",),
    max_count=10,
    max_words=32,  # Google ignores the words after these
)

FORMS: Final[dict[HttpBackend, BackendForm]] = {
    "searxng": _SEARXNG,
    "brave": _BRAVE,
    "tavily": _TAVILY,
    "exa": _EXA,
    "google": _GOOGLE,
}
assert tuple(FORMS) == get_args(HttpBackend)


# The client


class SearchAccount(msgspec.Struct, frozen=True):
    """One user's access to a backend. `price`: None for the vendor's list price."""

    url: str = ""
    key: str = ""
    engine: str = ""
    price: float | None = None
    max_results: int = 8
    timeout: float = 10.0
    allowed_domains: tuple[str, ...] = ()
    """Applied to every search, in addition to those of the query."""
    blocked_domains: tuple[str, ...] = ()
    proxy: str = ""

    def __repr__(self) -> str:
        return f"SearchAccount({urlsplit(self.url).hostname})"


class HttpSearch:
    """Implements `WebSearch`. One client for all backends; `transports` by the scheme of a URL."""

    def __init__(
        self, backend: HttpBackend, account: SearchAccount, transports: Mapping[str, Transport]
    ) -> None:
        self.name: str = backend
        self._form = FORMS[backend]
        self.price = self._form.price if account.price is None else account.price
        self._account = account
        self._url = (account.url or self._form.url).rstrip("/")
        self._transport = transports[self._url.partition(":")[0]]
        self._always = domain_filter(account.allowed_domains, account.blocked_domains)

    async def search(self, query: Query) -> Sequence[Hit]:
        form, account = self._form, self._account
        text = " ".join(query.text.encode("utf-8", "replace").decode().split())
        if not text:
            raise WebFailed("invalid_tool_input", "the query is empty")
        if len(text) > form.max_characters or len(text.split()) > form.max_words:
            limit = f"{form.max_characters} characters and {form.max_words} words"
            raise WebFailed("query_too_long", f"{form.title} takes queries of at most {limit}")
        admitted = domain_filter(query.allowed_domains, query.blocked_domains).within(self._always)
        if admitted.admits_nothing:
            return ()
        size = query.context_size if query.context_size in _TEXT else "medium"
        count = account.max_results if size != "low" else math.ceil(account.max_results / 2)
        asked = BackendQuery(
            text=text,
            filter=admitted,
            location=query.location,
            count=min(count, form.max_count),
            characters=_TEXT[size],
            key=account.key,
            engine=account.engine,
        )
        hits: dict[str, Hit] = {}
        for hit in islice(form.read(await self._answer(form.write(asked))), MAX_RESULTS):
            if len(hit.url) <= MAX_URL and admitted.admits(hit.url):
                hits[hit.url] = _shortened(hit, asked.characters)
        return tuple(hits.values())[: asked.count]

    async def _answer(self, wanted: BackendRequest) -> dict[str, Any]:
        title, seconds = self._form.title, self._account.timeout
        outbound = Outbound(
            "GET" if wanted.body is None else "POST",
            self._url + wanted.path,
            [("user-agent", "wireglot"), *wanted.headers],
            b"" if wanted.body is None else encode(wanted.body),
            pool=_POOL,
            proxy=self._account.proxy,
        )
        timeouts = Timeouts(first_byte=seconds, idle=seconds, total=seconds)
        try:
            async with asyncio.timeout(seconds):
                answer = await self._transport.send(outbound, timeouts)
                body = await answer.read(_MAX_ANSWER_BYTES)
        except TimeoutError:
            raise WebFailed("unavailable", f"{title} did not answer within {seconds:g} s") from None
        except TransportFault as fault:
            raise WebFailed("unavailable", f"{title} could not be reached: {fault.problem}") from None
        if answer.status != 200:
            raise _refused(title, answer.status)
        try:
            document = decode(body)
        except BadJson:
            document = None
        if type(document) is not dict:
            raise WebFailed("unavailable", f"{title} sent something other than a JSON object")
        return document


def _refused(title: str, status: int) -> WebFailed:
    """By the status alone: the backend's message may quote the key."""
    if status in (401, 403):
        return WebFailed("unavailable", f"{title} refused access (status {status})")
    code: WebProblem = "unavailable"
    match status:
        case 402 | 432 | 433:  # Tavily's: the limit of the plan, of pay as you go
            return WebFailed(code, f"{title}: the account's credit is used up (status {status})")
        case 429:
            return WebFailed("too_many_requests", f"{title}: too many requests (status 429)")
        case 413 | 414:
            return WebFailed("request_too_large", f"{title}: the request is too large (status {status})")
    return WebFailed(code, f"{title} answered with status {status}")


def _shortened(hit: Hit, characters: int) -> Hit:
    title = " ".join(hit.title.split())[:_MAX_TITLE]
    text = hit.text.strip()
    if len(text) > characters:
        text = f"{text[:characters].rstrip()} [...]"
    return Hit(hit.url, title or hit.url, text, hit.age)


def _objects(document: dict[str, Any], name: str) -> list[dict[str, Any]]:
    value = document.get(name)
    return [each for each in value if type(each) is dict] if type(value) is list else []


def _text(document: dict[str, Any], name: str) -> str:
    value = document.get(name)
    return value if type(value) is str else ""
