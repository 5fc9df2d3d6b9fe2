"""proofs/bench/gateway.py and soak.py: the tools do what they say. Times are not tested."""

import argparse
import json
import os
import random
import subprocess
import sys
from collections import Counter
from itertools import pairwise
from typing import Any, cast

import msgspec
import pytest

from proofs.bench import (
    bystanders,
    conversations,
    driving,
    growing,
    processes,
    scenarios,
    soak,
    store_calls,
    targets,
    toolbox,
    traffic,
)
from proofs.bench.answers import MARK, Plan, plan_of, script, whole
from proofs.bench.bodies import SHAPES, VARIED, Conversation, body
from proofs.bench.load import Load
from tests.tiers import rows
from wireglot import StreamTranslator, translate_request, translate_response
from wireglot.gateway.config import load as load_config

DIALECTS = ("anthropic", "openai-chat", "openai-responses", "gemini")

needs_linux = pytest.mark.skipif(sys.platform != "linux", reason="the tools read /proc and use epoll")


@rows("dialect", DIALECTS)
@rows(("size", "low", "high"), [("2k", 2000, 2500), ("100k", 95_000, 105_000)])
def test_a_body_has_the_size_it_is_named_after_and_is_the_dialects_own(dialect, size, low, high):
    content = body(dialect, size, "mock", stream=False)
    assert low < len(content) < high
    assert translate_request(content, source=dialect, target=dialect, model="mock").losses == ()
    assert content == body(dialect, size, "mock", stream=False)


def test_code_in_a_body_needs_escapes():
    assert all(body("openai-chat", size, "mock", stream=False).count(b"\\n") > 2 for size in ("2k", "100k"))
    assert {"tiny", "2k", "100k"} <= set(SHAPES)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_varied_body_is_never_the_same_and_always_as_long(dialect):
    content = body(dialect, "100k", "mock", stream=False)
    load = Load(("127.0.0.1", 1), content, stream=False, varied=VARIED.encode())
    first, second = load.next_request(), load.next_request()
    assert first != second
    assert len(first) == len(second) == len(content)
    assert translate_request(first, source=dialect, target=dialect, model="mock").losses == ()


def test_a_conversation_grows_by_two_messages_and_keeps_what_was_said():
    bodies = [msgspec.json.decode(content) for content in Conversation(7, 5, 10_000, 50_000, "mock").bodies()]
    for earlier, later in pairwise(bodies):
        assert later["messages"][: len(earlier["messages"])] == earlier["messages"]
        assert len(later["messages"]) == len(earlier["messages"]) + 2
        assert later["tools"] == earlier["tools"]
    assert translate_request(bodies[-1], source="anthropic", target="openai-chat", model="mock").losses == ()
    other = Conversation(8, 5, 10_000, 50_000, "mock")
    assert msgspec.json.decode(next(other.bodies())) != bodies[0]
    assert msgspec.json.decode(Conversation(7, 5, 10_000, 50_000, "mock").last()) == bodies[-1]


def test_a_conversation_has_about_the_sizes_it_is_asked_for():
    sizes = [len(content) for content in Conversation(1, 100, 10_000, 1_000_000, "mock").bodies()]
    assert 7_000 < sizes[0] < 13_000
    assert 900_000 < sizes[-1] < 1_100_000


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


@pytest.mark.sampled(each=1)
@needs_linux
@pytest.mark.parametrize("key", ["A-cc", "C-cc", "DB-ac", "D-gc"])
def test_the_load_generator_counts_what_the_upstream_answers(key, upstream, tmp_path):
    scenario = scenarios.BY_KEY[key]
    figures = _load(scenario, upstream, tmp_path)
    assert figures["ok"] > 0
    assert (figures["err"], figures["error"], figures["reconnects"]) == (0, "", 0)
    assert figures["cpu_s"] > 0
    assert figures["cpu_us_req"] > 0
    assert figures["rss_mb"] > 1
    if scenario.events:
        assert figures["events"] >= figures["ok"]
        assert figures["delay_p50"] <= figures["delay_p99"] <= figures["delay_max"]


@pytest.mark.whole
@needs_linux
def test_connections_that_begin_one_after_the_other_are_all_driven(upstream, tmp_path):
    figures = _load(scenarios.BY_KEY["C-cc"], upstream, tmp_path, "-r", "20")
    assert figures["ok"] > 0
    assert (figures["err"], figures["error"]) == (0, "")


@needs_linux
def test_a_refused_request_is_counted_as_failed_and_reported(upstream, tmp_path):
    class Refused(scenarios.Scenario):
        def body(self, model=""):
            return body("openai-chat", "tiny", "mock-e503", stream=False)

    figures = _load(Refused("X-cc", "2k", 2), upstream, tmp_path)
    assert figures["ok"] == 0
    assert figures["err"] > 0
    assert "status 503" in figures["error"]


def _load(scenario, upstream, tmp_path, *more):
    port, pid = upstream
    content = tmp_path / "body.json"
    content.write_bytes(scenario.body())
    command = [*toolbox.own().load, f"http://127.0.0.1:{port}{scenario.path}", "-f", str(content)]
    command += ["-c", "4", "-d", "1", "-w", "0.1", "-p", str(pid), *(["-s"] if scenario.events else [])]
    command += ["-v", VARIED] if scenario.varied else []
    command += more
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
    assert settings.limits.requests_per_key >= max(one.connections for one in scenarios.EVERYTHING)
    assert [key.name for key in settings.keys] == ["bench"]
    assert settings.server.log == "json"


def test_processor_time_is_read_from_a_clock_and_not_in_ticks():
    meter = processes.Meter(os.getpid())
    spent = 0.0
    while spent <= 0:
        spent = meter.spent()
    assert spent < 0.01 or spent * 100 % 1 != 0
    assert processes.cpu_seconds(2**22 + 1) is None


@needs_linux
def test_what_a_process_started_meanwhile_is_counted_with_it(tmp_path):
    process = processes.start(
        [sys.executable, "-c", "import subprocess; subprocess.run(['sleep', '60'])"], tmp_path / "log"
    )
    meter = processes.Meter(process.pid)
    while len(processes.family(process.pid)) < 2:
        assert process.poll() is None
    assert meter.spent() > 0
    processes.stop(process)


@needs_linux
def test_a_conversation_and_its_costs_are_measured_turn_by_turn(upstream, tmp_path):
    target = _served(upstream, tmp_path)
    figures = growing.drive(target, turns=3)
    assert (figures["ok"], figures["err"]) == (3 * growing.CONVERSATIONS, 0)
    assert len(figures["bytes"]) == len(figures["cpu_us"]) == 3
    assert figures["cpu_s"] > 0


@needs_linux
def test_conversations_have_their_turns_in_turn_and_the_first_of_each_is_not_counted(
    upstream, tmp_path, monkeypatch
):
    asked: list[bytes] = []

    def ask(target: targets.Target, content: bytes) -> bool:
        asked.append(content)
        return False

    monkeypatch.setattr(conversations, "_ask", ask)
    figures = conversations.drive(_served(upstream, tmp_path), conversations.Crowd(2, 3))
    assert figures["ok"] == 2 * 3 * 9
    assert len(asked) == 2 * 3 * 10
    first, other, second = (msgspec.json.decode(content)["messages"] for content in asked[:3])
    assert second[: len(first)] == first != other


@needs_linux
def test_a_turn_of_a_crowd_is_asked_and_its_cost_reported(upstream, tmp_path):
    figures = conversations.drive(_served(upstream, tmp_path), conversations.Crowd(1, 1))
    assert (figures["ok"], figures["err"]) == (9, 0)
    assert figures["cpu_us"] > 0


def test_the_memory_can_be_turned_off_for_a_comparison(tmp_path):
    path = tmp_path / "wireglot.toml"
    path.write_text(targets.wireglot_config(8484, 9001, limits=conversations.OFF))
    assert load_config(path, environ={}, create_secret=False).limits.remembered == 0


@needs_linux
def test_bystanders_are_asked_before_and_beside_the_huge_body(upstream, tmp_path, monkeypatch):
    monkeypatch.setattr(bystanders, "HUGE_BYTES", 100_000)
    monkeypatch.setattr(bystanders, "_TURNS", 10)
    figures = bystanders.drive(_served(upstream, tmp_path), 1)
    assert figures["err"] == 0
    assert figures["asked"] > 0
    assert figures["quiet_ms"] > 0


def _served(upstream, tmp_path):
    """The mock upstream itself, as if it were a server."""
    port, pid = upstream
    target = targets.Target("mock", [], port, tmp_path / "log")
    target.process = cast(Any, argparse.Namespace(pid=pid))
    return target


def test_a_generator_that_reads_ticks_is_watched_from_beside(tmp_path, monkeypatch):
    class Meter:
        def __init__(self, root):
            assert root == 4711

        def spent(self):
            return 0.05

    monkeypatch.setattr(processes, "Meter", Meter)
    text = '{"rps": 100, "ok": 5, "err": 0, "error": "", "cpu_us_req": 10000}'
    tools = toolbox.Toolbox("ticks", [], ["sh", "-c", f"echo '{text}'"], exact=False)
    driver = driving.Driver(tools, tools, 1, tmp_path, None)
    figures = driver.drive(_served((1, 4711), tmp_path), scenarios.BY_KEY["A-cc"], 0.1, 0.0)
    assert figures["cpu_s"] == 0.05
    assert 0 < figures["cpu_us_req"] < 10000


@pytest.mark.parametrize(("key", "reported"), [("PS-cc", ["-r", "95.2"]), ("P-cc", [])])
def test_streams_out_of_step_begin_one_after_the_other(key, reported, tmp_path):
    seen = tmp_path / "seen"
    script = f'printf "%s\\n" "$@" > {seen}'
    tools = toolbox.Toolbox("fake", [], ["sh", "-c", script, "load"], exact=True)
    driver = driving.Driver(tools, tools, 1, tmp_path, None)
    driver.drive(_served((1, 1), tmp_path), scenarios.BY_KEY[key], 0.1, 0.0)
    arguments = seen.read_text().splitlines()
    assert [each for each in arguments if each in ("-r", "95.2")] == reported


def test_moments_of_streams_out_of_step_are_their_own():
    scenario = scenarios.BY_KEY["PS-cc"]
    interval = 1000 / scenario.begun_a_second
    moments = sorted(number * interval % scenario.gap for number in range(scenario.connections))
    assert min(after - before for before, after in pairwise(moments)) > 0.1


def test_a_generator_without_figures_is_a_failure_that_is_reported(tmp_path):
    tools = toolbox.Toolbox("silent", [], ["true"], exact=True)
    driver = driving.Driver(tools, tools, 1, tmp_path, None)
    figures = driver.drive(_served((1, 1), tmp_path), scenarios.BY_KEY["A-cc"], 0.1, 0.0)
    assert (figures["ok"], figures["error"]) == (0, "the load generator gave no figures")


def test_the_longest_wait_is_of_those_that_share_a_moment_with_the_body():
    waits = [(0.0, 0.1), (1.0, 0.5), (2.0, 0.9), (5.0, 3.0)]
    assert bystanders.longest(waits, 1.2, 1.9) == 0.5
    assert bystanders.longest(waits, 0.0, 10.0) == 3.0
    assert bystanders.longest(waits, 3.5, 4.0) == 0.0


def test_a_line_through_costs_tells_what_a_turn_and_what_a_kilobyte_costs():
    base, slope = growing.line([1000, 2000, 3000], [150.0, 250.0, 350.0])
    assert base == pytest.approx(50)
    assert slope == pytest.approx(100)


def test_what_stores_do_by_themselves_is_no_requests():
    def counters(seconds, many):
        return store_calls.Counters(seconds, many, many, many, many, many, many)

    # Ten seconds with requests, then five without in which ten were counted: twenty are no request's.
    found = store_calls.per_request(counters(0, 0), counters(10, 320), counters(15, 330))
    assert set(found.values()) == {300 / store_calls.REQUESTS}


def test_wireglot_reads_a_configuration_with_stores_workers_and_a_limited_key(tmp_path):
    target = targets.wireglot(["wireglot"], 9001, tmp_path, store_calls.limited_key(), workers=2)
    settings = load_config(tmp_path / "wireglot.toml", environ={}, create_secret=False)
    assert settings.server.workers == 2
    assert {key.name for key in settings.keys} == {"bench", store_calls.LIMITED}
    assert target.port == settings.server.port


@rows("scenario", scenarios.EVERYTHING, ids=lambda scenario: scenario.key)
def test_a_scenario_has_a_body_of_its_clients_dialect_and_a_reference_that_is_measured(scenario):
    content = scenario.body()
    dialect = scenarios.DIALECTS[scenario.client]
    assert translate_request(content, source=dialect, target=dialect, model="mock").losses == ()
    if scenario.varied:
        assert VARIED.encode() in content
    if scenario.reference:
        reference = scenarios.BY_KEY[scenario.reference]
        assert not reference.reference
        assert (reference.client, reference.size, reference.varied) == (
            scenario.client,
            scenario.size,
            scenario.varied,
        )


def test_all_sixteen_pairs_and_all_kinds_of_the_goals_are_measured():
    small = {scenario.key.partition("-")[2] for scenario in scenarios.SMALL}
    assert len(small) == 16
    assert {scenario.family for scenario in scenarios.EVERYTHING} >= set(scenarios.GOALS)
    assert {scenario.key for scenario in scenarios.QUICK} <= set(scenarios.BY_KEY)


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
    arguments = argparse.Namespace(files=2, growth=5.0, slack=4.0)
    run = soak.Soak.__new__(soak.Soak)
    run.arguments, run.odd, run.samples = arguments, [], [soak.Sample(0, rss, 20, 3, 0) for rss in samples]
    before = soak.Sample(0, 50, 20, 0, 5)
    return soak.verdict(run, before, before._replace(**after))


def test_a_soak_in_which_nothing_grew_is_well(capsys):
    assert _soaked([50, 51, 50, 52, 51]) == []
    assert "memory: 50.0 MiB in the first fifth, 51.0 MiB in the last" in capsys.readouterr().out


def test_what_stays_behind_after_a_soak_is_reported():
    assert _soaked([50, 52, 54, 56, 58]) == ["memory grew from 50.0 to 58.0 MiB"]
    assert _soaked([50], in_flight=2) == ["2 requests are still in flight"]
    assert _soaked([50], files=23) == ["open files grew from 20 to 23"]
    assert _soaked([50], tasks=6) == ["tasks grew from 5 to 6"]
