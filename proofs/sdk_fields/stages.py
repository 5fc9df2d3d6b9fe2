"""The conversations around a sample: a result has its call, a choice has its tools."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, Literal, NamedTuple, TypedDict

import anthropic.types.beta.message_create_params as anthropic_params
import openai.types.chat.completion_create_params as chat_params
import openai.types.responses.response_create_params as responses_params
from anthropic.types.beta import BetaMessage
from google.genai import interactions
from google.genai import types as google
from ollama import _types as ollama
from openai.types.chat import ChatCompletion
from openai.types.responses import Response

Document = dict[str, Any]
_SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}}


class GeminiRequest(TypedDict, total=False):
    """The body of generateContent; the SDK has its fields only spread over a configuration."""

    contents: list[google.Content]
    systemInstruction: google.Content
    tools: list[google.Tool]
    toolConfig: google.ToolConfig
    safetySettings: list[google.SafetySetting]
    generationConfig: google.GenerationConfig
    cachedContent: str
    labels: dict[str, str]


class Endpoint(NamedTuple):
    """A document of one dialect, by the types of its vendor's SDK."""

    dialect: str
    kind: Literal["request", "answer"]
    sdk: str
    root: type
    stage: Callable[[Document], Document]
    companions: Mapping[str, Document] = MappingProxyType({})
    """What a structure, or one of its fields, is never sent without."""
    echoes: frozenset[str] = frozenset()
    """Fields of an answer that repeat the request: the client has them already."""

    @property
    def name(self) -> str:
        return f"{self.dialect} {self.kind}"


def anthropic_stage(body: Document) -> Document:
    body = {"max_tokens": 9000, **body}
    messages = body["messages"]
    blocks = messages[0].get("content") if messages else None
    if isinstance(blocks, list) and blocks and isinstance(blocks[0], dict):
        kind = blocks[0].get("type", "")
        if kind in ("tool_use", "thinking", "redacted_thinking", "server_tool_use", "mcp_tool_use"):
            body["messages"] = [_ASK, {**messages[0], "role": "assistant"}, *_answer_to(kind, blocks[0])]
        elif kind == "tool_result":
            call = {"type": "tool_use", "id": blocks[0].get("tool_use_id"), "name": "look", "input": {"a": 1}}
            body["messages"] = [_ASK, {"role": "assistant", "content": [call]}, messages[0]]
        elif kind.endswith("_tool_result"):
            name = kind.removesuffix("_tool_result")
            use = "mcp_tool_use" if name == "mcp" else "server_tool_use"
            call = {"type": use, "id": blocks[0].get("tool_use_id"), "name": name, "input": {}}
            if use == "mcp_tool_use":
                call["server_name"] = "text"
            body["messages"] = [_ASK, {"role": "assistant", "content": [call, blocks[0]]}, _ASK]
        elif kind == "text" and blocks[0].get("citations"):
            body["messages"] = [_ASK, {**messages[0], "role": "assistant"}, _ASK]
    if "tool_choice" in body and "tools" not in body:
        body["tools"] = [{"name": "look", "description": "Look.", "input_schema": _SCHEMA}]
    return body


_ASK: Document = {"role": "user", "content": "ask"}


def _answer_to(kind: str, call: Document) -> list[Document]:
    if kind != "tool_use":
        return [_ASK]
    result = {"type": "tool_result", "tool_use_id": call.get("id"), "content": "seen"}
    return [{"role": "user", "content": [result]}]


def chat_stage(body: Document) -> Document:
    body = dict(body)
    message = body["messages"][0]
    match message.get("role"):
        case "tool":
            call = {"id": message.get("tool_call_id"), "type": "function"}
            call["function"] = {"name": "look", "arguments": '{"a": 1}'}
            body["messages"] = [_ASK, {"role": "assistant", "tool_calls": [call]}, message]
        case "assistant":
            calls = message.get("tool_calls") or []
            results = [{"role": "tool", "tool_call_id": each.get("id"), "content": "seen"} for each in calls]
            body["messages"] = [_ASK, message, *(results or [_ASK])]
        case "user":
            pass
        case _:
            body["messages"] = [message, _ASK]
    if {"tool_choice", "parallel_tool_calls"} & body.keys() and "tools" not in body:
        body["tools"] = [{"type": "function", "function": {"name": "look", "parameters": _SCHEMA}}]
    if "function_call" in body and "functions" not in body:
        body["functions"] = [{"name": "look", "parameters": _SCHEMA}]
    return body


def responses_stage(body: Document) -> Document:
    body = {"input": "ask", "model": "model", **body}
    items = body["input"]
    if isinstance(items, list) and items and isinstance(items[0], dict):
        item = items[0]
        kind = item.get("type", "")
        if kind.endswith("_output"):
            body["input"] = [_ASK, _call_for(kind, item), item]
        elif kind in ("function_call", "custom_tool_call"):
            answer = {"type": f"{kind}_output", "call_id": item.get("call_id"), "output": "seen"}
            body["input"] = [_ASK, item, answer]
        else:
            body["input"] = [_ASK, item, _ASK]
    if {"tool_choice", "parallel_tool_calls"} & body.keys() and "tools" not in body:
        body["tools"] = [{"type": "function", "name": "look", "parameters": _SCHEMA, "strict": False}]
    return body


def _call_for(kind: str, item: Document) -> Document:
    call: Document = {"call_id": item.get("call_id"), "type": kind.removesuffix("_output")}
    match call["type"]:
        case "function_call":
            call |= {"name": "look", "arguments": '{"a": 1}'}
        case "custom_tool_call":
            call |= {"name": "look", "input": "text"}
        case "local_shell_call":
            call |= {
                "id": "ls_1",
                "action": {"type": "exec", "command": ["ls"], "env": {}},
                "status": "completed",
            }
        case "shell_call":
            call |= {"action": {"commands": ["ls"]}}
        case "apply_patch_call":
            call |= {"operation": {"type": "delete_file", "path": "a"}, "status": "completed"}
        case "computer_call":
            call |= {
                "id": "cc_1",
                "action": {"type": "wait"},
                "pending_safety_checks": [],
                "status": "completed",
            }
        case "tool_search":
            call |= {"type": "tool_search_call", "arguments": {"query": "text"}, "execution": "client"}
        case _:
            pass
    return call


_MODEL_SAYS = {"functionCall", "thought", "executableCode", "codeExecutionResult"}


def gemini_stage(body: Document) -> Document:
    body = {"contents": [{"role": "user", "parts": [{"text": "ask"}]}], **body}
    contents = body["contents"]
    parts = contents[0].get("parts") or []
    part = parts[0] if parts else {}
    if (
        "functionCall" in part
        or part.get("thought")
        or "executableCode" in part
        or "codeExecutionResult" in part
    ):
        name = part.get("functionCall", {}).get("name") or "look"
        call_id = part.get("functionCall", {}).get("id")
        response = {"name": name, "response": {"output": "seen"}, **({"id": call_id} if call_id else {})}
        after = {"functionResponse": response} if "functionCall" in part else {"text": "ask"}
        body["contents"] = [_SAID, {**contents[0], "role": "model"}, {"role": "user", "parts": [after]}]
    elif "functionResponse" in part:
        response = part["functionResponse"]
        call = {"name": response.get("name", "look"), "args": {"a": 1}}
        if "id" in response:
            call["id"] = response["id"]
        body["contents"] = [_SAID, {"role": "model", "parts": [{"functionCall": call}]}, contents[0]]
    elif "parts" in contents[0]:
        body["contents"] = [{**contents[0], "parts": [{"text": "ask"}, *parts]}]
    if "toolConfig" in body and "tools" not in body:
        body["tools"] = [{"functionDeclarations": [{"name": "look", "parametersJsonSchema": _SCHEMA}]}]
    return body


_SAID: Document = {"role": "user", "parts": [{"text": "ask"}]}
_INLINE: Document = {"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgo="}}


_CONTENT: Final = ("text", "image", "audio", "document", "video")


def interactions_stage(body: Document) -> Document:
    body = {"input": "ask", **body}
    steps = body["input"]
    if isinstance(steps, list) and steps and isinstance(steps[0], dict) and steps[0]["type"] not in _CONTENT:
        step, kind = steps[0], steps[0]["type"]
        if kind == "function_call":
            result = {"type": "function_result", "call_id": step.get("id"), "result": "seen"}
            body["input"] = [_ASK_STEP, step, result]
        elif kind.endswith("_result"):
            call = {"type": f"{kind.removesuffix('_result')}_call", "id": step.get("call_id")}
            if kind == "function_result":
                call |= {"name": step.get("name", "look")}
            elif kind == "mcp_server_tool_result":
                call |= {"name": step.get("name", "look"), "server_name": "text"}
            body["input"] = [_ASK_STEP, {**call, "arguments": {"a": 1}}, step]
            if kind != "function_result":
                body["input"].append(_ASK_STEP)
        else:
            body["input"] = [_ASK_STEP, step, _ASK_STEP]
    if "tool_choice" in body.get("generation_config", {}) and "tools" not in body:
        body["tools"] = [{"type": "function", "name": "look", "parameters": _SCHEMA}]
    return body


_ASK_STEP: Document = {"type": "user_input", "content": [{"type": "text", "text": "ask"}]}


def interactions_answer(answer: Document) -> Document:
    said = {"type": "model_output", "content": [{"type": "text", "text": "said"}]}
    return {"status": "completed", **answer, "steps": [said, *(answer.get("steps") or [])]}


def ollama_stage(body: Document) -> Document:
    body = {**body}
    messages = body.get("messages")
    message = messages[0] if messages else None
    if message is None or "role" not in message:
        body["messages"] = [_ASK]
    elif message.get("tool_calls"):
        name = message["tool_calls"][0]["function"]["name"]
        result = {"role": "tool", "tool_name": name, "content": "seen"}
        body["messages"] = [_ASK, {**message, "role": "assistant"}, result]
    elif message.get("tool_name"):
        call = {"function": {"name": message["tool_name"], "arguments": {"a": 1}}}
        answer = {"content": "seen", **message, "role": "tool"}
        body["messages"] = [_ASK, {"role": "assistant", "tool_calls": [call]}, answer]
    elif "thinking" in message:
        body["messages"] = [_ASK, {"content": "said", **message, "role": "assistant"}, _ASK]
    else:
        body["messages"] = [{"content": "ask", **message, "role": "user"}]
    return body


def ollama_answer(answer: Document) -> Document:
    message = {"content": "said", **(answer.get("message") or {}), "role": "assistant"}
    return {"done": True, "done_reason": "stop", **answer, "message": message}


def anthropic_answer(answer: Document) -> Document:
    return {"stop_reason": "end_turn", "content": [{"type": "text", "text": "said"}], **answer}


def chat_answer(answer: Document) -> Document:
    for choice in answer.get("choices", []):
        if isinstance(choice, dict) and isinstance(choice.get("message"), dict):
            choice["message"].setdefault("content", "said")
            if not isinstance(choice.get("logprobs"), dict):
                choice.pop("logprobs", None)
    return answer


def responses_answer(answer: Document) -> Document:
    said = {"type": "output_text", "text": "said", "annotations": []}
    message = {
        "type": "message",
        "id": "msg_1",
        "role": "assistant",
        "status": "completed",
        "content": [said],
    }
    status = "incomplete" if answer.get("incomplete_details") else answer.get("status") or "completed"
    if answer.get("error"):
        status = "failed"
    return {**answer, "status": status, "output": [message, *(answer.get("output") or [])]}


def gemini_answer(answer: Document) -> Document:
    if "candidates" not in answer:
        answer = {**answer, "candidates": [{}]}
    for candidate in answer["candidates"]:
        content = candidate.setdefault("content", {})
        content["role"] = "model"
        content["parts"] = [{"text": "said"}, *(content.get("parts") or [])]
        candidate.setdefault("finishReason", "STOP")
    return answer


_GEMINI_PARTS: dict[str, Document] = {
    "Part.thought": {"text": "text"},
    "Part.thoughtSignature": {"text": "text", "thought": True},
    "Part.videoMetadata": {"fileData": {"fileUri": "https://example.org/a", "mimeType": "video/mp4"}},
    "Part.mediaResolution": _INLINE,
    "Part.mediaProcessing": _INLINE,
    "Part.speechMetadata": _INLINE,
    "Part.partMetadata": {"text": "text"},
    "FunctionCall": {"name": "look", "args": {"a": 1}},
    "FunctionResponse": {"name": "look", "response": {"output": "seen"}},
    "FunctionDeclaration": {"name": "look", "description": "Look."},
    "Blob": {"mimeType": "image/png", "data": "iVBORw0KGgo="},
    "FileData": {"mimeType": "image/png", "fileUri": "https://example.org/a.png"},
    "Schema": {"type": "OBJECT"},
}
_GROUNDED: dict[str, Document] = {
    "ModalityTokenCount": {"modality": "AUDIO", "tokenCount": 7},
    "GroundingChunk": {"web": {"uri": "https://example.org", "title": "text"}},
    "GroundingChunkWeb": {"uri": "https://example.org", "title": "text"},
    "GroundingSupport": {"segment": {"endIndex": 4, "text": "said"}, "groundingChunkIndices": [0]},
    "Segment": {"endIndex": 4, "text": "said"},
    "GroundingMetadata.groundingSupports": {"groundingChunks": [{"web": {"uri": "https://example.org"}}]},
    "GroundingMetadata.groundingChunks": {
        "groundingSupports": [{"segment": {"endIndex": 4, "text": "said"}, "groundingChunkIndices": [0]}]
    },
}

_CITED: Document = {"url": "https://example.org", "title": "text", "start_index": 1, "end_index": 3}
_CITING: dict[str, Document] = {"AnnotationURLCitation": _CITED}
_INTERACTIONS_PARTS: dict[str, Document] = {
    "ImageContentParam": {"data": "iVBORw0KGgo=", "mime_type": "image/png"},
    "AudioContentParam": {"data": "UklGRg==", "mime_type": "audio/wav"},
    "DocumentContentParam": {"data": "JVBERi0=", "mime_type": "application/pdf"},
    "VideoContentParam": {"data": "AAAAGA==", "mime_type": "video/mp4"},
    "FunctionParam": {"name": "look"},
    "AllowedToolsParam": {"tools": ["look"]},
    "MCPServerParam": {"name": "look", "url": "https://example.org/mcp"},
    "URLCitationParam": _CITED,
    "URLCitation": _CITED,
    "Usage": {"total_input_tokens": 90},
}
_INTERACTION_ECHOES = frozenset(
    {
        "agent",
        "agent_config",
        "cached_content",
        "continuation_ids",
        "environment",
        "generation_config",
        "input",
        "labels",
        "output_audio",
        "output_image",
        "output_text",
        "output_video",
        "previous_interaction_id",
        "response_format",
        "response_mime_type",
        "response_modalities",
        "safety_settings",
        "system_instruction",
        "tools",
        "webhook_config",
    }
)
"""With what the SDK makes of the steps (`output_*`, `continuation_ids`)."""

_SAID_ITEM: Document = {"content": [{"type": "output_text", "text": "said", "annotations": []}]}
_ECHOES = frozenset(
    {
        "background",
        "conversation",
        "image",
        "instructions",
        "max_output_tokens",
        "max_tool_calls",
        "metadata",
        "parallel_tool_calls",
        "previous_response_id",
        "prompt",
        "prompt_cache_key",
        "prompt_cache_options",
        "prompt_cache_retention",
        "reasoning",
        "safety_identifier",
        "temperature",
        "text",
        "tool_choice",
        "tools",
        "top_logprobs",
        "top_p",
        "truncation",
        "user",
    }
)

ENDPOINTS = (
    Endpoint(
        "anthropic", "request", "anthropic", anthropic_params.MessageCreateParamsNonStreaming, anthropic_stage
    ),
    Endpoint("anthropic", "answer", "anthropic", BetaMessage, anthropic_answer),
    Endpoint(
        "openai-chat",
        "request",
        "openai",
        chat_params.CompletionCreateParamsNonStreaming,
        chat_stage,
        {"ChatCompletionAssistantMessageParam": {"content": "text"}},
    ),
    Endpoint("openai-chat", "answer", "openai", ChatCompletion, chat_answer, _CITING),
    Endpoint(
        "openai-responses",
        "request",
        "openai",
        responses_params.ResponseCreateParamsNonStreaming,
        responses_stage,
        {"ResponseOutputMessageParam": _SAID_ITEM, **_CITING},
    ),
    Endpoint(
        "openai-responses",
        "answer",
        "openai",
        Response,
        responses_answer,
        {"ResponseOutputMessage": _SAID_ITEM, **_CITING},
        _ECHOES,
    ),
    Endpoint(
        "gemini",
        "request",
        "google-genai",
        GeminiRequest,
        gemini_stage,
        {**_GEMINI_PARTS, "Content": {"role": "user", "parts": [{"text": "text"}]}},
    ),
    Endpoint(
        "gemini",
        "answer",
        "google-genai",
        google.GenerateContentResponse,
        gemini_answer,
        {**_GEMINI_PARTS, **_GROUNDED},
    ),
    Endpoint(
        "gemini-interactions",
        "request",
        "google-genai",
        interactions.CreateModelInteractionParam,
        interactions_stage,
        _INTERACTIONS_PARTS,
    ),
    Endpoint(
        "gemini-interactions",
        "answer",
        "google-genai",
        interactions.Interaction,
        interactions_answer,
        _INTERACTIONS_PARTS,
        _INTERACTION_ECHOES,
    ),
    Endpoint("ollama", "request", "ollama", ollama.ChatRequest, ollama_stage),
    Endpoint("ollama", "answer", "ollama", ollama.ChatResponse, ollama_answer),
)
