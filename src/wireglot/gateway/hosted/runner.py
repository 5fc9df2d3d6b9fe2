"""The contract of something that runs a hosted tool in the provider's place.

A runner is asked once for each request that declares a tool of its kinds. The session that it opens says,
before every round, what the model is offered instead, and runs what the model calls.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final, Protocol

import msgspec

from wireglot.dialects.argument_stream import ArgumentStream
from wireglot.gateway.request.exchange import Exchange
from wireglot.gateway.settings import Settings
from wireglot.ir.content import Media, ResultPart, Text, ToolCall
from wireglot.ir.hosted import HostedCall, HostedError, HostedResult, RanCall, ToolListing
from wireglot.ir.request import HostedTool, Request, Tool
from wireglot.wire.json import BadJson, decode

MAX_RESULT_CHARACTERS: Final = 100_000
"""That a model is given of one result."""


class Offered(msgspec.Struct, frozen=True):
    """What the model gets in the place of a hosted tool."""

    functions: tuple[Tool, ...]
    """By these names their calls are known. A name that the client uses itself is changed by the loop."""
    request: Request
    """What is asked, with all that the runner changes in it (tools that it holds back). The loop puts the
    functions in the place of the hosted tool."""
    listing: ToolListing | None = None
    """Of the first round: tools that the client is shown before the answer."""
    ran: tuple[RanCall, ...] = ()
    """Of the first round: calls of an earlier turn that were run now. Their results are in the request."""


class HostedSession(Protocol):
    """One request, from its first round to its last. `backend` says in metrics what runs the calls."""

    @property
    def backend(self) -> str: ...

    def offer(self, request: Request) -> Offered:
        """Called before each round with the request as it would be sent without this tool."""
        ...

    def call(self, call: ToolCall, id: str) -> HostedCall:
        """A call of one of its functions, as the client is shown it. `id` is new and has no prefix."""
        ...

    async def run(self, call: HostedCall) -> HostedResult:
        """What it brings. Failures are results with an `error`; a cancellation is passed on."""
        ...


class HostedRunner(Protocol):
    """`name` says in losses and notes who runs it."""

    @property
    def name(self) -> str: ...

    @property
    def connects(self) -> bool:
        """Whether it must reach a server to know what to offer."""
        ...

    def serves(self, settings: Settings) -> bool:
        """Whether it runs anything under these settings. Asked once for each configuration."""
        ...

    async def open(self, exchange: Exchange, tool: HostedTool) -> HostedSession | None:
        """None: it does not run this one, which is then lost or refused as without a runner."""
        ...


HostedRunners = Mapping[str, HostedRunner]
"""By the kind of `HostedTool` that each runs."""


def function_name(name: str, taken: Collection[str]) -> str:
    """The name under which a function is offered, where the client may have a tool of that name."""
    while name in taken:
        name = f"gateway_{name}"
    return name


def called_name(call: HostedCall) -> str:
    """The name of the function that stands for a call. Those of servers are unique for each server."""
    return f"{call.server}__{call.name}" if call.server else call.name or call.kind


def arguments_of(call: ToolCall) -> dict[str, Any]:
    """Repaired as for a client; {} for what is no object."""
    stream = ArgumentStream()
    try:
        arguments = decode(stream.feed(call.arguments) + stream.finish() or "{}")
    except BadJson:
        return {}
    return arguments if type(arguments) is dict else {}


def failed(code: HostedError, message: str) -> HostedResult:
    return HostedResult(f"{code}: {message}", code, message)


def result_parts(result: HostedResult) -> tuple[ResultPart, ...]:
    """What the model is given of a result."""
    page = result.page
    if page is None or not page.data:
        return Text(result.text), *result.media
    return Text(result.text), Media("document", page.mime, page.data, name=page.title)
