"""The name of the dialect, and fields of it that the IR has no name for."""

from __future__ import annotations

from typing import Final

from wireglot_core.dialects.unknown_fields import UnknownFields

NAME: Final = "ollama"

UNKNOWN: Final = UnknownFields(NAME, deep=True, over_blanks=True)
keep, put_back = UNKNOWN.keep, UNKNOWN.put_back
