"""Reasoning state that clients carry: forged, damaged, joined, or another's. It opens as it was sealed and
for whom, or not at all; and then it is dropped and reported, never sent to a provider."""

from __future__ import annotations

import base64
import random
from collections.abc import Iterator
from itertools import count, product
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from proofs.lab.doors.knocking import Book, asked, at_once
from proofs.lab.doors.stage import ANN, BOB, KEYS, Stage, staged
from proofs.lab.fuzz_codecs import carrying
from proofs.lab.marking_upstream import mark
from proofs.served import keys_table
from wireglot.gateway.entry.callers import LOCAL, Caller, sealing
from wireglot.gateway.settings import Secret, ServerSettings
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.envelope import PREFIX
from wireglot_core.dialects.registry import DialectName
from wireglot_core.ir.content import Origin, Signature

_SECRET: Final = "the secret of this gateway, long enough"
_OLD: Final = "the secret that it had before, long enough"
FOREIGN: Final = "the secret of another gateway, long enough"
_PLANTED: Final = "c3RhdGUtb2Y"
"""How all state begins that is sealed here ("state-of")."""
_PAIRS: Final[tuple[tuple[DialectName, DialectName], ...]] = (
    ("anthropic", "gemini"),
    ("anthropic", "openai-responses"),
    ("openai-responses", "anthropic"),
    ("openai-responses", "gemini"),
    ("gemini", "anthropic"),
    ("gemini", "openai-responses"),
)
_MAGIC_BYTES: Final = 3


class Carried(NamedTuple):
    """`brought`: by whom. `state`: what alone may go out, "" for nothing."""

    name: str
    text: str
    brought: str = ANN
    state: str = ""
    is_anothers: bool = False
    """It is whole, and another caller's: who brings it is informed that it was dropped."""


def context_of(caller: str, secret: str = _SECRET) -> Context:
    who = Caller(caller) if caller else LOCAL
    sealed = sealing(ServerSettings(secret=Secret(secret)), who)
    return Context(secret=sealed.secret, owner=sealed.owner)


def _state(owner: str, number: int) -> str:
    reported = base64.b64encode(f" {owner} {number:06d}".encode()).decode().rstrip("=")
    return f"{_PLANTED}{reported}"


def _sealed(pair: tuple[DialectName, DialectName], owner: str, number: int, secret: str = _SECRET) -> str:
    _, speaker = pair
    id = "rs_1" if speaker == "openai-responses" else ""
    return context_of(owner, secret).seal(Signature(_state(owner, number), Origin(speaker), id), "reasoning")


def _vectors(pair: tuple[DialectName, DialectName], chance: random.Random) -> Iterator[Carried]:
    ann, bob = _sealed(pair, ANN, 1), _sealed(pair, BOB, 2)
    raw, foreign = base64.b64decode(ann), base64.b64decode(bob)
    for place in range(len(raw)):
        bit = 1 << chance.randrange(8)
        changed = bytearray(raw)
        changed[place] ^= bit
        yield Carried(f"byte {place} changed by {bit:#x}", _encoded(bytes(changed)))
        yield Carried(f"cut to {place}", _encoded(raw[:place]))
    for size in range(_MAGIC_BYTES + 1, len(raw), 3):
        yield Carried(f"begun at {size}", PREFIX + _encoded(raw[size:]))
    for size in range(1, len(ann.rstrip("=")), 3):
        yield Carried(f"{size} letters", ann[:size])
    for more in (b"\x00", b"\x01", b"x", raw, foreign, b"\xc0", b"\xff" * 40, foreign[_MAGIC_BYTES:]):
        # Where its letters end with its bytes, a second one behind it makes two, each opened for itself:
        # clients join those of neighbouring thoughts. Hers may then go out, and nothing else.
        hers = _state(ANN, 1) if more in (raw, foreign) else ""
        yield Carried(f"longer by {len(more)}", _encoded(raw + more), state=hers)
        yield Carried(f"{len(more)} before it", _encoded(raw[:_MAGIC_BYTES] + more + raw[_MAGIC_BYTES:]))
    for place in range(_MAGIC_BYTES, min(len(raw), len(foreign)), 2):
        yield Carried(
            f"hers to {place}, then his", _encoded(raw[:place] + foreign[place:]), state=_state(ANN, 1)
        )
        yield Carried(
            f"his to {place}, then hers", _encoded(foreign[:place] + raw[place:]), state=_state(ANN, 1)
        )
    for version in range(0, 256, 2):  # ours is odd, so it is not among them
        other_version = raw[: _MAGIC_BYTES - 1] + bytes([version]) + raw[_MAGIC_BYTES:]
        yield Carried(f"version {version}", _encoded(other_version))
    for number in range(20):
        theirs, his = _sealed(pair, ANN, number, FOREIGN), _sealed(pair, BOB, number)
        yield Carried(f"of another gateway, {number}", theirs)
        yield Carried(f"of another gateway for nobody, {number}", _sealed(pair, "", number, FOREIGN))
        yield Carried(f"of another caller, {number}", his, is_anothers=True)
        hers = _sealed(pair, ANN, number)
        yield Carried(f"hers, brought by him, {number}", hers, BOB, is_anothers=True)
        yield Carried(f"of one whose name begins alike, {number}", _sealed(pair, ANN + "x", number))
        yield Carried(f"of one in capitals, {number}", _sealed(pair, ANN.upper(), number))
        own = _sealed(pair, ANN, number)
        yield Carried(f"hers and his, {number}", own + his, state=_state(ANN, number))
        yield Carried(f"his and hers, {number}", his + own, state=_state(ANN, number))
        yield Carried(
            f"another spelling of his, {number}", his.replace("+", "-").replace("/", "_").rstrip("=")
        )
        yield Carried(f"with spaces, {number}", f" {own}", state=_state(ANN, number))
        yield Carried(f"with a line end, {number}", own[:20] + "\n" + own[20:], state=_state(ANN, number))
        yield Carried(
            f"a made-up tag, {number}", _encoded(raw[:_MAGIC_BYTES] + chance.randbytes(16) + foreign[19:])
        )
        yield Carried(f"a made-up one, {number}", PREFIX + _encoded(chance.randbytes(chance.randrange(99))))
    other = next(each for each in _PAIRS if each[1] != pair[1])
    for number in range(20):
        # Her own, of another provider: it is hers, and no business of this one.
        yield Carried(f"hers of another provider, {number}", _sealed(other, ANN, number))


def _encoded(raw: bytes) -> str:
    return base64.b64encode(raw).decode()


async def trial(book: Book, folder: Path) -> None:
    server = f'secret = "{_SECRET}"\nold_secrets = ["{_OLD}"]\n'
    async with staged(folder, server=server, tables=keys_table(KEYS)) as stage:
        chance, numbers = random.Random(book.seed), count(1)
        for pair in _PAIRS:
            for secret, owner in product((_SECRET, _OLD), (ANN, "")):
                number = next(numbers)
                mine = Carried("her own", _sealed(pair, owner, number, secret))
                status, seen, _ = await _brought(stage, pair, mine, number)
                went = _state(owner, number).encode() in seen
                book.right(f"{pair}: hers, {owner!r}, {secret[:16]}", status == 200 and went, seen[:300])

        async def one(task: tuple[tuple[DialectName, DialectName], Carried]) -> None:
            pair, carried = task
            status, seen, losses = await _brought(stage, pair, carried, next(numbers))
            book.counts[f"status {status}"] += 1
            allowed = seen.replace(carried.state.encode(), b"") if carried.state else seen
            problem = ""
            if _PLANTED.encode() in allowed:
                problem = f"a provider was reported {allowed[allowed.index(_PLANTED.encode()) :][:60]!r}"
            elif b'"' + PREFIX.encode() in allowed:
                problem = "an envelope was sent for a signature"
            elif status != 200:
                problem = f"refused with {status}, not dropped"
            if carried.is_anothers:
                book.right(f"{pair}: {carried.name}, informed of the loss", "reasoning" in losses, losses)
            book.knocked(f"{pair[0]} to {pair[1]}: {carried.name}", problem)

        await at_once(book.some((pair, each) for pair in _PAIRS for each in _vectors(pair, chance)), one)


async def _brought(
    stage: Stage, pair: tuple[DialectName, DialectName], carried: Carried, number: int
) -> tuple[int, bytes, str]:
    """The status, all that a provider was sent for it, and the losses that the caller was informed of."""
    client, speaker = pair
    body = carrying(client, carried.text)
    own = mark(1, number)
    model = f"{speaker}/any"
    path = {"anthropic": "/v1/messages", "openai-responses": "/v1/responses"}.get(client, "")
    if path:
        body["model"] = model
    else:
        path = f"/v1beta/models/{model}:generateContent"
        call = body["contents"][1]["parts"][0]
        thought = {"text": "Hm.", "thought": True, "thoughtSignature": call.pop("thoughtSignature")}
        body["contents"][1]["parts"] = [thought, call]
    before = len(stage.seen)
    sent = msgspec.json.encode(body).replace(b"Hi.", own.encode())
    said = await asked(stage.port, "POST", path, sent, {"x-api-key": KEYS[carried.brought]})
    reported = b"".join(each.body for each in stage.saw(own, before))
    return said.status, reported, said.header("x-wireglot-losses")
