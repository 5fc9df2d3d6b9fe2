"""Texts with `*`."""

from __future__ import annotations

import re
from itertools import product

from wireglot_core.wire.wildcards import caught


def test_a_pattern_catches_what_a_regular_expression_would() -> None:
    patterns = ["".join(each) for length in range(5) for each in product("ab*", repeat=length)]
    texts = ["".join(each) for length in range(6) for each in product("ab", repeat=length)]
    for pattern in patterns:
        expected = re.compile("(.*)".join(map(re.escape, pattern.split("*"))), re.DOTALL)
        for text in texts:
            found = expected.fullmatch(text)
            assert caught(pattern, text) == (None if found is None else found.groups()), (pattern, text)


def test_nothing_else_is_special_in_a_pattern() -> None:
    assert caught("a.b[c]?*", "a.b[c]?\nd") == ("\nd",)
    assert caught("a.b", "axb") is None


def test_a_long_text_is_compared_in_no_time() -> None:
    """A regular expression would take years: for each star it tries all places for all others."""
    assert caught("*-a" * 20 + "-b", "-a" * 500_000) is None
    assert caught("*-a" * 20, "-a" * 500_000) is not None
