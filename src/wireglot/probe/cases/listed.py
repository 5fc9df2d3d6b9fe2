"""All cases, in the order in which they are run and told."""

from __future__ import annotations

from typing import Final

from wireglot.probe.case import Case
from wireglot.probe.cases import (
    answers,
    errors,
    fields,
    lists,
    reasoning,
    results,
    schemas,
    stops,
    streams,
    texts,
    tools,
    usage,
)

THEMES: Final = (
    answers.THEME,
    streams.THEME,
    tools.THEME,
    results.THEME,
    stops.THEME,
    usage.THEME,
    reasoning.THEME,
    schemas.THEME,
    texts.THEME,
    fields.THEME,
    errors.THEME,
    lists.THEME,
)
CASES: Final[tuple[Case, ...]] = tuple(case for theme in THEMES for case in theme.cases)


def cases_for(dialect: str) -> tuple[Case, ...]:
    return tuple(case for case in CASES if dialect in case.dialects)
