"""The probe's requests, before a wire renders them in its dialect."""

from __future__ import annotations

from typing import Any, Final, Literal

import msgspec

PICTURE: Final = (
    "iVBORw0KGgoAAAANSUhEUgAAABAAAAAQCAIAAACQkWg2AAAAFklEQVR42mP4z8BAEmIY1TCqYfhq"
    "AACQ+f8B8u7oVwAAAABJRU5ErkJggg=="
)
"""A red square, PNG, base64."""

PICTURE_TYPE: Final = "image/png"
TOKENS: Final = 1024
"""Enough for a model that thinks before it answers."""

THINKING_TOKENS: Final = 2048
"""More, for requests with thinking: some need a budget of 1024 below the limit."""

Choice = Literal["", "auto", "none", "required"]


class Offer(msgspec.Struct, frozen=True):
    """A tool. `schema` None: it takes no arguments, declared as the dialect does."""

    name: str
    description: str = ""
    schema: dict[str, Any] | None = None
    strict: bool = False


class ProbeCall(msgspec.Struct, frozen=True):
    """`arguments`: the JSON text, unchanged."""

    id: str
    name: str
    arguments: str


class User(msgspec.Struct, frozen=True):
    """`parts`: as a list of text parts, even if there is only one."""

    texts: tuple[str, ...]
    parts: bool = False
    picture: bool = False


class Said(msgspec.Struct, frozen=True):
    """The model's own turn: its items on the wire, unchanged."""

    items: tuple[dict[str, Any], ...]


class Called(msgspec.Struct, frozen=True):
    """A turn of the model made up by the probe: a text, or calls with foreign ids."""

    text: str = ""
    calls: tuple[ProbeCall, ...] = ()


class ProbeResult(msgspec.Struct, frozen=True):
    call: ProbeCall
    text: str
    error: bool = False
    picture: bool = False
    parts: bool = False


class Results(msgspec.Struct, frozen=True):
    results: tuple[ProbeResult, ...]


class Midway(msgspec.Struct, frozen=True):
    """A system message in the middle of the conversation."""

    text: str
    role: str = "system"


Turn = User | Said | Called | Results | Midway


class ProbeQuestion(msgspec.Struct, frozen=True, kw_only=True):
    turns: tuple[Turn, ...]
    system: tuple[str, ...] = ()
    system_parts: bool = False
    tools: tuple[Offer, ...] = ()
    choice: Choice = ""
    named: str = ""
    """The tool that must be called."""
    parallel: bool | None = None
    most: int = TOKENS
    """Maximum tokens of the answer."""
    stop: tuple[str, ...] = ()
    schema: dict[str, Any] | None = None
    json: bool = False
    thinking: int | None = None
    """The index among the wire's options for thinking; None: it is not requested."""
    stream: bool = False
    usage: bool = True
    """Whether a stream's usage is requested, if it is only reported on request."""
    extra: dict[str, Any] = {}
    """Fields of the body, unchanged."""


def ask(text: str, **more: Any) -> ProbeQuestion:
    return ProbeQuestion(turns=(User((text,)),), **more)
