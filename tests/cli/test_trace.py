"""`wireglot trace` on files of exported traces."""

from __future__ import annotations

import gzip
import io
import json
import os
import re
import select
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from tests.cli.running import COMMAND, PLAIN, complaint, run
from tests.core.traces.conversations import conversation
from tests.tiers import rows
from tests.traces.recorded import recorded
from wireglot.cli import main, trace
from wireglot.cli.parser import build_parser
from wireglot.cli.trace_view import Shown, list_lines
from wireglot_core.traces.analysis import with_analysis
from wireglot_core.traces.cache_truth import CacheBreak, CacheTruth
from wireglot_core.traces.file import read_trace, write_trace
from wireglot_core.traces.trace import LossCounts, Row, State, Tokens, Trace, TraceStep


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "one.wgtrace.json"
    path.write_bytes(write_trace(marked(stream=True)))
    return path


def marked(*, stream: bool) -> Trace:
    asked = conversation("anthropic")
    asked["messages"][0]["content"][0]["cache_control"] = {"type": "ephemeral"}
    return recorded("anthropic", "gemini", asked, stream=stream)


def reported(*arguments: str | Path, status: int = 0) -> str:
    done = run("trace", *map(str, arguments))
    assert done.returncode == status, done
    return done.stdout.decode()


def test_show_has_all_four_bodies_the_losses_and_the_numbers(file: Path) -> None:
    """R-K-03, R-DE-09"""
    text = reported("show", file)
    for title in ("client request", "upstream request", "upstream answer", "client answer"):
        assert f"\n{title}  " in text
    assert "  became   system blocks 1 -> 1, messages 3 -> 3, tools 1 -> 1\n" in text
    assert "\n2 losses\n  degraded " in text
    assert "cache_marker $.messages[0].content[0].cache_control\n" in text
    assert max(map(len, text.splitlines())) <= 80
    assert "\x1b" not in text


def test_show_folds_unless_it_is_asked_not_to(file: Path) -> None:
    folded, full = reported("show", file), reported("show", file, "--full")
    assert "more lines: --full" in folded
    assert "--full" not in full
    # Events are counted from 1, as on the page.
    assert re.search(r"\nclient answer .*\n.* ms +1 < 1 +event: message_start\n", full)
    assert re.search(r" ms +\d+ < \d+ +event: content_block_", full)
    assert len(full.splitlines()) > 2 * len(folded.splitlines())


def test_show_as_json_is_the_trace_with_its_links(file: Path) -> None:
    shown = json.loads(reported("show", file, "--json"))
    assert shown["format"] == "wireglot-trace/1"
    assert shown["attempts"][0]["links"]


def test_what_a_model_or_a_client_says_moves_no_cursor(tmp_path: Path) -> None:
    trace = recorded("anthropic", "gemini", conversation("anthropic"))
    row = replace(trace.row, client="a\x1b[2J", asked="m\x1b]0;x\x07", error="e\nf")
    odd = replace(
        trace, row=row, answer=replace(trace.answer, body="\x1b[31mno JSON\x9b"), notes=["n\x1b[0m"]
    )
    path = tmp_path / "odd.json"
    path.write_bytes(write_trace(odd))
    for line in (("show",), ("show", "--full"), ("diff",)):
        text = reported(*line, path)
        assert not any(ord(letter) < 32 or 127 <= ord(letter) < 160 for letter in text.replace("\n", ""))


@pytest.mark.parametrize("action", ["diff", "show", "export"])
def test_a_damaged_file_is_refused_in_a_line(file: Path, tmp_path: Path, action: str) -> None:
    damaged = tmp_path / "damaged.json"
    whole = file.read_bytes()
    middle = whole.index(b"Lima")
    for data in (whole[:middle], whole[:middle] + b"\xff" + whole[middle + 1 :], b"\x1f\x8b" + whole, b""):
        damaged.write_bytes(data)
        done = run("trace", action, str(damaged), *(["-o", "-"] if action == "export" else []))
        assert done.returncode == 2
        assert complaint(done).startswith(f"{damaged}: expected ")


@pytest.mark.parametrize("side", ["client", "upstream"])
def test_a_linked_body_that_is_no_json_is_refused_in_a_line(
    side: str, file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = with_analysis(recorded("anthropic", "gemini", conversation("anthropic")))
    last = whole.attempts[-1]
    assert last.request is not None
    odd = replace(whole, request=replace(whole.request, body="a form"))
    if side == "upstream":
        odd = replace(whole, attempts=[replace(last, request=replace(last.request, body="a form"))])
    monkeypatch.setattr(trace, "_trace", lambda *_: odd)
    assert main(["trace", "diff", str(file)]) == 1
    assert "there are no two sides to compare: a body is not JSON" in capsys.readouterr().err


def test_diff_has_a_sign_for_what_became_of_each_part(file: Path) -> None:
    lines = reported("diff", file).splitlines()
    assert lines[0] == "  client request (anthropic)              upstream request (gemini)"
    assert "= /messages/0/content/1                   /contents/0/parts/1" in lines
    assert "- /messages/0/content/0/cache_control     /contents/0/parts/0" in lines
    assert "+ /messages/1/content/1                   /contents/1/parts/1" in lines
    assert all(len(line) <= 80 for line in lines)


def test_diff_with_another_compares_what_the_answers_say(file: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.wgtrace.json"
    other.write_bytes(write_trace(recorded("openai-chat", "gemini", conversation("openai-chat"))))
    assert reported("diff", file, other) == "both answers are the same\n"
    again = recorded("anthropic", "gemini", conversation("anthropic", "[[demo:refuse]]"))
    other.write_bytes(write_trace(again))
    text = reported("diff", file, other)
    assert text.startswith("/text\n  - ")
    found = json.loads(reported("diff", file, other, "--json"))["differences"]
    assert "/text" in [each["pointer"] for each in found]


def test_a_stream_that_broke_off_is_shown_and_compared_by_what_came(file: Path, tmp_path: Path) -> None:
    broken = recorded(
        "anthropic", "gemini", conversation("anthropic", "[[demo:text 40]] [[demo:cut]]"), stream=True
    )
    path = tmp_path / "broken.wgtrace.json"
    path.write_bytes(write_trace(broken))
    upstream, client = reported("show", path).split("\nupstream answer  ")[1].split("\nclient answer  ")
    assert '"text": "the demo model ' in upstream
    assert "  the stream stops here, before its end\n" in upstream
    assert "error" not in upstream
    assert '"text": "the demo model ' in client
    assert "  the stream stops here, with an error\n" in client
    assert "the upstream stream ended b" in client
    assert "  the stream stops here, before its end\n" in reported("show", path, "--full")
    found = json.loads(reported("diff", file, path, "--json"))["differences"]
    differ = {each["pointer"]: each["after"] for each in found}
    assert "the demo model writes" in differ["/text"]
    assert differ["/stop"] == '"the stream stops here, with an error"'
    assert "/error" in differ


def test_diff_counts_what_a_cache_gave_among_the_tokens_as_the_list_does(file: Path, tmp_path: Path) -> None:
    trace = recorded("anthropic", "gemini", conversation("anthropic"))
    document = json.loads(trace.answer.body)
    usage = {"input_tokens": 7075, "cache_read_input_tokens": 3891, "output_tokens": 5}
    body = json.dumps({**document, "usage": usage})
    path = tmp_path / "cached.wgtrace.json"
    path.write_bytes(write_trace(replace(trace, answer=replace(trace.answer, body=body))))
    found = json.loads(reported("diff", file, path, "--json"))["differences"]
    assert {each["pointer"]: each["after"] for each in found}["/tokens/input"] == "10966"


def test_a_list_says_in_words_that_a_stream_broke_or_its_client_left() -> None:
    went: list[tuple[State, int]] = [("failed", 200), ("failed", 502), ("left", 200), ("done", 200)]
    rows = [
        Row(id=f"req_{state}", at=1.0, state=state, status=status, client="c", model="m")
        for state, status in went
    ]
    head, _, *lines = list_lines(rows, io.StringIO())
    at = head.index("status")
    assert [line[at:].split()[0] for line in lines] == ["broken", "502", "left", "200"]


def test_export_writes_what_was_read(file: Path, tmp_path: Path) -> None:
    """R-DE-09"""
    out = tmp_path / "two.wgtrace.json.gz"
    done = run("trace", "export", str(file), "-o", str(out), "--gzip")
    assert done.returncode == 0
    assert done.stdout == b""
    assert b"It contains conversation text: check before sharing." in done.stderr
    whole = with_analysis(read_trace(file.read_bytes()))
    assert read_trace(gzip.decompress(out.read_bytes())) == whole
    assert read_trace(run("trace", "export", str(out)).stdout) == whole


@pytest.mark.parametrize("packed", [[], ["--gzip"]])
def test_export_writes_no_file_to_a_terminal_unless_it_is_asked_to(file: Path, packed: list[str]) -> None:
    master, slave = os.openpty()
    line = [*COMMAND, "trace", "export", str(file), *packed]
    try:
        refused = subprocess.run(line, stdout=slave, stderr=subprocess.PIPE, env=PLAIN, check=False)
        assert refused.returncode == 2
        assert b"write a file with -o FILE" in refused.stderr
        assert select.select([master], [], [], 0)[0] == []
    finally:
        os.close(slave)
        os.close(master)
    whole = read_trace(run("trace", "export", str(file), *packed).stdout)
    assert read_trace(run("trace", "export", str(file), *packed, "-o", "-").stdout) == whole


def test_replay_offline_says_whether_it_is_the_same(file: Path, tmp_path: Path) -> None:
    same = "= upstream request: same as recorded\n= client answer: same as recorded\n"
    assert reported("replay", "--offline", file) == same
    trace = read_trace(file.read_bytes())
    attempt = trace.attempts[0]
    assert attempt.request is not None
    request = replace(attempt.request, body=attempt.request.body.replace("300", "400"))
    path = tmp_path / "changed.json"
    path.write_bytes(write_trace(replace(trace, attempts=[replace(attempt, request=request)])))
    assert reported("replay", "--offline", path, status=1) == (
        "~ upstream request: differs in 1\n    /generationConfig/maxOutputTokens\n"
        "      was 400\n      is  300\n= client answer: same as recorded\n"
    )
    again = json.loads(reported("replay", "--offline", path, "--json", status=1))
    assert not again["same"]
    assert again["request"][0]["pointer"] == "/generationConfig/maxOutputTokens"


def test_the_list_fits_eighty_columns() -> None:
    class Out:
        def isatty(self) -> bool:
            return False

    rows = [
        Row(
            id=f"req_0123456789abcdef0123{number}",
            at=1_790_000_000.0 + number,
            state="done" if number else "running",
            client="claude-code",
            asked="claude-sonnet-5-5-20261001-long-name",
            provider="some-provider-with-a-long-name",
            model="models/a-model-with-an-even-longer-name",
            status=200,
            total_ms=6212.0,
            tokens=Tokens(input=1200, output=34),
            losses=LossCounts(serious=1, harmless=1),
            recorded=bool(number),
        )
        for number in range(2)
    ]
    lines = list_lines(rows, Out())  # type: ignore[arg-type]  # all that is asked of a stream
    assert [len(line) <= 80 for line in lines] == [True] * 4, lines
    assert lines[1] == time.strftime("%Y-%m-%d", time.localtime(rows[0].at))
    assert lines[2].endswith(" req_0123456789abcdef01230")
    assert " running " in lines[2]
    assert "claude-code some-pro" in lines[2]
    assert " 200 " in lines[3]
    assert "2!" in lines[3]


def test_what_gives_way_in_the_list_are_long_names_of_models_and_not_the_client(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("COLUMNS", "120")
    row = Row(
        id="req_6afbf29422af47bb02223b6c", at=1.0, state="done", client="claude-code", asked="claude-opus-5-5",
        provider="anthropic", model="a-model-with-a-long-name-20261117", status=200, total_ms=20.0,
        tokens=Tokens(input=11_487, output=20), losses=LossCounts(degraded=1),
    )  # fmt: skip
    _, _, line = list_lines([row], Terminal())
    assert "claude-code" in line
    assert row.id in line


def test_steps_of_one_name_are_reported_once(tmp_path: Path) -> None:
    steps = [TraceStep("store", 0.0, 2.0), TraceStep("store", 2.0, 5.0), TraceStep("first byte", 5.0, 9.0)]
    path = tmp_path / "steps.wgtrace.json"
    path.write_bytes(write_trace(replace(marked(stream=False), steps=steps)))
    assert "store 5ms, first byte 4ms" in reported("show", path)


@rows("width", [40, 50, 60, 70, 80, 120])
def test_a_list_fits_a_narrow_terminal_and_ids_stay_whole(
    width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Terminal:
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("NO_COLOR", "1")
    lost = LossCounts(serious=2)
    rows = [
        Row(id=f"req_0123456789abcdef0123456{number}", at=1.0, state="done", status=200, total_ms=1234.5,
            client="a-client-with-a-name", model="a-model-with-a-long-name", losses=lost)
        for number in range(3)
    ]  # fmt: skip
    head, _, *lines = list_lines(rows, Terminal())  # type: ignore[arg-type]  # all that is asked of a stream
    assert max(map(len, [head, *lines])) <= width
    assert [line.endswith(row.id) for line, row in zip(lines, rows, strict=True)] == [True] * 3
    assert all(" 200 " in f" {line}" for line in lines)
    assert ("upstream" in head) == (width >= 50)


def test_colours_are_for_terminals(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal:
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    trace = with_analysis(marked(stream=False))
    assert "\x1b[1m" in Shown(Terminal(), full=False).trace(trace)[0]  # type: ignore[arg-type]  # all that is asked of a stream
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in "\n".join(Shown(Terminal(), full=False).trace(trace))  # type: ignore[arg-type]  # all that is asked of a stream


def test_show_has_one_line_for_losses_of_one_kind(tmp_path: Path) -> None:
    asked = conversation("anthropic")
    said = [
        {"type": "text", "text": text, "cache_control": {"type": "ephemeral"}} for text in ("a", "b", "c")
    ]
    asked["messages"][0]["content"] = said
    path = tmp_path / "marked.wgtrace.json"
    path.write_bytes(write_trace(recorded("anthropic", "gemini", asked)))
    text = reported("show", path)
    assert "dropped cache_marker x3 $.messages[0].content[0].cache_control\n" in text
    assert text.count("cache_marker") == 1
    assert reported("show", path, "--full").count("dropped cache_marker") == 3


def test_a_followed_list_shows_each_exchange_once_as_it_ends(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def row(number: int, **fields: Any) -> Row:
        return Row(id=f"req_{number}", at=time.time(), client="codex", provider="kimi", model="m", **fields)

    turns = [
        [row(2, state="running"), row(1, state="done", status=200)],
        [
            row(3, state="failed", status=429),
            row(2, state="done", status=200),
            row(1, state="done", status=200),
        ],
    ]
    asked: list[dict[str, str]] = []

    class Gateway:
        def rows(self, filters: dict[str, str], limit: int) -> trace.TraceListing:
            asked.append(filters)
            if not turns:
                raise KeyboardInterrupt
            return trace.TraceListing(turns.pop(0))

    monkeypatch.setattr(trace, "at_running_gateway", lambda config: Gateway())
    monkeypatch.setattr(trace, "_FOLLOW_SECONDS", 0)
    line = ["trace", "list", "--follow", "client:codex", "status:>=200"]
    with pytest.raises(KeyboardInterrupt):
        trace.run(build_parser().parse_args(line))
    head, *lines = capsys.readouterr().out.splitlines()
    assert head.split()[:3] == ["time", "client", "upstream"]
    assert [line.split()[-1] for line in lines] == ["req_1", "req_2", "req_3"]
    assert all("kimi/m" in line and len(line) <= 80 for line in lines)
    assert asked[0] == {"q": "client:codex status:>=200"}


def test_a_filter_that_cannot_be_understood_is_refused_before_anything_is_asked() -> None:
    done = run("trace", "list", "stauts:400")
    assert done.returncode == 2
    assert complaint(done).startswith("stauts:400: there is no field stauts; did you mean status?")


def test_show_says_what_the_cache_should_have_had_and_what_broke_it() -> None:
    trace = marked(stream=False)
    broken = CacheBreak(
        reason="a date or time in the system text changed",
        pointer="/system/0/text",
        before="Today is 2026-11-17\x1b[2J",
        after="Today is 2026-11-18",
    )
    truth = CacheTruth(
        id="b", at=1.0, verdict="partly", previous="req_a", expected=5000, cached=1024, broken=broken
    )
    lines = Shown(io.StringIO(), full=False).trace(trace, truth)
    at = next(number for number, line in enumerate(lines) if line.startswith("  cache "))
    assert lines[at : at + 4] == [
        "  cache    1,024 of about 5,000 expected (compared with req_a)",
        "           a date or time in the system text changed, at /system/0/text",
        "           - Today is 2026-11-17 [2J",
        "           + Today is 2026-11-18",
    ]
    unknown = CacheTruth(id="b", at=1.0, verdict="unknown", note="no usage is known")
    first = CacheTruth(id="b", at=1.0, verdict="first")
    plain = Shown(io.StringIO(), full=False).trace(trace)
    assert Shown(io.StringIO(), full=False).trace(trace, unknown) == plain
    assert Shown(io.StringIO(), full=False).trace(trace, first) == plain
