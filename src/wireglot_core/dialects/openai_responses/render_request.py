"""Renders a request toward an upstream that speaks Responses."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from wireglot_core.dialects.common_losses import FILLER, NO_MESSAGE
from wireglot_core.dialects.context import Context, Rendered, is_minted
from wireglot_core.dialects.fields import own_form
from wireglot_core.dialects.openai_responses.client_calls import brings_tools
from wireglot_core.dialects.openai_responses.items import ITEM_TYPES
from wireglot_core.dialects.openai_responses.lost_fields import LOST
from wireglot_core.dialects.openai_responses.mcp import is_within
from wireglot_core.dialects.openai_responses.output import (
    ENCRYPTED,
    REPORTED,
    is_raw,
    same_message,
    without_ids,
)
from wireglot_core.dialects.openai_responses.parts import is_plain
from wireglot_core.dialects.openai_responses.render_items import (
    declare_signature,
    render_call,
    render_foreign,
    render_image_call,
    render_message,
    render_reasoning,
    render_result,
)
from wireglot_core.dialects.openai_responses.settings import (
    REQUEST_FIELDS,
    render_output,
    render_thinking,
    render_tier,
)
from wireglot_core.dialects.openai_responses.spelling import NAME, put_back
from wireglot_core.dialects.openai_responses.tools import render_tool_choice, render_tools
from wireglot_core.dialects.turns import TurnWriter, write_turns
from wireglot_core.dialects.unknown_fields import WITHOUT
from wireglot_core.ir.content import Foreign, Media, Message, Part, Reasoning, Text, ToolCall, ToolResult
from wireglot_core.ir.loss import Loss, losses_of_extra
from wireglot_core.ir.request import AnyTool, Request, Tool

_LOGPROBS = "message.output_text.logprobs"
_CUT: Final = Loss("$.stop", "stop_sequences", "emulated", "the answer is cut at them")
_NO_STOPS: Final = Loss("$.stop", "stop_sequences", "dropped", "no such setting here")


def render_request(request: Request, context: Context) -> Rendered[dict[str, Any]]:
    losses: list[Loss] = []
    form = own_form(request.extra, NAME)
    own = request.extra is not None and request.extra.dialect == NAME
    body: dict[str, Any] = {"model": request.model}
    # Requests that the gateway stores, and those from another dialect, are not stored at the provider.
    unstored = not own or REPORTED in form
    writer = _Input(request, context, losses, unstored=unstored)
    writer.write(body)

    tools = _render_tools(request, own, losses, context)
    if tools or "tools" in form:
        body["tools"] = tools or form["tools"]
    if request.tool_choice is not None:
        if tools or own:
            body["tool_choice"] = render_tool_choice(request.tool_choice, request.tools, losses)
        elif request.tool_choice.mode != "auto" or request.tool_choice.only:
            losses.append(Loss("$.tool_choice", "tool_choice", "dropped", "there are no tools"))
        else:
            LOST.of(request.tool_choice, "$.tool_choice", losses)
    REQUEST_FIELDS.write(request, body)
    LOST.of_fields(request.sampling, "$.sampling", losses)
    if request.stop:
        losses.append(_CUT if context.emulates else _NO_STOPS)
    reasoning = render_thinking(request.thinking, context.summaries, losses)
    if reasoning is not None:
        body["reasoning"] = reasoning
    text = _render_text(request, form, losses)
    if text is not None:
        body["text"] = text
    if request.stream is not None:
        body["stream"] = request.stream
    if request.user:
        body[form.get("user_key", "safety_identifier")] = request.user
    if request.metadata or form.get("metadata"):
        body["metadata"] = request.metadata
    _render_tier(request, form, body, losses)
    if request.cache_key:
        body["prompt_cache_key"] = request.cache_key
    LOST.of(request, "$", losses)
    if request.cache is not None:
        if request.cache.ttl:
            detail = f"kept for as long as the server decides; requested: {request.cache.ttl}"
            losses.append(Loss("$.cache.ttl", "cache_marker", "dropped", detail))
        losses_of_extra(request.cache.extra, NAME, "$.cache", losses)
    if own:
        for key in ("store", "include", "stream_options", "background", "truncation"):
            if key in form:
                body[key] = form[key]
    else:
        body["store"] = False
    if unstored:
        include = _included(request, form.get("include"), context)
        if include:
            body["include"] = include
    extra_text = body.get("text")
    put_back(body, request.extra)
    if text is not None:
        body["text"] = extra_text
    for key in form.get(WITHOUT, ()):
        if not body.get(key):
            body.pop(key, None)
    return Rendered(body, tuple(losses))


def _included(request: Request, asked: Any, context: Context) -> list[Any]:
    """Values of `include` for the answer. Models reason by default, and if nothing is stored their state is
    in the answer or lost (R-DA-18). Models that do not reason refuse the field."""
    include = list(asked) if type(asked) is list else []
    if context.reasons and ENCRYPTED not in include:
        include.append(ENCRYPTED)
    if request.sampling.logprobs and _LOGPROBS not in include:
        include.append(_LOGPROBS)
    return include


def _render_tools(request: Request, own: bool, losses: list[Loss], context: Context) -> Any:
    stated = stated_tools(request)
    rendered = context.rendered_once(
        stated, (NAME, own), lambda lost: render_tools(stated, lost, own), losses
    )
    return context.as_json(stated, (NAME, "tools", own), rendered) if rendered else rendered


def stated_tools(request: Request) -> tuple[AnyTool, ...]:
    """The request's tools without those that an input item still declares."""
    if not any(map(_carrier, request.tools)):
        return request.tools
    brought = {kind for message in request.messages for part in message.content if (kind := _brings(part))}
    return tuple(tool for tool in request.tools if _carrier(tool) not in brought)


def _carrier(tool: AnyTool) -> str:
    """The kind of the input item that declared a tool, "" for a tool of the request itself."""
    if tool.native is not None:
        return "additional_tools" if tool.native.stands_elsewhere and tool.native.dialect == NAME else ""
    assert isinstance(tool, Tool)
    carrier = own_form(tool.extra, NAME).get("carrier")
    return carrier if type(carrier) is str else ""


def _brings(part: Part) -> str:
    if isinstance(part, ToolResult):
        return "tool_search_output" if brings_tools(part) else ""
    if isinstance(part, Foreign) and part.dialect == NAME and part.type == "additional_tools":
        return part.type
    return ""


def _render_text(request: Request, form: dict[str, Any], losses: list[Loss]) -> dict[str, Any] | None:
    value: dict[str, Any] = {}
    if request.output is not None:
        output = render_output(request.output, losses)
        if output is not None:
            value["format"] = output
    if request.verbosity:
        value["verbosity"] = request.verbosity
    for key, item in form.get("text", {}).items():
        value.setdefault(key, item)
    extra = request.extra
    more = extra.fields.get("text") if extra is not None and extra.dialect == NAME else None
    if type(more) is dict:
        value.update(more)
    return value if value or "text" in form else None


def _render_tier(request: Request, form: dict[str, Any], body: dict[str, Any], losses: list[Loss]) -> None:
    if not request.service_tier:
        return
    raw = form.get("service_tier")
    if raw is not None and request.service_tier in (raw, {"default": "standard"}.get(raw)):
        body["service_tier"] = raw
        return
    tier = render_tier(request.service_tier, "$.service_tier", losses)
    if tier is not None:
        body["service_tier"] = tier


class _Input(TurnWriter):
    """Renders messages as items. `unstored`: the provider has not stored them under their ids."""

    def __init__(self, request: Request, context: Context, losses: list[Loss], *, unstored: bool) -> None:
        self.messages = request.messages
        self.native = request.extra is not None and request.extra.dialect == NAME
        self.context = context
        self.losses = losses
        self.items: list[Any] = []
        self.calls: dict[str, str] = {}
        """The tool name of each call."""
        self.unstored = unstored
        self.reasoned = not unstored
        """Whether items of the current answer may have ids: OpenAI refuses the id of an item that comes
        without the reasoning it was made with."""

    def write(self, body: dict[str, Any]) -> None:
        messages, start = self.messages, 0
        if messages and self.is_instructions(messages[0]):
            start = 1
            text = messages[0].content[0]
            assert isinstance(text, Text)
            body["instructions"] = text.text
            LOST.of(messages[0], "$.messages[0]", self.losses)
            losses_of_extra(text.extra, NAME, "$.messages[0].content[0]", self.losses)
        items = write_turns(self, messages, start, self.context, NAME, self.native, self.unstored)
        only = messages[start] if len(messages) == start + 1 else None
        if only is not None and own_form(only.extra, NAME).get("input") and is_plain(*only.content[:1]):
            assert isinstance(only.content[0], Text)
            body["input"] = only.content[0].text
        else:
            if not items and not self.native:  # its own clients may name a conversation instead
                self.losses.append(NO_MESSAGE)
                items.append({"type": "message", "role": "user", "content": FILLER})
            body["input"] = items

    def state(self, message: Message) -> bool:
        return self.reasoned if message.role == "assistant" else not self.unstored

    def mark(self) -> bool:
        return self.reasoned

    def go_on(self, mark: bool) -> None:
        self.reasoned = mark

    def is_instructions(self, first: Message) -> bool:
        """Whether the message becomes `instructions`: a client's own, or the only system text of another
        dialect before the rest."""
        if first.role != "system" or len(first.content) != 1 or not is_plain(first.content[0]):
            return False
        form = own_form(first.extra, NAME)
        if form:
            return "instructions" in form
        if first.extra is not None and first.extra.dialect == NAME:
            return False
        follower = self.messages[1] if len(self.messages) > 1 else None
        assert isinstance(first.content[0], Text)
        # Instructions alone are not a request: then they are sent as the input.
        return bool(first.content[0].text) and follower is not None and follower.role != "system"

    def write_message(self, message: Message, index: int) -> list[Any]:
        path = f"$.messages[{index}]"
        self.reasoned = self.state(message)
        self.items = []
        LOST.of(message, path, self.losses)
        form = own_form(message.extra, NAME)
        group: list[tuple[int, Text | Media | Foreign]] = []
        wrote = False
        for number, part in enumerate(message.content):
            place = f"{path}.content[{number}]"
            match part:
                case Foreign() if not self.is_item(part, message, form):
                    group.append((number, part))
                    continue
                case Media() if own_form(part.extra, NAME).get("item") is None:
                    group.append((number, part))
                    continue
                case Text():
                    before = group[-1][1] if group else None
                    if isinstance(before, Text) and not same_message(before, part):
                        wrote = self.flush(message, group, path) or wrote
                    group.append((number, part))
                    continue
            wrote = self.flush(message, group, path) or wrote
            item = self.item(part, place)
            if item is not None:
                self.items.append(item)
        if group or (form.get("item") == "message" and not wrote):
            self.flush(message, group, path, always=True)
        if not self.items and message.is_empty:
            self.items.append({"type": "message", "role": message.role, "content": ""})
        return self.items

    def is_item(self, part: Foreign, message: Message, form: dict[str, Any]) -> bool:
        if part.dialect != NAME or form.get("item") == "foreign":
            return True
        if form.get("item") == "message":
            return False
        return part.type in ITEM_TYPES or message.role == "assistant"

    def flush(
        self,
        message: Message,
        group: list[tuple[int, Text | Media | Foreign]],
        path: str,
        always: bool = False,
    ) -> bool:
        if not group and not always:
            return False
        item = render_message(message, group, path, self.losses)
        group.clear()
        if item is not None:
            if message.role == "assistant" and not self.reasoned:
                item.pop("id", None)
            self.items.append(item)
        return True

    def item(
        self, part: Reasoning | ToolCall | ToolResult | Media | Foreign | Text, path: str
    ) -> dict[str, Any] | None:
        match part:
            case ToolCall():
                return self.call(part, path)
            case ToolResult() if is_within(part):
                return None
            case ToolResult():
                return render_result(part, path, self.losses, self.calls.get(part.call_id))
            case Reasoning():
                return self.reasoning(part, path)
            case Media():
                declare_signature(part, path, self.losses)
                return render_image_call(part, _usable(own_form(part.extra, NAME).get("id")))
            case Foreign():
                return render_foreign(part, path, self.losses)
            case Text():
                raise AssertionError("texts are inside messages")

    def call(self, part: ToolCall, path: str) -> dict[str, Any]:
        self.calls[part.id] = part.name
        LOST.of(part, path, self.losses)
        declare_signature(part, path, self.losses)
        if part.extra is not None and not self.reasoned:
            part = msgspec.structs.replace(part, extra=without_ids(part.extra))
        form = own_form(part.extra, NAME)
        item = render_call(part, _usable(form.get("id")), form.get("status"))
        if "call_id" in form and self.is_answered(part):
            item["call_id"] = part.id  # it had no id, and its result was given this one
        return item

    def is_answered(self, call: ToolCall) -> bool:
        return any(
            type(part) is ToolResult and part.call_id == call.id
            for message in self.messages
            for part in message.content
        )

    def reasoning(self, part: Reasoning, path: str) -> dict[str, Any] | None:
        item = self.own_reasoning(part, path)
        self.reasoned = item is not None
        return item

    def own_reasoning(self, part: Reasoning, path: str) -> dict[str, Any] | None:
        """Only what this provider minted goes back to it: encrypted items, or its own items unchanged."""
        signature = part.signature
        form = own_form(part.extra, NAME)
        identifier = _usable(form.get("id"))
        if signature is not None and self.context.may_replay(signature, NAME):
            LOST.of(part, path, self.losses)
            if part.redacted:
                self.losses.append(Loss(path, "reasoning.redacted", "approximated", "encrypted reasoning"))
            return render_reasoning(part, signature.id or identifier, signature.data)
        own = signature is None and bool(form) and not (form.get("id") and identifier is None)
        if own and (not self.unstored or is_raw(part)):
            return render_reasoning(part, identifier, None)
        LOST.of(part, path, self.losses)
        if part.redacted:
            minter = signature.origin.dialect if signature is not None else "nobody"
            self.losses.append(Loss(path, "reasoning.redacted", "dropped", f"issued by {minter}"))
            return None
        if signature is not None:
            self.losses.append(
                Loss(
                    f"{path}.signature",
                    "reasoning.signature",
                    "dropped",
                    f"issued by {signature.origin.dialect}",
                )
            )
        # A reasoning item without encrypted content is refused unless the provider has stored it (R-DA-18).
        bare = "its encrypted content was not kept"
        if part.text:
            detail = bare if own else "not issued by this provider"
            self.losses.append(Loss(path, "reasoning.text", "dropped", detail))
        elif identifier is not None and signature is None:
            self.losses.append(Loss(f"{path}.signature", "reasoning.signature", "dropped", bare))
        return None


def _usable(identifier: Any) -> str | None:
    """An id the provider may know; it never saw minted ones."""
    return identifier if type(identifier) is str and not is_minted(identifier) else None
