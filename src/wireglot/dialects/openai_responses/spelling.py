"""The name of this dialect, and its unknown fields: kept in `Extra`, put back when it is rendered."""

from __future__ import annotations

from wireglot.dialects.unknown_fields import UnknownFields

NAME = "openai-responses"

_UNKNOWN = UnknownFields(NAME, over_blanks=True)
keep, put_back = _UNKNOWN.keep, _UNKNOWN.put_back
