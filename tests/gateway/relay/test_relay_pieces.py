"""Pieces of the relay alone: files by address, verdicts, further answers, WebSockets that were refused."""

from __future__ import annotations

import asyncio
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from tests.gateway.kit import exchange, own, settings
from tests.tiers import rows
from wireglot.gateway.errors import RequestError
from wireglot.gateway.relay import candidates, judge, media, refusals, unavailable
from wireglot.gateway.relay.media import MAX_FILES, MediaDownloads, NeedsMedia, with_files
from wireglot.gateway.relay.relay import Relay
from wireglot.gateway.relay.sign_ins import SignIns
from wireglot.gateway.relay.sockets import SocketRecord, UpstreamSockets, _key, _Line
from wireglot.gateway.request.attempt import Attempt
from wireglot.gateway.request.collected_reply import CollectedReply
from wireglot.gateway.settings import Credential, Secret
from wireglot.http.transport import Outbound
from wireglot.logins.login import Grant, LoginFailed
from wireglot.web.contract import MediaFile, WebFailed
from wireglot_core.dialects.registry import surface
from wireglot_core.ir.content import (
    Extra,
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
from wireglot_core.ir.request import HostedTool, Request, Sampling, Tool, ToolChoice
from wireglot_core.ir.safeguards import TOOL_CALLS, CallVerdict, Safeguard
from wireglot_core.wire.json import decode, encode

NOW = settings(own("mine", "openai-chat"))
HI = {"model": "mine/m", "messages": [{"role": "user", "content": "Hi"}]}

# Files by address.


def _file(data: bytes, mime: str) -> MediaFile:
    return MediaFile("http://h/", mime, data)


PNG = b"\x89PNG\r\n\x1a\n..."


@rows(
    ("data", "said", "stated", "mime"),
    [
        (PNG, "text/html", "", "image/png"),
        (b"\xff\xd8\xff..", "", "", "image/jpeg"),
        (b"GIF89a", "", "", "image/gif"),
        (b"%PDF-1.7", "text/plain", "", "application/pdf"),
        (b"RIFF....WEBP", "", "", "image/webp"),
        (b"RIFF....WAVE", "audio/wav", "", "audio/wav"),
        (b"text", "text/plain", "x/y", "text/plain"),
        (b"text", "", "x/y", "x/y"),
        (b"text", "application/octet-stream", "x/y", "x/y"),
        (b"text", "binary/octet-stream", "x/y", "x/y"),
    ],
)
def test_the_type_of_a_file(data: bytes, said: str, stated: str, mime: str) -> None:
    assert media._type_of(_file(data, said), Media("image", stated, url="http://h/")) == mime


def test_addresses_are_replaced_wherever_they_are() -> None:
    picture = Media("image", url="HTTPS://h/a")
    inline = Media("image", "image/png", "QQ==")
    named = Media("image", url="file://x")
    result = ToolResult("c", (Text("t"), Media("document", url="http://h/b"), inline))
    request = Request("m", (Message("user", (Text("x"), picture, inline, named)), Message("user", (result,))))
    with pytest.raises(NeedsMedia, match="2 to be downloaded") as needed:
        with_files(request, {})
    assert needed.value.wanted == {
        ("HTTPS://h/a", "image"): "$.messages[0].content[1]",
        ("http://h/b", "document"): "$.messages[1].content[0].content[1]",
    }
    files = {
        ("HTTPS://h/a", "image"): _file(b"A", "image/png"),
        ("http://h/b", "document"): _file(b"B", "p"),
    }
    filled, losses = with_files(request, files)
    assert filled.messages == (
        Message("user", (Text("x"), Media("image", "image/png", "QQ=="), inline, named)),
        Message("user", (ToolResult("c", (Text("t"), Media("document", "p", "Qg=="), inline)),)),
    )
    assert [(loss.path, loss.feature, loss.action) for loss in losses] == [
        ("$.messages[0].content[1].url", "image", "emulated"),
        ("$.messages[1].content[0].content[1].url", "document", "emulated"),
    ]
    plain = Request("m", (Message("user", (Text("x"), inline)),))
    assert with_files(plain, {}) == (plain, ())


class Fetch:
    def __init__(self, **files: MediaFile | WebFailed) -> None:
        self.files = files
        self.asked: list[str] = []

    async def media(self, url: str) -> MediaFile:
        self.asked.append(url)
        found = self.files[url.rpartition("/")[2]]
        if isinstance(found, WebFailed):
            raise found
        return found


def downloading(fetch: Any, *parts: Media, files: Any = None) -> tuple[Any, list[int]]:
    taken: list[int] = []
    held = SimpleNamespace(take=taken.append)
    made: Any = SimpleNamespace(files=files or {}, held=held, place=lambda path, asked: f"$.{path[2:]}")
    request = Request("m", (Message("user", parts),))

    async def work() -> None:
        try:
            with_files(request, made.files)
        except NeedsMedia as needed:
            await MediaDownloads(lambda _: fetch).download(made, needed)

    asyncio.run(work())
    return made, taken


def test_a_file_is_downloaded_once_for_each_kind_and_counted() -> None:
    fetch = Fetch(a=_file(PNG, ""), b=_file(b"text", "text/plain"))
    made, taken = downloading(
        fetch,
        Media("image", url="http://h/a"),
        Media("image", url="http://h/a"),
        Media("document", url="http://h/b"),
    )
    assert sorted(fetch.asked) == ["http://h/a", "http://h/b"]
    assert made.files == {
        ("http://h/a", "image"): _file(PNG, "image/png"),
        ("http://h/b", "document"): _file(b"text", "text/plain"),
    }
    assert sorted(taken) == sorted([len(PNG) * 4 // 3, 4 * 4 // 3])


@rows(
    ("kind", "file", "words"),
    [
        ("image", _file(b"text", "text/html"), "expected the URL of image data, found text/html"),
        ("image", _file(b"text", ""), "expected the URL of image data, found an unknown type"),
        ("document", _file(PNG, ""), "expected the URL of document data, found image/png"),
        ("audio", _file(PNG, ""), "expected the URL of audio data, found image/png"),
        ("image", WebFailed("url_not_accessible", "it is gone"), "it is gone"),
    ],
)
def test_a_file_that_is_something_else_is_refused_at_its_place(kind: Any, file: Any, words: str) -> None:
    with pytest.raises(RequestError) as refused:
        downloading(Fetch(a=file), Media(kind, url="http://h/a"))
    place = "messages[0].content[0].url"
    assert str(refused.value) == f"{place}: {words}"
    assert (refused.value.error.code, refused.value.error.param) == ("invalid_value", place)


@rows(
    ("kind", "mime"),
    [
        ("document", "application/pdf"),
        ("document", "application/json"),
        ("document", "application/xml"),
        ("audio", "audio/wav"),
        ("video", "video/mp4"),
    ],
)
def test_types_that_parts_may_have(kind: Any, mime: str) -> None:
    made, _ = downloading(Fetch(a=_file(b"x", mime)), Media(kind, url="http://h/a"))
    assert made.files[("http://h/a", kind)].mime == mime


def test_a_request_has_at_most_32_files() -> None:
    names = [f"n{number}" for number in range(33)]
    fetch = Fetch(**dict.fromkeys(names, _file(PNG, "")))
    made, _ = downloading(fetch, *(Media("image", url=f"http://h/{name}") for name in names[:32]))
    assert len(made.files) == MAX_FILES == 32
    with pytest.raises(RequestError, match="more than 32 URLs") as refused:
        downloading(fetch, *(Media("image", url=f"http://h/{name}") for name in names))
    assert refused.value.error.code == "unsupported"
    with pytest.raises(RequestError, match="more than 32 URLs"):
        downloading(fetch, Media("image", url="http://h/n32"), files=made.files)


# Verdicts.


@rows(
    ("text", "verdict"),
    [
        ('{"verdict": "allow"}', CallVerdict("not_flagged")),
        (' ```json\n{"verdict": "allow", "reason": "ok"}\n``` ', CallVerdict("not_flagged")),
        ('```{"verdict": "allow"}```', CallVerdict("not_flagged")),
        ('{"verdict": "block", "reason": "bad"}', CallVerdict("flagged", "bad")),
        ('{"verdict": "block"}', CallVerdict("flagged", "")),
        ('{"verdict": "block", "reason": 7}', CallVerdict("flagged", "")),
        ('{"verdict": "block", "reason": "%s"}' % ("x" * 600), CallVerdict("flagged", "x" * 500)),
        ('{"verdict": "allow", "reason": 7}', CallVerdict("unavailable", "error")),
        ('{"verdict": "allow", "more": 1}', CallVerdict("unavailable", "error")),
        ('{"verdict": "block", "more": 1}', CallVerdict("unavailable", "error")),
        ('{"verdict": "allow", "verdict": "block"}', CallVerdict("unavailable", "error")),
        ('yes {"verdict": "allow"}', CallVerdict("unavailable", "error")),
        ("{", CallVerdict("unavailable", "error")),
        ("", CallVerdict("unavailable", "error")),
    ],
)
def test_only_a_verdict_is_one(text: str, verdict: CallVerdict) -> None:
    assert judge._verdict_in(text) == verdict


@rows(
    ("call", "reason"),
    [
        (ToolCall("c", "f", '{"a":'), "truncated"),
        (ToolCall("c", "f", f'{{"a":{"1" * judge._CALL_CHARACTERS}}}'), "input_too_long"),
        (ToolCall("c", "f", "a" * (judge._CALL_CHARACTERS + 1), "custom"), "input_too_long"),
        (ToolCall("c", "f", '{"a":1,"a":2}'), "error"),
        (ToolCall("c", "f", "[1]"), "error"),
        (ToolCall("c", "f", "oops"), "error"),
    ],
)
def test_a_call_of_which_no_one_can_say_what_it_does_calls_no_judge(call: ToolCall, reason: str) -> None:
    noted: list[str] = []
    passed: Any = SimpleNamespace(
        job=SimpleNamespace(safeguards=SimpleNamespace(mode="judge")),
        leave_provider=lambda: None,
        record=SimpleNamespace(noted=noted.append),
    )

    ask: Any = None  # a request for a verdict would fail
    checks = (Safeguard(TOOL_CALLS), Safeguard("other"))
    found = asyncio.run(judge.Judge(ask).results(passed, checks, [call], [ToolCall("d", "f", "{")]))
    unavailable = CallVerdict("unavailable", reason), CallVerdict("unavailable", "truncated")
    assert [(each.kind, each.status) for each in found] == [
        (TOOL_CALLS, "available"),
        ("other", "unsupported"),
    ]
    assert found[0].calls == dict(zip("cd", unavailable, strict=True))
    assert noted == ["tool calls judged: 2 unavailable"]


ALLOWED = {"content": '{"verdict": "allow"}'}
CALLS = {
    **ALLOWED,
    "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
}


def choice(message: dict[str, Any], finish: str) -> dict[str, Any]:
    chosen = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}
    return {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [chosen]}


def refused(**more: str) -> dict[str, Any]:
    return {"error": {"message": "m", **more}}


@rows(
    ("status", "document", "verdict"),
    [
        (200, choice(ALLOWED, "stop"), CallVerdict("not_flagged")),
        (408, refused(), CallVerdict("unavailable", "timeout")),
        (413, refused(), CallVerdict("unavailable", "input_too_long")),
        (400, refused(code="context_length_exceeded"), CallVerdict("unavailable", "input_too_long")),
        (400, refused(code="content_filter"), CallVerdict("unavailable", "refused")),
        (500, refused(), CallVerdict("unavailable", "error")),
        (500, b"nonsense", CallVerdict("unavailable", "error")),
        (200, b"nonsense", CallVerdict("unavailable", "error")),
        (200, choice(ALLOWED, "length"), CallVerdict("unavailable", "truncated")),
        (200, choice(ALLOWED, "content_filter"), CallVerdict("unavailable", "refused")),
        (200, choice({"content": None, "refusal": "no"}, "stop"), CallVerdict("unavailable", "refused")),
        (200, choice(CALLS, "stop"), CallVerdict("unavailable", "error")),
        (200, choice(CALLS, "tool_calls"), CallVerdict("unavailable", "error")),
    ],
)
def test_what_an_answer_of_the_judge_says(status: int, document: Any, verdict: CallVerdict) -> None:
    made, reply = exchange(NOW, HI), CollectedReply(9999)
    reply.send(status, [], document if isinstance(document, bytes) else encode(document))
    assert judge._read(made.job, reply) == verdict


def test_the_user_is_quoted_up_to_16_000_characters() -> None:
    long = [Message("user", (Text(letter * 5000),)) for letter in "abcde"]
    shown = judge._user_messages(Request("m", (*long, Message("assistant", (Text("no"),)))))
    assert [(text[0], len(text)) for text in shown] == [(letter, 4000) for letter in "bcde"]
    two = Message("user", (Text("one"), ToolResult("c", (Text("no"),)), Text(""), Text("two")))
    assert judge._user_messages(Request("m", (two,))) == ["one", "two"]


def test_what_a_judge_is_asked() -> None:
    tools = (Tool("f", "x" * 3000), Tool("g", None))
    request = Request("m", (Message("user", (Text("Hi"),)),), tools=tools)
    safeguard: Any = SimpleNamespace(context={"a": 1})
    call = {"name": "f", "arguments": {}}
    assert judge._question(request, safeguard, call) == {
        "context": {"a": 1},
        "user_messages": ["Hi"],
        "tool": "x" * 2000,
        "call": call,
    }
    assert judge._question(request, safeguard, {"name": "g"})["tool"] == ""
    assert judge._question(request, safeguard, {"name": "h"})["tool"] == ""


@rows(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("é", "é"),
        ("a\u200bb", "a\\u200bb"),
        ("\U000e0041", "\\udb40\\udc41"),
        ("\ufeff", "\\ufeff"),
    ],
)
def test_no_letter_is_invisible_to_a_judge(text: str, shown: str) -> None:
    assert judge._visible(text) == shown


@rows(
    ("call", "arguments"),
    [
        (ToolCall("c", "f", '{"a": 1}'), {"a": 1}),
        (ToolCall("c", "f", ""), {}),
        (ToolCall("c", "f", '{"a": 1, "a": 2}'), None),
        (ToolCall("c", "f", "[1]"), None),
        (ToolCall("c", "f", "rm -rf", kind="custom"), "rm -rf"),
    ],
)
def test_arguments_as_the_client_will_read_them(call: ToolCall, arguments: Any) -> None:
    assert judge._arguments(call) == arguments


def test_a_request_of_the_gateways_own() -> None:
    made = exchange(NOW, HI, x_session_id="s1")
    incoming = judge.own_request(made.job, surface("anthropic"), "agent", 12.5, "silent")
    sent = incoming.head
    assert (sent.method, sent.path, sent.target, sent.query, sent.peer) == (
        "POST",
        "/v1/messages",
        "/v1/messages",
        "",
        "127.0.0.1",
    )
    assert sent.headers == {
        "host": "localhost:8484",
        "user-agent": "agent",
        "content-type": "application/json",
        "x-session-id": "s1",
        "x-wireglot-timeout": "12.5",
        "x-wireglot-loss-policy": "silent",
    }
    assert (incoming.asked.dialect, incoming.asked.operation, incoming.caller) == (
        "anthropic",
        "generate",
        made.job.caller,
    )


# Further answers.


@rows(("timeout", "header"), [("", None), ("7.5", "7.5")])
def test_a_request_for_one_more_answer(timeout: str, header: str | None) -> None:
    more: Any = {"x_wireglot_timeout": timeout} if timeout else {}
    made = exchange(NOW, {**HI, "max_tokens": 9, "stream": True}, x_session_id="s1", **more)
    incoming = candidates._incoming(made.job)
    assert incoming.head.headers == {
        "host": "localhost:8484",
        "user-agent": "wireglot-candidate",
        "content-type": "application/json",
        "x-session-id": "s1",
        "x-wireglot-loss-policy": "silent",
        "x-wireglot-emulate": "on",
        **({"x-wireglot-timeout": header} if header else {}),
    }
    assert (incoming.head.method, incoming.head.path, incoming.asked.stream) == (
        "POST",
        made.job.head.path,
        False,
    )
    body = decode(candidates._body(made))
    assert (body["model"], body["max_completion_tokens"], body["messages"][0]["content"]) == (
        "mine/m",
        9,
        ".",
    )


def test_answers_beyond_the_first_are_asked_for_where_the_upstream_gives_one() -> None:
    made = exchange(NOW, {**HI, "n": 3})
    asked = Request("m", (), sampling=Sampling(candidates=3))
    dropped = Loss("$.sampling.candidates", "candidates", "dropped", "")
    other = Loss("$.x", "image", "dropped", "")
    kept = Loss("$.y", "candidates", "approximated", "")
    losses, count = candidates.emulated(made, asked, (other, dropped, kept))
    assert ([(loss.feature, loss.action) for loss in losses], count) == (
        [("image", "dropped"), ("candidates", "approximated"), ("candidates", "emulated")],
        2,
    )
    assert losses[2].path == "$.sampling.candidates"
    assert candidates.emulated(made, asked, (other,)) == ((other,), 0)
    with pytest.raises(RequestError, match="at most 8 for this model") as refused:
        candidates.emulated(made, Request("m", (), sampling=Sampling(candidates=9)), (dropped,))
    assert refused.value.error.code == "unsupported"
    assert candidates.emulated(made, Request("m", (), sampling=Sampling(candidates=8)), (dropped,))[1] == 7


# Tools that nobody runs.

SEARCH = HostedTool("web_search", Foreign("anthropic", "web_search", {"name": "web_search"}))
CODE = HostedTool("code_execution", Foreign("anthropic", "code_execution", {}))
FIND = HostedTool("tool_search", Foreign("anthropic", "tool_search", {}))
FUNCTION = Tool("f")
TARGET: Any = SimpleNamespace(provider=SimpleNamespace(name="mine"))
LOST = Loss("$.tools[0]", "hosted_tool", "dropped", "")


@rows(
    ("tools", "choice", "losses", "refused"),
    [
        ((SEARCH,), None, (LOST,), True),
        ((SEARCH,), None, (), False),
        ((SEARCH,), None, (Loss("$.tools[0]", "hosted_tool", "approximated", ""),), False),
        ((SEARCH,), None, (Loss("$.tools[0]", "image", "dropped", ""),), False),
        ((SEARCH,), ToolChoice("none"), (LOST,), False),
        ((SEARCH, FUNCTION), None, (LOST,), False),
        ((SEARCH, FUNCTION), ToolChoice("required", ("web_search",)), (LOST,), True),
        ((SEARCH, FUNCTION), ToolChoice("required", ("f",)), (LOST,), False),
        ((SEARCH, FUNCTION), ToolChoice("auto", ("web_search",)), (LOST,), False),
        ((SEARCH, CODE), ToolChoice("required", ("web_search",)), (LOST,), False),
        ((SEARCH, CODE), ToolChoice("required", ("web_search",)), (LOST, LOST), True),
        ((SEARCH, FIND), ToolChoice("required", ("web_search",)), (LOST,), True),
        ((), None, (LOST,), False),
    ],
)
def test_a_search_that_nobody_runs_is_refused(tools: Any, choice: Any, losses: Any, refused: bool) -> None:
    request = Request("m", (), tools=tools, tool_choice=choice)
    if not refused:
        unavailable.refuse_search(request, TARGET, losses)
        return
    with pytest.raises(AttemptFailed) as failed:
        unavailable.refuse_search(request, TARGET, losses)
    error = failed.value.error
    assert (error.kind, error.status, error.code, failed.value.blame) == (
        "invalid_request",
        400,
        "web_search_unavailable",
        "gateway",
    )


@rows(
    ("tools", "choice", "loss", "refused"),
    [
        ((CODE,), None, LOST, True),
        ((CODE,), ToolChoice("none"), LOST, False),
        ((CODE,), ToolChoice("auto"), LOST, True),
        ((SEARCH,), None, LOST, False),
        ((SEARCH, CODE), None, LOST, False),
        ((CODE,), None, Loss("$.tools[0]", "hosted_tool", "approximated", ""), False),
        ((CODE,), None, Loss("$.tools[0]", "image", "dropped", ""), False),
    ],
)
def test_code_that_nobody_executes_is_refused(tools: Any, choice: Any, loss: Loss, refused: bool) -> None:
    request = Request("m", (), tools=tools, tool_choice=choice)
    if not refused:
        unavailable.refuse_code_execution(request, TARGET, (loss,))
        return
    with pytest.raises(AttemptFailed) as failed:
        unavailable.refuse_code_execution(request, TARGET, (loss,))
    error = failed.value.error
    assert (error.status, error.code, failed.value.blame) == (400, "code_execution_unavailable", "gateway")


# Reasoning state that is refused.

SIGNED = Signature("s", Origin("anthropic", account="a1"))


def test_a_conversation_without_reasoning_state() -> None:
    thought = Reasoning("why", SIGNED)
    hidden = Reasoning("", SIGNED, redacted=True)
    plain = Reasoning("free")
    carried = Reasoning("carried", minter=Origin("kimi"))
    call = ToolCall("c", "f", "{}", signature=SIGNED)
    request = Request(
        "m",
        (
            Message("user", (Text("Hi", signature=SIGNED),)),
            Message("assistant", (thought, hidden, plain, carried, Text("x"), call)),
            Message("assistant", (thought,)),
            Message("assistant", ()),
        ),
    )
    stripped = refusals.without_opaque_state(request, "openai-chat")
    assert stripped.request.messages == (
        request.messages[0],
        Message("assistant", (plain, Text("x"), ToolCall("c", "f", "{}"))),
        Message("assistant", ()),
    )
    assert [(loss.path, loss.feature, loss.action) for loss in stripped.losses] == [
        ("$.messages[1].content[0]", "reasoning.text", "dropped"),
        ("$.messages[1].content[1]", "reasoning.redacted", "dropped"),
        ("$.messages[1].content[3]", "reasoning.text", "dropped"),
        ("$.messages[1].content[5].signature", "reasoning.signature", "dropped"),
        ("$.messages[2].content[0]", "reasoning.text", "dropped"),
    ]
    assert refusals.minters(request) == {"a1"}
    unknown = Extra("nobody", {"a": 1})
    assert refusals._stateless(unknown) is unknown
    assert refusals._stateless(None) is None


def test_targets_without_state_are_not_kept_forever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refusals, "goes_on_without_state", lambda *given: False)
    monkeypatch.setattr(refusals, "has_no_state", lambda *given: True)
    known, sizes = refusals.RefusedState(), []
    failed = AttemptFailed(ApiError("invalid_request", "no", status=400), "request")
    for number in range(4098):
        made: Any = SimpleNamespace(attempt=Attempt("warn", asks_summary=False))
        target: Any = SimpleNamespace(name=f"p/{number}")
        assert known.goes_on(made, target, failed)
        assert not made.attempt.asks_state
        assert not known.goes_on(made, target, failed), "once"
        sizes.append(len(known.without))
    assert sizes[4094:] == [4095, 4096, 1, 2]


# WebSockets to upstreams.


def outbound(url: str = "https://h/v1/responses", pool: str = "p", **headers: str) -> Outbound:
    return Outbound("POST", url, list(headers.items()), b"{}", pool=pool)


def test_an_upstream_without_websockets_is_asked_again_after_five_minutes() -> None:
    now = [1000.0]
    record = SocketRecord(lambda: now[0])
    record.refuse(outbound())
    assert record.is_refused(outbound())
    assert not record.is_refused(outbound(pool="other"))
    assert not record.is_refused(outbound("https://h/other"))
    now[0] = 1299.9
    assert record.is_refused(outbound())
    now[0] = 1300.0
    assert not record.is_refused(outbound())
    fresh = SocketRecord(lambda: now[0])
    for number in range(1025):
        fresh.refuse(outbound(f"https://h/{number}"))
        assert len(fresh._refused) == (number + 1 if number < 1024 else 1)


@rows(
    ("age", "usable", "spent", "headers", "kept"),
    [
        (0.0, True, False, {}, True),
        (3299.0, True, False, {}, True),
        (3300.0, True, False, {}, False),
        (0.0, False, False, {}, False),
        (0.0, True, True, {}, False),
        (0.0, True, False, {"a": "1"}, False),
    ],
)
def test_a_connection_is_used_again_while_it_is_good(
    age: float, usable: bool, spent: bool, headers: Any, kept: bool
) -> None:
    closed: list[bool] = []

    async def work() -> None:
        now = asyncio.get_running_loop().time()
        socket: Any = SimpleNamespace(usable=usable, opened=now - age, close=lambda: closed.append(True))
        sockets = UpstreamSockets(SocketRecord(lambda: now), 1)
        assert sockets._usable(outbound()) is None
        line = sockets._line = _Line(socket, _key(outbound()), spent=spent)
        assert sockets._usable(outbound(**headers)) is (line if kept else None)
        assert (sockets._line is line) is kept

    asyncio.run(work())
    assert closed == ([] if kept else [True])


# What a request waits for: named while it does, recorded when it has.


@rows("is_recorded", [True, False])
@rows(
    ("wait", "stretches"),
    [("sign-in", ["translation", "sign-in"]), ("download", ["download"])],
)
def test_a_wait_has_a_name(wait: str, stretches: list[str], is_recorded: bool) -> None:
    passed, named = list[str](), list[str]()
    record = SimpleNamespace(waits="")

    async def work(*_: Any) -> str:
        named.append(record.waits)
        return "done"

    waiting: Any = SimpleNamespace(
        record=record, tap=SimpleNamespace(passed=passed.append) if is_recorded else None
    )
    holder: Any = SimpleNamespace(
        _sign_ins=SimpleNamespace(ready=work), _downloads=SimpleNamespace(download=work)
    )
    preparing: Any = partial(str, "done")
    missing: Any = None
    asked: Any = (
        Relay._signed_in(holder, waiting, credential())
        if wait == "sign-in"
        else Relay._with_media(holder, waiting, missing, preparing)
    )
    assert asyncio.run(asked) == "done"
    assert (named, record.waits) == ([wait], "")
    assert passed == (stretches if is_recorded else [])


# Logins.


def credential(account: str = "a1") -> Credential:
    login: Any = SimpleNamespace()
    return Credential(Secret("", "login"), account, login=login)


def test_a_login_is_obtained_once_and_hidden_before_it_is_used() -> None:
    obtained, hidden, noted = list[Any](), list[Any](), list[Any]()

    def obtain(login: Any) -> Grant:
        obtained.append(login)
        return Grant(secret="token-1", seconds=3600.0)

    signs = SignIns(
        lambda account, failed: noted.append((account, failed)),
        lambda account, secret: hidden.append((account, secret)),
        obtain,
    )

    async def work() -> None:
        given = credential()
        first = await signs.ready(given)
        assert (first.secret.value, first.secret.source, first.account, first.token) == (
            "token-1",
            "login",
            "a1",
            True,
        )
        assert await signs.ready(given) is first
        assert not signs.renews(None)
        assert not signs.renews(Credential(Secret("x"), "other"))

    asyncio.run(work())
    assert (len(obtained), hidden, noted) == (1, [("a1", "token-1")], [("a1", None)])


def test_a_login_that_fails_says_what_to_do() -> None:
    def obtain(login: Any) -> Grant:
        raise LoginFailed("no such file", "make it")

    noted: list[Any] = []
    signs = SignIns(lambda account, failed: noted.append(account), None, obtain)
    with pytest.raises(AttemptFailed) as failed:
        asyncio.run(signs.ready(credential()))
    error = failed.value.error
    assert (error.kind, error.code, failed.value.blame, failed.value.fix) == (
        "auth",
        "sign_in_failed",
        "credential",
        "make it",
    )
    assert noted == ["a1"]


def test_a_key_that_was_found_is_no_sign_in_and_logins_are_bounded() -> None:
    noted: list[Any] = []
    signs = SignIns(
        lambda account, failed: noted.append(account),
        None,
        lambda login: Grant(secret="k", seconds=float("inf")),
    )

    async def work() -> None:
        await signs.ready(credential())

    asyncio.run(work())
    assert noted == []
    for number in range(1000):
        signs._entry(credential(f"n{number}"))
    assert len(signs._entries) == 1, "a1 and 999 others were let go"
