"""Losses common to several dialects, and the filler for a turn that must be there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, Literal

from wireglot_core.dialects.lost_fields import Lost
from wireglot_core.dialects.surface import Surface
from wireglot_core.ir.content import Foreign
from wireglot_core.ir.errors import ApiError
from wireglot_core.ir.loss import Action, Loss
from wireglot_core.ir.request import Request

MediaKind = Literal["image", "document", "audio", "video"]

FILLER: Final = "Continue."
"""The user's text if the dialect requires a turn of the user and there is none."""
NO_MESSAGE: Final = Loss(
    "$.messages", "content.position", "invented", f'there must be a message: "{FILLER}" was added'
)


def media_note(kind: str) -> str:
    """The text in the place of media that cannot be sent."""
    return f"[{kind} left out: this model cannot take it]"


OTHER_ANSWERS: Final = Lost("candidates", "dropped", "this dialect can hold only one answer")
ONE_ANSWER: Final = OTHER_ANSWERS.at("$.others")
"""The loss for further answers, whole or streamed."""

ONE_STRING: Final = Lost(
    "tool.custom", "approximated", "freeform input becomes one string argument", whole=True
)
"""The loss for the kind of a call, where a call is of a function."""
STATED_ERROR: Final = Lost("tool_result.error", "approximated", "stated in the text")
NO_SAFEGUARDS: Final = Lost("safeguards", "dropped", "this dialect has no such check")
NO_RESULTS: Final = Lost("safeguards", "dropped", "no field for results of a check")

# Where code decides whether it is lost

COUNTED_AS_INPUT: Final = Lost("usage.detail", "approximated", "counted as input")
CUT_CALL: Final = Lost("tool_call.arguments", "dropped", "the limit was reached inside the call")
EFFORT_OFF: Final = Lost("thinking.effort", "dropped", "thinking is off")
EFFORT_AS_OFF: Final = Lost("thinking.effort", "approximated", "thinking is off")
HIGH_DETAIL: Final = Lost("image.detail", "approximated", "sent as high")
JOINED_TEXTS: Final = Lost("content.position", "approximated", "several texts become one")
LATE_SIGNATURE: Final = Lost("reasoning.signature", "dropped", "it came after the call it belongs to")
LEVEL_ALONE: Final = Lost("thinking.mode", "emulated", "expressed by the level alone")
MODE_AS_OFF: Final = Lost("thinking.mode", "approximated", "thinking is off")
NO_APPROVAL: Final = Lost("hosted_tool", "dropped", "no one can approve its calls here")
NO_RESULTS_IN_ANSWERS: Final = Lost("content.position", "dropped", "no results in an answer")
NO_SCHEMA: Final = Lost("output_format.schema", "approximated", "no schema was given, any JSON will do")
NO_TOOL_SEARCH: Final = Lost("tool.deferred", "dropped", "no tool search is available")
NO_URL: Final = Lost("citations", "dropped", "it names no URL")
OPAQUE_REASONING: Final = Lost("reasoning.redacted", "dropped", "opaque reasoning of another provider")
RESULTS_FIRST: Final = Lost("content.position", "approximated", "results come first")


def lost_details(error: ApiError, names: Sequence[str]) -> list[Loss]:
    """The losses of an error in a dialect whose errors have no such fields."""
    return [
        Loss(f"$.{name}", "error.detail", "dropped", f"no {name} in an error")
        for name in names
        if getattr(error, name)
    ]


def guessed_type(kind: MediaKind, guess: str, path: str) -> Loss:
    """The loss for the type of a medium that came without one, where one is required."""
    return Loss(f"{path}.mime", kind, "invented", f"no type was stated, {guess} is a guess")


def foreign_citation(native: Foreign, path: str, action: Action = "dropped") -> Loss:
    """The loss for a citation of a kind that only another dialect has."""
    return Loss(path, "citations", action, f"a {native.type} of {native.dialect}")


def unreported_sequence(request: Request, client: Surface | None, server: Surface) -> Iterator[Loss]:
    """Reported with the request, since the answer no longer contains the sequence: it was cut off with the
    text after it."""
    expected = client is not None and client.stop_sequences == "told"
    if request.stop and expected and server.stop_sequences == "hidden":
        detail = "the upstream does not report whether and which of them ended the answer"
        yield Loss("$.stop", "stop_sequence", "approximated", detail)
