"""Requests for the tests of `fit`, and what became of them."""

from typing import Any

from wireglot_core.dialects.context import Context
from wireglot_core.ir.content import (
    Message,
    Origin,
    Part,
    Signature,
    Text,
    ToolCall,
    ToolResult,
)
from wireglot_core.ir.request import (
    Request,
)
from wireglot_core.providers.fit.fit import Fitter
from wireglot_core.providers.fit.fitting import FitTarget, Fitted
from wireglot_core.providers.limits import Limits


def user(*parts: Part) -> Message:
    return Message("user", parts)


def assistant(*parts: Part) -> Message:
    return Message("assistant", parts)


def request(*messages: Message, **fields: Any) -> Request:
    return Request("m", messages or (user(Text("hi")),), **fields)


def fit(
    wanted: Request,
    limits: Limits,
    context: Context,
    dialect: str,
    foreign: bool = True,
    in_pieces: bool = False,
) -> Fitted:
    target = FitTarget.of(limits, dialect, foreign=foreign, in_pieces=in_pieces)
    return Fitter(target).fit(wanted, context)


def fitted(
    wanted: Request,
    limits: Limits,
    dialect: str = "openai-chat",
    foreign: bool = True,
    *,
    emulates: bool = True,
) -> Fitted:
    return fit(wanted, limits, Context(emulates=emulates), dialect, foreign)


def features(outcome: Fitted) -> list[tuple[str, str]]:
    return [(loss.feature, loss.action) for loss in outcome.losses]


CLAUDE = Signature("sig", Origin("anthropic"))
GEMINI = Signature("U0lH", Origin("gemini"))


def pair(identifier: str, name: str = "f") -> tuple[Message, Message]:
    return assistant(ToolCall(identifier, name, "{}")), user(ToolResult(identifier))
