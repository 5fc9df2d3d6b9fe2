"""Shown output is what was printed, but for what differs from run to run."""

import pytest

from proofs.docs_blocks.outputs import difference, json_difference, missing
from tests.tiers import rows


@rows(
    ("shown", "printed"),
    [
        ("same\n", "same"),
        ("colour", "\x1b[31mcolour\x1b[0m  \r\n"),
        (
            "x-wireglot-request-id: req_ed74459d4fbfcff189848f5e",
            "x-wireglot-request-id: req_0123456789abcdef01234567",
        ),
        ("x-wireglot-request-id: req_...", "x-wireglot-request-id: req_0123456789abcdef01234567"),
        ("10:01:19 200 in 12 ms", "23:59:00 200 in 1,503 ms"),
        ("2026-11-14  a   1", "2027-01-01  a    1"),
        ("http://127.0.0.1:8484/v1", "http://127.0.0.1:39001/v1"),
        ("wireglot 0.1.0", "wireglot 1.20.3"),
        ("a\n...\nz", "a\nb\nc\nz"),
        ("a\n...", "a"),
        ("begins ... ends", "begins in the middle ends"),
    ],
)
def test_these_agree(shown, printed):
    assert difference(shown, printed) == ""


@rows(
    ("shown", "printed"),
    [
        ("same", "other"),
        ("one line", "one line\nand another"),
        ("7 tokens", "8 tokens"),
        ("x-wireglot-route: demo/demo", "x-wireglot-route: demo/demo-gemini"),
        ("a\n...\nz", "a\nb"),
        ("a.c", "abc"),
    ],
)
def test_these_do_not(shown, printed):
    reported = difference(shown, printed)
    assert shown.splitlines()[0] in reported
    assert printed.splitlines()[0] in reported


def test_numbers_that_are_about_so_many_stand_for_any():
    assert difference("9,083 tokens of demo", "12 tokens of demo", about=True) == ""
    assert difference("9,083 tokens of demo", "12 tokens of kimi", about=True)
    assert missing("cost 0.0300+", "x\ncost 1.5+", about=True) == ""


def test_of_a_terminal_the_shown_lines_must_be_there_in_their_order():
    log = "10:00:00 listening\n10:00:01 200 anthropic\n10:00:02 200 gemini\n"
    assert missing("09:09:09 200 anthropic\n09:09:10 200 gemini", log) == ""
    assert "200 anthropic" in missing("09:09:09 200 gemini\n09:09:10 200 anthropic", log)


@pytest.mark.parametrize(
    ("shown", "printed"),
    [
        ('{"a": 1, "b": [1, "..."]}', '{"b":[1,2,3],"a":1}'),
        ('{"id": "req_...", "created": 1763247600}', '{"id":"req_12345678","created":1}'),
        ('{"a": 1, "...": "..."}', '{"a":1,"b":2}'),
        ('{"a": "..."}', '{"a":{"b":1}}'),
    ],
)
def test_documents_agree_in_any_layout(shown, printed):
    assert json_difference(shown, printed) == ""


@rows(
    ("shown", "printed", "place"),
    [
        ('{"a": {"b": 1}}', '{"a":{"b":2}}', r"$.a.b"),
        ('{"a": 1}', '{"a":1,"b":2}', r"$: shown are ['a'], printed ['a', 'b']"),
        ('[{"a": "x"}]', '[{"a":"y"}]', r"$[0].a"),
        ("[1, 2]", "[1]", r"$: shown are 2 entries"),
        ("{}", "oops", "not JSON"),
    ],
)
def test_documents_that_differ_are_reported_with_the_place(shown, printed, place):
    assert place in json_difference(shown, printed)
