"""What counts as "the same" conversation: the equality behind the laws, which recorded exchanges are compared
by too. The rules stand in `wireglot.traces.canonical`, each with its reason."""

from __future__ import annotations

from wireglot.traces.canonical import (
    canonical_arguments,
    canonical_events,
    canonical_extra,
    canonical_request,
    canonical_response,
    canonical_schema,
)

__all__ = [
    "canonical_arguments",
    "canonical_events",
    "canonical_extra",
    "canonical_request",
    "canonical_response",
    "canonical_schema",
]
