"""Renders the parts of an answer as content blocks for the client."""

from __future__ import annotations

import re
from typing import Any, assert_never

import msgspec

from wireglot_core.dialects.anthropic.blocks import render_input
from wireglot_core.dialects.anthropic.citations import cut_at_citations, render_citations
from wireglot_core.dialects.anthropic.client_tools import TOOLSETS
from wireglot_core.dialects.anthropic.lost_fields import LOST, LOST_IN_ANSWERS, NO_CONTENT, NOTHING_CITED
from wireglot_core.dialects.anthropic.names import NAME, put_back
from wireglot_core.dialects.anthropic.reasoning import carrier, redacted_for_client, signature_for_client
from wireglot_core.dialects.common_losses import CUT_CALL
from wireglot_core.dialects.context import Context
from wireglot_core.ir.content import Foreign, Media, Part, Reasoning, Text, ToolCall, ToolResult
from wireglot_core.ir.loss import Loss, left_out
from wireglot_core.wire.json import encode_text

Block = dict[str, Any]

_LEGAL_ID = re.compile(r"[a-zA-Z0-9_-]+")
_ILLEGAL = re.compile(r"[^a-zA-Z0-9_-]")


def message_id(identifier: str, context: Context) -> str:
    """The id of the answer, in the form that clients of this dialect expect."""
    if not identifier:
        return context.new_id("msg", context.model, str(context.now))
    return identifier if identifier.startswith("msg_") else f"msg_{_ILLEGAL.sub('-', identifier)}"


def call_id(identifier: str, response_id: str, context: Context) -> str:
    """An id the client may send back to any upstream: other characters are refused by this dialect's
    upstreams."""
    return identifier if _LEGAL_ID.fullmatch(identifier) else context.new_id("toolu", response_id, identifier)


class AnswerBlocks(msgspec.Struct, eq=False):
    """Renders toward a client. `native`: the answer came from this dialect and is reported unchanged."""

    context: Context
    losses: list[Loss]
    response_id: str
    native: bool

    def content(self, parts: tuple[Part, ...], path: str) -> list[Block]:
        blocks: list[Block] = []
        for index, part in enumerate(parts):
            self._blocks(part, f"{path}.content[{index}]", blocks)
        return blocks

    def _blocks(self, part: Part, path: str, blocks: list[Block]) -> None:
        match part:
            case Text():
                self._text(part, path, blocks)
            case ToolCall():
                if part.signature is not None:
                    blocks.append(carrier(part.signature, "call", self.context))
                blocks.append(self.call(part, path))
            case Reasoning():
                block = self.reasoning(part, path)
                if block is not None:
                    blocks.append(block)
            case Foreign():
                block = self.foreign(part, path)
                if block is not None:
                    blocks.append(block)
            case Media() | ToolResult():
                self.leave_out(part, path)
            case _:
                assert_never(part)

    def _text(self, part: Text, path: str, blocks: list[Block]) -> None:
        LOST_IN_ANSWERS.of(part, path, self.losses)
        if not part.text and not self.native:
            if part.signature is not None:
                self.losses.append(
                    Loss(
                        f"{path}.signature", "reasoning.signature", "dropped", "there is no text to carry it"
                    )
                )
            if part.citations:
                self.losses.append(NOTHING_CITED.at(f"{path}.citations"))
            return
        if part.signature is not None:
            blocks.append(carrier(part.signature, "text", self.context))
        whole = [(part.text, [*range(len(part.citations))])]
        # Signed text goes back to its minter as one text.
        cuts = part.citations and part.signature is None and not self.native
        pieces = cut_at_citations(part) if cuts else whole
        for text, indices in pieces:
            block = self.empty_text()
            block["text"] = text
            cited = [(index, part.citations[index]) for index in indices]
            if len(pieces) > 1:  # the piece itself shows what is cited
                cited = [
                    (index, msgspec.structs.replace(each, start=None, end=None)) for index, each in cited
                ]
            citations = render_citations(cited, path, self.losses, echoable=False)
            if citations:
                block["citations"] = citations
            blocks.append(block)
        blocks[-1] = put_back(blocks[-1], part.extra)

    def call_id(self, identifier: str) -> str:
        return call_id(identifier, self.response_id, self.context)

    def empty_text(self) -> Block:
        """An empty text block for deltas. The vendor's OpenAPI document requires `citations`, AI SDK 5 and 6
        refuse null there: the empty list is what the vendor streams."""
        return {"type": "text", "text": ""} if self.native else {"type": "text", "text": "", "citations": []}

    def call(self, part: ToolCall, path: str) -> Block:
        identifier = call_id(part.id, self.response_id, self.context)
        if identifier != part.id:
            detail = "the provider's id has characters this dialect rejects"
            self.losses.append(Loss(f"{path}.id", "tool_call.id", "emulated", detail))
        block: Block = {"type": "tool_use", "id": identifier, "name": part.name}
        arguments = render_input(part, path, self.losses)
        if arguments is not None:
            block["input"] = arguments
        if not self.native:
            block["caller"] = {"type": "direct"}  # required by the vendor's OpenAPI document
        if part.namespace in TOOLSETS:
            block["toolset_name"] = part.namespace
        LOST_IN_ANSWERS.of(part, path, self.losses)
        return put_back(block, part.extra)

    def reasoning(self, part: Reasoning, path: str) -> Block | None:
        if part.redacted and part.signature is None:
            self.losses.append(NO_CONTENT.at(path))
            return None
        LOST.of(part, path, self.losses)
        if part.redacted:
            assert part.signature is not None
            block: Block = {
                "type": "redacted_thinking",
                "data": redacted_for_client(part.signature, self.context),
            }
            return put_back(block, part.extra)
        # Clients read the key without checking that it exists; some hosts leave it out.
        signature = signature_for_client(part, self.context) or ""
        block = {"type": "thinking", "thinking": part.text, "signature": signature}
        return put_back(block, part.extra)

    def foreign(self, part: Foreign, path: str) -> Block | None:
        if part.dialect == NAME:
            return part.value
        self.losses.append(left_out(part, path))
        return None

    def declare_cut(self, path: str) -> None:
        """A call that the limit cut off: its block ends with the partial input, like the vendor's."""
        self.losses.append(CUT_CALL.at(path))

    def leave_out(self, part: Media | ToolResult, path: str) -> None:
        """Reports a part that no block of an answer can express."""
        if isinstance(part, Media):
            self.losses.append(Loss(path, part.kind, "dropped", f"an answer cannot hold {part.kind}"))
        else:
            self.losses.append(Loss(path, "tool_result.pairing", "dropped", "an answer cannot hold results"))


def streamed(block: Block) -> tuple[Block, Block | None]:
    """The start and the delta of an unknown block, in the form its upstream streams it: clients that follow
    the deltas must find them."""
    given, content = block.get("input"), block.get("content")
    if given:
        text = given if type(given) is str else encode_text(given)
        return {**block, "input": {}}, {"type": "input_json_delta", "partial_json": text}
    if block.get("type") == "compaction" and type(content) is str:
        return {**block, "content": None}, {"type": "compaction_delta", "content": content}
    return block, None
