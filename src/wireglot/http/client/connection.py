"""One connection to an upstream: one exchange at a time, and a place in the pool in between.

It has a single timer, which checks what is due when it fires, and is set again. A normal request does not
touch the timer: the one already set is due earlier than anything new.
"""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Callable
from time import monotonic
from typing import Final, Protocol, cast

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

from wireglot.http.client.answer import HttpAnswer, decoder_for
from wireglot.http.copies import PIECE_BYTES
from wireglot.http.transport import Timeouts, TransportFault

HEAD_BYTES: Final = 64 * 1024
HEAD_FIELDS: Final = 200
INTERIM_ANSWERS: Final = 8
"""Maximum 1xx answers before the real one."""

_JOINED_BYTES: Final = 64 * 1024
"""Larger bodies are not copied to be sent in one piece with their head."""

_AT_ONCE_SECONDS: Final = 5.0
"""A server that had closed the connection before the request came reports it within a round trip."""

_OFFERED: Final = re.compile(r"\btimeout\s*=\s*\"?(\d{1,9})")
_ROUND_TRIP_SECONDS: Final = 1.0
"""How long a request may be on its way while the server's idle time ends."""

_SLACK_SECONDS: Final = 0.001
"""uvloop counts in milliseconds: a timer may fire this much too early."""

_NAMES: Final[dict[bytes, str]] = {}
# Names of headers whose lower-case form is cached.
_NAMES_MAX: Final = 1024

_SPENT: Final = HttpResponseParser(object())
"""Replaces the parser of a closed connection."""


class Home(Protocol):
    """The pool of a connection."""

    def release(self, connection: ClientConnection) -> None: ...

    def forget(self, connection: ClientConnection) -> None: ...


class ClientConnection(asyncio.Protocol):
    """Parses with one llhttp parser for its whole life. `reused`: it has had an exchange before."""

    __slots__ = (
        "_answer", "_blocked", "_bodiless", "_closed", "_due", "_ended_early", "_expiry", "_fields",
        "_head_done", "_headers", "_held", "_home", "_interim", "_keep", "_last", "_loop", "_now", "_parser",
        "_pieces", "_quiet", "_refused", "_started", "_timeouts", "_timer", "_transport", "_unsent", "_whole",
        "heard", "on_answered", "on_body", "reused",
    )  # fmt: skip

    def __init__(self, home: Home, loop: asyncio.AbstractEventLoop, now: Callable[[], float]) -> None:
        self.reused = False
        self.on_answered: Callable[[asyncio.Transport], None] | None = None
        """Called once, when the first answer is complete."""
        self._home = home
        self._loop = loop
        self._now = now
        self._transport: asyncio.Transport | None = None
        self._closed = False
        self._ended_early = False
        self._answer: HttpAnswer | None = None
        self._pieces: list[bytes] = []
        # The parser looks up its callbacks when it is created; this one then runs without a Python frame.
        self.on_body = self._pieces.append
        self._parser = HttpResponseParser(self)
        self._refused: TransportFault | None = None
        self._headers: dict[str, str] = {}
        self._timeouts = Timeouts()
        self._timer: asyncio.TimerHandle | None = None
        self._due = math.inf
        """When the timer fires."""
        self._expiry = math.inf
        """Until when it may stay in the pool."""
        self._held = False
        """Reading of the answer is paused."""
        self._blocked = False
        """Some of the request is unsent: `_unsent` bytes of it."""
        self._unsent = 0

    # Called by the pool and the transport

    @property
    def usable(self) -> bool:
        return not self._closed and self._transport is not None and not self._transport.is_closing()

    @property
    def fit(self) -> bool:
        """Usable, and not in the pool for too long (the timer may be late)."""
        transport = self._transport
        return not (
            self._closed or transport is None or transport.is_closing() or self._now() >= self._expiry
        )

    @property
    def stale(self) -> bool:
        """Ended without a byte of an answer, after earlier exchanges: it was closed while idle. One that was
        closed later may have processed the request."""
        return self.reused and not self.heard and self._ended_early and self.answered_at_once

    @property
    def answered_at_once(self) -> bool:
        return self._now() - self._started < _AT_ONCE_SECONDS

    def start(self, head: bytes, body: bytes, timeouts: Timeouts, room: int, *, bodiless: bool) -> HttpAnswer:
        """Send a request. `bodiless`: its answer has no body, whatever its head says (HEAD)."""
        assert self._answer is None
        assert self._transport is not None
        answer = self._answer = HttpAnswer(self, self._loop, room, self._loop.create_future())
        self.heard = False
        """Whether any byte of the answer has come."""
        self._bodiless = bodiless
        self._headers = {}
        self._fields = self._quiet = self._interim = 0
        self._head_done = self._whole = self._keep = self._blocked = False
        self._timeouts = timeouts
        self._started = self._last = self._now()
        """`_last`: when anything of the answer came."""
        due = self._started + min(timeouts.first_byte, timeouts.total)
        if due < self._due:
            self._arm(due)
        if len(body) <= _JOINED_BYTES:
            self._transport.write(head + body)
        else:
            # Not `writelines`: asyncio's loop does not pause for it before 3.12.9, 3.13.2 (CVE-2024-12254).
            self._transport.write(head)
            self._transport.write(body)
        return answer

    def rest(self, expiry: float) -> None:
        """Wait in the pool, at most for this many seconds, and no longer than the server allows."""
        self.reused = True
        if "keep-alive" in self._headers:
            expiry = min(expiry, _offered_seconds(self._headers["keep-alive"]))
        self._expiry = self._now() + expiry
        if self._expiry < self._due:
            self._arm(self._expiry)

    def hold(self) -> None:
        if not self._held and self.usable:
            self._held = True
            self._reading().pause_reading()

    def unhold(self) -> None:
        if self._held and self.usable:
            self._held = False
            self._came()
            self._reading().resume_reading()

    def drop(self) -> None:
        self._answer = None
        self._close()

    def sever(self) -> None:
        """Close; a waiter for an answer gets the error."""
        self._fail(TransportFault("broken", "the gateway is shutting down"))

    def _reading(self) -> asyncio.Transport:
        assert self._transport is not None
        return self._transport

    def _close(self) -> None:
        if self._closed:
            return
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._parser = _SPENT  # it references our callbacks: a cycle
        if self._transport is not None:
            # A graceful close would wait for the peer, and first send the rest of the request.
            self._transport.abort()
        self._home.forget(self)

    # Called by asyncio

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's are no subclasses of asyncio's
        # pause_writing then means that something of the request is unsent, resume_writing that all is sent.
        self._transport.set_write_buffer_limits(high=0)

    def pause_writing(self) -> None:
        self._blocked = True
        self._unsent = self._backlog()
        self._arm(self._now() + self._timeouts.idle)

    def resume_writing(self) -> None:
        self._blocked = False
        if self._answer is not None and not self._head_done:
            self._last = self._now()  # the wait for the answer begins only now
            self._arm(self._last + self._timeouts.first_byte)

    def data_received(self, data: bytes) -> None:
        answer = self._answer
        if answer is None:
            # Without a request: a server that sends data while idle is closing the connection, or out of
            # sync.
            self._close()
            return
        self.heard = True
        had_head = self._head_done
        if had_head:  # an incomplete head may not come in endless small pieces
            self._last = self._now()
        try:
            if not had_head and len(data) > HEAD_BYTES:
                data = self._behind_head(data)
            self._parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade, TransportFault):
            if not self._whole:
                self._fail(self._refused or _not_http())
                return
            self._keep = False  # the answer is complete; what follows it is not ours
        pieces = self._pieces
        if pieces:
            self._quiet = 0
            body = pieces[0] if len(pieces) == 1 else b"".join(pieces)
            pieces.clear()
            feed = answer.feed
            try:
                if feed is not None:
                    if (copy := answer.copy) is not None:
                        size = len(body)
                        if size > copy.left or copy.room.held > copy.room.most - size - PIECE_BYTES:
                            copy.add(body)
                        else:  # like `add`, but without a call for each piece
                            copy.size += size
                            copy.left -= size
                            copy.held += size + PIECE_BYTES
                            copy.room.held += size + PIECE_BYTES
                            copy.pieces.append((monotonic(), body))
                    feed(body)
                else:
                    answer.take(body)
            except Exception as error:  # an exception of feed belongs to the consumer
                self._fail(error)
                return
            if self._answer is not answer:
                return  # feed aborted it
        elif not self._whole:
            # Limits endless heads, trailers and chunk extensions; body bytes reset the count.
            self._quiet += len(data)
            if self._quiet > HEAD_BYTES:
                self._fail(_head_too_large())
                return
        if self._whole:
            self._finish(answer)
        elif not had_head and self._head_done:
            self._came()
            if not answer.waiter.done():
                answer.waiter.set_result(None)

    def _behind_head(self, data: bytes) -> bytes:
        """Parse the head at the beginning of a large piece; returns the rest."""
        self._parser.feed_data(data[:HEAD_BYTES])
        if not self._head_done:
            self._refuse(_head_too_large())
        return data[HEAD_BYTES:]

    def eof_received(self) -> None:
        self._lost(clean=True)

    def connection_lost(self, exc: Exception | None) -> None:
        if not self._closed:
            self._lost(clean=exc is None)

    def _lost(self, *, clean: bool) -> None:
        answer = self._answer
        if answer is None:
            self._close()
        elif (
            clean
            and self._head_done
            and "content-length" not in self._headers
            and "transfer-encoding" not in self._headers
        ):
            self._keep = False
            self._finish(answer)
        else:
            self._ended_early = True
            self._fail(TransportFault("broken", "the upstream closed the connection too early"))

    # Called by the parser

    def on_message_begin(self) -> None:
        if self._whole:
            raise _not_http()  # bytes after the answer: stop here, data_received closes
        if self._interim:
            self._headers = {}
            self._fields = 0

    def on_header(self, name: bytes, value: bytes) -> None:
        self._fields += 1
        if self._fields > HEAD_FIELDS:
            self._refuse(_head_too_large())
        if self._head_done:
            return  # trailers are counted, not kept
        key = _NAMES.get(name) or _known(name)
        text = value.decode("latin-1").rstrip(" \t")
        headers = self._headers
        headers[key] = f"{headers[key]}, {text}" if key in headers else text

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        if status < 200:
            self._interim += 1
            if status == 101 or self._interim > INTERIM_ANSWERS:
                self._refuse(_not_http())
            return
        headers = self._headers
        if headers.get("transfer-encoding", "chunked").lower() != "chunked":
            self._refuse(TransportFault("protocol", "the upstream's answer has an unknown transfer encoding"))
        decoder = None
        if "content-encoding" in headers:
            try:
                decoder = decoder_for(headers["content-encoding"])
            except TransportFault as fault:
                self._refuse(fault)
        self._head_done = True
        answer = self._answer
        assert answer is not None
        answer.status, answer.headers, answer.decoder = status, headers, decoder
        if decoder is not None:
            coded = ("content-encoding", "content-length")
            answer.headers = {name: value for name, value in headers.items() if name not in coded}
        if self._bodiless:
            self._whole = True

    def on_message_complete(self) -> None:
        if self._head_done and not self._bodiless:
            self._whole = True
            self._keep = self._parser.should_keep_alive()

    def _refuse(self, fault: TransportFault) -> None:
        self._refused = fault
        raise fault

    # The end of an exchange

    def _finish(self, answer: HttpAnswer) -> None:
        self._answer = None
        assert self._transport is not None
        if self.on_answered is not None:
            self.on_answered(self._transport)
            self.on_answered = None
        # If the answer ends before the request is sent completely, the rest of it blocks the next one.
        if self._keep and not self._transport.get_write_buffer_size() and not self._transport.is_closing():
            if self._held:
                self.unhold()
            self._home.release(self)
        else:
            self._close()
        answer.end(None)

    def _fail(self, error: Exception) -> None:
        answer = self._answer
        self._answer = None
        self._close()
        if answer is not None:
            answer.end(error)

    def _backlog(self) -> int:
        return self._transport.get_write_buffer_size() if self._transport is not None else 0

    # The timer

    def _came(self) -> None:
        """Begin to wait for the next piece of the answer."""
        self._last = self._now()
        self._arm(self._last + self._timeouts.idle)

    def _arm(self, due: float) -> None:
        if due >= self._due:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._due = due
        self._timer = self._loop.call_later(max(due - self._now(), _SLACK_SECONDS), self._tick)

    def _tick(self) -> None:
        self._timer = None
        self._due = math.inf
        now = self._now()
        if self._blocked:
            unsent = self._backlog()
            if unsent != self._unsent:
                self._unsent = unsent
                self._last = now
        due = self._next_due()
        if due > now + _SLACK_SECONDS:
            self._arm(due)
        elif self._answer is None:
            self._close()
        else:
            self._fail(self._time_out(now))

    def _next_due(self) -> float:
        if self._answer is None:
            return self._expiry
        total = self._started + self._timeouts.total
        if self._held:
            return total
        is_first = not self._head_done and not self._blocked
        return min(total, self._last + (self._timeouts.first_byte if is_first else self._timeouts.idle))

    def _time_out(self, now: float) -> TransportFault:
        if now + _SLACK_SECONDS >= self._started + self._timeouts.total:
            return TransportFault("total_timeout", "the upstream's answer took too long")
        if self._head_done:
            return TransportFault("idle_timeout", "the upstream stopped sending")
        if self._blocked:
            return TransportFault("first_byte_timeout", "the upstream did not read the request in time")
        return TransportFault("first_byte_timeout", "the upstream did not answer in time")


def _offered_seconds(keep_alive: str) -> float:
    """How long a connection may be idle according to its server (`Keep-Alive: timeout=5`)."""
    offered = _OFFERED.search(keep_alive)
    return max(0.0, int(offered[1]) - _ROUND_TRIP_SECONDS) if offered is not None else math.inf


def _known(name: bytes) -> str:
    """Cached, since names repeat; a server that invents new ones cannot fill the memory."""
    text = name.decode("latin-1").lower()
    if len(_NAMES) < _NAMES_MAX:
        _NAMES[name] = text
    return text


def _not_http() -> TransportFault:
    return TransportFault("protocol", "the upstream's answer is not valid HTTP")


def _head_too_large() -> TransportFault:
    return TransportFault("protocol", "the upstream's answer has too many or too large headers")
