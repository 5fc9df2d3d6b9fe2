"""Bad streams and bad documents, made from good ones. The same each time."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from random import Random
from typing import Any

from wireglot.wire.json import BadJson, decode, encode

STRANGE: tuple[Any, ...] = (None, True, 0, -1, 1.5, "", "x", [], {}, [None], {"x": None}, [[]], "2", 10**30)


def bent_streams(data: bytes, count: int, seed: int = 0) -> Iterator[bytes]:
    """The stream with frames dropped, doubled, swapped, or bent inside."""
    random = Random(seed)
    end = b"\r\n\r\n" if b"\r\n\r\n" in data else b"\n\n"
    frames = [frame for frame in data.split(end) if frame]
    for _ in range(count):
        bent = list(frames)
        for _ in range(random.randint(1, 2)):
            at = random.randrange(len(bent))
            match random.randrange(5):
                case 0 if len(bent) > 1:
                    del bent[at]
                case 1:
                    bent.insert(random.randrange(len(bent) + 1), bent[at])
                case 2:
                    other = random.randrange(len(bent))
                    bent[at], bent[other] = bent[other], bent[at]
                case _:
                    bent[at] = _bent_frame(bent[at], random)
        yield end.join(bent) + end


def _bent_frame(frame: bytes, random: Random) -> bytes:
    head, mark, body = frame.rpartition(b"data: ")
    try:
        return head + mark + encode(bent(decode(body), random))
    except BadJson:
        return head + mark + body[: random.randrange(len(body) + 1)]


def bent(document: Any, random: Random) -> Any:
    """The document with one value somewhere inside removed, or replaced by something strange."""
    document = deepcopy(document)
    places = list(_places(document))
    if not places:
        return random.choice(STRANGE)
    container, key = random.choice(places)
    if random.random() < 0.35:
        del container[key]
    else:
        container[key] = deepcopy(random.choice(STRANGE))
    return document


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield value, key
            yield from _places(item)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield value, index
            yield from _places(item)
