"""`make live` against the scripted upstream in a vendor's place."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from proofs.live.__main__ import main
from proofs.live.scenarios import SCENARIOS
from proofs.live.vendors import MODELS, Unpriced, vendor
from wireglot.testing.scripted_upstream import Behaviour, ScriptedUpstream
from wireglot_core.dialects.registry import surface
from wireglot_core.providers.spec import provider

KEYS = {
    "anthropic": ("ANTHROPIC_API_KEY", "sk-ant-test-5cb1c4a00f21d9"),
    "gemini": ("GEMINI_API_KEY", "AIzaSyTest5cb1c4a00f21d9"),
    "openai": ("OPENAI_API_KEY", "sk-proj-test-5cb1c4a00f21d9"),
}


@pytest.fixture
def upstream() -> Iterator[ScriptedUpstream]:
    with ScriptedUpstream() as scripted:
        yield scripted


def live(upstream: ScriptedUpstream, out: Path, *more: str, name: str = "anthropic") -> int:
    words = ["--base-url", f"{name}={upstream.url}", "--only", name, "--out", str(out), *more]
    return main(words, dict([KEYS[name]]))


@pytest.mark.parametrize("name", KEYS)
def test_nothing_differs_from_the_scripted_upstream_itself(
    upstream: ScriptedUpstream, tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    live(upstream, tmp_path, "--steps", "scenarios", name=name)
    printed = capsys.readouterr().out
    # Two more are accepted by it: any model and any key.
    expected = sum(each.compared for each in SCENARIOS) * len(provider(name).dialects)
    assert printed.count("\n  pass ") == expected
    assert printed.rpartition("|---|---|---|---|---|---|\n")[2].startswith("\n")  # a table without rows


def test_a_field_more_and_a_field_less_are_rows_of_the_table(
    upstream: ScriptedUpstream, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [{"type": "text", "text": "Hello."}],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "new_field": 1,
    }
    upstream.next(
        Behaviour(body=msgspec.json.encode(answer), headers=(("content-type", "application/json"),))
    )
    assert live(upstream, tmp_path, "--steps", "scenarios") == 1
    printed = capsys.readouterr().out
    assert "fail           anthropic, a whole answer" in printed
    assert "| `$.new_field` | number | - |" in printed
    assert "| `$.usage` | - | object |" in printed


def test_nothing_is_sent_that_could_exceed_the_limit(
    upstream: ScriptedUpstream, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    live(upstream, tmp_path, "--limit", "0.000001", "--steps", "scenarios", "smoke")
    assert upstream.requests == []
    assert "not run" in capsys.readouterr().out


def test_recordings_hold_the_exchanges_and_no_key(upstream: ScriptedUpstream, tmp_path: Path) -> None:
    key = KEYS["anthropic"][1]
    error = {"type": "error", "error": {"type": key, "message": f"invalid key {key}", key: 1}}
    upstream.next(Behaviour(status=401, body=msgspec.json.encode(error)))
    stream = f"data: {key} is invalid\n\n".encode()
    upstream.next(Behaviour(body=stream, headers=(("content-type", "text/event-stream"),)))
    live(upstream, tmp_path, "--steps", "scenarios")
    kept = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    lines = [msgspec.json.decode(line) for line in kept["anthropic-anthropic.jsonl"].splitlines()]
    assert {line["scenario"] for line in lines} == {each.name for each in SCENARIOS}
    assert lines[0]["status"] == 401
    assert "invalid key" in lines[0]["answer"]
    assert not [name for name, data in kept.items() if key.encode() in data]


def test_without_a_key_it_names_the_variables(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--out", str(tmp_path)], {}) == 2
    printed = capsys.readouterr().out
    assert all(" or ".join(provider(name).api_key_env) in printed for name in MODELS)


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["--base-url", "nobody=http://127.0.0.1:1"], "--base-url"),
        (["--base-url", "anthropic=127.0.0.1"], "BASE_URL"),
        (["--model", "anthropic"], "--model"),
        (["--only", "nobody"], "--only"),
        (["--out", "/dev/null/live"], "--out"),
        (["--model", "anthropic=a-model-without-a-price"], "--model"),
    ],
)
def test_wrong_uses_are_named(words: list[str], named: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words, dict([KEYS["anthropic"]])) == 2
    assert named in capsys.readouterr().err


@pytest.mark.parametrize("name", MODELS)
def test_each_model_is_listed_has_a_price_and_a_dialect_of_the_probe(name: str) -> None:
    spec = provider(name)
    found = vendor(name, {spec.api_key_env[0]: "k"})
    assert found is not None
    assert spec.knows(found.model)
    assert found.dialects
    assert all(surface(each).upstream is not None for each in found.dialects)


@pytest.mark.parametrize("amount", ["abc", "0", "-1", "nan", "99999", "1e999"])
def test_a_limit_that_is_no_amount_is_refused(amount: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--limit", amount], dict([KEYS["anthropic"]]))
    assert "expected an amount between 0 and 1000" in capsys.readouterr().err


def test_a_model_without_a_price_is_refused() -> None:
    with pytest.raises(Unpriced):
        vendor("anthropic", {"ANTHROPIC_API_KEY": "k"}, model="unknown")


@pytest.mark.parametrize("name", ["anthropic", pytest.param("gemini", marks=pytest.mark.whole)])
def test_smoke_and_probe_run_against_the_vendor(
    upstream: ScriptedUpstream, tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    live(upstream, tmp_path, "--steps", "smoke", "probe", name=name)
    printed = capsys.readouterr().out
    assert "pass           smoke: POST /v1/messages, tools, stream" in printed
    reports = [msgspec.json.decode(path.read_bytes()) for path in tmp_path.glob(f"{name}-*-probe.json")]
    assert [each["complete"] for each in reports] == [True] * len(provider(name).dialects)
    assert all(f"probe: {each['score']['passed']} of " in printed for each in reports)
