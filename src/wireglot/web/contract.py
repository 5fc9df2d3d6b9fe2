"""The interfaces of search backends and page fetches, and their errors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol

import msgspec

WebProblem = Literal[
    "unavailable",
    "too_many_requests",
    "invalid_tool_input",
    "query_too_long",
    "request_too_large",
    "url_too_long",
    "url_not_allowed",
    "url_not_accessible",
    "unsupported_content_type",
    "content_too_large",
]
"""The error codes of Anthropic's web search and web fetch results."""


class Query(msgspec.Struct, frozen=True):
    """One search. A domain covers its subdomains; `location` has `city`, `region`, `country` (ISO 3166-1
    alpha-2) and `timezone`; `context_size` is `low`, `medium`, `high` or "" for the default."""

    text: str
    allowed_domains: tuple[str, ...] = ()
    blocked_domains: tuple[str, ...] = ()
    location: dict[str, str] = {}
    context_size: str = ""


class Hit(msgspec.Struct, frozen=True):
    """One search result. `text` is a snippet or the text of the page, `age` a date or a phrase ("" if the
    backend reports none)."""

    url: str
    title: str
    text: str = ""
    age: str = ""


class Page(msgspec.Struct, frozen=True):
    """One fetched page: `text`, or `data`, the base64 of a PDF. `url` is where redirects led, `retrieved` an
    ISO 8601 time in UTC."""

    url: str
    title: str
    mime: str
    text: str = ""
    data: str = ""
    retrieved: str = ""


class MediaFile(msgspec.Struct, frozen=True):
    """One fetched image, document, audio or video file. `mime` is what its server says, "" if it says
    nothing."""

    url: str
    mime: str
    data: bytes


class WebFailed(Exception):
    """A search or fetch that failed. The message is for the model and the log and never holds a secret."""

    def __init__(self, code: WebProblem, message: str) -> None:
        super().__init__(message)
        self.code: WebProblem = code


class WebSearch(Protocol):
    """A search backend."""

    @property
    def name(self) -> str: ...

    @property
    def price(self) -> float:
        """The cost of a search, in units of the gateway's currency; 0 if it is free."""
        ...

    async def search(self, query: Query) -> Sequence[Hit]:
        """The results, best first; none is not a failure. Raises WebFailed."""
        ...


class Fetch(Protocol):
    """A page fetch."""

    async def fetch(
        self,
        url: str,
        *,
        allowed_domains: Sequence[str] = (),
        blocked_domains: Sequence[str] = (),
        max_tokens: int | None = None,
    ) -> Page:
        """One page. Raises WebFailed."""
        ...


class FetchMedia(Protocol):
    """A fetch of images and files."""

    async def media(self, url: str) -> MediaFile:
        """The content at the URL, as bytes. Raises WebFailed."""
        ...
