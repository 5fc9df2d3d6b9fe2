"""MCP servers: sessions, and what the connection makes of messages, each part alone."""

from __future__ import annotations

import asyncio
import logging
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("mcp")

import httpx2
import mcp_types as types
from mcp.shared.exceptions import MCPError

from tests.gateway.offline import Said, Upstream
from tests.tiers import rows
from wireglot.gateway.errors import RequestError
from wireglot.gateway.hosted import mcp, mcp_connection
from wireglot.gateway.hosted.mcp import McpRunner, McpSession
from wireglot.gateway.hosted.mcp_connection import (
    McpConnection,
    McpFailed,
    _about,
    _GuardedTransport,
    _text_of,
)
from wireglot.gateway.settings import McpSettings
from wireglot.http.transport import TransportFault
from wireglot.web.contract import WebFailed
from wireglot_core.dialects.capabilities import McpForm
from wireglot_core.ir.content import Foreign, Media, Message, Text, ToolCall, ToolResult
from wireglot_core.ir.hosted import Approval, HostedCall, HostedResult, ListedTool
from wireglot_core.ir.request import HostedTool, McpServer, Request, Tool

SERVER = McpServer("weather", "https://mcp.example/")
FORECAST = ListedTool("forecast", "Tomorrow.", {"type": "object"}, read_only=True)
ALARM = ListedTool("alarm")


def tool(**more: Any) -> HostedTool:
    return HostedTool("mcp", Foreign("d", "mcp", {}), server=SERVER, **more)


def listing(server: str = "weather") -> Foreign:
    return Foreign("d", "list", {"server": server})


def question(id: str, name: str = "alarm", server: str = "weather") -> Foreign:
    return Foreign("d", "question", {"id": id, "name": name, "server": server})


def answer(id: str, approved: bool, reason: str = "") -> Foreign:
    return Foreign("d", "answer", {"id": id, "approved": approved, "reason": reason})


def _approval(part: Foreign) -> Approval | None:
    value = part.value
    if part.type == "question":
        call = HostedCall("mcp", f"of_{value['id']}", value["name"], {"text": "x"}, server=value["server"])
        return Approval(value["id"], call)
    if part.type == "answer":
        return Approval(value["id"], approved=value["approved"], reason=value["reason"])
    return None


FORM = McpForm(
    listed=lambda part: part.value["server"] if part.type == "list" else "",
    needs_approval=lambda tool, listed: not listed.read_only,
    approval=_approval,
)


class Connection:
    """In the place of an `McpConnection`."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, Any]] = []
        self.text = "done"
        self.problem: McpFailed | None = None

    async def call(self, name: str, arguments: Any) -> HostedResult:
        self.calls.append((name, arguments))
        if self.problem is not None:
            raise self.problem
        return HostedResult(self.text)


def session(
    *messages: Message, form: McpForm = FORM, listed: Any = (FORECAST, ALARM)
) -> tuple[Any, Connection]:
    connection: Any = Connection()
    made = McpSession(tool(), connection, listed, form)
    asyncio.run(made.run_approved(messages))
    return made, connection


def user(*parts: Any) -> Message:
    return Message("user", parts)


def model(*parts: Any) -> Message:
    return Message("assistant", parts)


HI = user(Text("Hi"))


def test_tools_are_offered_by_the_name_of_their_server() -> None:
    made, _ = session(HI)
    offered = made.offer(request := Request("m", (HI,), tools=(tool(),)))
    assert offered.functions == (
        Tool("weather__forecast", "Tomorrow.", {"type": "object"}),
        Tool("weather__alarm", None, None),
    )
    assert offered.request is request
    assert (offered.listing.server, offered.listing.tools) == ("weather", (FORECAST, ALARM))
    assert (len(offered.listing.id), offered.listing.id[:2]) == (24, "wg")
    assert made.offer(request).listing is None, "once"
    assert made.backend == "mcp"


@rows(
    ("messages", "lists", "shown"),
    [
        ((HI, model(listing(), Text("Hello.")), HI), False, (HI, model(Text("Hello.")), HI)),
        ((HI, model(listing()), HI), False, (HI, HI)),
        ((HI, model(listing("other")), HI), True, None),
        ((HI, model(), HI), True, None),
    ],
    ids=["listed", "alone", "of another", "empty"],
)
def test_a_list_is_shown_once_in_a_conversation(messages: Any, lists: bool, shown: Any) -> None:
    made, _ = session(*messages)
    offered = made.offer(Request("m", messages))
    assert (offered.listing is not None) is lists
    assert offered.request.messages == (shown or messages)


def test_deferred_tools_wait_for_a_search() -> None:
    form = McpForm(is_deferred=lambda tool, listed: listed is ALARM)
    made, _ = session(HI, form=form)
    search = HostedTool("tool_search", Foreign("d", "tool_search", {}))
    deferred = [each.deferred for each in made.offer(Request("m", (HI,), tools=(tool(), search))).functions]
    assert deferred == [False, True]
    other = HostedTool("web_search", Foreign("d", "web_search", {}))
    deferred = [each.deferred for each in made.offer(Request("m", (HI,), tools=(tool(), other))).functions]
    assert deferred == [False, False]


@rows(
    ("name", "call"),
    [
        ("weather__forecast", HostedCall("mcp", "id", "forecast", {"city": "Rome"}, server="weather")),
        (
            "weather__alarm",
            HostedCall("mcp", "id", "alarm", {"city": "Rome"}, server="weather", pending=True),
        ),
        ("nothing", HostedCall("mcp", "id", "nothing", server="weather")),
    ],
)
def test_a_call_as_the_client_is_shown_it(name: str, call: HostedCall) -> None:
    made, _ = session()
    assert made.call(ToolCall("c", name, '{"city": "Rome"}'), "id") == call


def test_a_call_is_made_unless_it_waits_or_is_unknown() -> None:
    made, connection = session()
    call = HostedCall("mcp", "id", "forecast", {"city": "Rome"}, server="weather")
    assert asyncio.run(made.run(call)) == HostedResult("done")
    assert connection.calls == [("forecast", {"city": "Rome"})]
    waiting = HostedCall("mcp", "id", "alarm", server="weather", pending=True)
    assert asyncio.run(made.run(waiting)) == HostedResult("This call waits for the user's approval.")
    unknown = asyncio.run(made.run(HostedCall("mcp", "id", "nothing", server="weather")))
    assert (unknown.error, unknown.message) == ("invalid_tool_input", "weather has no tool nothing.")
    connection.problem = McpFailed("it is down")
    failed = asyncio.run(made.run(call))
    assert (failed.error, failed.message) == ("unavailable", "weather: it is down.")
    assert len(connection.calls) == 2


@rows(("length", "cut"), [(100_000, False), (100_001, True)])
def test_a_long_result_is_cut(length: int, cut: bool) -> None:
    made, connection = session()
    connection.text = "x" * length
    result = asyncio.run(made.run(HostedCall("mcp", "id", "forecast", server="weather")))
    assert result.text == "x" * 100_000 + ("\n[the rest is cut off]" if cut else "")


ASKED = model(Text("May I?"), question("a"))
CALLED = model(Text("May I?"), ToolCall("call_of_a", "weather__alarm", '{"text":"x"}'))


@rows(
    ("messages", "calls", "shown"),
    [
        (
            (HI, ASKED, user(answer("a", True))),
            1,
            (HI, CALLED, user(ToolResult("call_of_a", (Text("done"),)))),
        ),
        (
            (HI, ASKED, user(answer("a", False, "Too loud."))),
            0,
            (
                HI,
                CALLED,
                user(
                    ToolResult(
                        "call_of_a", (Text("The user did not approve this call. Too loud."),), is_error=True
                    )
                ),
            ),
        ),
        (
            (HI, ASKED, user(answer("a", False))),
            0,
            (
                HI,
                CALLED,
                user(ToolResult("call_of_a", (Text("The user did not approve this call."),), is_error=True)),
            ),
        ),
        ((HI, ASKED, HI), 0, (HI, model(Text("May I?")), HI)),
        ((HI, ASKED, user(answer("a", True)), model(Text("Done.")), HI), 0, None),
        ((HI, ASKED, user(answer("b", True))), 0, (HI, model(Text("May I?")), user(answer("b", True)))),
        ((HI, model(question("a", server="other")), user(answer("a", True))), 0, "unchanged"),
    ],
    ids=["approved", "denied", "without a reason", "unanswered", "earlier", "unknown", "of another server"],
)
def test_approvals_in_a_conversation(messages: Any, calls: int, shown: Any) -> None:
    made, connection = session(*messages)
    assert connection.calls == [("alarm", {"text": "x"})] * calls
    offered = made.offer(Request("m", messages))
    if shown is None:
        shown = (HI, model(Text("May I?")), model(Text("Done.")), HI)
    assert offered.request.messages == (messages if shown == "unchanged" else shown)
    assert [(ran.call.name, ran.result.text) for ran in offered.ran] == [("alarm", "done")] * calls
    assert all(ran.id == ran.call.id != "of_a" for ran in offered.ran)


def test_an_approved_call_that_fails_is_an_error() -> None:
    messages = (HI, ASKED, user(answer("a", True)))
    connection: Any = Connection()
    connection.problem = McpFailed("it is down")
    made = McpSession(tool(), connection, (FORECAST, ALARM), FORM)
    asyncio.run(made.run_approved(messages))
    result: Any = made.offer(Request("m", messages)).request.messages[2].content[0]
    assert (result.is_error, result.content) == (True, (Text("unavailable: weather: it is down."),))


def test_a_request_approves_eight_calls() -> None:
    ids = [f"q{number}" for number in range(9)]
    messages = (HI, model(*map(question, ids)), user(*(answer(id, True) for id in ids)))
    made, connection = session(*messages)
    assert len(connection.calls) == 8
    ran = made.offer(Request("m", messages)).ran
    assert [each.result.error for each in ran] == [""] * 8 + ["too_many_requests"]


def test_calls_of_earlier_turns_have_the_names_that_the_model_knows() -> None:
    made, _ = session()
    called = ToolCall("c1", "forecast", "{}", namespace="weather")
    foreign = ToolCall("c2", "forecast", "{}", namespace="other")
    plain = ToolCall("c3", "forecast", "{}")
    results = [ToolResult(id, (Text(id),)) for id in ("c1", "c2", "c3")]
    request = Request("m", (HI, model(called, foreign, plain), user(*results)))
    changed = made.offer(request).request.messages[1].content
    assert changed == (ToolCall("c1", "weather__forecast", "{}"), foreign, plain)


@rows(("listed", "maximum", "refused"), [(2, 2, False), (3, 2, True)])
def test_a_server_may_have_a_number_of_tools(
    monkeypatch: pytest.MonkeyPatch, listed: int, maximum: int, refused: bool
) -> None:
    opened: list[str] = []

    class Fake:
        def __init__(self, server: McpServer, headers: Any, hosts: Any, settings: Any) -> None:
            opened.append(server.url)

        async def open(self) -> None: ...

        async def list_tools(self) -> list[ListedTool]:
            return [ListedTool(f"t{number}") for number in range(listed)]

        def close(self) -> None:
            opened.append("closed")

    monkeypatch.setattr(mcp_connection, "McpConnection", Fake)
    settings = McpSettings(hosts=("mcp.example",), max_tools=maximum)
    exchange = _exchange(settings)

    async def work() -> Any:
        return await McpRunner().open(exchange, tool())

    if refused:
        with pytest.raises(RequestError, match="has 3 tools, and a request may offer 2") as raised:
            asyncio.run(work())
        assert raised.value.error.code == "mcp_server_failed"
    else:
        assert len(asyncio.run(work()).offer(Request("m", ())).functions) == listed
    (close,) = exchange.at_end
    close(None)
    assert opened == [SERVER.url, "closed"]


def _exchange(settings: McpSettings | None) -> Any:
    client = SimpleNamespace(hosted=SimpleNamespace(mcp=FORM))
    job = SimpleNamespace(settings=SimpleNamespace(mcp=settings), surface=SimpleNamespace(client=client))
    return SimpleNamespace(job=job, at_end=[], request=lambda: Request("m", ()))


def test_only_servers_of_the_configuration_are_connected_to() -> None:
    runner = McpRunner()
    assert (runner.name, runner.connects) == ("the gateway", True)
    served: Any = SimpleNamespace(mcp=McpSettings())
    assert runner.serves(served)
    served.mcp = None
    assert not runner.serves(served)
    assert asyncio.run(runner.open(_exchange(None), tool())) is None
    nameless = HostedTool("mcp", Foreign("d", "mcp", {}))
    assert asyncio.run(runner.open(_exchange(McpSettings()), nameless)) is None
    with pytest.raises(RequestError, match="does not connect to the MCP server weather") as raised:
        asyncio.run(runner.open(_exchange(McpSettings(hosts=("other.example",))), tool()))
    assert raised.value.error.code == "mcp_host_not_allowed"


def test_a_server_that_lists_nothing_is_an_error_of_the_request(monkeypatch: pytest.MonkeyPatch) -> None:
    async def failing(self: Any) -> None:
        raise McpFailed("it is down")

    monkeypatch.setattr(McpConnection, "open", failing)
    with pytest.raises(RequestError, match="weather cannot be listed: it is down") as raised:
        asyncio.run(McpRunner().open(_exchange(McpSettings(hosts=("mcp.example",))), tool()))
    assert raised.value.error.code == "mcp_server_failed"


# The connection.


@rows(
    ("body", "about"),
    [
        (b"", "open"),
        (b"[]", "open"),
        (b"{", ""),
        (b'{"method": "initialize"}', "open"),
        (b'{"method": "tools/list"}', "list"),
        (
            b'{"method": "tools/call", "params": {"name": "f", "arguments": {"b": 1, "a": 2}}}',
            'f {"a":2,"b":1}',
        ),
        (b'{"method": "tools/call", "params": {"name": "f"}}', "f {}"),
        (b'{"method": "tools/call"}', " {}"),
    ],
)
def test_what_a_message_is_about(body: bytes, about: str) -> None:
    assert _about(body) == about


TEXT = types.TextContent(type="text", text="one")
LINK = types.ResourceLink(type="resource_link", name="notes", uri="https://h.example/notes")
PICTURE = types.ImageContent(type="image", data="QQ==", mime_type="image/png")
INSIDE = types.EmbeddedResource(
    type="resource", resource=types.TextResourceContents(uri="https://h.example/", text="inside")
)
SOUND = types.AudioContent(type="audio", data="QQ==", mime_type="audio/wav")


@rows(
    ("content", "structured", "text"),
    [
        ([TEXT], None, "one"),
        ([TEXT], {"a": 1}, "one"),
        ([TEXT, LINK], None, "one\n[notes: https://h.example/notes]"),
        ([PICTURE], None, "[an image: image/png]"),
        ([INSIDE], None, "inside"),
        ([SOUND], None, "[audio: it cannot be shown here]"),
        ([], {"a": 1}, '{"a":1}'),
        ([], None, ""),
    ],
    ids=["text", "both", "link", "picture", "resource", "sound", "structured", "nothing"],
)
def test_what_a_model_reads_of_a_result(content: Any, structured: Any, text: str) -> None:
    result = types.CallToolResult(content=content, structured_content=structured)
    assert _text_of(result) == text
    shown = [Media("image", "image/png", "QQ==")] if PICTURE in content else []
    assert list(mcp_connection._images_of(result)) == shown


def guarded(upstream: Upstream, max_result: int = 1 << 20) -> _GuardedTransport:
    def check(url: str) -> None:
        if "allowed" not in url:
            raise WebFailed("url_not_allowed", "not this host")

    hosts: Any = SimpleNamespace(check_url=check, check_addresses=None)
    made = _GuardedTransport(hosts, McpSettings(max_result=max_result, timeout=7.0))
    anything: Any = upstream
    made._transport = anything
    return made


def test_headers_of_the_hop_are_not_passed_on() -> None:
    upstream = Upstream()
    upstream.say(Said(200, b"{}", headers={"mcp-session-id": "s1"}))
    transport = guarded(upstream)
    given = {
        **dict.fromkeys(
            ("Host", "Content-Length", "Connection", "Transfer-Encoding", "Accept-Encoding"), "x"
        ),
        "Authorization": "Bearer t",
        "Mcp-Session-Id": "s1",
    }
    body = b'{"method": "tools/list"}'

    async def work() -> None:
        request = httpx2.Request("POST", "https://allowed.example/mcp", headers=given, content=body)
        response = await transport.handle_async_request(request)
        assert (response.status_code, response.headers["mcp-session-id"]) == (200, "s1")
        assert await response.aread() == b"{}"

    asyncio.run(work())
    (sent,) = upstream.sent
    assert (sent.method, sent.url, sent.body) == ("POST", "https://allowed.example/mcp", body)
    assert sorted(name for name, _ in sent.headers) == ["authorization", "mcp-session-id"]
    (limits,) = upstream.timeouts
    assert {limits.connect, limits.tls, limits.first_byte, limits.idle} == {7.0}
    assert transport.problems == {}


@rows(
    ("url", "said", "problem"),
    [
        ("https://other.example/", Said(200, b"{}"), "not this host"),
        ("https://allowed.example/", TransportFault("connect", "no"), "no connection to it (connect)"),
    ],
    ids=["refused by us", "no connection"],
)
def test_a_server_that_is_not_reached(url: str, said: Any, problem: str) -> None:
    upstream = Upstream()
    upstream.say(said)
    transport = guarded(upstream)
    request = httpx2.Request("POST", url, content=b'{"method": "tools/list"}')
    with pytest.raises(httpx2.ConnectError, match=r"not this host|no connection"):
        asyncio.run(transport.handle_async_request(request))
    assert transport.problems == {"list": problem}


@rows(
    ("method", "size", "problem"),
    [
        ("POST", 10, ""),
        ("POST", 11, "its answer has more than 10 bytes"),
        ("GET", 11, ""),
    ],
)
def test_an_answer_has_a_maximum_of_bytes(method: str, size: int, problem: str) -> None:
    upstream = Upstream()
    answered = Said(200, pieces=(b"x" * 6, b"x" * (size - 6)))
    upstream.say(answered)
    transport = guarded(upstream, max_result=10)

    async def work() -> bytes:
        response = await transport.handle_async_request(httpx2.Request(method, "https://allowed.example/"))
        read = b"".join([piece async for piece in response.aiter_raw()])
        await response.aclose()
        return read

    if problem:
        with pytest.raises(httpx2.ReadError, match="the connection ended"):
            asyncio.run(work())
    else:
        assert asyncio.run(work()) == b"x" * size
        assert answered.aborted
    assert "".join(transport.problems.values()) == problem


async def connection(token: str = "", **headers: str) -> Any:
    server = McpServer("weather", "https://allowed.example/", token=token)
    hosts: Any = SimpleNamespace(check_url=None, check_addresses=None)
    return McpConnection(server, headers, hosts, McpSettings(timeout=7.0))


def test_secrets_are_hidden_and_the_servers_headers_kept_back() -> None:
    made = asyncio.run(
        connection("secret-1", **{"X-Key": "Bearer longer-secret", "X-Team": "short", "Host": "elsewhere"})
    )
    assert made._headers == {
        "X-Key": "Bearer longer-secret",
        "X-Team": "short",
        "Authorization": "Bearer secret-1",
    }
    shown = made._shown("secret-1 and longer-secret of short, Bearer longer-secret")
    assert shown == "*** and *** of short, ***"
    assert asyncio.run(connection())._headers == {}


def test_what_a_tool_returned() -> None:
    async def work(result: types.CallToolResult) -> HostedResult:
        made = await connection("secret-1")

        async def called(name: str, arguments: Any) -> types.CallToolResult:
            assert (name, arguments) == ("forecast", {"city": "Rome"})
            return result

        made._ready.set_result(SimpleNamespace(call_tool=called))
        found: HostedResult = await made.call("forecast", {"city": "Rome"})
        return found

    hidden = types.TextContent(type="text", text="it is secret-1")
    assert asyncio.run(work(types.CallToolResult(content=[hidden]))) == HostedResult("it is ***")
    failed = asyncio.run(work(types.CallToolResult(content=[hidden], is_error=True)))
    assert failed == HostedResult("it is ***", "tool_failed", "it is ***")
    nothing = asyncio.run(work(types.CallToolResult(content=[])))
    assert nothing == HostedResult("The tool returned nothing.")
    picture = asyncio.run(work(types.CallToolResult(content=[PICTURE])))
    assert picture.media == (Media("image", "image/png", "QQ=="),)


def test_tools_are_listed_page_by_page() -> None:
    async def work(last: int) -> tuple[list[ListedTool], list[Any]]:
        made, cursors = await connection(), []

        async def list_tools(cursor: str | None) -> Any:
            cursors.append(cursor)
            number = len(cursors)
            noted = types.ToolAnnotations(title="T", read_only_hint=number == 1) if number < 3 else None
            listed = types.Tool(
                name=f"t{number}",
                description="D" if number == 1 else None,
                input_schema={"type": "object"},
                annotations=noted,
            )
            return SimpleNamespace(tools=[listed], next_cursor=None if number == last else f"c{number}")

        made._ready.set_result(SimpleNamespace(list_tools=list_tools))
        return await made.list_tools(), cursors

    tools, cursors = asyncio.run(work(3))
    assert cursors == [None, "c1", "c2"]
    schema = {"type": "object"}
    assert tools == [
        ListedTool("t1", "D", schema, read_only=True, annotations={"title": "T", "readOnlyHint": True}),
        ListedTool("t2", "", schema, annotations={"title": "T", "readOnlyHint": False}),
        ListedTool("t3", "", schema),
    ]
    assert len(asyncio.run(work(0))[0]) == 100, "a server without end"


@rows(
    ("problem", "noted", "said"),
    [
        (McpFailed("as it is"), "other", "as it is"),
        (MCPError(code=1, message="no secret-1"), "", "no ***"),
        (
            MCPError(code=1, message="no"),
            "it answered with status 500",
            "it answered with status 500",
        ),
        (
            MCPError(code=-32700, message="Failed to parse JSON response: 1 validation error for X"),
            "",
            "it does not answer as an MCP server",
        ),
        (ValueError("internal secret-1"), "", "it does not answer as an MCP server"),
        (ValueError("internal"), "it answered with status 500", "it answered with status 500"),
    ],
    ids=[
        "known",
        "of the server",
        "with a status",
        "of the SDK's parser",
        "of the SDK",
        "of the SDK with a status",
    ],
)
def test_why_a_call_failed(problem: Exception, noted: str, said: str) -> None:
    async def work() -> None:
        made = await connection("secret-1")
        made._transport.problems["list"] = "of an earlier call"

        async def failing() -> None:
            if noted:
                made._transport.problems["list"] = noted
            raise problem

        await made._within(failing, "list")

    with pytest.raises(McpFailed) as raised:
        asyncio.run(work())
    assert str(raised.value) == said


def test_a_connection_is_closed_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    async def work() -> None:
        made, open_tasks = await connection(), mcp_connection._open_tasks
        made.close()
        assert (made._closing.is_set(), open_tasks) == (True, set())
        made = await connection()
        made._task = asyncio.create_task(asyncio.sleep(60))
        made.close()
        assert open_tasks == {made._task}
        with pytest.raises(asyncio.CancelledError):  # it was not open yet: no one waits for its end
            await made._task
        assert open_tasks == set()
        monkeypatch.setattr(mcp_connection, "_CLOSE_SECONDS", 0.0)
        made = await connection()
        made._ready.set_result(None)
        made._task = asyncio.create_task(made._closing.wait())
        made.close()
        assert await made._task, "it ends by itself"
        made = await connection()
        made._ready.set_result(None)
        made._task = asyncio.create_task(asyncio.sleep(60))
        made.close()
        with pytest.raises(asyncio.CancelledError):
            await made._task

    asyncio.run(work())
    assert mcp.MAX_APPROVED == 8


def test_the_sdk_writes_nothing_to_standard_error() -> None:
    for name in ("mcp", "httpx2"):
        logger = logging.getLogger(name)
        assert (logger.propagate, bool(logger.handlers)) == (False, True), name
