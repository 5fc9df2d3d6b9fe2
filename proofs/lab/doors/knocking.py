"""What a knock is: bytes on a socket of one's own, all that is answered, and the account of it."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from typing import Final, NamedTuple, TypeVar

T = TypeVar("T")

PATIENCE_SECONDS: Final = 20.0
"""For an answer that must come."""
_AT_ONCE: Final = 8
_READ: Final = 64 * 1024
_LENGTH: Final = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_CHUNKED: Final = re.compile(rb"\r\ntransfer-encoding: *chunked", re.IGNORECASE)
_WITHOUT_BODY: Final = (204, 304)


class Said(NamedTuple):
    """One answer, as it came. Status 0: bytes that are none."""

    status: int
    head: bytes
    body: bytes

    @property
    def let_in(self) -> bool:
        return 0 < self.status < 400

    def header(self, name: str) -> str:
        found = re.search(rb"\r\n%b: *([^\r]*)" % re.escape(name.encode()), self.head, re.IGNORECASE)
        return found[1].decode("latin-1") if found else ""


class Book:
    """The account of one class of attempts. `every`: only each n-th is made, for a trial in small."""

    def __init__(self, name: str, *, every: int = 1, seed: int = 1) -> None:
        self.name = name
        self.seed = seed
        self.attempts = 0
        self.admitted: list[str] = []
        self.opened = 0
        """Valid requests that were admitted: without them everything might just be refused."""
        self.shut: list[str] = []
        """Valid requests that were refused."""
        self.counts: Counter[str] = Counter()
        self._every = every

    def knocked(self, vector: str, admitted: str = "") -> None:
        """`admitted`: what got in, "" for nothing."""
        self.attempts += 1
        if admitted:
            self.admitted.append(f"{self.name}: {vector}: {admitted}")

    def right(self, vector: str, let_in: bool, said: object = "") -> None:
        if let_in:
            self.opened += 1
        else:
            self.shut.append(f"{self.name}: {vector} should be let in: {said!r}"[:400])

    def some(self, all_of_them: Iterable[T]) -> list[T]:
        return list(all_of_them)[:: self._every]


async def at_once(work: Iterable[T], do: Callable[[T], Awaitable[None]], most: int = _AT_ONCE) -> None:
    """A few at a time, in order of their coming."""
    rest = iter(work)

    async def worker() -> None:
        for each in rest:
            await do(each)

    async with asyncio.TaskGroup() as group:
        for _ in range(most):
            group.create_task(worker())


async def knock(
    port: int, pieces: Sequence[bytes], *, seconds: float = PATIENCE_SECONDS, is_head: bool = False
) -> list[Said]:
    """Send the pieces, each in a segment of its own, and take all that comes until the gateway closes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    heard = bytearray()
    try:
        async with asyncio.timeout(seconds):
            with suppress(ConnectionError):
                for piece in pieces:
                    writer.write(piece)
                    await asyncio.sleep(0)
            with suppress(ConnectionError):
                while data := await reader.read(_READ):
                    heard += data
    except TimeoutError:
        pass
    finally:
        writer.close()
    return answers(bytes(heard), is_head=is_head)


def answers(heard: bytes, *, is_head: bool = False) -> list[Said]:
    found = []
    while heard:
        head, _, rest = heard.partition(b"\r\n\r\n")
        line = re.match(rb"HTTP/1\.1 (\d{3})", head)
        if line is None:
            found.append(Said(0, b"", heard))
            break
        status = int(line[1])
        bodiless = status in _WITHOUT_BODY or status < 200 or is_head
        is_head = is_head and status < 200  # it is the first of several that was asked so
        end = 0 if bodiless else _end(head, rest)
        found.append(Said(status, head, rest[:end]))
        heard = rest[end:]
    return found


def _end(head: bytes, rest: bytes) -> int:
    if length := _LENGTH.search(head):
        return int(length[1])
    if not _CHUNKED.search(head):
        return len(rest)
    at = 0
    while at < len(rest):
        line, _, _ = rest[at:].partition(b"\r\n")
        size = int(line.split(b";")[0] or b"0", 16)
        at += len(line) + 2 + size + 2
        if not size:
            break
    return at


def request(
    method: str,
    target: str,
    body: bytes = b"",
    headers: dict[str, str] | None = None,
    *,
    host: str = "127.0.0.1",
    close: bool = True,
) -> bytes:
    """A proper one. Headers may take the place of those that are always there."""
    fields = {"host": host, "content-type": "application/json", **(headers or {})}
    if close:
        fields["connection"] = "close"
    if body or method in ("POST", "PUT", "PATCH"):
        fields["content-length"] = str(len(body))
    lines = [f"{method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in fields.items())]
    return "\r\n".join([*lines, "", ""]).encode("latin-1", "replace") + body


async def asked(
    port: int,
    method: str,
    target: str,
    body: bytes = b"",
    headers: dict[str, str] | None = None,
    *,
    host: str = "127.0.0.1",
) -> Said:
    """One proper request, one answer."""
    sent = request(method, target, body, headers, host=host)
    found = await knock(port, [sent], is_head=method == "HEAD")
    return found[0] if found else Said(0, b"", b"")
