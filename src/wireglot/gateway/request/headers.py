"""Headers of the gateway's answers: their id, losses (names for all callers, details on request), and what a
page in a browser may read."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import repeat
from typing import Final

from wireglot.gateway.errors import RequestError
from wireglot.http.application import Head, Headers
from wireglot_core.dialects.registry import surface
from wireglot_core.dialects.surface import ClientSide
from wireglot_core.ir.loss import Loss, grouped, sum_of, worst_first
from wireglot_core.wire.json import encode

JSON: Final = ("content-type", "application/json")
ESTIMATE: Final = ("x-wireglot-estimate", "true")
"""On an answer with a count of tokens that no provider reported."""
LOSSES: Final = "x-wireglot-losses"
DETAILS: Final = "x-wireglot-loss-details"
"""A request header: the answer shall have it too, with the details of losses."""

NAMES_BYTES: Final = 512
DETAILS_BYTES: Final = 4096
"""Proxies allow 8 KiB for all headers of an answer together, and some no more."""
_DETAIL_LONGEST: Final = 200
_ROOM_FOR_MARK: Final = 24

_NO = frozenset({"", "0", "false", "no"})
_NOT_PLAIN = re.compile(r"[^ -~]")

_EXPOSED: Final = ", ".join(
    ("x-wireglot-request-id", "x-request-id", "x-wireglot-route", LOSSES, DETAILS, "retry-after")
)
"""The headers that a page in a browser may read: all others are hidden from it."""


IDENTITY: Final = ("x-wireglot-request-id", "x-request-id")
"""The headers with the request id in answers of every dialect; some have one more."""


def identity(request_id: str, dialect_name: str) -> Headers:
    """The id under which an answer is found in the log, in every header that clients read."""
    return list(zip((*IDENTITY, *surface(dialect_name).client.identity_headers), repeat(request_id)))


def cross_origin(origin: str) -> Headers:
    """For a page of an allowed origin."""
    return [
        ("access-control-allow-origin", origin),
        ("access-control-expose-headers", _EXPOSED),
        ("vary", "origin"),
    ]


def check_version(head: Head, client: ClientSide) -> None:
    """Refuse clients that expect the answers of an older version of their API."""
    if client.version is None:
        return
    name, oldest = client.version
    stated = head.headers.get(name.lower(), "")
    if stated and stated < oldest:
        text = f"{name}: {stated[:32]} is not served here: send {name}: {oldest} or later, or no such header"
        raise RequestError("bad", text, code="failed_precondition", param=name)


def wants_details(head: Head) -> bool:
    return head.headers.get(DETAILS, "").strip().lower() not in _NO


def loss_headers(losses: Sequence[Loss], *, details: bool) -> Headers:
    headers: Headers = [(LOSSES, names(worst_first(losses)))]
    if details:
        headers.append((DETAILS, whole(worst_first(grouped(losses)))))
    return headers


def names(losses: Sequence[Loss]) -> str:
    """Features, each once; `+3` at the end: this many more did not fit."""
    found = list(dict.fromkeys([loss.feature for loss in losses]))
    text = ",".join(found)
    shown = len(found)
    while len(text) > NAMES_BYTES:
        shown -= 1
        text = ",".join([*found[:shown], f"+{len(found) - shown}"])
    return text


def whole(losses: Sequence[Loss]) -> str:
    """A JSON array in ASCII; `{"untold": 3}` at its end: this many more did not fit."""
    room = DETAILS_BYTES - _ROOM_FOR_MARK
    reported: list[str] = []
    for loss in losses:
        fields = loss.as_dict()
        if len(fields["detail"]) > _DETAIL_LONGEST:
            fields["detail"] = fields["detail"][: _DETAIL_LONGEST - 1] + "…"
        text = _ascii(encode(fields).decode("utf-8", "replace"))
        room -= len(text) + 1
        if room < 0:
            reported.append(f'{{"untold":{sum_of(losses[len(reported) :])}}}')
            break
        reported.append(text)
    return f"[{','.join(reported)}]"


def _ascii(text: str) -> str:
    """JSON with all characters in ASCII, as headers require."""
    return text if text.isascii() and text.isprintable() else _NOT_PLAIN.sub(_escaped, text)


def _escaped(letter: re.Match[str]) -> str:
    units = letter[0].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[place]:02x}{units[place + 1]:02x}" for place in range(0, len(units), 2))
