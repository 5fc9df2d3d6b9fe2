"""The interface of code that runs a hosted tool in the provider's place.

A runner is opened once for each request that declares a tool of its kinds. Before every round, its session
returns what the model is offered instead; then it runs the model's calls.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final, Protocol

import msgspec

from wireglot.gateway.request.exchange import Exchange
from wireglot.gateway.settings import Settings
from wireglot_core.dialects.argument_stream import ArgumentStream
from wireglot_core.ir.content import Media, ResultPart, Text, ToolCall
from wireglot_core.ir.hosted import HostedCall, HostedError, HostedResult, RanCall, ToolListing
from wireglot_core.ir.request import HostedTool, Request, Tool
from wireglot_core.wire.json import BadJson, decode

MAX_RESULT_CHARACTERS: Final = 100_000
"""Characters of one result of a hosted tool that are sent to a model."""


class Offered(msgspec.Struct, frozen=True):
    """What the model gets in place of a hosted tool."""

    functions: tuple[Tool, ...]
    """Their calls are recognized by these names. The loop changes a name that the client uses itself."""
    request: Request
    """The request, with all that the runner changes in it (tools that it holds back). The loop replaces the
    hosted tool by the functions."""
    listing: ToolListing | None = None
    """In the first round: tools that the client is shown before the answer."""
    ran: tuple[RanCall, ...] = ()
    """In the first round: calls of an earlier turn that were run now. Their results are in the request."""


class HostedSession(Protocol):
    """One request, from its first round to its last. `backend` names what runs the calls, in metrics."""

    @property
    def backend(self) -> str: ...

    def offer(self, request: Request) -> Offered:
        """Called before each round with the request as it would be sent without this tool."""
        ...

    def call(self, call: ToolCall, id: str) -> HostedCall:
        """A call of one of its functions, in the form that the client is shown. `id` is new and has no
        prefix."""
        ...

    async def run(self, call: HostedCall) -> HostedResult:
        """Run a call. Failures are results with an `error`; a cancellation is passed on."""
        ...


class HostedRunner(Protocol):
    """`name` names the runner in losses and notes."""

    @property
    def name(self) -> str: ...

    @property
    def connects(self) -> bool:
        """Whether it must connect to a server to know what to offer."""
        ...

    def serves(self, settings: Settings) -> bool:
        """Whether it runs anything under these settings. Called once for each configuration."""
        ...

    async def open(self, exchange: Exchange, tool: HostedTool) -> HostedSession | None:
        """None: it does not run this one, which is then lost or refused as without a runner."""
        ...


HostedRunners = Mapping[str, HostedRunner]
"""By the kind of `HostedTool` that each runs."""


def function_name(name: str, taken: Collection[str]) -> str:
    """The name under which a function is offered, different from the client's own tools."""
    while name in taken:
        name = f"gateway_{name}"
    return name


def called_name(call: HostedCall) -> str:
    """The name of the function that represents a call. Those of servers are unique for each server."""
    return f"{call.server}__{call.name}" if call.server else call.name or call.kind


def arguments_of(call: ToolCall) -> dict[str, Any]:
    """Repaired as for a client; {} if it is not an object."""
    stream = ArgumentStream()
    try:
        arguments = decode(stream.feed(call.arguments) + stream.finish() or "{}")
    except BadJson:
        return {}
    return arguments if type(arguments) is dict else {}


def failed(code: HostedError, message: str) -> HostedResult:
    return HostedResult(f"{code}: {message}", code, message)


def result_parts(result: HostedResult) -> tuple[ResultPart, ...]:
    """The parts of a result that the model gets."""
    page = result.page
    if page is None or not page.data:
        return Text(result.text), *result.media
    return Text(result.text), Media("document", page.mime, page.data, name=page.title)
