"""Kimi: its reasoning is plain text, demanded on every message with calls; its call ids repeat."""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from typing import Any

from tests.gateway.state.doubles.script import Call, conversation_of
from tests.gateway.state.doubles.server import Double, Minted, Refused, halves
from wireglot_core.wire.json import decode, encode, encode_text


class Kimi(Double):
    """It refuses a missing `reasoning_content` and notes a changed one in `changed`.

    `recurring`: call ids as K3 gives them, counted again in each answer. `lenient`: an empty text is taken.
    `refusing`: no message may have reasoning.
    """

    def __init__(self, *, recurring: bool = False, lenient: bool = False, refusing: bool = False) -> None:
        super().__init__()
        self.recurring = recurring
        self.lenient = lenient
        self.refusing = refusing

    def account_of(self, headers: dict[str, str]) -> str:
        return headers.get("authorization", "")

    def error(self, refused: Refused) -> dict[str, Any]:
        kind = "engine_overloaded_error" if refused.status == 503 else "invalid_request_error"
        return {"error": {"message": refused.message, "type": kind}}

    def answer(self, path: str, account: str, body: dict[str, Any]) -> dict[str, Any]:
        messages: list[dict[str, Any]] = body["messages"]
        thinks = body.get("thinking", {}).get("type") != "disabled"
        self._check_pairing(messages)
        if self.refusing:
            self._check_absence(messages)
        elif thinks:
            self._check_reasoning(messages)
        first = next(message for message in messages if message["role"] == "user")
        conversation = conversation_of(encode_text(first["content"]))
        answers = [message for message in messages if message["role"] == "assistant"]
        for number, quoted in enumerate(answers):
            functions = [call["function"] for call in quoted.get("tool_calls") or ()]
            calls = [Call(function["name"], decode(function["arguments"])) for function in functions]
            self.compare(number, conversation, _text(quoted.get("content")), calls)
        step = self.script.step(conversation, len(answers))
        message: dict[str, Any] = {"role": "assistant", "content": step.text or None}
        if thinks:
            message["reasoning_content"] = step.thinking
            self._remember(Minted(step.key, account, "reasoning", step.thinking, step.key))
        before = sum(len(message.get("tool_calls") or ()) for message in messages)
        if step.calls:
            message["tool_calls"] = [
                {
                    "index": index,
                    "id": f"{call.name}:{index}"
                    if self.recurring
                    else f"functions.{call.name}:{before + index}",
                    "type": "function",
                    "function": {"name": call.name, "arguments": encode_text(call.arguments)},
                }
                for index, call in enumerate(step.calls)
            ]
        self.say(step, tuple(call["id"] for call in message.get("tool_calls", ())))
        finish = "tool_calls" if step.calls else "stop"
        return {
            "id": f"chatcmpl-{secrets.token_hex(12)}",
            "object": "chat.completion",
            "created": 1,
            "model": body["model"],
            "choices": [{"index": 0, "message": message, "finish_reason": finish}],
            "usage": {"prompt_tokens": 20, "completion_tokens": 12, "total_tokens": 32, "cached_tokens": 0},
        }

    def frames(self, answer: dict[str, Any], body: dict[str, Any]) -> Iterable[bytes]:
        message = answer["choices"][0]["message"]
        deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
        deltas += [{"reasoning_content": piece} for piece in halves(message.get("reasoning_content", ""))]
        deltas += [{"content": piece} for piece in halves(message["content"] or "")]
        for call in message.get("tool_calls", ()):
            arguments = call["function"]["arguments"]
            deltas.append({"tool_calls": [{**call, "function": {**call["function"], "arguments": ""}}]})
            deltas += [
                {"tool_calls": [{"index": call["index"], "function": {"arguments": piece}}]}
                for piece in halves(arguments)
            ]
        about = {key: answer[key] for key in ("id", "created", "model")} | {"object": "chat.completion.chunk"}

        def chunk(choices: list[dict[str, Any]], **more: Any) -> bytes:
            return b"data: " + encode({**about, "choices": choices, **more}) + b"\n\n"

        for delta in deltas:
            yield chunk([{"index": 0, "delta": delta, "finish_reason": None}])
        finish = answer["choices"][0]["finish_reason"]
        yield chunk([{"index": 0, "delta": {}, "finish_reason": finish, "usage": answer["usage"]}])
        if (body.get("stream_options") or {}).get("include_usage"):
            yield chunk([], usage=answer["usage"])
        yield b"data: [DONE]\n\n"

    # Rules

    def _check_pairing(self, messages: list[dict[str, Any]]) -> None:
        waiting: dict[str, dict[str, Any]] = {}
        for message in messages:
            if message["role"] == "tool":
                call = waiting.pop(message["tool_call_id"], None)
                if call is None:
                    raise Refused(f"tool_call_id {message['tool_call_id']} is not found")
                if decode(call["function"]["arguments"])["key"] not in encode_text(message["content"]):
                    raise Refused(f"The result of another call came for {call['id']}.")
                continue
            if waiting:
                raise Refused(
                    "an assistant message with 'tool_calls' must be followed by tool messages responding to each "
                    f"'tool_call_id'. The following tool_call_ids did not have response messages: {[*waiting]}"
                )
            if message["role"] == "assistant":
                calls = message.get("tool_calls") or []
                if self.lenient and calls:
                    pass
                elif not message.get("content") and (not calls or message.get("content") == ""):
                    raise Refused("text content is empty")
                waiting = {call["id"]: call for call in calls}
                if len(waiting) != len(calls):
                    raise Refused("tool_call ids must be unique")
        if waiting:
            raise Refused(f"tool_call_ids did not have response messages: {[*waiting]}")

    def _check_absence(self, messages: list[dict[str, Any]]) -> None:
        for index, message in enumerate(messages):
            if "reasoning_content" in message:
                raise Refused(f"Extra inputs are not permitted, field: 'messages[{index}].reasoning_content'")

    def _check_reasoning(self, messages: list[dict[str, Any]]) -> None:
        for index, message in enumerate(messages):
            if message["role"] != "assistant" or not message.get("tool_calls"):
                continue
            reasoning = message.get("reasoning_content")
            if not isinstance(reasoning, str):
                raise Refused(
                    "thinking is enabled but reasoning_content is missing in assistant tool call message at "
                    f"index {index}"
                )
            key = decode(message["tool_calls"][0]["function"]["arguments"])["key"]
            minted = self._valid.get(key)
            if minted is not None and minted.bound != reasoning:
                self.changed.append(f"messages.{index}: {reasoning!r} instead of {minted.bound!r}")


def _text(content: Any) -> str:
    return content or "" if not isinstance(content, list) else "".join(part["text"] for part in content)
