"""Fields of the neutral form that this dialect has no place for."""

from __future__ import annotations

from typing import Final

from wireglot_core.dialects.common_losses import NO_RESULTS, NO_SAFEGUARDS, OTHER_ANSWERS
from wireglot_core.dialects.lost_fields import Carries, Lost, LostFields
from wireglot_core.dialects.openai_responses.spelling import NAME
from wireglot_core.ir.content import Citation, Media, Message, Reasoning, Text, ToolCall, ToolResult
from wireglot_core.ir.outcome import Response, Stop
from wireglot_core.ir.request import OutputFormat, Request, Sampling, Thinking, Tool, ToolChoice
from wireglot_core.ir.stream import Finish

_NO_SETTING: Final = "no such setting here"
_NO_BREAKPOINT: Final = Lost("cache_marker", "dropped", "answers take no breakpoint")
_TOOLS_CACHE: Final = Lost("cache_marker", "dropped", "tools take no breakpoint")

LOST: Final = LostFields(
    NAME,
    {
        Request: Carries(
            "model messages tools tool_choice parallel_tools max_tokens stop sampling thinking output"
            " verbosity stream user metadata service_tier cache_key",
            safeguards=NO_SAFEGUARDS,
            cache=Lost("cache_marker", "approximated", "caching is implicit here"),
        ),
        Sampling: Carries(
            "temperature top_p top_logprobs",
            top_k=Lost("sampling.top_k", "dropped", _NO_SETTING),
            frequency_penalty=Lost("sampling.frequency_penalty", "dropped", _NO_SETTING),
            presence_penalty=Lost("sampling.presence_penalty", "dropped", _NO_SETTING),
            seed=Lost("sampling.seed", "dropped", _NO_SETTING),
            candidates=Lost("candidates", "dropped", _NO_SETTING, usual=(1,)),
            logprobs=Lost("logprobs", "approximated", "expressed by not requesting them", usual=(True,)),
        ),
        Message: Carries("role content", name=Lost("message.name", "dropped", "messages have no name here")),
        Text: Carries(
            "text signature cache",
            refusal=Lost(
                "refusal", "approximated", "sent as plain text: only an answer can refuse", whole=True
            ),
            citations=Lost("citations", "dropped", "only answers cite"),
            logprobs=Lost("logprobs", "dropped", "only answers have them"),
        ),
        Citation: Carries(
            "url title start end native",
            quote=Lost("citations", "dropped", "a citation has no quote here"),
            extra="citations",
        ),
        Reasoning: Carries("text signature redacted minter"),
        ToolCall: Carries(
            "id name arguments kind namespace signature",
            cache=Lost("cache_marker", "dropped", "calls take no breakpoint"),
        ),
        ToolResult: Carries(
            "call_id content name kind cache",
            is_error=Lost("tool_result.error", "approximated", "stated in the text: Error:"),
        ),
        Media: Carries("kind mime data text url file_id name detail signature cache"),
        Tool: Carries(
            "name description schema strict kind grammar namespace deferred native", cache=_TOOLS_CACHE
        ),
        ToolChoice: Carries("mode only hosted"),
        Thinking: Carries(
            "mode effort display", budget=Lost("thinking.budget", "dropped", "only an effort can be set")
        ),
        OutputFormat: Carries("kind schema name description strict bare"),
        Stop: Carries(
            "reason raw dialect",
            sequence=Lost("stop_sequence", "dropped", "this dialect does not report which one matched"),
            extra="stop_details",
        ),
        Response: Carries(
            "id model content stop usage created service_tier",
            others=OTHER_ANSWERS,
            safeguard_results=NO_RESULTS,
            extra="response.extra",
        ),
        Finish: Carries("stop usage service_tier", safeguard_results=NO_RESULTS, extra="response.extra"),
    },
)
"""Of requests and, where they do not differ, of answers."""

LOST_OF_FREEFORM: Final = LostFields(
    NAME,
    {
        Tool: Carries(
            "name description kind grammar namespace deferred native",
            cache=_TOOLS_CACHE,
            schema=Lost("tool.schema", "dropped", "freeform tools have no schema", usual=({},)),
            strict=Lost("tool.strict", "dropped", "freeform tools are never strict", usual=(False,)),
        ),
    },
)

LOST_IN_ANSWERS: Final = LostFields(
    NAME,
    {
        Text: Carries("text refusal citations logprobs signature", cache=_NO_BREAKPOINT),
        ToolCall: Carries("id name arguments kind namespace signature", cache=_NO_BREAKPOINT),
        Media: Carries("kind mime data text url file_id name detail signature", cache=_NO_BREAKPOINT),
    },
)

LOST_OF_REFUSALS: Final = LostFields(
    NAME,
    {
        Text: Carries(
            "text refusal signature",
            cache=Lost("cache_marker", "dropped", "a refusal takes no breakpoint"),
            citations=Lost("citations", "dropped", "a refusal cites nothing"),
            logprobs=Lost("logprobs", "dropped", "a refusal has none"),
        ),
    },
)

# Where code decides whether it is lost

NO_RESULTS_IN_ANSWERS: Final = Lost("content.position", "dropped", "a tool result in an answer")
