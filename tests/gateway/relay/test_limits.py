"""What the relay bounds and how it reads small things: judges, downloads, refusals, explanations."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from tests.gateway.kit import catalogued, own, settings
from tests.tiers import rows
from wireglot.gateway.relay import judge, media, refusals, web_tools
from wireglot.gateway.relay.after import resting
from wireglot.gateway.relay.explanation import explained, own_words
from wireglot.gateway.relay.judge import own_request
from wireglot.gateway.relay.outbound import key_questions
from wireglot.gateway.relay.sign_ins import SIGN_IN_FAILED, SignIns
from wireglot.gateway.settings import Credential, FetchSettings, Provider, SearchSettings, Secret
from wireglot.gateway.targets.routing import route
from wireglot.logins.login import Grant, LoginFailed
from wireglot.web.contract import MediaFile, WebFailed
from wireglot_core.ir.content import (
    Extra,
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
from wireglot_core.ir.request import Request, Thinking, Tool
from wireglot_core.ir.safeguards import Safeguard
from wireglot_core.providers.spec import ModelSpec, provider

OWN = own("mine", "openai-chat")
(TARGET,) = route(settings(OWN), "mine/m", "anthropic")


# The judge.


def said(*texts: str, role: Any = "user") -> Message:
    return Message(role, tuple(map(Text, texts)))


def test_the_judge_reads_the_latest_words_of_the_user_oldest_first() -> None:
    request = Request("m", (said("first", "second"), said("no", role="assistant"), said("", "third")))
    assert judge._user_messages(request) == ["first", "second", "third"]


def test_the_judge_reads_4000_characters_of_a_message_and_16000_of_all() -> None:
    long = [letter * 4001 for letter in "abcde"]
    found = judge._user_messages(Request("m", tuple(map(said, long))))
    assert found == [letter * 4000 for letter in "bcde"]
    odd = [said("x" * 100), *(said(letter * 3999) for letter in "abcd"), said("y")]
    assert [len(text) for text in judge._user_messages(Request("m", tuple(odd)))] == [
        3,
        3999,
        3999,
        3999,
        3999,
        1,
    ]


def test_the_judge_is_shown_what_the_tool_says_of_itself() -> None:
    tools = (Tool("other", description="no"), Tool("run", description="r" * 2001), Tool("mute"))
    for name, described in (("run", "r" * 2000), ("mute", ""), ("unknown", "")):
        question = judge._question(
            Request("m", (), tools=tools), Safeguard("x", {"cwd": "/"}), {"name": name}
        )
        assert question["tool"] == described
        assert (question["context"], question["call"]) == ({"cwd": "/"}, {"name": name})


@rows(
    ("text", "outcome", "reason"),
    [
        ('{"verdict": "allow"}', "not_flagged", ""),
        ('  {"verdict": "allow", "reason": "fine"}\n', "not_flagged", ""),
        ('```json\n{"verdict": "block", "reason": "rm"}\n```', "flagged", "rm"),
        ('{"verdict": "block", "reason": "' + "r" * 501 + '"}', "flagged", "r" * 500),
        ('{"verdict": "block", "reason": 7}', "flagged", ""),
        ('{"verdict": "block"}', "flagged", ""),
        ('{"verdict": "allow", "reason": 7}', "unavailable", "error"),
        ('{"verdict": "allow", "more": 1}', "unavailable", "error"),
        ('{"verdict": "block", "more": 1}', "unavailable", "error"),
        ('{"verdict": "block", "verdict": "allow"}', "unavailable", "error"),
        ('{"verdict": "perhaps"}', "unavailable", "error"),
        ('I think {"verdict": "allow"}', "unavailable", "error"),
        ("", "unavailable", "error"),
        ('{"verdict": ', "unavailable", "error"),
    ],
)
def test_what_is_a_verdict(text: str, outcome: str, reason: str) -> None:
    verdict = judge._verdict_in(text)
    assert (verdict.outcome, verdict.reason) == (outcome, reason)


def test_a_request_of_the_gateway_is_made_for_the_caller_of_the_first_one() -> None:
    from wireglot_core.dialects.registry import surface

    head = SimpleNamespace(headers={"host": "h:1"}, peer="10.0.0.1")
    job: Any = SimpleNamespace(head=head, session="s1", settings=1, caller=2)
    made = own_request(job, surface("anthropic"), "agent", 2.5, "warn")
    assert (made.head.method, made.head.path, made.head.target) == ("POST", "/v1/messages", "/v1/messages")
    assert made.head.headers == {
        "host": "h:1",
        "user-agent": "agent",
        "content-type": "application/json",
        "x-session-id": "s1",
        "x-wireglot-timeout": "2.5",
        "x-wireglot-loss-policy": "warn",
    }
    assert (made.head.peer, made.asked.dialect, made.asked.operation) == ("10.0.0.1", "anthropic", "generate")


# Downloads.

PNG = b"\x89PNG\r\n\x1a\n...."


@rows(
    ("data", "by_server", "by_client", "found"),
    [
        (PNG, "text/html", "", "image/png"),
        (b"\xff\xd8\xff\xe0", "", "", "image/jpeg"),
        (b"GIF89a", "", "", "image/gif"),
        (b"%PDF-1.7", "image/png", "", "application/pdf"),
        (b"RIFF....WEBPVP8", "", "", "image/webp"),
        (b"RIFF....WAVEfmt", "audio/wav", "", "audio/wav"),
        (b"abcd....WEBP", "text/plain", "", "text/plain"),
        (b"plain", "text/plain", "image/png", "text/plain"),
        (b"plain", "", "image/png", "image/png"),
        (b"plain", "application/octet-stream", "image/png", "image/png"),
        (b"plain", "binary/octet-stream", "image/png", "image/png"),
    ],
)
def test_the_type_of_a_download(data: bytes, by_server: str, by_client: str, found: str) -> None:
    file = MediaFile("https://h/", by_server, data)
    assert media._type_of(file, Media("image", by_client, url="https://h/")) == found


def test_what_was_downloaded_takes_the_place_of_its_address_and_nothing_else_changes() -> None:
    picture = Media("image", "", url="HTTPS://h.example/a")
    inner = ToolResult("c1", (Text("t"), picture))
    inline, stored = Media("image", "image/png", data="AAAA"), Media("image", "", url="gs://bucket/a")
    request = Request(
        "m", (said("x"), Message("user", (Text("t"), picture, inline, stored)), Message("user", (inner,)))
    )
    with pytest.raises(media.NeedsMedia) as needed:
        media.with_files(request, {})
    assert list(needed.value.wanted) == [("HTTPS://h.example/a", "image")]
    files = {("HTTPS://h.example/a", "image"): MediaFile("https://h.example/a", "image/png", b"abc")}
    filled, losses = media.with_files(request, files)
    assert [(loss.path, loss.feature, loss.action) for loss in losses] == [
        ("$.messages[1].content[1].url", "image", "emulated"),
        ("$.messages[2].content[0].content[1].url", "image", "emulated"),
    ]
    as_bytes = Media("image", "image/png", data="YWJj")
    assert filled.messages[0] is request.messages[0]
    assert filled.messages[1].content == (Text("t"), as_bytes, inline, stored)
    assert filled.messages[2].content == (ToolResult("c1", (Text("t"), as_bytes)),)
    plain = Request("m", (Message("user", (inline, stored)),))
    assert media.with_files(plain, {}) == (plain, ())


class Files:
    def __init__(self, **found: MediaFile | WebFailed) -> None:
        self._found = found

    async def media(self, url: str) -> MediaFile:
        found = self._found[url.rpartition("/")[2]]
        if isinstance(found, WebFailed):
            raise found
        return found


def download(kind: Any, found: MediaFile | WebFailed, already: int = 0) -> Any:
    request = Request("m", (Message("user", (Media(kind, "", url="http://h/a"),)),))
    held: list[int] = []
    exchange: Any = SimpleNamespace(
        files={str(number): None for number in range(already)},
        held=SimpleNamespace(take=held.append),
        place=lambda path, asked: f"$.client{path.removeprefix('$')}",
    )
    with pytest.raises(media.NeedsMedia) as needed:
        media.with_files(request, {})
    asyncio.run(media.MediaDownloads(lambda _: Files(a=found)).download(exchange, needed.value))
    return exchange.files["http://h/a", kind], held


PLACE = "client.messages[0].content[0].url"


def test_a_download_is_counted_as_memory_in_its_encoded_size() -> None:
    file, held = download("image", MediaFile("http://h/a", "text/html", PNG))
    assert (file.mime, file.data, held) == ("image/png", PNG, [16])
    assert download("image", MediaFile("http://h/a", "", PNG), already=31)[0].mime == "image/png"


@rows(
    ("kind", "found", "already", "code", "message"),
    [
        ("image", WebFailed("unavailable", "it is gone"), 0, "invalid_value", f"{PLACE}: it is gone"),
        ("image", MediaFile("", "text/html", b"<p>"), 0, "invalid_value",
         f"{PLACE}: expected the URL of image data, found text/html"),
        ("document", MediaFile("", "", b"..."), 0, "invalid_value",
         f"{PLACE}: expected the URL of document data, found an unknown type"),
        ("audio", MediaFile("", "x" * 101, b""), 0, "invalid_value",
         f"{PLACE}: expected the URL of audio data, found {'x' * 100}"),
        ("image", MediaFile("", "", PNG), 32, "unsupported", f"{PLACE}: more than 32 URLs"),
    ],
)  # fmt: skip
def test_a_download_that_cannot_be_used_names_its_place(
    kind: str, found: Any, already: int, code: str, message: str
) -> None:
    from wireglot.gateway.errors import RequestError

    with pytest.raises(RequestError) as refused:
        download(kind, found, already)
    error = refused.value.error
    assert (error.status, error.code, error.param) == (400, code, PLACE)
    assert error.message.startswith(message)


@rows(
    ("kind", "mime", "fits"),
    [
        ("document", "application/pdf", True),
        ("document", "text/csv", True),
        ("document", "application/json", True),
        ("document", "application/xml", True),
        ("document", "image/png", False),
        ("audio", "audio/wav", True),
        ("video", "video/mp4", True),
        ("image", "image/svg+xml", True),
    ],
)
def test_which_types_a_part_may_be(kind: str, mime: str, fits: bool) -> None:
    from wireglot.gateway.errors import RequestError

    if fits:
        assert download(kind, MediaFile("", mime, b"."))[0].mime == mime
    else:
        with pytest.raises(RequestError):
            download(kind, MediaFile("", mime, b"."))


# Refused reasoning.

SIGNED = Signature("sig", Origin("anthropic", "m", account="acc-1"))


def test_only_state_that_a_minter_signed_is_left_out() -> None:
    thought, plain = Reasoning("t", signature=SIGNED), Reasoning("p")
    hidden, carried = Reasoning("", redacted=True), Reasoning("c", minter=Origin("a", "b", "c"))
    call = ToolCall("c1", "f", "{}", signature=SIGNED)
    own_extra = Extra("nobody-registered-it", {"a": 1})
    text = Text("x", extra=own_extra)
    request = Request(
        "m",
        (
            said("hi"),
            Message("assistant", (thought, plain, hidden, carried, call, text)),
            Message("assistant", (thought,)),
            Message("assistant", ()),
        ),
    )
    stripped = refusals.without_opaque_state(request, "openai-chat")
    kept = ToolCall("c1", "f", "{}")
    assert stripped.request.messages == (
        said("hi"),
        Message("assistant", (plain, kept, text)),
        Message("assistant", ()),
    )
    assert [(loss.path, loss.feature) for loss in stripped.losses] == [
        ("$.messages[1].content[0]", "reasoning.text"),
        ("$.messages[1].content[2]", "reasoning.redacted"),
        ("$.messages[1].content[3]", "reasoning.text"),
        ("$.messages[1].content[4].signature", "reasoning.signature"),
        ("$.messages[2].content[0]", "reasoning.text"),
    ]
    assert refusals.helps(request, "openai-chat", passed_raw=False)
    assert refusals.minters(request) == {"acc-1"}
    assert refusals.minters(stripped.request) == set()


def test_without_state_only_a_bypass_of_a_forwarded_request_can_help() -> None:
    called = Request("m", (Message("assistant", (ToolCall("c1", "f", "{}"),)),))
    assert refusals.helps(called, "gemini", passed_raw=True)
    assert not refusals.helps(called, "gemini", passed_raw=False)
    assert not refusals.helps(called, "openai-chat", passed_raw=True)
    assert not refusals.helps(Request("m", (said("hi"),)), "gemini", passed_raw=True)


def test_an_upstream_that_thinks_only_with_state_is_asked_not_to_think_in_a_loop() -> None:
    loop = (
        said("hi"),
        Message("assistant", (ToolCall("c1", "f", "{}"),)),
        Message("user", (ToolResult("c1", (Text("r"),)),)),
    )
    thinking = Request("m", loop, thinking=Thinking(budget=2000))
    assert refusals.without_opaque_state(thinking, "anthropic").request.thinking != thinking.thinking
    assert refusals.without_opaque_state(thinking, "openai-chat").request == thinking
    calm = Request("m", loop)
    assert refusals.without_opaque_state(calm, "anthropic").request == calm


@rows(
    ("blame", "kind", "status", "wait", "internal"),
    [
        ("upstream", "server", 500, None, True),
        ("upstream", "server", 501, None, True),
        ("upstream", "server", 502, None, False),
        ("upstream", "server", 500, 1.0, False),
        ("upstream", "overloaded", 500, None, False),
        ("timeout", "server", 500, None, False),
    ],
)
def test_which_errors_may_be_about_the_request(
    blame: Any, kind: Any, status: int, wait: float | None, internal: bool
) -> None:
    failed = AttemptFailed(ApiError(kind, "boom", status=status), blame, wait=wait)
    assert refusals.is_internal(failed) is internal


def test_errors_are_the_same_by_status_type_code_and_words() -> None:
    def failed(**more: Any) -> AttemptFailed:
        fields = {"status": 500, "type": "t", "code": "c", "message": "boom", **more}
        return AttemptFailed(ApiError("server", fields.pop("message"), **fields), "upstream")

    assert refusals.is_same(failed(), failed())
    for other in ({"status": 501}, {"type": "u"}, {"code": "d"}, {"message": "bang"}):
        assert not refusals.is_same(failed(), failed(**other))


# Explanations.


@rows(
    ("base", "host"),
    [
        ("https://h.example/v1", "h.example"),
        ("https://h.example:8443/v1", "h.example:8443"),
        ("nonsense", "an unknown host"),
    ],
)
def test_the_host_of_a_failure_is_named(base: str, host: str) -> None:
    failed = explained(AttemptFailed(ApiError("server", "oops"), "upstream"), TARGET, base)
    assert failed.fix == f"called at {host}"
    assert (
        explained(AttemptFailed(ApiError("server", "x"), "upstream"), TARGET).fix == "called at 127.0.0.1:1"
    )


@rows(
    ("message", "shown"),
    [
        ("key sk-ab***yz is bad", "key [redacted] is bad"),
        ("key sk-ab**yz is bad", "key sk-ab**yz is bad"),
        ("x" * 400, None),
    ],
)
def test_a_key_that_a_provider_repeats_is_hidden(message: str, shown: str | None) -> None:
    found = own_words(ApiError("auth", message))
    assert found == shown if shown is not None else len(found) <= 301


@rows(
    ("kind", "code", "said"),
    [
        ("auth", "", "mine does not accept this gateway's key"),
        ("permission", "", "mine does not permit this with the gateway's key"),
        ("auth", SIGN_IN_FAILED, "this gateway cannot sign in to mine"),
    ],
)
def test_why_a_key_was_rejected(kind: Any, code: str, said: str) -> None:
    failed = explained(AttemptFailed(ApiError(kind, "", code=code), "credential"), TARGET)
    assert failed.error.message.startswith(f"upstream credential rejected: {said}: its operator")
    assert (failed.blame, failed.error.kind, failed.error.status) == ("credential", "server", 502)


def test_the_sources_of_all_keys_are_named_once() -> None:
    keys = tuple(Credential(Secret("k", source), source) for source in ("env:A", "config", "file:B", "env:A"))
    (target,) = route(settings(Provider("kimi", provider("kimi"), keys)), "kimi-k3", "anthropic")
    failed = explained(AttemptFailed(ApiError("billing", "no credit"), "quota"), target)
    assert failed.fix == "key from A, file:B ([providers.kimi], api_key); called at api.moonshot.ai"
    assert failed.error.message == "kimi: no credit (the operator of this gateway must check the account)"


def test_an_open_breaker_reports_its_wait() -> None:
    failed = resting("mine/m", 4.5)
    assert (failed.blame, failed.wait, failed.reported_wait) == ("timeout", 4.5, 4.5)
    error = failed.error
    assert (error.kind, error.status, error.code, error.retry_after) == (
        "server",
        503,
        "upstream_unavailable",
        4.5,
    )


# Questions about keys.


def test_a_key_is_checked_by_the_list_of_models_and_then_by_a_request_that_is_refused() -> None:
    asked = own("mine", "openai-chat", ModelSpec("gone", retired=True), ModelSpec("a-*"), ModelSpec("real"))
    questions = [(sent.method, sent.url, sent.body) for _, sent in key_questions(asked, None)]
    assert questions == [
        ("GET", "http://127.0.0.1:1/models", b""),
        ("POST", "http://127.0.0.1:1/chat/completions", b"{}"),
    ]
    gemini = own("mine", "gemini", ModelSpec("gone", retired=True), ModelSpec("a-*"), ModelSpec("real"))
    assert [sent.url for _, sent in key_questions(gemini, None)][-1].endswith("/models/real:generateContent")
    nameless = own("mine", "gemini")
    assert [sent.url for _, sent in key_questions(nameless, None)][-1].endswith(
        "/models/wireglot-key-check:generateContent"
    )


# Logins.


def test_a_login_is_used_as_a_token_and_obtained_once() -> None:
    grants: list[Any] = []
    notes: list[Any] = []
    hidden: list[Any] = []

    def obtain(login: Any) -> Grant:
        grants.append(login)
        return Grant("token-1", 3600.0, headers=(("x-project", "p"),))

    login: Any = "login"
    credential = Credential(Secret("", "login"), "acc", login=login)
    made = SignIns(lambda *note: notes.append(note), lambda *secret: hidden.append(secret), obtain)

    async def ready() -> Credential:
        return await made.ready(credential)

    async def both() -> tuple[Credential, Credential]:
        return await ready(), await ready()

    first, second = asyncio.run(both())
    assert first is second
    assert (first.secret.value, first.token, first.headers, first.account) == (
        "token-1",
        True,
        (("x-project", "p"),),
        "acc",
    )
    assert (grants, hidden, notes) == (["login"], [("acc", "token-1")], [("acc", None)])
    assert not made.renews(None)
    assert not made.renews(Credential(Secret("x"), "unknown"))


def test_a_login_that_fails_is_a_failed_credential_with_its_fix() -> None:
    notes: list[Any] = []
    failure = LoginFailed("no such user", "run gcloud auth login")

    def obtain(login: Any) -> Grant:
        raise failure

    login: Any = "login"
    made = SignIns(lambda *note: notes.append(note), None, obtain)
    with pytest.raises(AttemptFailed) as failed:
        asyncio.run(made.ready(Credential(Secret(""), "acc", login=login)))
    error = failed.value.error
    assert (error.kind, error.code, error.message) == ("auth", SIGN_IN_FAILED, "no such user")
    assert (failed.value.blame, failed.value.fix) == ("credential", "run gcloud auth login")
    assert notes == [("acc", failure)]


# Web tools.


def test_settings_of_web_tools_reach_them() -> None:
    search = SearchSettings(
        backend="brave", url="https://s/", key=Secret("k"), engine="e", price=0.5, max_results=3, timeout=4.0,
        allowed_domains=("a",), blocked_domains=("b",), proxy="http://p",
    )  # fmt: skip
    account = web_tools.search_account(search)
    for name in (
        "url",
        "engine",
        "price",
        "max_results",
        "timeout",
        "allowed_domains",
        "blocked_domains",
        "proxy",
    ):
        assert getattr(account, name) == getattr(search, name), name
    assert account.key == "k"
    fetch = FetchSettings(
        max_bytes=1, max_tokens=2, timeout=3.0, allowed_domains=("a",), blocked_domains=("b",), private_hosts=("c",),
        proxy="http://p",
    )  # fmt: skip
    policy = web_tools.fetch_policy(fetch)
    for name in (
        "max_bytes",
        "max_tokens",
        "timeout",
        "allowed_domains",
        "blocked_domains",
        "private_hosts",
        "proxy",
    ):
        assert getattr(policy, name) == getattr(fetch, name), name


def test_backends_of_the_last_four_configurations_are_kept() -> None:
    kept: dict[int, int] = {}
    for number in range(6):
        web_tools._keep(kept, number, number)
        assert list(kept) == list(range(max(0, number - 3), number + 1))


def test_a_known_provider_is_asked_with_its_own_key() -> None:
    asked = catalogued("anthropic", "one")
    _, sent = next(iter(key_questions(asked, asked.credentials[0])))
    assert dict(sent.headers)["x-api-key"] == "one"
