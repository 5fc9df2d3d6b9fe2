"""The files of the page: read once from the package, given as they are or compressed, known by their hash."""

from __future__ import annotations

import gzip
import hashlib
import re
from functools import partial
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Final

import msgspec

from wireglot.gateway.errors import RequestError
from wireglot.gateway.request.aside import aside
from wireglot.gateway.request.page_request import PageRequest
from wireglot.http.application import Headers

INDEX: Final = "index.html"
_TYPES: Final = {
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "svg": "image/svg+xml",
    "png": "image/png",
    "ico": "image/x-icon",
    "woff2": "font/woff2",
    "json": "application/json",
    "txt": "text/plain; charset=utf-8",
}
_TEXT: Final = frozenset({"html", "js", "css", "svg", "json", "txt"})
_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}")
_HASHED: Final = re.compile(r"[-.][A-Za-z0-9_]{8,}\.[a-z0-9]+$")
"""A name that changes with what it holds: it may be kept for ever."""
_ENCODINGS: Final = (("br", ".br"), ("gzip", ".gz"))
_COMPRESSED_BYTES_LEAST: Final = 1024
_NOT_BUILT: Final = (
    b"The inspector's page is not in this copy of Wireglot: `make page` builds it, packages have it.\n"
)


class _File(msgspec.Struct, frozen=True):
    type: str
    plain: bytes
    tag: str
    """Of its bytes, quoted as HTTP has it."""
    is_hashed: bool
    encoded: dict[str, bytes]
    """By the name of the encoding."""


class Site:
    def __init__(self, folder: Traversable | None = None) -> None:
        self._folder = folder if folder is not None else files("wireglot.gateway.inspector") / "assets"
        self._files: dict[str, _File] = {}

    async def page(self, page: PageRequest) -> None:
        """Every view is the same page, which looks at its own address."""
        index = await self._found(INDEX)
        if index is None:
            headers = [("content-type", _TYPES["txt"]), ("cache-control", "no-store")]
            page.record.answered(404)
            page.reply.send(404, headers, _NOT_BUILT)
            return
        _send(page, index)

    async def asset(self, page: PageRequest) -> None:
        (name,) = page.asked.ids
        found = await self._found(name) if _NAME.fullmatch(name) and name != INDEX else None
        if found is None:
            raise RequestError("not_found", "the page has no such file", code="unknown_url")
        _send(page, found)

    async def _found(self, name: str) -> _File | None:
        """Read and compressed beside the loop, once. What is not there is looked for each time."""
        found = self._files.get(name)
        if found is None:
            found = await aside(partial(self._read, name))
            if found is not None:
                self._files[name] = found
        return found

    def _read(self, name: str) -> _File | None:
        """Called with a name that is a name only: no path leads out of the folder."""
        ending = name.rpartition(".")[2]
        place = self._folder / name
        if ending not in _TYPES or not place.is_file():
            return None
        plain = place.read_bytes()
        encoded = {}
        for encoding, suffix in _ENCODINGS:
            built = self._folder / f"{name}{suffix}"
            if built.is_file():
                encoded[encoding] = built.read_bytes()
        if "gzip" not in encoded and ending in _TEXT and len(plain) >= _COMPRESSED_BYTES_LEAST:
            encoded["gzip"] = gzip.compress(plain, 9, mtime=0)
        tag = f'"{hashlib.sha256(plain).hexdigest()[:32]}"'
        return _File(_TYPES[ending], plain, tag, bool(_HASHED.search(name)), encoded)


def _send(page: PageRequest, found: _File) -> None:
    encoding = _chosen(page.head.headers.get("accept-encoding", ""), found.encoded)
    body = found.encoded[encoding] if encoding else found.plain
    tag = f'{found.tag[:-1]}-{encoding}"' if encoding else found.tag
    kept = "public, max-age=31536000, immutable" if found.is_hashed else "no-cache"
    headers: Headers = [("cache-control", kept), ("etag", tag), ("vary", "accept-encoding")]
    if _is_known(page.head.headers.get("if-none-match", ""), tag):
        page.record.answered(304)
        page.reply.send(304, headers, b"")
        return
    headers.append(("content-type", found.type))
    if encoding:
        headers.append(("content-encoding", encoding))
    page.record.answered(200)
    page.reply.send(200, headers, body)


def _chosen(accepted: str, there: dict[str, bytes]) -> str:
    """The best of those that are there; "" for none."""
    wanted = set()
    for piece in accepted.lower().split(","):
        name, _, weight = piece.partition(";")
        if weight.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000"):
            wanted.add(name.strip())
    for encoding, _ in _ENCODINGS:
        if encoding in there and encoding in wanted:
            return encoding
    return ""


def _is_known(tags: str, tag: str) -> bool:
    known = {each.strip().removeprefix("W/") for each in tags.split(",")}
    return tag in known or "*" in known
