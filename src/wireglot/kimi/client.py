"""The entry points. Every argument is read, and every mistake in them raised, when the call is made."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Unpack

from wireglot.ir.stream import Event
from wireglot.kimi.blocking import blocking, iterating
from wireglot.kimi.options import Asked, Options, Tools, spelled_out
from wireglot.kimi.question import question
from wireglot.kimi.result import CompletionResult
from wireglot.kimi.seams import SendingTransport
from wireglot.kimi.setup import set_up

if TYPE_CHECKING:
    from wireglot.kimi.call import Call


@spelled_out
async def complete(prompt: str | None = None, **options: Unpack[Options]) -> CompletionResult:
    """Ask Kimi, without tools.

    `prompt` is the user's next turn; `messages` is the conversation before it (or all of it), in Anthropic's
    form or the neutral one. `fields` are other fields of a Messages request: `thinking`, `stop_sequences`.
    """
    return await _call(Asked(prompt=prompt, tools=(), stream=False, **options)).whole()


@spelled_out
async def complete_with_tools(
    prompt: str | None = None, tools: Tools = (), **options: Unpack[Options]
) -> CompletionResult:
    """Ask Kimi, with tools in Anthropic's form (`name`, `description`, `input_schema`).

    `fields` may hold a `tool_choice`; see `complete` for the rest.
    """
    return await _call(Asked(prompt=prompt, tools=tools, stream=False, **options)).whole()


@spelled_out
def stream(prompt: str | None = None, **options: Unpack[Options]) -> AsyncGenerator[Event, None]:
    """The events (`wireglot.ir.stream`) of an answer as it arrives, up to `Finish`.

    Nothing is sent before the first event is asked for. A stream that breaks off raises `KimiApiError`.
    """
    return _call(Asked(prompt=prompt, tools=(), stream=True, **options)).events()


@spelled_out
def stream_with_tools(
    prompt: str | None = None, tools: Tools = (), **options: Unpack[Options]
) -> AsyncGenerator[Event, None]:
    """`stream`, with tools in Anthropic's form."""
    return _call(Asked(prompt=prompt, tools=tools, stream=True, **options)).events()


complete_sync = blocking(complete)
complete_with_tools_sync = blocking(complete_with_tools)
stream_sync = iterating(stream)
stream_with_tools_sync = iterating(stream_with_tools)


def connections() -> AbstractAsyncContextManager[SendingTransport]:
    """Connections that several calls of one event loop share: pass what it gives as their `transport`.

    Without it every call opens a connection of its own and closes it.
    """
    from wireglot.kimi.carrier import pooled

    return pooled()


def _call(asked: Asked) -> Call:
    setup = set_up(asked.model, asked.api_key, asked.base_url)
    # The network and all that belongs to it are loaded by the first call, not by the import.
    from wireglot.kimi.call import Call

    return Call(asked, setup, question(asked, setup.model))
