"""Answers of a provider that hold a second answer: nobody may get it, least of all the one that asks next."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Final

import msgspec

from proofs.lab.doors.knocking import Book, asked, at_once
from proofs.lab.doors.smuggling_vectors import chunk
from proofs.lab.doors.stage import Stage, staged
from proofs.lab.marking_upstream import SPEAKERS, mark
from proofs.lab.questions import CLIENTS, question, whole
from wireglot_core.dialects.registry import DialectName

_EVIL: Final = 9999
_ASKER: Final = 1
_AFTER: Final = 2
"""Questions behind each such answer: the connection it came on might be used for them."""
_JSON: Final = b"content-type: application/json"

Made = Callable[[bytes], bytes]
"""A body -> the message that it is sent in."""
_CODING: Final = b"transfer-encoding: chunked"


def _message(body: bytes, *lines: bytes, status: bytes = b"200 OK", version: bytes = b"HTTP/1.1") -> bytes:
    return b"\r\n".join((version + b" " + status, _JSON, *lines, b"", b"")) + body


def _size(body: bytes) -> bytes:
    return b"content-length: %d" % len(body)


def _hidden(said: bytes, body: bytes) -> bytes:
    """A whole answer with the mark of nobody who asked."""
    evil = body.replace(said, mark(_EVIL, int(said[9:17])).encode())
    return _message(evil, _size(evil))


def _followed(made: Made, said: bytes, body: bytes) -> bytes:
    return made(body) + _hidden(said, body)


def _counted(*lines: bytes) -> Made:
    return lambda body: _message(body, *lines, _size(body))


def _bodiless(status: bytes, *lines: bytes) -> Made:
    return lambda body: _message(b"", *lines, status=status)


def _length(spelled: bytes) -> Made:
    return lambda body: _message(body, b"content-length: " + spelled % len(body))


def _coded(*lines: bytes, last: bytes = b"0\r\n\r\n") -> Made:
    return lambda body: _message(chunk(body, last=last), *lines)


def _chunk_size(spelled: bytes) -> Made:
    return lambda body: _message(spelled % len(body) + b"\r\n" + body + b"\r\n0\r\n\r\n", _CODING)


def _version(version: bytes) -> Made:
    return lambda body: _message(body, _size(body), version=version)


def _ways() -> Iterator[tuple[str, Made]]:
    yield "behind the body", _counted()
    yield "behind the last chunk", _coded(_CODING)
    yield "behind an empty body", _bodiless(b"200 OK", b"content-length: 0")
    yield "behind a 204", _bodiless(b"204 No Content")
    yield "behind a 304", _bodiless(b"304 Not Modified")
    yield "behind a 101", _bodiless(b"101 Switching", b"upgrade: h2c", b"connection: upgrade")
    yield "behind an error", _bodiless(b"400 Bad", b"content-length: 0")
    yield "behind a redirect", _bodiless(b"302 Found", b"content-length: 0", b"location: /")
    for other in (_CODING, b"content-length: 0", b"content-length: 1", b"transfer-encoding: identity"):
        yield f"a length behind {other!r}", _counted(other)
        yield f"chunks and {other!r}", _coded(_CODING, other)
        yield f"chunks behind {other!r}", _coded(other, _CODING)
    for odd in (b"+%d", b"-%d", b"0x%x", b"%d, 0", b"%d ,", b"%d\x00", b"%d.0", b"\x0b%d", b"%dx", b"%d %%"):
        yield f"length {odd!r}", _length(odd)
    for odd in (
        b"xchunked",
        b"chunked, x",
        b"identity",
        b"chunked, chunked",
        b"\x0bchunked",
        b"gzip, chunked",
    ):
        yield f"coding {odd!r}", _coded(b"transfer-encoding: " + odd)
    for line in (b"x : y", b" x: y", b"x: y\r\n z", b"x: y\nz: w", b"x: y\x00", b": y", b"x", b"x: y\rz"):
        yield f"line {line!r}", _counted(line)
    for end in (b"0\n\n", b"0\r\n\n", b"0\r\nx: y\r\n\r\n", b"0\r\ncontent-length: 5\r\n\r\n", b"-0\r\n\r\n"):
        yield f"last chunk {end!r}", _coded(_CODING, last=end)
    for size in (b"0x%x", b"+%x", b"-%x", b"%x ", b" %x", b"%x;", b"%x\n", b"1%016x", b"%xg"):
        yield f"chunk {size!r}", _chunk_size(size)
    for version in (b"HTTP/1.0", b"HTTP/2.0", b"HTTP/0.9", b"http/1.1", b"ICY", b"HTTP/1.1 "):
        yield f"version {version!r}", _version(version)
    yield "behind two", lambda body: b"HTTP/1.1 100 Continue\r\n\r\n" + _counted()(body)


async def trial(book: Book, folder: Path) -> None:
    async with staged(folder) as stage:
        names = {}
        for place, (name, made) in enumerate(_ways()):
            short = f"evil{chr(97 + place // 26)}{chr(97 + place % 26)}"
            stage.upstream.ways[short] = partial(_followed, made)
            names[short] = name
        vectors = [(client, speaker, short) for client in CLIENTS for speaker in SPEAKERS for short in names]
        numbered = list(enumerate(book.some(vectors), 1))

        async def one(task: tuple[int, tuple[DialectName, DialectName, str]]) -> None:
            number, (client, speaker, short) = task
            await _knock(book, stage, number, (client, speaker, short), names[short])

        # One at a time: the next question is then the one that finds the connection.
        await at_once(numbered, one, most=1)
        book.right("the provider was asked", stage.upstream.asked > len(numbered) * _AFTER)


async def _knock(
    book: Book, stage: Stage, number: int, vector: tuple[DialectName, DialectName, str], name: str
) -> None:
    client, speaker, short = vector
    evil = mark(_EVIL, number, "").encode()
    problem = ""
    for turn in range(1 + _AFTER):
        way = short if not turn else "well"
        path, body = whole(*question(client, f"{speaker}/any", f"Say {mark(_ASKER, number, way)}"))
        said = await asked(stage.port, "POST", path, msgspec.json.encode(body))
        if evil in said.head + said.body:
            problem = problem or f"the hidden answer came {'at once' if not turn else 'to the next'}"
        if turn:
            own = mark(_ASKER, number).encode() in said.body
            book.right(f"{client} after {name} of {speaker}", said.status == 200 and own, said)
    book.knocked(f"{client} from {speaker}: {name}", problem)
