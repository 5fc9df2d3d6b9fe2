"""What commands print for people, to the last space: the files of tests/fixtures/cli.

`WIREGLOT_UPDATE=1 pytest tests/cli/test_pinned_output.py` writes them again; read the difference.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from datetime import date
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from tests.cli.running import run
from tests.core.laws.test_pair_goldens import UPDATE
from tests.core.traces.conversations import conversation
from tests.traces.recorded import recorded
from wireglot.cli.init import FoundProviders, InitReport, ProviderCandidate, config_text
from wireglot.cli.trace_view import list_lines
from wireglot.gateway.relay.key_checks import Outcome, ProviderAnswer
from wireglot.gateway.settings import Provider
from wireglot_core.providers.spec import ModelSpec, ProviderSpec
from wireglot_core.traces.file import write_trace
from wireglot_core.traces.trace import LossCounts, Row, Tokens, TraceStep

FIXTURES = Path(__file__).parents[1] / "fixtures" / "cli"


@pytest.fixture(autouse=True)
def _plain(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TZ", "UTC")
    monkeypatch.delenv("COLUMNS", raising=False)
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def pinned(name: str, text: str) -> None:
    path = FIXTURES / f"{name}.txt"
    if UPDATE:
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == text


def printed(*arguments: str | Path) -> str:
    done = run(*map(str, arguments))
    assert done.returncode == 0, done.stderr
    return done.stdout.decode()


class Terminal:
    def isatty(self) -> bool:
        return True


def test_the_list_of_traces_at_each_width(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [
        Row(
            id="req_6afbf29422af47bb02223b6c", at=1.0, state="done", client="claude-code", asked="claude-opus-5-5",
            provider="anthropic", model="a-model-with-a-long-name-20261117", status=200, total_ms=1234.5,
            tokens=Tokens(input=11_487, output=20), losses=LossCounts(degraded=1),
        ),
        Row(
            id="req_6afbf29422af47bb02223b6d", at=3661.0, state="failed", status=502, client="codex",
            asked="gpt-6", provider="openai", model="gpt-6", total_ms=12.3, tokens=Tokens(input=999),
            losses=LossCounts(serious=2),
        ),
        Row(id="req_6afbf29422af47bb02223b6e", at=3662.0, state="running"),
    ]  # fmt: skip
    text = ""
    for width in (40, 50, 60, 70, 80, 100, 109, 110, 120, 160, 200):
        monkeypatch.setenv("COLUMNS", str(width))
        lines = list_lines(rows, Terminal())  # type: ignore[arg-type]  # all that is asked of a stream
        text += "\n".join((f"{width} columns", *lines, "", ""))
    pinned("trace_list", text)


def test_one_trace_in_every_view(tmp_path: Path) -> None:
    def file(name: str, trace: Any) -> Path:
        path = tmp_path / f"{name}.wgtrace.json"
        path.write_bytes(write_trace(trace))
        return path

    asked = conversation("anthropic")
    asked["messages"][0]["content"][0]["cache_control"] = {"type": "ephemeral"}
    streamed = recorded("anthropic", "gemini", asked, stream=True)
    steps = [TraceStep("store", 0.0, 2.0), TraceStep("store", 2.0, 5.0), TraceStep("first byte", 5.0, 9.0)]
    whole = file(
        "whole", replace(recorded("openai-chat", "anthropic", conversation("openai-chat")), steps=steps)
    )
    stream = file("stream", streamed)
    failed = file("failed", recorded("gemini", "openai-chat", conversation("gemini", "[[demo:fail 429]]")))
    cut = file("cut", recorded("anthropic", "gemini", conversation("anthropic", "[[demo:cut]]"), stream=True))
    pinned("trace_show_whole", printed("trace", "show", whole))
    pinned("trace_show_stream", printed("trace", "show", stream))
    pinned("trace_show_stream_full", printed("trace", "show", stream, "--full"))
    pinned("trace_show_failed", printed("trace", "show", failed))
    pinned("trace_show_cut", printed("trace", "show", cut))
    pinned("trace_diff", printed("trace", "diff", stream))
    pinned("trace_diff_answers", printed("trace", "diff", whole, cut))


def test_the_pairs_and_one_of_them_side_by_side() -> None:
    pinned("pairs", printed("pairs"))
    pinned("pairs_gemini_openai_chat", printed("pairs", "--from", "gemini", "--to", "openai-chat"))


def test_the_demo_but_for_its_port_and_times() -> None:
    text = printed("demo")
    for varies, instead in (
        (r"  \S+ run claude", "  wireglot run claude"),
        (r"127\.0\.0\.1:\d+", "127.0.0.1:PORT"),
        (r"\b\d+ ms", "N ms"),
    ):
        text = re.sub(varies, instead, text)
    pinned("demo", text)


def test_what_a_probe_would_send() -> None:
    options = ("--only", "results.result", "--dry-run", "--model", "m")
    for dialect in ("anthropic", "openai-chat", "openai-responses", "gemini"):
        text = printed("probe", "http://127.0.0.1:9", "--dialect", dialect, *options)
        pinned(f"probe_dry_run_{dialect}", text)


def provider(name: str, base_url: str, *models: str) -> Provider:
    known = tuple(ModelSpec(model) for model in models)
    return Provider(name, ProviderSpec(name, name.title(), ("openai-chat",), base_url, models=known))


def asked(name: str, outcome: Outcome, *models: str, words: str = "") -> ProviderAnswer:
    return ProviderAnswer(
        name, f"GET https://{name}.example/v1/models", outcome, words, 503, milliseconds=12, models=models
    )


FOUND = {
    "nothing": FoundProviders(()),
    "one": FoundProviders(
        (
            ProviderCandidate(
                provider("alpha", "https://alpha.example/v1", "a-1", "a-2", "a-3"),
                "ALPHA_KEY",
                answered=asked("alpha", "taken", "a-2", "a-3", "other"),
            ),
        ),
        others=1,
    ),
    "many": FoundProviders(
        (
            ProviderCandidate(provider("alpha", "https://alpha.example/v1", "a-1"), "ALPHA_KEY", kept=True),
            ProviderCandidate(
                provider("beta", "https://beta.example/v1"),
                "BETA_KEY",
                answered=asked(
                    "beta", "refused", words="this key was revoked a long time ago, ask for another"
                ),
            ),
            ProviderCandidate(
                provider("gamma", "https://gamma.example/v1"),
                "GAMMA_KEY",
                answered=asked("gamma", "silent", words="the name cannot be resolved"),
            ),
            ProviderCandidate(
                provider("delta", "https://delta.example/v1"),
                "DELTA_KEY",
                answered=asked("delta", "failing", words="maintenance"),
            ),
            ProviderCandidate(
                provider("here", "http://127.0.0.1:11434/v1"), answered=asked("here", "taken", "qwen3:8b")
            ),
            ProviderCandidate(
                provider("there", "http://127.0.0.1:8000/v1"), answered=asked("there", "silent")
            ),
            ProviderCandidate(provider("unasked", "http://127.0.0.1:1234/v1")),
        ),
        logins=(("bedrock", "AWS_PROFILE"),),
        others=21,
    ),
}


@pytest.mark.parametrize("name", FOUND)
def test_the_configuration_that_init_writes_and_what_it_says(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = FOUND[name]
    text = f"{config_text(found, date(2026, 11, 18))}\n"
    for width in (80, 200):
        monkeypatch.setenv("COLUMNS", str(width))
        out = StringIO()
        monkeypatch.setattr(out, "isatty", lambda: True)
        report = InitReport(out)
        report.before(found, offline=width == 200)
        if found.candidates:
            report.after(found)
        text += f"--- {width} columns\n{out.getvalue()}"
    pinned(f"init_{name}", text)


def test_no_golden_is_left_over() -> None:
    named = set(re.findall(r'pinned\(f?"([^"{]+)', Path(__file__).read_text(encoding="utf-8")))
    stale = [path.name for path in FIXTURES.iterdir() if not path.name.startswith(tuple(named))]
    assert stale == []
