"""Fields of the neutral form that this dialect has no place for."""

from __future__ import annotations

from typing import Final

from wireglot_core.dialects.anthropic.client_tools import TOOLSETS
from wireglot_core.dialects.anthropic.names import NAME
from wireglot_core.dialects.common_losses import OTHER_ANSWERS
from wireglot_core.dialects.lost_fields import Carries, Lost, LostFields
from wireglot_core.ir.content import Citation, Media, Message, Reasoning, Text, ToolCall, ToolResult
from wireglot_core.ir.loss import Loss, feature_of
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

_NO_PARAMETER: Final = "no such parameter"
_NAMESPACE: Final = Lost("tool.namespace", "dropped", "no namespaces")
_CALLS_NAMESPACE: Final = _NAMESPACE._replace(usual=tuple(TOOLSETS))
_REFUSAL: Final = Lost("refusal", "approximated", "sent as text")
_NO_BREAKPOINT: Final = Lost("cache_marker", "dropped", "answers take no breakpoint")
NO_LOGPROBS: Final = Lost("logprobs", "dropped", "no logprobs")

LOST: Final = LostFields(
    NAME,
    {
        Request: Carries(
            "model messages tools tool_choice parallel_tools max_tokens stop sampling thinking output stream"
            " user metadata service_tier cache safeguards",
            cache_key=Lost("cache_key", "dropped", "no cache keys"),
            verbosity=Lost("verbosity", "dropped", "no verbosity setting"),
        ),
        Sampling: Carries(
            "temperature top_p top_k",
            frequency_penalty=Lost("sampling.frequency_penalty", "dropped", _NO_PARAMETER),
            presence_penalty=Lost("sampling.presence_penalty", "dropped", _NO_PARAMETER),
            seed=Lost("sampling.seed", "dropped", _NO_PARAMETER),
            candidates=Lost("candidates", "dropped", _NO_PARAMETER, usual=(1,)),
            logprobs=Lost("logprobs", "dropped", _NO_PARAMETER),
            top_logprobs=Lost("logprobs", "dropped", _NO_PARAMETER),
        ),
        Message: Carries("role content", name=Lost("message.name", "dropped", "messages have no name")),
        Text: Carries(
            "text citations cache",
            refusal=_REFUSAL,
            logprobs=NO_LOGPROBS,
            signature=Lost(feature_of, "dropped", "text carries no state"),
        ),
        Citation: Carries("url title quote start end native"),
        Reasoning: Carries("text signature redacted minter"),
        ToolCall: Carries(
            "id name arguments kind cache",
            namespace=_CALLS_NAMESPACE,
            signature=Lost("reasoning.signature", "dropped", "calls carry no signature"),
        ),
        ToolResult: Carries(
            "call_id content is_error name cache",
            kind=Lost("tool.custom", "approximated", "sent as the result of a function"),
        ),
        Media: Carries(
            "kind mime data text url file_id name cache",
            detail=Lost("image.detail", "dropped", "no detail setting", usual=("auto",)),
            signature=Lost("reasoning.signature", "dropped", "media carry no signature"),
        ),
        Tool: Carries(
            "name description schema strict kind grammar deferred native cache", namespace=_NAMESPACE
        ),
        ToolChoice: Carries("mode only hosted"),
        Thinking: Carries("mode effort budget display"),
        OutputFormat: Carries(
            "kind schema strict bare",
            name=Lost("output_format", "approximated", "a format has no name", usual=(UNNAMED_FORMAT,)),
            description=Lost("output_format", "approximated", "a format has no description", usual=("",)),
        ),
        Stop: Carries("reason raw dialect sequence", extra="stop_details"),
        Response: Carries(
            "id model content stop usage created service_tier safeguard_results",
            others=OTHER_ANSWERS,
            extra="response.extra",
        ),
        Finish: Carries("stop usage service_tier safeguard_results", extra="response.extra"),
    },
)
"""Of requests and, where they do not differ, of answers."""

LOST_IN_ANSWERS: Final = LostFields(
    NAME,
    {
        Text: Carries(
            "text citations signature", refusal=_REFUSAL, logprobs=NO_LOGPROBS, cache=_NO_BREAKPOINT
        ),
        ToolCall: Carries(
            "id name arguments kind signature", namespace=_CALLS_NAMESPACE, cache=_NO_BREAKPOINT
        ),
    },
)

# Where code decides whether it is lost

NOTHING_CITED: Final = Lost("citations", "dropped", "there is no text they support")
NO_CONTENT: Final = Lost("reasoning.redacted", "dropped", "no content remains")
UNSIGNED_THINKING: Final = Lost("reasoning.text", "dropped", "thinking is only accepted with its signature")
WRAPPED_INPUT: Final = Lost("tool.custom", "emulated", 'the text is in {"input": ...}')


def no_tier(tier: str) -> Loss:
    return Loss("$.service_tier", "service_tier", "dropped", f"no tier {tier}")
