"""`wireglot probe` from the outside: what it prints and writes, what it may spend, and that no key gets out."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tomllib
from pathlib import Path

import msgspec
import pytest

from tests.cli.running import COMMAND, complaint, run
from tests.probe.breakages import BREAKAGES
from tests.probe.broken_server import KEY, Breakage, server
from tests.processes import ForkedCommand
from tests.tiers import rows
from tests.waiting import DEADLINE_SECONDS
from wireglot.probe.run import CASES, cases_for
from wireglot.testing.scripted_upstream import Behaviour, ScriptedUpstream
from wireglot.testing.scripted_upstream.behaviour import Recorded
from wireglot_core.providers.spec import ProviderSpec, limits_of


def test_the_list_names_every_case_of_a_dialect() -> None:
    printed = run("probe", "--list", "--dialect", "gemini").stdout.decode()
    assert all(case.id in printed for case in cases_for("gemini"))
    assert "stops.which-sequence" not in printed
    assert all(case.id in run("probe", "--list").stdout.decode() for case in CASES)


def test_a_dry_run_shows_what_would_be_sent_and_asks_nobody() -> None:
    done = run(
        "probe", "http://127.0.0.1:9", "--dialect", "anthropic", "--only", "results.result", "--dry-run"
    )
    printed = done.stdout.decode()
    assert done.returncode == 0
    assert printed.count("POST http://127.0.0.1:9/v1/messages") == 2
    assert '"tool_result"' in printed
    assert "2 requests, " in printed


def test_a_dry_run_tells_the_money_of_a_model_that_is_priced() -> None:
    asked = ("--dialect", "anthropic", "--model", "claude-sonnet-4-5", "--only", "answers", "--dry-run")
    assert " USD" in run("probe", "https://api.anthropic.com", *asked).stdout.decode()


def test_an_endpoint_that_keeps_every_rule_has_the_whole_score_and_reports_without_its_key(
    tmp_path: Path,
) -> None:
    files = [tmp_path / name for name in ("r.json", "r.html", "r.toml")]
    with ScriptedUpstream(decide=server("openai-chat", Breakage())) as upstream:
        done = run(
            "probe", upstream.url, "--dialect", "openai-chat", "--key", KEY,
            "--json", str(files[0]), "--html", str(files[1]), "--catalog", str(files[2]),
        )  # fmt: skip
    assert done.returncode == 0, done.stdout.decode()
    assert " passed: 100 %" in done.stdout.decode()
    report = json.loads(files[0].read_text())
    assert report["score"]["percent"] == 100
    assert report["complete"]
    assert {row["verdict"] for row in report["cases"]} == {"pass"}
    assert all(row["exchanges"] for row in report["cases"])
    for text in (done.stdout.decode(), done.stderr.decode(), *(path.read_text() for path in files)):
        assert KEY not in text


def test_a_key_that_the_endpoint_repeats_is_not_repeated(tmp_path: Path) -> None:
    def echoing(request: Recorded) -> Behaviour:
        body = b'{"error":{"type":"x","message":"bad key %s"}}' % KEY.encode()
        headers = (("content-type", f"application/json; for={KEY}"), ("x-wireglot-losses", KEY))
        return Behaviour(status=400, headers=headers, body=body)

    with ScriptedUpstream(decide=echoing) as upstream:
        files = ("--json", str(tmp_path / "r.json"), "--html", str(tmp_path / "r.html"), "--all")
        asked = ("--dialect", "openai-chat", "--model", "m", "--key", KEY, "--only", "answers")
        done = run("probe", upstream.url, *asked, *files)
    assert done.returncode == 1
    for text in (done.stdout.decode(), *(path.read_text() for path in tmp_path.iterdir())):
        assert KEY not in text
        assert "bad key" in text


def test_a_key_that_a_refusal_repeats_is_not_printed() -> None:
    body = b'{"error":{"type":"authentication_error","message":"bad key %s"}}' % KEY.encode()
    with ScriptedUpstream(decide=lambda _: Behaviour(status=401, body=body)) as upstream:
        done = run("probe", upstream.url, "--dialect", "openai-chat", "--model", "m", "--key", KEY)
    assert done.returncode == 1
    reported = done.stdout.decode() + done.stderr.decode()
    assert "bad key" in reported
    assert KEY not in reported


UNUSABLE = {
    "a web page": (Behaviour(headers=(("content-type", "text/html"),), body=b"<h1>Hi</h1>"), "text/html"),
    "nothing": (Behaviour(headers=(("content-type", "text/plain"),), body=b""), "text/plain"),
    "too busy": (Behaviour(status=429, body=b'{"error":{"type":"x","message":"slow down"}}'), "slow down"),
    "a fault": (Behaviour(status=500, body=b'{"error":{"type":"x","message":"a bug"}}'), "a bug"),
    "elsewhere": (
        Behaviour(status=307, headers=(("location", "https://there.example"),), body=b"moved"),
        "there.example",
    ),
}


@rows("answers", UNUSABLE)
def test_an_endpoint_that_answers_nothing_is_reported_in_a_sentence(answers: str) -> None:
    behaviour, words = UNUSABLE[answers]
    with ScriptedUpstream(decide=lambda _: behaviour) as upstream:
        done = run("probe", upstream.url, "--dialect", "openai-chat", "--model", "m", "--key", KEY)
        asked = len(upstream.requests)
    assert done.returncode == 1
    assert words in complaint(done, 1)
    assert "cases that apply" not in done.stdout.decode()
    assert asked <= 2


def test_anyone_who_has_no_patience_says_so() -> None:
    with ScriptedUpstream(decide=lambda _: Behaviour(fault="stall")) as upstream:
        asked = ("--dialect", "openai-chat", "--model", "m", "--key", KEY, "--timeout", "1")
        done = run("probe", upstream.url, *asked)
    assert "no answer: timed out" in complaint(done, 1)


def test_an_endpoint_that_falls_silent_is_not_asked_for_ever(tmp_path: Path) -> None:
    report = tmp_path / "r.json"

    def silent(request: Recorded) -> Behaviour:
        if b'"stream":true' in request.body:
            return Behaviour(fault="close")
        return server("anthropic", Breakage())(request)

    with ScriptedUpstream(decide=silent) as upstream:
        asked = ("--dialect", "anthropic", "--model", "demo", "--key", KEY, "--only", "answers,streams")
        done = run("probe", upstream.url, *asked, "--json", str(report))
    assert done.returncode == 1
    assert "stopped answering" in complaint(done, 1)
    found = json.loads(report.read_text())
    assert not found["complete"]
    assert [row["verdict"] for row in found["cases"][-3:]] == ["inconclusive"] * 3
    assert len(found["cases"]) == sum(case.theme == "answers" for case in cases_for("anthropic")) + 3


def test_a_case_that_fails_is_reported_with_its_evidence_and_the_status_is_1(tmp_path: Path) -> None:
    broken = BREAKAGES["streams.ending"]["anthropic"]
    report, page = tmp_path / "r.json", tmp_path / "r.html"
    with ScriptedUpstream(decide=server("anthropic", broken)) as upstream:
        asked = ("--dialect", "anthropic", "--key", KEY, "--only", "streams.ending", "--json", str(report))
        done = run("probe", upstream.url, *asked, "--html", str(page))
    assert done.returncode == 1
    assert "x streams.ending  fail: message_stop came 0 times, expected once" in done.stdout.decode()
    row = json.loads(report.read_text())["cases"][0]
    assert "event: message_start" in row["exchanges"][0]["answer"]
    assert "Say hello" in row["exchanges"][0]["request"]
    assert '<a href="#streams.ending">' in page.read_text()


def test_what_a_model_says_is_text_on_the_page(tmp_path: Path) -> None:
    def hostile(request: Recorded) -> Behaviour:
        body = b'{"error":{"type":"<script>alert(1)</script>","message":"<img src=x onerror=alert(1)>"}}'
        return Behaviour(status=400, body=body)

    page = tmp_path / "r.html"
    with ScriptedUpstream(decide=hostile) as upstream:
        asked = ("--dialect", "openai-chat", "--model", "<b>m</b>", "--only", "answers", "--html", str(page))
        run("probe", upstream.url, *asked)
    text = page.read_text()
    assert "<script" not in text
    assert "<img" not in text
    assert "<b>" not in text
    assert "&lt;img src=x" in text
    assert "default-src 'none'" in text


def test_the_suggested_entry_is_a_file_of_the_catalog_with_what_was_refused(tmp_path: Path) -> None:
    entry = tmp_path / "mine.toml"
    refusing = BREAKAGES["fields.unknown"]["openai-chat"]

    def choosy(request: Recorded) -> Behaviour | None:
        if b'"json_schema"' in request.body or b'"developer"' in request.body:
            body = b'{"error":{"type":"invalid_request_error","message":"that is not supported here"}}'
            return Behaviour(status=400, body=body)
        return server("openai-chat", refusing)(request)

    with ScriptedUpstream(decide=choosy) as upstream:
        run("probe", upstream.url, "--dialect", "openai-chat", "--key", KEY, "--catalog", str(entry))
    written = entry.read_text()
    spec = msgspec.convert({"name": "mine", **tomllib.loads(written)}, ProviderSpec)
    limits = limits_of(spec, "openai-chat", "demo")
    assert limits.output_formats == ("json",)
    assert not limits.developer_role
    assert limits.tool_choices == ("auto", "none", "required", "named")
    assert "that is not supported here" in written
    assert set(spec.limits) == set(spec.sources[0].limits)


def test_a_budget_ends_a_run_before_more_could_be_spent() -> None:
    with ScriptedUpstream(decide=server("anthropic", Breakage())) as upstream:
        done = run("probe", upstream.url, "--dialect", "anthropic", "--key", KEY, "--budget", "4000")
        asked = len(upstream.requests)
    printed = done.stdout.decode()
    assert "  not run: it could exceed the budget" in printed
    assert " not run\n" in printed
    assert "inconclusive" not in printed
    assert 2 < asked < 40


def test_a_budget_in_money_needs_a_price() -> None:
    with ScriptedUpstream(decide=server("anthropic", Breakage())) as upstream:
        done = run("probe", upstream.url, "--dialect", "anthropic", "--key", KEY, "--budget", "0.5USD")
    assert done.returncode == 2
    assert complaint(done) == "--budget: no known price of this model in USD: give tokens"


def test_a_model_that_does_not_call_is_asked_once_more_and_then_nothing_is_said() -> None:
    def unwilling(request: Recorded) -> Behaviour:
        body = request.body.replace(b"weather", b"whether").replace(b"Call the tool", b"There is the tool")
        asked = Recorded("POST", request.path, request.query, request.headers, body, 1)
        return server("openai-chat", Breakage())(asked)

    with ScriptedUpstream(decide=unwilling) as upstream:
        asked = ("--dialect", "openai-chat", "--model", "demo", "--key", KEY, "--only", "tools.parallel")
        done = run("probe", upstream.url, *asked)
        requests = len(upstream.requests)
    assert "? tools.parallel  inconclusive: the model made 0 calls" in done.stdout.decode()
    assert done.returncode == 0
    assert requests == 3  # whether it answers at all, and the case twice


@pytest.mark.skipif(sys.platform == "win32", reason="SIGINT to another process is Unix's")
def test_an_interrupted_run_ends_with_what_is_known(tmp_path: Path) -> None:
    report = tmp_path / "r.json"

    def stalls(request: Recorded) -> Behaviour:
        if b'"stream":true' in request.body:
            return Behaviour(fault="stall")
        return server("anthropic", Breakage())(request)

    with ScriptedUpstream(decide=stalls) as upstream:
        asked = ["probe", upstream.url, "--dialect", "anthropic", "--model", "demo", "--key", KEY]
        process = ForkedCommand(
            [*COMMAND, *asked, "--json", str(report)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=dict(os.environ),
        )
        wait_for_stream(upstream)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=DEADLINE_SECONDS)
    assert process.returncode == 130
    assert b"(interrupted: cases are missing)" in out
    assert err == b"wireglot: interrupted\n"
    found = json.loads(report.read_text())
    assert not found["complete"]
    assert [row["id"] for row in found["cases"]] == [
        case.id for case in cases_for("anthropic")[: len(found["cases"])]
    ]
    assert found["cases"]


def wait_for_stream(upstream: ScriptedUpstream) -> None:
    from tests.waiting import wait_until

    wait_until(lambda: any(b'"stream":true' in request.body for request in upstream.requests))


@pytest.mark.parametrize("why", ["nobody answers", "nobody agrees", "no such folder"])
def test_a_run_that_gives_up_leaves_no_empty_files(tmp_path: Path, why: str) -> None:
    before = tmp_path / "before.html"
    before.write_text("", encoding="utf-8")
    catalog = tmp_path / ("none/r.toml" if why == "no such folder" else "r.toml")
    where = "http://127.0.0.1:9" if why != "nobody agrees" else "https://h.example"
    done = run(
        "probe", where, "--dialect", "anthropic", "--model", "m",
        "--json", str(tmp_path / "r.json"), "--html", str(before), "--catalog", str(catalog),
    )  # fmt: skip
    assert done.returncode != 0
    assert [path.name for path in tmp_path.iterdir()] == ["before.html"]
