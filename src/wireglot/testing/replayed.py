"""A recorded exchange as a test: it must be translated as it was when somebody exported it."""

from __future__ import annotations

import os
from pathlib import Path

from wireglot.traces.file import read_trace
from wireglot.traces.replay import Replayed
from wireglot.traces.replay import replay as translated_again
from wireglot.traces.trace import Trace


def replay(trace: Trace | str | os.PathLike[str]) -> Replayed:
    """Translate an exported trace again, offline, and fail with an AssertionError that says what is different
    by JSON pointers, or why nothing of it could be compared. Raises `BadTrace` where the file is none."""
    recorded = trace if isinstance(trace, Trace) else read_trace(Path(trace).read_bytes())
    again = translated_again(recorded)
    name = f"{recorded.row.id or 'the trace'}: " if isinstance(trace, Trace) else f"{os.fspath(trace)}: "
    notes = "".join(f"\n  note: {note}" for note in again.notes)
    if not again.compared:
        raise AssertionError(f"{name}nothing of it can be replayed{notes}")
    if not again.is_same:
        found = "".join(f"\n  {line}" for line in again.report().splitlines())
        raise AssertionError(f"{name}translated otherwise than it was recorded (was -> is){found}{notes}")
    return again
