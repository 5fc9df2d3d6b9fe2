"""What commands print, line by line: traces, models, the demo, checks of a gateway, stores."""

from __future__ import annotations

import argparse
import asyncio
import io
import json
import sys
import time
from types import SimpleNamespace
from typing import Any

import pytest

from tests.core.traces.conversations import conversation
from tests.tiers import rows
from tests.traces.recorded import recorded
from wireglot.cli import demo, keys, models, smoke, store, trace
from wireglot.cli.argument_parser import ArgumentParser, near, positive
from wireglot.cli.argument_parser import said as said_name
from wireglot.cli.remote_gateway import GatewayAddress, GatewayAnswer, GatewayUnreachable
from wireglot.cli.smoke import CheckFailed, SmokeResult, SmokeTarget
from wireglot.cli.terminal import Failed, Paint, Unusable
from wireglot.cli.trace_view import Shown
from wireglot_core.ir.content import Text, ToolCall
from wireglot_core.providers.limits import Limits
from wireglot_core.traces.file import write_trace
from wireglot_core.traces.trace import (
    Attempt,
    Row,
    Tokens,
    Trace,
    TraceCounted,
    TracedLoss,
    TraceFrame,
    TraceMessage,
    TraceStep,
)

# --- a trace


def row(**fields: Any) -> Row:
    given: dict[str, Any] = {
        "id": "req_1",
        "at": 0.0,
        "state": "done",
        "status": 200,
        "path": "/v1/messages",
        "dialect": "anthropic",
        "asked": "a",
        "provider": "p",
        "model": "m",
        "upstream_dialect": "gemini",
        "total_ms": 1500.0,
        "first_ms": 20.0,
        "tokens": Tokens(input=1234, output=5),
        "cost": 1_500_000,
    }
    return Row(**{**given, **fields})


def loss(grade: str, feature: str = "image", **fields: Any) -> TracedLoss:
    given = {"action": "dropped", "document": "request", "path": "$.a", "detail": "why"}
    return TracedLoss(feature=feature, grade=grade, **{**given, **fields})


def shown(full: bool = False, **fields: Any) -> list[str]:
    given: dict[str, Any] = {
        "row": row(),
        "request": TraceMessage(url="/v1/messages", body='{"a": 1}', bytes=8),
        "answer": TraceMessage(status=200, body='{"b": 2}', bytes=1),
        "attempts": [],
        "losses": [],
        "steps": [],
        "notes": [],
    }
    return Shown(io.StringIO(), full=full).trace(Trace(**{**given, **fields}))


def test_a_trace_is_shown_from_its_head_to_its_notes():
    attempt = Attempt(
        provider="p",
        model="m",
        dialect="gemini",
        request=TraceMessage(url="https://h/x", body='{"c": 3}', bytes=8),
        answer=TraceMessage(status=200, body="no json", bytes=7, truncated=True),
        error="it broke",
        summary=[TraceCounted("messages", 3, 4), TraceCounted("serious losses", 1, 0)],
    )
    steps = [TraceStep("queue", 0.0, 1.0), TraceStep("store", 1.0, 3.0), TraceStep("queue", 3.0, 4.0)]
    lines = shown(attempts=[attempt], losses=[loss("serious")], steps=steps, notes=["a note"])
    at = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(0))
    assert lines == [
        "req_1  /v1/messages 200 done 1.5s",
        "  client   unknown speaks anthropic, requests a",
        "  upstream p/m speaks gemini, translated",
        f"  time     {at}, first byte after 20ms",
        "  tokens   1,234 in, 5 out, cost 1.500000",
        "  became   messages 3 -> 4, 1 serious loss",
        "",
        "1 loss",
        "  serious  dropped image $.a",
        "           why",
        "",
        "client request  anthropic, /v1/messages, 8 bytes",
        '  {"a": 1}',
        "",
        "upstream request  gemini, https://h/x, 8 bytes",
        '  {"c": 3}',
        "  error    it broke",
        "",
        "upstream answer  gemini, 200, 7 bytes, only the beginning was recorded",
        "  no json",
        "",
        "client answer  anthropic, 200, 1 byte",
        '  {"b": 2}',
        "",
        "  times    queue 2ms, store 2ms",
        "  note     a note",
    ]


def test_the_head_of_a_trace_says_what_is_known():
    bare = row(model="", first_ms=None, tokens=None, error="no\nway", client="codex", status=0, total_ms=None)
    assert shown(row=bare)[:4] == [
        "req_1  /v1/messages done",
        "  client   codex speaks anthropic, requests a",
        f"  time     {time.strftime('%Y-%m-%d %H:%M:%S', time.localtime(0))}",
        "  error    no way",
    ]
    assert "  upstream p/m speaks gemini, pass-through" in shown(row=row(passthrough=True))
    assert "  tokens   1,234 in, 5 out" in shown(row=row(cost=None))


def test_of_many_losses_and_lines_some_are_shown_unless_all_are_asked_for():
    many = [loss("harmless", f"f{number:02d}", detail="") for number in range(13)] + [loss("serious")]
    lines = shown(losses=many)
    assert "14 losses" in lines
    assert lines[lines.index("14 losses") + 1].startswith("  serious  dropped image")
    assert "  … 2 more losses: --full" in lines
    assert sum(line.startswith("  harmless") for line in lines) == 11
    full = shown(full=True, losses=many)
    assert sum(line.startswith("  harmless") for line in full) == 13
    body = json.dumps({f"key_{number}": ["x" * 60, number] for number in range(20)})
    folded = shown(request=TraceMessage(body=body, bytes=len(body)))
    start = folded.index(next(line for line in folded if line.startswith("client request"))) + 1
    part = folded[start : folded.index("", start)]
    assert len(part) == 14
    assert part[11] == "  … 9 more lines: --full"
    text = "\n".join(f"line {number}" for number in range(16))
    cut = shown(request=TraceMessage(body=text, bytes=len(text)))
    assert "  line 13" in cut
    assert "  line 14" not in cut
    assert "  … 2 more lines: --full" in cut


def test_the_pieces_of_a_stream_are_shown_with_their_times():
    frames = [TraceFrame(1.5, "data: 1\n\n"), TraceFrame(20.0, "data: 2\n\ndata: 3\n\n", [0, 1])]
    message = TraceMessage(frames=frames, bytes=5, folded='{"x": 1}', stops="it broke off")
    lines = shown(answer=message)
    assert lines[-3:] == ["client answer  anthropic, 5 bytes, 2 pieces", '  {"x": 1}', "  it broke off"]
    full = shown(full=True, answer=message)
    assert full[-5:] == [
        "client answer  anthropic, 5 bytes, 2 pieces",
        "       1.5 ms  1        data: 1",
        "      20.0 ms  2 < 1-2  data: 2",
        "                        data: 3",
        "  it broke off",
    ]


def test_several_attempts_are_numbered():
    tries = [
        Attempt(provider="p", model="m", dialect="gemini", request=TraceMessage(body="{}", bytes=2))
        for _ in range(2)
    ]
    heads = [line for line in shown(attempts=tries) if line.startswith("upstream")]
    assert heads == [f"upstream, attempt {number} request  gemini, 2 bytes" for number in (1, 2)]


# --- models


@rows("number, text", [
    (0, "-"), (999, "999"), (1000, "1k"), (131_072, "131.1k"), (1_000_000, "1M"), (1_048_576, "1.05M"),
])  # fmt: skip
def test_tokens_are_short(number, text):
    assert models._tokens(number) == text


def price(given: int, made: int) -> Any:
    return SimpleNamespace(input=given, output=made)


def test_a_model_is_a_row_and_a_document():
    one = models.ModelRow("p/m\n", True, 1000, 0, ("think", "image"), price(1_250_000, 10_000_000))
    assert one.cells() == ("p/m ", "1k", "-", "think img", "1.25/10")
    assert one.document() == {
        "name": "p/m\n",
        "on": True,
        "context": 1000,
        "output": None,
        "takes": ["think", "image"],
        "price": {"input": 1.25, "output": 10.0},
    }
    off = models.ModelRow("p/n", False, 0, 5, (), None, "set K")
    assert off.cells() == ("p/n", "-", "5", "-", "-")
    assert (off.document()["price"], off.document()["off_because"]) == (None, "set K")
    for limits, takes in (
        (Limits(thinking="none", media=()), []),
        (
            Limits(thinking="budget", media=("image", "document", "audio")),
            ["think", "image", "document", "audio"],
        ),
    ):
        assert list(models._takes(limits)) == takes


def test_models_are_a_table_of_equal_columns(capsys):
    on = models.ModelRow("p/long-name", True, 1000, 20, (), None)
    off = models.ModelRow("p/m", False, 0, 0, (), None, "set K")
    models._print_table([on, off])
    assert capsys.readouterr().out == (
        "model        context  output  takes  price in/out\n"
        "p/long-name  1k       20      -      -\n"
        "p/m          -        -       -      -  (off)\n"
    )
    assert models._nothing("p/m", [on, off]) == ("no available model matches p/m: p/m is off, set K")
    assert models._nothing("long-nam", [on]) == (
        "no available model matches long-nam: did you mean long-name?"
    )
    assert models._nothing("zzz", [on]) == "no available model matches zzz"


def test_why_a_provider_is_off():
    def spec(**fields: Any) -> Any:
        return SimpleNamespace(**{"name": "p", "auth": "bearer", "api_key_env": ("A", "B"), **fields})

    assert models._why_off(spec()) == "set A or B"
    assert models._why_off(spec(auth="none")) == "add [providers.p] to the configuration"
    assert models._why_off(spec(api_key_env=())) == "add [providers.p] to the configuration"


# --- the demo


def example(**fields: Any) -> demo.Example:
    return demo.Example(
        **{"title": "T", "path": "/p", "upstream": "u", "body": {}, "text": ("a", 0), **fields}
    )


@rows("status, body, fine, text", [
    (200, b'{"a": ["hi\\n"]}', True, "hi "), (500, b'{"a": ["hi"]}', False, "hi"), (200, b'{"a": [""]}', False, ""),
    (200, b'{"a": [5]}', False, "5"), (200, b"{}", False, "{}"), (200, b"no", False, "no"), (200, b'{"a": 5}', False, '{"a": 5}'),
])  # fmt: skip
def test_an_answer_of_the_demo_is_judged_and_shown(status, body, fine, text, monkeypatch, capsys):
    sent: list[Any] = []

    def send(*given: Any) -> tuple[int, dict[str, str], bytes]:
        sent.append(given)
        return status, {"x-wireglot-route": "r"}, body

    monkeypatch.setattr(demo, "_send", send)
    assert demo._asked("h", 1, example(), Paint(sys.stdout)) is fine
    lines = capsys.readouterr().out.split("\n")
    assert lines[:2] == ["T  ->  u", "  POST /p"]
    assert lines[2].startswith(f"  {status}  ")
    assert lines[2].endswith(" ms  route r  losses none")
    assert lines[3] == f"  {text}"
    assert sent == [("h", 1, "POST", "/p", b"{}")]


@rows("status, body, fine", [
    (200, b'event: a\ndata: "tool_use"\n\nevent: message_stop\ndata: {}\n\n', True),
    (500, b'event: a\ndata: "tool_use"\n\nevent: message_stop\ndata: {}\n\n', False),
    (200, b"event: a\ndata: 1\n\nevent: message_stop\ndata: {}\n\n", False),
    (200, b'event: message_stop\ndata: {}\n\nevent: a\ndata: "tool_use"\n\n', False),
    (200, b"", False),
])  # fmt: skip
def test_a_stream_of_the_demo_must_call_its_tool_and_end(status, body, fine, monkeypatch, capsys):
    monkeypatch.setattr(demo, "_send", lambda *_: (status, {}, body))
    assert demo._streamed("h", 1, Paint(sys.stdout)) is fine
    assert f"  POST /v1/messages  (stream, one tool)  {status}\n" in capsys.readouterr().out


@rows("turns, items, fine", [
    ((200, 200), b'{"items": [{"type": "a"}, {"type": "b"}, {"text": "31 degrees"}]}', True),
    ((200, 500), b'{"items": [{"type": "a"}, {"type": "b"}, {"text": "31 degrees"}]}', False),
    ((200, 200), b'{"items": [{"type": "a"}, {"text": "31 degrees"}]}', False),
    ((200, 200), b'{"items": [{"type": "a"}, {"type": "b"}, {"text": "30 degrees"}]}', False),
])  # fmt: skip
def test_a_held_conversation_goes_on_in_another_dialect(turns, items, fine, monkeypatch, capsys):
    answers: list[Any] = [*((status, {}, b"{}") for status in turns), (200, {}, items)]
    asked: list[tuple[str, str]] = []

    def send(host: str, port: int, method: str, path: str, body: bytes | None) -> Any:
        asked.append((method, path))
        assert body is None or json.loads(body)["conversation"] == "demo"
        return answers.pop(0)

    monkeypatch.setattr(demo, "_send", send)
    assert demo._held("h", 1, Paint(sys.stdout)) is fine
    assert asked == [("POST", "/v1/chat/completions"), ("POST", "/v1/gemini"), ("GET", "/v1/sessions/demo")]
    assert capsys.readouterr().out.count("\n") == 4


def test_what_the_demo_shows_is_cut_at_96_characters():
    assert demo._short("x" * 96, 0) == "x" * 96
    assert demo._short("x" * 97, 0) == "x" * 95 + "…"


# --- checks of a gateway

TARGET = SmokeTarget(GatewayAddress("http", "h", 1), "k")


def answering(monkeypatch: pytest.MonkeyPatch, *answers: GatewayAnswer | Exception) -> list[Any]:
    left, asked = list(answers), []

    def ask(address: GatewayAddress, method: str, path: str, **given: Any) -> GatewayAnswer:
        asked.append((method, path, given))
        answer = left.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(smoke, "ask", ask)
    return asked


def said(status: int, body: str, **headers: str) -> GatewayAnswer:
    return GatewayAnswer(
        status, {name.replace("_", "-"): value for name, value in headers.items()}, body.encode()
    )


LIST = '{"data": [{"id": "p/a"}, 5, {"id": "q/b"}, {"id": "kimi/k"}]}'
NO = '{"error": {"message": "no", "type": "x"}}'


def test_the_model_that_is_checked_is_one_that_the_gateway_has(monkeypatch):
    for given, answers, outcome in (
        ((None, None), [said(200, LIST)], "p/a"),
        (("q", None), [said(200, LIST)], "q/b"),
        (("q", "m"), [said(200, LIST), said(200, "{}")], "q/m"),
        ((None, "m"), [said(200, LIST), said(200, "{}")], "m"),
    ):
        answering(monkeypatch, *answers)
        assert smoke._model(TARGET, *given) == outcome
    for given, answers, words in (
        (("z", None), [said(200, LIST)], "the gateway lists no model of provider z: name one with --model"),
        (("kim", None), [said(200, LIST)], "of provider kim: did you mean kimi?"),
        (
            (None, None),
            [said(200, '{"data": []}')],
            "the gateway lists no models: name one with --model",
        ),
        ((None, "p/aa"), [said(200, LIST), said(404, NO)], "no: did you mean p/a?"),
        (
            (None, "zzzz"),
            [said(200, LIST), said(404, NO)],
            "no: `wireglot models` lists the available models",
        ),
    ):
        answering(monkeypatch, *answers)
        with pytest.raises(Unusable, match=words.replace("?", r"\?")):
            smoke._model(TARGET, *given)
    for key, kind, words in (
        ("", Unusable, "requires a client key"),
        ("k", CheckFailed, "the client key was rejected"),
    ):
        answering(monkeypatch, said(401, "{}"))
        with pytest.raises(kind, match=words):
            smoke.listed_models(SmokeTarget(TARGET.address, key))
    answering(monkeypatch, said(200, "{}"))
    with pytest.raises(CheckFailed, match="not from a Wireglot gateway"):
        smoke.listed_models(TARGET)


def test_checks_are_asked_at_every_endpoint(monkeypatch):
    asked = answering(monkeypatch, *[GatewayUnreachable("x")] * 50)
    found = list(smoke.checks(TARGET, "a model"))
    assert len(found) == 4 + 1 + 4 + 8 * 4 + 2
    assert {each.fault for each in found} == {"no answer: x"}
    assert [(each.endpoint, each.check) for each in found[:6]] == [
        ("GET /v1/models", "models, anthropic"),
        ("GET /v1/models", "models, openai-chat"),
        ("GET /v1beta/models", "models, gemini"),
        ("GET /api/tags", "models, ollama"),
        ("POST /api/show", "context unknown"),
        ("POST /v1/messages/count_tokens", "count"),
    ]
    assert [each.check for each in found[9:13]] == ["sync", "stream", "tools", "tools, stream"]
    paths = [path for _, path, _ in asked]
    assert paths[:9] == [
        "/v1/models?limit=1000",
        "/v1/models",
        "/v1beta/models?pageSize=1000",
        "/api/tags",
        "/api/show",
        "/v1/messages/count_tokens",
        "/v1/responses/input_tokens",
        "/v1beta/models/a%20model:countTokens",
        "/v1internal:countTokens",
    ]
    assert paths[9:] == [
        *["/v1/messages"] * 4,
        *["/v1/chat/completions"] * 4,
        *["/v1/responses"] * 4,
        *[
            "/v1beta/models/a%20model:generateContent",
            "/v1beta/models/a%20model:streamGenerateContent?alt=sse",
        ]
        * 2,
        *["/v1/interactions"] * 4,
        *["/v1internal:generateContent", "/v1internal:streamGenerateContent?alt=sse"] * 2,
        *["/v1/gemini"] * 4,
        *["/api/chat"] * 4,
        *["/api/generate"] * 2,
    ]
    by_version = [given["headers"] == {"anthropic-version": "2023-06-01"} for _, _, given in asked]
    assert [at for at, each in enumerate(by_version) if each] == [0, 5, 9, 10, 11, 12]
    assert {given["seconds"] for _, _, given in asked} == {120.0}
    assert {given["key"] for _, _, given in asked} == {"k"}
    assert asked[8][2]["body"]["request"]["model"] == "models/a model"
    assert asked[6][2]["body"] == {"model": "a model", "input": "Say hello in one short sentence."}


@rows("body, status, words", [
    ('{"data": []}', 200, "the list is empty"), ('{"data": 5}', 200, "the list is empty"),
    ("no", 200, "status 200, and no JSON"), (NO, 400, "status 400: no"), ("[1]", 200, "expected a JSON object"),
])  # fmt: skip
def test_a_list_of_models_must_be_one(body, status, words, monkeypatch):
    answering(monkeypatch, said(status, body))
    with pytest.raises(CheckFailed, match=words):
        smoke._Models(TARGET, "openai-chat", "/v1/models", "data")()


@rows("tokens, fine", [("1", True), ("0", False), ("true", False), ('"1"', False), ("null", False)])
def test_a_count_must_be_a_number(tokens, fine, monkeypatch):
    answering(monkeypatch, said(200, f'{{"input_tokens": {tokens}}}'))
    check = smoke._Count(TARGET, "anthropic", "m", "/x", "input_tokens")
    if fine:
        check()
    else:
        with pytest.raises(CheckFailed, match="expected a count in input_tokens"):
            check()


def test_an_answer_must_have_a_text_or_a_call():
    def judge(tools: bool, *content: Any) -> str:
        check = smoke._Generate(TARGET, "anthropic", "m", "/x", streams=False, tools=tools)
        try:
            check._judge(content)
        except CheckFailed as failed:
            return str(failed)
        return ""

    assert judge(False, Text("hi")) == ""
    assert judge(False, Text(" ")) == judge(False) == "the answer has no text"
    assert judge(True, Text("x"), ToolCall("1", "get_weather", '{"city": "Paris"}')) == ""
    assert judge(True, Text("hi")) == "the model did not call the tool"
    assert judge(True, ToolCall("1", "get_weather", "{}")) == "the model called get_weather with {}"
    assert judge(True, ToolCall("1", "other", '{"city": 1}')) == 'the model called other with {"city": 1}'


@rows("kind, words", [
    ("text/event-stream; x", "the stream failed"), ("application/json", "expected a stream, got application/json"),
    ("", "expected a stream, got no content type"),
])  # fmt: skip
def test_a_stream_must_be_one(kind, words, monkeypatch):
    answering(monkeypatch, said(200, "", content_type=kind))
    with pytest.raises(CheckFailed, match=words):
        smoke._Generate(TARGET, "anthropic", "m", "/x", streams=True, tools=False)()


def test_a_check_is_one_line(capsys, monkeypatch):
    paint = Paint(io.StringIO())
    passed = smoke._line(SmokeResult("POST /x", "sync", 0.1234, route="p/m", losses="image"), paint)
    assert passed == f"{'POST /x':<50} {'sync':<20} PASS {'123':>7}  {'p/m':<28} image"
    failed = smoke._line(SmokeResult("POST /x", "sync", 0.1, "y\n" * 200), paint)
    assert failed == f"{'POST /x':<50} {'sync':<20} FAIL {'100':>7}  {('y ' * 200)[:200]}"
    found = [SmokeResult("a", "b"), SmokeResult("a", "b", fault="x")]
    monkeypatch.setattr(smoke, "_model", lambda *_: "m")
    monkeypatch.setattr(smoke, "checks", lambda *_: found)
    assert smoke.smoke(TARGET, None, None) == 1
    out = capsys.readouterr().out
    assert out.startswith("http://h:1, model m\n\nendpoint")
    assert out.endswith("\n\n1 check passed, 1 failed\n")
    monkeypatch.setattr(smoke, "checks", lambda *_: [found[1]] * 101)
    assert smoke.smoke(TARGET, None, None) == 100

    def refuse(*_: Any) -> str:
        raise CheckFailed("no\nway")

    monkeypatch.setattr(smoke, "_model", refuse)
    with pytest.raises(Failed, match="http://h:1: no way"):
        smoke.smoke(TARGET, None, None)


# --- stores


@rows("number, text", [
    (0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (1536, "1.5 KiB"), (2**20, "1.0 MiB"), (2**30, "1.0 GiB"),
    (2**40, "1.0 TiB"), (2**50, "1024.0 TiB"),
])  # fmt: skip
def test_sizes_have_units(number, text):
    assert store._size(number) == text


def test_what_a_store_holds_and_what_was_removed(capsys):
    kind = SimpleNamespace(count=1234, bytes=2048)
    bare = SimpleNamespace(count=5, bytes=0)
    stats: Any = SimpleNamespace(
        engine="SQLite", version=7, size=4096, kinds={"responses": kind, "keys": bare}
    )
    store._print_stats(stats, False)
    assert capsys.readouterr().out == (
        "SQLite, schema 7, 4.0 KiB on disk\n  keys                5\n  responses       1,234     2.0 KiB\n"
    )
    store._print_stats(SimpleNamespace(engine="X", version=1, size=0, kinds={}), False)  # type: ignore[arg-type]  # all that is looked at
    store._print_removed("me", {"b": 1000, "a": 2, "c": 0})
    store._print_removed("me", {"c": 0})
    assert capsys.readouterr().out == "X, schema 1\nremoved 2 a, 1,000 b\nno data of 'me'\n"


# --- what was perhaps meant


@rows("name, meant", [
    ("rnu", "run"), ("sevre", "serve"), ("--pot", "--port"), ("zzz", ""), ("sing", ""), ("r", ""), ("", ""),
])  # fmt: skip
def test_a_name_that_is_nearly_right_is_recognized(name, meant):
    assert near(name, ["run", "serve", "--port", "in", "x"]) == meant


def test_a_name_that_is_not_known_is_shown_unless_it_looks_like_a_key():
    assert said_name("rnu", ["run"]) == "rnu: did you mean run?"
    assert said_name("zzz\n", ["run"]) == "zzz "
    for key in (
        "sk-x",
        "wg-x",
        "wg_x",
        "AIzax",
        "gsk_x",
        "xoxb",
        "ghp_x",
        "gho_x",
        "ghu_x",
        "ghs_x",
        "ghr_x",
        "eyJx",
    ):
        assert said_name(key, []) == f"an argument of {len(key)} characters"
    assert said_name("Bearer x", []) == "an argument of 8 characters"


@rows("text, number", [("1", 1), ("007", 7), ("999999999", 999_999_999)])
def test_a_positive_number_is_one(text, number):
    assert positive(text) == number


@rows("text", ["0", "-1", "1.5", "", "x", "1000000000", " 1"])
def test_another_text_is_no_positive_number(text):
    with pytest.raises(argparse.ArgumentTypeError, match="expected an integer from 1 up, got"):
        positive(text)


def parser(**given: Any) -> ArgumentParser:
    made = ArgumentParser(prog="p", **given)
    made.add_argument("--port", type=int)
    made.add_argument("--config")
    made.add_argument("--empty", default="")
    made.add_argument("--log", choices=("text", "json"))
    made.add_argument("--only", choices=("one",))
    return made


@rows("words, complaint", [
    (["--prot", "1"], "unknown option --prot: did you mean --port?"),
    (["--zzz"], "unknown option --zzz"),
    (["--por", "1"], "unknown option --por: did you mean --port?"),
    (["x", "sk-secret"], "unexpected argument: x an argument of 9 characters"),
    (["--config", ""], "argument --config: expected a value, got nothing"),
    (["--log", "txt"], "--log: expected one of text, json, got txt: did you mean text?"),
    (["--only", "two"], "--only: expected one, got two"),
])  # fmt: skip
def test_a_wrong_command_line_is_one_line(words, complaint, capsys):
    with pytest.raises(SystemExit) as ended:
        parser().parse_args(words)
    assert ended.value.code == 2
    assert capsys.readouterr().err == f"wireglot: {complaint} (see p --help)\n"


def test_what_is_behind_two_dashes_is_another_programs(capsys):
    made = parser()
    made.takes_rest = True
    found = made.parse_args(["--port", "1", "--", "--zzz", "--", "x"])
    assert (found.port, found.rest) == (1, ["--zzz", "--", "x"])
    assert made.parse_args(["--empty", ""]).rest == []
    with pytest.raises(SystemExit):
        made.parse_args(["--zzz"])
    assert "unknown option --zzz here: put the client's own arguments after --" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        made.parse_args(["--prot=1"])
    assert "unknown option --prot: did you mean --port?" in capsys.readouterr().err


# --- keys of a gateway


def test_keys_are_changed_through_the_admin_api(monkeypatch):
    asked: list[Any] = []
    answers = [said(200, '{"data": [{"name": "a"}]}'), *[said(200, '{"name": "a"}')] * 5]

    def ask(address: GatewayAddress, method: str, path: str, **given: Any) -> GatewayAnswer:
        asked.append((method, path, given))
        return answers.pop(0)

    monkeypatch.setattr(keys, "ask", ask)
    access = keys.KeysAtGateway("http://h", "secret")

    async def work() -> None:
        assert await access.list() == [{"name": "a"}]
        await access.create("a/b", {"x": 1})
        await access.update("a/b", {"x": 2})
        await access.revoke("a/b")
        await access.rotate("a/b", 60)
        await access.delete("a/b")

    asyncio.run(work())
    assert [(method, path, given["body"]) for method, path, given in asked] == [
        ("GET", "/v1/admin/keys", None),
        ("POST", "/v1/admin/keys", {"name": "a/b", "x": 1}),
        ("PATCH", "/v1/admin/keys/a%2Fb", {"x": 2}),
        ("DELETE", "/v1/admin/keys/a%2Fb", None),
        ("POST", "/v1/admin/keys/a%2Fb/rotate", {"overlap": 60}),
        ("POST", "/v1/admin/keys/a%2Fb/delete", None),
    ]
    assert {given["key"] for _, _, given in asked} == {"secret"}


@rows("status, body, words", [
    (401, "{}", "http://h rejects the admin secret in WIREGLOT_ADMIN_SECRET"),
    (400, NO, "no"),
    (200, NO, "no"),
    (200, "{}", "http://h: status 200, not from a Wireglot gateway"),
    (400, '{"data": []}', "http://h: status 400, not from a Wireglot gateway"),
    (200, '{"data": 5}', "http://h: the server is not the admin API of a Wireglot gateway"),
])  # fmt: skip
def test_what_a_gateway_says_to_a_wrong_request_is_reported(status, body, words, monkeypatch):
    monkeypatch.setattr(keys, "ask", lambda *_, **__: said(status, body))
    with pytest.raises(Failed) as caught:
        asyncio.run(keys.KeysAtGateway("http://h", "s").list())
    assert str(caught.value).startswith(words)


def test_an_exported_trace_may_be_as_large_as_the_limit(tmp_path, monkeypatch):
    data = write_trace(recorded("anthropic", "gemini", conversation("anthropic")))
    file = tmp_path / "one.wgtrace.json"
    file.write_bytes(data)
    monkeypatch.setattr(trace, "MAX_BYTES", len(data))
    assert trace.from_file(str(file)).row.dialect == "anthropic"
    file.write_text("{}")
    with pytest.raises(Unusable, match=r"one\.wgtrace\.json: .*this is no exported trace"):
        trace.from_file(str(file))


@rows("name, is_one", [
    ("x.wgtrace.json", True), ("x.json", True), ("x.gz", True), ("a/b", True), ("req_1", False), ("x.txt", False),
])  # fmt: skip
def test_a_file_is_told_from_the_id_of_an_exchange(name, is_one, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert trace.is_file(name) is is_one
    (tmp_path / "req_2").write_text("")
    assert trace.is_file("req_2")
