"""Fields of the neutral form that this dialect has no place for."""

from __future__ import annotations

from typing import Final

from wireglot_core.dialects.common_losses import NO_RESULTS, NO_SAFEGUARDS, OTHER_ANSWERS
from wireglot_core.dialects.gemini_interactions.names import OWN
from wireglot_core.dialects.lost_fields import Carries, Lost, LostFields
from wireglot_core.ir.content import Citation, Media, Message, Reasoning, Text, ToolCall, ToolResult
from wireglot_core.ir.outcome import Response, Stop
from wireglot_core.ir.request import (
    UNNAMED_FORMAT,
    OutputFormat,
    Request,
    Sampling,
    Thinking,
    Tool,
    ToolChoice,
)
from wireglot_core.ir.stream import Finish

_NO_FIELD: Final = "the Interactions API has no such field"
_CACHED: Final = Lost("cache_marker", "dropped", "Gemini caches implicitly")
_NAMESPACE: Final = Lost("tool.namespace", "dropped", "functions have no namespaces")
NO_LOGPROBS: Final = Lost("logprobs", "dropped", "no log probabilities")

LOST: Final = LostFields(
    OWN,
    {
        Request: Carries(
            "model messages tools tool_choice max_tokens stop sampling thinking output stream metadata"
            " service_tier",
            parallel_tools=Lost(
                "parallel_tools", "dropped", "parallel calls cannot be switched off", usual=(True,)
            ),
            verbosity=Lost("verbosity", "dropped", "no such setting"),
            user=Lost("user", "dropped", "end users are not named"),
            cache=_CACHED,
            cache_key=Lost("cache_key", "dropped", "Gemini caches implicitly"),
            safeguards=NO_SAFEGUARDS,
        ),
        Sampling: Carries(
            "temperature top_p seed",
            top_k=Lost("sampling.top_k", "dropped", _NO_FIELD),
            frequency_penalty=Lost("sampling.frequency_penalty", "dropped", _NO_FIELD),
            presence_penalty=Lost("sampling.presence_penalty", "dropped", _NO_FIELD),
            candidates=Lost("candidates", "dropped", _NO_FIELD, usual=(1,)),
            logprobs=Lost("logprobs", "dropped", _NO_FIELD),
            top_logprobs=Lost("logprobs", "dropped", _NO_FIELD),
        ),
        Message: Carries("role content", name=Lost("message.name", "dropped", "steps have no names")),
        Text: Carries(
            "text citations signature",
            cache=_CACHED,
            refusal=Lost("refusal", "approximated", "a refusal is plain text"),
            logprobs=NO_LOGPROBS,
        ),
        Citation: Carries(
            "url title start end native",
            quote=Lost("citations", "approximated", "without the words of the source", whole=True),
            extra="citations",
        ),
        Reasoning: Carries("text signature redacted minter"),
        ToolCall: Carries(
            "id name arguments signature",
            cache=_CACHED,
            namespace=_NAMESPACE,
            kind=Lost(
                "tool.custom", "approximated", "freeform input becomes one string argument", whole=True
            ),
        ),
        ToolResult: Carries(
            "call_id content is_error name",
            cache=_CACHED,
            kind=Lost("tool.custom", "approximated", "the result of a freeform tool", whole=True),
        ),
        Media: Carries("kind mime data text url file_id name detail signature", cache=_CACHED),
        Tool: Carries(
            "name description schema kind grammar native",
            strict=Lost("tool.strict", "dropped", "no such switch for one function", usual=(False,)),
            namespace=_NAMESPACE,
            deferred=Lost("tool.deferred", "dropped", "every tool is loaded"),
            cache=_CACHED,
        ),
        ToolChoice: Carries("mode only hosted"),
        Thinking: Carries(
            "mode effort display", budget=Lost("thinking.budget", "dropped", "levels have no budget")
        ),
        OutputFormat: Carries(
            "kind schema",
            strict=Lost(
                "output_format.strict",
                "dropped",
                "a schema is always a strong hint, never more",
                usual=(False,),
            ),
            name=Lost("output_format", "approximated", "a format has no name", usual=(UNNAMED_FORMAT,)),
            description=Lost("output_format", "dropped", "a format has no description", usual=("",)),
            bare=Lost("output_format", "approximated", "the value comes in quotes"),
        ),
        Stop: Carries(
            "reason raw dialect",
            sequence=Lost("stop_sequence", "dropped", "the matching sequence is not reported"),
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
