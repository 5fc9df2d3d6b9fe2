"""Finds the exchanges that are turns of one conversation, if the client names no session.

A turn continues the exchange whose messages are the beginning of its own. Only hashes of messages are
compared.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec

from wireglot_core.dialects.context import Context
from wireglot_core.dialects.registry import UnknownDialect, dialect
from wireglot_core.ir.content import Foreign, Media, Message, Text, ToolCall, ToolResult
from wireglot_core.ir.errors import WireglotError
from wireglot_core.ir.request import Request
from wireglot_core.traces.bodies import is_tangled
from wireglot_core.traces.trace import Row, TurnHashes
from wireglot_core.wire.json import BadJson, decode

DERIVED: Final = "turns-"
"""Prefix of the name of such a conversation, followed by the id of one of its exchanges."""
_TITLE_LETTERS: Final = 120
_HASH_BYTES: Final = 8


def read_request(name: str, body: bytes) -> Request | None:
    """The client's body in neutral terms; None if it is not a conversation, or too large to parse."""
    if is_tangled(body):
        return None
    try:
        document = decode(body)
        return dialect(name).parse_request(document, Context()) if isinstance(document, dict) else None
    except (BadJson, WireglotError, UnknownDialect, RecursionError):
        return None


def history_of(request: Request | None) -> TurnHashes | None:
    messages = [each for each in request.messages if each.role != "system"] if request is not None else []
    if not messages:
        return None
    state, prefixes = hashlib.blake2b(digest_size=_HASH_BYTES), [""]
    for message in messages:
        for piece in _pieces(message):
            state.update(f"{len(piece)}:{piece}".encode("utf-8", "surrogatepass"))
        prefixes.append(state.copy().hexdigest())
    answers = [at for at, message in enumerate(messages) if message.role == "assistant"]
    if not answers:
        return TurnHashes(prefixes[-1])
    last = first = answers[-1]
    while first > 0 and messages[first - 1].role == "assistant":
        first -= 1
    return TurnHashes(prefixes[-1], prefixes[first], prefixes[last + 1], prefixes[answers[0] + 1])


def _pieces(message: Message) -> Iterable[str]:
    """The content to compare, without what a client adds or leaves out from turn to turn, such as cache marks
    and reasoning."""
    yield message.role
    for part in message.content:
        match part:
            case Text():
                yield part.text
            case ToolCall():
                yield from (part.name, part.arguments)
            case ToolResult():
                for each in part.content:
                    yield each.text if isinstance(each, Text) else _other(each)
            case _:
                yield _other(part)


def _other(part: Any) -> str:
    if isinstance(part, Media):
        return part.data or part.text or part.url or part.file_id or ""
    return part.text if isinstance(part, Foreign) else ""


def title_of(request: Request | None) -> str:
    """The last words of the user; text that programs insert (in tags, tool results) is left out."""
    for message in reversed(request.messages if request is not None else ()):
        if message.role != "user":
            continue
        for part in reversed(message.content):
            text = " ".join(part.text[: 20 * _TITLE_LETTERS].split()) if isinstance(part, Text) else ""
            if text and not text.startswith("<"):
                return text if len(text) <= _TITLE_LETTERS else f"{text[: _TITLE_LETTERS - 1]}…"
    return ""


class _Turn:
    __slots__ = ("answered", "row", "session")

    def __init__(self, row: Row, session: str) -> None:
        self.row = row
        self.session = session
        self.answered = ""
        """The hash of its answer, as in the turn that continues it; "": none continues it."""


def with_sessions(rows: Sequence[Row]) -> list[Row]:
    """The rows in their order; those without a session get the conversation that they continue or begin."""
    known: dict[tuple[str, str, str], list[_Turn]] = {}
    roots: dict[tuple[str, str, str], str] = {}
    sessions: dict[str, str] = {}
    for row in sorted(rows, key=lambda row: (row.at, row.id)):
        said = row.history
        if row.session or said is None or row.operation == "count":
            continue
        before = _continued(known.get((row.key, row.client, said.before), ()), row, said)
        root = (row.key, row.client, said.root)
        session = before.session if before is not None else roots.get(root, "") if said.root else ""
        session = session or f"{DERIVED}{row.id}"
        if before is not None:
            before.answered = said.answered
        if said.root:
            roots[root] = session
        known.setdefault((row.key, row.client, said.own), []).append(_Turn(row, session))
        sessions[row.id] = session
    return [msgspec.structs.replace(row, session=sessions.get(row.id, row.session)) for row in rows]


def _continued(turns: Sequence[_Turn], row: Row, said: TurnHashes) -> _Turn | None:
    """Among turns with equal messages: the latest that is not continued yet, else one with the same
    answer."""
    if not said.before:
        return None
    ended = [turn for turn in turns if turn.row.at + (turn.row.total_ms or 0.0) / 1000 <= row.at + 0.001]
    good = [turn for turn in ended or turns if turn.row.state != "failed"] or ended or turns
    for turn in reversed(good):
        if not turn.answered:
            return turn
    alike = (turn for turn in reversed(good) if turn.answered == said.answered)
    return next(alike, good[-1] if good else None)
