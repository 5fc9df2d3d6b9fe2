"""Compares how much of a request should have come from a provider's prompt cache with how much did, and finds
what broke it.

A turn is compared with the one before it in the same conversation: the common beginning of both requests to
the same provider and model is what the cache can serve. Its tokens are estimated from the reported usage of
the turn before.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, Literal

import msgspec

from wireglot_core.providers.limits import Limits
from wireglot_core.providers.spec import limits_for, names
from wireglot_core.traces.bodies import UnreadableBody, check_linkable, document
from wireglot_core.traces.diff import ABSENT, first_difference, shown
from wireglot_core.traces.pointer import pointer
from wireglot_core.traces.target import BadTarget, target_of
from wireglot_core.traces.trace import Attempt, Row, Trace, TraceMessage
from wireglot_core.wire.json import encode_text

Verdict = Literal["first", "hit", "partly", "missed", "none", "unknown"]
"""first: there is no turn before it. none: no cached tokens were expected. unknown: there is no body, or no
usage."""


class CacheBreak(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Why less than the whole turn before can be reused."""

    reason: str
    pointer: str = ""
    """A pointer into this turn's upstream request; for something removed, into that of the turn before."""
    before: str = ""
    after: str = ""


class CacheTruth(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    id: str
    at: float
    verdict: Verdict
    previous: str = ""
    """The id of the exchange it is compared with."""
    input: int | None = None
    expected: int | None = None
    """An estimate: the common part of both requests, in tokens as the turn before was counted."""
    cached: int | None = None
    """Cached tokens reported by the provider; None if it reports none."""
    same: int = 0
    """Number of blocks (tools, system texts, parts of messages) that are equal from the beginning."""
    blocks: int = 0
    """Number of blocks in the turn before."""
    broken: CacheBreak | None = None
    note: str = ""
    """Another explanation, or why the result is unknown."""


Read = Callable[[str], Trace | None]
"""A recorded exchange by its id."""

_MARKS: Final = ("cache_control", "prompt_cache_breakpoint")
_COMPARED: Final = 4
"""Number of turns to compare: a conversation may have gone back and continued differently."""
_MEDIA_WEIGHT: Final = 6000
"""Weight of a picture or file, in characters: the length of its base64 does not determine its tokens."""
_MEDIA_FROM: Final = 2000
_TOKEN: Final = 4
"""Characters per token, if nothing was counted."""
_LOOKBACK: Final = 20
"""Number of blocks before a marker in which Anthropic looks for an earlier entry (its page on prompt
caching)."""
_TTL: Final = {"5m": 300.0, "1h": 3600.0}
_IDLE: Final = 300.0
"""Seconds after which providers that cache automatically may have dropped an entry."""
_UNKNOWN_RULES: Final = "how this provider caches is not in the catalog: any equal beginning counts"
_ENOUGH: Final = 0.9
_SECOND: Final = 1000.0
_MINUTE: Final = 60.0


def conversation_cache(rows: Iterable[Row], read: Read) -> list[CacheTruth]:
    """The results for every turn of a conversation, the oldest first."""
    ordered = sorted(rows, key=_age)
    known: dict[str, _Turn] = {}

    def turn(row: Row) -> _Turn:
        if row.id not in known:
            known[row.id] = _turn(row, read)
            while len(known) > _COMPARED * 8:
                del known[next(iter(known))]
        return known[row.id]

    return [_truth(turn(row), ordered[:at], turn) for at, row in enumerate(ordered)]


def exchange_cache(row: Row, rows: Iterable[Row], read: Read) -> CacheTruth:
    """The result for one turn. `rows`: those of its conversation."""
    before = (each for each in rows if (each.at, each.id) < (row.at, row.id))
    return _truth(_turn(row, read), sorted(before, key=_age), lambda each: _turn(each, read))


def _age(row: Row) -> tuple[float, str]:
    return row.at, row.id


# --- a turn


class _Block(msgspec.Struct, frozen=True):
    pointer: str
    value: Any
    """The block without its cache marker."""
    text: str
    weight: int
    ttl: str = ""
    """The `ttl` of the marker after it; "" if there is none."""


class _Turn(msgspec.Struct, frozen=True):
    row: Row
    blocks: list[_Block]
    limits: Limits
    cached: int | None = None
    fault: str = ""

    @property
    def tokens(self) -> int | None:
        used = self.row.tokens
        return used.input if used is not None and used.source != "estimated" and used.input else None

    def marks(self) -> list[tuple[int, str]]:
        """The number of blocks before each marker, and the lifetime of the entry that it writes."""
        return [(at, block.ttl) for at, block in enumerate(self.blocks, 1) if block.ttl]


def _turn(row: Row, read: Read) -> _Turn:
    trace = read(row.id)
    attempt = trace.attempts[-1] if trace is not None and trace.attempts else None
    if trace is None:
        return _Turn(row, [], Limits(), fault="its bodies were not recorded, or are not on this machine")
    if attempt is None:
        return _Turn(row, [], Limits(), fault="no provider was called")
    # Its conversation was not known at that time.
    row = msgspec.structs.replace(trace.row, session=row.session)
    try:
        check_linkable(attempt.request, "the upstream request")
        body = document(attempt.request, "the upstream request")
        limits = _limits(attempt)
    except (UnreadableBody, BadTarget) as fault:
        return _Turn(row, [], Limits(), fault=str(fault))
    return _Turn(row, list(_blocks(body, limits.cache == "marked")), limits, _cached(row, attempt))


def _limits(attempt: Attempt) -> Limits:
    recorded = target_of(attempt).limits
    if recorded is not None and recorded.cache:
        return recorded
    named = attempt.provider if attempt.provider in names() else ""
    known = limits_for(attempt.dialect, attempt.model, named)
    return known if named or not recorded else recorded


_REPORTED: Final = re.compile(
    r'"(?:cache_read_input_tokens|cacheReadInputTokens|cached_tokens|total_cached_tokens|cachedContentTokenCount'
    r'|prompt_cache_hit_tokens)\\?"'
)


def _cached(row: Row, attempt: Attempt) -> int | None:
    """Cached tokens; None if the provider does not report them. Gemini leaves out zeros."""
    used = row.tokens
    if used is None or used.source == "estimated":
        return None
    if used.cached or attempt.dialect.startswith(("gemini", "code-assist")):
        return used.cached
    answer = attempt.answer
    return used.cached if answer is not None and _mentions_cache(answer) else None


def _mentions_cache(answer: TraceMessage) -> bool:
    return any(_REPORTED.search(text) for text in (answer.body, *(frame.data for frame in answer.frames)))


# --- the blocks of a request, in the order in which they are cached


def _blocks(body: dict[str, Any], is_marked: bool) -> Iterator[_Block]:
    base = ""
    if isinstance(body.get("request"), dict):  # Code Assist
        body, base = body["request"], "/request"
    found = [*_fixed(body, base, is_marked), *_said(body, base)]
    if is_marked and found and (ttl := _ttl(body)):  # the last block that can be cached is marked
        found[-1] = msgspec.structs.replace(found[-1], ttl=ttl)
    yield from found


def _fixed(body: dict[str, Any], base: str, is_marked: bool) -> Iterator[_Block]:
    """The blocks before the conversation."""
    yield from _each(body.get("tools"), f"{base}/tools")
    for name in ("system", "instructions"):
        yield from _each(body.get(name), f"{base}/{name}")
    for name in ("systemInstruction", "system_instruction"):
        if isinstance(system := body.get(name), dict):
            yield from _each(system.get("parts"), f"{base}/{name}/parts")
    if is_marked:  # these change how messages are written before the model
        for name in ("tool_choice", "thinking"):
            if name in body:
                yield _block(f"{base}/{name}", {name: body[name]})


def _said(body: dict[str, Any], base: str) -> Iterator[_Block]:
    for field, inside in (("messages", "content"), ("input", "content"), ("contents", "parts")):
        turns = body.get(field)
        if isinstance(turns, str):
            yield _block(f"{base}/{field}", turns)
        for number, turn in enumerate(turns if isinstance(turns, list) else []):
            here = f"{base}/{field}/{number}"
            if not isinstance(turn, dict):
                yield _block(here, turn)
                continue
            apart = (inside, "role", "cache_control")
            rest = {name: value for name, value in turn.items() if name not in apart}
            yield from _each(turn.get(inside), f"{here}/{inside}", str(turn.get("role", "")))
            if any(value not in (None, "", []) for value in rest.values()):
                yield _block(here, rest)


def _each(value: Any, at: str, role: str = "") -> Iterator[_Block]:
    """The blocks of a content; one text and a list of one text are the same to the model."""
    if isinstance(value, list):
        for number, each in enumerate(value):
            yield _block(f"{at}/{number}", each, role)
    elif isinstance(value, str) and value:
        yield _block(at, {"type": "text", "text": value}, role)


def _block(at: str, value: Any, role: str = "") -> _Block:
    bare, weight = _bare(value)
    text = f"{role}:{encode_text(bare)}"
    return _Block(at, bare, text, max(1, weight), _ttl(value) if isinstance(value, dict) else "")


def _ttl(value: dict[str, Any]) -> str:
    mark = value.get("cache_control")
    return str(mark.get("ttl") or "5m") if isinstance(mark, dict) else ""


def _bare(value: Any) -> tuple[Any, int]:
    """A value without cache markers, which move with every turn; and the number of characters the model
    reads."""
    if isinstance(value, dict):
        pairs = {name: _bare(each) for name, each in value.items() if name not in _MARKS}
        return {name: each for name, (each, _) in pairs.items()}, sum(weight for _, weight in pairs.values())
    if isinstance(value, list):
        items = [_bare(each) for each in value]
        return [each for each, _ in items], sum(weight for _, weight in items)
    if isinstance(value, str):
        head = value[:_MEDIA_FROM]
        is_media = len(value) > _MEDIA_FROM and " " not in head and "\n" not in head
        return value, min(len(value), _MEDIA_WEIGHT) if is_media else len(value)
    return value, len(str(value))


# --- two turns


def _truth(turn: _Turn, earlier: Sequence[Row], prepared: Callable[[Row], _Turn]) -> CacheTruth:
    row = turn.row
    known: dict[str, Any] = {"id": row.id, "at": row.at, "input": turn.tokens, "cached": turn.cached}
    if turn.fault:
        return CacheTruth(**known, verdict="unknown", note=turn.fault)
    if not row.session:
        return CacheTruth(**known, verdict="unknown", note="it belongs to no known conversation")
    before = [each for each in earlier if _is_kin(each, row)]
    rivals = [each for each in before if (each.provider, each.model) == (row.provider, row.model)]
    if not rivals:
        return _without_rival(known, row, before)
    found = [_Common(prepared(each), turn) for each in rivals[-_COMPARED:]]
    readable = [each for each in found if not each.before.fault]
    if not readable:
        note = f"of the turn before: {found[-1].before.fault}"
        return CacheTruth(**known, verdict="unknown", previous=rivals[-1].id, note=note)
    best = max(reversed(readable), key=lambda each: each.share)
    return best.truth(known)


def _is_kin(row: Row, other: Row) -> bool:
    """Whether both are turns of the same agent: sub-agents and titles have their own prompts."""
    return (
        row.session == other.session
        and row.key == other.key
        and row.agent_id == other.agent_id
        and (row.purpose or "main") == (other.purpose or "main")
        and row.operation == other.operation
        and bool(row.provider)
    )


def _without_rival(known: dict[str, Any], row: Row, before: Sequence[Row]) -> CacheTruth:
    if not before:
        return CacheTruth(**known, verdict="first", note="there is no turn before it")
    last = before[-1]
    changed = "another provider" if last.provider != row.provider else "another model"
    broken = CacheBreak(
        reason=f"{changed}: caches are kept for each model of each provider",
        before=f"{last.provider}/{last.model}",
        after=f"{row.provider}/{row.model}",
    )
    return CacheTruth(**known, verdict="none", previous=last.id, expected=0, broken=broken)


class _Common:
    """The common part of a turn and one before it."""

    def __init__(self, before: _Turn, turn: _Turn) -> None:
        self.before = before
        self.turn = turn
        self.same = 0
        for one, other in zip(before.blocks, turn.blocks, strict=False):
            if one.text != other.text:
                break
            self.same += 1
        self.gap = turn.row.at - before.row.at
        self._weights = [block.weight for block in before.blocks]
        self.share = sum(self._weights[: self.same]) / max(1, sum(self._weights))

    def truth(self, known: dict[str, Any]) -> CacheTruth:
        limits = self.turn.limits
        if limits.cache == "marked":
            expected, broken, note = self._marked()
        else:
            expected, broken, note = self._automatic(limits)
        if limits.cache_min and expected < limits.cache_min:
            if expected:
                note = f"about {expected:,} tokens: this model caches from {limits.cache_min:,} on"
            expected = 0
        if limits.cache_step:
            expected -= expected % limits.cache_step
        cached: int | None = known["cached"]
        verdict = _verdict(expected, cached)
        if verdict == "unknown":
            is_used = self.turn.row.tokens is not None
            note = "the provider reports no tokens from its cache" if is_used else "no usage is known"
        elif verdict in ("missed", "partly") and not note:
            note = self._unexplained()
        return CacheTruth(
            **known,
            verdict=verdict,
            previous=self.before.row.id,
            expected=expected,
            same=self.same,
            blocks=len(self.before.blocks),
            broken=broken,
            note=note,
        )

    def _tokens(self, weight: float) -> int:
        """Estimated tokens for this many of the first characters, scaled by the count of the turn before."""
        counted, whole = self.before.tokens, sum(self._weights)
        return int(weight / _TOKEN if counted is None else counted * weight / max(1, whole))

    def _automatic(self, limits: Limits) -> tuple[int, CacheBreak | None, str]:
        """For automatic caching: the expected tokens, from the beginning to the first block that differs."""
        weight = float(sum(self._weights[: self.same]))
        if self.same < len(self.before.blocks) and self.same < len(self.turn.blocks):
            one, other = self.before.blocks[self.same], self.turn.blocks[self.same]
            weight += one.weight * _common(one.text, other.text) / len(one.text)
        note = "" if limits.cache else _UNKNOWN_RULES
        return self._tokens(weight), self._difference(), note

    def _marked(self) -> tuple[int, CacheBreak | None, str]:
        """For explicit markers: the expected tokens, up to a marker of the turn before that a marker of this
        one can find."""
        written, asked = self.before.marks(), [at for at, _ in self.turn.marks()]
        alive = [at for at, ttl in written if self.gap <= _TTL.get(ttl, _TTL["5m"])]
        equal = [at for at in alive if at <= self.same]
        found = [at for at in equal if any(at <= mark <= at + _LOOKBACK for mark in asked)]
        difference = self._difference()
        if found:
            return self._tokens(sum(self._weights[: max(found)])), difference, ""
        if not written:
            return 0, difference, "the turn before has no cache_control, without which nothing is cached"
        if not asked:
            at, ttl = written[-1]
            gone = CacheBreak(
                reason="cache_control is gone: without a mark nothing is read from the cache",
                pointer=f"{self.before.blocks[at - 1].pointer}/cache_control",
                before=shown({"type": "ephemeral", "ttl": ttl}),
                after="absent",
            )
            return 0, gone, ""
        if not alive:
            kept = max(_TTL.get(ttl, _TTL["5m"]) for _, ttl in written)
            passed = f"its time passed: kept for {_minutes(kept)}, used again after {_minutes(self.gap)}"
            return 0, CacheBreak(reason=passed), ""
        if equal:
            return 0, difference, f"no mark within {_LOOKBACK} blocks after what the turn before cached"
        return 0, difference, ""

    def _difference(self) -> CacheBreak | None:
        """The first place at which the turn before is not continued."""
        at = self.same
        if at >= len(self.before.blocks):
            return None
        one = self.before.blocks[at]
        other = self.turn.blocks[at] if at < len(self.turn.blocks) else None
        if (moved := _tools_changed(self.before.blocks, self.turn.blocks, one, other)) is not None:
            return moved
        if other is None:
            return _gone(one, "the conversation is shorter than before")
        if _section(one) < _section(other):
            return _gone(one, f"{_where(one)} was removed")
        if _section(one) > _section(other):
            added = f"{_where(other)} was added"
            return CacheBreak(reason=added, pointer=other.pointer, before="absent", after=shown(other.value))
        steps, was, now = first_difference(one.value, other.value) or ((), one.value, other.value)
        place = other.pointer + (pointer(steps) if steps else "")
        before, after = _around(was, now)
        return CacheBreak(reason=_reason(one, other, was, now), pointer=place, before=before, after=after)

    def _unexplained(self) -> str:
        before = self.before.row
        if before.first_ms is not None and self.gap * _SECOND < before.first_ms:
            return "the turn before had not begun to answer yet: nothing was in the cache"
        if self.turn.limits.cache != "marked" and self.gap > _IDLE:
            return f"{_minutes(self.gap)} passed since the turn before: the provider may have dropped it"
        return "nothing in the requests explains it: the provider dropped it, or asked another machine"


def _gone(block: _Block, reason: str) -> CacheBreak:
    return CacheBreak(reason=reason, pointer=block.pointer, before=shown(block.value), after="absent")


def _verdict(expected: int, cached: int | None) -> Verdict:
    if cached is None:
        return "unknown"
    if not expected:
        return "hit" if cached else "none"
    if cached >= expected * _ENOUGH:
        return "hit"
    return "partly" if cached else "missed"


def _minutes(seconds: float) -> str:
    return f"{seconds / _MINUTE:.0f} min" if seconds >= _MINUTE else f"{seconds:.0f} s"


def _tool_names(blocks: Iterable[_Block]) -> list[str]:
    return [_tool_name(block) for block in blocks if _section(block) == 0]


def _tool_name(block: _Block) -> str:
    value = block.value
    if not isinstance(value, dict):
        return shown(value, 60)
    inner = value.get("function")
    named = inner if isinstance(inner, dict) else value
    return str(named.get("name") or value.get("type") or "") or shown(value, 60)


def _tools_changed(
    before: Sequence[_Block], after: Sequence[_Block], one: _Block, other: _Block | None
) -> CacheBreak | None:
    """The difference if the set or order of tools changed; a changed tool counts as an ordinary
    difference."""
    was, now = _tool_names(before), _tool_names(after)
    mine = one if _section(one) == 0 else None
    theirs = other if other is not None and _section(other) == 0 else None
    place = theirs or mine
    if place is None or was == now:
        return None
    reason = "the tools are in another order"
    if sorted(was) != sorted(now):
        added = [name for name in now if name not in was]
        gone = [name for name in was if name not in now]
        named = (("added", added), ("removed", gone))
        what = [f"{word} {', '.join(each[:3])}" for word, each in named if each]
        reason = f"tools changed: {'; '.join(what) or 'one is there twice'}"
    return CacheBreak(
        reason=reason,
        pointer=place.pointer,
        before=_tool_name(mine) if mine is not None else "absent",
        after=_tool_name(theirs) if theirs is not None else "absent",
    )


_MOMENT: Final = re.compile(
    r"\d{4}-\d\d|\d{1,2}:\d\d|\b\d{1,2}/\d{1,2}/\d{2,4}\b|\b1[5-9]\d{8}\b"
    r"|\b(?:mon|tues|wednes|thurs|fri|satur|sun)day\b"
    r"|\b(?:january|february|march|april|may|june|july|august|september|october|november|december)\b",
    re.IGNORECASE,
)


_SETTINGS: Final = ("/tool_choice", "/thinking")


def _section(block: _Block) -> int:
    """Sort key of a block's section: tools first, then the system text, then settings, then messages."""
    place = block.pointer.removeprefix("/request")
    if place.startswith("/tools/"):
        return 0
    if place.startswith(("/system", "/instructions")):
        return 1
    return 2 if block.pointer.endswith(_SETTINGS) else 3


def _where(block: _Block) -> str:
    match _section(block):
        case 0:
            return f"the tool {_tool_name(block)}"
        case 1:
            return "the system text"
        case 2:
            return block.pointer.rpartition("/")[2]
    return "the system text" if block.text.startswith(("system:", "developer:")) else "an earlier message"


def _reason(one: _Block, other: _Block, was: Any, now: Any) -> str:
    where = _where(one)
    if one.value == other.value:
        is_order = one.text.partition(":")[0] == other.text.partition(":")[0]
        return f"{where} has its fields in another order" if is_order else f"{where} has another role"
    if isinstance(was, str) and isinstance(now, str):
        before, after = _around(was, now)
        if _MOMENT.search(before) and _MOMENT.search(after):
            return f"a date or time in {where} changed"
    return f"{where} changed"


_BEFORE: Final = 24
_AFTER: Final = 56


def _common(one: str, other: str) -> int:
    """The length of the common prefix."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[:middle] == other[:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _around(was: Any, now: Any) -> tuple[str, str]:
    """Excerpts of both values near the first difference."""
    if not (isinstance(was, str) and isinstance(now, str)):
        return ("absent" if was is ABSENT else shown(was)), ("absent" if now is ABSENT else shown(now))
    at = _common(was, now)
    start = max(0, at - _BEFORE)

    def piece(text: str) -> str:
        end = at + _AFTER
        return f"{'…' if start else ''}{text[start:end]}{'…' if len(text) > end else ''}"

    return piece(was), piece(now)
