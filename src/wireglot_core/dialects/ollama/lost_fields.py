"""Fields of the neutral form that this dialect has no place for."""

from __future__ import annotations

from typing import Final

from wireglot_core.dialects.common_losses import NO_RESULTS, OTHER_ANSWERS, STATED_ERROR
from wireglot_core.dialects.embeddings import NO_TITLE
from wireglot_core.dialects.lost_fields import Carries, Lost, LostFields
from wireglot_core.dialects.ollama.extras import NAME
from wireglot_core.ir.content import Media, Message, Reasoning, Text, ToolCall, ToolResult
from wireglot_core.ir.embedding import Embedding, EmbeddingInput, EmbeddingRequest, EmbeddingResponse
from wireglot_core.ir.loss import feature_of
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

_NO_FIELD: Final = "Ollama has no such field"
_CACHED: Final = Lost("cache_marker", "dropped", "prompts are cached implicitly")
_NAMESPACE: Final = Lost("tool.namespace", "dropped", "functions have no namespaces")
_REFUSAL: Final = Lost("refusal", "approximated", "a refusal is plain text")
_TEXT_STATE: Final = Lost(feature_of, "dropped", "messages have no state")
_TIER: Final = Lost("service_tier", "dropped", "answers have no tier", usual=("standard",))

LOST: Final = LostFields(
    NAME,
    {
        Request: Carries(
            "model messages tools tool_choice max_tokens stop sampling thinking output stream",
            parallel_tools=Lost("parallel_tools", "dropped", _NO_FIELD, usual=(True,)),
            verbosity=Lost("verbosity", "dropped", _NO_FIELD),
            user=Lost("user", "dropped", _NO_FIELD),
            metadata=Lost("metadata", "dropped", _NO_FIELD),
            service_tier=Lost("service_tier", "dropped", _NO_FIELD),
            cache=Lost("cache_marker", "dropped", _NO_FIELD),
            cache_key=Lost("cache_key", "dropped", _NO_FIELD),
            safeguards=Lost("safeguards", "dropped", _NO_FIELD),
        ),
        Sampling: Carries(
            "temperature top_p top_k frequency_penalty presence_penalty seed logprobs top_logprobs",
            candidates=Lost("candidates", "dropped", _NO_FIELD, usual=(1,)),
        ),
        Message: Carries("role content", name=Lost("message.name", "dropped", "messages have no names")),
        Text: Carries(
            "text",
            cache=_CACHED,
            refusal=_REFUSAL,
            citations=Lost("citations", "dropped", "no citations in requests"),
            logprobs=Lost("logprobs", "dropped", "no logprobs in requests"),
            signature=_TEXT_STATE,
        ),
        Reasoning: Carries(
            "text redacted minter",
            signature=Lost(feature_of, "dropped", "thinking has no state"),
        ),
        ToolCall: Carries(
            "id name arguments",
            kind=Lost(
                "tool.custom", "approximated", "freeform input becomes one string argument", whole=True
            ),
            namespace=_NAMESPACE,
            cache=_CACHED,
            signature=Lost(feature_of, "dropped", "calls have no state"),
        ),
        ToolResult: Carries(
            "call_id content name",
            is_error=STATED_ERROR,
            cache=_CACHED,
            kind=Lost("tool.custom", "approximated", "results do not state their kind", whole=True),
        ),
        Media: Carries(
            "kind mime data text url file_id name",
            signature=Lost(feature_of, "dropped", "media have no state"),
            cache=_CACHED,
            detail=Lost("image.detail", "dropped", "pictures have no detail level", usual=("auto",)),
        ),
        Tool: Carries(
            "name description schema kind grammar native",
            strict=Lost("tool.strict", "dropped", "no such switch", usual=(False,)),
            namespace=_NAMESPACE,
            deferred=Lost("tool.deferred", "dropped", "every tool is loaded"),
            cache=_CACHED,
        ),
        ToolChoice: Carries("mode only hosted"),
        Thinking: Carries(
            "mode effort",
            budget=Lost("thinking.budget", "dropped", "there are levels only"),
            display=Lost("thinking.display", "dropped", "thinking is always shown"),
        ),
        OutputFormat: Carries(
            "kind schema bare",
            name=Lost("output_format", "approximated", "a format has no name", usual=(UNNAMED_FORMAT,)),
            description=Lost("output_format", "dropped", "a format has no description", usual=("",)),
            strict=Lost("output_format.strict", "dropped", "no such switch", usual=(False,)),
        ),
        Stop: Carries(
            "reason raw dialect",
            sequence=Lost("stop_sequence", "dropped", "Ollama does not report which one matched"),
            extra="stop_details",
        ),
        Response: Carries(
            "id model content stop usage created",
            others=OTHER_ANSWERS,
            service_tier=_TIER,
            safeguard_results=NO_RESULTS,
            extra="response.extra",
        ),
        Finish: Carries(
            "stop usage",
            service_tier=_TIER,
            safeguard_results=NO_RESULTS,
            extra="response.extra",
        ),
        EmbeddingRequest: Carries(
            "model inputs encoding", user=Lost("user", "dropped", "Ollama has no field for it")
        ),
        EmbeddingInput: Carries("content dimensions task truncates", title=NO_TITLE),
        Embedding: Carries("values", extra="response.extra"),
        EmbeddingResponse: Carries("model embeddings usage", extra="response.extra"),
    },
)
"""Of requests and, where they do not differ, of answers."""

LOST_IN_ANSWERS: Final = LostFields(
    NAME,
    {
        Text: Carries(
            "text logprobs",
            refusal=_REFUSAL,
            citations=Lost("citations", "dropped", "answers have no citations"),
            signature=_TEXT_STATE,
            cache=Lost("cache_marker", "dropped", "answers have no cache markers"),
        ),
    },
)
