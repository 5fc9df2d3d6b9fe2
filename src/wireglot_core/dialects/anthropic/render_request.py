"""Renders a conversation as a Messages request."""

from __future__ import annotations

from typing import Any, ClassVar

from wireglot_core.dialects.anthropic.blocks import Block, RequestBlocks, shorthand
from wireglot_core.dialects.anthropic.lost_fields import LOST
from wireglot_core.dialects.anthropic.mcp import SERVERS, render_servers
from wireglot_core.dialects.anthropic.names import NAME, is_own, put_back, render_cache
from wireglot_core.dialects.anthropic.safeguards import ASKED, render_safeguards
from wireglot_core.dialects.anthropic.settings import (
    render_format,
    render_settings,
    render_thinking_config,
    render_tiers,
)
from wireglot_core.dialects.anthropic.tools import render_choice, render_tools
from wireglot_core.dialects.common_losses import FILLER, NO_MESSAGE
from wireglot_core.dialects.context import Context, Rendered
from wireglot_core.dialects.fields import own_fields, own_form
from wireglot_core.dialects.turns import JoinedTurn, JoiningWriter, TurnWriter, join_turns, write_turns
from wireglot_core.ir.content import APART, Message, Role
from wireglot_core.ir.loss import Loss
from wireglot_core.ir.request import Request

# Output tokens of a request that names no limit, where Anthropic requires one.
DEFAULT_MAX_TOKENS = 32000
_USER_FIRST = Loss(
    "$.messages", "content.position", "invented", f'the first turn must be a user turn: "{FILLER}" was added'
)


def render_request(request: Request, context: Context) -> Rendered[dict[str, Any]]:
    losses: list[Loss] = []
    native = is_own(request.extra)
    blocks = RequestBlocks(context, losses, native)
    leading = _count_leading(request.messages)
    body: dict[str, Any] = {"model": request.model}
    body["messages"] = _render_messages(request.messages, leading, blocks, context)
    system = _render_system(request.messages[:leading], blocks)
    if system is not None:
        body["system"] = system
    _render_max_tokens(request, body, losses)
    declared = render_tools(request, losses, context)
    tools = declared.blocks
    if tools:
        key = (NAME, "tools", native)
        body["tools"] = context.as_json(request.tools, key, tools) if declared.whole else tools
    servers = own_form(request.extra, NAME).get(SERVERS)
    if servers is None and not native:
        servers = render_servers(request.tools, tools)
    if servers:
        body[SERVERS] = servers
    choice = render_choice(request, declared, losses)
    if choice is not None:
        body["tool_choice"] = choice
    render_settings(request, body, losses)
    _render_config(request, body, losses)
    render_tiers(request, body, losses)
    _render_metadata(request, body, losses)
    if request.cache is not None:
        body["cache_control"] = render_cache(request.cache, "$", losses)
    if request.safeguards:
        body[ASKED] = render_safeguards(request.safeguards, losses)
    LOST.of(request, "$", losses)
    if not request.model and "model" not in own_fields(request.extra, NAME) and native:
        del body["model"]
    return Rendered(put_back(body, request.extra), tuple(losses))


def _count_leading(messages: tuple[Message, ...]) -> int:
    """The number of messages that form the top-level system text."""
    count = 0
    for message in messages:
        if message.role != "system" or own_form(message.extra, NAME).get("place") == "messages":
            break
        count += 1
    return count


def _render_system(messages: tuple[Message, ...], blocks: RequestBlocks) -> list[Block] | str | None:
    if not messages:
        return None
    rendered: list[Block] = []
    for index, message in enumerate(messages):
        path = f"$.messages[{index}]"
        rendered += blocks.content(message.content, "system", path)
        LOST.of(message, path, blocks.losses)
    form = own_form(messages[0].extra, NAME) if len(messages) == 1 else {}
    if form.get("content") == "array":
        return rendered
    if form.get("content") == "string" and rendered == [{"type": "text", "text": ""}]:
        return ""
    return shorthand(rendered) or None


class _NativeTurns(TurnWriter):
    """One wire message each: they were divided by this dialect."""

    def __init__(self, blocks: RequestBlocks) -> None:
        self._blocks = blocks
        self.losses, self.calls = blocks.losses, blocks.names

    def write_message(self, message: Message, index: int) -> list[Block]:
        path = f"$.messages[{index}]"
        content = self._blocks.content(message.content, message.role, path)
        if message.content and not content:
            return []  # a turn with only dropped thinking is dropped too
        turn: Block = {"role": message.role}
        if own_form(message.extra, NAME).get("content") == "string":
            turn["content"] = shorthand(content)
        elif content or "content" not in own_fields(message.extra, NAME):
            turn["content"] = content
        LOST.of(message, path, self.losses)
        return [put_back(turn, message.extra)]


class _JoinedTurns(JoiningWriter):
    """Neighbours of one role become one wire message."""

    roles: ClassVar[dict[Role, str]] = {"system": "system", "user": "user", "assistant": "assistant"}

    def __init__(self, blocks: RequestBlocks) -> None:
        self._blocks = blocks
        self.losses, self.calls = blocks.losses, blocks.names

    def write_message(self, message: Message, index: int) -> list[Block]:
        path = f"$.messages[{index}]"
        content = self._blocks.content(message.content, message.role, path)
        LOST.of(message, path, self.losses)
        return content

    def is_turn(self, message: Message) -> bool:
        return message.is_empty

    def begins_turn(self, message: Message) -> bool:
        before = self.turns[-1].message
        if message.extra is None and before.extra is None:
            return False
        if own_form(message.extra, NAME).get(APART):
            return True
        return bool(own_fields(message.extra, NAME)) or not own_fields(before.extra, NAME).keys() <= _TURN

    def finished(self, turn: JoinedTurn) -> Block:
        content = [block for _, block in turn.pieces]
        if turn.role == "user":
            content = _results_first(content, self.losses)
        message: Block = {"role": turn.role, "content": content, **own_fields(turn.message.extra, NAME)}
        message["content"] = shorthand(content)
        return message


_TURN = frozenset({"role", "content"})


def _render_messages(
    messages: tuple[Message, ...], leading: int, blocks: RequestBlocks, context: Context
) -> list[Any]:
    if blocks.native:
        return write_turns(_NativeTurns(blocks), messages, leading, context, NAME, True)
    writer = _JoinedTurns(blocks)
    turns = join_turns(writer, messages, leading, context, NAME, False)
    out: list[Any] = []
    if not turns or turns[0].role != "user":
        blocks.losses.append(_USER_FIRST if turns else NO_MESSAGE)
        out.append({"role": "user", "content": FILLER})
    out += [turn.finished(writer.finished) for turn in turns]
    return out


def _results_first(content: list[Block], losses: list[Loss]) -> list[Block]:
    """Puts tool results before everything else in the user's turn."""
    results = [block for block in content if block["type"] == "tool_result"]
    if content[: len(results)] == results:
        return content
    losses.append(Loss("$.messages", "content.position", "approximated", "results come first in a turn"))
    return results + [block for block in content if block["type"] != "tool_result"]


def _render_max_tokens(request: Request, body: dict[str, Any], losses: list[Loss]) -> None:
    if request.max_tokens is not None:
        body["max_tokens"] = request.max_tokens
    elif "max_tokens" not in own_form(request.extra, NAME):
        body["max_tokens"] = DEFAULT_MAX_TOKENS
        losses.append(Loss("$.max_tokens", "max_tokens", "invented", f"required here: {DEFAULT_MAX_TOKENS}"))


def _render_config(request: Request, body: dict[str, Any], losses: list[Loss]) -> None:
    thinking, effort = render_thinking_config(request.thinking, losses)
    if thinking is not None:
        body["thinking"] = thinking
    config: dict[str, Any] = {}
    if effort is not None:
        config["effort"] = effort
    wanted = render_format(request.output, losses)
    if wanted is not None:
        if own_form(request.output.extra if request.output else None, NAME).get("key") == "output_format":
            body["output_format"] = wanted
        else:
            config["format"] = wanted
    config.update(own_fields(request.extra, NAME).get("output_config") or {})
    if config:
        body["output_config"] = config


def _render_metadata(request: Request, body: dict[str, Any], losses: list[Loss]) -> None:
    metadata = dict(own_fields(request.extra, NAME).get("metadata") or {})
    if request.user:
        metadata["user_id"] = request.user
    if metadata:
        body["metadata"] = metadata
    for key in request.metadata:
        losses.append(Loss(f"$.metadata.{key}", "metadata", "dropped", "only a user id is taken"))
