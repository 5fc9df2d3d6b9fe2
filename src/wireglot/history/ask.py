"""Builds the next request of a conversation, for any dialect: without empty parts, and with every call
answered."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import Any, Final, Literal, TypedDict

import msgspec

from wireglot.history.assistant import Assistant
from wireglot.history.pairs import pending_calls
from wireglot_core.dialects.context import Context, Rendered
from wireglot_core.dialects.fields import describe
from wireglot_core.dialects.registry import dialect, surface
from wireglot_core.ir.content import (
    CacheMark,
    Extra,
    Foreign,
    Message,
    Part,
    Reasoning,
    ResultPart,
    Text,
    ToolResult,
)
from wireglot_core.ir.errors import ClientFault
from wireglot_core.ir.loss import Feature, Loss, left_out
from wireglot_core.ir.request import (
    AnyTool,
    HostedTool,
    OutputFormat,
    Request,
    Sampling,
    Thinking,
    Tool,
    ToolChoice,
)
from wireglot_core.ir.trail import Trail
from wireglot_core.ir.turns import INTERRUPTED
from wireglot_core.providers.limits import Limits
from wireglot_core.translate import Plan, plan, refuse_losses


class Settings(TypedDict, total=False):
    """How to generate. Omitted values are the provider's defaults."""

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


_BUILT: Final = msgspec.json.Decoder(Settings)
"""Builds the type at import: threads may be the first to use it."""


class Asked(Rendered[dict[str, Any]], frozen=True, kw_only=True):
    """A request ready to be sent (`value`), what it could not express (`losses`), and the reader of its
    answer (`answer`)."""

    dialect: str
    plan: Plan
    seed: str = ""

    def answer(self) -> Assistant:
        """The reader of the upstream's answer to this request; ids it has to make up are new ones."""
        context = self.plan.context
        if not context.seed:
            context = msgspec.structs.replace(context, seed=self.seed)
        return Assistant.of(self.dialect, aliases=self.plan.aliases, context=context)


class Target(msgspec.Struct, frozen=True):
    """The upstream of a request. `limits` are those of a provider that may not be in the catalog."""

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
    speaker = dialect(target.dialect)
    target = msgspec.structs.replace(target, dialect=speaker.name)
    request = _request(messages, target.model, tools_of(tools), settings)
    losses: list[Loss] = []
    trail = Trail(request)
    request = _presentable(request, target, losses, trail)
    if all(message.role == "system" for message in request.messages):
        raise ClientFault("nothing is asked: the history has no turn to send", "$.messages")
    planned = plan(
        request,
        source=None,
        target=speaker.name,
        model=target.model,
        provider=target.provider,
        limits=target.limits,
        context=msgspec.structs.replace(target.context, emulates=False),  # `Assistant` reads the answer
    )
    rendered = speaker.render_request(planned.upstream, planned.context)
    found = planned.losses + planned.retraced(rendered.losses)
    losses += (trail.retrace(loss, request) for loss in found)
    refuse_losses(losses, strict)
    # A copy: verbatim parts and schemas are rendered without copying, but the body belongs to the caller.
    body = msgspec.to_builtins(rendered.value)
    return Asked(body, tuple(losses), dialect=speaker.name, plan=planned, seed=seed)


def _request(
    messages: tuple[Message, ...], model: str, tools: tuple[AnyTool, ...], settings: Settings
) -> Request:
    given = _checked(settings)
    choice = settings.get("tool_choice")
    if choice is not None and not isinstance(choice, ToolChoice):
        given["tool_choice"] = ToolChoice(choice)
    return Request(model, messages, tools, **given)


def _checked(settings: Settings) -> dict[str, Any]:
    """The settings with the types that they are declared with; lists as tuples, objects as theirs."""
    given: dict[str, Any] = {**settings}
    try:
        return {**given, **msgspec.convert(given, Settings)}
    except msgspec.ValidationError:
        for name, value in given.items():
            try:
                msgspec.convert({name: value}, Settings)
            except msgspec.ValidationError:
                declared = Settings.__annotations__[name]
                expected = getattr(declared, "__forward_arg__", declared)
                raise ClientFault(f"expected {expected}, got {describe(value)}", f"$.{name}") from None
        raise


def _presentable(request: Request, target: Target, losses: list[Loss], trail: Trail) -> Request:
    """The request without empty text and turns with only thoughts, and with an answer to the calls that end
    it."""
    sweeper = _Sweeper(target, losses, trail)
    swept = map(sweeper.message, request.messages)
    messages = sweeper.without_thoughts_alone([message for message in swept if message.content])
    results: list[Part] = []
    for call in pending_calls(messages) if messages and messages[-1].role == "assistant" else ():
        results.append(ToolResult(call.id, (Text(INTERRUPTED),), True, call.name, call.kind))
        detail = "the call had no result; an error result was put in its place"
        losses.append(Loss(trail.of(call), "tool_result.pairing", "invented", detail))
    if results:
        messages.append(Message("user", tuple(results)))
    return msgspec.structs.replace(request, messages=tuple(messages))


class _Sweeper:
    """Removes what the target cannot be sent before turns are fitted to it: a turn of nothing else must not
    leave a gap."""

    def __init__(self, target: Target, losses: list[Loss], trail: Trail) -> None:
        provider = target.provider or target.context.provider
        self.context = msgspec.structs.replace(target.context, provider=provider, model=target.model)
        about = surface(target.dialect)
        self.family = about.family
        self.signs_texts = about.reasoning.signs_texts
        self.losses = losses
        self.trail = trail

    def message(self, message: Message) -> Message:
        content = tuple(kept for part in message.content if (kept := self._part(part)) is not None)
        if content == message.content:
            return message
        swept = Message(message.role, content, message.name, message.extra)
        self.trail.follow(message, swept)
        return swept

    def without_thoughts_alone(self, messages: list[Message]) -> list[Message]:
        """Reasoning must be followed by something: nearly every provider refuses a turn that broke off after
        it."""
        kept: list[Message] = []
        for _, turn in groupby(messages, key=lambda message: message.role):
            run = list(turn)
            if run[0].role != "assistant" or not all(map(self._is_mere_thought, run)):
                kept += run
                continue
            for part in (part for message in run for part in message.content):
                feature: Feature = "reasoning.text" if type(part) is Reasoning else "content.empty"
                detail = "a turn of reasoning alone is refused"
                self.losses.append(Loss(self.trail.of(part), feature, "dropped", detail))
        return kept

    def _is_mere_thought(self, message: Message) -> bool:
        return all(
            type(part) is Reasoning
            or (type(part) is Text and not part.text.strip() and not self._is_state(part))
            for part in message.content
        )

    def _is_state(self, part: Text) -> bool:
        """Gemini signs empty text, and needs it back; for all others it is empty."""
        signature = part.signature
        return self.signs_texts and signature is not None and self.context.may_replay(signature, self.family)

    def _part(self, part: Part) -> Part | None:
        match part:
            case Text():
                return part if part.text else self._empty(part)
            case ToolResult():
                return self._result(part)
            case Foreign():
                return self._foreign(part)
            case _:
                return part

    def _empty(self, part: Text) -> Part | None:
        path = self.trail.of(part)
        if part.signature is None:
            self.losses.append(Loss(path, "content.empty", "dropped", "an empty text is refused"))
            return None
        if self._is_state(part):
            return part
        detail = "an empty text that carried another provider's state"
        self.losses.append(Loss(f"{path}.signature", "reasoning.signature", "dropped", detail))
        return None

    def _result(self, part: ToolResult) -> Part:
        """An empty result means the same without its empty text."""
        reported: tuple[ResultPart, ...] = tuple(
            item for item in part.content if type(item) is not Text or item.text
        )
        if len(reported) == len(part.content):
            return part
        swept = msgspec.structs.replace(part, content=reported)
        self.trail.follow(part, swept)
        return swept

    def _foreign(self, part: Foreign) -> Part | None:
        # References to turns that a provider stores are reported by the core: without them nothing may be
        # left.
        if part.dialect == self.family or part.type == "item_reference":
            return part
        self.losses.append(left_out(part, self.trail.of(part)))
        return None


_SAID = [{"role": "user", "content": "-"}]
_BARE: dict[str, dict[str, Any]] = {
    "anthropic": {"model": "", "max_tokens": 1, "messages": _SAID},
    "openai-chat": {"model": "", "messages": _SAID},
    "openai-responses": {"model": "", "input": _SAID},
    "gemini": {"contents": [{"role": "user", "parts": [{"text": "-"}]}]},
    "gemini-interactions": {"model": "", "input": "-"},
}
"""The smallest valid request: only its tools are read. One without any message is refused."""

_OF_INTERACTIONS = frozenset(
    {
        "google_search",
        "url_context",
        "code_execution",
        "google_maps",
        "computer_use",
        "mcp_server",
        "retrieval",
    }
)
"""Types of hosted tools that only Gemini's Interactions API has. Its functions have the form of Responses,
and Ollama's the form of Chat."""


def tools_of(tools: Iterable[AnyTool | Mapping[str, Any]]) -> tuple[AnyTool, ...]:
    """Every tool in the neutral form; a declaration in a dialect is parsed by that dialect."""
    neutral: list[AnyTool] = []
    for number, tool in enumerate(tools):
        if isinstance(tool, Tool | HostedTool):
            neutral.append(tool)
            continue
        declared = dict(tool)
        name = _dialect_of(declared)
        if name is None:
            raise ClientFault("a tool in no known form: it has a name and a schema", f"$.tools[{number}]")
        neutral += dialect(name).parse_request({**_BARE[name], "tools": [declared]}, Context()).tools
    return tuple(neutral)


def _dialect_of(tool: dict[str, Any]) -> str | None:
    if "function" in tool or "custom" in tool:
        return "openai-chat"
    if "functionDeclarations" in tool or "function_declarations" in tool:
        return "gemini"
    kind = tool.get("type")
    if "input_schema" in tool:
        return "anthropic"
    if kind in ("function", "custom") and "name" in tool:
        return "openai-responses"
    if (isinstance(kind, str) and kind in _OF_INTERACTIONS) or "file_search_store_names" in tool:
        return "gemini-interactions"
    if kind is not None:
        # Anthropic's own tools contain the date of their version; OpenAI's mostly do not, but have no name.
        return "anthropic" if "name" in tool else "openai-responses"
    return "gemini" if len(tool) == 1 and isinstance(next(iter(tool.values())), dict) else None
