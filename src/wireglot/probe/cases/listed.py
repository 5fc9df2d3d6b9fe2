"""All cases, in the order in which they are run and told."""

from __future__ import annotations

from typing import Final

from wireglot.probe.case import ProbeCase
from wireglot.probe.cases.answers import ANSWERS, STOPS, TEXTS, USAGE
from wireglot.probe.cases.errors import ERRORS, FIELDS, LISTS
from wireglot.probe.cases.reasoning import REASONING
from wireglot.probe.cases.schemas import SCHEMAS
from wireglot.probe.cases.streams import STREAMS
from wireglot.probe.cases.tools import RESULTS, TOOLS

THEMES: Final = (
    ANSWERS,
    STREAMS,
    TOOLS,
    RESULTS,
    STOPS,
    USAGE,
    REASONING,
    SCHEMAS,
    TEXTS,
    FIELDS,
    ERRORS,
    LISTS,
)
CASES: Final[tuple[ProbeCase, ...]] = tuple(case for theme in THEMES for case in theme.cases)


def cases_for(dialect: str) -> tuple[ProbeCase, ...]:
    return tuple(case for case in CASES if dialect in case.dialects)
