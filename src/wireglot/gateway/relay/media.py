"""Images and files given as URLs, for upstreams that accept none: the gateway downloads them and sends their
bytes. Only if `[fetch]` is configured, and only URLs that its guard allows."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable, Iterator
from typing import Final

import msgspec

from wireglot.gateway.errors import RequestError
from wireglot.gateway.request.exchange import Exchange
from wireglot.web.contract import FetchMedia, MediaFile, WebFailed
from wireglot_core.ir.content import Media, Message, Part, ToolResult
from wireglot_core.ir.loss import Loss
from wireglot_core.ir.request import Request

MAX_FILES: Final = 32
"""Files that are downloaded for one request, where a provider takes no URLs."""
_ADDRESSES: Final = ("http://", "https://")
_DETAIL: Final = "downloaded by the gateway: the provider does not accept URLs"
_KINDS: Final[dict[str, tuple[str, ...]]] = {
    "image": ("image/",),
    "document": ("application/pdf", "text/", "application/json", "application/xml"),
    "audio": ("audio/",),
    "video": ("video/",),
}
"""The media types that a part of each kind may turn out to be."""
_BEGINNINGS: Final = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
    (b"%PDF-", "application/pdf"),
)

MediaKey = tuple[str, str]
"""The URL of a file, and the kind of part that it is used as."""

FindFetch = Callable[[Exchange], FetchMedia | None]
"""The download function for a request; None if downloads are off."""


class NeedsMedia(Exception):
    """Raised when files must be downloaded before a request can be prepared: URLs and kinds, each with a
    place in the request."""

    def __init__(self, wanted: dict[MediaKey, str], asked: Request) -> None:
        super().__init__(f"{len(wanted)} to be downloaded")
        self.wanted = wanted
        self.asked = asked


def with_files(request: Request, files: dict[MediaKey, MediaFile]) -> tuple[Request, tuple[Loss, ...]]:
    """The request with downloaded files in place of their URLs. Raises NeedsMedia for those that are
    missing."""
    wanted = {key: path for path, part in _addressed(request) if (key := _key(part)) not in files}
    if wanted:
        raise NeedsMedia(wanted, request)
    losses = [Loss(f"{path}.url", part.kind, "emulated", _DETAIL) for path, part in _addressed(request)]
    if not losses:
        return request, ()
    messages = tuple([_with_bytes(message, files) for message in request.messages])
    return msgspec.structs.replace(request, messages=messages), tuple(losses)


def _with_bytes(message: Message, files: dict[MediaKey, MediaFile]) -> Message:
    if not any(map(_has_address, message.content)):
        return message
    return msgspec.structs.replace(message, content=tuple([_filled(part, files) for part in message.content]))


def _addressed(request: Request) -> Iterator[tuple[str, Media]]:
    for place, message in enumerate(request.messages):
        for number, part in enumerate(message.content):
            path = f"$.messages[{place}].content[{number}]"
            if type(part) is ToolResult:
                for inner, item in enumerate(part.content):
                    if type(item) is Media and _is_address(item):
                        yield f"{path}.content[{inner}]", item
            elif type(part) is Media and _is_address(part):
                yield path, part


def _is_address(part: Media) -> bool:
    return part.url is not None and part.url[:8].lower().startswith(_ADDRESSES)


def _key(part: Media) -> MediaKey:
    assert part.url is not None
    return part.url, part.kind


def _has_address(part: Part) -> bool:
    if type(part) is ToolResult:
        return any(type(item) is Media and _is_address(item) for item in part.content)
    return type(part) is Media and _is_address(part)


def _filled(part: Part, files: dict[MediaKey, MediaFile]) -> Part:
    if type(part) is ToolResult:
        content = [_file(item, files) if type(item) is Media else item for item in part.content]
        return msgspec.structs.replace(part, content=tuple(content))
    return _file(part, files) if type(part) is Media else part


def _file(part: Media, files: dict[MediaKey, MediaFile]) -> Media:
    if part.url is None or not _is_address(part):
        return part
    file = files[_key(part)]
    data = base64.b64encode(file.data).decode("ascii")
    return msgspec.structs.replace(part, url=None, data=data, mime=file.mime)


class MediaDownloads:
    """Keeps no state of requests."""

    def __init__(self, find: FindFetch) -> None:
        self._find = find

    async def download(self, exchange: Exchange, needed: NeedsMedia) -> None:
        """Downloads into `exchange.files`. Raises a RequestError that names the place in the client's
        body."""
        fetch = self._find(exchange)
        assert fetch is not None, "nothing is wanted where nothing is downloaded"
        wanted = needed.wanted
        if len(wanted) + len(exchange.files) > MAX_FILES:
            place = _place(exchange, needed, next(iter(wanted.values())))
            message = f"{place}: more than {MAX_FILES} URLs, which the gateway downloads for this model"
            raise RequestError("bad", message, code="unsupported", param=place)
        async with asyncio.TaskGroup() as group:
            tasks = {url: group.create_task(_fetched(fetch, url)) for url in {url for url, _ in wanted}}
        for key, path in wanted.items():
            file = tasks[key[0]].result()
            if isinstance(file, WebFailed):
                place = _place(exchange, needed, path)
                raise RequestError("bad", f"{place}: {file}", code="invalid_value", param=place)
            exchange.held.take(len(file.data) * 4 // 3)
            exchange.files[key] = self._checked(exchange, needed, file, path)

    @staticmethod
    def _checked(exchange: Exchange, needed: NeedsMedia, file: MediaFile, path: str) -> MediaFile:
        part = next(part for where, part in _addressed(needed.asked) if where == path)
        mime = _type_of(file, part)
        if not mime.startswith(_KINDS[part.kind]):
            place = _place(exchange, needed, path)
            found = mime[:100] or "an unknown type"
            message = f"{place}: expected the URL of {part.kind} data, found {found}"
            raise RequestError("bad", message, code="invalid_value", param=place)
        return msgspec.structs.replace(file, mime=mime)


async def _fetched(fetch: FetchMedia, url: str) -> MediaFile | WebFailed:
    try:
        return await fetch.media(url)
    except WebFailed as failed:
        return failed


def _type_of(file: MediaFile, part: Media) -> str:
    """The media type by the bytes where they identify it, as servers are often wrong; else as the server or
    the client says."""
    for beginning, mime in _BEGINNINGS:
        if file.data.startswith(beginning):
            return mime
    if file.data[:4] == b"RIFF" and file.data[8:12] == b"WEBP":
        return "image/webp"
    said = file.mime if file.mime not in ("", "application/octet-stream", "binary/octet-stream") else ""
    return said or part.mime


def _place(exchange: Exchange, needed: NeedsMedia, path: str) -> str:
    return exchange.place(f"{path}.url", needed.asked).removeprefix("$").removeprefix(".")
