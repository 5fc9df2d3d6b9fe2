"""Claude: thinking signed to the letter, demanded back in a running tool loop."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable
from typing import Any

from tests.gateway.state.doubles.script import Call, Step, conversation_of
from tests.gateway.state.doubles.server import Double, Refused, halves
from wireglot_core.wire.json import encode, encode_text

_THOUGHTS = ("thinking", "redacted_thinking")
_LEGAL_ID = re.compile(r"[a-zA-Z0-9_-]+")
Block = dict[str, Any]


class Claude(Double):
    """`interleaved`: it thinks again between its text and its calls."""

    def __init__(self, *, interleaved: bool = False) -> None:
        super().__init__()
        self.interleaved = interleaved

    def account_of(self, headers: dict[str, str]) -> str:
        return headers.get("x-api-key", "")

    def error(self, refused: Refused) -> dict[str, Any]:
        kind = "overloaded_error" if refused.status == 503 else "invalid_request_error"
        return {
            "type": "error",
            "error": {"type": kind, "message": refused.message},
            "request_id": "req_1",
        }

    def answer(self, path: str, account: str, body: dict[str, Any]) -> dict[str, Any]:
        messages = [(message["role"], _blocks(message["content"])) for message in body["messages"]]
        thinking = body.get("thinking", {})
        self._check_pairing(messages)
        self._check_thoughts(messages, account)
        if thinking.get("type") == "enabled":
            self._check_loop(messages)
        conversation = conversation_of(encode_text(messages[0][1]))
        answers = [blocks for role, blocks in messages if role == "assistant"]
        for number, quoted in enumerate(answers):
            said = "".join(block["text"] for block in quoted if block["type"] == "text")
            calls = [Call(block["name"], block["input"]) for block in quoted if block["type"] == "tool_use"]
            self.compare(number, conversation, said, calls)
        step = self.script.step(conversation, len(answers))
        blocks: list[Block] = []
        thinks = thinking.get("type") in ("enabled", "adaptive")
        usual = "summarized" if thinking.get("type") == "enabled" else "omitted"
        shown = thinking.get("display", usual) == "summarized"
        if thinks:
            blocks += self._thoughts(step, account, shown)
        if step.text:
            blocks.append({"type": "text", "text": step.text})
        if thinks and self.interleaved and step.text and step.calls:
            blocks.append(self._thought(step, account, f"Once more: {step.thinking}" if shown else ""))
        for call in step.calls:
            identifier = f"toolu_{secrets.token_hex(12)}"
            blocks.append({"type": "tool_use", "id": identifier, "name": call.name, "input": call.arguments})
        self.say(step, tuple(block["id"] for block in blocks if block["type"] == "tool_use"))
        return {
            "id": f"msg_{secrets.token_hex(12)}",
            "type": "message",
            "role": "assistant",
            "model": body["model"],
            "content": blocks,
            "stop_reason": "tool_use" if step.calls else "end_turn",
            "stop_sequence": None,
            "usage": {"input_tokens": 20, "output_tokens": 12},
        }

    def _thoughts(self, step: Step, account: str, shown: bool) -> list[Block]:
        """Now and then a thought is withheld, alone or behind one that is shown."""
        blocks: list[Block] = []
        if step.number % 10 != 6:
            blocks.append(self._thought(step, account, step.thinking if shown else ""))
        if step.number % 5 == 1:
            blocks.append(
                {"type": "redacted_thinking", "data": self.mint(account, "redacted_thinking", "", step.key)}
            )
        return blocks

    def _thought(self, step: Step, account: str, text: str) -> Block:
        signature = self.mint(account, "thinking", text, step.key)
        return {"type": "thinking", "thinking": text, "signature": signature}

    def frames(self, answer: dict[str, Any], body: dict[str, Any]) -> Iterable[bytes]:
        start = {
            **answer,
            "content": [],
            "stop_reason": None,
            "usage": {"input_tokens": 20, "output_tokens": 1},
        }
        yield _event("message_start", message=start)
        for index, block in enumerate(answer["content"]):
            opened, deltas = _streamed(block)
            yield _event("content_block_start", index=index, content_block=opened)
            for delta in deltas:
                yield _event("content_block_delta", index=index, delta=delta)
            yield _event("content_block_stop", index=index)
        delta = {"stop_reason": answer["stop_reason"], "stop_sequence": None}
        yield _event("message_delta", delta=delta, usage=answer["usage"])
        yield _event("message_stop")

    # Rules

    def _check_pairing(self, messages: list[tuple[str, list[Block]]]) -> None:
        seen: set[str] = set()
        waiting: dict[str, Block] = {}
        for index, (role, blocks) in enumerate(messages):
            for position, block in enumerate(blocks):
                place = f"messages.{index}.content.{position}"
                if block["type"] == "text" and not block["text"].strip():
                    raise Refused(f"{place}: text content blocks must be non-empty")
                if block["type"] == "tool_use":
                    if not _LEGAL_ID.fullmatch(block["id"]):
                        raise Refused(f"{place}.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'")
                    if block["id"] in seen:
                        raise Refused(f"{place}: `tool_use` ids must be unique")
                    seen.add(block["id"])
            if role == "assistant":
                if blocks and blocks[-1]["type"] in _THOUGHTS:
                    raise Refused(
                        f"messages.{index}: The final block in an assistant message cannot be `thinking`."
                    )
                waiting = {block["id"]: block for block in blocks if block["type"] == "tool_use"}
                if waiting and index == len(messages) - 1:
                    raise Refused(_unanswered(index, list(waiting)))
                continue
            waiting = self._answered(index, blocks, waiting)

    def _answered(self, index: int, blocks: list[Block], waiting: dict[str, Block]) -> dict[str, Block]:
        others = False
        for position, block in enumerate(blocks):
            if block["type"] != "tool_result":
                others = True
                continue
            call = waiting.pop(block["tool_use_id"], None)
            if call is None or others:
                raise Refused(
                    f"messages.{index}.content.{position}: unexpected `tool_use_id` found in `tool_result` blocks: "
                    f"{block['tool_use_id']}. Each `tool_result` block must have a corresponding `tool_use` block "
                    "in the previous message."
                )
            if call["input"]["key"] not in encode_text(block.get("content", "")):
                raise Refused(f"messages.{index}.content.{position}: the result of another call")
        if waiting:
            raise Refused(_unanswered(index - 1, list(waiting)))
        return {}

    def _check_thoughts(self, messages: list[tuple[str, list[Block]]], account: str) -> None:
        current = _current(messages)
        for index, (role, blocks) in enumerate(messages):
            if role != "assistant":
                continue
            thoughts = [block for block in blocks if block["type"] in _THOUGHTS]
            for position, block in enumerate(blocks):
                if block["type"] in _THOUGHTS:
                    self._check_thought(block, account, f"messages.{index}.content.{position}")
            if thoughts and index > current and self._order_of(thoughts) is False:
                raise Refused(
                    f"messages.{index}.content.0: `thinking` or `redacted_thinking` blocks in the latest assistant "
                    "message cannot be modified. These blocks must remain as they were in the original response."
                )
            self._note_missing(blocks, thoughts, account, index)

    def _check_thought(self, block: Block, account: str, place: str) -> None:
        if block["type"] == "redacted_thinking":
            minted = self.known(block["data"], account)
            if minted is None or minted.kind != "redacted_thinking":
                raise Refused(f"{place}: Invalid `data` in `redacted_thinking` block")
            return
        minted = self.known(block.get("signature", ""), account)
        # Where the text was not shown, the signature alone counts.
        if (
            minted is None
            or minted.kind != "thinking"
            or (minted.bound and minted.bound != block["thinking"])
        ):
            raise Refused(f"{place}: Invalid `signature` in `thinking` block")

    def _order_of(self, thoughts: list[Block]) -> bool:
        """Whether the thoughts of one message are all those of one step, in their order."""
        values = [block.get("signature") or block.get("data") for block in thoughts]
        step = self._valid[str(values[0])].step
        return values == [minted.value for minted in self._valid.values() if minted.step == step]

    def _note_missing(self, blocks: list[Block], thoughts: list[Block], account: str, index: int) -> None:
        call = next((block for block in blocks if block["type"] == "tool_use"), None)
        if call is None or thoughts or not self.own_step(call["input"]["key"]):
            return
        if any(
            each.step == call["input"]["key"] and each.account == account for each in self._valid.values()
        ):
            self.missing.append(f"messages.{index}: the thinking before {call['name']}")

    def _check_loop(self, messages: list[tuple[str, list[Block]]]) -> None:
        current = _current(messages)
        for index, (role, blocks) in enumerate(messages):
            if role != "assistant" or index < current or not any(b["type"] == "tool_use" for b in blocks):
                continue
            if blocks[0]["type"] not in _THOUGHTS:
                raise Refused(
                    f"messages.{index}.content.0.type: Expected `thinking` or `redacted_thinking`, but found "
                    f"`{blocks[0]['type']}`. When `thinking` is enabled, a final `assistant` message must start "
                    "with a thinking block (preceeding the lastmost set of `tool_use` and `tool_result` blocks). "
                    "We recommend you include thinking blocks from previous turns. To avoid this requirement, "
                    "disable `thinking`."
                )


def _current(messages: list[tuple[str, list[Block]]]) -> int:
    """Where the running turn begins: the last message in which the user said something."""
    return max(
        (
            index
            for index, (role, blocks) in enumerate(messages)
            if role == "user" and not any(block["type"] == "tool_result" for block in blocks)
        ),
        default=0,
    )


def _unanswered(index: int, ids: list[str]) -> str:
    return (
        f"messages.{index}: `tool_use` ids were found without `tool_result` blocks immediately after: "
        f"{', '.join(ids)}. Each `tool_use` block must have a corresponding `tool_result` block in the next "
        "message."
    )


def _blocks(content: Any) -> list[Block]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content)


def _streamed(block: Block) -> tuple[Block, list[Block]]:
    """A block as it begins, and what follows."""
    match block["type"]:
        case "thinking":
            texts = [{"type": "thinking_delta", "thinking": piece} for piece in halves(block["thinking"])]
            signed = {"type": "signature_delta", "signature": block["signature"]}
            return {"type": "thinking", "thinking": "", "signature": ""}, [*texts, signed]
        case "text":
            return {"type": "text", "text": ""}, [
                {"type": "text_delta", "text": piece} for piece in halves(block["text"])
            ]
        case "tool_use":
            return {**block, "input": {}}, [
                {"type": "input_json_delta", "partial_json": piece}
                for piece in halves(encode_text(block["input"]))
            ]
    return block, []


def _event(kind: str, **fields: Any) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (kind.encode(), encode({"type": kind, **fields}))
