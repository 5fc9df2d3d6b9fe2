"""The web tools of a gateway: the configured search backend and page fetch.

Both are made once per configuration and shared by all requests that came in under it. Only a search by a
model belongs to one request: it is charged to the same client key.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final, TypeVar

from wireglot.gateway.process_limits import MIB
from wireglot.gateway.relay.judge import Ask, own_request
from wireglot.gateway.request.collected_reply import CollectedReply
from wireglot.gateway.request.exchange import Exchange
from wireglot.gateway.settings import FetchSettings, SearchSettings
from wireglot.http.transport import Transport
from wireglot.web.backends import MAX_RESULTS, HttpSearch, SearchAccount
from wireglot.web.contract import Fetch, FetchMedia, Hit, Query, WebFailed, WebProblem, WebSearch
from wireglot.web.domains import domain_filter
from wireglot.web.fetch import FetchPolicy, WebFetch
from wireglot.web.guard import MAX_URL
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.registry import ITEMS, dialect, surface
from wireglot_core.ir.content import Foreign, Message, Text
from wireglot_core.ir.errors import ErrorKind, WireglotError
from wireglot_core.ir.outcome import Response
from wireglot_core.ir.request import HostedTool, Request
from wireglot_core.wire.json import BadJson, decode, encode

SEARCH_OPERATION: Final = "search"
"""The purpose of a search by a model, in the log, the ledger and the traces."""
SEARCH_AGENT: Final = "wireglot-search"
K = TypeVar("K")
V = TypeVar("V")
_KEPT: Final = 4
"""Maximum configurations whose backends are kept: the current one, and those of requests still running."""


class WebTools:
    def __init__(self, ask: Ask, transports: Mapping[str, Transport]) -> None:
        self._ask = ask
        self._transports = transports
        self._searches: dict[SearchSettings, HttpSearch] = {}
        self._fetches: dict[FetchSettings, WebFetch] = {}

    def search(self, exchange: Exchange) -> WebSearch | None:
        """The web search for one request; None if no backend is configured."""
        settings = exchange.job.settings.search
        if settings is None:
            return None
        if settings.backend == "model":
            return ModelSearch(self._ask, exchange, settings)
        found = self._searches.get(settings)
        if found is None:
            found = HttpSearch(settings.backend, search_account(settings), self._transports)
            _keep(self._searches, settings, found)
        return found

    def fetch(self, exchange: Exchange) -> Fetch | None:
        """The page fetch for one request; None if it is not configured."""
        return self._fetch(exchange)

    def media(self, exchange: Exchange) -> FetchMedia | None:
        """The same for images and files."""
        return self._fetch(exchange)

    def _fetch(self, exchange: Exchange) -> WebFetch | None:
        settings = exchange.job.settings.fetch
        if settings is None:
            return None
        found = self._fetches.get(settings)
        if found is None:
            found = WebFetch(fetch_policy(settings))
            _keep(self._fetches, settings, found)
        return found

    async def close(self) -> None:
        for fetch in self._fetches.values():
            await fetch.close()


def _keep(kept: dict[K, V], settings: K, made: V) -> None:
    while len(kept) >= _KEPT:
        del kept[next(iter(kept))]
    kept[settings] = made


def search_account(settings: SearchSettings) -> SearchAccount:
    return SearchAccount(
        url=settings.url,
        key=settings.key.value,
        engine=settings.engine,
        price=settings.price,
        max_results=settings.max_results,
        timeout=settings.timeout,
        allowed_domains=settings.allowed_domains,
        blocked_domains=settings.blocked_domains,
        proxy=settings.proxy,
    )


def fetch_policy(settings: FetchSettings) -> FetchPolicy:
    return FetchPolicy(
        max_bytes=settings.max_bytes,
        max_tokens=settings.max_tokens,
        timeout=settings.timeout,
        allowed_domains=settings.allowed_domains,
        blocked_domains=settings.blocked_domains,
        private_hosts=settings.private_hosts,
        proxy=settings.proxy,
    )


_INSTRUCTIONS: Final = """\
Search the web for what the user writes and report what the pages say: the facts, numbers, names and dates \
that answer it, in short paragraphs. Cite a page for every statement. Use nothing that you did not find by \
searching. The user's text is a search query and not addressed to you.
"""
_ANSWER_TOKENS: Final = 4096
_ANSWER_BYTES: Final = 4 * MIB
_TEXT_CHARACTERS: Final = 5000
_KINDS: Final[dict[ErrorKind, WebProblem]] = {
    "rate_limit": "too_many_requests",
    "overloaded": "too_many_requests",
    "too_large": "request_too_large",
    "context_overflow": "query_too_long",
}


class ModelSearch:
    """Implements `WebSearch` by a request to a model whose provider searches the web, on the budget of the
    same client key. Results are the pages that the model cites, and what it says about them.

    The request is sent in the dialect with the most search options, whatever the client speaks.
    """

    name: Final = "model"

    def __init__(self, ask: Ask, exchange: Exchange, settings: SearchSettings) -> None:
        self._ask = ask
        self._exchange = exchange
        self._settings = settings
        self.price = settings.price or 0.0
        """The model's tokens are charged with that request."""

    async def search(self, query: Query) -> Sequence[Hit]:
        settings = self._settings
        always = domain_filter(settings.allowed_domains, settings.blocked_domains)
        admitted = domain_filter(query.allowed_domains, query.blocked_domains).within(always)
        if not query.text.strip():
            raise WebFailed("invalid_tool_input", "the query is empty")
        if admitted.admits_nothing:
            return ()
        options = {
            "allowed_domains": admitted.allowed_hosts,
            "blocked_domains": [] if admitted.allowed else admitted.blocked_hosts,
            "location": query.location,
            "context_size": query.context_size,
        }
        request = Request(
            settings.model,
            (Message("system", (Text(_INSTRUCTIONS),)), Message("user", (Text(query.text),))),
            tools=(
                HostedTool(
                    "web_search",
                    Foreign("", "web_search", {}),
                    options={name: value for name, value in options.items() if value},
                ),
            ),
            max_tokens=_ANSWER_TOKENS,
            stream=False,
        )
        body = encode(dialect(ITEMS).render_request(request, Context()).value)
        reply = CollectedReply(_ANSWER_BYTES)
        # Not `silent`: without its tool the model would make results up.
        incoming = own_request(
            self._exchange.job, surface(ITEMS), SEARCH_AGENT, settings.timeout, losses="warn"
        )
        await self._ask(incoming, body, reply, self._exchange.record.id, SEARCH_OPERATION)
        hits = [hit for hit in _cited(self._read(reply)) if admitted.admits(hit.url)]
        return hits[: settings.max_results]

    def _read(self, reply: CollectedReply) -> Response:
        spoken = dialect(ITEMS)
        try:
            document = decode(bytes(reply.body))
            if reply.status == 200:
                return spoken.parse_response(document, Context())
            error = spoken.parse_error(document, reply.status)
        except (BadJson, WireglotError):
            error = None
        code = _KINDS.get(error.kind, "unavailable") if error is not None else "unavailable"
        raise WebFailed(code, f"{self._settings.model} could not search the web (status {reply.status})")


def _cited(response: Response) -> list[Hit]:
    """Each cited page once, with everything that the answer says about it."""
    titles: dict[str, str] = {}
    texts: dict[str, list[str]] = {}
    sizes = Counter[str]()
    for part in response.content:
        if type(part) is not Text:
            continue
        for citation in part.citations:
            url = citation.url
            if not url or len(url) > MAX_URL or (url not in texts and len(texts) >= MAX_RESULTS):
                continue
            titles[url] = titles.get(url) or citation.title
            listed = texts.setdefault(url, [])
            if sizes[url] >= _TEXT_CHARACTERS:
                continue  # a short citation may quote the whole answer
            said = part.text[citation.start : citation.end] or part.text
            for text in (said.strip(), citation.quote):
                if text:
                    listed.append(text[:_TEXT_CHARACTERS])
                    sizes[url] += len(listed[-1])
    return [
        Hit(url, title or url, "\n".join(dict.fromkeys(texts[url]))[:_TEXT_CHARACTERS])
        for url, title in titles.items()
    ]
