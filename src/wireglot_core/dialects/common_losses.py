"""Losses common to several dialects: filler turns, several answers, events and checks of other dialects."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from wireglot_core.dialects.lost_fields import Lost
from wireglot_core.dialects.surface import Surface
from wireglot_core.ir.errors import ApiError
from wireglot_core.ir.loss import Loss
from wireglot_core.ir.request import Request

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


def lost_details(error: ApiError, names: Sequence[str]) -> list[Loss]:
    """The losses of an error in a dialect whose errors have no such fields."""
    return [
        Loss(f"$.{name}", "error.detail", "dropped", f"no {name} in an error")
        for name in names
        if getattr(error, name)
    ]


def unreported_sequence(request: Request, client: Surface | None, server: Surface) -> Iterator[Loss]:
    """Reported with the request, since the answer no longer contains the sequence: it was cut off with the
    text after it."""
    expected = client is not None and client.stop_sequences == "told"
    if request.stop and expected and server.stop_sequences == "hidden":
        detail = "the upstream does not report whether and which of them ended the answer"
        yield Loss("$.stop", "stop_sequence", "approximated", detail)
