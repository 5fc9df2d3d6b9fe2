"""One small conversation or answer per feature, for finding out which dialects can carry it.

`docs/reference/matrix.md` is made by sending each probe in every direction; see `wireglot.testing.matrix`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from wireglot.ir.content import (
    CacheMark,
    Citation,
    Extra,
    Foreign,
    Media,
    Message,
    Part,
    Reasoning,
    Text,
    TokenLogprob,
    ToolCall,
    ToolResult,
)
from wireglot.ir.loss import Feature
from wireglot.ir.outcome import Candidate, Response, Stop, Usage
from wireglot.ir.request import (
    Grammar,
    HostedTool,
    OutputFormat,
    Request,
    Sampling,
    Thinking,
    Tool,
    ToolChoice,
)
from wireglot.testing import samples
from wireglot.testing.canonical import canonical_arguments

WEATHER = Tool("get_weather", "Weather of a city.", samples.SCHEMAS[3])
TIME = Tool("get_time", "The time.", {"type": "object", "properties": {"zone": {"type": "string"}}})


class RequestProbe(msgspec.Struct, frozen=True):
    """`look` finds the feature in a request; `features` are the losses that may speak of it."""

    name: str
    request: Request
    look: Callable[[Request], Any]
    features: frozenset[Feature]


class ResponseProbe(msgspec.Struct, frozen=True):
    name: str
    response: Response
    look: Callable[[Response], Any]
    features: frozenset[Feature]


class StateProbe(msgspec.Struct, frozen=True):
    """Opaque state an upstream minted: it must come back to it through the client's next request."""

    name: str
    part: Part
    look: Callable[[tuple[Part, ...]], Any]
    features: frozenset[Feature]


def _ask(*parts: Part | str, **settings: Any) -> Request:
    content = tuple(Text(part) if isinstance(part, str) else part for part in parts or ("Hi",))
    return Request(
        "model", (Message("user", content),), max_tokens=settings.pop("max_tokens", 1000), **settings
    )


def _talk(*messages: Message, **settings: Any) -> Request:
    return Request("model", messages, max_tokens=1000, **settings)


def _say(*parts: Part | str) -> Message:
    return Message("assistant", tuple(Text(part) if isinstance(part, str) else part for part in parts))


def _user(*parts: Part | str) -> Message:
    return Message("user", tuple(Text(part) if isinstance(part, str) else part for part in parts))


def _all_parts(request: Request) -> list[Part]:
    return [part for message in request.messages for part in message.content]


def _media(request: Request) -> list[tuple[Any, ...]]:
    return [
        (part.kind, part.data, part.text, part.url, part.file_id)
        for part in _all_parts(request)
        if isinstance(part, Media)
    ]


def _flow(request: Request) -> list[tuple[str, str]]:
    return [
        (message.role, part.text)
        for message in request.messages
        for part in message.content
        if isinstance(part, Text)
    ]


def _calls(parts: tuple[Part, ...] | list[Part]) -> list[tuple[str, ...]]:
    return [
        (
            part.kind,
            part.namespace,
            part.name,
            part.arguments if part.kind == "custom" else canonical_arguments(part.arguments),
        )
        for part in parts
        if isinstance(part, ToolCall)
    ]


def _results(request: Request) -> list[tuple[Any, ...]]:
    return [
        (
            part.call_id,
            part.is_error,
            [getattr(item, "text", None) or getattr(item, "data", None) for item in part.content],
        )
        for part in _all_parts(request)
        if isinstance(part, ToolResult)
    ]


def _reasoning(parts: tuple[Part, ...] | list[Part]) -> list[str]:
    return [part.text for part in parts if isinstance(part, Reasoning)]


def _tools(request: Request) -> list[Any]:
    return [
        (tool.name, tool.kind, tool.namespace, tool.schema, tool.grammar)
        for tool in request.tools
        if isinstance(tool, Tool)
    ]


def _hosted(request: Request) -> list[Any]:
    return [tool for tool in request.tools if isinstance(tool, HostedTool)]


def _off(request: Request) -> bool:
    """Dialects say it in two ways."""
    return request.thinking.mode == "off" or request.thinking.effort == "none"


def _features(*names: Feature) -> frozenset[Feature]:
    return frozenset(names)


_CALL = ToolCall("call_1", "get_weather", '{"city":"Bern"}')
_OTHER = ToolCall("call_2", "get_time", "{}")
_IMAGE = Media("image", "image/png", samples.PNG)
_MEDIA = _features("image", "document", "audio", "video", "file_reference", "tool_result.media")

REQUESTS: tuple[RequestProbe, ...] = (
    RequestProbe(
        "system text at the start",
        _talk(Message("system", (Text("Be kind."),)), _user("Hi")),
        _flow,
        _features("system.position", "message.role"),
    ),
    RequestProbe(
        "system text in the middle",
        _talk(
            _user("Hi"),
            _say("Hello"),
            _user("Joke?"),
            Message("system", (Text("Short."),)),
            _say("No."),
            _user("!"),
        ),
        _flow,
        _features("system.position", "message.role"),
    ),
    RequestProbe("image, base64", _ask("See", _IMAGE), _media, _MEDIA),
    RequestProbe("image, address", _ask(Media("image", url="https://example.com/cat.png")), _media, _MEDIA),
    RequestProbe("image, file id", _ask(Media("image", file_id="file_1")), _media, _MEDIA),
    RequestProbe(
        "image detail",
        _ask(Media("image", "image/png", samples.PNG, detail="low")),
        lambda request: [part.detail for part in _all_parts(request) if isinstance(part, Media)],
        _features("image.detail"),
    ),
    RequestProbe("PDF, base64", _ask(Media("document", "application/pdf", samples.PDF)), _media, _MEDIA),
    RequestProbe(
        "PDF, address",
        _ask(Media("document", "application/pdf", url="https://example.com/a.pdf")),
        _media,
        _MEDIA,
    ),
    RequestProbe("text document", _ask(Media("document", "text/plain", text="Notes.")), _media, _MEDIA),
    RequestProbe("audio", _ask(Media("audio", "audio/wav", samples.WAV)), _media, _MEDIA),
    RequestProbe("video", _ask(Media("video", "video/mp4", samples.MP4)), _media, _MEDIA),
    RequestProbe(
        "function tools", _ask(tools=(WEATHER, TIME)), _tools, _features("tool.schema", "tool.name")
    ),
    RequestProbe(
        "strict tools",
        _ask(tools=(Tool("f", "F.", samples.SCHEMAS[4], strict=True),)),
        lambda request: [tool.strict for tool in request.tools if isinstance(tool, Tool)],
        _features("tool.strict"),
    ),
    RequestProbe(
        "freeform tools",
        _ask(tools=(Tool("patch", "Edit.", kind="custom", grammar=Grammar("lark", 'start: "a"')),)),
        _tools,
        _features("tool.custom"),
    ),
    RequestProbe(
        "tool namespaces",
        _ask(tools=(Tool("read", "Read.", samples.SCHEMAS[3], namespace="files"),)),
        _tools,
        _features("tool.namespace", "tool.name"),
    ),
    RequestProbe(
        "deferred tools",
        _ask(tools=(Tool("f", "F.", samples.SCHEMAS[3], deferred=True),)),
        lambda request: [tool.deferred for tool in request.tools if isinstance(tool, Tool)],
        _features("tool.deferred"),
    ),
    RequestProbe(
        "tool choice: required",
        _ask(tools=(WEATHER,), tool_choice=ToolChoice("required")),
        lambda request: request.tool_choice and request.tool_choice.mode,
        _features("tool_choice"),
    ),
    RequestProbe(
        "tool choice: one tool",
        _ask(tools=(WEATHER, TIME), tool_choice=ToolChoice("required", ("get_time",))),
        lambda request: request.tool_choice and (request.tool_choice.mode, request.tool_choice.only),
        _features("tool_choice"),
    ),
    RequestProbe(
        "tool choice: some tools",
        _ask(
            tools=(WEATHER, TIME, Tool("f", "F.")),
            tool_choice=ToolChoice("auto", ("get_weather", "get_time")),
        ),
        lambda request: request.tool_choice and (request.tool_choice.mode, request.tool_choice.only),
        _features("tool_choice"),
    ),
    RequestProbe(
        "no parallel calls",
        _ask(tools=(WEATHER,), parallel_tools=False),
        lambda request: request.parallel_tools,
        _features("parallel_tools"),
    ),
    RequestProbe(
        "parallel calls and results",
        _talk(
            _user("Weather?"),
            _say(_CALL, _OTHER),
            _user(ToolResult("call_1", (Text("21"),)), ToolResult("call_2", (Text("12:00"),))),
            tools=(WEATHER, TIME),
        ),
        lambda request: (_calls(_all_parts(request)), _results(request)),
        _features("tool_call.id", "tool_result.pairing", "content.position"),
    ),
    RequestProbe(
        "invalid arguments in history",
        _talk(
            _user("?"),
            _say(ToolCall("call_1", "f", '{"a": ')),
            _user(ToolResult("call_1", (Text("bad"),))),
            tools=(TIME,),
        ),
        lambda request: _calls(_all_parts(request)),
        _features("tool_call.arguments"),
    ),
    RequestProbe(
        "image in a tool result",
        _talk(_user("?"), _say(_CALL), _user(ToolResult("call_1", (Text("See"), _IMAGE))), tools=(WEATHER,)),
        _results,
        _features("tool_result.media"),
    ),
    RequestProbe(
        "failed tool result",
        _talk(
            _user("?"),
            _say(_CALL),
            _user(ToolResult("call_1", (Text("no"),), is_error=True)),
            tools=(WEATHER,),
        ),
        _results,
        _features("tool_result.error"),
    ),
    RequestProbe(
        "reasoning text in history",
        _talk(_user("?"), _say(Reasoning("Hm."), "Yes."), _user("Go on")),
        lambda request: _reasoning(_all_parts(request)),
        _features("reasoning.text", "reasoning.signature"),
    ),
    RequestProbe(
        "thinking effort",
        _ask(thinking=Thinking(effort="high")),
        lambda request: request.thinking.effort,
        _features("thinking.effort", "thinking.budget", "thinking.mode"),
    ),
    RequestProbe(
        "thinking budget",
        _ask(thinking=Thinking(mode="on", budget=4096), max_tokens=9000),
        lambda request: request.thinking.budget,
        _features("thinking.effort", "thinking.budget", "thinking.mode"),
    ),
    RequestProbe(
        "thinking off",
        _ask(thinking=Thinking(mode="off")),
        _off,
        _features("thinking.effort", "thinking.budget", "thinking.mode"),
    ),
    RequestProbe(
        "thinking shown",
        _ask(thinking=Thinking(mode="auto", display="summary")),
        lambda request: request.thinking.display,
        _features("thinking.display"),
    ),
    RequestProbe(
        "temperature and top_p",
        _ask(sampling=Sampling(temperature=0.5, top_p=0.9)),
        lambda request: (request.sampling.temperature, request.sampling.top_p),
        _features("sampling.temperature", "sampling.top_p"),
    ),
    RequestProbe(
        "top_k",
        _ask(sampling=Sampling(top_k=40)),
        lambda request: request.sampling.top_k,
        _features("sampling.top_k"),
    ),
    RequestProbe(
        "penalties",
        _ask(sampling=Sampling(frequency_penalty=0.5, presence_penalty=0.5)),
        lambda request: (request.sampling.frequency_penalty, request.sampling.presence_penalty),
        _features("sampling.frequency_penalty", "sampling.presence_penalty"),
    ),
    RequestProbe(
        "seed",
        _ask(sampling=Sampling(seed=7)),
        lambda request: request.sampling.seed,
        _features("sampling.seed"),
    ),
    RequestProbe(
        "stop sequences", _ask(stop=("END",)), lambda request: request.stop, _features("stop_sequences")
    ),
    RequestProbe(
        "several answers (n)",
        _ask(sampling=Sampling(candidates=2)),
        lambda request: request.sampling.candidates,
        _features("candidates"),
    ),
    RequestProbe(
        "log probabilities",
        _ask(sampling=Sampling(logprobs=True, top_logprobs=2)),
        lambda request: (request.sampling.logprobs, request.sampling.top_logprobs),
        _features("logprobs"),
    ),
    RequestProbe(
        "output schema",
        _ask(output=OutputFormat("schema", samples.OUTPUT_SCHEMA, "answer")),
        lambda request: request.output and request.output.schema,
        _features("output_format", "output_format.schema", "output_format.strict"),
    ),
    RequestProbe(
        "JSON mode",
        _ask(output=OutputFormat("json")),
        lambda request: request.output and request.output.kind,
        _features("output_format", "output_format.schema"),
    ),
    RequestProbe(
        "cache marker",
        _ask(Text("Long text", cache=CacheMark("short"))),
        lambda request: [
            part.cache and part.cache.ttl for part in _all_parts(request) if isinstance(part, Text)
        ],
        _features("cache_marker"),
    ),
    RequestProbe("cache key", _ask(cache_key="k"), lambda request: request.cache_key, _features("cache_key")),
    RequestProbe("prefill", _talk(_user("Write"), _say("Once upon")), _flow, _features("prefill")),
    RequestProbe(
        "verbosity", _ask(verbosity="low"), lambda request: request.verbosity, _features("verbosity")
    ),
    RequestProbe("end user id", _ask(user="u-1"), lambda request: request.user, _features("user")),
    RequestProbe(
        "metadata", _ask(metadata={"k": "v"}), lambda request: request.metadata, _features("metadata")
    ),
    RequestProbe(
        "service tier",
        _ask(service_tier="flex"),
        lambda request: request.service_tier,
        _features("service_tier"),
    ),
    RequestProbe(
        "name on a message",
        _talk(Message("user", (Text("Hi"),), name="alice")),
        lambda request: [message.name for message in request.messages],
        _features("message.name"),
    ),
)

HOSTED_SEARCH: dict[str, HostedTool] = {
    tool.native.dialect: tool for tool in samples.HOSTED if tool.kind == "web_search"
}
"""The same wish in the words of each dialect that has them."""


def hosted_probe(dialect: str) -> RequestProbe | None:
    tool = HOSTED_SEARCH.get(dialect)
    if tool is None:
        return None
    return RequestProbe("hosted web search", _ask(tools=(tool,)), _hosted, _features("hosted_tool"))


def unknown_probe(dialect: str) -> RequestProbe:
    def look(request: Request) -> Any:
        return request.extra and request.extra.fields.get("x_future")

    return RequestProbe(
        "unknown field", _ask(extra=Extra(dialect, {"x_future": "new"})), look, _features("unknown_field")
    )


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


_STOP = _features("stop_reason", "stop_details")

RESPONSES: tuple[ResponseProbe, ...] = (
    ResponseProbe("answer: text", _answer("Hello"), _prose, _features("content.position")),
    ResponseProbe(
        "answer: reasoning text",
        _answer(Reasoning("Hm."), "Hello"),
        lambda response: _reasoning(response.content),
        _features("reasoning.text"),
    ),
    ResponseProbe(
        "answer: tool calls",
        _answer("Look", _CALL, _OTHER, stop=Stop("tool_calls")),
        lambda response: (_calls(response.content), response.stop.reason),
        _features("tool_call.arguments", "tool_call.id", "stop_reason"),
    ),
    ResponseProbe(
        "answer: freeform call",
        _answer(ToolCall("call_1", "patch", "*** Begin", "custom"), stop=Stop("tool_calls")),
        lambda response: _calls(response.content),
        _features("tool.custom"),
    ),
    ResponseProbe(
        "answer: invalid arguments",
        _answer(ToolCall("call_1", "f", '{"a": '), stop=Stop("tool_calls")),
        lambda response: _calls(response.content),
        _features("tool_call.arguments"),
    ),
    ResponseProbe(
        "answer: refusal text",
        _answer(Text("I will not.", refusal=True), stop=Stop("refused")),
        lambda response: [(part.text, part.refusal) for part in response.content if isinstance(part, Text)],
        _features("refusal"),
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
        _features("citations"),
    ),
    ResponseProbe(
        "answer: log probabilities",
        _answer(Text("Hi", logprobs=(TokenLogprob("Hi", -0.5, (("Hi", -0.5),)),))),
        lambda response: [part.logprobs for part in response.content if isinstance(part, Text)],
        _features("logprobs"),
    ),
    ResponseProbe(
        "answer: image",
        _answer("See", _IMAGE),
        lambda response: [part.data for part in response.content if isinstance(part, Media)],
        _features("image"),
    ),
    ResponseProbe(
        "answer: second candidate",
        _answer("One", others=(Candidate((Text("Two"),), Stop("end")),)),
        lambda response: len(response.others),
        _features("candidates"),
    ),
    ResponseProbe("stop: length", _answer("Once", stop=Stop("length")), _stop, _STOP),
    ResponseProbe("stop: context full", _answer("Once", stop=Stop("context_full")), _stop, _STOP),
    ResponseProbe(
        "stop: sequence",
        _answer("Once", stop=Stop("stop_sequence", sequence="END")),
        lambda response: (response.stop.reason, response.stop.sequence),
        _STOP | _features("stop_sequence"),
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
        _features("usage.detail"),
    ),
    ResponseProbe(
        "usage: cache writes",
        _answer("Hi", usage=Usage(input=5, cache_write=50, output=7)),
        lambda response: response.usage and (response.usage.total_input, response.usage.cache_write),
        _features("usage.detail"),
    ),
)


def server_part_probe(dialect: str) -> ResponseProbe | None:
    for part in samples.FOREIGN_ANSWERS:
        if part.dialect == dialect:
            return ResponseProbe(
                "answer: server tool call",
                _answer(part, "Done"),
                lambda response: [item.type for item in response.content if isinstance(item, Foreign)],
                _features("foreign_part"),
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
            _features("reasoning.signature"),
        )
        for signature in samples.REASONING_SIGNATURES
        if signature.origin.dialect == dialect
    ]
    if dialect == "anthropic":
        part = Reasoning("", samples.REDACTED, redacted=True)
        probes.append(
            StateProbe("state: redacted reasoning", part, _signatures, _features("reasoning.redacted"))
        )
    if dialect == "gemini":
        call = ToolCall("call_1", "get_weather", "{}", signature=samples.PART_SIGNATURE)
        probes.append(StateProbe("state: signed call", call, _signatures, _features("reasoning.signature")))
    return probes
