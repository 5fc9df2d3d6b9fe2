"""One small answer per feature of a response, and the state that an upstream mints and wants back."""

from __future__ import annotations

from typing import Any

from proofs.fidelity.probes import CALL, IMAGE, OTHER, ResponseProbe, StateProbe, calls, features, reasoning
from wireglot_core.ir.content import Citation, Foreign, Media, Part, Reasoning, Text, TokenLogprob, ToolCall
from wireglot_core.ir.outcome import Candidate, Response, Stop, Usage
from wireglot_core.testing.strategies import samples


def _answer(
    *parts: Part | str, stop: Stop | None = None, usage: Usage | None = None, **more: Any
) -> Response:
    content = tuple(Text(part) if isinstance(part, str) else part for part in parts)
    return Response(
        "resp_1", "model", content, stop or Stop("end"), usage or Usage(input=5, output=3), **more
    )


def _prose(response: Response) -> list[str]:
    return [part.text for part in response.content if isinstance(part, Text)]


def _stop(response: Response) -> str:
    return response.stop.reason


_STOP = features("stop_reason", "stop_details")

RESPONSES: tuple[ResponseProbe, ...] = (
    ResponseProbe("answer: text", _answer("Hello"), _prose, features("content.position")),
    ResponseProbe(
        "answer: reasoning text",
        _answer(Reasoning("Hm."), "Hello"),
        lambda response: reasoning(response.content),
        features("reasoning.text"),
    ),
    ResponseProbe(
        "answer: tool calls",
        _answer("Look", CALL, OTHER, stop=Stop("tool_calls")),
        lambda response: (calls(response.content), response.stop.reason),
        features("tool_call.arguments", "tool_call.id", "stop_reason"),
    ),
    ResponseProbe(
        "answer: freeform call",
        _answer(ToolCall("call_1", "patch", "*** Begin", "custom"), stop=Stop("tool_calls")),
        lambda response: calls(response.content),
        features("tool.custom"),
    ),
    ResponseProbe(
        "answer: invalid arguments",
        _answer(ToolCall("call_1", "f", '{"a": '), stop=Stop("tool_calls")),
        lambda response: calls(response.content),
        features("tool_call.arguments"),
    ),
    ResponseProbe(
        "answer: refusal text",
        _answer(Text("I will not.", refusal=True), stop=Stop("refused")),
        lambda response: [(part.text, part.refusal) for part in response.content if isinstance(part, Text)],
        features("refusal"),
    ),
    ResponseProbe(
        "answer: citations",
        _answer(Text("The tram.", citations=(Citation("https://example.com/t", "Tram", start=0, end=9),))),
        lambda response: [
            (citation.url, citation.title, citation.start, citation.end)
            for part in response.content
            if isinstance(part, Text)
            for citation in part.citations
        ],
        features("citations"),
    ),
    ResponseProbe(
        "answer: log probabilities",
        _answer(Text("Hi", logprobs=(TokenLogprob("Hi", -0.5, (("Hi", -0.5),)),))),
        lambda response: [part.logprobs for part in response.content if isinstance(part, Text)],
        features("logprobs"),
    ),
    ResponseProbe(
        "answer: image",
        _answer("See", IMAGE),
        lambda response: [part.data for part in response.content if isinstance(part, Media)],
        features("image"),
    ),
    ResponseProbe(
        "answer: second candidate",
        _answer("One", others=(Candidate((Text("Two"),), Stop("end")),)),
        lambda response: len(response.others),
        features("candidates"),
    ),
    ResponseProbe("stop: length", _answer("Once", stop=Stop("length")), _stop, _STOP),
    ResponseProbe("stop: context full", _answer("Once", stop=Stop("context_full")), _stop, _STOP),
    ResponseProbe(
        "stop: sequence",
        _answer("Once", stop=Stop("stop_sequence", sequence="END")),
        lambda response: (response.stop.reason, response.stop.sequence),
        _STOP | features("stop_sequence"),
    ),
    ResponseProbe("stop: refused", _answer("Once", stop=Stop("refused")), _stop, _STOP),
    ResponseProbe("stop: paused", _answer("Once", stop=Stop("paused")), _stop, _STOP),
    ResponseProbe(
        "usage",
        _answer("Hi", usage=Usage(input=5, cache_read=100, output=7, reasoning=3)),
        lambda response: (
            response.usage
            and (
                response.usage.total_input,
                response.usage.cache_read,
                response.usage.total_output,
                response.usage.reasoning,
            )
        ),
        features("usage.detail"),
    ),
    ResponseProbe(
        "usage: cache writes",
        _answer("Hi", usage=Usage(input=5, cache_write=50, output=7)),
        lambda response: response.usage and (response.usage.total_input, response.usage.cache_write),
        features("usage.detail"),
    ),
)


def server_part_probe(dialect: str) -> ResponseProbe | None:
    for part in samples.FOREIGN_ANSWERS:
        if part.dialect == dialect:
            return ResponseProbe(
                "answer: server tool call",
                _answer(part, "Done"),
                lambda response: [item.type for item in response.content if isinstance(item, Foreign)],
                features("foreign_part"),
            )
    return None


def _signatures(parts: tuple[Part, ...]) -> list[str]:
    found = [getattr(part, "signature", None) for part in parts]
    return [signature.data for signature in found if signature is not None]


def state_probes(dialect: str) -> list[StateProbe]:
    """What an upstream of this dialect mints and wants back."""
    probes = [
        StateProbe(
            "state: signed reasoning",
            Reasoning("Hm.", signature),
            _signatures,
            features("reasoning.signature"),
        )
        for signature in samples.REASONING_SIGNATURES
        if signature.origin.dialect == dialect
    ]
    if dialect == "anthropic":
        part = Reasoning("", samples.REDACTED, redacted=True)
        probes.append(
            StateProbe("state: redacted reasoning", part, _signatures, features("reasoning.redacted"))
        )
    if dialect == "gemini":
        call = ToolCall("call_1", "get_weather", "{}", signature=samples.PART_SIGNATURE)
        probes.append(StateProbe("state: signed call", call, _signatures, features("reasoning.signature")))
    return probes
