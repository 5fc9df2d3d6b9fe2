"""tools/bench/gateway.py and soak.py: the tools do what they say. Times are not tested."""

import argparse
import json
import random
import subprocess
import sys
from collections import Counter

import msgspec
import pytest

from tools.bench import processes, report, scenarios, soak, targets, toolbox, traffic
from tools.bench.answers import MARK, Plan, plan_of, script, whole
from tools.bench.bodies import SHAPES, body
from wireglot import StreamTranslator, translate_request, translate_response
from wireglot.gateway.config import load as load_config

DIALECTS = ("anthropic", "openai-chat", "openai-responses", "gemini")

needs_linux = pytest.mark.skipif(sys.platform != "linux", reason="the tools read /proc and use epoll")


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(("size", "low", "high"), [("2k", 2000, 2500), ("100k", 95_000, 105_000)])
def test_a_body_has_the_size_it_is_named_after_and_is_the_dialects_own(dialect, size, low, high):
    content = body(dialect, size, "mock", stream=False)
    assert low < len(content) < high
    assert translate_request(content, source=dialect, target=dialect, model="mock").losses == ()
    assert content == body(dialect, size, "mock", stream=False)


def test_code_in_a_body_needs_escapes():
    assert all(body("openai-chat", size, "mock", stream=False).count(b"\\n") > 2 for size in ("2k", "100k"))
    assert set(SHAPES) == {"tiny", "2k", "100k"}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_mock_answers_in_the_dialects_own_words(dialect):
    head, _, content = whole(dialect, 400).marked().partition(b"\r\n\r\n")
    assert f"content-length: {len(content)}".encode() in head
    answer = translate_response(content, source=dialect, target="anthropic").value
    assert MARK.match(answer["content"][0]["text"].encode())
    assert answer["usage"]["output_tokens"] == 100


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_mock_streams_events_that_can_be_read(dialect):
    opening, event, closing = script(dialect, 3, 8)
    translator = StreamTranslator(source=dialect, target="anthropic")
    chunks = opening.partition(b"\r\n\r\n")[2] + event.marked() * 3 + closing
    said = b"".join(translator.feed(data) for data in _unchunked(chunks)) + translator.close()
    assert not translator.failed
    assert len(MARK.findall(said)) == 3
    assert said.count(b"event: message_stop") == 1
    assert b'"output_tokens":3' in said


def _unchunked(data: bytes) -> list[bytes]:
    found = []
    while data:
        size, _, data = data.partition(b"\r\n")
        found.append(data[: int(size, 16)])
        data = data[int(size, 16) + 2 :]
    return found


def test_the_models_name_is_the_plan_of_the_answer():
    assert plan_of(b"mine/mock-c20-g5-x7") == Plan(chunks=20, gap=5, cut=7)
    assert plan_of(b"mock") == Plan()
    assert plan_of(b"mock-e429").error == 429


@pytest.fixture
def upstream(tmp_path):
    port = processes.free_port()
    process = processes.start([*toolbox.own().upstream, str(port)], tmp_path / "log")
    assert processes.answers(port, 60)
    yield port, process.pid
    processes.stop(process)


@needs_linux
@pytest.mark.parametrize("scenario", [scenarios.BUSY[0], scenarios.BUSY[2], scenarios.BUSY[4]])
def test_the_load_generator_counts_what_the_upstream_answers(scenario, upstream, tmp_path):
    figures = _load(scenario, upstream, tmp_path)
    assert figures["ok"] > 0
    assert (figures["err"], figures["error"], figures["reconnects"]) == (0, "", 0)
    assert figures["cpu_us_req"] > 0
    assert figures["rss_mb"] > 1
    if scenario.events:
        assert figures["events"] >= figures["ok"]
        assert figures["delay_p50"] <= figures["delay_p99"] <= figures["delay_max"]


@needs_linux
def test_a_refused_request_is_counted_as_failed_and_told(upstream, tmp_path):
    class Refused(scenarios.Scenario):
        def body(self):
            return body("openai-chat", "tiny", "mock-e503", stream=False)

    figures = _load(Refused("X", "", "openai-chat", "mine", "2k", 2), upstream, tmp_path)
    assert figures["ok"] == 0
    assert figures["err"] > 0
    assert "status 503" in figures["error"]


def _load(scenario, upstream, tmp_path):
    port, pid = upstream
    content = tmp_path / "body.json"
    content.write_bytes(scenario.body())
    command = [*toolbox.own().load, f"http://127.0.0.1:{port}{scenario.path}", "-f", str(content)]
    command += ["-c", "4", "-d", "1", "-w", "0.1", "-p", str(pid), *(["-s"] if scenario.events else [])]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


@needs_linux
def test_a_process_is_ended_with_all_it_started(tmp_path):
    process = processes.start(["sh", "-c", "sleep 60 & sleep 60"], tmp_path / "log")
    while len(processes.family(process.pid)) < 3:
        assert process.poll() is None
    pids = processes.family(process.pid)
    assert processes.memory(pids).rss > 0
    assert processes.open_files(pids) >= 6
    processes.stop(process)
    assert not any(processes.lives(pid) for pid in pids)


def test_wireglot_reads_the_configurations_written_for_it(tmp_path):
    path = tmp_path / "wireglot.toml"
    path.write_text(targets.wireglot_config(8484, 9001) + soak._faulty_providers(9001))
    settings = load_config(path, environ={}, create_secret=False)
    assert set(settings.providers) >= {*targets.PROVIDERS, "bad-mine", "bad-gem"}
    assert settings.limits.requests_per_key >= scenarios.SLOW_STREAMS
    assert [key.name for key in settings.keys] == ["bench"]
    assert settings.server.log == "json"


def _round(cost, **more):
    return {"ok": 10, "err": 0, "rps": 100.0, "cpu_us_req": cost, "p50": cost, "p99": cost * 2, **more}


def _results(runs):
    memory = {"nginx": processes.Memory(10, 5), "wireglot": processes.Memory(61, 40)}
    return report.Results(runs, {"nginx": [0.1], "wireglot": [0.5, 0.9, 0.6]}, memory, {})


def test_a_ratio_is_the_median_of_the_rounds_ratios():
    runs = {
        "A": {
            "nginx": [_round(10), _round(20), _round(10)],
            "wireglot": [_round(90), _round(300), _round(130)],
        }
    }
    (cost, process) = report.sections(_results(runs))
    assert cost.rows == [["same dialect, 2 KB (A)", "10.0", "130", "13.0", "12", "FAIL", "100", "100", "0"]]
    assert ["wireglot: start-up to the first answer", "0.60 s", "0.8 s", "PASS"] in process.rows
    assert ["wireglot: idle memory (RSS; PSS)", "61 MiB; 40 MiB", "60 MiB", "FAIL"] in process.rows


def test_without_nginx_there_are_figures_and_no_verdicts():
    (cost, _) = report.sections(_results({"A": {"wireglot": [_round(90)]}}))
    assert cost.rows == [["same dialect, 2 KB (A)", "-", "90.0", "-", "12", "-", "-", "100", "0"]]


def test_a_translated_scenario_is_compared_with_what_nginx_did_to_the_same_request():
    runs = {"D": {"nginx": [_round(10)], "wireglot": [_round(50)]}, "G": {"wireglot": [_round(120)]}}
    (cost, _) = report.sections(_results(runs))
    assert [row[3] for row in cost.rows] == ["5.0", "12.0"]


def test_added_latency_is_told_against_the_upstream_alone():
    runs = {"A1": {"direct": [_round(20)], "nginx": [_round(50)], "wireglot": [_round(220)]}}
    (latency, _) = report.sections(_results(runs))
    assert latency.rows == [["same dialect, 2 KB (A1)", "20.0", "40.0", "30.0", "60.0", "200", "400"]]


def test_a_scenario_without_any_success_is_broken():
    runs = {"A": {"wireglot": [_round(90), {"ok": 0, "err": 1, "error": "no"}]}}
    assert _results(runs).broken() == ["A (wireglot)"]


def test_tables_are_aligned_in_a_terminal_and_marked_down_on_a_page():
    sections = [report.Section("Title", "note", ["", "value"], [["a", "1"], ["longer", "22"]])]
    assert report.as_text("On a machine.", sections).splitlines()[3:] == [
        "note",
        "          value",
        "  a           1",
        "  longer     22",
    ]
    assert "| longer | 22 |" in report.as_markdown("On a machine.", sections)


def test_traffic_has_every_dialect_faults_and_clients_that_leave():
    chance = random.Random(1)
    jobs = [traffic.draw(chance) for _ in range(3000)]
    assert {(job.dialect, job.provider) for job in jobs} == {
        (dialect, provider) for dialect in DIALECTS for provider in targets.PROVIDERS
    }
    kinds = Counter("faulty" if job.faulty else "leaves" if job.leaves else "plain" for job in jobs)
    assert kinds["faulty"] > 100
    assert kinds["leaves"] > 100
    assert kinds["plain"] > 2000
    for job in jobs[:50]:
        head, _, content = job.request("localhost").partition(b"\r\n\r\n")
        assert f"content-length: {len(content)}".encode() in head
        assert isinstance(msgspec.json.decode(content), dict)


def _soaked(samples, **after):
    told = argparse.Namespace(files=2, growth=5.0, slack=4.0)
    run = soak.Soak.__new__(soak.Soak)
    run.told, run.odd, run.samples = told, [], [soak.Sample(0, rss, 20, 3, 0) for rss in samples]
    before = soak.Sample(0, 50, 20, 0, 5)
    return soak.verdict(run, before, before._replace(**after))


def test_a_soak_in_which_nothing_grew_is_well(capsys):
    assert _soaked([50, 51, 50, 52, 51]) == []
    assert "memory: 50.0 MiB in the first fifth, 51.0 MiB in the last" in capsys.readouterr().out


def test_what_stays_behind_after_a_soak_is_told():
    assert _soaked([50, 52, 54, 56, 58]) == ["memory grew from 50.0 to 58.0 MiB"]
    assert _soaked([50], in_flight=2) == ["2 requests are still in flight"]
    assert _soaked([50], files=23) == ["open files grew from 20 to 23"]
    assert _soaked([50], tasks=6) == ["tasks grew from 5 to 6"]
