"""Where two documents differ."""

from __future__ import annotations

from typing import Any

from tests.tiers import rows
from wireglot.traces.diff import differences
from wireglot.traces.pointer import found, pointer_of, resolve


@rows(
    ("before", "after", "told"),
    [
        ({"a": 1}, {"a": 1.0}, []),
        ({"a": 1}, {"a": True}, ["/a: 1 -> true"]),
        ({"a": 1}, {}, ["/a: 1 -> absent"]),
        ([1], [1, 2], ["/1: absent -> 2"]),
        ({"a/b": {"~": "x"}}, {"a/b": {"~": "y"}}, ['/a~1b/~0: "x" -> "y"']),
        ({"arguments": '{"a":1,"b":2}'}, {"arguments": '{"b": 2, "a": 1}'}, []),
        ("x", {"a": 1}, ['the document: "x" -> {"a":1}']),
        ([{"a": None}], [{}], ["/0/a: null -> absent"]),
    ],
)
def test_differences_are_told_by_their_pointers(before: Any, after: Any, told: list[str]) -> None:
    assert [str(each) for each in differences(before, after)] == told


@rows(
    ("path", "pointer"),
    [
        ("$", ""),
        ("$.messages[2].content[0]", "/messages/2/content/0"),
        ('$["a/b"].c["~"]', "/a~1b/c/~0"),
        ("messages", ""),
        ("$.a b", ""),
    ],
)
def test_a_path_is_a_pointer(path: str, pointer: str) -> None:
    assert pointer_of(path) == pointer


def test_a_pointer_leads_to_something_or_nowhere() -> None:
    document = {"a/b": [{"~": 1}], "0": "member"}
    assert resolve(document, "/a~1b/0/~0") == 1
    assert resolve(document, "/0") == "member"
    assert resolve(document, "") is document
    assert not found(document, "/a~1b/1")
    assert not found(document, "/a~1b/00")
    assert not found(document, "/0/1")
