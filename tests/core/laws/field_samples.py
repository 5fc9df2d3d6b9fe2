"""For every field of the neutral form another value, and small conversations, answers and streams to set it in.

The walk (`reached`, `places`) is generic: it finds each struct in the documents below and each of its fields. A
field with a flag or a closed list of words needs no sample: all its values are tried.
"""

from collections.abc import Callable, Iterator
from types import NoneType, UnionType
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec.structs import replace

from wireglot_core.ir.content import (
    CacheMark,
    Citation,
    Extra,
    Foreign,
    Media,
    Message,
    Origin,
    Part,
    Reasoning,
    Signature,
    Text,
    TokenLogprob,
    ToolCall,
    ToolResult,
)
from wireglot_core.ir.errors import ApiError
from wireglot_core.ir.outcome import Candidate, Response, Stop, StopReason, Usage
from wireglot_core.ir.request import (
    EFFORTS,
    Grammar,
    HostedChoice,
    HostedTool,
    McpServer,
    OutputFormat,
    Request,
    Sampling,
    Thinking,
    Tool,
    ToolChoice,
)
from wireglot_core.ir.safeguards import TOOL_CALLS, CallVerdict, Safeguard, SafeguardResult
from wireglot_core.ir.stream import (
    Delta,
    Event,
    Failure,
    Finish,
    ForeignEvent,
    OtherAnswer,
    PartEnd,
    PartStart,
    Start,
    UsageReport,
)

ELSEWHERE = "elsewhere"
WORD = "zebra"
"""In most values below, and in no document."""
PNG, OTHER_PNG, PDF = "iVBORw0KGgoAAAANSUhEUg==", "iVBORw0KGgpvdGhlcg==", "JVBERi0xLjQ="
SCHEMA = {"type": "object", "properties": {"place": {"type": "string"}}, "required": ["place"]}
WORDS = {"type": "string", "enum": ["yes", "no"]}
OTHER_SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}

Value = Any
Document = Request | Response | list[Event] | ApiError


def reached(*roots: Any) -> dict[type[msgspec.Struct], dict[str, Any]]:
    """Every struct that the types contain, with the types of its fields."""
    found: dict[type[msgspec.Struct], dict[str, Any]] = {}
    waiting = list(roots)
    while waiting:
        kind = waiting.pop(0)
        if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
            if kind not in found:
                found[kind] = get_type_hints(kind)
                waiting += found[kind].values()
        else:
            waiting += get_args(kind)
    return found


REACHED = reached(Request, Response, Event)


# --- values


class Sample(NamedTuple):
    """Other values for a field, in an instance where they mean something."""

    values: tuple[Value, ...]
    when: Callable[[Any], bool] = lambda holder: True
    of: tuple[type[Part], ...] = ()
    """For an event of a part: kinds of parts; (): any."""


class Own:
    """A value that names the dialect which the document is rendered into."""

    def __init__(self, make: Callable[[str], Value]) -> None:
        self.make = make


class Other(Own):
    """The same of a document from elsewhere, and a third dialect's of one that is from the dialect itself."""


def _sample(
    *values: Value, when: Callable[[Any], bool] = lambda holder: True, of: tuple[type[Part], ...] = ()
) -> Sample:
    return Sample(values, when, of)


def _signature(dialect: str) -> Signature:
    return Signature("c2lnbmVk", Origin(dialect))


EXTRA = _sample(Extra("another", {"oddity": 1}))
"""What a dialect does with its own is the subject of the law of identity."""
SIGNATURE = _sample(Own(_signature))
CACHE = _sample(CacheMark("short"), CacheMark("long"), when=lambda holder: holder.cache is None)
INDEX = _sample(7)
"""Of no part: such a stream is refused (`ir.stream.check`)."""
CITATION = Citation("https://example.org/tides", "Tides", "the moon pulls", 0, 5)
CITATIONS = (
    Citation(CITATION.url, CITATION.title),
    Citation(CITATION.url, quote=CITATION.quote),
    Citation(CITATION.url, start=1),
    Citation(CITATION.url, end=5),
)
"""One detail each: a dialect may report several that it has no place for in one loss."""
LOGPROB = TokenLogprob("Wa", -0.5, (("Wi", -1.25),))
TOOL = Tool("weather", "Tells the weather.", SCHEMA)
OTHER_TOOL = Tool("clock", "Tells the time.", SCHEMA)
SEARCH = HostedTool("web_search", Foreign(ELSEWHERE, "search_9", {"type": "search_9"}))
SERVER = McpServer("docs", "https://example.org/mcp")
RESULT = SafeguardResult(TOOL_CALLS, "available", {"call_1": CallVerdict("flagged")})
GRAMMAR = Grammar("lark", 'start: "okapi"')


def _is_defined(tool: Tool) -> bool:
    """A vendor's own tool is only a name for that vendor."""
    return tool.native is None or tool.native.dialect == ELSEWHERE


def _is_function(tool: Tool) -> bool:
    return tool.kind == "function" and _is_defined(tool)


def _is_translated(tool: HostedTool) -> bool:
    """Its own dialect sends the declaration unchanged."""
    return tool.native.dialect == ELSEWHERE


def _holds(field: str) -> Callable[[Any], bool]:
    return lambda holder: bool(getattr(holder, field))


def _is_bound(signature: Signature | None) -> bool:
    """To a block that may be opaque: only one of the dialects has those."""
    return signature is not None and signature.origin.dialect in (ELSEWHERE, "anthropic")


def _may_be_shown(thinking: Thinking) -> bool:
    """With an effort or a budget a summary is the default of some dialects."""
    return not thinking.budget and (not thinking.effort or thinking.display is not None)


def _is_shared(citation: Citation) -> bool:
    """One of a kind that only one dialect has is written as it was."""
    return citation.native is None


def _is_part(foreign: Foreign) -> bool:
    return foreign.type == "novelty"


def _is_foreign(foreign: Foreign) -> bool:
    return _is_part(foreign) and foreign.dialect == ELSEWHERE


SAMPLES: dict[type[msgspec.Struct], dict[str, Sample]] = {
    Request: {
        "model": _sample("another-model"),
        "messages": _sample((Message("user", (Text("zebra"),)),)),
        "tools": _sample((TOOL, replace(OTHER_TOOL, name="zebra")), when=_holds("tools")),
        "tool_choice": _sample(
            ToolChoice("required"),
            ToolChoice("none"),
            when=lambda request: request.tools and request.tool_choice is None,
        ),
        "parallel_tools": _sample(False, when=_holds("tools")),
        "max_tokens": _sample(777),
        "stop": _sample(("zebra",)),
        "sampling": _sample(Sampling(temperature=0.375)),
        "thinking": _sample(Thinking("on", budget=2048)),
        "output": _sample(
            OutputFormat("json"), OutputFormat("schema", SCHEMA), when=lambda request: request.output is None
        ),
        "verbosity": _sample("low", "high"),
        "user": _sample("zebra"),
        "metadata": _sample({"zebra": "striped"}),
        "service_tier": _sample("priority", "flex"),
        "cache": CACHE,
        "cache_key": _sample("zebra"),
        "extra": EXTRA,
        "safeguards": _sample((Safeguard(TOOL_CALLS),)),
    },
    Message: {
        "role": _sample(
            "user", "assistant", when=lambda message: all(type(part) is Text for part in message.content)
        ),
        "content": _sample((Text("zebra"),)),
        "name": _sample("zebra"),
        "extra": EXTRA,
    },
    Text: {
        "text": _sample("zebra"),
        "citations": _sample((CITATION,)),
        "logprobs": _sample((LOGPROB,), when=_holds("text")),
        "signature": SIGNATURE,
        "cache": CACHE,
        "extra": EXTRA,
    },
    Reasoning: {
        "text": _sample("zebra", when=lambda part: not part.redacted),
        "signature": SIGNATURE,
        "redacted": _sample(False, True, when=lambda part: not part.text and _is_bound(part.signature)),
        "extra": EXTRA,
        "minter": _sample(Other(Origin), when=lambda part: part.signature is None),
    },
    ToolCall: {
        "id": _sample("call_zebra"),
        "name": _sample("clock"),
        "arguments": _sample('{"place":"zebra"}', when=lambda call: call.kind == "function"),
        "namespace": _sample("zebra"),
        "signature": SIGNATURE,
        "cache": CACHE,
        "extra": EXTRA,
    },
    ToolResult: {
        "call_id": _sample("call_zebra"),
        "content": _sample((Text("zebra"),)),
        "name": _sample("clock"),
        "cache": CACHE,
        "extra": EXTRA,
    },
    Media: {
        "kind": _sample("document", when=_holds("file_id")),
        "mime": _sample("image/webp", when=lambda media: media.kind == "image" and not media.file_id),
        "data": _sample(OTHER_PNG, when=_holds("data")),
        "text": _sample("zebra", when=_holds("text")),
        "url": _sample("https://example.org/zebra", when=_holds("url")),
        "file_id": _sample("file_zebra", when=_holds("file_id")),
        "name": _sample("zebra.png"),
        "detail": _sample("low", "high", when=lambda media: media.kind == "image"),
        "signature": SIGNATURE,
        "cache": CACHE,
        "extra": EXTRA,
    },
    Foreign: {
        "dialect": _sample("another", when=_is_part),
        "type": _sample("zebra", when=_is_foreign),
        "value": _sample({"type": "novelty", "zebra": 1}, when=_is_part),
        "text": _sample("zebra", when=_is_foreign),
        "stands_elsewhere": _sample(True, when=lambda part: _is_foreign(part) and not part.text),
        "for_vendor": _sample(True, when=lambda part: _is_foreign(part) and not part.text),
    },
    Citation: {
        "url": _sample("https://example.org/zebra", when=_is_shared),
        "title": _sample("zebra", when=_is_shared),
        "quote": _sample("zebra", when=_is_shared),
        "start": _sample(2, when=lambda citation: _is_shared(citation) and citation.end is None),
        "end": _sample(3, when=lambda citation: _is_shared(citation) and citation.start is None),
        "extra": _sample(Extra("another", {"oddity": 1}), when=_is_shared),
        "native": _sample(Own(lambda dialect: Foreign(dialect, "page_location", {"type": "page_location"}))),
    },
    TokenLogprob: {
        "token": _sample("ze"),
        "logprob": _sample(-0.75),
        "top": _sample((("ze", -2.5),)),
    },
    Signature: {
        "data": _sample("emVicmE="),
        "origin": _sample(Origin("another"), Own(Origin)),
        "id": _sample(
            "rs_zebra", when=lambda signature: signature.origin.dialect in (ELSEWHERE, "openai-responses")
        ),
    },
    Origin: {
        "dialect": _sample("another", Own(str)),
        "provider": _sample("zebra"),
        "model": _sample("zebra"),
        "account": _sample("zebra"),
    },
    CacheMark: {"ttl": _sample("short", "long"), "extra": EXTRA},
    Extra: {
        "dialect": _sample("another"),
        "fields": _sample({"zebra": 1}),
        "form": _sample({"zebra": 1}),
    },
    Tool: {
        "name": _sample("zebra", when=_is_defined),
        "description": _sample("zebra", when=_is_defined),
        "schema": _sample(OTHER_SCHEMA, when=_is_function),
        "strict": _sample(True, when=_is_function),
        "kind": _sample("custom", when=_is_defined),
        "grammar": _sample(GRAMMAR, when=lambda tool: tool.kind == "custom" and _is_defined(tool)),
        "namespace": _sample("zebra", when=_is_defined),
        "deferred": _sample(True, when=_is_defined),
        "native": _sample(Own(lambda dialect: Foreign(dialect, "bash_9", {"type": "bash_9"}))),
        "cache": _sample(
            CacheMark("short"), CacheMark("long"), when=lambda tool: _is_defined(tool) and tool.cache is None
        ),
        "extra": _sample(Extra("another", {"oddity": 1}), when=_is_defined),
    },
    Grammar: {"syntax": _sample("regex"), "definition": _sample('start: "zebra"')},
    HostedTool: {
        "kind": _sample("web_fetch", "code_execution", "zebra", when=_is_translated),
        "native": _sample(Own(lambda dialect: Foreign(dialect, "zebra", {"type": "zebra"}))),
        "server": _sample(
            replace(SERVER, url="https://zebra.example/mcp"), when=lambda tool: tool.kind == "mcp"
        ),
        "options": _sample(
            *(
                {name: value}
                for name, value in {
                    "allowed_domains": ["zebra.example"],
                    "blocked_domains": ["zebra.example"],
                    "location": {"city": "Kiel", "country": "DE"},
                    "max_uses": 3,
                    "context_size": "low",
                }.items()
            ),
            when=lambda tool: tool.kind == "web_search" and _is_translated(tool),
        ),
        "untold": _sample(("zebra",), when=lambda tool: tool.kind != "mcp" and _is_translated(tool)),
    },
    McpServer: {
        "name": _sample("zebra"),
        "url": _sample("https://zebra.example/mcp"),
        "token": _sample("zebra"),
        "allowed": _sample(("find",)),
        "rest": _sample(("zebra",)),
    },
    ToolChoice: {
        "only": _sample(("weather",)),
        "extra": EXTRA,
        "hosted": _sample((HostedChoice("web_search"),), when=_holds("hosted")),
    },
    HostedChoice: {
        "kind": _sample("code_execution"),
        "server": _sample("docs", when=lambda choice: choice.kind == "mcp"),
        "tool": _sample("find", when=lambda choice: choice.kind == "mcp"),
    },
    Sampling: {
        "temperature": _sample(0.375),
        "top_p": _sample(0.625),
        "top_k": _sample(7),
        "frequency_penalty": _sample(0.375),
        "presence_penalty": _sample(0.625),
        "seed": _sample(11),
        "candidates": _sample(3),
        "top_logprobs": _sample(2, when=_holds("logprobs")),
    },
    Thinking: {
        "mode": _sample(
            "on", "auto", "off", when=lambda thinking: not thinking.budget and not thinking.effort
        ),
        "effort": _sample(*reversed(EFFORTS), when=lambda thinking: not thinking.budget),
        "budget": _sample(2048),
        "display": _sample("omitted", "summary", when=_may_be_shown),
        "extra": EXTRA,
    },
    OutputFormat: {
        "schema": _sample(OTHER_SCHEMA, when=lambda output: output.kind == "schema"),
        "name": _sample("zebra", when=lambda output: output.kind == "schema"),
        "description": _sample("zebra", when=lambda output: output.kind == "schema"),
        "strict": _sample(True, when=lambda output: output.kind == "schema"),
        "extra": EXTRA,
        "bare": _sample(True, when=lambda output: output.schema == WORDS),
        "kind": _sample("text", "json", when=lambda output: output.schema is None),
    },
    Safeguard: {
        "kind": _sample("zebra"),
        "context": _sample({"zebra": 1}),
        "extra": EXTRA,
    },
    Response: {
        "id": _sample("msg_zebra"),
        "model": _sample("another-model"),
        "content": _sample((Text("zebra"),)),
        "stop": _sample(Stop("length")),
        "usage": _sample(Usage(input=7, output=8)),
        "created": _sample(1700000777),
        "service_tier": _sample("priority", "batch"),
        "others": _sample((Candidate((Text("zebra"),), Stop("end")),)),
        "extra": EXTRA,
        "safeguard_results": _sample((RESULT,)),
    },
    Stop: {
        "reason": Sample(get_args(StopReason), lambda stop: stop.sequence is None),
        "raw": _sample("zebra"),
        "dialect": _sample("another", Own(str)),
        "sequence": _sample("zebra", when=lambda stop: stop.reason == "stop_sequence"),
        "extra": EXTRA,
    },
    Usage: {
        **{
            name: _sample(23)
            for name in ("input", "cache_read", "cache_write", "cache_write_long", "tool_prompt", "output")
        },
        "reasoning": _sample(23),
        "raw": _sample(Extra("another", {"billed": 9})),
    },
    Candidate: {
        "content": _sample((Text("zebra"),)),
        "stop": _sample(Stop("length")),
        "extra": EXTRA,
    },
    SafeguardResult: {
        "kind": _sample("zebra"),
        "calls": _sample({"call_1": CallVerdict("not_flagged")}, when=_holds("calls")),
        "reason": _sample("timeout", when=lambda result: result.status == "unavailable"),
        "extra": EXTRA,
    },
    CallVerdict: {"reason": _sample("timeout"), "extra": EXTRA},
    Start: {
        "id": _sample("msg_zebra"),
        "model": _sample("another-model"),
        "created": _sample(1700000777),
        "usage": _sample(Usage(input=7), when=_holds("usage")),
        "service_tier": _sample("priority", "batch"),
        "extra": EXTRA,
    },
    PartStart: {"index": INDEX, "part": _sample(Text("zebra"), of=(Text,))},
    Delta: {
        "index": INDEX,
        "text": _sample("zebra", of=(Text, Reasoning)),
        "logprobs": _sample((LOGPROB,), of=(Text,)),
    },
    PartEnd: {
        "index": INDEX,
        "signature": SIGNATURE,
        "citations": _sample((CITATION,), of=(Text,)),
        "extra": EXTRA,
        "cut": _sample(True, of=(ToolCall,)),
    },
    UsageReport: {"usage": _sample(Usage(input=7, output=8))},
    ForeignEvent: {
        "dialect": _sample("another", Own(str)),
        "type": _sample("zebra", when=lambda event: event.dialect == ELSEWHERE),
        "value": _sample({"type": "novelty", "zebra": 1}),
    },
    OtherAnswer: {"answer": _sample(Candidate((Text("zebra"),), Stop("length")))},
    Finish: {
        "stop": _sample(Stop("length")),
        "usage": _sample(Usage(input=7, output=8)),
        "service_tier": _sample("priority", "batch"),
        "extra": EXTRA,
        "safeguard_results": _sample((RESULT,)),
    },
    Failure: {"error": _sample(ApiError("server", "zebra"))},
    ApiError: {
        "message": _sample("zebra"),
        "status": _sample(418),
        "type": _sample("zebra"),
        "code": _sample("zebra"),
        "param": _sample("zebra"),
        "retry_after": _sample(7.0),
        "request_id": _sample("zebra"),
        "extra": EXTRA,
    },
}


def _words(hint: Any) -> tuple[Value, ...]:
    """All values of a flag or of a closed list of words; none of any other type."""
    if hint is bool:
        return (False, True)
    if get_origin(hint) is Literal:
        return get_args(hint)
    if get_origin(hint) in (Union, UnionType):
        return tuple(value for each in get_args(hint) if each is not NoneType for value in _words(each))
    return ()


def sample_of(kind: type[msgspec.Struct], field: str) -> Sample | None:
    for each in kind.__mro__:
        if each in SAMPLES and field in SAMPLES[each]:
            return SAMPLES[each][field]
    words = _words(REACHED[kind][field] if kind in REACHED else get_type_hints(kind)[field])
    return Sample(words) if words else None


def values_of(place: "Place", field: str, dialect: str, origin: str) -> list[Value]:
    """Values of the field that this instance does not have."""
    holder = place.holder
    sample = sample_of(type(holder), field)
    if sample is None or not sample.when(holder) or (sample.of and not isinstance(place.part, sample.of)):
        return []
    now = getattr(holder, field)
    other = dialect if origin == ELSEWHERE else "another"
    made = [
        value.make(other if isinstance(value, Other) else dialect) if isinstance(value, Own) else value
        for value in sample.values
    ]
    return [value for value in made if value != now]


# --- documents


class Doc(NamedTuple):
    """`within`: where the fields are looked at; elsewhere they would mean nothing, or be overridden."""

    title: str
    value: Document
    within: tuple[str, ...] = ("$",)


def _request(*messages: Message, **said: Value) -> Request:
    asked = messages or (Message("user", (Text("Hello"),)),)
    return Request("m", asked, max_tokens=9000, stream=False, **said)


CALL = ToolCall("call_1", "weather", '{"place":"Kiel"}')


SAID, HISTORY, TOOLS, CHOICE = (
    ("$.messages[0]",),
    ("$.messages[1]", "$.messages[2]"),
    ("$.tools",),
    ("$.tool_choice",),
)


def requests(dialect: str) -> Iterator[Doc]:
    """`dialect`: the one they are from."""
    yield Doc("plain", _request())
    yield from _settings(Extra(ELSEWHERE, {"curio": 1}))
    yield from _turns(dialect)
    yield from _media(dialect)
    yield from _tools(dialect)
    if dialect == ELSEWHERE:
        yield from _hosted()


def _settings(extra: Extra) -> Iterator[Doc]:
    for logprobs in (True, False):
        yield Doc("logprobs", _request(sampling=Sampling(logprobs=logprobs)), ("$.sampling",))
    yield Doc("thinking", _request(thinking=Thinking(None, "high", None, "summary", extra)), ("$.thinking",))
    for output in (
        OutputFormat("text"),
        OutputFormat("json"),
        OutputFormat("schema", SCHEMA, "given", strict=False, extra=extra),
        OutputFormat("schema", WORDS),
    ):
        yield Doc(f"output as {output.kind}", _request(output=output), ("$.output",))
    yield Doc("marked", _request(cache=CacheMark("short", extra), extra=extra), ("$.cache", "$.extra"))
    safeguard = Safeguard(TOOL_CALLS, {"rule": 1}, extra)
    yield Doc("safeguard", _request(tools=(TOOL,), safeguards=(safeguard,)), ("$.safeguards",))


def _turns(dialect: str) -> Iterator[Doc]:
    signature, extra = Signature("c2lnbg==", Origin(dialect)), Extra(ELSEWHERE, {"curio": 1})

    def turn(*parts: Part, after: tuple[Part, ...] = (Text("Go on."),), custom: bool = False) -> Request:
        asked = Message("user", (Text("Begin."),))
        sketch = Tool("sketch", "Draws.", kind="custom", grammar=GRAMMAR)
        return _request(
            asked,
            Message("assistant", parts),
            Message("user", after),
            tools=(sketch,) if custom else (TOOL, OTHER_TOOL),
        )

    marked = Text("Hello", cache=CacheMark("short", extra), extra=extra)
    texts = (Message("system", (Text("Be brief."),)), Message("user", (marked,), extra=extra))
    yield Doc("texts", _request(*texts), ("$.messages",))
    scored = Text("Water rises.", citations=CITATIONS[:1], logprobs=(LOGPROB,), signature=signature)
    yield Doc("an answer", turn(scored), HISTORY)
    for citation in CITATIONS:
        cited = Text("Water rises.", citations=(replace(citation, extra=extra),))
        yield Doc("a cited answer", turn(cited), HISTORY)
    yield Doc("a refusal", turn(Text("I will not.", refusal=True)), HISTORY)
    yield Doc("a thought", turn(Reasoning("A thought."), Text("So.")), HISTORY)
    yield Doc("a signed thought", turn(Reasoning("A thought.", signature, extra=extra), Text("So.")), HISTORY)
    yield Doc("a hidden thought", turn(Reasoning("", signature, redacted=True), Text("So.")), HISTORY)
    degrees = ToolResult("call_1", (Text("12 degrees"),))
    yield Doc("a call", turn(Text("Look:"), CALL, after=(degrees,)), HISTORY)
    signed = replace(CALL, signature=signature, cache=CacheMark("short"), extra=extra)
    result = replace(degrees, cache=CacheMark("short"), extra=extra)
    yield Doc("a signed call", turn(signed, after=(result,)), HISTORY)
    words = ToolCall("call_1", "sketch", "free words", kind="custom")
    drawn = ToolResult("call_1", (Text("drawn"),), kind="custom")
    yield Doc("a custom call", turn(words, after=(drawn,), custom=True), HISTORY)
    picture = ToolResult("call_1", (Text("See:"), Media("image", "image/png", PNG)))
    yield Doc("a picture as a result", turn(CALL, after=(picture,)), HISTORY)


def _media(dialect: str) -> Iterator[Doc]:
    signature, extra = Signature("c2lnbg==", Origin(dialect)), Extra(ELSEWHERE, {"curio": 1})
    image, foreign = (
        Media("image", "image/png", PNG),
        Foreign(dialect, "novelty", {"type": "novelty", "n": 1}),
    )
    parts: dict[str, Part] = {
        "an image": image,
        "a signed image": replace(image, signature=signature, cache=CacheMark("short"), extra=extra),
        "an image by address": Media("image", "image/png", url="https://example.org/a.png"),
        "an image by id": Media("image", "image/png", file_id="file_1"),
        "a document": Media("document", "application/pdf", PDF, name="paper.pdf"),
        "a text": Media("document", "text/plain", text="The text.", name="notes"),
        "a foreign part": foreign,
        "a foreign part in words": replace(foreign, text="Words."),
    }
    for title, part in parts.items():
        yield Doc(title, _request(Message("user", (Text("See:"), part))), SAID)


def _tools(dialect: str) -> Iterator[Doc]:
    extra = Extra(ELSEWHERE, {"curio": 1})
    marked = replace(OTHER_TOOL, cache=CacheMark("short"), extra=extra)
    choice = ToolChoice("auto", extra=extra)
    yield Doc("tools", _request(tools=(TOOL, marked)), ("$",))
    yield Doc("a choice", _request(tools=(TOOL, OTHER_TOOL), tool_choice=choice), CHOICE)
    native = replace(TOOL, native=Foreign(dialect, "bash_1", {"type": "bash_1"}))
    sketch = Tool("sketch", "Draws.", kind="custom")
    for tool in (native, sketch, replace(sketch, grammar=GRAMMAR)):
        yield Doc(f"the tool {tool.name}", _request(tools=(tool,)), TOOLS)
    third, two = replace(OTHER_TOOL, name="calendar"), ToolChoice("required", ("weather", "clock"))
    yield Doc("two of three tools", _request(tools=(TOOL, OTHER_TOOL, third), tool_choice=two), CHOICE)
    if dialect != ELSEWHERE:
        search = replace(SEARCH, native=Foreign(dialect, "search_1", {"type": "search_1"}))
        yield Doc("a hosted tool of its own", _request(tools=(TOOL, search)), TOOLS)


def _hosted() -> Iterator[Doc]:
    docs, files = (
        HostedTool("mcp", Foreign(ELSEWHERE, "mcp_9", {"type": "mcp_9"}), replace(SERVER, name=name))
        for name in ("docs", "files")
    )
    tools = (TOOL, SEARCH, docs, files)
    yield Doc("hosted tools", _request(tools=tools), TOOLS)
    chosen = (HostedChoice("web_search"), HostedChoice("mcp"))
    for mode in ("auto", "required"):
        some = ToolChoice(mode, ("weather",), hosted=chosen)
        yield Doc(f"some hosted tools, {mode}", _request(tools=tools, tool_choice=some), CHOICE)


def _response(*parts: Part, stop: Stop | None = None, **said: Value) -> Response:
    said.setdefault("usage", Usage(input=100, output=50))
    return Response("msg_1", "m", parts or (Text("Hello"),), stop or Stop("end"), created=1700000000, **said)


FULL_USAGE = Usage(
    input=100, cache_read=30, cache_write=20, cache_write_long=10, tool_prompt=5, output=50, reasoning=40
)
CONTENT, USAGE, STOP, CHECKS = ("$.content",), ("$.usage",), ("$.stop",), ("$.safeguard_results",)


def responses(dialect: str) -> Iterator[Doc]:
    signature, extra = Signature("c2lnbg==", Origin(dialect)), Extra(ELSEWHERE, {"curio": 1})
    yield Doc("plain", _response())
    yield Doc("without usage", _response(usage=None))
    yield Doc("full usage", _response(usage=FULL_USAGE), USAGE)
    yield Doc(
        "usage", _response(usage=Usage(input=100, output=50, raw=Extra(ELSEWHERE, {"billed": 1}))), USAGE
    )
    yield Doc("with more", _response(Text("Hello", extra=extra), extra=extra, stop=Stop("end", extra=extra)))
    yield Doc("stopped", _response(stop=Stop("stop_sequence", sequence="END")), STOP)
    image = Media("image", "image/png", PNG)
    parts: dict[str, tuple[Part, ...]] = {
        "a scored text": (Text("Water rises.", logprobs=(LOGPROB,)),),
        "two texts": (Text("Water rises."), Text("It falls.")),
        "a marked text": (Text("Water rises.", cache=CacheMark("short", extra)),),
        "a thought": (Reasoning("A thought."), Text("So.")),
        "a signed thought": (Reasoning("A thought.", signature, extra=extra), Text("So.")),
        "a hidden thought": (Reasoning("", signature, redacted=True), Text("So.")),
        "an image": (Text("See:"), image),
        "a signed image": (replace(image, signature=signature, cache=CacheMark(), extra=extra),),
        "a foreign part": (Text("See:"), Foreign(dialect, "novelty", {"type": "novelty", "n": 1})),
    }
    for citation in CITATIONS:
        cited = Text("Water rises.", citations=(replace(citation, extra=extra),), signature=signature)
        yield Doc("a cited text", _response(cited), CONTENT)
    for title, content in parts.items():
        yield Doc(title, _response(*content), CONTENT)
    yield Doc("a refusal", _response(Text("I will not.", refusal=True), stop=Stop("refused")), CONTENT)
    for title, call in {
        "a call": CALL,
        "a signed call": replace(CALL, signature=signature, cache=CacheMark("short"), extra=extra),
        "a custom call": ToolCall("call_1", "sketch", "free words", kind="custom"),
    }.items():
        yield Doc(title, _response(Text("Look:"), call, stop=Stop("tool_calls")), CONTENT)
    yield Doc(
        "two answers", _response(others=(Candidate((Text("Another."),), Stop("end"), extra),)), ("$.others",)
    )
    for checked in (
        SafeguardResult(
            TOOL_CALLS, "available", {"call_1": CallVerdict("flagged", "why", extra)}, extra=extra
        ),
        SafeguardResult(TOOL_CALLS, "unavailable", reason="error"),
    ):
        answer = _response(CALL, stop=Stop("tool_calls"), safeguard_results=(checked,))
        yield Doc(f"a check that is {checked.status}", answer, CHECKS)


def streams(dialect: str) -> Iterator[Doc]:
    """What a stream can say that no whole answer does."""
    signature, extra = Signature("c2lnbg==", Origin(dialect)), Extra(ELSEWHERE, {"curio": 1})
    more, usage = Extra(ELSEWHERE, {"late": 1}), Usage(input=9, cache_write=4, output=50)
    start, end = Start("msg_1", "m", 1700000000), Finish(Stop("end"), usage)
    ended, no_usage = PartEnd(0), Finish(Stop("end"))
    text: list[Event] = [PartStart(0, Text("")), Delta(0, "Water rises.")]
    call: list[Event] = [PartStart(0, ToolCall("call_1", "weather", "")), Delta(0, '{"place":"Kiel"}')]
    said: list[Event] = [PartStart(0, Text("Hi.")), ended]
    yield Doc("text", [start, *text, ended, end])
    yield Doc("text in one event", [start, *said, end])
    late: list[Event] = [
        replace(start, extra=extra),
        PartStart(0, Text("", extra=extra)),
        Delta(0, "Water rises.", (LOGPROB,)),
        PartEnd(0, signature, CITATIONS[:1], more),
        replace(end, service_tier="batch", extra=more, safeguard_results=(RESULT,)),
    ]
    yield Doc("with all that comes late", late, ("$[2]", "$[3]", "$[4]"))
    yield Doc("thought", [start, PartStart(0, Reasoning()), Delta(0, "A thought."), ended, end])
    signed: list[Event] = [
        start,
        PartStart(0, Reasoning()),
        Delta(0, "A thought."),
        PartEnd(0, signature, (), extra),
        end,
    ]
    yield Doc("signed thought", signed, ("$[3]",))
    yield Doc("call", [start, *call, ended, Finish(Stop("tool_calls"), usage)], ("$[1]", "$[2]", "$[3]"))
    yield Doc("usage before the end", [start, *text, ended, UsageReport(usage), no_usage])
    yield Doc("usage at the start", [replace(start, usage=usage), *said, no_usage], ("$[0]",))
    other = OtherAnswer(Candidate((Text("Another."),), Stop("end")))
    yield Doc("two answers", [start, *said, other, end])
    yield Doc("foreign event", [start, *said, ForeignEvent(dialect, "novelty", {"type": "novelty"}), end])
    failure = Failure(ApiError("server", "Broken."))
    yield Doc("failed", [start, PartStart(0, Text("Begun")), failure], ("$[2]",))


def errors(dialect: str) -> Iterator[Doc]:
    yield Doc("error", ApiError("invalid_request", "Wrong."))
    yield Doc("error in full", ApiError("rate_limit", "Wait.", 0, "t", "c", "p", 2.5, "req_1"))


# --- places


class Place(NamedTuple):
    """A struct in a document."""

    holder: msgspec.Struct
    path: str
    put: Callable[[msgspec.Struct], Any]
    """The document with another struct in its place."""
    part: Part | None = None
    """In a stream: the part that the event belongs to."""


def places(doc: Doc) -> Iterator[Place]:
    """Every struct of the neutral form in the document, with the document's own first. Paths are those of the
    losses: an event has the path of what it is about."""
    for place in _places(doc.value, "$", lambda value: value):
        if any(_is_under(place.path, path) for path in doc.within):
            yield _of_answer(place, doc.value) if isinstance(doc.value, list) else place


def _is_under(path: str, place: str) -> bool:
    return path == place or path.startswith((f"{place}.", f"{place}["))


def _places(value: Any, path: str, put: Callable[[Any], Any]) -> Iterator[Place]:
    if isinstance(value, msgspec.Struct):
        yield Place(value, path, put)
        for name in value.__struct_fields__:

            def put_field(new: Any, name: str = name) -> Any:
                return put(replace(value, **{name: new}))

            yield from _places(getattr(value, name), f"{path}.{name}", put_field)
    elif isinstance(value, tuple | list):
        for index, item in enumerate(value):

            def put_item(new: Any, index: int = index) -> Any:
                return put(type(value)([*value[:index], new, *value[index + 1 :]]))

            yield from _places(item, f"{path}[{index}]", put_item)
    elif isinstance(value, dict):
        for key, item in value.items():

            def put_value(new: Any, key: str = key) -> Any:
                return put({**value, key: new})

            yield from _places(item, f"{path}.{key}", put_value)


def _of_answer(place: Place, events: list[Event]) -> Place:
    number, _, rest = place.path.removeprefix("$[").partition("]")
    match event := events[int(number)]:
        case PartStart() | Delta() | PartEnd():
            parts = {each.index: each.part for each in events if isinstance(each, PartStart)}
            path = f"$.content[{event.index}]{rest.removeprefix('.part')}"
            return place._replace(path=path, part=parts[event.index])
        case OtherAnswer():
            return place._replace(path=f"$.others[0]{rest.removeprefix('.answer')}")
        case Failure():
            return place._replace(path=f"${rest.removeprefix('.error')}")
        case _:
            return place._replace(path=f"${rest}")
