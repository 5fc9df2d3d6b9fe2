"""The names under which a turn of a conversation is stored: derived from everything said before it, and from
its calls.

A name is made of what every client shows of a turn, so that it is found again whatever dialect echoes it:
texts, calls with their arguments, and that there were results. System texts and reasoning do not count:
clients rewrite the former and drop the latter. Ids distinguish turns with equal content, if the client sends
them back; some clients leave them out or change them, and then only content and place remain. Names are keyed
with the gateway's secret, so that read access to the store does not reveal whether anyone said a certain
thing. Older versions look up exact and loose names, and stored their data under those: how they are made must
not change, and another way to find a turn needs another name.
"""

from __future__ import annotations

import hashlib
import operator
import re
from collections.abc import Hashable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import groupby
from typing import Any, Final, NamedTuple

import msgspec

from wireglot_core.dialects.context import is_minted
from wireglot_core.ir.content import Foreign, Media, Message, Part, Text, ToolCall, ToolResult
from wireglot_core.wire.cache import Cache, fold
from wireglot_core.wire.json import BadJson, decode, encode

_NAME_BYTES: Final = 16
_PREFIX_BYTES: Final = 32
_TAIL_LETTERS: Final = 64
_TEXT_LETTERS_LEAST: Final = 32
"""Shorter answers without a call ("Done.") recur: they are found again only after the same conversation."""
_CHAIN_BYTES: Final = 1024
"""Estimated size of two digests and of names."""
_PLACE_BYTES: Final = 64
"""Estimated size of a message or part in a turn."""
_HISTORY: Final = "history"
_SHORT_ID_LETTERS: Final = 5
_COUNTED_ID: Final = re.compile(r"[.:_-]\d{1,6}\Z")
# Characters at the end of a call id that may be a count, which agents append.
_MAX_COUNT_LETTERS: Final = 7
_OWN_ID_LETTERS: Final = 24
"""Characters after the prefix of an id: as many as Droid 0.225 keeps of it (`call_..._0`)."""
_OWN_ID_LETTERS_LEAST: Final = 8
_STRIPPED_ID: Final = re.compile(r"(call|toolu)(bdrk|vrtx)?([A-Za-z0-9]{6,})")
"""`call_...`, `toolu_...`, `toolu_bdrk_...` reduced to letters and digits (OpenClaw 2026.9)."""

# Characters of arguments whose canonical form is cached.
_MAX_KNOWN_LETTERS: Final = 1024

_FLOAT: Final = re.compile(r"\d[.eE]")
_sorted: Final = msgspec.json.Encoder(order="deterministic")


class Turn(msgspec.Struct, frozen=True):
    """One answer of a model in a conversation: the messages from `start` to before `end`."""

    start: int
    end: int
    content: tuple[Part, ...]
    shown: bytes
    """What any client shows of the turn (see `visible`)."""
    said: bytes
    """The same without the ids of its calls."""
    prefix: bytes
    """Digest of everything said before the turn."""
    place: bytes
    """The same without ids."""
    made: dict[Hashable, Any] = msgspec.field(default_factory=dict)
    """Values derived from all of this except its numbers: cached with it."""


class History(msgspec.Struct, frozen=True):
    turns: tuple[Turn, ...]
    prefix: bytes
    """Digest of the whole history: the prefix of the next answer."""
    place: bytes
    """The same without ids."""


class _Chain:
    """Digests of the conversation so far, with ids and without: the same one for both until the first id
    comes."""

    def __init__(self) -> None:
        self._with_ids = hashlib.blake2b(digest_size=_PREFIX_BYTES)
        self._without = self._with_ids

    def copy(self) -> _Chain:
        other = _Chain.__new__(_Chain)
        other._with_ids = self._with_ids.copy()
        one = self._without is self._with_ids
        other._without = other._with_ids if one else self._without.copy()
        return other

    def add(self, shown: bytes, said: bytes) -> None:
        if shown != said and self._without is self._with_ids:
            self._without = self._with_ids.copy()
        self._with_ids.update(shown)
        if self._without is not self._with_ids:
            self._without.update(said)

    def digests(self) -> tuple[bytes, bytes]:
        prefix = self._with_ids.digest()
        return prefix, prefix if self._without is self._with_ids else self._without.digest()


_NOTHING: Final = _Chain()
"""The start of every stored conversation; nothing is added to it."""


def read_history(messages: Sequence[Message], memory: Cache | None = None) -> History:
    """Adjacent messages of the model are one turn: clients split answers differently.

    `memory` caches the result for each message after a given conversation: a repeated conversation is not
    hashed again.
    """
    memory = memory.for_turns(messages) if memory is not None else None
    row = memory.row(messages) if memory is not None else None
    settled = len(row.values) if row is not None else 0
    while settled and messages[settled - 1].role == "assistant":
        settled -= 1  # the next message may continue the turn

    def go_on(before: _Read, more: Sequence[Message]) -> _Read:
        count, chain, turns = before.read, before.chain, [*before.turns]
        for role, run in groupby(more, key=lambda message: message.role):
            said = list(run)
            if role == "assistant":
                turn, chain = _turn(said, count, chain, memory)
                turns.append(turn)
            elif role == "user":
                for message in said:
                    chain = _behind(message, chain, memory)
            count += len(said)
        return _Read(count, chain, tuple(turns))

    start = _Read(0, _Chain() if memory is None else _NOTHING, ())
    whole = fold(row, tuple(messages), _HISTORY, start, go_on, settled)
    return History(whole.turns, *whole.chain.digests())


class _Read(NamedTuple):
    """How far a conversation was read, and the result."""

    read: int
    chain: _Chain
    turns: tuple[Turn, ...]


def _behind(message: Message, chain: _Chain, memory: Cache | None) -> _Chain:
    """The chain after this message of the user. A cached chain is not changed any more."""
    if memory is None:
        return _said(message, chain)
    key = ("behind", id(chain))
    known: tuple[_Chain, _Chain] | None = memory.find(message, key)
    if known is not None and known[0] is chain:
        return known[1]
    after = _said(message, chain.copy())
    memory.keep(message, key, (chain, after), _CHAIN_BYTES)
    return after


def _said(message: Message, chain: _Chain) -> _Chain:
    for shown, said in _words(message.content):
        chain.add(shown, said)
    return chain


class _KnownTurn(msgspec.Struct, frozen=True, eq=False):
    before: _Chain
    rest: tuple[Message, ...]
    turn: Turn
    after: _Chain


def _turn(
    messages: Sequence[Message], start: int, chain: _Chain, memory: Cache | None
) -> tuple[Turn, _Chain]:
    """The turn that these messages of the model form, and the chain after it."""
    first, rest = messages[0], tuple(messages[1:])
    end = start + len(messages)
    key = ("turn", id(chain), *map(id, rest))
    if memory is not None:
        known: _KnownTurn | None = memory.find(first, key)
        if known is not None and known.before is chain and all(map(operator.is_, known.rest, rest)):
            turn = known.turn
            if turn.start != start:
                turn = msgspec.structs.replace(turn, start=start, end=end)
            return turn, known.after
    content = first.content
    if rest:
        content = tuple(part for each in messages for part in each.content)
    shown, said = _outlined(content)
    prefix, place = chain.digests()
    turn = Turn(start, end, content, shown=shown, said=said, prefix=prefix, place=place)
    before = chain
    if memory is not None:
        chain = chain.copy()
    chain.add(b"a", b"a")
    chain.add(shown, said)
    if memory is not None:
        size = _CHAIN_BYTES + len(shown) + len(said) + _PLACE_BYTES * (len(rest) + len(content))
        memory.keep(first, key, _KnownTurn(before, rest, turn, chain), size)
    return turn, chain


def visible(content: Iterable[Part]) -> bytes:
    """What any client shows of an answer: equal bytes for equal content."""
    return _outlined(content)[0]


def without_ids(content: Iterable[Part]) -> bytes:
    return _outlined(content)[1]


def _outlined(content: Iterable[Part]) -> tuple[bytes, bytes]:
    """The outline with the ids of its calls, and without."""
    texts: list[str] = []
    refusals: list[str] = []
    calls: list[tuple[str, ...]] = []
    for part in content:
        if type(part) is Text:
            (refusals if part.refusal else texts).append(part.text)
        elif type(part) is ToolCall:
            calls.append(call_key(part))
    words = ["".join(texts).strip(), "".join(refusals).strip()]
    shown = encode([*words, calls])
    return shown, encode([*words, [call[1:] for call in calls]]) if calls else shown


def call_key(call: ToolCall) -> tuple[str, ...]:
    return (_reported_id(call), *_call_content(call))


def _call_keys(call: ToolCall) -> Iterator[tuple[str, ...]]:
    """With the id as it came, and with its original form if a client removed the punctuation."""
    key = call_key(call)
    yield key
    if stripped := _STRIPPED_ID.fullmatch(key[0]):
        yield ("_".join(filter(None, stripped.groups())), *key[1:])


def _call_content(call: ToolCall) -> tuple[str, ...]:
    return call.name, call.namespace, _arguments(call)


def _reported_id(call: ToolCall) -> str:
    """The id that the client was given. Gemini CLI 0.61 puts the tool's name before every one."""
    return call.id.removeprefix(f"{call.name}__")


def may_be_same(sent: ToolCall, kept: ToolCall) -> bool:
    """Whether a call with equal content may be the kept one although its id differs: its id was made up by us
    because there was none, is not distinctive, or contains the kept one or the part after its prefix."""
    if is_minted(sent.id) or kept.id in sent.id or _recurs(kept.id):
        return True
    own = kept.id.rpartition("_")[2][:_OWN_ID_LETTERS]
    return len(own) >= _OWN_ID_LETTERS_LEAST and own in sent.id


def _recurs(id: str) -> bool:
    """Ids that are numbered from the start in every conversation (Kimi's `functions.x:0`, `x_0`), or hardly
    differ."""
    return len(id) <= _SHORT_ID_LETTERS or _COUNTED_ID.search(id, len(id) - _MAX_COUNT_LETTERS) is not None


def _arguments(call: ToolCall) -> str:
    text = call.arguments
    if call.kind == "custom":
        return text
    # Some calls write whole files: thousands of those must not be cached in addition to the counted memory.
    return _canonical_once(text) if len(text) <= _MAX_KNOWN_LETTERS else _canonical(text)


def _canonical(text: str) -> str:
    """Clients decode and re-encode arguments, which changes spaces, the order of keys and zeros."""
    try:
        value = decode(text) if text.strip() else {}
        if _FLOAT.search(text):
            value = _with_plain_numbers(encode(value))
        return _sorted.encode(value).decode()
    except (BadJson, UnicodeEncodeError, RecursionError):
        return text.strip()


_canonical_once: Final = lru_cache(maxsize=4096)(_canonical)
"""An agent sends every call of a conversation again with each turn: it is canonicalized once."""


def _plain_number(digits: str) -> float:
    value = float(digits)
    return int(value) if value.is_integer() and abs(value) < 2**53 else value


_with_plain_numbers: Final = msgspec.json.Decoder(float_hook=_plain_number).decode


def _words(content: Iterable[Part]) -> Iterator[tuple[bytes, bytes]]:
    """The bytes to hash, with ids and without."""
    for part in content:
        if type(part) is Text:
            text = part.text.strip()
            if text:
                word = encode(["t", text])
                yield word, word
        elif type(part) is ToolResult:
            yield encode(["r", part.call_id]), b"r"
        elif type(part) is Media:
            held = part.data or part.text or part.url or part.file_id or ""
            word = encode(["m", part.kind, len(held), held[-_TAIL_LETTERS:]])
            yield word, word
        elif type(part) is Foreign:
            word = encode(["f", part.type])
            yield word, word


@lru_cache(maxsize=1024)
def _begun(secret: bytes, kind: bytes, within: tuple[bytes, ...]) -> hashlib.blake2b:
    """The common beginning of names of a kind. Nothing is added to it."""
    key = hashlib.sha256(b"wireglot turns\x00" + secret).digest()
    begun = hashlib.blake2b(digest_size=_NAME_BYTES, key=key, person=kind)
    for piece in within:
        begun.update(len(piece).to_bytes(8, "big") + piece)
    return begun


class Namer:
    """Names for one caller's turns, under one secret. `apart`: for turns that are kept for their own dialect,
    which older versions do not know."""

    def __init__(self, secret: bytes, caller: str, session: str, *, apart: bool = False) -> None:
        self._session = session
        # The common beginning of the names of every kind.
        owner = (caller.encode("utf-8", "replace"), *((b"own dialect",) if apart else ()))
        within = (*owner, session.encode("utf-8", "replace"))
        self._exact = _begun(secret, b"turn", owner)
        self._placed = _begun(secret, b"place", within)
        self._call = _begun(secret, b"call", within)
        self._text = _begun(secret, b"text", within)

    def exact(self, prefix: bytes, shown: bytes) -> str:
        """The turn after exactly this conversation."""
        return _name(self._exact, prefix, shown)

    def placed(self, place: bytes, said: bytes) -> str:
        """The same by content and place alone, for clients that change or drop ids. Two of one caller's
        conversations may be equal so far: a session that the client names distinguishes them."""
        return _name(self._placed, place, said)

    def loose(self, content: Iterable[Part]) -> list[str]:
        """The turn wherever it is: by each of its calls, or by its text. For clients that edit or shorten
        what was before. Ids that recur identify a turn only within a session that the client names."""
        calls = [part for part in content if type(part) is ToolCall]
        if calls:
            return [
                _name(self._call, encode(key))
                for call in calls
                if self._session or not _recurs(call.id)
                for key in _call_keys(call)
            ]
        text = "".join(part.text for part in content if type(part) is Text).strip()
        if len(text) < _TEXT_LETTERS_LEAST:
            return []
        return [_name(self._text, encode(text))]


def _name(begun: hashlib.blake2b, *material: bytes) -> str:
    state = begun.copy()
    for piece in material:
        state.update(len(piece).to_bytes(8, "big") + piece)
    return state.hexdigest()
