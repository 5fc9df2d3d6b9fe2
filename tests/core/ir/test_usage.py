"""Token counts: sums that never overlap, and accounts that become one."""

from wireglot_core.ir.errors import MESSAGE_MAX, legible
from wireglot_core.ir.outcome import Usage, added
from wireglot_core.ir.usage import COUNTS, KINDS, Kind, counts_of, kinds_of, with_counts

ALL = Usage(
    input=1, cache_read=20, cache_write=300, cache_write_long=4000, tool_prompt=50_000, output=6, reasoning=70
)


def test_what_went_in_and_what_came_out():
    assert ALL.total_input == 54_321
    assert ALL.total_output == 76
    assert ALL.total == 54_397
    assert Usage().total == Usage().total_output == 0


def test_counts_have_their_names_and_their_order():
    assert counts_of(ALL) == (1, 20, 300, 4000, 50_000, 6, 70)
    assert with_counts(Usage(output=9), ALL) == ALL
    assert [getattr(ALL, name) for name in COUNTS] == list(counts_of(ALL))
    assert counts_of(Usage(output=1))[-1] == 0


def test_counts_of_one_kind_are_reported_as_one():
    assert {
        "input": Kind("input", "input", ("input", "tool_prompt")),
        "cache_read": Kind("input", "cached", ("cache_read",)),
        "cache_write": Kind("input", "written", ("cache_write", "cache_write_long")),
        "output": Kind("output", "output", ("output",)),
        "reasoning": Kind("output", "reasoning", ("reasoning",)),
    } == KINDS
    assert kinds_of(ALL) == (50_001, 20, 4300, 6, 70)


def test_two_accounts_become_one_and_what_neither_reported_stays_unreported():
    one, other = Usage(input=1, output=2), Usage(input=3, cache_read=4)
    assert added(one, other) == Usage(input=4, cache_read=4, output=2)
    assert added(one, Usage(reasoning=0)) == Usage(input=1, output=2, reasoning=0)
    assert added(Usage(reasoning=5), one) == Usage(input=1, output=2, reasoning=5)
    assert added(one, None) is one
    assert added(None, one) is one
    assert added(None, None) is None


def test_a_message_is_one_line_and_not_too_long():
    assert legible("a\nb\x00é") == "a\\nb\\x00é"
    assert legible("a" * MESSAGE_MAX) == "a" * MESSAGE_MAX
    assert legible("a" * (MESSAGE_MAX + 1)) == "a" * (MESSAGE_MAX - 1) + "…"
    assert legible("abcdef", 5) == "abcd…"
    assert MESSAGE_MAX == 512
