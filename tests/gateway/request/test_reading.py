"""A request as the gateway reads it: names, limits, headers, and how heavy it is."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from tests.gateway.kit import catalogued, exchange, own, settings
from tests.tiers import rows
from wireglot.gateway.entry.callers import Caller
from wireglot.gateway.errors import RequestError
from wireglot.gateway.request import account_details, token_weight
from wireglot.gateway.request.account_details import (
    may_pass,
    names_account,
    shown_model,
    shown_route,
    without_account,
)
from wireglot.gateway.request.client_stream import ClientStream
from wireglot.gateway.request.collected_reply import CollectedReply, PassedReply
from wireglot.gateway.request.ending import Ending
from wireglot.gateway.request.exchange import (
    MAX_REPORTED_LOSSES,
    Exchange,
    FurtherAnswer,
    some_of_each,
    whole_usage,
)
from wireglot.gateway.request.headers import cross_origin, identity, wants_details
from wireglot.gateway.request.problems import is_final
from wireglot.gateway.request.results import paired, with_calls
from wireglot.gateway.request.token_weight import Estimator
from wireglot.gateway.request.viewer import Viewer
from wireglot.gateway.request.worker_thread import known_of, weight
from wireglot.gateway.settings import ClientKey
from wireglot_core.dialects.registry import surface
from wireglot_core.ir.content import (
    Foreign,
    Media,
    Message,
    Origin,
    Reasoning,
    Signature,
    Text,
    ToolCall,
    ToolResult,
)
from wireglot_core.ir.errors import ApiError
from wireglot_core.ir.failures import AttemptFailed
from wireglot_core.ir.loss import Loss
from wireglot_core.ir.outcome import Candidate, Stop, Usage
from wireglot_core.ir.request import HostedTool, OutputFormat, Request, Tool
from wireglot_core.ir.stream import Delta, PartStart
from wireglot_core.wire.json import encode

NOW = settings(own("mine", "openai-chat"))
HI = {"model": "mine/m", "messages": [{"role": "user", "content": "Hi"}]}


def read(body: Any = HI, now: Any = NOW, **more: Any) -> Exchange:
    return exchange(now, body, **more)


def refused(body: Any = HI, now: Any = NOW, **more: Any) -> ApiError:
    with pytest.raises(RequestError) as error:
        _read_whole(body, now, **more)
    return error.value.error


def _read_whole(body: Any, now: Any, **more: Any) -> None:
    made = read(body, now, **more)
    made.job.content.check()
    made.request()


@rows(
    ("body", "code"),
    [
        (b"", "invalid_json"),
        (b"nonsense", "invalid_json"),
        (b"[]", "invalid_type"),
        (b"7", "invalid_type"),
        (b'{"model": "m", "x": NaN}', "invalid_number"),
        (b'{"model": "m", "x": -Infinity}', "invalid_number"),
        (b'{"model": "m", "x": 1e999}', "invalid_number"),
        (b'{"model": "m", "x": "\xff"}', "invalid_utf8"),
        (b'{"model": "m", "x": ' + b"[" * 129 + b"]" * 129 + b"}", "json_too_deep"),
        (b'{"model": "m", "model": "n"}', "duplicate_key"),
        (b'{"model": "m", "stream": true, "stream": false}', "duplicate_key"),
    ],
)
def test_a_body_that_cannot_be_read_is_refused_by_name(body: bytes, code: str) -> None:
    error = refused(body)
    assert (error.status, error.code) == (400, code)


def test_a_key_that_stands_twice_is_refused_only_where_it_decides_something() -> None:
    assert read(b'{"model": "m", "messages": [], "x": 1, "x": 2}').job.model == "m"
    assert refused(b'{"model": "m", "model": "n"}').param == "model"


def test_limits_of_depth_and_members_are_settings() -> None:
    from wireglot.gateway.process_limits import ProcessLimits

    small = settings(own("mine", "openai-chat"), limits=ProcessLimits(json_depth=5, json_items=20))
    deep = {**HI, "x": [[[[1]]]]}
    assert read(deep, small).request().model == "mine/m"
    assert refused({**HI, "x": [[[[[1]]]]]}, small).message == "the JSON is nested more than 5 deep"
    many = refused({**HI, "x": list(range(30))}, small)
    assert (many.code, many.message) == ("json_too_large", "the JSON has more than 20 members")
    assert read({**HI, "x": [1] * 12}, small).job.model == "mine/m"


@rows(
    ("value", "seconds"),
    [("7", 7.0), ("0.5", 0.5), ("86400", 86400.0), ("0", None), ("-1", None), ("86401", None), ("x", None), ("nan", None)],
)  # fmt: skip
def test_a_timeout_is_a_number_of_seconds_up_to_a_day(value: str, seconds: float | None) -> None:
    if seconds is not None:
        assert read(x_wireglot_timeout=value).job.timeout == seconds
    else:
        error = refused(x_wireglot_timeout=value)
        assert (error.status, error.param) == (400, "x-wireglot-timeout")
    assert read().job.timeout is None


@rows(
    ("value", "policy"), [("strict", "strict"), (" Silent ", "silent"), ("as-is", "as-is"), ("warn", "warn")]
)
def test_a_loss_policy_is_one_of_four_words(value: str, policy: str) -> None:
    assert read(x_wireglot_loss_policy=value).job.policy == policy
    assert refused(x_wireglot_loss_policy="loud").status == 400


def test_the_policy_of_a_key_holds_where_no_header_says_otherwise() -> None:
    caller = Caller("team", ClientKey("team", "d", losses="strict"))
    assert read(caller=caller).job.policy == "strict"
    assert read(caller=caller, x_wireglot_loss_policy="warn").job.policy == "warn"
    assert read().job.policy is None
    assert read().attempt.policy == "warn"


@rows(("value", "emulates"), [("on", True), ("off", False), (" ON", True)])
def test_emulation_can_be_switched_off(value: str, emulates: bool) -> None:
    assert read(x_wireglot_emulate=value).job.context.emulates is emulates
    assert read().job.context.emulates
    error = refused(x_wireglot_emulate="perhaps")
    assert (error.param, error.message) == ("x-wireglot-emulate", "x-wireglot-emulate: expected on or off")


@rows(
    ("headers", "session"),
    [
        ({}, ""),
        ({"x_session_affinity": "a", "x_session_id": "b"}, "a"),
        ({"x_session_id": "b", "session_id": "c"}, "b"),
        ({"session_id": "c"}, "c"),
        ({"x_session_id": ""}, ""),
        ({"x_wireglot_session": "mine", "x_session_id": "b"}, "mine"),
    ],
)
def test_the_name_of_a_session(headers: dict[str, str], session: str) -> None:
    made = read(**headers)
    assert (made.job.session, made.record.session) == (session, session)
    assert made.job.conversation == (session if "x_wireglot_session" in headers else "")


@rows("name", ["x" * 257, "a\x07b", ".", ".."])
def test_a_name_of_a_conversation_is_short_and_printable(name: str) -> None:
    error = refused(x_wireglot_session=name)
    assert error.message == "x-wireglot-session: expected at most 256 printable characters"
    assert read(x_wireglot_session="x" * 256).job.conversation == "x" * 256


def test_a_request_is_read_once_and_so_is_what_is_wrong_with_it() -> None:
    made = read()
    assert made.request() is made.request()
    assert made.document() is made.document()
    bad = read({"model": "mine/m", "messages": 7})
    errors = []
    for _ in range(2):
        with pytest.raises(RequestError) as raised:
            bad.request()
        errors.append(raised.value)
    assert errors[0].error is errors[1].error
    assert (bad.effort(), bad.prompt_tokens(), bad.has_images()) == ("", 0, False)
    assert bad.affinity().startswith("local\x1f")
    assert bad.affinity() == read({"model": "mine/m", "messages": 7}).affinity()
    assert bad.affinity() != read({"model": "mine/m", "messages": 8}).affinity()


def test_what_rules_ask_of_a_request() -> None:
    picture = {"type": "image_url", "image_url": {"url": "https://h/a.png"}}
    made = read({**HI, "reasoning_effort": "high", "messages": [{"role": "user", "content": [picture]}]})
    assert (made.effort(), made.has_images()) == ("high", True)
    assert not read().has_images()
    assert read().effort() == ""
    assert read().prompt_tokens() == 13  # 8 for the request, 4 for the message, 0.6 for its text
    assert made.facts() is made.record.facts


def test_images_in_results_of_tools_count() -> None:
    made = read()
    inside = Message("user", (ToolResult("c", (Text("x"), Media("image", "image/png", data="A"))),))
    made.rewrite(Request("m", (inside,)))
    assert made.has_images()
    made.rewrite(Request("m", (Message("user", (ToolResult("c", (Media("audio", "", data="A"),)),)),)))
    assert not made.has_images()
    assert made.rewritten
    assert made.sealed


def test_a_rewritten_request_that_is_long_is_large() -> None:
    made = read()
    made.rewrite(Request("m", (Message("user", (Text("x"),)),) * 655))
    assert not made.is_large
    made.rewrite(Request("m", (Message("user", (Text("x"),)),) * 656))
    assert made.is_large


def test_what_is_asked_differs_from_the_body_where_something_was_added_or_left_out() -> None:
    assert not read().differs
    for name, value in (
        ("stripped", True),
        ("invented", (Loss("$", "image", "dropped", ""),)),
        ("sealed", True),
    ):
        made = read()
        setattr(made.attempt if name == "stripped" else made, name, value)
        assert made.differs


def test_conversations_are_told_apart_by_caller_and_session() -> None:
    key = read().conversation_key()
    assert key == read().conversation_key()
    assert key != read({**HI, "messages": [{"role": "user", "content": "Ho"}]}).conversation_key()
    assert read(x_session_id="s").conversation_key() != key
    assert read(caller=Caller("team", None)).conversation_key() != key


def test_the_body_of_a_request_without_a_session_is_there_for_who_joins_turns() -> None:
    plain, named = read(), read(x_session_id="s")
    assert plain.record.body == plain.job.body
    assert named.record.body == b""


def test_headers_of_an_answer() -> None:
    made = read(origin="https://page.example")
    made.record.asked("mine", "m", "openai-chat")
    made.attempt.returned_headers, made.budget_headers, made.estimates_input = (
        [("a", "1")],
        (("b", "2"),),
        True,
    )
    made.attempt.losses = (Loss("$", "image", "dropped", "gone"),)
    assert dict(made.headers()) == {
        "x-wireglot-request-id": "req_1",
        "x-request-id": "req_1",
        "x-wireglot-route": "mine/m",
        "x-wireglot-losses": "image",
        "x-wireglot-estimate": "true",
        "a": "1",
        "b": "2",
    }
    from wireglot.gateway.settings import ServerSettings

    open_ = settings(own("mine", "openai-chat"), server=ServerSettings(origins=("https://page.example",)))
    headers = dict(read(HI, open_, origin="https://page.example").headers())
    assert headers["access-control-allow-origin"] == "https://page.example"
    assert headers["vary"] == "origin"
    assert "access-control-allow-origin" not in dict(read(HI, open_, origin="https://o.example").headers())


def test_what_a_page_of_another_origin_may_read() -> None:
    exposed = dict(cross_origin("o"))["access-control-expose-headers"].split(", ")
    assert exposed == [
        "x-wireglot-request-id",
        "x-request-id",
        "x-wireglot-route",
        "x-wireglot-losses",
        "x-wireglot-loss-details",
        "retry-after",
    ]
    assert identity("r", "anthropic")[-1] == ("request-id", "r")


@rows(
    ("value", "wanted"),
    [("", False), ("0", False), ("false", False), ("No", False), ("1", True), ("yes", True)],
)
def test_who_wants_the_details_of_losses(value: str, wanted: bool) -> None:
    head: Any = SimpleNamespace(headers={"x-wireglot-loss-details": value})
    assert wants_details(head) is wanted
    without: Any = SimpleNamespace(headers={})
    assert not wants_details(without)


def test_losses_are_for_the_client_only_where_it_wants_them() -> None:
    loss = Loss("$", "image", "dropped", "")
    for policy in ("warn", "silent"):
        made = read()
        made.attempt.policy = policy
        made.lose(loss)
        assert made.record.losses == [loss]
        assert made.attempt.losses == ((loss,) if policy == "warn" else ())


def test_of_very_many_losses_the_worst_and_one_of_each_are_reported() -> None:
    many = tuple(Loss(f"$.{number}", "sampling.seed", "dropped", "") for number in range(200))
    rare = Loss("$.x", "image", "dropped", "")
    found = some_of_each((*many, rare))
    assert len(found) == MAX_REPORTED_LOSSES == 128
    assert rare in found


def test_usage_of_several_answers_is_added() -> None:
    answer = FurtherAnswer(Candidate((), Stop("end")), Usage(input=1, output=2))
    found = whole_usage(Usage(input=10, output=20), (answer, answer))
    assert found is not None
    assert (found.input, found.output) == (12, 24)
    assert whole_usage(None, ()) is None


# How heavy.


@rows(
    ("part", "tokens"),
    [
        (Text("x" * 10), 3.0),
        (Text("\u044f"), 0.75),
        (Text("\u4e2d"), 1.2),
        (ToolCall("c", "name", '{"a":1}'), 12 + 4 * 0.3 + 7 * 0.34),
        (ToolResult("c", (Text("x" * 10), Media("audio", "", data="A"))), 12 + 3 + 32),
        (Reasoning("x" * 10), 3.0),
        (Reasoning("x" * 10, signature=Signature("s" * 100, Origin("a", "b"))), 19.0),
        (Reasoning("x" * 100, signature=Signature("s" * 10, Origin("a", "b"))), 30.0),
        (Foreign("d", "k", {"a": 1}), 7 * 0.34),
        (Media("image", "", text="x" * 10), 3.0),
        (Media("image", "", url="https://h/"), 1600),
        (Media("document", "", url="https://h/"), 3000),
        (Media("audio", "", url="https://h/"), 2000),
        (Media("video", "", url="https://h/"), 10_000),
        (Media("image", "", data="A"), 85),
        (Media("image", "", data="A" * (54 * 99 + 1)), 100),
        (Media("image", "", data="A" * 1_000_000), 1600),
        (Media("document", "", data="A"), 1500),
        (Media("document", "", data="A" * 27 * 2000), 2000),
        (Media("audio", "", data="A"), 32),
        (Media("audio", "", data="A" * 530 * 40), 40),
        (Media("video", "", data="A"), 300),
        (Media("video", "", data="A" * 660 * 400), 400),
    ],
)
def test_how_many_tokens_a_part_is_taken_for(part: Any, tokens: float) -> None:
    assert token_weight.part_weight(part) == round(tokens * 1000)
    assert token_weight.parts_weight([part, part]) == 2 * round(tokens * 1000)


def test_how_many_tokens_a_request_is_taken_for() -> None:
    weigh = token_weight.token_weight
    assert weigh(Request("m", ())) == 8000
    said = Request("m", (Message("user", (Text("x" * 10),)), Message("assistant", (ToolCall("c", "", ""),))))
    assert weigh(said) == 8000 + 4000 + 3000 + 4000 + 12_000
    schema = {"type": "object"}
    tools = (Tool("name", "x" * 10, schema), HostedTool("web_search", Foreign("d", "k", {"a": 1})))
    assert weigh(Request("m", (), tools=tools)) == 8000 + 340_000 + (12_000 + 1200 + 3000 + 17 * 340) + (
        12_000 + 7 * 340
    )
    assert weigh(Request("m", (), tools=(Tool("n"),))) == 8000 + 340_000 + 12_000 + 300
    assert weigh(Request("m", (), output=OutputFormat("schema", schema=schema))) == 8000 + 17 * 340


def test_how_many_tokens_events_are_taken_for() -> None:
    events: list[Any] = [
        PartStart(0, Text("x" * 10)),
        Delta(0, "y" * 10),
        PartStart(1, ToolCall("c", "", "")),
    ]
    assert token_weight.events_weight(events) == 3000 + 3000 + 12_000


def test_estimates_follow_what_the_provider_reported_before() -> None:
    estimator = Estimator(conversations=2)
    small = Request("m", (Message("user", (Text("x" * 100),)),))
    large = Request("m", (Message("user", (Text("x" * 1000),)),))
    assert estimator.estimate("p", "m", "c", small) == 42
    estimator.learn("p", "m", "c", small, 0)
    assert len(estimator) == 0
    estimator.learn("p", "m", "c", small, 84)
    assert estimator.estimate("p", "m", "c", small) == 84
    assert estimator.estimate("p", "m", "c", large) == 84 + 540  # twice as much as by length, at most
    assert estimator.estimate("p", "m", "c", Request("m", ())) == 16
    assert estimator.estimate("p", "other", "c", small) == 42
    estimator.learn("p", "m", "c", small, 1)
    assert estimator.estimate("p", "m", "c", large) == 1 + 135  # half as much, at least
    assert estimator.estimate("p", "m", "c", Request("m", ())) == 1
    estimator.learn("p", "m", "d", small, 50)
    estimator.estimate("p", "m", "c", small)
    estimator.learn("p", "m", "e", small, 50)
    assert len(estimator) == 2
    assert estimator.estimate("p", "m", "d", small) == 42  # the one that was used least lately is forgotten
    assert estimator.estimate("p", "m", "c", small) == 1


def test_a_conversation_is_known_by_how_it_begins() -> None:
    def name(*messages: Message) -> str:
        return Estimator.conversation(Request("m", messages))

    system, user = Message("system", (Text("s"),)), Message("user", (Text("u"), Text("v")))
    answer = Message("assistant", (Text("a"),))
    assert name(system, user) == name(system, user, answer, Message("user", (Text("more"),)))
    assert name(system, user) == name(system, answer, user)
    assert name(system, user) != name(user)
    assert name(user) != name(Message("user", (Text("uv"),)))
    long = "x" * 2048
    assert name(Message("user", (Text(long + "a"),))) == name(Message("user", (Text(long + "b"),)))
    assert name(Message("user", (Text(long),))) != name(Message("user", (Text(long + "b"),)))


@rows(
    ("usage", "unreported"),
    [(None, True), (Usage(), True), (Usage(input=1), False), (Usage(output=1), False)],
)
def test_zeros_are_no_report(usage: Usage | None, unreported: bool) -> None:
    assert token_weight.is_unreported(usage) is unreported


def test_a_body_weighs_as_much_as_is_new_of_it() -> None:
    grown: Any = SimpleNamespace(work=7)
    assert (weight(b"x" * 10, None), weight(b"x" * 10, grown), weight(b"x", grown)) == (10, 7, 1)
    huge = bytes(2 * 1024 * 1024 + 1)
    assert weight(huge, grown) == len(huge)
    assert weight(huge[1:], grown) == 7


# Results and their calls.


def test_a_result_without_its_call_gets_one() -> None:
    result = ToolResult("c1", (Text("r"),), name="look")
    nameless = ToolResult("c2", (Text("r"),))
    made, losses = with_calls(Request("m", (Message("user", (result, nameless)), Message("user", (result,)))))
    assert made.messages[0] == Message(
        "assistant", (ToolCall("c1", "look", "{}"), ToolCall("c2", "tool", "{}"))
    )
    assert len(made.messages) == 3
    assert [(loss.path, loss.feature, loss.action) for loss in losses] == [
        ("$.messages[0]", "tool_result.pairing", "invented")
    ]
    whole = Request("m", (Message("assistant", (ToolCall("c1", "look", "{}"),)), Message("user", (result,))))
    assert with_calls(whole) == (whole, ())


def test_results_answer_the_first_call_of_their_name_that_waits() -> None:
    history = [
        Message(
            "assistant", (ToolCall("a", "look", "{}"), ToolCall("b", "look", "{}"), ToolCall("c", "go", "{}"))
        ),
        Message("user", (ToolResult("a", ()),)),
    ]
    new = (Message("user", (ToolResult("?", (), name="look"), ToolResult("??", (), name="look"), Text("t"))),)
    (found,) = paired(history, new)
    assert found.content == (ToolResult("b", (), name="look"), ToolResult("??", (), name="look"), Text("t"))
    assert paired(history[1:], new) is new
    (named,) = paired(history, (Message("user", (ToolResult("c", (), name="look"),)),))
    assert named.content == (ToolResult("c", (), name="look"),)


# The client's stream.


def test_a_stream_opens_late_and_is_kept_alive_while_it_is_silent() -> None:
    from tests.gateway.offline import JumpingLoop

    async def work() -> CollectedReply:
        reply = CollectedReply(9999)
        heard: list[bytes] = []
        ending = Ending(listener=heard.append)
        record: Any = SimpleNamespace(began=lambda: began.append(loop.time()))
        stream = ClientStream(
            reply, ending, record, surface=surface("openai-chat"), framing="sse", ping_seconds=10.0,
            headers=lambda: [("x", "1")],
        )  # fmt: skip
        assert not reply.started
        await asyncio.sleep(9)
        assert not stream.opened
        await asyncio.sleep(2)
        assert (stream.opened, stream.begun, reply.status) == (True, False, 200)
        pinged = bytes(reply.body)
        assert pinged == surface("openai-chat").client.pings["sse"]
        await asyncio.sleep(4)  # at 15: five seconds since the last ping
        stream.write(b"data")
        assert (stream.begun, len(began)) == (True, 1)
        await asyncio.sleep(9)
        assert bytes(reply.body) == pinged + b"data"
        await asyncio.sleep(2)
        assert bytes(reply.body) == pinged + b"data" + pinged
        completed = [ending.completed]
        stream.write(b"end", last=True)
        completed.append(ending.completed)
        assert completed == [False, True]
        assert heard == [b"data", b"end"]
        stream.end()
        await asyncio.sleep(100)
        assert bytes(reply.body) == pinged + b"data" + pinged + b"end"
        return reply

    loop = JumpingLoop()
    began: list[float] = []
    try:
        reply = loop.run_until_complete(work())
    finally:
        loop.close()
    assert (reply.headers, reply.ended) == (
        [
            ("content-type", "text/event-stream; charset=utf-8"),
            ("cache-control", "no-cache"),
            ("x-accel-buffering", "no"),
            ("x", "1"),
        ],
        True,
    )


def test_a_reply_in_front_of_another_passes_all_on() -> None:
    behind = CollectedReply(5)
    reply = PassedReply(behind)
    reply.start(201, [("a", "1")])
    assert reply.started
    reply.write(b"abc")
    reply.write(b"defg")
    reply.end()
    assert (behind.status, behind.headers, bytes(behind.body), behind.size, behind.ended) == (
        201, [("a", "1")], b"abcde", 7, True,
    )  # fmt: skip
    reply.started = False
    assert not behind.started
    reply.send(404, [], b"x")
    assert (behind.status, behind.size) == (404, 8)


# Who may see what.


@rows(
    ("access", "name", "at", "sees"),
    [
        ("open", "other", 0.0, True),
        ("admin", "other", 1.0, True),
        ("key", "other", 0.0, False),
        ("key", "mine", 0.0, True),
        ("key", "mine", 1.999, False),
        ("key", "mine", 2.0, True),
    ],
)
def test_whose_exchanges_a_viewer_sees(access: Any, name: str, at: float, sees: bool) -> None:
    viewer = Viewer(access, key="mine", created=2000)
    assert viewer.sees(name, at) is sees
    assert viewer.sees_all is (access != "key")
    assert viewer.holds()


def test_what_needs_more_than_a_key() -> None:
    Viewer("open").need_all("x")
    Viewer("admin").need_admin()
    with pytest.raises(RequestError, match="x: a client key can only access its own exchanges"):
        Viewer("key").need_all("x")
    with pytest.raises(RequestError) as error:
        Viewer("open").need_admin()
    assert (error.value.error.code, error.value.error.status) == ("admin_needed", 403)


@rows(
    ("blame", "final"),
    [("credential", True), ("quota", True), ("refused", True), ("upstream", False), ("rate", False)],
)
def test_where_repeating_cannot_help(blame: Any, final: bool) -> None:
    assert is_final(AttemptFailed(ApiError("server", "x"), blame)) is final
    assert is_final(RequestError("bad", "x", final=final)) is final
    assert not is_final(ValueError())


# What an error tells of the operator's account.

MINE = catalogued("kimi", "k")


@rows(
    ("text", "names"),
    [
        ("no such field: temperature", False),
        ("arn:aws:bedrock:us-east-1:1:x", True),
        ("account 123456789012", True),
        ("in 1234-5678-9012", True),
        ("12345 tokens", False),
        ("3f2504e0-4f89-11d3-9a0c-0305e82c3301", True),
        ("org-abc123", True),
        ("project: my-project-7", True),
        ("https://x.openai.azure.com/", True),
        ("at 10.0.0.1 now", True),
        ("version 1.2.3", False),
        ("mail a@b.example", True),
        ("asked api.moonshot.ai", True),
    ],
)
def test_what_names_an_account(text: str, names: bool) -> None:
    known = account_details._values(MINE, "")
    assert names_account(text, known) is names
    assert may_pass(ApiError("invalid_request", text), text, MINE) is not names
    assert not may_pass(ApiError("server", text), text, MINE)


def test_an_error_without_the_account() -> None:
    error = ApiError(
        "rate_limit", "slow", type="rate_limit_error", code="org-1234", param="é", request_id="r"
    )
    made = without_account(error, MINE)
    assert (
        made.message
        == "the provider's rate limit is reached; the operator finds the details in the gateway's log"
    )
    assert (made.type, made.code, made.param, made.request_id) == ("rate_limit_error", "", "", "")
    kept = without_account(
        ApiError("invalid_request", "no such field", param="x[0]", code="unknown_field"), MINE
    )
    assert (kept.message, kept.param, kept.code) == ("no such field", "x[0]", "unknown_field")
    ours = ApiError(
        "server", "upstream credential rejected: x (it says: secret): fix it", code="upstream_auth_failed"
    )
    assert without_account(ours, MINE).message == "upstream credential rejected: x: fix it"
    long = ApiError("context_overflow", "arn:aws:x:y Prompt is too long: 9 tokens > 8 maximum")
    assert without_account(long, MINE).message == "Prompt is too long: 9 tokens > 8 maximum"
    assert (
        without_account(ApiError("context_overflow", "arn:aws:x:y no"), MINE).message == "prompt is too long"
    )


@rows(
    ("url", "values"),
    [
        ("https://h.example/v1", ("h.example",)),
        ("https://h.example/projects/my-project/x", ("h.example", "my-project")),
        ("https://abcd/projects/abcd", ()),
        ("https://localhost/accounts/Global/x", ()),
        ("https://abcde/", ("abcde",)),
    ],
)
def test_what_a_url_knows_of_an_account(url: str, values: tuple[str, ...]) -> None:
    assert account_details._values(None, url) == values


def test_a_model_that_names_an_account_is_not_shown() -> None:
    assert (shown_model("m"), shown_model("arn:aws:x"), shown_model("projects/p/m")) == ("m", "", "")
    assert (shown_route("p", "m"), shown_route("p", "arn:aws:x")) == ("p/m", "p")
    assert account_details.without_account_text("fine", MINE) == "fine"
    assert "the provider failed" in account_details.without_account_text("at 10.0.0.1", MINE)


def test_a_body_passes_a_large_text_unread() -> None:
    body = encode({**HI, "x": "y" * 300_000})
    assert read(body).document()["x"] == "y" * 300_000


def test_an_array_of_events_is_json() -> None:
    async def work() -> CollectedReply:
        reply, record = CollectedReply(999), read().record
        stream = ClientStream(
            reply, Ending(), record, surface=surface("gemini"), framing="json-array", ping_seconds=10.0,
            headers=list,
        )  # fmt: skip
        stream.end()
        return reply

    reply = asyncio.run(work())
    assert (reply.headers[0], reply.ended) == (("content-type", "application/json"), True)


def test_a_large_body_is_read_at_once_where_little_of_it_is_new() -> None:
    class Memory:
        def __init__(self, work: int) -> None:
            self.grown: Any = SimpleNamespace(work=work)

        def compare(self, body: bytes, turns: str, most: int) -> Any:
            assert (turns, most) == ("messages", 128 * 1024)
            return self.grown

    little: Any = Memory(128 * 1024)
    much: Any = Memory(128 * 1024 + 1)
    body = bytes(200 * 1024)
    assert known_of(body, little, "messages") is little.grown
    assert known_of(body, much, "messages") is None
    assert known_of(body, None, "messages") is None
    assert known_of(body, little, "") is None
    assert known_of(bytes(2 * 1024 * 1024 + 1), little, "messages") is None


def test_a_place_of_the_neutral_request_is_named_as_the_client_names_it() -> None:
    made = read({**HI, "n": 9, "stop": ["x"]})
    assert (
        made.place("$.sampling.candidates", Request("m", ())) == "$.sampling.candidates"
    )  # it was not read yet
    request = made.request()
    assert made.place("$.sampling.candidates", request) == "$.n"
    loss = Loss("$.sampling.candidates", "candidates", "dropped", "")
    assert [each.path for each in made.located((loss,), request)] == ["$.n"]
    assert made.located((), request) == ()
