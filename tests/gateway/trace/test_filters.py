"""The filter language of the list."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.tiers import rows
from wireglot.gateway.trace.filters import BadFilter, FreeText, parse_filter, quoted
from wireglot.gateway.trace.wanted import SORTS, Wanted, found_in_row
from wireglot_core.traces.trace import LossCounts, Row, Tokens

NOW = 1_800_000_000.0
ROW = Row(
    id="req_1",
    at=NOW - 600,
    state="failed",
    client="claude-code",
    dialect="anthropic",
    asked="claude-sonnet",
    provider="gemini",
    model="gemini-3-pro",
    upstream_dialect="gemini",
    status=429,
    error="Overloaded: try later",
    attempts=2,
    first_ms=820.0,
    total_ms=6200.0,
    tokens=Tokens(input=11_000, output=300, cached=100),
    cost=150_000,
    losses=LossCounts(serious=1, harmless=2),
    features=["tool_result.error", "cache_marker"],
    stream=True,
)
BARE = Row(id="req_2", at=NOW - 5)


def matches(text: str, row: Row = ROW) -> bool:
    return Wanted.of(parse_filter(text, NOW)).matches(row)


@rows(
    "text",
    [
        "client:claude-code",
        "CLIENT:Claude-Code",
        'client:"claude-code"',
        "client:codex,claude-code",
        "client:claude*",
        "client:*e*od*",
        "model:~GEMINI",
        "model:gemini/gemini-3-pro",
        "-model:gpt",
        "status:429",
        "status:4xx",
        "status:failed",
        "status:2xx,4xx",
        "status:>=400",
        "status:<430",
        "-status:>=500",
        "cost:>0.1",
        "cost:<=$0.15",
        "tokens:>11k",
        "input:>=11000",
        "total:>6s",
        "total:<0.2m",
        "first:>800ms",
        "loss:serious",
        "loss:any",
        "loss:tool_result.error",
        "loss:~cache",
        "-loss:degraded",
        "losses:>=3",
        "attempts:>1",
        "error:~overloaded",
        'error:"overloaded: try later"',
        "is:stream",
        "-is:recorded",
        "since:15m",
        "until:5m",
        "-until:15m",
        "since:2027-01-15T07:00:00Z",
        "since:2027-01-15",
        "until:2027-01-16",
        "client:claude-code status:>=400 cost:>0.1 loss:serious model:~gemini since:2h",
    ],
)
def test_a_term_that_holds(text: str) -> None:
    assert matches(text), text


@rows(
    "text",
    [
        "client:codex",
        "client:claude",
        "-client:claude-code",
        "client:*codex*",
        "model:gemini",
        "status:2xx",
        "status:>429",
        "cost:>0.15",
        "total:>1m",
        "loss:degraded",
        "is:recorded",
        "since:5m",
        "until:15m",
        "-since:15m",
        "client:claude-code status:<400",
    ],
)
def test_a_term_that_does_not_hold(text: str) -> None:
    assert not matches(text), text


def test_what_is_not_known_is_neither_more_nor_less() -> None:
    for name in ("cost", "tokens", "total", "first", "status"):
        unit = "s" if name in ("total", "first") else ""
        assert not matches(f"{name}:>0{unit}", BARE)
        assert not matches(f"{name}:<400{unit}", BARE)
        assert matches(f"-{name}:<400{unit}", BARE)
    assert matches("client:*")
    assert not matches("client:*", BARE)


@rows(
    ("text", "texts"),
    [
        ("hello world", [FreeText("hello world")]),
        ("  Hello   World ", [FreeText("hello   world")]),
        ("one client:x two words", [FreeText("one"), FreeText("two words")]),
        ('"client:x" -"no way"', [FreeText("client:x"), FreeText("no way", True)]),
        (r'"a \"b\" \\ c"', [FreeText(r'a "b" \ c')]),
        ('either or neither "OR"', [FreeText("either or neither"), FreeText("or")]),
        ("-nothing else", [FreeText("nothing", True), FreeText("else")]),
        ("http://localhost/x", [FreeText("http://localhost/x")]),
        ("error: bad - or --flag", [FreeText("bad - or --flag")]),
        ('said "a sentence', [FreeText('said "a sentence')]),
        ('"name":"get_weather" a"b', [FreeText('"name":"get_weather" a"b')]),
        ("$.messages[0]:x ValueError:x gpt-5:free", [FreeText("$.messages[0]:x valueerror:x gpt-5:free")]),
    ],
)
def test_free_words_are_texts_as_they_are_written(text: str, texts: list[FreeText]) -> None:
    if text.startswith("error:"):
        with pytest.raises(BadFilter, match="error:: expected a text"):
            parse_filter(text, NOW)
    else:
        assert list(parse_filter(text, NOW).texts) == texts


@rows(
    ("text", "message"),
    [
        ("stauts:400", "stauts:400: there is no field stauts; did you mean status?"),
        ("wherever:it", "wherever:it: there is no field wherever; the fields are client, model"),
        ("status:abc", "status:abc: expected a number (404, >=400), 4xx or a state"),
        ("status:>=abc", "status:>=abc: expected a number (404"),
        ("status:", "status:: expected a number"),
        ("client:", "client:: expected a text"),
        ("client:a,,b model:", "model:: expected a text"),
        ("client:>a", "client:>a: expected a text, or ~ and a part of it"),
        ("cost:0.1", "cost:0.1: expected an amount such as >0.1; cost is compared with <, <=, > or >="),
        ("cost:>1,5", "cost:>1,5: expected an amount such as >0.1"),
        ("total:>5", "total:>5: expected a duration such as >800ms"),
        ("total:>5d", "total:>5d: expected a duration"),
        ("since:soon", "since:soon: expected a time ago such as 15m, 2h or 7d, or a date"),
        ("since:>2h", "since:>2h: expected a time ago"),
        ("since:1h,2h", "since:1h,2h: expected a time ago"),
        ('client:"open', 'client:"open: expected a closing quote'),
        ('client:"a"b"', 'client:"a"b": expected a closing quote, followed by a space'),
        ("a" * 1001, "the filter is 1001 characters long: expected 1000 at most"),
        ("is:streaming", "is:streaming: expected one of stream, recorded, pass-through, running, done,"),
        ("-is:stream,slow", "-is:stream,slow: expected one of stream, recorded"),
        ("is:~rec", "is:~rec: expected one of stream"),
        ("client:codex OR client:x", "OR: expected values of one field with commas between them"),
        ("one OR two", "OR: expected values of one field with commas between them (client:codex,claude-code"),
        ("status:4xx AND is:stream", "AND: an exchange must match all terms, so leave it out"),
        ("NOT client:codex", "NOT: expected - directly before a term (-client:codex)"),
        ("is:stream " * 33, "expected 32 terms at most"),
    ],
)
def test_a_bad_term_is_named(text: str, message: str) -> None:
    with pytest.raises(BadFilter) as raised:
        parse_filter(text, NOW)
    assert str(raised.value).startswith(message)


def test_a_quoted_text_means_itself() -> None:
    for text in ("client:x", 'a "b"', "\\", '\\"', "-no", "  spaces  "):
        assert parse_filter(quoted(text), NOW).texts == (FreeText(text),)


def test_a_row_or_its_bodies_hold_every_text_and_none_of_the_negated() -> None:
    recorded = replace(ROW, recorded=True)

    def found(text: str, row: Row) -> bool | None:
        return found_in_row(row, parse_filter(text, NOW).texts)

    assert found("overloaded", ROW) is True
    assert found("overloaded", recorded) is True
    assert found("nowhere", ROW) is False
    assert found("nowhere", recorded) is None
    assert found("-nowhere", ROW) is True
    assert found("-nowhere", recorded) is None
    assert found("-overloaded", recorded) is False
    assert found('overloaded "nowhere"', ROW) is False
    assert found('"overloaded" "gemini-3"', recorded) is True


def test_rows_are_sorted_by_any_column_and_paged_in_that_order() -> None:
    made = [
        replace(ROW, id=f"req_{number}", at=NOW + number % 3, cost=cost, asked=asked)
        for number, (cost, asked) in enumerate([(5, "b"), (None, ""), (0, "a"), (9, "c"), (5, "b")])
    ]
    order = (Path(__file__).parents[3] / "page/src/order.ts").read_text(encoding="utf-8")
    theirs = re.findall(r"^  (\w+): \(row\)", order, re.MULTILINE)
    assert list(SORTS) == theirs, "the page puts rows that change where they belong"
    for sort in SORTS:
        for ascending in (False, True):
            wanted = Wanted(sort=sort, ascending=ascending)
            whole = wanted.page(made)
            paged: list[Row] = []
            while page := replace(wanted, limit=2, before=wanted.key(paged[-1]) if paged else None).page(
                made
            ):
                paged += page
            assert paged == whole
            assert len(whole) == len(made)
    assert [row.cost for row in Wanted(sort="cost").page(made)] == [9, 5, 5, 0, None]
    assert [row.cost for row in Wanted(sort="cost", ascending=True).page(made)] == [0, 5, 5, 9, None]
    assert [row.asked for row in Wanted(sort="asked", ascending=True).page(made)] == ["a", "b", "b", "c", ""]
