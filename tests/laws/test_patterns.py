"""No regular expression of the package goes back without end: its steps are linear in the text, or bounded.

Each is found in the syntax trees, pumped and counted (`pattern_steps.py`). One that depends on what its function is
given has an example in `EXAMPLES`; without one the test fails.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable
from functools import cache
from importlib import import_module
from itertools import combinations
from typing import Any

from tests.laws.pattern_steps import Mode, grows
from tests.laws.source_patterns import Found, source_patterns
from tests.tiers import rows
from tools.structure import modules
from wireglot.gateway.entry.routes import Routes
from wireglot.gateway.hosted import rounds
from wireglot.http import redaction
from wireglot_core.dialects.registry import surfaces
from wireglot_core.ir import stop_sequences
from wireglot_core.ir.leaked_calls import LEAK_FAMILIES, _Tokens, _tokens
from wireglot_core.providers import spec
from wireglot_core.traces.links import Marker

Patterns = Iterable[str | bytes | re.Pattern[str] | re.Pattern[bytes]]


def tokens(families: Iterable[Any]) -> _Tokens:
    found = _tokens(frozenset(families))
    assert found is not None
    return found


LIMITS = [
    spec.limits_for(dialect, "m", name) for name in spec.names() for dialect in spec.provider(name).dialects
]

EXAMPLES: dict[str, list[Patterns]] = {
    "wireglot_core.extras": [[r"""extra == ['"]login['"]"""]],
    "wireglot.gateway.config.read": [[r'[ \t]*\[[ \t]*models[ \t]*\.[ \t]*"?([A-Za-z0-9._-]+)"?[ \t]*\]']],
    "wireglot.gateway.entry.routes": [[Routes(surfaces())._lost_key]],
    "wireglot.gateway.hosted.rounds": [
        [rf"\[[^\[\]]*\]\(<?(http://a/b|http://a)>?\)|(http://a/b|http://a){rounds._AFTER}"]
    ],
    "wireglot.http.redaction": [[pattern for _, pattern in redaction._PATTERNS]],
    "wireglot_core.ir.leaked_calls": [
        [pattern for each in (*combinations(LEAK_FAMILIES, 1), LEAK_FAMILIES) for pattern in patterns(each)]
        for patterns in (lambda names: [tokens(names).head], lambda names: [tokens(names).undecided])
    ],
    "wireglot_core.ir.stop_sequences": [[stop_sequences._Beginnings(["a", "]-^"]).first]],
    "wireglot_core.providers.fit.survey": [
        list({limits.tool_name for limits in LIMITS if limits.tool_name}),
        list({limits.call_id for limits in LIMITS if limits.call_id}),
    ],
    "wireglot_core.traces.links": [[Marker()._plain], [Marker()._encoded]],
}
"""Module -> what its patterns that depend on something may be, in their order."""

SHORT: dict[str, str] = {
    "wireglot.gateway.relay.explanation._MASKED_KEY": "_MAX_SAID_LETTERS",
    "wireglot.gateway.trace.filters._VALUE": "MAX_LETTERS",
}
"""A regular expression that may go back -> the bound of the texts that it meets, a constant of its module."""

REFUSED: list[tuple[str, Mode]] = [
    (r"(a*)*b", "search"),
    (r"(a|aa)+$", "match"),
    (r"(?:\\.|.)+x", "match"),
    (r'"(?:[^"\\]|\\.)*"', "search"),
    (r"\\+(?:u00..|/)", "search"),
    (r"\\++(?:u00..|/)", "search"),
    (r"\s+$", "search"),
    (r"<a[^>]*>", "search"),
    (r"(x+x+)+y", "search"),
    (r"a.*b.*c", "match"),
    (r"[^?#]*?a[^?#]*?a[^?#]*?b", "match"),
    (r"\[\[file:([^\]]*)\]\]", "search"),
    (r"\s*(.*?)\s*<end>", "match"),
    (r"(?=.*a.*b)x", "search"),
    (r"(?<!c)[\w-]*?c", "search"),
    (r"(?s)/\*.*?\*/", "search"),
    (r"\bcurl\b[^|\n]*\|", "search"),
    (r"\d+\.?\d*(?![\w$.])", "match"),
    (r"https?://([^/?#]*)([^#]*)", "fullmatch"),
    (r"a+\b", "search"),
]
ADMITTED: list[tuple[str, Mode]] = [
    (r"(?<!\\)\\++(?:u00..|/)", "search"),
    (r'"(?:[^"\\]|\\.)*+"?', "search"),
    (r"[a-z]+\d", "match"),
    (r"\[\[file:([^\[\]]*)\]\]", "search"),
    (r"<a[^>]{0,200}>", "search"),
    (r"^\s*a", "search"),
    (r"\bcurl\b(?:(?!\bcurl\b)[^|\n])*\|", "search"),
    (r"\d+(?:\.\d*)?(?![\w$.])", "match"),
    (r"https?://([^/?#]*+)([^#]*+)", "fullmatch"),
    (r"(?:\w+\s)*+\w*$", "match"),
    (r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*", "fullmatch"),
]


@cache
def found() -> list[Found]:
    return list(source_patterns())


def known(each: Found) -> list[tuple[str | bytes, int]]:
    """What the pattern may be, with its flags. A compiled one has its own."""
    if each.pattern is not None:
        return [(each.pattern, each.flags)]
    made = [other for other in found() if other.pattern is None and other.module == each.module]
    examples = EXAMPLES[each.module][made.index(each)]
    return [
        (example.pattern, example.flags & ~re.UNICODE) if isinstance(example, re.Pattern) else (example, 0)
        for example in examples
    ]


def test_each_pattern_that_is_made_while_running_has_an_example() -> None:
    made = Counter(each.module for each in found() if each.pattern is None)
    assert made == {module: len(examples) for module, examples in EXAMPLES.items()}


def test_each_module_makes_its_patterns_by_the_name_of_re() -> None:
    """`from re import compile` or another name for it would hide a pattern from this law."""
    for module in modules().values():
        for node in module.nodes:
            names = [each.name for each in getattr(node, "names", ()) if isinstance(each, ast.alias)]
            assert getattr(node, "module", "") not in ("re", "regex"), module.name
            assert "regex" not in names, module.name
            assert all(
                each.asname is None
                for each in getattr(node, "names", ())
                if getattr(each, "name", "") == "re"
            )


def test_what_bounds_a_text_is_a_constant_of_the_module() -> None:
    assert set(SHORT) <= {each.name for each in found()}
    for name, bound in SHORT.items():
        assert getattr(import_module(name.rpartition(".")[0]), bound) <= 1000


@rows("each", found, ids=lambda each: f"{each.module}:{each.line}", parts=6)
def test_the_steps_of_a_pattern_grow_with_the_text(each: Found) -> None:
    for pattern, flags in known(each):
        text = grows(pattern, flags, each.mode)
        if each.name in SHORT:
            assert text, f"{each.name} is linear: it needs no bound"
        else:
            assert not text, f"{each.source} goes back in {text!r}, repeated"


@rows("pattern, mode", REFUSED)
def test_patterns_that_go_back_are_refused(pattern: str, mode: Mode) -> None:
    assert grows(pattern, 0, mode)


@rows("pattern, mode", ADMITTED)
def test_patterns_that_do_not_are_admitted(pattern: str, mode: Mode) -> None:
    assert not grows(pattern, 0, mode)
