"""One small conversation per feature of a request, for finding out which dialects can carry it.

`docs/reference/matrix.md` is made by sending each probe in every direction; see `proofs.fidelity.matrix`.
"""

from __future__ import annotations

from operator import attrgetter
from typing import Any, Final

from proofs.fidelity.probes import CALL, IMAGE, OTHER, RequestProbe, calls, features, reasoning
from wireglot_core.ir.content import (
    CacheMark,
    Extra,
    Media,
    Message,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
)
from wireglot_core.ir.loss import FEATURES, Feature
from wireglot_core.ir.request import (
    Grammar,
    HostedTool,
    OutputFormat,
    Request,
    Sampling,
    Thinking,
    Tool,
    ToolChoice,
)
from wireglot_core.testing.strategies import samples

WEATHER = Tool("get_weather", "Weather of a city.", samples.SCHEMAS[3])
TIME = Tool("get_time", "The time.", {"type": "object", "properties": {"zone": {"type": "string"}}})

_FEATURES: Final[dict[str, Feature]] = {
    "cache": "cache_marker",
    "output": "output_format",
    "sampling.candidates": "candidates",
    "sampling.logprobs": "logprobs",
    "sampling.top_logprobs": "logprobs",
    "stop": "stop_sequences",
    **{feature: feature for feature in FEATURES},
}
"""The feature that is lost with a setting: most have the same name."""


def _ask(*parts: Part | str, **settings: Any) -> Request:
    content = tuple(Text(part) if isinstance(part, str) else part for part in parts or ("Hi",))
    return Request(
        "model", (Message("user", content),), max_tokens=settings.pop("max_tokens", 1000), **settings
    )


def _talk(*messages: Message, **settings: Any) -> Request:
    return Request("model", messages, max_tokens=1000, **settings)


def _setting(name: str, *settings: str, **asked: Any) -> RequestProbe:
    """A probe of settings that stand in the neutral request under these names."""
    return RequestProbe(
        name, _ask(**asked), attrgetter(*settings), features(*map(_FEATURES.__getitem__, settings))
    )


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


_MEDIA = features("image", "document", "audio", "video", "file_reference", "tool_result.media")

REQUESTS: tuple[RequestProbe, ...] = (
    RequestProbe(
        "system text at the start",
        _talk(Message("system", (Text("Be kind."),)), _user("Hi")),
        _flow,
        features("system.position", "message.role"),
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
        features("system.position", "message.role"),
    ),
    RequestProbe("image, base64", _ask("See", IMAGE), _media, _MEDIA),
    RequestProbe("image, address", _ask(Media("image", url="https://example.com/cat.png")), _media, _MEDIA),
    RequestProbe("image, file id", _ask(Media("image", file_id="file_1")), _media, _MEDIA),
    RequestProbe(
        "image detail",
        _ask(Media("image", "image/png", samples.PNG, detail="low")),
        lambda request: [part.detail for part in _all_parts(request) if isinstance(part, Media)],
        features("image.detail"),
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
    RequestProbe("function tools", _ask(tools=(WEATHER, TIME)), _tools, features("tool.schema", "tool.name")),
    RequestProbe(
        "strict tools",
        _ask(tools=(Tool("f", "F.", samples.SCHEMAS[4], strict=True),)),
        lambda request: [tool.strict for tool in request.tools if isinstance(tool, Tool)],
        features("tool.strict"),
    ),
    RequestProbe(
        "freeform tools",
        _ask(tools=(Tool("patch", "Edit.", kind="custom", grammar=Grammar("lark", 'start: "a"')),)),
        _tools,
        features("tool.custom"),
    ),
    RequestProbe(
        "tool namespaces",
        _ask(tools=(Tool("read", "Read.", samples.SCHEMAS[3], namespace="files"),)),
        _tools,
        features("tool.namespace", "tool.name"),
    ),
    RequestProbe(
        "deferred tools",
        _ask(tools=(Tool("f", "F.", samples.SCHEMAS[3], deferred=True),)),
        lambda request: [tool.deferred for tool in request.tools if isinstance(tool, Tool)],
        features("tool.deferred"),
    ),
    RequestProbe(
        "tool choice: required",
        _ask(tools=(WEATHER,), tool_choice=ToolChoice("required")),
        lambda request: request.tool_choice and request.tool_choice.mode,
        features("tool_choice"),
    ),
    RequestProbe(
        "tool choice: one tool",
        _ask(tools=(WEATHER, TIME), tool_choice=ToolChoice("required", ("get_time",))),
        lambda request: request.tool_choice and (request.tool_choice.mode, request.tool_choice.only),
        features("tool_choice"),
    ),
    RequestProbe(
        "tool choice: some tools",
        _ask(
            tools=(WEATHER, TIME, Tool("f", "F.")),
            tool_choice=ToolChoice("auto", ("get_weather", "get_time")),
        ),
        lambda request: request.tool_choice and (request.tool_choice.mode, request.tool_choice.only),
        features("tool_choice"),
    ),
    _setting("no parallel calls", "parallel_tools", tools=(WEATHER,), parallel_tools=False),
    RequestProbe(
        "parallel calls and results",
        _talk(
            _user("Weather?"),
            _say(CALL, OTHER),
            _user(ToolResult("call_1", (Text("21"),)), ToolResult("call_2", (Text("12:00"),))),
            tools=(WEATHER, TIME),
        ),
        lambda request: (calls(_all_parts(request)), _results(request)),
        features("tool_call.id", "tool_result.pairing", "content.position"),
    ),
    RequestProbe(
        "invalid arguments in history",
        _talk(
            _user("?"),
            _say(ToolCall("call_1", "f", '{"a": ')),
            _user(ToolResult("call_1", (Text("bad"),))),
            tools=(TIME,),
        ),
        lambda request: calls(_all_parts(request)),
        features("tool_call.arguments"),
    ),
    RequestProbe(
        "image in a tool result",
        _talk(_user("?"), _say(CALL), _user(ToolResult("call_1", (Text("See"), IMAGE))), tools=(WEATHER,)),
        _results,
        features("tool_result.media"),
    ),
    RequestProbe(
        "failed tool result",
        _talk(
            _user("?"),
            _say(CALL),
            _user(ToolResult("call_1", (Text("no"),), is_error=True)),
            tools=(WEATHER,),
        ),
        _results,
        features("tool_result.error"),
    ),
    RequestProbe(
        "reasoning text in history",
        _talk(_user("?"), _say(Reasoning("Hm."), "Yes."), _user("Go on")),
        lambda request: reasoning(_all_parts(request)),
        features("reasoning.text", "reasoning.signature"),
    ),
    RequestProbe(
        "thinking effort",
        _ask(thinking=Thinking(effort="high")),
        lambda request: request.thinking.effort,
        features("thinking.effort", "thinking.budget", "thinking.mode"),
    ),
    RequestProbe(
        "thinking budget",
        _ask(thinking=Thinking(mode="on", budget=4096), max_tokens=9000),
        lambda request: request.thinking.budget,
        features("thinking.effort", "thinking.budget", "thinking.mode"),
    ),
    RequestProbe(
        "thinking off",
        _ask(thinking=Thinking(mode="off")),
        _off,
        features("thinking.effort", "thinking.budget", "thinking.mode"),
    ),
    _setting("thinking shown", "thinking.display", thinking=Thinking(mode="auto", display="summary")),
    _setting(
        "temperature and top_p",
        "sampling.temperature",
        "sampling.top_p",
        sampling=Sampling(temperature=0.5, top_p=0.9),
    ),
    _setting("top_k", "sampling.top_k", sampling=Sampling(top_k=40)),
    _setting(
        "penalties",
        "sampling.frequency_penalty",
        "sampling.presence_penalty",
        sampling=Sampling(frequency_penalty=0.5, presence_penalty=0.5),
    ),
    _setting("seed", "sampling.seed", sampling=Sampling(seed=7)),
    _setting("stop sequences", "stop", stop=("END",)),
    _setting("several answers (n)", "sampling.candidates", sampling=Sampling(candidates=2)),
    _setting(
        "log probabilities",
        "sampling.logprobs",
        "sampling.top_logprobs",
        sampling=Sampling(logprobs=True, top_logprobs=2),
    ),
    RequestProbe(
        "output schema",
        _ask(output=OutputFormat("schema", samples.OUTPUT_SCHEMA, "answer")),
        lambda request: request.output and request.output.schema,
        features("output_format", "output_format.schema", "output_format.strict"),
    ),
    RequestProbe(
        "JSON mode",
        _ask(output=OutputFormat("json")),
        lambda request: request.output and request.output.kind,
        features("output_format", "output_format.schema"),
    ),
    RequestProbe(
        "cache marker",
        _ask(Text("Long text", cache=CacheMark("short"))),
        lambda request: [
            part.cache and part.cache.ttl for part in _all_parts(request) if isinstance(part, Text)
        ],
        features("cache_marker"),
    ),
    _setting("cache key", "cache_key", cache_key="k"),
    RequestProbe("prefill", _talk(_user("Write"), _say("Once upon")), _flow, features("prefill")),
    _setting("verbosity", "verbosity", verbosity="low"),
    _setting("end user id", "user", user="u-1"),
    _setting("metadata", "metadata", metadata={"k": "v"}),
    _setting("service tier", "service_tier", service_tier="flex"),
    RequestProbe(
        "name on a message",
        _talk(Message("user", (Text("Hi"),), name="alice")),
        lambda request: [message.name for message in request.messages],
        features("message.name"),
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
    return RequestProbe("hosted web search", _ask(tools=(tool,)), _hosted, features("hosted_tool"))


def unknown_probe(dialect: str) -> RequestProbe:
    def look(request: Request) -> Any:
        return request.extra and request.extra.fields.get("x_future")

    return RequestProbe(
        "unknown field", _ask(extra=Extra(dialect, {"x_future": "new"})), look, features("unknown_field")
    )
