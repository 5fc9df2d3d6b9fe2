"""Requests that two readers could read differently, each with a second request hidden behind or in it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, Literal, NamedTuple

Wanted = Literal["refused", "answered", "waits"]
"""refused: one error and the end of the connection. answered: one answer to what stands in front, whatever it
is; what is hidden in its body stays there. waits: for the rest of a body, without a word."""


class Pieces(NamedTuple):
    """What a vector is put together from: a good body and its path, and a whole second request."""

    path: str
    body: bytes
    hidden: bytes


class Vector(NamedTuple):
    name: str
    sent: bytes
    wanted: Wanted = "refused"
    is_head: bool = False


_HOST: Final = b"Host: 127.0.0.1"
_CHUNKED: Final = b"Transfer-Encoding: chunked"
_LEGAL_CODINGS: Final = (
    _CHUNKED,
    b"Transfer-Encoding:chunked",
    b"Transfer-Encoding:   chunked",
    b"tRANSFER-eNCODING: CHUNKED",
)
_ODD_CODINGS: Final = (
    b"Transfer-Encoding: xchunked", b"Transfer-Encoding: chunk", b"Transfer-Encoding: chunkedx",
    b"Transfer-Encoding : chunked", b"Transfer-Encoding\t: chunked", b"Transfer-Encoding:\tchunked",
    b"Transfer-Encoding: chunked ", b"Transfer-Encoding: chunked\t", b"Transfer-Encoding: \tchunked",
    b"Transfer-Encoding: \x0bchunked", b"Transfer-Encoding: chunked\x0b", b"Transfer-Encoding: \x0cchunked",
    b"Transfer-Encoding: chunked\x00", b"Transfer-Encoding:\x00chunked", b"Transfer\x00-Encoding: chunked",
    b"Transfer-Encoding: \xffchunked", b"Transfer-Encoding: chunked\xa0",
    b"Transfer-Encoding: \xef\xbb\xbfchunked",
    b"Transfer-Encoding: chunked, identity", b"Transfer-Encoding: identity, chunked",
    b"Transfer-Encoding: identity", b"Transfer-Encoding: gzip, chunked", b"Transfer-Encoding: chunked, gzip",
    b"Transfer-Encoding: chunked, chunked", b"Transfer-Encoding: chunked,", b"Transfer-Encoding: ,chunked",
    b"Transfer-Encoding: chunked;q=1", b"Transfer-Encoding: 'chunked'", b'Transfer-Encoding: "chunked"',
    b"Transfer-Encoding: ch\xc3\xbcnked", b"Transfer-Encoding: cow", b"Transfer-Encoding:",
    b"Transfer-Encoding",
    b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
    b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity",
    b"Transfer-Encoding: identity\r\nTransfer-encoding: chunked",
    b"Transfer-Encoding: chunked\r\nTransfer-Encoding: x",
    b"Transfer-Encoding:\r\n chunked", b"Transfer-Encoding: chunked\r\n x",
    b"Transfer-Encoding:\r\n\tchunked",
    b"X: y\r\n Transfer-Encoding: chunked", b"X: y\nTransfer-Encoding: chunked",
    b"X: y\rTransfer-Encoding: chunked", b"Transfer-Encoding: chunked\nX: y",
    b"Transfer-Encoding: chunked\rX: y",
    b" Transfer-Encoding: chunked", b"\tTransfer-Encoding: chunked", b"Transfer Encoding: chunked",
    b": chunked", b"Transfer-Encoding: chunked\r", b"Transfer-Encoding: chunked\r\r",
)  # fmt: skip
_ALIKE: Final = (
    b"Transfer_Encoding: chunked", b"X-Transfer-Encoding: chunked", b"TransferEncoding: chunked",
    b"Transfer-Encodings: chunked", b"TE: chunked", b"TE: trailers\r\nTrailer: Content-Length",
    b"Content_Length: 0", b"X-Content-Length: 0", b"Content-Lengths: 0", b"Content-Length-Hint: 0",
    b"Connection: Content-Length", b"Connection: close, Transfer-Encoding", b"Keep-Alive: timeout=5",
    b"Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAMAAABkAAQAAP__",
    b"Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==",
    b"Upgrade: TLS/1.0\r\nConnection: Upgrade", b"Content-Encoding: identity", b"X-HTTP-Method-Override: GET",
    b"X-Original-URL: /v1/chat/completions", b"Expect: 100-continue",
)  # fmt: skip
"""Other headers, which say nothing of where a body ends."""


def _lengths(size: int) -> Iterator[bytes]:
    """Spellings of a length, none of them one decimal number."""
    n = str(size).encode()
    yield from (b"+" + n, b"-" + n, b"0x%x" % size, b"0o%o" % size, n + b", " + n, n + b"," + n, n + b" " + n)
    yield from (
        n + b".0",
        n + b"e0",
        n + b"_0",
        b"_" + n,
        n + b";",
        b'"' + n + b'"',
        n + b"L",
        b"",
        b" ",
        b"x",
    )
    yield from (b"\t" + n, n + b"\t", n + b" ", n + b"\x0b", b"\x0c" + n, n + b"\x00", b"\x00" + n, b"NaN")
    yield from (b"-1", b"-0", b"+0", b"0x0", b"1" * 19, b"9" * 30, b"%d" % (2**64 + size), n + b"\xa0")
    yield from ("".join(chr(0xFF10 + int(digit)) for digit in str(size)).encode(), n + b"\r", n + b"\n")
    yield from (b"%d" % (2**63), b"%d" % (2**53), n + b"/1", b"(" + n + b")", n + b" bytes", b"00x" + n)


def _head(path: str, *lines: bytes, line: bytes = b"", host: bytes = _HOST) -> bytes:
    first = line or b"POST %b HTTP/1.1" % path.encode()
    return b"\r\n".join((first, host, b"Content-Type: application/json", *lines, b"", b""))


def _length(size: int) -> bytes:
    return b"Content-Length: %d" % size


def chunk(data: bytes, *, last: bytes = b"0\r\n\r\n") -> bytes:
    return b"%x\r\n%b\r\n%b" % (len(data), data, last)


def framings(given: Pieces) -> Iterator[Vector]:
    """CL.TE, TE.CL, TE.TE: every coding with every length before every form of the rest."""
    rests = {
        "counted": given.body + given.hidden,
        "in chunks": chunk(given.body) + given.hidden,
        "an empty chunk": b"0\r\n\r\n" + given.hidden,
        "hidden in a chunk": chunk(given.body + given.hidden),
    }
    for form, rest in rests.items():
        sizes = {"the body's": len(given.body), "nothing's": 0, "all's": len(rest), "a chunk head's": 4}
        for coding in (*_LEGAL_CODINGS, *_ODD_CODINGS):
            for reported, size in sizes.items():
                name = f"{coding!r}, length {reported}, {form}"
                yield Vector(name, _head(given.path, _length(size), coding) + rest)
                yield Vector(f"{name}, other order", _head(given.path, coding, _length(size)) + rest)
            if coding not in _LEGAL_CODINGS:
                yield Vector(f"{coding!r}, no length, {form}", _head(given.path, coding) + rest)


def lengths(given: Pieces) -> Iterator[Vector]:
    size = len(given.body)
    rest = given.body + given.hidden
    for spelled in _lengths(size):
        for name in (b"Content-Length", b"content-length", b"CONTENT-LENGTH"):
            yield Vector(f"{name!r}: {spelled!r}", _head(given.path, b"%b: %b" % (name, spelled)) + rest)
        yield Vector(
            f"a good length and {spelled!r}",
            _head(given.path, _length(size), b"Content-Length: " + spelled) + rest,
        )
    for other in (size, 0, len(rest), size + 1, size - 1, 1):
        for two in ((size, other), (other, size)):
            lines = [_length(each) for each in two]
            yield Vector(f"lengths {two}", _head(given.path, *lines) + rest)
            yield Vector(f"lengths {two} apart", _head(given.path, lines[0], b"X: y", lines[1]) + rest)
    for name in (
        b"Content-Length ",
        b"Content-Length\t",
        b" Content-Length",
        b"Content Length",
        b"Content-Length\x00",
    ):
        yield Vector(f"{name!r}", _head(given.path, name + b": %d" % size) + rest)
    for more in (1, 50, 60_000):
        longer = _head(given.path, _length(len(rest) + more + 500)) + rest
        yield Vector(f"a body of {more} bytes more than come", longer, "waits")


def alike(given: Pieces) -> Iterator[Vector]:
    """The length holds, whatever stands beside it: the hidden request is a part of the body."""
    inside = given.body + given.hidden
    for line in _ALIKE:
        yield Vector(f"{line!r}", _head(given.path, _length(len(inside)), line) + inside, "answered")
        yield Vector(f"{line!r}, chunked", _head(given.path, _CHUNKED, line) + chunk(inside), "answered")


def chunks(given: Pieces) -> Iterator[Vector]:
    head, body, hidden = _head(given.path, _CHUNKED), given.body, given.hidden
    size = b"%x" % len(body)
    end = b"\r\n0\r\n\r\n"
    for spelled in (
        b"0x" + size, b"+" + size, b"-" + size, size + b" ", b" " + size, b"", size + b"_0", b"\t" + size,
        size + b"\t", b"0" * 17 + size, b"1" + b"0" * 16, b"f" * 16, b"f" * 17, b"8000000000000000", b"-1",
        b"g",
        size + b";", size + b";=x", size + b"; x", size + b";x=\n1", size + b";x=\x001", size + b";x=\r1",
        size + b";x=" + b"y" * 300, size + b',x', size + b"\x0b", size + b"\x00", b"\xef\xbc\x95",
        size + b"h",
        size + b'\r\n;x', size + b";x='\r\n'", size + b"\r", b"\r\n" + size, b"\n" + size, size + b" ;x",
    ):  # fmt: skip
        yield Vector(f"size {spelled!r}", head + spelled + b"\r\n" + body + end + hidden)
    for name, rest in {
        "size line with LF": size + b"\n" + body + end,
        "size line with CR": size + b"\r" + body + end,
        "data ends with LF": size + b"\r\n" + body + b"\n0\r\n\r\n",
        "data ends with CR": size + b"\r\n" + body + b"\r0\r\n\r\n",
        "data ends without": size + b"\r\n" + body + b"0\r\n\r\n",
        "data ends with others": size + b"\r\n" + body + b"XX0\r\n\r\n",
        "data longer than reported": size + b"\r\n" + body + b" " + end,
        "data shorter than reported": b"%x\r\n" % (len(body) + 3) + body + end,
        "last chunk with LF": chunk(body, last=b"0\n\n"),
        "last chunk ends with LF": chunk(body, last=b"0\r\n\n"),
        "last chunk with CR": chunk(body, last=b"0\r\r"),
        "last chunk -0": chunk(body, last=b"-0\r\n\r\n"),
        "last chunk 0x0": chunk(body, last=b"0x0\r\n\r\n"),
        "last chunk with a space": chunk(body, last=b"0 \r\n\r\n"),
        "last chunk of many noughts": chunk(body, last=b"0" * 40 + b"\r\n\r\n"),
        "last chunk, then the hidden one": chunk(body, last=b"0\r\n"),
    }.items():
        yield Vector(name, head + rest + hidden)
    for field in (
        b"Content-Length: 0", b"Transfer-Encoding: chunked", b"Host: evil.test", b"Authorization: Bearer x",
        b"X: y", b"Trailer: X", b": x", b" x", b"x", b"Connection: close", b"Content-Type: text/plain",
        b"Expect: 100-continue", b"Upgrade: h2c", b"X: \x00", b"X: y\nHost: evil.test",
    ):  # fmt: skip
        yield Vector(f"trailer {field!r}", head + chunk(body, last=b"0\r\n" + field + b"\r\n\r\n") + hidden)


def heads(given: Pieces) -> Iterator[Vector]:
    """Lines of a head that are none."""
    size, rest = _length(len(given.body)), given.body + given.hidden
    for line in (
        b"X: y\r\n z", b"X: y\r\n\tz", b"X:\r\n y", b" X: y", b"\tX: y", b"X : y", b"X\t: y", b"X\x0b: y",
        b"X: y\x00z", b"X: y\rz", b"X: y\nz", b"X: y\nHost: evil.test", b"X: y\rHost: evil.test", b"X: \x7f",
        b"X: \x1b[1m", b"X: \x01", b"X\x00: y", b"X\x7f: y", b"\xc3\xa9: y", b"X(: y", b"X/: y", b"X@: y",
        b"X[: y",
        b'X": y', b"X,: y", b"X;: y", b": y", b"X", b"X Y: z", b"X: y\r", b"\r", b"\x00", b"X\r: y",
        b"X\n: y",
        b"Host: 127.0.0.1", b"Host: evil.test", b"host: localhost", b"Authorization: a\r\nAuthorization: b",
        b"Content-Type: text/plain", b"Origin: a\r\nOrigin: b", b"X-Api-Key: a\r\nX-Api-Key: b",
        b"Expect: 200-ok",
    ):  # fmt: skip
        yield Vector(f"line {line!r}", _head(given.path, size, line) + rest)
        yield Vector(f"line {line!r} before the length", _head(given.path, line, size) + rest)
    for value in (
        b"", b" ", b":80", b"a b", b"a, b", b"a/b", b"a/admin?", b"x@evil.test", b"a#", b"a\\b", b"[::1",
        b"::1",
        b"[::1]x", b"a:http", b"a:123456", b"a:-1", b"a:1:2", b"\xc3\xa9", b"a\x00b", b"a\tb", b"http://a",
        b"a%00b",
    ):  # fmt: skip
        yield Vector(f"host {value!r}", _head(given.path, size, host=b"Host: " + value) + rest)
    yield Vector("no host", _head(given.path, size, host=b"X: y") + rest)
    for sent in (
        b"\r\n\r\n",
        b"\n",
        b"\x00",
        b" ",
        b"\r",
        b"\t",
        b"\xef\xbb\xbf",
        b"\x16\x03\x01\x02\x00\x01",
    ):
        yield Vector(f"{sent!r} in front", sent + _head(given.path, size) + rest)


def targets(given: Pieces) -> Iterator[Vector]:
    """Request lines that are none, or name another place."""
    size, rest, path = _length(len(given.body)), given.body + given.hidden, given.path.encode()
    for line in (
        b"POST %b", b"POST %b HTTP/0.9", b"POST %b HTTP/1.2", b"POST %b HTTP/1.10", b"POST %b HTTP/2.0",
        b"POST %b HTTP/1", b"POST %b http/1.1", b"POST %b HTTP/1.1 ", b"POST %b HTTP/1.1 x",
        b"POST  %b HTTP/1.1",
        b" POST %b HTTP/1.1", b"POST\t%b HTTP/1.1", b"POST %b\tHTTP/1.1", b"post %b HTTP/1.1",
        b"PO\x00ST %b HTTP/1.1",
        b"POST %b HTTP/1.1\x00", b"POST %b\x00 HTTP/1.1", b"POST %b#x HTTP/1.1", b"POST %b;x HTTP/1.1",
        b"POST http://evil.test%b HTTP/1.1", b"POST http://x@127.0.0.1%b HTTP/1.1",
        b"POST ftp://127.0.0.1%b HTTP/1.1",
        b"POST http://127.0.0.1:1%b HTTP/1.1", b"POST http:%b HTTP/1.1", b"POST https:/%b HTTP/1.1",
        b"POST //evil.test%b HTTP/1.1", b"POST @evil.test%b HTTP/1.1", b"POST \\%b HTTP/1.1",
        b"POST .%b HTTP/1.1",
        b"POST /.%b HTTP/1.1", b"POST /x/..%b HTTP/1.1", b"POST /%%2e%b HTTP/1.1",
        b"POST 127.0.0.1:80%b HTTP/1.1", b"POST %b\xc3\xa9 HTTP/1.1", b"POST %b%%0d%%0aX: HTTP/1.1",
        b"POST %b%%00 HTTP/1.1", b"POST %b HTTP/1.1\rX: y", b"POST %b HTTP/1.1\nX: y", b"POST HTTP/1.1 %b",
        b"CONNECT %b HTTP/1.1", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n%b", b"POST %b HTTQ/1.1", b"%b HTTP/1.1",
    ):  # fmt: skip
        said = line % path
        yield Vector(f"{line!r}", _head("", size, line=said) + rest)
    for line in (
        b"CONNECT 127.0.0.1:443 HTTP/1.1",
        b"POST * HTTP/1.1",
        b"OPTIONS * HTTP/1.1",
        b"POST 127.0.0.1 HTTP/1.1",
    ):
        yield Vector(f"{line!r}", _head("", size, line=line) + rest)
    for coding in (*_LEGAL_CODINGS, *_ODD_CODINGS):
        for more in ((), (b"Connection: keep-alive",)):
            old = _head("", coding, *more, line=b"POST %b HTTP/1.0" % path)
            yield Vector(f"HTTP/1.0 with {coding!r} {more}", old + chunk(given.body) + given.hidden)


def bodies(given: Pieces, others: Sequence[str]) -> Iterator[Vector]:
    """The hidden request as the body of one that nobody expects to have a body, or that is refused."""
    hidden = given.hidden
    for method in ("GET", "HEAD", "DELETE", "OPTIONS", "POST", "PUT", "PATCH", "TRACE"):
        for path in others:
            line = b"%b %b HTTP/1.1" % (method.encode(), path.encode())
            for form, framing, body in (
                ("counted", _length(len(hidden)), hidden),
                ("in chunks", _CHUNKED, chunk(hidden)),
            ):
                head = b"\r\n".join((line, _HOST, framing))
                name = f"{method} {path}, {form}"
                is_head = method == "HEAD"
                yield Vector(name, head + b"\r\n\r\n" + body, "answered", is_head)
                for more in (
                    b"Expect: 100-continue",
                    b"Content-Type: text/plain",
                    b"Origin: http://evil.test",
                ):
                    sent = head + b"\r\n" + more + b"\r\n\r\n" + body
                    yield Vector(f"{name}, {more!r}", sent, "answered", is_head)


def vectors(given: Pieces, others: Sequence[str]) -> Iterator[Vector]:
    for family in (framings, lengths, alike, chunks, heads, targets):
        for vector in family(given):
            yield vector._replace(name=f"{family.__name__}: {vector.name}")
    for vector in bodies(given, others):
        yield vector._replace(name=f"bodies: {vector.name}")
