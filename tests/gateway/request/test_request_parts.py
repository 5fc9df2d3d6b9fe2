"""A request of a cloud's client, replies in another framing, and the end of an exchange, each part alone."""

from __future__ import annotations

import asyncio
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from tests.gateway.kit import exchange, head, own, settings
from tests.tiers import rows
from wireglot.gateway.entry.callers import LOCAL, Caller
from wireglot.gateway.errors import RequestError
from wireglot.gateway.request import problems
from wireglot.gateway.request.collected_reply import CollectedReply, FramedReply
from wireglot.gateway.request.ending import Ending
from wireglot.gateway.request.exchange import Exchange
from wireglot.gateway.request.job import ClientBody, Incoming, _flags, bad_json, decoded, in_vendor_form
from wireglot.gateway.request.token_weight import ESTIMATED, Estimator, tells_usage
from wireglot.gateway.settings import ClientKey
from wireglot_core.dialects.surface import CloudForm, StreamFraming
from wireglot_core.ir.content import Message, Text
from wireglot_core.ir.errors import ApiError
from wireglot_core.ir.request import Request
from wireglot_core.wire.json import BadJson, TooDeep, decode
from wireglot_core.wire.splice import Outline

NOW = settings(own("mine", "openai-chat"))
HI = {"model": "mine/m", "messages": [{"role": "user", "content": "Hi"}]}
ANTHROPIC = {**HI, "max_tokens": 9}


def read(body: Any = HI, **more: Any) -> Exchange:
    return exchange(NOW, body, **more)


# Clouds.

FORM = CloudForm(
    dialect="anthropic",
    headers={"version": "", "beta": "x-beta"},
    plain_model=lambda model: model.removeprefix("cloud."),
    unwrapped_count=lambda body: body.removeprefix(b"wrapped "),
)


def vendor(
    body: bytes, *, operation: str = "generate", model: str = "", stream: Any = None, **headers: str
) -> Any:
    asked: Any = SimpleNamespace(operation=operation, model=model, stream=stream)
    incoming, changed = in_vendor_form(Incoming(NOW, head("POST", "/x", **headers), asked, LOCAL), body, FORM)
    found = {name: value for name, value in incoming.head.headers.items() if name != "host"}
    try:
        return decode(changed), found
    except BadJson:
        return changed, found


@rows(
    ("body", "options", "document", "headers"),
    [
        (b'{"a": 1}', {"model": "cloud.m"}, {"a": 1, "model": "m"}, {}),
        (b'{"model": "cloud.m"}', {}, {"model": "m"}, {}),
        (b'{"model": "x"}', {"model": "cloud.m"}, {"model": "m"}, {}),
        (b'{"a": 1}', {}, {"a": 1}, {}),
        (b'{"a": 1}', {"stream": True}, {"a": 1, "stream": True}, {}),
        (b'{"stream": true}', {"stream": False}, {"stream": False}, {}),
        (b'{"version": "v1"}', {}, {}, {}),
        (b'{"beta": ["a", " b ", ""]}', {}, {}, {"x-beta": "a,b"}),
        (b'{"beta": "b"}', {"x_beta": "a, b"}, {}, {"x-beta": "a,b"}),
        (b'{"beta": null}', {}, {}, {}),
        (b'{"beta": [7]}', {}, {"beta": [7]}, {}),
        (b'wrapped {"a": 1}', {"operation": "count"}, {"a": 1}, {}),
        (b'wrapped {"a": 1}', {}, b'wrapped {"a": 1}', {}),
        (b"nonsense", {"model": "m"}, b"nonsense", {}),
    ],
)
def test_a_request_in_the_form_of_a_cloud(body: bytes, options: Any, document: Any, headers: Any) -> None:
    found, sent = vendor(body, **options)
    assert (found, sent) == (document, {**({"x-beta": "a, b"} if "x_beta" in options else {}), **headers})


@rows(
    ("value", "flags"),
    [
        (None, []),
        ("a", ["a"]),
        (" a ", ["a"]),
        (["a", "", " "], ["a"]),
        ([], []),
        (7, None),
        (["a", 7], None),
        ("é", None),
        ("a\n", None),
    ],
)
def test_values_of_a_header(value: Any, flags: Any) -> None:
    assert _flags(value) == flags


def test_fields_for_the_gateway_go_to_nobody() -> None:
    made = read({**ANTHROPIC, "conversation": "c1"}, path="/v1/messages")
    assert "conversation" not in decoded(made.job)
    assert decoded(made.job)["max_tokens"] == 9
    plain = read()
    assert decoded(plain.job) is decoded(plain.job), "decoded once"


# Bodies.


@rows(("size", "by_member"), [(256 * 1024, False), (256 * 1024 + 1, True)])
def test_a_long_body_is_decoded_member_by_member(
    monkeypatch: pytest.MonkeyPatch, size: int, by_member: bool
) -> None:
    asked: list[int] = []
    plain = Outline.document

    def noted(self: Outline, depth: int) -> Any:
        asked.append(depth)
        return plain(self, depth)

    monkeypatch.setattr(Outline, "document", noted)
    body = b'{"a":"' + b"x" * (size - 8) + b'"}'
    assert len(body) == size
    assert len(ClientBody(body).document()["a"]) == size - 8
    assert bool(asked) is by_member


@rows(
    ("problem", "body", "code"),
    [
        (BadJson("bad", 7), b'{"a": NaN}', "invalid_number"),
        (BadJson("bad", 6), b'{"a":-Infinity}', "invalid_number"),
        (BadJson("number out of range", 6), b'{"a": 1e999}', "invalid_number"),
        (TooDeep(), b"[[", "json_too_deep"),
        (BadJson("invalid UTF-8", 3), b"{}", "invalid_utf8"),
        (BadJson("bad", 0), b"x", "invalid_json"),
        (BadJson("bad"), b"", "invalid_json"),
    ],
    ids=["NaN", "Infinity", "range", "deep", "letters", "other", "nowhere"],
)
def test_what_is_wrong_with_a_body(problem: BadJson, body: bytes, code: str) -> None:
    assert bad_json(problem, body).error.code == code


def test_a_conversation_that_its_vendor_holds() -> None:
    assert read({**ANTHROPIC, "thread": {"id": "t"}}, path="/v1/messages").job.thread is True
    assert read({**ANTHROPIC, "thread": None}, path="/v1/messages").job.thread is False
    assert read(ANTHROPIC, path="/v1/messages").job.thread is False
    assert read().job.thread is False


def test_an_unreadable_conversation_is_known_by_its_first_kibibyte() -> None:
    def affinity(place: int) -> str:
        body = bytearray(b'{"model":"mine/m","messages":7,"x":"'.ljust(2000, b"x") + b'"}')
        body[place] = ord("y")
        return read(bytes(body)).affinity()

    assert affinity(1023) != affinity(1024) == affinity(1025)


def test_an_estimate_is_marked_as_invented() -> None:
    assert (ESTIMATED.path, ESTIMATED.feature, ESTIMATED.action) == ("$.usage", "usage.detail", "invented")
    client: Any = SimpleNamespace(tells_usage=lambda request: request.stream)
    assert tells_usage(client, None)
    assert tells_usage(client, Request("m", (), stream=True))
    assert not tells_usage(client, Request("m", (), stream=False))
    client.tells_usage = None
    assert not tells_usage(client, None)


def test_a_session_is_no_text_of_a_conversation() -> None:
    one = Request("m", (Message("user", (Text("s"),)),))
    names = {
        Estimator.conversation(one),
        Estimator.conversation(one, "s"),
        Estimator.conversation(one, "", "s"),
        Estimator.conversation(Request("m", ()), "", "s"),
        Estimator.conversation(one, "s", "s"),
    }
    assert len(names) == 5


# Replies in another framing.


class Framer:
    """Writes what it gets in capitals, and holds back half a word."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.held = b""

    def feed(self, data: bytes) -> bytes:
        whole, _, self.held = (self.held + data).rpartition(b" ")
        return whole.upper()

    def close(self) -> bytes:
        return self.held.upper()


FRAMING = StreamFraming("application/capitals", Framer)
STREAM = [("x", "1"), ("content-type", "text/event-stream; charset=utf-8"), ("y", "2")]
CAPITALS = [("content-type", "application/capitals"), ("x", "1"), ("y", "2")]


def framed() -> tuple[FramedReply, CollectedReply]:
    behind = CollectedReply(999)
    return FramedReply(behind, FRAMING), behind


def test_a_stream_goes_on_in_the_framing_of_its_client() -> None:
    reply, behind = framed()
    reply.start(200, STREAM)
    assert (behind.status, behind.headers) == (200, CAPITALS)
    assert isinstance(reply._framer, Framer)
    assert reply._framer.most == sys.maxsize  # only what is read has a limit
    for piece in (b"one", b" two", b" three "):
        reply.write(piece)
    assert behind.body == b"ONETWO THREE"
    reply.write(b"four")
    assert not behind.ended
    reply.end()
    assert (bytes(behind.body), behind.ended) == (b"ONETWO THREEFOUR", True)


def test_what_is_no_stream_goes_on_unchanged() -> None:
    for headers in ([("content-type", "application/json")], [("x", "text/event-stream")]):
        reply, behind = framed()
        reply.start(200, headers)
        reply.write(b"one two")
        reply.end()
        assert (behind.headers, bytes(behind.body), behind.ended) == (headers, b"one two", True)
        reply, behind = framed()
        reply.send(400, headers, b"one two")
        assert (behind.status, behind.headers, bytes(behind.body)) == (400, headers, b"one two")


def test_a_stream_that_is_sent_again_comes_in_one_piece() -> None:
    reply, behind = framed()
    reply.send(200, STREAM, b"one two")
    assert (behind.headers, bytes(behind.body), behind.ended) == (CAPITALS, b"ONETWO", True)


@rows(("most", "body"), [(0, b""), (3, b"abc"), (4, b"abcd"), (9, b"abcdef")])
def test_what_is_collected_has_a_maximum(most: int, body: bytes) -> None:
    reply = CollectedReply(most)
    assert (reply.started, reply.ended) == (False, False)
    reply.start(201, [("a", "1")])
    reply.write(b"abc")
    reply.write(b"def")
    assert (reply.started, reply.ended, reply.size, bytes(reply.body)) == (True, False, 6, body)
    reply.end()
    assert (reply.ended, reply.status, reply.headers) == (True, 201, [("a", "1")])


# Ends.


def test_every_step_hears_of_the_end_and_the_first_failure_is_raised() -> None:
    made, heard = read(), list[Any]()

    def failing(name: str) -> Any:
        def step(problem: BaseException | None) -> None:
            heard.append((name, problem))
            raise ValueError(name)

        return step

    gate: Any = SimpleNamespace(leave=lambda: heard.append("gate"))
    made.gates.append(gate)
    made.at_end += [lambda problem: heard.append(("last", problem)), failing("two"), failing("one")]
    with pytest.raises(ValueError, match="one") as raised:
        made.leave(None)
    assert heard == ["gate", ("one", None), ("two", raised.value), ("last", raised.value)]
    assert (made.gates, made.at_end) == ([], [])
    made.leave(None)
    assert len(heard) == 4


def test_the_first_of_several_rounds_is_on_the_same_account_and_keeps_nothing() -> None:
    told: list[str] = []
    account: Any = SimpleNamespace(
        before_asking=lambda: told.append("asking"), complete=lambda: told.append("complete")
    )
    meter: Any = SimpleNamespace(heard=lambda data: None, estimate=lambda: told.append("estimate"))
    keeper: Any = SimpleNamespace(needs=lambda target: True)
    whole = Ending(account=account, keepers=[keeper])
    whole.count_with(meter)
    target: Any = None
    before = whole.of_one_round()
    assert (before.account, before.listener, before.keepers) == (account, meter.heard, [])
    assert (whole.holds(target), before.holds(target)) == (True, False)
    before.before_asking()
    before.before_asking()
    assert told == ["asking"], "once"
    assert before.of_one_round().before_asking() is None
    assert told == ["asking"]
    before.complete()
    assert told == ["asking", "estimate", "complete"]
    assert not whole.completed


def test_a_place_at_a_provider_is_left_once() -> None:
    made, left = read(), list[str]()
    made.leave_provider()
    gate: Any = SimpleNamespace(leave=lambda: left.append("left"))
    made.provider_gate = gate
    made.leave_provider()
    made.leave_provider()
    assert left == ["left"]


def test_what_still_runs_for_an_exchange_ends_with_it() -> None:
    async def work() -> None:
        made = read()
        checking: Any = asyncio.create_task(asyncio.sleep(60))
        asking: Any = asyncio.create_task(asyncio.sleep(60))
        made.checking, made.asking = checking, [asking]
        made.open_stream()
        first: Any = made.client
        first.opened = True
        made.open_stream()
        assert (first._timer, made.client is first) == (None, False)
        second: Any = made.client
        assert second.opened
        made.feeder = second
        made.close()
        assert (second._timer, made.client, made.feeder) == (None, None, None)
        assert made.ending.completed
        for task in (checking, asking):
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(work())


# Errors, and who is told all of them.

KEYED = Caller("team", ClientKey("team", "digest"))


@rows(
    ("caller", "headers", "peer", "all_of_it"),
    [
        (LOCAL, {}, "127.0.0.1", True),
        (LOCAL, {}, "192.0.2.1", False),
        (LOCAL, {"x_forwarded_for": "192.0.2.1"}, "127.0.0.1", False),
        (KEYED, {}, "127.0.0.1", False),
        (KEYED, {"x_wireglot_admin": "secret"}, "192.0.2.1", True),
    ],
    ids=["here", "elsewhere", "behind a proxy", "with a key", "admin"],
)
def test_who_is_told_all_of_an_error(caller: Caller, headers: Any, peer: str, all_of_it: bool) -> None:
    made: Any = SimpleNamespace(
        job=SimpleNamespace(caller=caller, head=head("POST", "/x", peer=peer, **headers), settings=NOW),
        record=SimpleNamespace(provider="mine", upstream_url=""),
    )
    error = ApiError("invalid_request", "account 123456789012 has no such model", status=400)
    assert problems.tells_all(made) is all_of_it
    assert (problems.shown(error, made) is error) is all_of_it
    for body in (b'{"message": "of 123456789012"}', b"of 123456789012"):
        assert problems.may_pass(error, body, made) is all_of_it
    for body in (b'{"message": "too long"}', b"too long"):
        assert problems.may_pass(error, body, made)


def test_a_bug_is_noted_by_its_four_innermost_places() -> None:
    def deep(number: int) -> None:
        if not number:
            raise KeyError("secret")
        deep(number - 1)

    notes: list[Any] = []
    try:
        deep(9)
    except KeyError as bug:
        problems.note_bug(bug, "req_1", lambda level, event, **fields: notes.append((level, event, fields)))
        ((level, event, fields),) = notes
        assert (level, event, fields["id"], fields["type"]) == ("error", "bug", "req_1", "KeyError")
        assert fields["where"].count(" < ") == 3
        assert "secret" not in fields["where"]


def test_an_error_of_ours_has_its_status() -> None:
    error = RequestError("shed", "later")
    assert (error.status, error.error.status) == (503, 503)
    assert error.with_status(508) is error
    assert (error.status, error.error.status) == (508, 508)
