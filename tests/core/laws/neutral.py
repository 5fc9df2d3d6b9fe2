"""Conversations and answers in the neutral form that say everything it can say.

What one dialect's documents can carry, another's renderer may never meet in a fixture: a signature on a text, a
namespace on a call, a grammar on a function. Here each renderer meets all of it, from a dialect that is none of
those that are here (`elsewhere`) and from each of them.
"""

from collections.abc import Iterator
from typing import Any, get_args

from wireglot_core.ir.content import (
    PHASE,
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
from wireglot_core.ir.errors import ApiError, ErrorKind
from wireglot_core.ir.outcome import Candidate, Response, Stop, StopReason, Usage
from wireglot_core.ir.request import (
    EFFORTS,
    Grammar,
    HostedTool,
    McpServer,
    OutputFormat,
    Request,
    Sampling,
    Thinking,
    Tool,
    ToolChoice,
)
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
    unfold,
)

ELSEWHERE = "elsewhere"
UNKNOWN = Extra(ELSEWHERE, {"oddity": 1, "blank": None}, {"spelling": "x"})
SHORT, LONG, PLAIN = CacheMark("short"), CacheMark("long", Extra(ELSEWHERE, {"scope": "all"})), CacheMark()
LOGPROBS = (TokenLogprob("Wa", -0.5, (("Wa", -0.5), ("Wi", -1.25))), TokenLogprob("ter", -0.25))
PNG, PDF, WAV = "iVBORw0KGgo=", "JVBERi0xLjQ=", "UklGRg=="
SCHEMA = {"type": "object", "properties": {"place": {"type": "string"}}, "required": ["place"]}


def signed(dialect: str, data: str = "c3RhdGU=", identifier: str = "") -> Signature:
    return Signature(data, Origin(dialect), identifier)


def citations(length: int) -> tuple[Citation, ...]:
    return (
        Citation("https://example.org/a", "Tides", "the moon pulls", 0, length),
        Citation("https://example.org/b", extra=UNKNOWN),
        Citation("https://example.org/c", "Start only", start=2),
        Citation("https://example.org/d", "End only", end=3),
        Citation(title="No address"),
        *(
            Citation(native=Foreign(dialect, "page_location", {"type": "page_location", "page": 3}))
            for dialect in (ELSEWHERE, "anthropic", "openai-chat", "openai-responses", "gemini")
        ),
    )


def _media() -> Iterator[Media]:
    for mime in ("image/png", "image/jpg", "image/tiff", ""):
        yield Media("image", mime, PNG)
    yield Media(
        "image", "image/png", url="https://example.org/a.png", detail="low", name="a.png", cache=SHORT
    )
    yield Media("image", file_id="file_1", detail="auto")
    yield Media("image", "image/webp", file_id="file_2", detail="high", signature=signed("gemini"))
    yield Media("image", "image/png", PNG, detail="ultra", name="b.png", extra=UNKNOWN)
    yield Media("image")
    yield Media("document", "application/pdf", PDF, name="paper.pdf", cache=LONG)
    yield Media("document", "application/pdf", PDF, detail="high")
    yield Media("document", "", PDF)
    yield Media("document", "application/json", "eyJhIjoxfQ==", name="a.json")
    yield Media("document", "text/plain", "cGxhaW4=")
    yield Media("document", "text/markdown", "IyBUaXRsZQ==")
    yield Media("document", "text/plain", "no base64 at all")
    yield Media("document", "application/zip", "UEsDBA==", cache=PLAIN)
    yield Media("document", "text/plain", text="The text itself.", name="notes")
    yield Media("document", "text/csv", text="a,b", signature=signed("gemini"))
    yield Media("document", url="https://example.org/paper.pdf", name="paper")
    yield Media("document", "application/pdf", url="https://example.org/other.pdf")
    yield Media("document", "application/pdf", file_id="file_3", name="third.pdf")
    yield Media("document", file_id="file_4")
    for mime in ("audio/wav", "audio/mpeg", "audio/mp3", "audio/x-wav", "audio/flac", ""):
        yield Media("audio", mime, WAV)
    yield Media("audio", "audio/wav", WAV, name="a.wav", detail="low", cache=SHORT)
    yield Media("audio", "audio/wav", url="https://example.org/a.wav")
    yield Media("video", "video/mp4", "AAAA", name="a.mp4")
    yield Media("video", "video/mp4", url="https://example.org/a.mp4")
    yield Media("video", file_id="file_5")


def _user(*parts: Part) -> Message:
    return Message("user", parts)


def _model(*parts: Part) -> Message:
    return Message("assistant", parts)


def _request(*messages: Message, **said: Any) -> Request:
    return Request("m", messages or (_user(Text("Hello")),), **said)


CALL = ToolCall("call_1", "weather", '{"place": "Kiel"}')
TOOL = Tool("weather", "Tells the weather.", SCHEMA)
OTHER_TOOL = Tool("time", "Tells the time.", {"type": "object", "properties": {}})


def _texts(dialect: str) -> Request:
    return _request(
        Message("system", (Text("Be brief.", cache=SHORT),), name="house", extra=UNKNOWN),
        Message("system", (Text("Be kind."), Text(""), Text(" ")), extra=Extra(dialect, {"own": True})),
        _user(Text(" \n"), Text("", signature=signed("gemini"))),
        Message("user", (Text("Hello", cache=LONG), Text("there", extra=UNKNOWN)), name="Ada"),
        Message("user", (Text("and more", cache=PLAIN),), extra=Extra(dialect, {"own": True})),
        _model(
            Text("Water rises.", citations=citations(12), logprobs=LOGPROBS, signature=signed("gemini")),
            Text("I will not.", refusal=True),
            Text("Commentary", signature=Signature("commentary", Origin("openai-responses"), PHASE)),
            Foreign(dialect, "novelty", {"type": "novelty", "n": 1}, "A novelty, in words."),
            Foreign(dialect, "mute", {"type": "mute"}),
        ),
        Message("system", (Text("Midway."), CALL, Media("image", "image/png", PNG))),
        _user(Text("Go on."), Foreign(dialect, "seen", {"type": "seen"}, "Seen, in words.")),
        Message("user", (), name="Nobody"),
        extra=Extra(dialect, {"own": {"x": 1}}, {"native": True}),
    )


def _calls(dialect: str) -> Request:
    return _request(
        _model(Text("Let me look.")),
        _user(Text("Please.")),
        _model(
            ToolCall("call_1", "weather", '{"place": "Kiel"}', namespace="skies", cache=SHORT, extra=UNKNOWN),
            ToolCall("call_2", "weather", "", signature=signed("gemini")),
            ToolCall("call_3", "weather", '{"place": "Bo', signature=signed(dialect)),
            ToolCall("call 4/ä", "sketch", "free words", kind="custom"),
            ToolCall("call_5", "weather", "[1]", extra=Extra(dialect, {"own": 2})),
            ToolCall("call_6", "left_click", '{"coordinate": [1, 2]}', namespace="computer"),
            ToolCall("call_7", "weather", " null "),
        ),
        _user(
            Text("Before the results."),
            ToolResult("call_1", (Text("12 degrees", cache=SHORT),), name="weather", cache=LONG),
            ToolResult("call_2", (Text("a"), Text("b"), Media("image", "image/png", PNG)), name="another"),
            ToolResult("call_3", (Text("no such place"),), is_error=True),
            ToolResult("call 4/ä", (Text("drawn"),), kind="custom"),
            ToolResult("call_5"),
            ToolResult("call_6", tuple(_media()), extra=UNKNOWN),
            ToolResult("call_7", (Foreign(dialect, "hit", {"type": "hit"}, "A hit."), Text(""))),
            ToolResult("nobody", (Text("asked by nobody"),), name="ghost", extra=Extra(dialect, {"own": 3})),
            Text("Behind the results."),
        ),
        _user(CALL, Reasoning("a thought of the user")),
        _model(ToolResult("call_1", (Text("by the model"),)), Media("image", "image/png", PNG)),
        tools=(TOOL, Tool("sketch", "Draws.", kind="custom")),
    )


def _thoughts(dialect: str) -> Request:
    origins = ("anthropic", "openai-chat", "openai-responses", "gemini", ELSEWHERE)
    return _request(
        _user(Text("Think.")),
        *(
            _model(
                Reasoning("Signed thought.", signed(origin, identifier="rs_1")),
                Reasoning("", signed(origin, identifier="rs_2")),
                Reasoning("", signed(origin), redacted=True),
                Text("So.", signature=signed(origin)),
                ToolCall(f"call_{origin}", "weather", "{}", signature=signed(origin)),
            )
            for origin in origins
        ),
        _model(
            Reasoning("Unsigned thought."),
            Reasoning("Unsigned, of its own dialect.", extra=Extra(dialect, {}, {"signature": "absent"})),
            Reasoning("With more beside it.", extra=UNKNOWN),
            Reasoning("", redacted=True),
            Reasoning(),
            Reasoning("Known by its minter.", minter=Origin(dialect)),
        ),
        _user(ToolResult(f"call_{dialect}", (Text("x"),))),
        tools=(TOOL,),
    )


def _tools(dialect: str) -> Request:
    return _request(
        tools=(
            Tool("plain", "Plain.", SCHEMA),
            Tool("bare"),
            Tool("described", "", {}),
            Tool("untyped", "Untyped.", {"properties": {"a": {"type": "string"}}}),
            Tool("strict", "Strict.", SCHEMA, strict=True, cache=SHORT),
            Tool("lax", "Lax.", SCHEMA, strict=False, cache=LONG),
            Tool("spaced", "In a namespace.", SCHEMA, namespace="skies"),
            Tool("later", "Deferred.", SCHEMA, deferred=True),
            Tool("free", "Freeform.", kind="custom"),
            Tool(
                "ruled", "By a grammar.", SCHEMA, True, "custom", Grammar("lark", 'start: "a"'), cache=PLAIN
            ),
            Tool("odd", "A function with a grammar.", SCHEMA, grammar=Grammar("regex", "a+")),
            Tool("native", "Runs commands.", SCHEMA, native=Foreign(dialect, "bash_1", {"type": "bash_1"})),
            Tool(
                "alien", "Runs commands.", SCHEMA, native=Foreign(ELSEWHERE, "shell_1", {"type": "shell_1"})
            ),
            Tool("beside", "With more beside it.", SCHEMA, extra=UNKNOWN),
            Tool("own", "With its own beside it.", SCHEMA, extra=Extra(dialect, {"own": 1})),
        ),
        tool_choice=ToolChoice("required", ("plain",), UNKNOWN),
        parallel_tools=False,
    )


PLACE = {"city": "Kiel", "region": "SH", "country": "DE", "timezone": "Europe/Berlin"}
SEARCH = {
    "allowed_domains": ["example.org"],
    "blocked_domains": ["example.com"],
    "location": PLACE,
    "max_uses": 3,
    "context_size": "low",
}


def _hosted(dialect: str) -> Request:
    def of(kind: str, **said: Any) -> HostedTool:
        return HostedTool(kind, Foreign(ELSEWHERE, f"{kind}_9", {"type": f"{kind}_9"}), **said)

    servers = (
        McpServer("docs", "https://example.org/mcp", "secret", allowed=("find", "read"), deferred=True),
        McpServer("docs", "https://example.org/again"),
        McpServer("open", "https://example.org/open", rest=("headers",)),
        McpServer("asked", "https://example.org/asked", approval=True),
    )
    return _request(
        tools=(
            of("web_search", options=SEARCH, untold=("depth",)),
            of("web_search", options={"blocked_domains": ["example.com"]}),
            of("web_fetch", options=SEARCH),
            of("code_execution", options={"max_uses": 2}),
            of("tool_search"),
            of("image_generation"),
            of("file_search"),
            of("url_context"),
            of("google_maps"),
            of("computer_use"),
            of("unheard_of"),
            *(of("mcp", server=server) for server in servers),
            of("mcp"),
            HostedTool("advisor", Foreign(dialect, "advisor_1", {"type": "advisor_1", "name": "advisor"})),
            Tool("later", "Deferred.", SCHEMA, deferred=True),
            Tool("code_execution", "A function of the same name.", SCHEMA),
        ),
    )


CHOICES = {
    "auto": ToolChoice("auto"),
    "none": ToolChoice("none"),
    "required": ToolChoice("required"),
    "one": ToolChoice("required", ("weather",)),
    "custom": ToolChoice("required", ("sketch",)),
    "some of": ToolChoice("auto", ("weather", "sketch")),
    "all of": ToolChoice("required", ("weather", "time")),
    "none of one": ToolChoice("none", ("weather",)),
    "unknown": ToolChoice("auto", ("ghost",)),
}


def _choices(dialect: str) -> Iterator[tuple[str, Request]]:
    declared = (TOOL, OTHER_TOOL, Tool("sketch", "Draws.", kind="custom"))
    for name, choice in CHOICES.items():
        for parallel in (None, False, True):
            text = "" if parallel is None else f", parallel {parallel}"
            yield (
                f"choice {name}{text}",
                _request(tools=declared, tool_choice=choice, parallel_tools=parallel),
            )
    yield "parallel False", _request(tools=declared, parallel_tools=False)
    yield "choice without tools", _request(tool_choice=CHOICES["one"], parallel_tools=False)
    yield "auto without tools", _request(tool_choice=CHOICES["auto"])
    extra = Extra(dialect, {}, {"native": True})
    yield "own choice without tools", _request(tool_choice=CHOICES["none"], parallel_tools=False, extra=extra)


def _settings(dialect: str) -> Iterator[tuple[str, Request]]:
    yield (
        "all settings",
        _request(
            max_tokens=100,
            stop=("END", "STOP"),
            sampling=Sampling(1.5, 0.5, 40, 0.25, -0.5, 7, 2, True, 3),
            verbosity="low",
            stream=True,
            user="ada",
            metadata={"job": "nightly", "run": "7"},
            service_tier="priority",
            cache=LONG,
            cache_key="k1",
            extra=UNKNOWN,
        ),
    )
    yield (
        "own settings",
        _request(
            sampling=Sampling(1.5, top_k=40, candidates=1),
            stream=False,
            service_tier="flex",
            extra=Extra(dialect, {"own": 1}, {"native": True}),
        ),
    )
    for tier in ("auto", "standard", "default", "flex", "priority", "batch", "fast", "scale"):
        yield f"tier {tier}", _request(service_tier=tier)
    for ttl in (PLAIN, SHORT, LONG):
        yield f"cache {ttl.ttl}", _request(cache=ttl)
    for kind in ("text", "json", "schema"):
        yield f"output {kind}", _request(output=OutputFormat(kind))
        yield (
            f"output {kind} with all",
            _request(output=OutputFormat(kind, SCHEMA, "weather", "The weather.", True, UNKNOWN)),
        )
    yield "output not strict", _request(output=OutputFormat("schema", SCHEMA, "response", strict=False))


def _thinking(dialect: str) -> Iterator[tuple[str, Request]]:
    for mode in (None, "on", "auto", "off"):
        for effort in (None, *EFFORTS):
            thinking = Thinking(mode, effort)
            yield f"thinking {mode} {effort}", _request(thinking=thinking, max_tokens=9000)
        yield f"thinking {mode} budget", _request(thinking=Thinking(mode, None, 4096, "summary"))
        yield f"thinking {mode} omitted", _request(thinking=Thinking(mode, "high", None, "omitted", UNKNOWN))
    yield "thinking shown", _request(thinking=Thinking(display="summary"))
    yield "thinking of its own", _request(thinking=Thinking("on", extra=Extra(dialect, {"own": 1})))


def requests(dialect: str) -> Iterator[tuple[str, Request]]:
    """What a renderer may be given, by name; `dialect` is who wrote what is foreign in it."""
    yield "texts", _texts(dialect)
    yield "calls", _calls(dialect)
    yield "thoughts", _thoughts(dialect)
    yield "media", _request(_user(Text("See."), *_media()))
    yield "tools", _tools(dialect)
    yield "hosted tools", _hosted(dialect)
    yield "only the model", _request(_model(Text("Hello")))
    yield "only instructions", _request(Message("system", (Text("Be brief."),)))
    yield "nothing to see", _request(_user(Text("")))
    yield from _choices(dialect)
    yield from _settings(dialect)
    yield from _thinking(dialect)


# Answers

USAGE = Usage(
    input=100,
    cache_read=20,
    cache_write=7,
    cache_write_long=5,
    tool_prompt=3,
    output=40,
    reasoning=11,
    raw=Extra(ELSEWHERE, {"billed": 9}, {"in": 1}),
)


def _parts(dialect: str) -> tuple[Part, ...]:
    return (
        Reasoning("First thought.", signed(dialect)),
        Reasoning("Second thought.", extra=UNKNOWN),
        Reasoning("", signed("anthropic"), redacted=True),
        Reasoning("", signed("openai-responses", identifier="rs_9")),
        Reasoning("", redacted=True),
        Text("Water rises.", citations=citations(12), logprobs=LOGPROBS, signature=signed("gemini")),
        Text("It falls again.", extra=UNKNOWN, cache=SHORT),
        Text("", signature=signed("gemini")),
        Text("", citations=citations(0)[:2]),
        Text("I will not.", refusal=True, logprobs=LOGPROBS),
        Text("On the way.", signature=Signature("commentary", Origin("openai-responses"), PHASE)),
        Media("image", "image/png", PNG, signature=signed("gemini"), name="a.png"),
        Media("image", url="https://example.org/a.png", detail="low"),
        Media("audio", "audio/wav", WAV),
        Media("audio", url="https://example.org/a.wav"),
        Media("document", "text/plain", text="words", cache=SHORT),
        Media("video", "video/mp4", "AAAA"),
        Foreign(dialect, "novelty", {"type": "novelty", "input": {"a": 1}}, "A novelty."),
        Foreign(ELSEWHERE, "mute", {"type": "mute"}),
        ToolCall("call_1", "weather", '{"place": "Kiel"}', signature=signed("gemini")),
        ToolCall("call 2/ä", "weather", "", namespace="skies", cache=SHORT, extra=UNKNOWN),
        ToolCall("call_3", "weather", '{"place": "Bo', signature=signed(dialect)),
        ToolCall("call_4", "sketch", "free words", kind="custom"),
        ToolCall("call_5", "ghost", "free words", kind="custom", signature=signed(ELSEWHERE)),
        ToolCall("call_6", "left_click", '{"coordinate": [1, 2]}', namespace="computer"),
    )


_ASKING = Extra(
    "openai-chat", {}, {"native": True, "stream": True, "stream_options": {"include_usage": True}}
)
ASKED = Request(
    "asked-model",
    (_user(Text("Hello")),),
    (TOOL, Tool("sketch", "Draws.", kind="custom")),
    stream=True,
    extra=_ASKING,
)
"""Somebody who declared a freeform tool, and wants the usage of a stream."""


def answers(dialect: str) -> Iterator[tuple[str, Response]]:
    others = (
        Candidate((Text("Another answer."), CALL), Stop("tool_calls"), UNKNOWN),
        Candidate((Reasoning("hm"),), Stop("length", "MAX", ELSEWHERE)),
    )
    yield (
        "everything",
        Response(
            "resp/1",
            "m-1",
            _parts(dialect),
            Stop("tool_calls"),
            USAGE,
            1700000000,
            "priority",
            others,
            UNKNOWN,
        ),
    )
    yield "thin", Response("", "", (Text("Hi."),), Stop("end"))
    yield (
        "its own",
        Response(
            "msg_1",
            "m",
            (Text("Hi."),),
            Stop("end"),
            Usage(input=1, output=2),
            5,
            "batch",
            (),
            Extra(dialect, {"own": 1}),
        ),
    )
    for reason in get_args(StopReason):
        stop = Stop(reason, "RAW", ELSEWHERE, "END", Extra(ELSEWHERE, {"why": "x"}))
        yield (
            f"stop {reason}",
            Response("r", "m", (Text("Hi."),), stop, Usage(input=1, cache_write=2, output=0)),
        )
        yield (
            f"own stop {reason}",
            Response("r", "m", (Text("Hi."),), Stop(reason, "", dialect, None, Extra(dialect, {"own": 1}))),
        )
    for tier in ("standard", "priority", "batch", "flex", "default", "scale"):
        yield f"tier {tier}", Response("r", "m", (Text("Hi."),), Stop("end"), Usage(), service_tier=tier)


def streams(dialect: str) -> Iterator[tuple[str, list[Event]]]:
    for name, answer in answers(dialect):
        yield name, list(unfold(answer))
    estimate = Usage(input=9, cache_write=4, reasoning=2)
    start = Start("r", "m", 1700000000, estimate, "flex", UNKNOWN)
    stop = Finish(
        Stop("tool_calls"), Usage(input=9, output=1), "", Extra(dialect, {"own": 1}, {"native": True})
    )
    call, more = ToolCall("call_1", "weather", ""), ToolCall("call_2", "time", '{"a"')
    yield (
        "interleaved",
        [
            start,
            PartStart(0, Text("", extra=UNKNOWN)),
            Delta(0, "One "),
            PartStart(1, call),
            Delta(1, '{"place": '),
            PartStart(2, more),
            Delta(2, ": 1}"),
            Delta(0, "two."),
            PartStart(3, Text("")),
            Delta(3, "Three."),
            UsageReport(USAGE),
            PartEnd(2, signed("gemini")),
            PartEnd(0, signed("gemini"), citations(8)),
            Delta(1, '"Kiel"}'),
            PartEnd(1, extra=UNKNOWN),
            PartEnd(3),
            stop,
        ],
    )
    yield (
        "a custom call behind its text",
        [
            Start("r", "m"),
            PartStart(0, ToolCall("call_1", "sketch", "fr", kind="custom")),
            PartStart(1, ToolCall("call_2", "ghost", "", kind="custom", extra=Extra(dialect, {"own": 1}))),
            PartStart(2, Text("")),
            Delta(2, "Hello."),
            Delta(0, "ee"),
            PartEnd(0),
            Delta(1, "words"),
            PartEnd(2),
            PartEnd(1),
            Finish(Stop("tool_calls")),
        ],
    )
    yield (
        "late and odd",
        [
            start,
            PartStart(0, Reasoning("A start. ")),
            Delta(0, "More."),
            PartEnd(0, signed(dialect), extra=UNKNOWN),
            PartStart(1, Reasoning("", redacted=True)),
            PartEnd(1, signed("anthropic")),
            PartStart(2, Reasoning()),
            PartEnd(2, signed("openai-responses", identifier="rs_3")),
            PartStart(3, Reasoning("Two thoughts. ")),
            PartEnd(3),
            PartStart(4, Reasoning("In a row.")),
            PartEnd(4),
            PartStart(5, Text("Given whole.", logprobs=LOGPROBS, citations=citations(12)[:1])),
            Delta(5, " And more.", LOGPROBS),
            Delta(5, "", LOGPROBS),
            ForeignEvent(dialect, "novelty", {"type": "novelty"}),
            ForeignEvent(ELSEWHERE, "novelty", {"type": "novelty"}),
            PartEnd(5, signed("gemini")),
            PartStart(6, Text("", refusal=True)),
            Delta(6, "No."),
            PartEnd(6),
            PartStart(7, ToolCall("call_7", "sketch", "fr", kind="custom")),
            Delta(7, "ee"),
            PartEnd(7, signed("gemini")),
            PartStart(8, ToolCall("call_8", "weather", "{}")),
            PartEnd(8, cut=True),
            PartStart(9, Media("image", "image/png", PNG)),
            PartEnd(9, signed("gemini"), extra=UNKNOWN),
            OtherAnswer(Candidate((Text("Another."),), Stop("end"), UNKNOWN)),
            OtherAnswer(Candidate((CALL,), Stop("tool_calls"))),
            Finish(Stop("length", "MAX", ELSEWHERE), None, "batch", UNKNOWN),
        ],
    )
    yield "failed at once", [Failure(ApiError("overloaded", "Too many.", 529, retry_after=3.0))]
    yield (
        "failed midway",
        [
            Start("r", "m"),
            PartStart(0, Text("Begun")),
            Failure(ApiError("server", "Broken.", 500, "t", "c", "p")),
        ],
    )


def errors() -> Iterator[ApiError]:
    for kind in get_args(ErrorKind):
        yield ApiError(kind, "Something is wrong.")
        yield ApiError(
            kind, "Something is wrong.", 418, "its_type", "its_code", "messages[0]", 2.5, "req_1", UNKNOWN
        )
    yield ApiError("context_overflow", "This has 12,345 tokens, more than 8000 are not taken.", 400)
    yield ApiError("context_overflow", "prompt is too long: 9 tokens > 8 maximum", 400)
    yield ApiError("rate_limit", "Quota is used up.", 429, code="insufficient_quota")
