"""The alert rules of `deploy/prometheus`, read as far as tests and pages need them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final, NamedTuple

FOLDER: Final = Path(__file__).parents[2] / "deploy" / "prometheus"
RULES: Final = FOLDER / "wireglot.rules.yml"
TESTS: Final = FOLDER / "wireglot.rules.test.yml"

_ALERT: Final = re.compile(r"^ {6}- alert: (\w+)\n((?: {8}.*\n|\n)+)", re.MULTILINE)
_EXPRESSION: Final = re.compile(r"^ {8}expr: (?:\|\n((?: {10}.*\n)+)|(.+)\n)", re.MULTILINE)
_ANNOTATION: Final = re.compile(r'^ {10}(\w+): "(.*)"$', re.MULTILINE)


class Alert(NamedTuple):
    name: str
    expression: str
    annotations: dict[str, str]


def alerts() -> list[Alert]:
    """Of a file of our own, whose form is known; promtool reads it for real."""
    found = []
    for name, body in _ALERT.findall(RULES.read_text(encoding="utf-8")):
        expression = _EXPRESSION.search(body)
        assert expression is not None, f"{name}: no expr"
        block = expression[1] or expression[2]
        found.append(Alert(name, " ".join(block.split()), dict(_ANNOTATION.findall(body))))
    return found
