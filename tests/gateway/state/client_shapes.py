"""Clients as they are installed: what each really sends back of an answer, read from their sources.

None of them is an SDK: they keep a history of their own and write it again with every question. Ids are left
out or rewritten, thoughts dropped or joined, signatures moved or invented. All of them stream.
"""

from __future__ import annotations

import copy
import http.client
import re
from abc import abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any, Final
from urllib.parse import urlsplit

from tests.gateway.state.doubles.script import TOOL_SCHEMA, TOOLS, result_of
from tests.gateway.state.driver import Client, Seen, SeenCall
from wireglot_core.wire.json import decode, encode, encode_text

Json = dict[str, Any]
PLACEHOLDER: Final = "skip_thought_signature_validator"


class ShapedClient(Client):
    """Plain HTTP, and JSON written by hand."""

    def _ask(self, streaming: bool) -> Seen:
        path, body = self._question()
        place = urlsplit(self.url)
        connection = http.client.HTTPConnection(place.netloc, timeout=20)
        try:
            headers = {"content-type": "application/json", "authorization": f"Bearer {self.key}"}
            connection.request("POST", path, encode(body), headers)
            answer = connection.getresponse()
            raw = answer.read()
            assert answer.status == 200, raw
            self.headers = {name.lower(): value for name, value in answer.getheaders()}
        finally:
            connection.close()
        return self._remember(list(_events(raw)))

    @abstractmethod
    def _question(self) -> tuple[str, Json]: ...

    @abstractmethod
    def _remember(self, events: list[Json]) -> Seen:
        """Put an answer into the history, as this client does."""


def _events(raw: bytes) -> Iterator[Json]:
    for line in raw.split(b"\n"):
        if line.startswith(b"data:") and b"[DONE]" not in line:
            yield decode(line.removeprefix(b"data:").strip())


# Gemini's dialect


class GeminiShape(ShapedClient):
    def say(self, text: str, streaming: bool) -> Seen:
        self.history.append({"role": "user", "parts": [{"text": text}]})
        return self._ask(streaming)

    def give(self, calls: tuple[SeenCall, ...], streaming: bool) -> Seen:
        self.history.append({"role": "user", "parts": [self._result(call) for call in calls]})
        return self._ask(streaming)

    @abstractmethod
    def _result(self, call: SeenCall) -> Json: ...

    @abstractmethod
    def _kept(self, parts: list[Json]) -> list[Json]: ...

    def _sent(self) -> list[Json]:
        return self.history

    def _question(self) -> tuple[str, Json]:
        declarations = [{"name": name, "parametersJsonSchema": TOOL_SCHEMA} for name in TOOLS]
        body = {
            "contents": self._sent(),
            "tools": [{"functionDeclarations": declarations}],
            "generationConfig": {"thinkingConfig": {"includeThoughts": True, "thinkingLevel": "MEDIUM"}},
        }
        return f"/v1beta/models/{self.model}:streamGenerateContent?alt=sse", body

    def _remember(self, events: list[Json]) -> Seen:
        parts = [
            part
            for event in events
            for candidate in event.get("candidates", ())
            for part in candidate.get("content", {}).get("parts", ())
        ]
        text = "".join(part.get("text", "") for part in parts if not part.get("thought"))
        kept = self._kept(parts)
        self.history.append({"role": "model", "parts": kept})
        calls = [part["functionCall"] for part in kept if "functionCall" in part]
        seen = tuple(SeenCall(call.get("id", ""), call["name"], call["args"]) for call in calls)
        return Seen(text, seen, self.headers)


class GeminiCli(GeminiShape):
    """Gemini CLI 0.61: no thoughts, texts joined (what was signed among them with them), the tool's name before
    every id, and a placeholder where the first call of a turn has no signature."""

    def _kept(self, parts: list[Json]) -> list[Json]:
        kept: list[Json] = []
        for part in parts:
            if part.get("thought"):
                continue
            call = part.get("functionCall")
            if call and call.get("id") and not call["id"].startswith(f"{call['name']}__"):
                call["id"] = f"{call['name']}__{call['id']}"
            if kept and kept[-1].get("text") and "text" in part:
                kept[-1]["text"] += part["text"]
            else:
                kept.append(part)
        return kept

    def _result(self, call: SeenCall) -> Json:
        answer = {"id": call.id, "name": call.name, "response": {"output": result_of(call.arguments)}}
        return {"functionResponse": answer}

    def _sent(self) -> list[Json]:
        contents = copy.deepcopy(self.history)
        for content in contents:
            first = next((part for part in content["parts"] if "functionCall" in part), None)
            if content["role"] == "model" and first is not None and not first.get("thoughtSignature"):
                first["thoughtSignature"] = PLACEHOLDER
        return contents


class GeminiCliResumed(GeminiCli):
    """A session that was saved and resumed: no signature is left in it."""

    def _sent(self) -> list[Json]:
        for content in self.history:
            for part in content["parts"]:
                part.pop("thoughtSignature", None)
        return super()._sent()


class OpenCode(GeminiShape):
    """opencode 1.18 (AI SDK): no ids; one reasoning and one text for neighbours, with the last signature that
    any of them had; what is empty is left out, signed or not."""

    def _kept(self, parts: list[Json]) -> list[Json]:
        kept: list[Json] = []
        for part in parts:
            signed = {key: part[key] for key in ("thoughtSignature",) if part.get(key)}
            if "functionCall" in part:
                call = part["functionCall"]
                kept.append({"functionCall": {"name": call["name"], "args": call["args"]}, **signed})
                continue
            if "text" not in part:
                continue
            last = kept[-1] if kept else {}
            if "text" in last and (not part["text"] or last.get("thought") == part.get("thought")):
                last["text"] += part["text"]
                last.update(signed)
            else:
                thought = {"thought": True} if part.get("thought") else {}
                kept.append({"text": part["text"], **thought, **signed})
        return [part for part in kept if "functionCall" in part or part["text"]]

    def _result(self, call: SeenCall) -> Json:
        reported = result_of(call.arguments)
        return {"functionResponse": {"name": call.name, "response": {"name": call.name, "content": reported}}}


class OpenCodeNewest(OpenCode):
    """The newest AI SDK: as before, and the placeholder on calls of a turn in which none is signed."""

    def _sent(self) -> list[Json]:
        contents = copy.deepcopy(self.history)
        for content in contents:
            calls = [part for part in content["parts"] if "functionCall" in part]
            if not any("thoughtSignature" in part for part in calls):
                for part in calls:
                    part["thoughtSignature"] = PLACEHOLDER
        return contents


class KimiCli(GeminiShape):
    """kimi-code 2.1: no ids; thoughts joined until one is signed; empty texts are left out; empty `parts` in
    every result."""

    def _kept(self, parts: list[Json]) -> list[Json]:
        kept: list[Json] = []
        for part in parts:
            signed = {key: part[key] for key in ("thoughtSignature",) if part.get(key)}
            if "functionCall" in part:
                call = part["functionCall"]
                kept.append({"functionCall": {"name": call["name"], "args": call["args"]}, **signed})
                continue
            thought = bool(part.get("thought"))
            last = kept[-1] if kept else {}
            same = "text" in last and bool(last.get("thought")) == thought and "thoughtSignature" not in last
            if thought and same:
                last["text"] += part["text"]
                last.update(signed)
            elif thought:
                kept.append({"text": part["text"], "thought": True, **signed})
            elif part.get("text") and same:
                last["text"] += part["text"]
            elif part.get("text"):
                kept.append({"text": part["text"]})
        return kept

    def _result(self, call: SeenCall) -> Json:
        reported = {"output": result_of(call.arguments)}
        return {"functionResponse": {"name": call.name, "response": reported, "parts": []}}


# Anthropic's dialect


class MessagesShape(ShapedClient):
    unique_ids = True

    def give(self, calls: tuple[SeenCall, ...], streaming: bool) -> Seen:
        content = [
            {"type": "tool_result", "tool_use_id": call.id, "content": result_of(call.arguments)}
            for call in calls
        ]
        self.history.append({"role": "user", "content": content})
        return self._ask(streaming)

    def _question(self) -> tuple[str, Json]:
        body = {
            "model": self.model,
            "max_tokens": 8000,
            "stream": True,
            "tools": [{"name": name, "input_schema": TOOL_SCHEMA} for name in TOOLS],
            "thinking": {"type": "enabled", "budget_tokens": 2048},
            "messages": self.history,
        }
        return "/v1/messages", body

    @abstractmethod
    def _kept(self, blocks: list[Json], model: str) -> list[Json]: ...

    def _remember(self, events: list[Json]) -> Seen:
        blocks: list[Json] = []
        model = ""
        for event in events:
            match event["type"]:
                case "message_start":
                    model = event["message"]["model"]
                case "content_block_start":
                    blocks.append({**event["content_block"]})
                case "content_block_delta":
                    _grow(blocks[event["index"]], event["delta"])
        for block in blocks:
            written = block.pop("written", "")
            if block["type"] == "tool_use":
                block["input"] = decode(written) if written else {}
        self.history.append({"role": "assistant", "content": self._kept(copy.deepcopy(blocks), model)})
        calls = [block for block in blocks if block["type"] == "tool_use"]
        return Seen(
            "".join(block["text"] for block in blocks if block["type"] == "text"),
            tuple(SeenCall(call["id"], call["name"], call["input"]) for call in calls),
            self.headers,
        )


def _grow(block: Json, delta: Json) -> None:
    match delta["type"]:
        case "thinking_delta":
            block["thinking"] += delta["thinking"]
        case "signature_delta":
            block["signature"] = block.get("signature", "") + delta["signature"]
        case "text_delta":
            block["text"] += delta["text"]
        case "input_json_delta":
            block["written"] = block.get("written", "") + delta["partial_json"]


class ClaudeCode(MessagesShape):
    """Claude Code before 2.1.197, and today's: every block as it came."""

    def _kept(self, blocks: list[Json], model: str) -> list[Json]:
        return blocks


class ClaudeCodeByModel(MessagesShape):
    """Claude Code 2.1.197: thinking of a model that is not the one it asked is dropped."""

    def _kept(self, blocks: list[Json], model: str) -> list[Json]:
        if model == self.model:
            return blocks
        return [block for block in blocks if "thinking" not in block["type"]]


class ClaudeCodeWithout(MessagesShape):
    """No thinking at all: what Claude Code sends after its own recovery has stripped it."""

    def _kept(self, blocks: list[Json], model: str) -> list[Json]:
        return [block for block in blocks if "thinking" not in block["type"]]


class QwenCode(MessagesShape):
    """Qwen Code 0.24: calls wait for the end of the answer; neighbouring thoughts become one, whose signatures
    stand one behind the other; what is withheld becomes nothing."""

    def _kept(self, blocks: list[Json], model: str) -> list[Json]:
        kept: list[Json] = []
        text, signature, thinks = "", "", False

        def flush() -> None:
            nonlocal text, signature, thinks
            if thinks and (text.strip() or signature):
                block = {"type": "thinking", "thinking": text.strip()}
                kept.append({**block, "signature": signature} if signature else block)
            text, signature, thinks = "", "", False

        for block in blocks:
            match block["type"]:
                case "thinking":
                    if thinks and block["thinking"] and text and signature:
                        flush()
                    thinks = True
                    text += block["thinking"]
                    signature += block.get("signature", "")
                case "text":
                    flush()
                    kept.append(block)
        flush()
        return [*kept, *(block for block in blocks if block["type"] == "tool_use")]


class QwenCodeFront(QwenCode):
    """Earlier ones: the thought stands at the front of the turn, wherever it was."""

    def _kept(self, blocks: list[Json], model: str) -> list[Json]:
        kept = super()._kept(blocks, model)
        return sorted(kept, key=lambda block: block["type"] != "thinking")


# OpenAI's dialects


class Codex(ShapedClient):
    """Codex 0.166: reasoning as it came but without ids, and no ids on anything else."""

    def give(self, calls: tuple[SeenCall, ...], streaming: bool) -> Seen:
        self.history += [
            {"type": "function_call_output", "call_id": call.id, "output": result_of(call.arguments)}
            for call in calls
        ]
        return self._ask(streaming)

    def _question(self) -> tuple[str, Json]:
        body = {
            "model": self.model,
            "instructions": "You are a coding agent.",
            "input": self.history,
            "tools": [
                {"type": "function", "name": name, "parameters": TOOL_SCHEMA, "strict": False}
                for name in TOOLS
            ],
            "tool_choice": "auto",
            "parallel_tool_calls": True,
            "reasoning": {"effort": "medium", "summary": "auto"},
            "store": False,
            "stream": True,
            "include": ["reasoning.encrypted_content"],
            "prompt_cache_key": "5f1c9a0e-thread",
        }
        return "/v1/responses", body

    def _kept(self, items: Iterable[Json]) -> list[Json]:
        return [{key: value for key, value in item.items() if key not in ("id", "status")} for item in items]

    def _remember(self, events: list[Json]) -> Seen:
        items = [event["item"] for event in events if event["type"] == "response.output_item.done"]
        self.history += self._kept(items)
        calls = [item for item in items if item["type"] == "function_call"]
        texts = [part["text"] for item in items if item["type"] == "message" for part in item["content"]]
        return Seen(
            "".join(texts),
            tuple(SeenCall(call["call_id"], call["name"], decode(call["arguments"])) for call in calls),
            self.headers,
        )


class CodexWithout(Codex):
    """A Responses client that keeps messages and calls only."""

    def _kept(self, items: Iterable[Json]) -> list[Json]:
        return super()._kept(item for item in items if item["type"] != "reasoning")


class ChatShape(ShapedClient):
    def give(self, calls: tuple[SeenCall, ...], streaming: bool) -> Seen:
        self.history += [
            {"role": "tool", "tool_call_id": call.id, "content": result_of(call.arguments)} for call in calls
        ]
        return self._ask(streaming)

    def _question(self) -> tuple[str, Json]:
        function = {"parameters": TOOL_SCHEMA}
        body = {
            "model": self.model,
            "messages": self.history,
            "tools": [{"type": "function", "function": {"name": name, **function}} for name in TOOLS],
            "stream": True,
            "stream_options": {"include_usage": True},
            "reasoning_effort": "medium",
        }
        return "/v1/chat/completions", body

    @abstractmethod
    def _kept(self, message: Json) -> Json: ...

    def _remember(self, events: list[Json]) -> Seen:
        message: Json = {"role": "assistant", "content": "", "reasoning_content": ""}
        calls: list[Json] = []
        for event in events:
            for choice in event.get("choices", ()):
                delta = choice["delta"]
                for key in ("content", "reasoning_content"):
                    message[key] += delta.get(key) or ""
                for piece in delta.get("tool_calls") or ():
                    if piece["index"] == len(calls):
                        calls.append({**piece, "function": {**piece["function"]}})
                        continue
                    call = calls[piece["index"]]
                    call["function"]["arguments"] += piece["function"].get("arguments", "")
        kept = self._kept({**message, "tool_calls": calls})
        self.history.append(kept)
        reported = kept.get("tool_calls") or ()
        return Seen(
            message["content"],
            tuple(
                SeenCall(call["id"], call["function"]["name"], decode(call["function"]["arguments"] or "{}"))
                for call in reported
            ),
            self.headers,
        )


class OpenCodeChat(ChatShape):
    """opencode with `@ai-sdk/openai-compatible`: all reasoning as one text; arguments written again."""

    def _kept(self, message: Json) -> Json:
        kept: Json = {"role": "assistant", "content": message["content"]}
        if message["reasoning_content"]:
            kept["reasoning_content"] = message["reasoning_content"]
        calls = []
        for call in message["tool_calls"]:
            function = call["function"]
            arguments = encode_text(decode(function["arguments"] or "{}"))
            reported = {
                "id": call["id"],
                "type": "function",
                "function": {**function, "arguments": arguments},
            }
            if "google" in call.get("extra_content", {}):
                reported["extra_content"] = call["extra_content"]
            calls.append(reported)
        if calls:
            kept["tool_calls"] = calls
        return kept


class QwenCodeChat(OpenCodeChat):
    """Qwen Code on Chat: an id that came before gets a suffix, and reasoning is not sent back."""

    def _kept(self, message: Json) -> Json:
        kept = super()._kept(message)
        kept.pop("reasoning_content", None)
        used = {call["id"] for old in self.history for call in old.get("tool_calls", ())}
        for call in kept.get("tool_calls", ()):
            call.pop("extra_content", None)
            given, number = call["id"], 2
            while call["id"] in used:
                call["id"] = f"{given}__qwen_dup_{number}"
                number += 1
        return kept


class OpenClaw(OpenCodeChat):
    """OpenClaw 2026.9: ids without anything but letters and digits, and words of its own behind the conversation,
    which the next request has behind its own end instead."""

    def _kept(self, message: Json) -> Json:
        kept = super()._kept(message)
        for call in kept.get("tool_calls", ()):
            call.pop("extra_content", None)
            call["id"] = re.sub("[^A-Za-z0-9]", "", call["id"])
        return kept

    def _question(self) -> tuple[str, Json]:
        path, body = super()._question()
        words = {"role": "user", "content": [{"type": "text", "text": "Active sessions: none"}]}
        return path, {**body, "messages": [*self.history, words]}


class Droid(OpenCodeChat):
    """Droid 0.225: ids with another prefix, shortened and counted, and no reasoning."""

    def _kept(self, message: Json) -> Json:
        kept = super()._kept(message)
        kept.pop("reasoning_content", None)
        counted = sum(len(old.get("tool_calls", ())) for old in self.history)
        for number, call in enumerate(kept.get("tool_calls", ()), counted):
            call.pop("extra_content", None)
            call["id"] = f"call_{call['id'].rpartition('_')[2][:24]}_{number}"
        return kept


SHAPES: Final[dict[str, type[ShapedClient]]] = {
    "gemini-cli": GeminiCli,
    "gemini-cli-resumed": GeminiCliResumed,
    "opencode": OpenCode,
    "opencode-newest": OpenCodeNewest,
    "kimi-cli": KimiCli,
    "claude-code": ClaudeCode,
    "claude-code-2.1.197": ClaudeCodeByModel,
    "claude-code-stripped": ClaudeCodeWithout,
    "qwen-code": QwenCode,
    "qwen-code-front": QwenCodeFront,
    "codex": Codex,
    "codex-stripped": CodexWithout,
    "opencode-chat": OpenCodeChat,
    "qwen-code-chat": QwenCodeChat,
    "openclaw": OpenClaw,
    "droid": Droid,
}
