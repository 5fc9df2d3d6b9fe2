"""The entry points. Every argument is read, and every mistake in them raised, when the call is made."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any

from wireglot.http.transport import Transport as GatewayTransport
from wireglot.ir.stream import Event
from wireglot.kimi.blocking import blocking, iterating
from wireglot.kimi.question import Asked, Turn, question
from wireglot.kimi.result import CompletionResult
from wireglot.kimi.seams import Log, RetryPreset, Sleep, Transport
from wireglot.kimi.setup import set_up

if TYPE_CHECKING:
    from wireglot.kimi.call import Call

System = str | Sequence[Mapping[str, Any]]
Tools = Sequence[Mapping[str, Any]]


async def complete(
    prompt: str | None = None,
    *,
    messages: Sequence[Turn] | None = None,
    model: str | None = None,
    max_tokens: int | None = None,
    system: System | None = None,
    fields: Mapping[str, Any] | None = None,
    api_key: str | None = None,
    base_url: str | None = None,
    transport: Transport | None = None,
    log: Log | None = None,
    sleep: Sleep | None = None,
    retry: RetryPreset = "fixed-100ms",
) -> CompletionResult:
    """Ask Kimi, without tools.

    `prompt` is the user's next turn; `messages` is the conversation before it (or all of it), in Anthropic's
    form or the neutral one. `fields` are other fields of a Messages request: `thinking`, `stop_sequences`.
    """
    asked = _asked(prompt, messages, system, (), max_tokens, fields)
    return await _call(asked, model, api_key, base_url, transport, log, sleep, retry).whole()


async def complete_with_tools(
    prompt: str | None = None,
    tools: Tools = (),
    *,
    messages: Sequence[Turn] | None = None,
    model: str | None = None,
    max_tokens: int | None = None,
    system: System | None = None,
    fields: Mapping[str, Any] | None = None,
    api_key: str | None = None,
    base_url: str | None = None,
    transport: Transport | None = None,
    log: Log | None = None,
    sleep: Sleep | None = None,
    retry: RetryPreset = "fixed-100ms",
) -> CompletionResult:
    """Ask Kimi, with tools in Anthropic's form (`name`, `description`, `input_schema`).

    `fields` may hold a `tool_choice`; see `complete` for the rest.
    """
    asked = _asked(prompt, messages, system, tools, max_tokens, fields)
    return await _call(asked, model, api_key, base_url, transport, log, sleep, retry).whole()


def stream(
    prompt: str | None = None,
    *,
    messages: Sequence[Turn] | None = None,
    model: str | None = None,
    max_tokens: int | None = None,
    system: System | None = None,
    fields: Mapping[str, Any] | None = None,
    api_key: str | None = None,
    base_url: str | None = None,
    transport: Transport | None = None,
    log: Log | None = None,
    sleep: Sleep | None = None,
    retry: RetryPreset = "fixed-100ms",
) -> AsyncGenerator[Event, None]:
    """The events (`wireglot.ir.stream`) of an answer as it arrives, up to `Finish`.

    Nothing is sent before the first event is asked for. A stream that breaks off raises `KimiApiError`.
    """
    asked = _asked(prompt, messages, system, (), max_tokens, fields, stream=True)
    return _call(asked, model, api_key, base_url, transport, log, sleep, retry).events()


def stream_with_tools(
    prompt: str | None = None,
    tools: Tools = (),
    *,
    messages: Sequence[Turn] | None = None,
    model: str | None = None,
    max_tokens: int | None = None,
    system: System | None = None,
    fields: Mapping[str, Any] | None = None,
    api_key: str | None = None,
    base_url: str | None = None,
    transport: Transport | None = None,
    log: Log | None = None,
    sleep: Sleep | None = None,
    retry: RetryPreset = "fixed-100ms",
) -> AsyncGenerator[Event, None]:
    """`stream`, with tools in Anthropic's form."""
    asked = _asked(prompt, messages, system, tools, max_tokens, fields, stream=True)
    return _call(asked, model, api_key, base_url, transport, log, sleep, retry).events()


complete_sync = blocking(complete)
complete_with_tools_sync = blocking(complete_with_tools)
stream_sync = iterating(stream)
stream_with_tools_sync = iterating(stream_with_tools)


def connections() -> AbstractAsyncContextManager[GatewayTransport]:
    """Connections that several calls of one event loop share: pass what it gives as their `transport`.

    Without it every call opens a connection of its own and closes it.
    """
    from wireglot.kimi.carrier import pooled

    return pooled()


def _asked(
    prompt: str | None,
    messages: Sequence[Turn] | None,
    system: System | None,
    tools: Tools,
    max_tokens: int | None,
    fields: Mapping[str, Any] | None,
    *,
    stream: bool = False,
) -> Asked:
    return Asked(
        prompt=prompt,
        messages=messages,
        system=system,
        tools=tools,
        max_tokens=max_tokens,
        fields=fields,
        stream=stream,
    )


def _call(
    asked: Asked,
    model: str | None,
    api_key: str | None,
    base_url: str | None,
    transport: Transport | None,
    log: Log | None,
    sleep: Sleep | None,
    retry: RetryPreset,
) -> Call:
    setup = set_up(model, api_key, base_url)
    # The network and all that belongs to it are loaded by the first call, not by the import.
    from wireglot.kimi.call import Call
    from wireglot.kimi.retries import policy_of

    return Call(setup, question(asked, setup.model), policy_of(retry), transport, log, sleep)
