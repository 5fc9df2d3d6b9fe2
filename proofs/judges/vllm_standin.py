"""A pytest plugin: what vLLM's tests of the Messages API import, with our translation inside.

Only what those tests call is here. The names are vLLM's; nothing of its code is.
"""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator
from types import ModuleType
from typing import Any, Final
from unittest.mock import MagicMock

from wireglot_core.translate import StreamTranslator, translate_request, translate_response

CHAT: Final = "openai-chat"
MESSAGES: Final = "anthropic"


class View(dict[str, Any]):
    """A JSON object whose fields are attributes too."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self.get(name)

    def model_dump_json(self) -> str:
        return json.dumps(self)


def view(value: Any) -> Any:
    if isinstance(value, dict):
        return View({key: view(item) for key, item in value.items()})
    return [view(item) for item in value] if isinstance(value, list) else value


class AnthropicServingMessages:
    create_messages = count_tokens = None

    @staticmethod
    def _convert_anthropic_to_openai_request(request: View, merge_inline_system: bool = True) -> Any:
        made = translate_request(json.dumps(request), source=MESSAGES, target=CHAT, provider="vllm").value
        for message in made["messages"]:  # vLLM's class of a Chat request renames the field as it arrives
            if "reasoning_content" in message:
                message["reasoning"] = message.pop("reasoning_content")
        return view(made)

    @classmethod
    def _convert_image_source_to_url(cls, source: dict[str, Any]) -> str:
        content = [{"type": "image", "source": source}]
        request = View(model="m", max_tokens=9, messages=[{"role": "user", "content": content}])
        url: str = cls._convert_anthropic_to_openai_request(request).messages[0].content[0].image_url.url
        return url

    def messages_full_converter(self, response: View) -> Any:
        return view(translate_response(_full(response), source=CHAT, target=MESSAGES).value)

    async def message_stream_converter(self, frames: AsyncIterator[str]) -> AsyncIterator[str]:
        translator = StreamTranslator(source=CHAT, target=MESSAGES)
        written = b""
        async for frame in frames:
            written += translator.feed(f"{frame}\n\n".encode())
        written += translator.close()
        for event in written.decode().split("\n\n"):
            yield event + "\n\n"


def _build_anthropic_usage(usage: View) -> Any:
    message = {"role": "assistant", "content": "x"}
    body = View(
        id="c", model="m", choices=[{"index": 0, "message": message, "finish_reason": "stop"}], usage=usage
    )
    return view(translate_response(_full(body), source=CHAT, target=MESSAGES).value)["usage"]


def _full(response: View) -> str:
    usage = dict(response.get("usage") or {})
    usage.setdefault("total_tokens", usage.get("prompt_tokens", 0) + usage.get("completion_tokens", 0))
    return json.dumps({"object": "chat.completion", "created": 1, **response, "usage": usage})


def _module(name: str, **names: Any) -> None:
    module = ModuleType(name)
    vars(module).update(names)
    sys.modules[name] = module


for _package in (
    "vllm",
    "vllm.entrypoints",
    "vllm.entrypoints.anthropic",
    "vllm.entrypoints.openai",
    "vllm.entrypoints.openai.chat_completion",
    "vllm.entrypoints.openai.engine",
    "vllm.entrypoints.serve",
    "vllm.entrypoints.serve.exception_handling",
    "vllm.entrypoints.serve.exception_handling.handlers",
):
    _module(_package, __path__=[])
_module("vllm.entrypoints.anthropic.api_router", attach_router=MagicMock())
_module("vllm.entrypoints.anthropic.protocol", AnthropicMessagesRequest=View)
_module(
    "vllm.entrypoints.anthropic.serving",
    AnthropicServingMessages=AnthropicServingMessages,
    _build_anthropic_usage=_build_anthropic_usage,
)
_module(
    "vllm.entrypoints.openai.chat_completion.protocol",
    ChatCompletionResponse=View,
    ChatCompletionResponseChoice=View,
    ChatCompletionResponseStreamChoice=View,
    ChatCompletionStreamResponse=View,
    ChatMessage=View,
)
_module(
    "vllm.entrypoints.openai.engine.protocol",
    DeltaFunctionCall=View,
    DeltaMessage=View,
    DeltaToolCall=View,
    PromptTokenUsageInfo=View,
    UsageInfo=View,
)
_module(
    "vllm.entrypoints.serve.exception_handling.handlers.validation", validation_exception_handler=MagicMock()
)
_module("vllm.exceptions", VLLMValidationError=ValueError)
