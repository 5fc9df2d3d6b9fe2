"""Fields of the neutral form that this dialect has no place for."""

from __future__ import annotations

from typing import Final

from wireglot_core.dialects.common_losses import NO_RESULTS, NO_SAFEGUARDS, STATED_ERROR
from wireglot_core.dialects.embeddings import NO_TITLE
from wireglot_core.dialects.lost_fields import Carries, Lost, LostFields
from wireglot_core.dialects.openai_chat.extras import NAME
from wireglot_core.ir.content import Media, Message, Reasoning, Text, ToolCall, ToolResult
from wireglot_core.ir.embedding import Embedding, EmbeddingInput, EmbeddingRequest, EmbeddingResponse
from wireglot_core.ir.loss import feature_of
from wireglot_core.ir.outcome import Candidate, Response, Stop
from wireglot_core.ir.request import OutputFormat, Request, Sampling, Thinking, Tool, ToolChoice
from wireglot_core.ir.stream import Finish, Start

_NO_STATE: Final = "no field for it in Chat requests"
NOT_MARKED: Final = Lost("cache_marker", "dropped", "Chat marks content parts only")
_NAMESPACE: Final = Lost("tool.namespace", "dropped", "Chat has no namespaces")
_DEFERRED: Final = Lost("tool.deferred", "dropped", "Chat loads all tools")

LOST: Final = LostFields(
    NAME,
    {
        Request: Carries(
            "model messages tools tool_choice parallel_tools max_tokens stop sampling thinking output"
            " verbosity stream user metadata service_tier cache cache_key",
            safeguards=NO_SAFEGUARDS,
        ),
        Sampling: Carries(
            "temperature top_p top_k frequency_penalty presence_penalty seed candidates logprobs top_logprobs"
        ),
        Message: Carries("role content name"),
        Text: Carries(
            "text refusal cache",
            citations=Lost("citations", "dropped", "no citations in requests"),
            logprobs=Lost("logprobs", "dropped", "no logprobs in requests"),
            signature=Lost(feature_of, "dropped", _NO_STATE),
        ),
        Reasoning: Carries("text signature redacted minter"),
        ToolCall: Carries("id name arguments kind signature cache", namespace=_NAMESPACE),
        ToolResult: Carries("call_id content name kind cache", is_error=STATED_ERROR),
        Media: Carries(
            "kind mime data text url file_id name detail cache",
            signature=Lost("reasoning.signature", "dropped", _NO_STATE),
        ),
        Tool: Carries(
            "name description schema strict kind native cache",
            namespace=_NAMESPACE,
            deferred=_DEFERRED,
            grammar=Lost("tool.custom", "dropped", "functions have no grammar"),
        ),
        ToolChoice: Carries("mode only hosted"),
        Thinking: Carries(
            "mode effort",
            budget=Lost("thinking.budget", "dropped", "Chat knows the effort only"),
            display=Lost("thinking.display", "dropped", "Chat has no such switch"),
        ),
        OutputFormat: Carries("kind schema name description strict bare"),
        Stop: Carries(
            "reason raw dialect",
            sequence=Lost("stop_sequence", "dropped", "Chat does not report which one matched"),
            extra="stop_details",
        ),
        Response: Carries(
            "id model content stop usage created service_tier others",
            safeguard_results=NO_RESULTS,
            extra="response.extra",
        ),
        Candidate: Carries("content stop", extra="response.extra"),
        Start: Carries("id model created usage service_tier", extra="response.extra"),
        Finish: Carries("stop usage service_tier safeguard_results", extra="response.extra"),
        EmbeddingRequest: Carries("model inputs encoding user"),
        EmbeddingInput: Carries(
            "content dimensions task",
            title=NO_TITLE,
            truncates=Lost(
                "embedding.truncation", "dropped", "a text that is too long is rejected", usual=(False,)
            ),
        ),
        Embedding: Carries("values", extra="response.extra"),
        EmbeddingResponse: Carries("model embeddings usage", extra="response.extra"),
    },
)
"""Of requests and, where they do not differ, of answers."""

LOST_OF_CUSTOM: Final = LostFields(
    NAME,
    {
        Tool: Carries(
            "name description kind grammar native",
            namespace=_NAMESPACE,
            deferred=_DEFERRED,
            schema=Lost("tool.schema", "dropped", "custom tools have no schema"),
            strict=Lost("tool.strict", "dropped", "custom tools are never strict", usual=(False,)),
            cache=NOT_MARKED,
        ),
    },
)

LOST_IN_ANSWERS: Final = LostFields(
    NAME,
    {
        Text: Carries("text refusal citations logprobs signature", cache=NOT_MARKED),
        ToolCall: Carries("id name arguments kind signature", namespace=_NAMESPACE, cache=NOT_MARKED),
        Media: Carries("kind mime data text url file_id name detail signature", cache=NOT_MARKED),
    },
)

# Where code decides whether it is lost

UNSTATED_FORMAT: Final = Lost("audio", "dropped", "answers do not state the format")
