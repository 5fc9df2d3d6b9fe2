"""Hosted tools, each part alone: ranking, patterns, citations, names and arguments."""

from __future__ import annotations

import asyncio
from math import log
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from tests.gateway.offline import Said, Upstream
from tests.tiers import rows
from wireglot.gateway.hosted import history, loop, ranking
from wireglot.gateway.hosted.ranking import BadPattern, fields_of, rank_by_words, search_pattern, words_of
from wireglot.gateway.hosted.rounds import cited
from wireglot.gateway.hosted.runner import arguments_of, called_name, failed, function_name, result_parts
from wireglot.gateway.hosted.tool_search import ToolSearch, ToolSearchRunner, found_tools_text, key_of
from wireglot_core.dialects.capabilities import HostedForm
from wireglot_core.ir.content import (
    CacheMark,
    Citation,
    Foreign,
    Media,
    Origin,
    Part,
    Signature,
    Text,
    ToolCall,
)
from wireglot_core.ir.hosted import HostedCall, HostedResult, RanCall, WebPage, WebSource
from wireglot_core.ir.request import HostedTool, Request, Tool, ToolChoice

SCHEMA = {
    "type": "object",
    "properties": {"city": {"description": "Where"}, "days": 7, "unit": {"description": 7}},
}
WEATHER = Tool("getWeather", "The weather of a place", SCHEMA, deferred=True)
STOCKS = Tool("stock_price", "The price of a stock", deferred=True, namespace="finance")
MAIL = Tool("send_mail", None, deferred=True)
TOOLS = (WEATHER, STOCKS, MAIL)


def test_what_is_searched_of_a_tool() -> None:
    assert fields_of(WEATHER) == ["getWeather", "The weather of a place", "city", "Where", "days", "unit"]
    assert fields_of(STOCKS) == ["stock_price", "finance", "The price of a stock"]
    assert fields_of(Tool("x", "y" * 5000, {"properties": []})) == ["x", "y" * 4000]


@rows(
    ("text", "words"),
    [
        ("getHTTPStatus_code2", ["get", "http", "status", "code", "2"]),
        ("Über größe", ["ü", "ber", "gr", "öß", "e"]),
        ("snake_case CONSTANT", ["snake", "case", "constant"]),
        ("天気", ["天気"]),
    ],
)
def test_words_of_names(text: str, words: list[str]) -> None:
    assert words_of(text) == words


@rows(
    ("query", "places"),
    [
        ("weather", [0]),
        ("the price of stocks", [1]),
        ("send mail", [2]),
        ("finance", [1]),
        ("where", [0]),
        ("the of a", []),
        ("nothing here fits", []),
        ("", []),
    ],
)
def test_tools_are_found_by_words(query: str, places: list[int]) -> None:
    assert rank_by_words(query, TOOLS) == places
    assert rank_by_words(query, ()) == []


def test_the_best_five_come_first() -> None:
    tools = [Tool("filler"), *(Tool("word", "word " * number) for number in range(1, 8))]
    assert rank_by_words("word", tools) == [7, 6, 5, 4, 3]
    rare = [Tool("a", "common rare"), Tool("b", "common common"), Tool("c", "common")]
    assert rank_by_words("rare common", rare)[0] == 0
    short, long = Tool("x", "match"), Tool("y", "match " + "other " * 40)
    assert rank_by_words("match", [long, short]) == [1, 0]


def test_patterns_find_names_first_and_are_refused_by_name() -> None:
    assert asyncio.run(search_pattern("(?i)price|weather", TOOLS)) == [0, 1]
    assert asyncio.run(search_pattern("^send_|The", TOOLS)) == [2, 0, 1]
    with pytest.raises(BadPattern, match="missing"):
        asyncio.run(search_pattern("(", TOOLS))
    assert ranking.MAX_HITS == 5


def session(*, by_pattern: bool = False, found: tuple[str, ...] = ()) -> ToolSearch:
    tool = HostedTool("tool_search", Foreign("d", "tool_search", {}))
    return ToolSearch(tool, found, by_pattern=by_pattern)


def test_deferred_tools_are_held_back_until_they_are_found() -> None:
    plain = Tool("plain")
    request = Request("m", (), tools=(plain, *TOOLS))
    search = session(found=("send_mail",))
    offered = search.offer(request)
    assert [tool.name for tool in offered.functions] == ["tool_search"]
    names = [getattr(tool, "name", "") for tool in offered.request.tools]
    assert names == ["plain", "send_mail"]
    assert not any(tool.deferred for tool in offered.request.tools if isinstance(tool, Tool))
    call = search.call(ToolCall("c", "tool_search", '{"query": "weather"}'), "id1")
    assert (call.kind, call.id, call.name, call.input) == (
        "tool_search",
        "id1",
        "tool_search",
        {"query": "weather"},
    )
    result = asyncio.run(search.run(call))
    assert (result.text, result.tools[0].name) == ("These tools can be called now: getWeather.", "getWeather")
    assert [getattr(tool, "name", "") for tool in search.offer(request).request.tools] == [
        "plain", "getWeather", "send_mail",
    ]  # fmt: skip
    forced = Request("m", (), tools=TOOLS, tool_choice=ToolChoice("required", ("stock_price",)))
    assert [getattr(tool, "name", "") for tool in session().offer(forced).request.tools] == ["stock_price"]
    nothing = Request("m", (), tools=(plain,))
    assert session().offer(nothing).functions == ()
    assert session().offer(nothing).request is nothing


@rows(
    ("by_pattern", "given", "code", "said"),
    [
        (False, {}, "invalid_tool_input", "query is missing."),
        (False, {"query": "  "}, "invalid_tool_input", "query is missing."),
        (False, {"query": 7}, "invalid_tool_input", "query is missing."),
        (False, {"query": "x" * 501}, "invalid_tool_input", "query may have 500 characters."),
        (True, {"pattern": "x" * 201}, "invalid_tool_input", "pattern may have 200 characters."),
        (True, {"query": "x"}, "invalid_tool_input", "pattern is missing."),
        (True, {"pattern": "("}, "invalid_tool_input", "pattern is no Python regular expression: "),
        (False, {"query": "x" * 500}, None, "No tools were found."),
    ],
)
def test_a_search_that_cannot_be_run(by_pattern: bool, given: Any, code: Any, said: str) -> None:
    from wireglot_core.wire.json import encode_text

    search = session(by_pattern=by_pattern)
    search.offer(Request("m", (), tools=TOOLS))
    result = asyncio.run(search.run(search.call(ToolCall("c", "tool_search", encode_text(given)), "id")))
    assert (result.error or None) == code
    assert said in result.text


def test_found_tools_are_named_with_their_namespace() -> None:
    assert (
        found_tools_text((STOCKS, MAIL)) == "These tools can be called now: finance__stock_price, send_mail."
    )
    assert found_tools_text(()) == "No tools were found."
    assert key_of(STOCKS) == ("finance", "stock_price")


# Citations.

ONE = WebSource("https://a.example/x", "A", "t" * 200)
TWO = WebSource("https://a.example/x/y", "B", "short")


@rows(
    ("text", "places"),
    [
        ("see https://a.example/x.", [("https://a.example/x", 4, 23)]),
        ("see https://a.example/x/y now", [("https://a.example/x/y", 4, 25)]),
        ("see https://a.example/xy", []),
        ("see https://a.example/x?q", []),
        ("[A](https://a.example/x) is", [("https://a.example/x", 0, 24)]),
        ("[A](<https://a.example/x>)", [("https://a.example/x", 0, 26)]),
        (
            "https://a.example/x, https://a.example/x/y",
            [("https://a.example/x", 0, 19), ("https://a.example/x/y", 21, 42)],
        ),
        ("no address", []),
    ],
)
def test_where_a_text_cites_its_sources(text: str, places: list[tuple[str, int, int]]) -> None:
    found = cited(text, [ONE, TWO, WebSource("", "", "")], quotes=False)
    assert [(each.url, each.start, each.end) for each in found] == places


def test_quotes_have_150_characters() -> None:
    (found,) = cited("https://a.example/x", [ONE, WebSource(ONE.url, "again", "")], quotes=True)
    assert found == Citation(ONE.url, "A", "t" * 150, start=0, end=19)


# Names, arguments, results.


def test_names_of_functions() -> None:
    assert function_name("search", {"other"}) == "search"
    assert function_name("search", {"search", "gateway_search"}) == "gateway_gateway_search"
    assert called_name(HostedCall("mcp", "i", "run", {}, server="s")) == "s__run"
    assert called_name(HostedCall("web_search", "i", "", {})) == "web_search"
    assert called_name(HostedCall("web_search", "i", "look", {})) == "look"


@rows(
    ("text", "value"),
    [('{"a": 1}', {"a": 1}), ("", {}), ("[1]", {}), ("nonsense", {}), ('{"a": 1,}', {"a": 1}), ("null", {})],
)
def test_arguments_of_calls(text: str, value: Any) -> None:
    found = arguments_of(ToolCall("c", "f", text))
    assert {key: item for key, item in found.items() if not key.startswith("_")} == value


def test_what_a_model_is_given_of_a_result() -> None:
    assert failed("unavailable", "gone") == HostedResult("unavailable: gone", "unavailable", "gone")
    assert result_parts(HostedResult("text")) == (Text("text"),)
    page = WebPage("https://h/", "Title", mime="application/pdf", data="QQ==")
    assert result_parts(HostedResult("text", page=page)) == (
        Text("text"),
        Media("document", "application/pdf", "QQ==", name="Title"),
    )


# The connection to an MCP server.


@rows(
    ("method", "status", "problem"),
    [
        ("POST", 400, "it answered with status 400"),
        ("POST", 399, ""),
        ("POST", 500, "it answered with status 500"),
        ("GET", 405, ""),
    ],
)
def test_a_server_that_refuses_is_named_by_its_status(method: str, status: int, problem: str) -> None:
    httpx2 = pytest.importorskip("httpx2")
    from wireglot.gateway.hosted.mcp_connection import _GuardedTransport
    from wireglot.gateway.settings import McpSettings

    hosts: Any = SimpleNamespace(check_url=lambda url: None, check_addresses=None)
    upstream, closed = Upstream(), list[bool]()

    async def close() -> None:
        closed.append(True)

    async def work() -> None:
        guarded = _GuardedTransport(hosts, McpSettings())
        transport: Any = SimpleNamespace(send=upstream.send, close=close)
        guarded._transport = transport
        upstream.say(Said(status, b"{}"))
        answer = await guarded.handle_async_request(httpx2.Request(method, "https://mcp.example/"))
        assert (answer.status_code, "".join(guarded.problems.values())) == (status, problem)
        await guarded.aclose()

    asyncio.run(work())
    assert closed == [True]
    assert upstream.sent[-1].method == method


def test_models_that_clients_make_up_are_not_kept_forever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "_takes", lambda target, tool: target.name != "x/0")
    tools = hosted_tools()
    search = HostedTool("web_search", Foreign("anthropic", "web_search_20250305", {}))
    kept = []
    for number in (*range(4097), 0):
        target = SimpleNamespace(name=f"x/{number}", dialect="openai-chat", others=())
        assert tools._is_native(target, search) is bool(number)
        kept.append(len(tools._native))
    assert kept == [*range(1, 4097), 1, 2]


def hosted_tools() -> Any:
    nothing: Any = None
    return loop.HostedTools(nothing, {}, rebuild=nothing, ask=nothing, keep=nothing, count=nothing)


@rows(
    ("dialect", "plain", "native", "body", "is_read"),
    [
        ("openai-chat", True, True, b'{"tools":["web_search"]}', False),
        ("openai-chat", True, False, b'{"tools":["now"]}', False),
        ("openai-chat", True, False, b'{"tools":["web_search"]}', True),
        ("openai-chat", False, False, b'{"tools":["now"]}', True),
        ("anthropic", True, True, b'{"tools":["now"]}', True),
    ],
    ids=["native", "no mark", "a mark", "changed", "another dialect"],
)
def test_a_body_that_passes_is_read_for_its_tools_alone(
    dialect: str, plain: bool, native: bool, body: bytes, is_read: bool
) -> None:
    read = []

    def request() -> Request:
        read.append(True)
        return Request("m", ())

    hosted = HostedForm(tool_marks={"tools": (b"web_search",), "options": (b"",)})
    job = SimpleNamespace(
        dialect="openai-chat",
        body=body,
        outline=SimpleNamespace(members={"tools": (9, len(body))}),
        surface=SimpleNamespace(client=SimpleNamespace(hosted=hosted)),
        policy="",
        settings=SimpleNamespace(losses="warn"),
        context=SimpleNamespace(emulates=True),
    )
    limits = SimpleNamespace(hosted_tools=native)
    target = SimpleNamespace(plain=plain, dialect=dialect, limits=limits, losses="")
    assert hosted_tools()._lacking(SimpleNamespace(job=job, request=request), target) == []
    assert bool(read) is is_read


# Order by words.


def _scores(query: list[str], tools: list[list[str]]) -> list[float]:
    """Okapi BM25 as its authors write it, with k1 = 1.2 and b = 0.75."""
    mean = sum(map(len, tools)) / len(tools)
    scores = []
    for words in tools:
        total = 0.0
        for word in query:
            having = sum(word in each for each in tools)
            weight = log((len(tools) - having + 0.5) / (having + 0.5) + 1)
            often = words.count(word)
            total += weight * often * 2.2 / (often + 1.2 * (0.25 + 0.75 * len(words) / mean))
        scores.append(total)
    return scores


def test_tools_are_ranked_as_bm25_ranks_them() -> None:
    chance = Random(7)
    words = [f"w{letter}" for letter in "abcdefgh"]
    for _ in range(60):
        texts = [chance.choices(words, range(1, 9), k=chance.randint(1, 12)) for _ in range(6)]
        query = chance.sample(words, 2)
        scores = _scores(query, texts)
        best = sorted((place for place in range(6) if scores[place]), key=lambda place: -scores[place])
        tools = [Tool(text[0], " ".join(text[1:])) for text in texts]
        found = rank_by_words(" ".join(query), tools)
        assert [round(scores[place], 9) for place in found] == [round(scores[place], 9) for place in best[:5]]


def test_common_words_find_nothing() -> None:
    common = "a an and are as at by for from in is it of on or the to"
    for word in common.split():
        assert rank_by_words(word, [Tool("x", word)]) == [], word
    assert rank_by_words("not", [Tool("x", "not")]) == [0]


def test_a_pattern_runs_in_a_bare_process(monkeypatch: pytest.MonkeyPatch) -> None:
    begin = asyncio.create_subprocess_exec
    environments: list[dict[str, str]] = []

    async def noted(*command: str, **options: Any) -> Any:
        environments.append(options["env"])
        assert command[1:4] == ("-I", "-S", "-c")
        return await begin(*command, **{**options, "env": {}})

    monkeypatch.setattr(asyncio, "create_subprocess_exec", noted)
    kept = {"SYSTEMROOT": "1", "LD_LIBRARY_PATH": "2", "DYLD_LIBRARY_PATH": "3"}
    for name, value in kept.items():
        monkeypatch.setenv(name, value)
    assert asyncio.run(search_pattern("^[a-z_]+$", TOOLS)) == [1, 2, 0]
    assert environments == [kept]
    many = [Tool(f"tool_{number}") for number in range(9)]
    assert asyncio.run(search_pattern("tool", many)) == [0, 1, 2, 3, 4]


@rows(("by_pattern", "argument"), [(False, "query"), (True, "pattern")])
def test_the_function_of_a_search(by_pattern: bool, argument: str) -> None:
    (function,) = session(by_pattern=by_pattern).offer(Request("m", (), tools=TOOLS)).functions
    assert function.schema is not None
    described = function.schema["properties"][argument].pop("description")
    assert ("regular expression" in described) is by_pattern
    assert function.schema == {
        "type": "object",
        "properties": {argument: {"type": "string"}},
        "required": [argument],
        "additionalProperties": False,
    }
    named = HostedTool("tool_search", Foreign("d", "tool_search", {"name": "find"}))
    (function,) = ToolSearch(named, (), by_pattern=False).offer(Request("m", (), tools=TOOLS)).functions
    assert function.name == "find"
    assert (session().backend, ToolSearchRunner.name, ToolSearchRunner.connects) == (
        "gateway",
        "the gateway",
        False,
    )


# Earlier turns.

RAN = "0" * 22
CALL = HostedCall("web_search", f"wg{RAN}", input={"query": "x"})


@rows(
    ("result", "says"),
    [
        (HostedResult(), False),
        (HostedResult("text"), True),
        (HostedResult(error="unavailable"), True),
        (HostedResult(sources=(ONE,)), True),
        (HostedResult(page=WebPage("https://h/")), True),
        (HostedResult(tools=(MAIL,)), True),
        (None, True),
    ],
)
def test_what_a_vendors_call_says(result: Any, says: bool) -> None:
    assert history._says_something(RanCall("x", CALL, result)) is says
    assert history._says_something(RanCall("x", None, result)) is True


@rows(
    ("id", "ours", "shown"),
    [
        (f"wg{RAN}", True, False),
        (f"wn{RAN}", True, True),
        (f"wg{RAN}0", False, False),
        (f"wn{RAN[1:]}", False, False),
        (f"xx{RAN}", False, False),
    ],
)
def test_whose_call_it_is(id: str, ours: bool, shown: bool) -> None:
    assert history._is_ours(RanCall(id)) is ours
    assert history._is_shown(RanCall(id)) is shown
    assert history._is_shown(None) is False


SIGNED = Signature("s", Origin("gemini"))
CITED = (Citation("https://h/", "H"),)


@rows(
    ("before", "part", "joined"),
    [
        (Text("a", citations=CITED), Text("b"), Text("ab", citations=CITED)),
        (Text("a"), Text("b", citations=CITED), Text("ab", citations=CITED)),
        (Text("a", citations=CITED), Text("b", citations=CITED), Text("ab", citations=CITED * 2)),
        (Text("a"), Text("b"), None),
        (ToolCall("c", "f", "{}"), Text("b", citations=CITED), None),
        (Text("a", citations=CITED, refusal=True), Text("b"), None),
        (Text("a", citations=CITED), Text("b", refusal=True), None),
        (Text("a", citations=CITED, cache=CacheMark()), Text("b"), None),
        (
            Text("a", citations=CITED),
            Text("b", cache=CacheMark()),
            Text("ab", citations=CITED, cache=CacheMark()),
        ),
        (Text("a", citations=CITED, signature=SIGNED), Text("b"), None),
        (Text("a", citations=CITED), Text("b", signature=SIGNED), None),
    ],
)
def test_pieces_of_a_text_that_was_cut_where_it_cites(before: Any, part: Text, joined: Any) -> None:
    assert history._joined([before, part]) == ((before, part) if joined is None else (joined,))


def test_many_pieces_of_a_text_are_joined_at_once() -> None:
    pieces: list[Part] = [Text(f"{at} ", citations=CITED if at % 2 else ()) for at in range(2000)]
    call = ToolCall("c", "f", "{}")
    whole = "".join([f"{at} " for at in range(2000)])
    assert history._joined([call, *pieces]) == (call, Text(whole, citations=CITED * 1000))
