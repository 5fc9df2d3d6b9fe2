"""Clients of every dialect that keep a conversation with tools going, as an application would.

They hold the history themselves, in the shape their SDK gives it to them, and send it back as that SDK's
documentation says. Only the forgetful one does what many do: it keeps of an answer what it knows itself.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any, Final

import anthropic
import msgspec
import openai
from google import genai
from google.genai import types

from tests.gateway.state.doubles.script import TOOL_SCHEMA, TOOLS, result_of
from wireglot_core.wire.json import decode


class SeenCall(msgspec.Struct, frozen=True):
    id: str
    name: str
    arguments: dict[str, Any]


class Seen(msgspec.Struct, frozen=True):
    """An answer as the client saw it."""

    text: str
    calls: tuple[SeenCall, ...]
    headers: dict[str, str]

    @property
    def losses(self) -> set[str]:
        return set(filter(None, self.headers.get("x-wireglot-losses", "").replace(" ", "").split(",")))


class Client(ABC):
    """`url` and `model` may change between two questions. Nobody tries again but the gateway."""

    unique_ids = False
    """Whether the dialect insists on call ids that are unique in a conversation, whatever the model does."""
    wish: dict[str, Any] = {}
    """What the client says of thinking and of where state is kept."""

    def __init__(self, model: str, url: str = "", key: str = "client-key") -> None:
        self.model = model
        self.key = key
        self.history: list[Any] = []
        self.headers: dict[str, str] = {}
        self._url = url

    @property
    def url(self) -> str:
        return self._url

    @url.setter
    def url(self, url: str) -> None:
        self._url = url
        self.__dict__.pop("sdk", None)

    def say(self, text: str, streaming: bool) -> Seen:
        self.history.append({"role": "user", "content": text})
        return self._ask(streaming)

    @abstractmethod
    def give(self, calls: tuple[SeenCall, ...], streaming: bool) -> Seen:
        """The results of the tools that were called."""

    @abstractmethod
    def _ask(self, streaming: bool) -> Seen: ...

    def _note(self, response: Any) -> None:
        self.headers = {name.lower(): value for name, value in response.headers.items()}

    @property
    def _http(self) -> dict[str, Any]:
        """Nothing is encrypted here, so no certificates are loaded: that alone takes longer than a test."""
        return {"verify": False, "event_hooks": {"response": [self._note]}}


class AnthropicClient(Client):
    unique_ids = True
    wish: dict[str, Any] = {"thinking": {"type": "enabled", "budget_tokens": 2048}}

    @cached_property
    def sdk(self) -> anthropic.Anthropic:
        client = anthropic.DefaultHttpxClient(**self._http)
        return anthropic.Anthropic(base_url=self.url, api_key=self.key, max_retries=0, http_client=client)

    def give(self, calls: tuple[SeenCall, ...], streaming: bool) -> Seen:
        content = [
            {"type": "tool_result", "tool_use_id": call.id, "content": result_of(call.arguments)}
            for call in calls
        ]
        self.history.append({"role": "user", "content": content})
        return self._ask(streaming)

    def _ask(self, streaming: bool) -> Seen:
        tools = [{"name": name, "input_schema": TOOL_SCHEMA} for name in TOOLS]
        options: dict[str, Any] = {
            "model": self.model,
            "max_tokens": 8000,
            "tools": tools,
            "messages": self.history,
            **self.wish,
        }
        if streaming:
            with self.sdk.messages.stream(**options) as stream:
                message: anthropic.types.Message = stream.get_final_message()
        else:
            message = self.sdk.messages.create(**options)
        self.history.append({"role": "assistant", "content": message.content})
        blocks: list[Any] = message.content
        return Seen(
            "".join(block.text for block in blocks if block.type == "text"),
            tuple(
                SeenCall(block.id, block.name, block.input) for block in blocks if block.type == "tool_use"
            ),
            self.headers,
        )


class OpenAiClient(Client):
    @cached_property
    def sdk(self) -> openai.OpenAI:
        client = openai.DefaultHttpxClient(**self._http)
        return openai.OpenAI(base_url=f"{self.url}/v1", api_key=self.key, max_retries=0, http_client=client)

    def _with_history(self, field: str) -> dict[str, Any]:
        """As `extra_body`: elsewhere the SDK compares each value with all its types, which takes longer than all
        that is tested."""
        return {**self.wish, "extra_body": {**self.wish.get("extra_body", {}), field: self.history}}


class ChatClient(OpenAiClient):
    """It sends back every field of an answer, those that OpenAI does not have too."""

    wish: dict[str, Any] = {"reasoning_effort": "medium"}

    def give(self, calls: tuple[SeenCall, ...], streaming: bool) -> Seen:
        self.history += [
            {"role": "tool", "tool_call_id": call.id, "content": result_of(call.arguments)} for call in calls
        ]
        return self._ask(streaming)

    def _ask(self, streaming: bool) -> Seen:
        parameters = {"parameters": TOOL_SCHEMA}
        options: dict[str, Any] = {
            "model": self.model,
            "tools": [{"type": "function", "function": {"name": name, **parameters}} for name in TOOLS],
            "messages": [],
            **self._with_history("messages"),
        }
        if streaming:
            with self.sdk.chat.completions.stream(**options) as stream:
                message: Any = stream.get_final_completion().choices[0].message
        else:
            message = self.sdk.chat.completions.create(**options).choices[0].message
        self.history.append(self._kept(message))
        return Seen(
            message.content or "",
            tuple(
                SeenCall(call.id, call.function.name, decode(call.function.arguments))
                for call in message.tool_calls or ()
            ),
            self.headers,
        )

    def _kept(self, message: Any) -> dict[str, Any]:
        kept: dict[str, Any] = message.model_dump(exclude_none=True, exclude={"parsed"})
        for call in kept.get("tool_calls", ()):
            call["function"].pop("parsed_arguments", None)
            call.pop("index", None)
        return kept


class ForgetfulChatClient(ChatClient):
    """It keeps what OpenAI's own Chat has: text and calls. What else came is gone."""

    def _kept(self, message: Any) -> dict[str, Any]:
        kept: dict[str, Any] = {"role": "assistant", "content": message.content}
        if message.tool_calls:
            kept["tool_calls"] = [
                {
                    "id": call.id,
                    "type": "function",
                    "function": {"name": call.function.name, "arguments": call.function.arguments},
                }
                for call in message.tool_calls
            ]
        return kept


class ResponsesClient(OpenAiClient):
    wish: dict[str, Any] = {
        "reasoning": {"effort": "medium", "summary": "auto"},
        "include": ["reasoning.encrypted_content"],
        "store": False,
    }

    def give(self, calls: tuple[SeenCall, ...], streaming: bool) -> Seen:
        self.history += [
            {"type": "function_call_output", "call_id": call.id, "output": result_of(call.arguments)}
            for call in calls
        ]
        return self._ask(streaming)

    def _ask(self, streaming: bool) -> Seen:
        options: dict[str, Any] = {
            "model": self.model,
            "tools": [
                {"type": "function", "name": name, "parameters": TOOL_SCHEMA, "strict": False}
                for name in TOOLS
            ],
            **self._with_history("input"),
        }
        if streaming:
            # By hand: the SDK's own helper copies the whole response with every event.
            events = self.sdk.responses.create(**options, stream=True)
            response: Any = next(event.response for event in events if event.type == "response.completed")
            events.close()
        else:
            response = self.sdk.responses.create(**options)
        self._remember(response)
        return Seen(
            response.output_text,
            tuple(
                SeenCall(item.call_id, item.name, decode(item.arguments))
                for item in response.output
                if item.type == "function_call"
            ),
            self.headers,
        )

    def _remember(self, response: Any) -> None:
        self.history += [item.to_dict() for item in response.output]


class GeminiClient(Client):
    wish: dict[str, Any] = {
        "thinking_config": types.ThinkingConfig(
            include_thoughts=True, thinking_level=types.ThinkingLevel.MEDIUM
        )
    }

    @cached_property
    def sdk(self) -> genai.Client:
        options = types.HttpOptions(
            base_url=self.url, client_args=self._http, async_client_args={"verify": False}
        )
        return genai.Client(api_key=self.key, http_options=options)

    def say(self, text: str, streaming: bool) -> Seen:
        self.history.append(types.Content(role="user", parts=[types.Part(text=text)]))
        return self._ask(streaming)

    def give(self, calls: tuple[SeenCall, ...], streaming: bool) -> Seen:
        parts = [
            types.Part(
                function_response=types.FunctionResponse(
                    id=call.id, name=call.name, response={"output": result_of(call.arguments)}
                )
            )
            for call in calls
        ]
        self.history.append(types.Content(role="user", parts=parts))
        return self._ask(streaming)

    def _ask(self, streaming: bool) -> Seen:
        declarations = [
            types.FunctionDeclaration(name=name, parameters_json_schema=TOOL_SCHEMA) for name in TOOLS
        ]
        options: dict[str, Any] = {
            "model": self.model,
            "contents": self.history,
            "config": types.GenerateContentConfig(
                tools=[types.Tool(function_declarations=declarations)],
                automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
                **self.wish,
            ),
        }
        parts: list[types.Part] = []
        if streaming:
            for chunk in self.sdk.models.generate_content_stream(**options):
                parts += _parts(chunk)
        else:
            parts += _parts(self.sdk.models.generate_content(**options))
        self.history.append(types.Content(role="model", parts=parts))
        calls = [part.function_call for part in parts if part.function_call is not None]
        return Seen(
            "".join(part.text or "" for part in parts if not part.thought),
            tuple(SeenCall(call.id or "", call.name or "", call.args or {}) for call in calls),
            self.headers,
        )


def _parts(response: types.GenerateContentResponse) -> list[types.Part]:
    content = response.candidates[0].content if response.candidates else None
    return list(content.parts or ()) if content is not None else []


class Undemanding(AnthropicClient):
    wish: dict[str, Any] = {}


class Adaptive(AnthropicClient):
    wish: dict[str, Any] = {"thinking": {"type": "adaptive"}}


class UndemandingChat(ForgetfulChatClient):
    wish: dict[str, Any] = {}


class SwitchedChat(ForgetfulChatClient):
    """As Kimi Code's provider `kimi` asks: no effort, but a switch."""

    wish: dict[str, Any] = {"extra_body": {"thinking": {"type": "enabled", "keep": "all"}}}


class UndemandingResponses(ResponsesClient):
    """OpenAI's SDK as its first example has it: the server stores by default, and nothing is included."""

    wish: dict[str, Any] = {}


class ChainedResponses(UndemandingResponses):
    """It sends only what is new, and the id of the answer before."""

    last = ""

    def _ask(self, streaming: bool) -> Seen:
        self.wish = {"previous_response_id": self.last} if self.last else {}
        return super()._ask(streaming)

    def _remember(self, response: Any) -> None:
        self.last = response.id
        self.history = []


class UndemandingGemini(GeminiClient):
    wish: dict[str, Any] = {}


class Disabled(AnthropicClient):
    wish: dict[str, Any] = {"thinking": {"type": "disabled"}}


class HidingGemini(GeminiClient):
    """It says how much to think, and not that it wants to see it."""

    wish: dict[str, Any] = {
        "thinking_config": types.ThinkingConfig(thinking_level=types.ThinkingLevel.MEDIUM)
    }


UNDEMANDING: Final[dict[str, type[Client]]] = {
    "messages-undemanding": Undemanding,
    "messages-disabled": Disabled,
    "messages-adaptive": Adaptive,
    "chat-undemanding": UndemandingChat,
    "chat-switched": SwitchedChat,
    "responses-undemanding": UndemandingResponses,
    "responses-chained": ChainedResponses,
    "gemini-undemanding": UndemandingGemini,
    "gemini-hiding": HidingGemini,
}
"""Clients that say nothing of how much to think, or nothing that names an effort."""

CLIENTS: Final[dict[str, type[Client]]] = {
    "anthropic": AnthropicClient,
    "openai-chat": ChatClient,
    "openai-chat-forgetful": ForgetfulChatClient,
    "openai-responses": ResponsesClient,
    "gemini": GeminiClient,
}
