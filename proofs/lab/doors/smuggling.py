"""Requests hidden in others: what the provider was asked tells whether one came through."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator
from itertools import count, pairwise
from pathlib import Path
from typing import Final

import msgspec

from proofs.lab.doors.knocking import PATIENCE_SECONDS, Book, Said, at_once, knock, request
from proofs.lab.doors.routes import every_route, target
from proofs.lab.doors.smuggling_vectors import Pieces, Vector, chunk, vectors
from proofs.lab.doors.stage import Stage, staged
from proofs.lab.marking_upstream import MARK, mark
from proofs.lab.questions import CLIENTS, question, whole
from wireglot_core.dialects.registry import DialectName

_FRONT: Final = 1
_HIDDEN: Final = 2
_LAST: Final = request("GET", "/healthz")
"""Behind all else: it is answered where the connection goes on, and ends it."""
_WAIT_SECONDS: Final = 0.3
_MAX_PIECES: Final = 7
_OTHERS_EVERY: Final = 4

Task = tuple[int, Vector, list[bytes]]


async def trial(book: Book, folder: Path) -> None:
    async with staged(folder) as stage:
        await _right(book, stage)
        said: dict[int, tuple[Vector, list[Said]]] = {}

        async def one(task: Task) -> None:
            number, vector, pieces = task
            seconds = _WAIT_SECONDS if vector.wanted == "waits" else PATIENCE_SECONDS
            said[number] = vector, await knock(stage.port, pieces, is_head=vector.is_head, seconds=seconds)

        await at_once(book.some(_tasks(random.Random(book.seed))), one, most=16)
        asked = _asked(stage)
        for number, (vector, answers) in said.items():
            book.counts[f"{vector.wanted}"] += 1
            book.knocked(vector.name, _admitted(vector, answers, asked[number]))


def _tasks(chance: random.Random) -> Iterator[Task]:
    """Every vector in every dialect: in one piece, in two, or in several."""
    numbers = count(1)
    others = list(dict.fromkeys(target(route) for route in every_route()))
    others = [*others[::_OTHERS_EVERY], "/nowhere", "/v1/messages", "/v1/responses"]
    for client in CLIENTS:
        for vector in vectors(_pieces(client, 0), others):
            number = next(numbers)
            sent = vector.sent if vector.wanted == "waits" else vector.sent + _LAST
            for who in (_FRONT, _HIDDEN):  # all marks are of one length
                sent = sent.replace(mark(who, 0).encode(), mark(who, number).encode())
            named = vector._replace(name=f"{client}: {vector.name}")
            yield number, named, _cut(sent, (1, 2, _MAX_PIECES)[number % 3], chance)


def _pieces(client: DialectName, number: int) -> Pieces:
    path, body = whole(*question(client, "openai-chat/any", f"Say {mark(_FRONT, number)}"))
    inner, hidden = whole(*question("openai-chat", "openai-chat/any", f"Say {mark(_HIDDEN, number)}"))
    return Pieces(
        path, msgspec.json.encode(body), request("POST", inner, msgspec.json.encode(hidden), close=False)
    )


def _cut(sent: bytes, pieces: int, chance: random.Random) -> list[bytes]:
    places = sorted({0, len(sent), *(chance.randrange(len(sent)) for _ in range(pieces - 1))})
    return [sent[start:end] for start, end in pairwise(places)]


def _asked(stage: Stage) -> dict[int, list[set[int]]]:
    """By number of the vector: whose marks stood in each request that the provider got."""
    found: dict[int, list[set[int]]] = defaultdict(list)
    for each in stage.seen:
        marks = {(int(who), int(number)) for who, number, _ in MARK.findall(each.body)}
        for number in {number for _, number in marks}:
            found[number].append({who for who, of in marks if of == number})
    return found


def _admitted(vector: Vector, answers: list[Said], asked: list[set[int]]) -> str:
    if {_HIDDEN} in asked:
        return "the hidden request was asked"
    if any(said.status in (0, 101) for said in answers):
        return f"answered with {[said.status for said in answers]}"
    final = [said for said in answers if said.status != 100]
    if vector.wanted == "answered":
        return _more_than_one(final, asked)
    if asked:
        return "it was sent to the provider"
    if vector.wanted == "waits":
        return f"{len(final)} answers before its end" if final else ""
    if len(final) > 1 or any(said.let_in for said in final):
        return f"answered with {[said.status for said in final]}"
    return ""


def _more_than_one(final: list[Said], asked: list[set[int]]) -> str:
    if len(final) > 2:
        return f"{len(final)} answers: {[said.status for said in final]}"
    return "asked twice" if len(asked) > 1 else ""


async def _right(book: Book, stage: Stage) -> None:
    """Two requests one behind the other are two, and legal forms are taken."""
    for place, client in enumerate(CLIENTS):
        number = 90_000_000 + place * 10
        given = _pieces(client, number)
        front = request("POST", given.path, given.body, close=False)
        pipelined = await knock(stage.port, [front + given.hidden + _LAST])
        asked = _asked(stage)[number]
        book.right(
            f"{client}: two requests",
            len(pipelined) == 3 and sorted(map(min, asked)) == [_FRONT, _HIDDEN],
            pipelined,
        )
        head = request("POST", given.path, given.body, {"transfer-encoding": "chunked"}, close=False)
        head = head.partition(b"\r\n\r\n")[0].replace(b"\r\ncontent-length: %d" % len(given.body), b"")
        for body in (
            chunk(given.body),
            b'%X;a=b;c="d"\r\n%b\r\n000\r\n\r\n' % (len(given.body), given.body),
            chunk(given.body[:5], last=b"") + chunk(given.body[5:]),
        ):
            said = await knock(stage.port, [head + b"\r\n\r\n" + body + _LAST])
            book.right(f"{client}: {body[:20]!r}", [each.status for each in said] == [200, 200], said)
