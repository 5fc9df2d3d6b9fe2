"""A tool that the provider runs in the vendor's own API, in neutral terms: one call and its result.

Each dialect shows them in its own form (`dialects.capabilities.HostedForm`), and parses that form when a
client sends it back with later turns.
"""

from __future__ import annotations

from typing import Any, Final, Literal

import msgspec

from wireglot_core.ir.content import Media
from wireglot_core.ir.loss import Loss
from wireglot_core.ir.outcome import Stop, StopReason
from wireglot_core.ir.request import Tool

RUN_HERE: Final = "wg"
"""Prefix of ids of calls that the gateway has run."""
SHOWN: Final = "wn"
"""Prefix of ids of calls that an upstream has run, shown to a client of another dialect."""

RUN_AT: Final[frozenset[StopReason]] = frozenset({"tool_calls", "end", "other"})
"""Stop reasons with which the calls of an answer are complete and intended."""

HostedError = Literal[
    "unavailable",
    "max_uses_exceeded",
    "too_many_requests",
    "invalid_tool_input",
    "query_too_long",
    "request_too_large",
    "url_too_long",
    "url_not_allowed",
    "url_not_in_prior_context",
    "url_not_accessible",
    "unsupported_content_type",
    "content_too_large",
    "execution_time_exceeded",
    "tool_failed",
]


CODE: Final = "code_execution"
"""The kind of a call that runs code, whose input has `code` and `language` ("" if unknown)."""


class HostedCall(msgspec.Struct, frozen=True, omit_defaults=True):
    """`kind` is that of `request.HostedTool`. `id` has no prefix: each dialect adds its own."""

    kind: str
    id: str
    name: str = ""
    """The name of the tool, if the kind has several (MCP)."""
    input: dict[str, Any] = {}
    server: str = ""
    """For the kind `mcp`: the name of the server."""
    approval: str = ""
    """The id of the request by which a person was asked to approve it, without its prefix."""
    pending: bool = False
    """It has not been run: a person must approve it first, and the turn ends with that request."""


class WebSource(msgspec.Struct, frozen=True, omit_defaults=True):
    """A page that a search found. `sealed`: its text, in the form that the client carries to later turns."""

    url: str
    title: str = ""
    text: str = ""
    age: str = ""
    sealed: str = ""


class WebPage(msgspec.Struct, frozen=True, omit_defaults=True):
    """A page that was fetched: `text`, or `data` (base64) of a PDF. `retrieved` is an ISO 8601 time."""

    url: str
    title: str = ""
    mime: str = ""
    text: str = ""
    data: str = ""
    retrieved: str = ""


class HostedResult(msgspec.Struct, frozen=True, omit_defaults=True):
    """The result of a call. `text` is what the model reads; with `error` nothing else was found."""

    text: str = ""
    error: HostedError | Literal[""] = ""
    message: str = ""
    """The error message."""
    sources: tuple[WebSource, ...] = ()
    page: WebPage | None = None
    media: tuple[Media, ...] = ()
    """Pictures that a tool returned, for the model: no dialect shows them to clients."""
    tools: tuple[Tool, ...] = ()
    """For a search for tools: the tools found. A dialect that shows only their names reads back only
    those."""


class ListedTool(msgspec.Struct, frozen=True, omit_defaults=True):
    """A tool of an MCP server. `read_only`: the server declares that it changes nothing."""

    name: str
    description: str = ""
    schema: dict[str, Any] = {}
    read_only: bool = False
    annotations: dict[str, Any] = {}


class ToolListing(msgspec.Struct, frozen=True):
    """The tools of an MCP server that a request may use."""

    id: str
    server: str
    tools: tuple[ListedTool, ...]


class Approval(msgspec.Struct, frozen=True):
    """A request for a person's approval, with its call; or the answer to it."""

    id: str
    call: HostedCall | None = None
    approved: bool = False
    reason: str = ""


class RanCall(msgspec.Struct, frozen=True, omit_defaults=True):
    """A call and its result, with the same id. None: it is in another part of the conversation."""

    id: str
    call: HostedCall | None = None
    result: HostedResult | None = None


def without_calls(stop: Stop) -> Stop:
    """The stop of an answer whose calls are not shown to the client."""
    return Stop("end") if stop.reason == "tool_calls" else stop


def continued(times: int) -> Loss:
    """The loss of an answer that paused this many times and was continued."""
    often = "once" if times == 1 else f"{times} times"
    return Loss("$.stop", "stop_reason", "emulated", f"it paused and was continued {often}")
