"""What may be ignored in silence, by name, and why. Everything else is carried or declared."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple

from wireglot_core.ir.loss import Loss


class Ignored(NamedTuple):
    """Fields by their paths, in which `*` stands for anything; `values` narrows them to what they say."""

    reason: str
    paths: tuple[str, ...]
    dialect: str = "*"
    target: str = "*"
    kind: str = "*"
    """ "requests", "responses", "streams"; "answers" are the last two."""
    values: tuple[object, ...] = ()
    inside: bool = True
    """Whether what stands in it is ignored with it."""


OPAQUE: Final = frozenset(
    {
        "_meta", "args", "arguments", "input_schema", "parameters", "parametersJsonSchema",
        "parameters_json_schema", "responseJsonSchema", "responseSchema", "response_json_schema",
        "response_schema", "schema",
    }
)  # fmt: skip
"""Fields whose inside is not the dialect's: schemas, which have laws of their own, and values of tools."""

_NOTHING: Final[tuple[object, ...]] = (False, 0, "", [], {}, "{}")
_BYPASSES: Final = (
    "skip_thought_signature_validator",
    "c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I=",
    "Y29udGV4dF9lbmdpbmVlcmluZ19pc190aGVfd2F5X3RvX2dv",
)

IGNORED: Final[tuple[Ignored, ...]] = (
    Ignored(
        "the tag of an object that its other fields or its place make plain",
        ("*type", "object", "response.object", "*.role", "role", "tools[].name",
            "*prompt_cache_breakpoint.mode"),
    ),
    Ignored(
        "addresses of the transport, which every dialect has in its own place",
        ("model", "stream", "stream_options", "responseId", "id", "model_id", "model_version", "store"),
    ),
    Ignored(
        "an id, a name or a number that says again to what something belongs",
        (
            "*[].id", "item_id", "item.id", "*tool_call_id", "*functionResponse.id",
            "*functionResponse.name",
            "*function_response.id", "*function_response.name", "messages[].name", "*[].index", "index",
            "*output_index", "*annotation_index", "sequence_number", "*.audio.id",
        ),
    ),
    Ignored(
        "times, which not every dialect tells",
        ("created", "createTime", "*completed_at", "*created_at", "*audio.expires_at"),
        kind="answers",
    ),
    Ignored("padding, and prices on keep-alives", ("*obfuscation", "p", "cost"), kind="answers"),
    Ignored(
        "sums and parts of counts that are reported themselves",
        (
            "*total_tokens", "usageMetadata.totalTokenCount", "*usage.cache_creation*",
            "*prompt_cache_*_tokens",
            "*text_tokens", "*TokensDetails", "*usage.prompt_tokens", "*usage.completion_tokens",
            "*cached_tokens",
            "choices[].usage",
        ),
        kind="answers",
    ),
    Ignored(
        "nothing, spelled out where everybody takes it for granted",
        ("*is_error", "*strict", "*description", "*disable_parallel_tool_use", "*annotations", "*arguments",
         "include", "instructions", "*.thought", "stop", "messages[].content", "*logprobs", "*summary",
         "parallel_tool_calls", "systemInstruction.parts.text", "*includeThoughts", "*include_thoughts",
         "reasoning.exclude", "tools[].defer_loading"),
        kind="requests", values=_NOTHING,
    ),
    Ignored(
        "the default, spelled out",
        ("n", "*candidateCount", "parallel_tool_calls", "temperature", "*external_web_access"),
        kind="requests", values=(1, 1.0, True),
    ),
    Ignored("the default, spelled out",
        ("*responseModalities", "*tools[].format", "*caller", "thinking.display"),
        values=(["TEXT"], ["text"], {"type": "text"}, {"type": "direct"}, "summarized")),
    Ignored("says again what its effort does", ("reasoning.enabled",), kind="requests", values=(True,)),
    Ignored(
        "a summary, which an effort alone asks for there already",
        ("reasoning.summary", "*includeThoughts"),
        target="anthropic", kind="requests", values=("detailed", True),
    ),
    Ignored("the default, spelled out", ("*.detail",), kind="requests", values=("auto",)),
    Ignored("the default, spelled out", ("*ttl", "tool_choice", "*summary"), values=("5m", "auto")),
    Ignored("the default where no tools are offered", ("tool_choice",), kind="requests", values=("none",)),
    Ignored("a name that somebody had to give", ("*json_schema.name", "*format.name"),
        values=("response",)),
    Ignored(
        "the default, spelled out",
        ("*trafficType", "*inference_geo", "*service_tier", "*serviceTier", "*billing", "*output_format"),
        kind="answers", values=("ON_DEMAND", "not_available", "standard", "default", "png",
            {"payer": "developer"}),
    ),
    Ignored("whether an item was whole, which its content shows", ("*[].status", "item.status")),
    Ignored("says that the answer is JSON, as its schema does", ("*responseMimeType",
        "*response_mime_type")),
    Ignored(
        "why an answer ended, where what was said tells the same",
        ("*stop_reason", "*finish_reason", "*finishReason", "status", "response.status",
            "*incomplete_details",
         "*finishMessage"),
        kind="answers",
    ),
    Ignored(
        "the echo of a request in its answer, for who asked for it",
        (
            "*reasoning", "*text", "*tools", "*tool_choice", "*top_p", "*temperature", "*truncation",
            "*parallel_tool_calls", "*max_output_tokens", "*instructions", "metadata", "*prompt*",
            "*previous_response_id",
            "*conversation", "*safety_identifier", "*max_tool_calls", "output_text", "*user",
            "*background", "*store", "*_penalty",
            "response.metadata",
        ),
        dialect="openai-responses", kind="answers",
    ),
    Ignored(
        "the same words again, for clients that read either",
        (
            "*.reasoning", "*.reasoning_content", "*.reasoning_details", "arguments", "input", "annotation",
            "name", "item.arguments", "item.input", "item.summary", "refusal", "command", "command_index",
            "content_block.input", "part.annotations",
        ),
    ),
    Ignored(
        "the same words again, as Perplexity and Together add them to each delta",
        ("choices[].message", "choices[].text"),
        dialect="openai-chat", kind="streams",
    ),
    Ignored(
        "the same things again, of which each field is looked at",
        ("choices[].delta", "delta", "part", "response.output", "item"),
        inside=False,
    ),
    Ignored(
        "the default, spelled out",
        ("tool_choice.mode", "truncation", "background", "*input_audio.format", "*input_schema", "*.env"),
        kind="requests",
        values=("auto", "disabled", False, "wav", {"type": "object", "properties": {}}, {}),
    ),
    Ignored(
        "reported with the set of tools that it belongs to",
        ("mcp_servers", "input[].tools[]*.defer_loading"),
        kind="requests",
    ),
    Ignored("measurements of the cloud between us and the model", ("amazon-bedrock-*",), kind="answers"),
    Ignored("no arguments, as everybody says them", ("*arguments",), values=("{}", "null")),
    Ignored("always asked for", ("include",), values=(["reasoning.encrypted_content"],)),
    Ignored("spelling of a token that is reported", ("*.bytes", "*.tokenId", "*logprobs.content[].id",
        "*top_logprobs[].id"), kind="answers"),
    Ignored(
        "what a server's own tool was given, reported with its block",
        ("delta.partial_json", "delta.content", "delta.encrypted_content", "delta.more",
         "*annotations[].file*"),
        kind="answers",
    ),
    Ignored("no signature but Google's word for none", ("*thoughtSignature",), values=_BYPASSES),
    Ignored(
        "one of several sides of a citation that are reported as one loss",
        ("*startIndex", "*start_index", "*end_index", "*segment.text", "*publicationDate"),
        kind="answers",
    ),
)  # fmt: skip


_CALLS: Final = ("tool_use", "function_call", "custom_tool_call")


class Elsewhere(NamedTuple):
    """A field that says nothing by itself, because something else in its document says it: nothing else of
    this name is excused."""

    reason: str
    dialect: str
    path: str
    target: str
    holds: Callable[[Any, Iterable[Loss]], bool]
    """Of the document (the frames of a stream), and of what was reported as lost."""


def _allows_every_function(request: Any, _losses: Iterable[Loss]) -> bool:
    """Whether the functions that may be called are all that are offered, and nothing else is."""
    config = request["toolConfig"]["functionCallingConfig"]
    tools = request.get("tools", [])
    offered = [one["name"] for tool in tools for one in tool.get("functionDeclarations", [])]
    return (
        config.get("mode") == "ANY"
        and all(tool.keys() == {"functionDeclarations"} for tool in tools)
        and set(config["allowedFunctionNames"]) == set(offered)
    )


def _loads_every_deferred_tool(request: Any, losses: Iterable[Loss]) -> bool:
    """Whether blocks of the conversation have added all deferred tools, each asked to stand in front."""
    blocks = [
        block
        for message in request["messages"]
        if isinstance(message.get("content"), list)
        for block in message["content"]
        if block.get("type") == "tool_addition"
    ]
    deferred = {tool["name"] for tool in request["tools"] if tool.get("defer_loading")}
    reported = [loss for loss in losses if loss.feature == "tool.position"]
    return deferred <= {block["tool"].get("name") for block in blocks} and len(reported) >= len(blocks)


def _leaves_out_every_call(frames: Any, losses: Iterable[Loss]) -> bool:
    """Whether every call of the stream was reported as left out, as its token limit has cut it."""
    opened = [
        frame
        for frame in frames
        if isinstance(frame, dict)
        and frame.get("type") in ("content_block_start", "response.output_item.added")
        and (frame.get("content_block") or frame.get("item") or {}).get("type") in _CALLS
    ]
    cut = [loss for loss in losses if loss.detail == "the limit was reached inside the call"]
    return len(opened) == len(cut)


ELSEWHERE: Final[tuple[Elsewhere, ...]] = (
    Elsewhere(
        "a list of all functions allows what no list does",
        "gemini",
        "toolConfig.functionCallingConfig.allowedFunctionNames",
        "anthropic",
        _allows_every_function,
    ),
    Elsewhere(
        "a tool that was added on the way is deferred no more, and reported to be declared in front",
        "anthropic",
        "tools[].defer_loading",
        "*",
        _loads_every_deferred_tool,
    ),
    Elsewhere(
        "the id of a call that was reported to be left out",
        "anthropic",
        "content_block.id",
        "gemini",
        _leaves_out_every_call,
    ),
    Elsewhere(
        "the id of a call that was reported to be left out",
        "openai-responses",
        "item.call_id",
        "gemini",
        _leaves_out_every_call,
    ),
)
