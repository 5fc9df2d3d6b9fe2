"""[safeguards]: who checks the tool calls of an answer, where the client asks for it."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

Mode = Literal["judge", "refuse", "off"]


class SafeguardSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """[safeguards]"""

    mode: Annotated[
        Mode,
        Meta(
            description="what answers a client that asks for a check of tool calls, where the provider makes "
            "none: `judge`, a model is asked about each call; `refuse`, status 400 that names the field; "
            "`off`, the answer says that the check is not supported"
        ),
    ] = "judge"
    model: Annotated[
        str,
        Meta(
            description="the model that judges, as a client would name it: `provider/model`, or a name of "
            "`[models]`",
            extra={"default": "the model of the request"},
        ),
    ] = ""
    timeout: Annotated[
        float,
        Meta(
            gt=0,
            le=600,
            description="that a verdict is waited for; a later one is reported as `timeout`",
            extra={"unit": "seconds"},
        ),
    ] = 20.0
