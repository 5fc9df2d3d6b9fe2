"""OpenAI's Responses for an account without data retention: reasoning comes encrypted, or not at all."""

from __future__ import annotations

import base64
import secrets
from collections.abc import Iterable
from typing import Any

from tests.gateway.state.doubles.script import Call, Step, conversation_of
from tests.gateway.state.doubles.server import Double, Minted, Refused, halves
from wireglot_core.wire.json import decode, encode, encode_text

Item = dict[str, Any]
_PREFIXES = {"reasoning": "rs", "function_call": "fc", "message": "msg", "function_call_output": "fc"}


class OpenAi(Double):
    """`demanding`: calls that name their item must come with the reasoning that led to them. `quiet`: summaries
    are shown only to those who ask for them. `plain`: a model that does not reason, whatever its name.
    `unverified`: an organization that gets no summaries."""

    def __init__(
        self, *, demanding: bool = True, quiet: bool = False, plain: bool = False, unverified: bool = False
    ) -> None:
        super().__init__()
        self.demanding = demanding
        self.quiet = quiet
        self.plain = plain
        self.unverified = unverified
        self._reasons: dict[str, str] = {}
        """The reasoning item that each other item, and each call, was made with."""

    def account_of(self, headers: dict[str, str]) -> str:
        return headers.get("authorization", "")

    def error(self, refused: Refused) -> dict[str, Any]:
        kind = "server_error" if refused.status == 503 else "invalid_request_error"
        error = {"message": refused.message, "type": kind, "param": None}
        return {"error": {**error, "code": refused.code or None}}

    def forget(self) -> None:
        super().forget()
        self._reasons.clear()

    def answer(self, path: str, account: str, body: dict[str, Any]) -> dict[str, Any]:
        if body.get("previous_response_id"):
            raise Refused(
                f"Previous response with id '{body['previous_response_id']}' not found.",
                "previous_response_not_found",
            )
        items: list[Item] = body["input"]
        self._check_ids(items)
        self._check_pairing(items)
        self._check_reasoning(items, account)
        conversation = conversation_of(encode_text(items[:2]))
        answers = _answers(items)
        for number, quoted in enumerate(answers):
            said = "".join(_text(item["content"]) for item in quoted if "content" in item)
            calls = [item for item in quoted if item.get("type") == "function_call"]
            self.compare(
                number, conversation, said, [Call(call["name"], decode(call["arguments"])) for call in calls]
            )
        step = self.script.step(conversation, len(answers))
        encrypted = "reasoning.encrypted_content" in body.get("include", ())
        if encrypted and self.plain:
            raise Refused("Encrypted content is not supported with this model.", "invalid_request_error")
        if self.unverified and (body.get("reasoning") or {}).get("summary"):
            raise Refused(
                "Your organization must be verified to generate reasoning summaries.", "invalid_request_error"
            )
        output = self._output(step, account, encrypted)
        if self.quiet and not (body.get("reasoning") or {}).get("summary"):
            output[0]["summary"] = []
        if self.plain:
            del output[0]
        self.say(step, tuple(item["call_id"] for item in output if item["type"] == "function_call"))
        return {
            "id": f"resp_{secrets.token_hex(12)}",
            "object": "response",
            "created_at": 1,
            "status": "completed",
            "error": None,
            "incomplete_details": None,
            "instructions": None,
            "metadata": {},
            "model": body["model"],
            "output": output,
            "parallel_tool_calls": True,
            "previous_response_id": None,
            "store": False,
            "temperature": 1,
            "tool_choice": "auto",
            "tools": body.get("tools", []),
            "top_p": 1,
            "usage": {
                "input_tokens": 20,
                "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
                "output_tokens": 12,
                "output_tokens_details": {"reasoning_tokens": 7},
                "total_tokens": 32,
            },
        }

    def _output(self, step: Step, account: str, encrypted: bool) -> list[Item]:
        identifier = f"rs_{secrets.token_hex(16)}"
        reasoning: Item = {
            "id": identifier,
            "type": "reasoning",
            "summary": [{"type": "summary_text", "text": step.thinking}],
        }
        if encrypted:
            value = f"gAAAAA{base64.urlsafe_b64encode(secrets.token_bytes(60)).decode()}"
            self._remember(Minted(value, account, "reasoning", identifier, step.key))
            reasoning["encrypted_content"] = value
        items: list[Item] = [reasoning]
        if step.text:
            content = [{"type": "output_text", "text": step.text, "annotations": [], "logprobs": []}]
            items.append(
                {
                    "id": f"msg_{secrets.token_hex(16)}",
                    "type": "message",
                    "role": "assistant",
                    "status": "completed",
                    "content": content,
                }
            )
        for call in step.calls:
            items.append(
                {
                    "id": f"fc_{secrets.token_hex(16)}",
                    "type": "function_call",
                    "call_id": f"call_{secrets.token_hex(12)}",
                    "name": call.name,
                    "arguments": encode_text(call.arguments),
                    "status": "completed",
                }
            )
            self._reasons[items[-1]["call_id"]] = identifier
        for item in items[1:]:
            self._reasons[item["id"]] = identifier
        if self.plain:
            self._reasons.clear()
        return items

    def frames(self, answer: dict[str, Any], body: dict[str, Any]) -> Iterable[bytes]:
        number = 0

        def event(kind: str, **fields: Any) -> bytes:
            nonlocal number
            number += 1
            data = encode({"type": kind, "sequence_number": number - 1, **fields})
            return b"event: %b\ndata: %b\n\n" % (kind.encode(), data)

        begun = {**answer, "status": "in_progress", "output": [], "usage": None}
        yield event("response.created", response=begun)
        yield event("response.in_progress", response=begun)
        for index, item in enumerate(answer["output"]):
            place = {"item_id": item["id"], "output_index": index}
            match item["type"]:
                case "reasoning":
                    opened = {"id": item["id"], "type": "reasoning", "summary": []}
                    yield event("response.output_item.added", output_index=index, item=opened)
                    for part in item["summary"]:
                        at = {**place, "summary_index": 0}
                        empty = {**part, "text": ""}
                        yield event("response.reasoning_summary_part.added", **at, part=empty)
                        for piece in halves(part["text"]):
                            yield event("response.reasoning_summary_text.delta", **at, delta=piece)
                        yield event("response.reasoning_summary_text.done", **at, text=part["text"])
                        yield event("response.reasoning_summary_part.done", **at, part=part)
                case "message":
                    opened = {**item, "status": "in_progress", "content": []}
                    yield event("response.output_item.added", output_index=index, item=opened)
                    part = item["content"][0]
                    at = {**place, "content_index": 0}
                    yield event("response.content_part.added", **at, part={**part, "text": ""})
                    for piece in halves(part["text"]):
                        yield event("response.output_text.delta", **at, delta=piece, logprobs=[])
                    yield event("response.output_text.done", **at, text=part["text"], logprobs=[])
                    yield event("response.content_part.done", **at, part=part)
                case "function_call":
                    opened = {**item, "status": "in_progress", "arguments": ""}
                    yield event("response.output_item.added", output_index=index, item=opened)
                    for piece in halves(item["arguments"]):
                        yield event("response.function_call_arguments.delta", **place, delta=piece)
                    yield event("response.function_call_arguments.done", **place, arguments=item["arguments"])
            yield event("response.output_item.done", output_index=index, item=item)
        yield event("response.completed", response=answer)

    # Rules

    def _check_ids(self, items: list[Item]) -> None:
        for index, item in enumerate(items):
            identifier = item.get("id")
            prefix = _PREFIXES.get(item.get("type", "message"))
            if identifier is None or prefix is None:
                continue
            if not identifier.startswith(f"{prefix}_"):
                raise Refused(
                    f"Invalid 'input[{index}].id': '{identifier}'. Expected an ID that begins with '{prefix}'.",
                    "invalid_value",
                )
            if len(identifier) > 64:
                raise Refused(f"Invalid 'input[{index}].id': string too long.", "string_above_max_length")

    def _check_pairing(self, items: list[Item]) -> None:
        calls: dict[str, Item] = {}
        answered: set[str] = set()
        for item in items:
            if item.get("type") == "function_call":
                calls[item["call_id"]] = item
            if item.get("type") != "function_call_output":
                continue
            call = calls.get(item["call_id"])
            if call is None:
                raise Refused(f"No tool call found for function call output with call_id {item['call_id']}.")
            if decode(call["arguments"])["key"] not in encode_text(item["output"]):
                raise Refused(f"The result of another call came for {item['call_id']}.")
            answered.add(item["call_id"])
        for identifier in calls:
            if identifier not in answered:
                raise Refused(f"No tool output found for function call {identifier}.")

    def _check_reasoning(self, items: list[Item], account: str) -> None:
        given: set[str] = set()
        for index, item in enumerate(items):
            if item.get("type") != "reasoning":
                continue
            self._check_blob(item, account)
            identifier = self._valid[item["encrypted_content"]].bound  # Codex leaves the item's own out
            if identifier in given:
                raise Refused(
                    f"Duplicate item found with id {identifier}. Remove duplicate items and try again."
                )
            given.add(identifier)
            if index + 1 == len(items) or not _is_models(items[index + 1]):
                raise Refused(
                    f"Item '{identifier}' of type 'reasoning' was provided without its required following item."
                )
        for item in items:
            reason = self._reasons.get(item.get("id", ""))
            if self.demanding and reason is not None and reason not in given:
                raise Refused(
                    f"Item '{item['id']}' of type '{item['type']}' was provided without its required 'reasoning' "
                    f"item: '{reason}'."
                )
            reason = self._reasons.get(item.get("call_id", ""))
            if item.get("type") == "function_call" and reason is not None and reason not in given:
                self.missing.append(f"{item['call_id']}: {reason}")

    def _check_blob(self, item: Item, account: str) -> None:
        blob = item.get("encrypted_content")
        if not blob:
            raise Refused(
                f"Item with id '{item.get('id')}' not found. Items are not persisted when `store` is set to false. "
                "Try again with `store` set to true, or remove this item from your input.",
                status=404,
            )
        minted = self.known(blob, account)
        if minted is None or item.get("id", minted.bound) != minted.bound:
            raise Refused(
                f"The encrypted content {blob[:4]}...{blob[-4:]} could not be verified. Reason: Encrypted content "
                "could not be decrypted or parsed.",
                "invalid_encrypted_content",
            )


def _answers(items: list[Item]) -> list[list[Item]]:
    """The answers of a model in the input: its items come in runs. The result of a call may stand between it
    and the next call of the same answer."""
    answers: list[list[Item]] = []
    running = False
    for item in items:
        model = _is_models(item)
        if model:
            if not running and not (
                answers and _step(item) is not None and _step(item) == _step(answers[-1][-1])
            ):
                answers.append([])
            answers[-1].append(item)
        running = model
    return answers


def _is_models(item: Item) -> bool:
    return item.get("type") in ("reasoning", "function_call") or item.get("role") == "assistant"


def _step(item: Item) -> int | None:
    return decode(item["arguments"])["step"] if item.get("type") == "function_call" else None


def _text(content: Any) -> str:
    return content if isinstance(content, str) else "".join(part["text"] for part in content)
