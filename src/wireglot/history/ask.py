"""The next request of a conversation, for any dialect: nothing empty in it, every call answered."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal, TypedDict

import msgspec

from wireglot.dialects.base import Context, Rendered
from wireglot.dialects.registry import dialect
from wireglot.history.assistant import Assistant
from wireglot.history.pairs import pending_calls
from wireglot.history.tools import tools_of
from wireglot.ir.content import CacheMark, Extra, Message, Part, ResultPart, Text, ToolResult
from wireglot.ir.errors import ClientFault
from wireglot.ir.loss import Loss
from wireglot.ir.request import AnyTool, OutputFormat, Request, Sampling, Thinking, ToolChoice
from wireglot.ir.trail import Trail
from wireglot.ir.turns import INTERRUPTED
from wireglot.providers.limits import Limits
from wireglot.translate import Plan, plan, refuse_losses

_SOURCE = "history"
"""A history is of no dialect, so that it is fitted to every one."""


class Settings(TypedDict, total=False):
    """How to generate. What is left out stays the provider's default."""

    tool_choice: ToolChoice | Literal["auto", "none", "required"] | None
    parallel_tools: bool | None
    max_tokens: int | None
    stop: tuple[str, ...]
    sampling: Sampling
    thinking: Thinking
    output: OutputFormat | None
    verbosity: str
    stream: bool | None
    user: str
    metadata: dict[str, str]
    service_tier: str
    cache: CacheMark | None
    cache_key: str
    extra: Extra | None


class Asked(Rendered[dict[str, Any]], frozen=True, kw_only=True):
    """A request ready to be sent (`value`), what it could not say (`losses`), and the way back (`answer`)."""

    dialect: str
    plan: Plan
    seed: str = ""

    def answer(self) -> Assistant:
        """The reader of what the upstream answers to this request; ids it has to make up are new ones."""
        context = self.plan.context
        if not context.seed:
            context = msgspec.structs.replace(context, seed=self.seed)
        return Assistant.of(self.dialect, aliases=self.plan.aliases, context=context)


class Target(msgspec.Struct, frozen=True):
    """Who is asked. `limits` are those of a provider the catalog need not know."""

    dialect: str
    model: str
    provider: str | None = None
    limits: Limits | None = None
    context: Context = Context()


def ask(
    messages: tuple[Message, ...],
    target: Target,
    tools: Iterable[AnyTool | Mapping[str, Any]],
    settings: Settings,
    *,
    seed: str,
    strict: bool,
) -> Asked:
    if all(message.role == "system" or not message.content for message in messages):
        raise ClientFault("nothing is asked: the history has no turn", "$.messages")
    speaker = dialect(target.dialect)
    request = _request(messages, target.model, tools_of(tools), settings)
    losses: list[Loss] = []
    trail = Trail(request)
    request = _presentable(request, target, losses, trail)
    planned = plan(
        request,
        source=_SOURCE,
        target=speaker.name,
        model=target.model,
        provider=target.provider,
        limits=target.limits,
        context=target.context,
    )
    rendered = speaker.render_request(planned.upstream, planned.context)
    found = planned.losses + planned.retraced(rendered.losses)
    losses += (trail.retrace(loss, request) for loss in found)
    refuse_losses(losses, strict)
    # A copy: verbatim parts and schemas are rendered as they are kept, and a body may be changed by its owner.
    body = detached(rendered.value)
    return Asked(body, tuple(losses), dialect=speaker.name, plan=planned, seed=seed)


def detached(value: Any) -> Any:
    """The same JSON value in containers of its own."""
    if type(value) is dict:
        return {key: detached(item) for key, item in value.items()}
    if type(value) is list or type(value) is tuple:
        return [detached(item) for item in value]
    return value


def _request(
    messages: tuple[Message, ...], model: str, tools: tuple[AnyTool, ...], settings: Settings
) -> Request:
    given: dict[str, Any] = {**settings}
    choice = given.get("tool_choice")
    if isinstance(choice, str):
        given["tool_choice"] = ToolChoice(choice)
    return Request(model, messages, tools, **given)


def _presentable(request: Request, target: Target, losses: list[Loss], trail: Trail) -> Request:
    """Without empty text, and with an answer to the calls that end it: no provider takes either."""
    sweeper = _Sweeper(target, losses, trail)
    swept = (sweeper.message(message) for message in request.messages)
    messages = [message for message in swept if message.content]
    results: list[Part] = []
    for call in pending_calls(messages) if messages and messages[-1].role == "assistant" else ():
        results.append(ToolResult(call.id, (Text(INTERRUPTED),), True, call.name, call.kind))
        detail = "the call had no result; an error result was put in its place"
        losses.append(Loss(trail.of(call), "tool_result.pairing", "invented", detail))
    if results:
        messages.append(Message("user", tuple(results)))
    return msgspec.structs.replace(request, messages=tuple(messages))


class _Sweeper:
    def __init__(self, target: Target, losses: list[Loss], trail: Trail) -> None:
        provider = target.provider or target.context.provider
        self.context = msgspec.structs.replace(target.context, provider=provider, model=target.model)
        self.losses = losses
        self.trail = trail

    def message(self, message: Message) -> Message:
        content = tuple(kept for part in message.content if (kept := self._part(part)) is not None)
        if content == message.content:
            return message
        swept = Message(message.role, content, message.name, message.extra)
        self.trail.follow(message, swept)
        return swept

    def _part(self, part: Part) -> Part | None:
        if type(part) is ToolResult and any(map(_is_empty, part.content)):
            told: tuple[ResultPart, ...] = tuple(item for item in part.content if not _is_empty(item))
            swept = msgspec.structs.replace(part, content=told)
            self.trail.follow(part, swept)
            return swept  # an empty result says the same without its empty text
        if not _is_empty(part):
            return part
        signature = getattr(part, "signature", None)
        if signature is None:
            detail = "an empty text is refused"
            self.losses.append(Loss(self.trail.of(part), "content.empty", "dropped", detail))
            return None
        # Gemini signs empty text, and wants it back; to all others it is empty.
        if self.context.may_replay(signature, "gemini"):
            return part
        detail = "an empty text that carried another provider's state"
        self.losses.append(Loss(f"{self.trail.of(part)}.signature", "reasoning.signature", "dropped", detail))
        return None


def _is_empty(part: Part) -> bool:
    return type(part) is Text and not part.text
