"""Renders the parts of a request as content blocks."""

from __future__ import annotations

from typing import Any, assert_never

from wireglot_core.dialects.anthropic.citations import render_citations
from wireglot_core.dialects.anthropic.client_tools import TOOLSETS
from wireglot_core.dialects.anthropic.lost_fields import LOST, WRAPPED_INPUT
from wireglot_core.dialects.anthropic.media import render_media
from wireglot_core.dialects.anthropic.names import NAME, put_back, render_cache
from wireglot_core.dialects.anthropic.parts import call_text
from wireglot_core.dialects.anthropic.reasoning import render_for_upstream
from wireglot_core.dialects.arguments import declare_arguments, read_arguments
from wireglot_core.dialects.common_losses import media_note
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.fields import own_fields, own_form
from wireglot_core.ir.content import (
    Foreign,
    Media,
    Part,
    Reasoning,
    ResultPart,
    Role,
    Text,
    ToolCall,
    ToolResult,
)
from wireglot_core.ir.loss import Loss, left_out

Block = dict[str, Any]


class RequestBlocks:
    """Renders toward an upstream. `native`: the request came from this dialect and is sent unchanged."""

    __slots__ = ("_context", "losses", "names", "native")

    def __init__(self, context: Context, losses: list[Loss], native: bool) -> None:
        self._context = context
        self.losses = losses
        self.native = native
        self.names: dict[str, str] = {}  # call id -> tool name, of the calls so far

    def content(self, parts: tuple[Part, ...], role: Role, path: str) -> list[Block]:
        blocks = []
        for index, part in enumerate(parts):
            block = self._plain(part, role) or self._block(part, role, f"{path}.content[{index}]")
            if block is not None:
                blocks.append(block)
        return blocks

    def _plain(self, part: Part, role: Role) -> Block | None:
        """The block of an ordinary part, which loses nothing; None: the part needs the full conversion."""
        if type(part) is Text:
            return _plain_text(part)
        if type(part) is ToolCall:
            if role != "assistant" or not part.is_plain():
                return None
            arguments, form = read_arguments(part.arguments)
            if form:
                return None
            self.names[part.id] = part.name
            return {"type": "tool_use", "id": part.id, "name": part.name, "input": arguments}
        if type(part) is not ToolResult or role != "user" or not self._is_plain_result(part):
            return None
        content = []
        for item in part.content:
            block = _plain_text(item) if type(item) is Text else None
            if block is None:
                return None
            content.append(block)
        result: Block = {"type": "tool_result", "tool_use_id": part.call_id}
        if content:
            result["content"] = content if self.native else shorthand(content)
        return result

    def _is_plain_result(self, result: ToolResult) -> bool:
        return (
            not result.is_error
            and result.kind == "function"
            and result.cache is None
            and result.extra is None
            and (not result.name or result.name == self.names.get(result.call_id))
        )

    def _block(self, part: Part, role: Role, path: str) -> Block | None:
        match part:
            case Text():
                return self.text(part, path)
            case ToolCall():
                return self._call(part, path) if self._may_stand("assistant", role, path) else None
            case ToolResult():
                return self._result(part, path) if self._may_stand("user", role, path) else None
            case Reasoning():
                block = render_for_upstream(part, self._context, path, self.losses)
                if block is None:
                    return None
                LOST.of(part, path, self.losses)
                return put_back(block, part.extra)
            case Media():
                if role != "user" and not self.native:
                    self.losses.append(
                        Loss(path, part.kind, "dropped", f"not allowed in a turn of the {role}")
                    )
                    return None
                return self._media(part, path)
            case Foreign():
                return self._foreign(part, path)
            case _:
                assert_never(part)

    def _media(self, part: Media, path: str) -> Block:
        block = render_media(part, path, self.losses, self.native)
        return block or {"type": "text", "text": media_note(part.kind)}

    def _may_stand(self, place: Role, role: Role, path: str) -> bool:
        if role == place or self.native:
            return True
        self.losses.append(
            Loss(path, "tool_result.pairing", "dropped", f"not allowed in a turn of the {role}")
        )
        return False

    def text(self, part: Text, path: str) -> Block | None:
        if not self.native and not part.text.strip():
            self._blank(part, path)
            return None
        block: Block = {"type": "text", "text": part.text}
        if part.citations and (
            citations := render_citations(enumerate(part.citations), path, self.losses, echoable=True)
        ):
            block["citations"] = citations
        if part.cache is not None:
            block["cache_control"] = render_cache(part.cache, path, self.losses)
        LOST.of(part, path, self.losses)
        return put_back(block, part.extra)

    def _blank(self, part: Text, path: str) -> None:
        """A text without a visible character is refused; reported as a loss unless nothing is lost with
        it."""
        if part.text or part.signature is not None:
            self.losses.append(Loss(path, "content.empty", "dropped", "blank text is refused"))

    def _call(self, part: ToolCall, path: str) -> Block:
        self.names[part.id] = part.name
        block: Block = {"type": "tool_use", "id": part.id, "name": part.name}
        arguments = render_input(part, path, self.losses)
        if arguments is not None:
            block["input"] = arguments
        if part.namespace in TOOLSETS:
            block["toolset_name"] = part.namespace
        LOST.of(part, path, self.losses)
        if part.cache is not None:
            block["cache_control"] = render_cache(part.cache, path, self.losses)
        return put_back(block, part.extra)

    def _result(self, part: ToolResult, path: str) -> Block:
        block: Block = {"type": "tool_result", "tool_use_id": part.call_id}
        content = [
            rendered
            for index, item in enumerate(part.content)
            if (rendered := self._result_part(item, f"{path}.content[{index}]")) is not None
        ]
        if content:
            as_text = own_form(part.extra, NAME).get("content") == "string" or not self.native
            block["content"] = shorthand(content) if as_text else content
        if part.is_error:
            block["is_error"] = True
        toolset = own_form(part.extra, NAME).get("toolset_name")
        if toolset is not None:
            block["toolset_name"] = toolset
        if part.name and part.name != self.names.get(part.call_id):
            self.losses.append(
                Loss(f"{path}.name", "tool_result.name", "dropped", "results are known by id only")
            )
        LOST.of(part, path, self.losses)
        if part.cache is not None:
            block["cache_control"] = render_cache(part.cache, path, self.losses)
        return put_back(block, part.extra)

    def _result_part(self, part: ResultPart, path: str) -> Block | None:
        match part:
            case Text():
                return self.text(part, path)
            case Media():
                return self._media(part, path)
            case Foreign():
                return self._foreign(part, path)
            case _:
                assert_never(part)

    def _foreign(self, part: Foreign, path: str) -> Block | None:
        if part.dialect == NAME:
            return part.value
        self.losses.append(left_out(part, path))
        return None


def render_input(part: ToolCall, path: str, losses: list[Loss]) -> dict[str, Any] | None:
    """The `input` object; None to leave it out, or to keep the null of the source."""
    if part.kind == "custom":
        losses.append(WRAPPED_INPUT.at(f"{path}.arguments"))
        return {"input": part.arguments}
    if part.extra is not None and part.extra.dialect == NAME:
        said = part.extra.form.get("input")
        if type(said) is dict and call_text(said) == part.arguments:
            return said
        if not part.arguments and (said == "absent" or "input" in own_fields(part.extra, NAME)):
            return None
    arguments, form = read_arguments(part.arguments)
    declare_arguments(form, path, losses)
    return arguments


def _plain_text(text: Text) -> Block | None:
    if (
        text.extra is not None
        or text.cache is not None
        or text.signature is not None
        or text.refusal
        or text.citations
        or text.logprobs
        or not text.text
        or text.text.isspace()
    ):
        return None
    return {"type": "text", "text": text.text}


def _only_text(blocks: list[Block]) -> str | None:
    if len(blocks) == 1 and blocks[0].keys() == {"type", "text"}:
        return str(blocks[0]["text"])
    return None


def shorthand(blocks: list[Block]) -> list[Block] | str:
    """A content of one plain text is written as a string."""
    text = _only_text(blocks)
    return blocks if text is None else text
