"""The vendors' own SDKs as judges: they get our bytes through a mock transport and tell what they understood."""

from collections.abc import Callable
from functools import cache
from typing import Any

import anthropic
import httpx2
import msgspec
import openai
from google import genai
from google.genai import types

from wireglot_core.ir.content import Reasoning, Text, ToolCall
from wireglot_core.ir.outcome import Response
from wireglot_core.ir.verdict import is_cut
from wireglot_core.traces.canonical import canonical_arguments
from wireglot_core.wire.json import BadJson, decode, encode, encode_text
from wireglot_core.wire.sse import SseDecoder


class Understood(msgspec.Struct, frozen=True):
    """What a user of an SDK has in hand at the end of an answer."""

    prose: str
    reasoning: str
    calls: tuple[tuple[str, str], ...]


class Failed(Exception):
    """The SDK reported an error, as it should for a stream that carries one."""


def understood(response: Response) -> Understood:
    """The same of a response of ours."""
    parts = response.content
    return Understood(
        "".join(part.text for part in parts if isinstance(part, Text)),
        "".join(part.text for part in parts if isinstance(part, Reasoning)),
        tuple((part.name, _arguments(part)) for part in parts if isinstance(part, ToolCall)),
    )


def _arguments(call: ToolCall) -> str:
    return canonical_arguments(call.arguments) if call.kind == "function" else call.arguments


class _Wire:
    """What the mock transport answers next. Clients are costly to make, so each SDK has one for all cases."""

    content = b""
    kind = ""

    def answer(self, request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, headers={"content-type": self.kind}, content=self.content)

    def load(self, content: bytes, stream: bool) -> None:
        self.content = content
        self.kind = "text/event-stream" if stream else "application/json"


_WIRE = _Wire()


@cache
def _http() -> httpx2.Client:
    return httpx2.Client(transport=httpx2.MockTransport(_WIRE.answer))


# Anthropic


@cache
def _anthropic_client() -> anthropic.Anthropic:
    return anthropic.Anthropic(api_key="k", http_client=_http(), max_retries=0)


def _anthropic(content: bytes, stream: bool) -> anthropic.Anthropic:
    _WIRE.load(content, stream)
    return _anthropic_client()


def _anthropic_message(message: Any) -> Understood:
    prose, reasoning, calls = "", "", []
    for block in message.content:
        if block.type == "text":
            prose += block.text
        elif block.type == "thinking":
            reasoning += block.thinking
        elif block.type == "tool_use":
            calls.append((block.name, canonical_arguments(encode_text(block.input))))
    return Understood(prose, reasoning, tuple(calls))


_ANTHROPIC: dict[str, Any] = {"model": "m", "max_tokens": 10, "messages": [{"role": "user", "content": "x"}]}


def anthropic_stream(data: bytes) -> Understood:
    try:
        with _anthropic(data, True).messages.stream(**_ANTHROPIC) as stream:
            for _ in stream:
                pass
            final = stream.get_final_message()
            reported = _anthropic_message(final)
    except anthropic.APIStatusError as error:
        raise Failed(str(error)) from error

    if final.stop_reason in _INTERRUPTED and final.content and final.content[-1].type == "tool_use":
        events = [decode(each.data) for each in SseDecoder().feed(data)]
        place = len(final.content) - 1
        deltas = [event["delta"] for event in events if event.get("index") == place and "delta" in event]
        arguments = "".join(delta.get("partial_json", "") for delta in deltas)
        if not arguments or is_cut(arguments):
            return msgspec.structs.replace(reported, calls=reported.calls[:-1])
    return reported


_INTERRUPTED = ("max_tokens", "model_context_window_exceeded", "refusal", "pause_turn")
"""The last call of an answer that ends so may be cut off, as the vendor's are: clients do not run it."""


def anthropic_response(body: dict[str, Any]) -> Understood:
    return _anthropic_message(_anthropic(encode(body), False).messages.create(**_ANTHROPIC))


# OpenAI Chat


@cache
def _openai_client() -> openai.OpenAI:
    return openai.OpenAI(api_key="k", http_client=_http(), max_retries=0)


def _openai(content: bytes, stream: bool) -> openai.OpenAI:
    _WIRE.load(content, stream)
    return _openai_client()


def _chat_message(message: Any, *, is_cut: bool = False) -> Understood:
    """`is_cut`: the helper has raised that the answer was cut short, and a client runs no unfinished call."""
    calls = []
    made = list(message.tool_calls or [])
    if is_cut and made and made[-1].type == "function" and not _is_whole(made[-1].function.arguments):
        del made[-1]
    for call in made:
        if call.type == "custom":
            calls.append((call.custom.name, call.custom.input))
        else:
            calls.append((call.function.name, canonical_arguments(call.function.arguments)))
    # Hosts spell it in two ways, and a client of the same dialect gets it as its host spelled it.
    reasoning = getattr(message, "reasoning_content", None) or getattr(message, "reasoning", None) or ""
    return Understood((message.content or "") + (message.refusal or ""), reasoning, tuple(calls))


def _is_whole(arguments: str) -> bool:
    try:
        decode(arguments.encode())
    except BadJson:
        return False
    return True


_CHAT: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "x"}]}


def chat_stream(data: bytes) -> Understood:
    if b'"type":"custom"' in data:
        return _chat_chunks(data)
    try:
        with _openai(data, True).chat.completions.stream(**_CHAT) as stream:
            for _ in stream:
                pass
            return _chat_message(stream.get_final_completion().choices[0].message)
    except (openai.LengthFinishReasonError, openai.ContentFilterFinishReasonError) as cut:
        unfinished: Any = cut.completion  # how the helper tells of an answer that was cut short
        return _chat_message(unfinished.choices[0].message, is_cut=True)
    except openai.APIError as error:
        raise Failed(str(error)) from error


def _chat_chunks(data: bytes) -> Understood:
    """By hand, as the SDK's own helper crashes on any freeform call in a stream (openai 3.49)."""
    prose = ""
    calls: dict[int, tuple[str, str]] = {}
    for chunk in _openai(data, True).chat.completions.create(**_CHAT, stream=True):
        for choice in chunk.choices:
            prose += choice.delta.content or ""
            for call in choice.delta.tool_calls or []:
                name, text = calls.get(call.index, ("", ""))
                custom = getattr(call, "custom", None)
                if custom is not None:
                    more = custom if isinstance(custom, dict) else custom.model_dump()
                    calls[call.index] = (name + (more.get("name") or ""), text + (more.get("input") or ""))
                elif call.function is not None:
                    calls[call.index] = (
                        name + (call.function.name or ""),
                        text + (call.function.arguments or ""),
                    )
    return Understood(prose, "", tuple(calls[index] for index in sorted(calls)))


def chat_response(body: dict[str, Any]) -> Understood:
    return _chat_message(_openai(encode(body), False).chat.completions.create(**_CHAT).choices[0].message)


# OpenAI Responses


def _responses_output(response: Any) -> Understood:
    prose, reasoning, calls = "", "", []
    for item in response.output:
        if item.type == "message":
            prose += "".join(
                part.text if part.type == "output_text" else part.refusal for part in item.content
            )
        elif item.type == "reasoning":
            reasoning += "\n\n".join(part.text for part in (*item.summary, *(item.content or ())))
        elif item.type == "function_call" and item.status != "incomplete":  # one that was cut off is not run
            calls.append((item.name, canonical_arguments(item.arguments)))
        elif item.type == "custom_tool_call":
            calls.append((item.name, item.input))
        elif item.type in _CLIENT_CALLS:
            calls.append(_client_call(item.model_dump(exclude_none=True)))
    return Understood(prose, reasoning, tuple(calls))


_CLIENT_CALLS = {
    "shell_call": "action",
    "local_shell_call": "action",
    "apply_patch_call": "operation",
    "computer_call": "action",
    "tool_search_call": "arguments",
}
"""Items of tools that the client runs, and where they say what to do."""


def _client_call(item: dict[str, Any]) -> tuple[str, str]:
    asked = item.get(_CLIENT_CALLS[item["type"]]) or {"actions": item["actions"]}
    if item["type"] == "local_shell_call":
        asked = {key: value for key, value in asked.items() if key != "type" and value != {}}
    return item["type"].removesuffix("_call"), canonical_arguments(encode_text(asked))


def responses_stream(data: bytes) -> Understood:
    final = None
    try:
        with _openai(data, True).responses.stream(model="m", input="x") as stream:
            for event in stream:
                if event.type in ("response.completed", "response.incomplete", "response.failed"):
                    final = event.response
    except openai.APIError as error:
        raise Failed(str(error)) from error
    assert final is not None, "no terminal event"
    if final.status == "failed":
        raise Failed(str(final.error))
    return _responses_output(final)


def responses_response(body: dict[str, Any]) -> Understood:
    return _responses_output(_openai(encode(body), False).responses.create(model="m", input="x"))


# Gemini


@cache
def _gemini_client() -> genai.Client:
    return genai.Client(api_key="k", http_options=types.HttpOptions(httpx_client=_http()))


def _gemini(content: bytes, stream: bool) -> genai.Client:
    _WIRE.load(content, stream)
    return _gemini_client()


def _gemini_chunks(chunks: list[Any]) -> Understood:
    prose, reasoning, calls = "", "", []
    for chunk in chunks:
        for candidate in (chunk.candidates or [])[:1]:
            for part in (candidate.content and candidate.content.parts) or []:
                if part.function_call:
                    arguments = encode_text(part.function_call.args or {})
                    calls.append((part.function_call.name or "", canonical_arguments(arguments)))
                elif part.text:
                    if part.thought:
                        reasoning += part.text
                    else:
                        prose += part.text
    return Understood(prose, reasoning, tuple(calls))


def gemini_stream(data: bytes) -> Understood:
    try:
        stream = _gemini(data, True).models.generate_content_stream(model="m", contents="x")
        return _gemini_chunks(list(stream))
    except genai.errors.APIError as error:
        raise Failed(str(error)) from error


def gemini_response(body: dict[str, Any]) -> Understood:
    return _gemini_chunks([_gemini(encode(body), False).models.generate_content(model="m", contents="x")])


def _once(read: Callable[[bytes], Understood]) -> Callable[[bytes], Understood]:
    """Cuts at many places often leave the same bytes, and an SDK takes milliseconds to read them."""

    @cache
    def outcome(data: bytes) -> Understood | str:
        try:
            return read(data)
        except Failed as failed:
            return str(failed)

    def read_once(data: bytes) -> Understood:
        found = outcome(data)
        if isinstance(found, str):
            raise Failed(found)
        return found

    return read_once


STREAMS = {
    "anthropic": _once(anthropic_stream),
    "openai-chat": _once(chat_stream),
    "openai-responses": _once(responses_stream),
    "gemini": _once(gemini_stream),
}
RESPONSES = {
    "anthropic": anthropic_response,
    "openai-chat": chat_response,
    "openai-responses": responses_response,
    "gemini": gemini_response,
}
