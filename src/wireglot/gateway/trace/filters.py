"""The filter language of the list: `client:codex status:>=400 -loss:harmless "some words"`.

It is parsed only here: for the page, the API and `wireglot trace list`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import Any, Final, Literal, NamedTuple, cast

import msgspec

from wireglot.gateway.config.keys import moment
from wireglot_core.traces.trace import Row

Operator = Literal["=", "~", "<", "<=", ">", ">="]
_Kind = Literal["text", "property", "status", "loss", "number", "cost", "duration", "time"]
_NUMBERS: Final = ("status", "number", "cost", "duration")
# Characters of a filter of exchanges.
MAX_LETTERS: Final = 1000
# Terms of a filter of exchanges.
_MAX_TERMS: Final = 32
_MILLION: Final = 1_000_000
_GRADES: Final = ("serious", "degraded", "harmless")
_STATES: Final = ("running", "done", "failed", "left")
_AGES: Final = ("15m", "1h", "24h", "7d")
_IS: Final = ("stream", "recorded", "pass-through", *_STATES)
_PURPOSES: Final = ("main", "subagent", "auxiliary", "background", "compaction")


class BadFilter(ValueError):
    """A term that cannot be understood; the message names it."""


class Term(msgspec.Struct, frozen=True, omit_defaults=True):
    field: str
    operator: Operator
    values: tuple[str, ...] = ()
    """In lower case; any of them matches."""
    number: float = 0.0
    negated: bool = False

    def matches(self, row: Row) -> bool:
        return self._holds(row) != self.negated

    def _holds(self, row: Row) -> bool:
        field = FIELDS[self.field]
        if self.operator in ("=", "~"):
            found = [text.lower() for text in field.texts(row)]
            return any(_is_like(text, value, self.operator) for value in self.values for text in found)
        number = field.number(row)
        if number is None:
            return False
        match self.operator:
            case "<":
                return number < self.number
            case "<=":
                return number <= self.number
            case ">":
                return number > self.number
            case _:
                return number >= self.number


class FreeText(msgspec.Struct, frozen=True, omit_defaults=True):
    """Text that a row or its bodies must contain, in lower case."""

    text: str
    negated: bool = False


class Filter(msgspec.Struct, frozen=True):
    terms: tuple[Term, ...] = ()
    texts: tuple[FreeText, ...] = ()
    since: float = 0.0
    until: float = 0.0


class FilterField(NamedTuple):
    kind: _Kind
    about: str
    texts: Callable[[Row], tuple[str, ...]] = lambda _: ()
    number: Callable[[Row], float | None] = lambda _: None
    values: tuple[str, ...] = ()
    """The fixed values of the field, if it has any."""


def _models(row: Row) -> tuple[str, ...]:
    return row.asked, row.model, f"{row.provider}/{row.model}"


def _statuses(row: Row) -> tuple[str, ...]:
    return (str(row.status), f"{row.status // 100}xx", row.state) if row.status else (row.state,)


def _losses(row: Row) -> tuple[str, ...]:
    if row.losses is None:
        return ()
    grades = [grade for grade in _GRADES if getattr(row.losses, grade) > 0]
    return ("any", *grades, *row.features)


def _properties(row: Row) -> tuple[str, ...]:
    held = (("stream", row.stream), ("recorded", row.recorded), ("pass-through", row.passthrough))
    return (row.state, *(name for name, holds in held if holds))


def _tokens(name: str) -> Callable[[Row], float | None]:
    return lambda row: getattr(row.tokens, name) if row.tokens is not None else None


def _all_tokens(row: Row) -> float | None:
    return row.tokens.input + row.tokens.output if row.tokens is not None else None


def _loss_count(row: Row) -> float | None:
    return sum(getattr(row.losses, grade) for grade in _GRADES) if row.losses is not None else 0


FIELDS: Final[Mapping[str, FilterField]] = {
    "client": FilterField("text", "program: claude-code, codex", lambda row: (row.client,)),
    "model": FilterField("text", "model as requested, or as the provider names it", _models),
    "provider": FilterField("text", "upstream provider", lambda row: (row.provider,)),
    "status": FilterField("status", "200, 4xx, >=400, failed, left, running", _statuses,
                          lambda row: row.status or None, ("2xx", "4xx", "5xx", ">=400", *_STATES)),
    "loss": FilterField("loss", "a grade, a feature, or any", _losses, values=(*_GRADES, "any")),
    "cost": FilterField("cost", "in the currency of the prices: >0.1",
                        number=lambda row: None if row.cost is None else row.cost / _MILLION),
    "since": FilterField("time", "15m, 2h, 7d, 2027-01-31 or 2027-01-31T18:00", values=_AGES),
    "until": FilterField("time", "the same, exclusive", values=_AGES),
    "total": FilterField("duration", "time to the last byte: >5s", number=lambda row: row.total_ms),
    "first": FilterField("duration", "time to the first byte: >800ms", number=lambda row: row.first_ms),
    "tokens": FilterField("number", "tokens in and out: >10k", number=_all_tokens),
    "input": FilterField("number", "tokens in", number=_tokens("input")),
    "output": FilterField("number", "tokens out", number=_tokens("output")),
    "cached": FilterField("number", "tokens read from a cache", number=_tokens("cached")),
    "losses": FilterField("number", "number of losses: >3", number=_loss_count),
    "attempts": FilterField("number", "requests to providers: >1", number=lambda row: row.attempts),
    "dialect": FilterField("text", "the client's dialect", lambda row: (row.dialect,)),
    "upstream": FilterField("text", "the provider's dialect", lambda row: (row.upstream_dialect,)),
    "key": FilterField("text", "name of the client key", lambda row: (row.key,)),
    "session": FilterField("text", "conversation", lambda row: (row.session,)),
    "purpose": FilterField("text", "purpose of the request", lambda row: (row.purpose,), values=_PURPOSES),
    "agent": FilterField("text", "sub-agent, by name or id", lambda row: (row.agent_name, row.agent_id)),
    "stop": FilterField("text", "why the model stopped", lambda row: (row.stop,)),
    "error": FilterField("text", "words of the error: ~overloaded", lambda row: (row.error,)),
    "path": FilterField("text", "path of the request", lambda row: (row.path,)),
    "id": FilterField("text", "id of the exchange", lambda row: (row.id,)),
    "is": FilterField("property", "stream, recorded, pass-through or a state", _properties,
                      values=_IS),
}  # fmt: skip

PARAMETERS: Final = (
    "client", "dialect", "model", "provider", "status", "loss", "key", "session", "purpose", "agent",
    "since", "until",
)  # fmt: skip
"""Fields that the API also accepts as query parameters of the same name, each with one exact value."""

_QUOTED: Final = r'"(?:[^"\\]|\\.)*"'
_TERM: Final = re.compile(
    rf"(?P<not>-?)(?P<name>[A-Za-z_]+):(?P<operator><=|>=|[<>=~])?(?P<values>(?:{_QUOTED}|[^\s\"])*)(?=\s|$)"
)
_WORD: Final = re.compile(
    rf"(?P<not>-(?=[^\s-]))?(?:(?P<quoted>{_QUOTED})(?=\s|$)|(?P<plain>{_QUOTED}\S+|\S+))"
)
_VALUE: Final = re.compile(rf"(?P<quoted>{_QUOTED})|(?P<plain>[^,\"]+)")
_ESCAPED: Final = re.compile(r"\\(.)")
_STATUS: Final = re.compile(rf"[1-5](?:\d\d|xx)|{'|'.join(_STATES)}")
_NUMBER: Final = re.compile(r"(\d{1,15}(?:\.\d{1,9})?)([a-z]{0,2})")
_AGO: Final = re.compile(r"(\d{1,9}(?:\.\d{1,3})?)([smhdw])")
_SCALES: Final = {"": 1.0, "k": 1e3, "m": 1e6}
_MILLISECONDS: Final = {"ms": 1.0, "s": 1e3, "m": 60e3, "h": 3600e3}
_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
_QUOTE_IT: Final = 'quote it to search for the word: "{}"'
_OPERATORS: Final = {
    "OR": "expected values of one field with commas between them (client:codex,claude-code); "
    + _QUOTE_IT.format("OR"),
    "AND": f"an exchange must match all terms, so leave it out; {_QUOTE_IT.format('AND')}",
    "NOT": f"expected - directly before a term (-client:codex); {_QUOTE_IT.format('NOT')}",
}
"""Words of other filter languages: a text search for them would find nothing, without a word."""
_EXPECTED: Final[Mapping[_Kind, str]] = {
    "text": "a text, or ~ and a part of it",
    "property": f"one of {', '.join(_IS)}",
    "status": "a number (404, >=400), 4xx or a state (running, done, failed, left)",
    "loss": "a grade (serious, degraded, harmless), a feature, or any",
    "number": "a number such as >100 or >10k",
    "cost": "an amount such as >0.1",
    "duration": "a duration such as >800ms, >2s or >1m",
    "time": "a time ago such as 15m, 2h or 7d, or a date or time such as 2027-01-31 or 2027-01-31T18:00",
}


def parse_filter(text: str, now: float) -> Filter:
    """`now` in unix seconds, for times such as `since:2h`. Raises BadFilter."""
    if len(text) > MAX_LETTERS:
        raise BadFilter(f"the filter is {len(text)} characters long: expected {MAX_LETTERS} at most")
    found = Filter()
    run = [0, 0]  # consecutive free words are one text, as they are written
    at = 0
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        term = _TERM.match(text, at)
        if term is not None and _is_term(term):
            found, run = _with_run(found, text, run), [0, 0]
            found = _with_term(found, term, now)
            at = term.end()
        elif (word := _WORD.match(text, at)) is None or _is_field(word["plain"]):  # only its quotes are wrong
            raise BadFilter(f"{text[at:].split()[0]}: expected a closing quote, followed by a space")
        elif word["plain"] in _OPERATORS:
            raise BadFilter(f"{word['plain']}: {_OPERATORS[word['plain']]}")
        else:
            if word["not"] or word["quoted"]:
                found, run = _with_run(found, text, run), [0, 0]
                free = _unquoted(word["quoted"]) if word["quoted"] else word["plain"]
                found = _with_text(found, free, negated=bool(word["not"]))
            else:
                run = [run[0] if run[1] else at, word.end()]
            at = word.end()
        if len(found.terms) + len(found.texts) > _MAX_TERMS:
            raise BadFilter(f"expected {_MAX_TERMS} terms at most")
    return _with_run(found, text, run)


def parse_parameters(given: Mapping[str, str], now: float) -> Filter:
    """Query parameters: `q` is a filter, each of `PARAMETERS` one value of its field. Raises BadFilter."""
    found = parse_filter(given.get("q", ""), now)
    for name in PARAMETERS:
        value = given.get(name, "")
        if not value:
            continue
        if len(value) > MAX_LETTERS:
            raise BadFilter(f"{name}: expected {MAX_LETTERS} characters at most")
        if FIELDS[name].kind == "time":
            found = _within(found, name, _time(name, value, now))
        else:
            found = _replaced(found, terms=(*found.terms, Term(name, "=", (value.lower(),))))
    return found


def _is_field(word: str | None) -> bool:
    """Whether it would be a term without its quotes."""
    name, colon, _ = (word or "").removeprefix("-").partition(":")
    return bool(colon) and name.lower() in FIELDS


def _is_term(found: re.Match[str]) -> bool:
    """Whether it is a term: `http://host` and `error: text` are words; so is an upper-case name that is no
    field."""
    name = found["name"]
    if name.lower() in FIELDS:
        return True
    values = found["values"]
    if not values or values.startswith("//") or not name.islower():
        return False
    near = get_close_matches(name, FIELDS, 1)
    hint = f"did you mean {near[0]}?" if near else f"the fields are {', '.join(FIELDS)}."
    raise BadFilter(
        f'{found[0]}: there is no field {name}; {hint} Quote it to search for the text: "{found[0]}"'
    )


def _with_term(found: Filter, term: re.Match[str], now: float) -> Filter:
    name, operator = term["name"].lower(), term["operator"] or "="
    field, shown = FIELDS[name], term[0]
    values = tuple(
        each.strip().lower()
        for each in (
            _unquoted(value["quoted"]) if value["quoted"] else value["plain"]
            for value in _VALUE.finditer(term["values"])
        )
    )
    if not values or not all(values):
        raise BadFilter(f"{shown}: expected {_EXPECTED[field.kind]} after {name}:")
    if field.kind == "time":
        if operator != "=" or len(values) > 1:
            raise BadFilter(f"{shown}: expected {_EXPECTED['time']}")
        # The negation of "since" a time is "until" that time.
        side = {"since": "until", "until": "since"}[name] if term["not"] else name
        return _within(found, side, _time(shown, values[0], now))
    number = 0.0
    if operator in ("<", "<=", ">", ">="):
        read = _number(field.kind, values[0]) if len(values) == 1 else None
        if field.kind not in _NUMBERS or read is None:
            raise BadFilter(f"{shown}: expected {_EXPECTED[field.kind]}")
        number, values = read, ()
    elif field.kind == "status" and (operator == "~" or not all(map(_STATUS.fullmatch, values))):
        raise BadFilter(f"{shown}: expected {_EXPECTED['status']}")
    elif field.kind == "property" and (operator == "~" or not set(values) <= set(field.values)):
        raise BadFilter(f"{shown}: expected {_EXPECTED['property']}")
    elif field.kind in ("number", "cost", "duration"):
        raise BadFilter(f"{shown}: expected {_EXPECTED[field.kind]}; {name} is compared with <, <=, > or >=")
    made = Term(name, cast("Operator", operator), values, number, bool(term["not"]))
    return _replaced(found, terms=(*found.terms, made))


def _with_run(found: Filter, text: str, run: list[int]) -> Filter:
    return _with_text(found, text[run[0] : run[1]], negated=False) if run[1] else found


def _with_text(found: Filter, text: str, *, negated: bool) -> Filter:
    return _replaced(found, texts=(*found.texts, FreeText(text.lower(), negated))) if text else found


def _within(found: Filter, side: str, at: float) -> Filter:
    if side == "since":
        return _replaced(found, since=max(found.since, at))
    return _replaced(found, until=min(found.until or at, at))


def _replaced(found: Filter, **fields: Any) -> Filter:
    return msgspec.structs.replace(found, **fields)


def _unquoted(text: str) -> str:
    return _ESCAPED.sub(r"\1", text[1:-1])


def quoted(text: str) -> str:
    """A text as a term that matches it literally."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _number(kind: _Kind, text: str) -> float | None:
    found = _NUMBER.fullmatch(text.removeprefix("$") if kind == "cost" else text)
    scales = _MILLISECONDS if kind == "duration" else _SCALES
    if found is None or found[2] not in scales:
        return None
    return float(found[1]) * scales[found[2]]


def _time(shown: str, text: str, now: float) -> float:
    ago = _AGO.fullmatch(text)
    if ago is not None:
        return max(now - float(ago[1]) * _SECONDS[ago[2]], 1.0)
    at = moment(text.upper())
    if at is None:
        raise BadFilter(f"{shown}: expected {_EXPECTED['time']}")
    return at / 1000


def _is_like(text: str, value: str, operator: Operator) -> bool:
    """`*` matches any text, including none if the pattern has other characters."""
    if operator == "~":
        return value in text
    if "*" not in value:
        return text == value
    first, *middle, last = value.split("*")
    if len(text) < max(len(first) + len(last), 1) or not text.startswith(first) or not text.endswith(last):
        return False
    at, end = len(first), len(text) - len(last)
    for piece in middle:
        at = text.find(piece, at, end)
        if at < 0:
            return False
        at += len(piece)
    return True
