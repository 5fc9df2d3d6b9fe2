"""A body that is too long keeps its form and its end: its longest strings are cut, base64 first."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from wireglot_core.traces.shorten import KEPT_BYTES, shortened

PICTURE = base64.b64encode(bytes(range(256)) * 400).decode()


def cut(document: Any, most: int, *, ascii: bool = False) -> tuple[Any, int]:
    found = shortened(json.dumps(document, ensure_ascii=ascii).encode(), most)
    assert found is not None
    data, strings = found
    assert len(data) <= most
    return json.loads(data), strings


def test_base64_is_cut_before_a_longer_text_and_stays_base64() -> None:
    text = "it is said " * 20_000
    document = {"first": text, "url": f"data:image/png;base64,{PICTURE}", "raw": PICTURE, "last": "the end"}
    found, strings = cut(document, len(json.dumps(document)) - 2 * len(PICTURE) // 2)
    assert strings == 2
    assert (found["first"], found["last"]) == (text, "the end")
    for picture in (found["raw"], found["url"].removeprefix("data:image/png;base64,")):
        assert PICTURE.startswith(picture)
        assert 0 < len(base64.b64decode(picture, validate=True)) < KEPT_BYTES[0]


def test_the_longest_texts_are_cut_and_say_how_much_is_left_out() -> None:
    texts = ["short", "x y" * 8_000, "a b" * 40_000, "the last words"]
    found, strings = cut({"messages": texts}, 60_000)
    assert strings == 1
    assert found["messages"][:2] == texts[:2]
    assert found["messages"][3] == "the last words"
    kept, _, left_out = found["messages"][2].partition(" [... ")
    assert texts[2].startswith(kept)
    assert left_out == f"{len(texts[2]) - len(kept)} bytes left out]"


def test_of_many_texts_of_a_few_thousand_characters_each_is_cut_as_far_as_needed() -> None:
    results = [f"{number}: " + "a line of a file\n" * 250 for number in range(400)]
    document = {"messages": [*results, "the last words"]}
    size = len(json.dumps(document))
    for most in (size // 2, size // 3, size // 10):
        found, strings = cut(document, most)
        assert 0 < strings <= 400
        assert found["messages"][-1] == "the last words"
        assert [each.split(":")[0] for each in found["messages"][:-1]] == [str(n) for n in range(400)]
        assert len(json.dumps(found)) > most // 8


@pytest.mark.parametrize("ascii", [True, False])
@pytest.mark.parametrize("text", ["é", "€", "😀", "\\", '"', "\n", 'a\\"😀\x00'])
def test_no_character_and_no_escape_is_torn(text: str, ascii: bool) -> None:
    for shift in range(12):
        said = "." * shift + text * 30_000
        found, strings = cut([said, "end"], 20_000, ascii=ascii)
        assert strings == 1
        assert found[1] == "end"
        assert said.startswith(found[0].rpartition(" [... ")[0])
        found[0].encode()


def test_what_cannot_be_shortened_is_left_to_be_cut_at_its_end() -> None:
    assert shortened(b"[1, 2]", 100) == (b"[1, 2]", 0)
    assert shortened(b"[" + b"1," * 30_000 + b"1]", 1_000) is None
    assert shortened(b'["' + b"a b" * 30_000, 1_000) is None  # without an end
    assert shortened(b'"",' * 600_000, 1_000) is None  # more quotes than are looked at
    assert shortened(json.dumps(["a b" * 90] * 1_000).encode(), 100_000) is None  # no long strings
