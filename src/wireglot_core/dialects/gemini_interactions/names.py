"""Values of the Interactions API and their neutral equivalents: efforts, steps, events.

Wire reference: google-genai 3.3 (`google.genai._gaos.types.interactions`) and ai.google.dev. Names are
snake_case, and every union is tagged by `type`.
"""

from __future__ import annotations

from typing import Any, Final, Literal

from wireglot_core.dialects.fields import own_fields
from wireglot_core.dialects.unknown_fields import UnknownFields
from wireglot_core.ir.content import Extra
from wireglot_core.ir.request import Effort

OWN: Final = "gemini-interactions"

UNKNOWN: Final = UnknownFields(OWN, deep=True)
put_back: Final = UNKNOWN.put_back

# --- steps and content

USER_INPUT: Final = "user_input"
MODEL_OUTPUT: Final = "model_output"
THOUGHT: Final = "thought"
FUNCTION_CALL: Final = "function_call"
FUNCTION_RESULT: Final = "function_result"

MEDIA: Final[tuple[Literal["image", "audio", "document", "video"], ...]] = (
    "image",
    "audio",
    "document",
    "video",
)
CONTENT: Final = frozenset({"text", *MEDIA})
"""Types of content. Everything else in a list of inputs is a step."""

JOINED: Final = "joined"
"""Form key of a text or medium of an answer that is in the step of the part before it."""
HOLLOW_STEP: Final = "content"
"""Form key of an empty text of an answer: its step has no content, "absent" or "empty"."""
STEP: Final = "step."
"""Prefix for unknown fields of a `model_output` step in the extra of its first part."""

# --- events of a stream

CREATED: Final = "interaction.created"
STATUS_UPDATE: Final = "interaction.status_update"
STEP_START: Final = "step.start"
STEP_DELTA: Final = "step.delta"
STEP_STOP: Final = "step.stop"
COMPLETED: Final = "interaction.completed"
ERROR: Final = "error"
DONE: Final = b"event: done\ndata: [DONE]\n\n"

# --- thinking

EFFORTS: Final[dict[str, Effort]] = {
    "minimal": "minimal",
    "low": "low",
    "medium": "medium",
    "high": "high",
    "xhigh": "xhigh",
}
LEVELS: Final[dict[Effort, str]] = {effort: level for level, effort in EFFORTS.items()} | {
    "none": "minimal",
    "max": "xhigh",
}
DISPLAYS: Final[dict[str, Literal["summary", "omitted"]]] = {"auto": "summary", "none": "omitted"}
SUMMARIES: Final = {display: word for word, display in DISPLAYS.items()}

TIERS: Final = frozenset({"flex", "standard", "priority", "deferred"})


def step_fields(extra: Extra | None) -> dict[str, Any]:
    """Unknown fields of the step that begins with a part of an answer."""
    fields = own_fields(extra, OWN)
    return {key.removeprefix(STEP): value for key, value in fields.items() if key.startswith(STEP)}


def part_extra(extra: Extra | None) -> Extra | None:
    """The extra of the content alone, without what belongs to its step."""
    if extra is None or extra.dialect != OWN:
        return extra
    fields = {key: value for key, value in extra.fields.items() if not key.startswith(STEP)}
    form = {key: value for key, value in extra.form.items() if key not in (JOINED, HOLLOW_STEP)}
    return Extra(OWN, fields, form) if fields or form else None
