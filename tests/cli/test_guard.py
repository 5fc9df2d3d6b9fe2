"""proofs/guard: what it counts, what it compares, and when it fails. Counts of instructions are not tested."""

import asyncio
import json
from functools import partial
from itertools import pairwise, permutations

import pytest

from proofs.bench.streams import MODELS
from proofs.guard import __main__ as guard
from proofs.guard import baseline, callgrind, calls, floor, gateway, hot_paths, serve
from wireglot.gateway.process_limits import ProcessLimits
from wireglot.http.client.client import HttpTransport
from wireglot.http.server.server import HttpServer
from wireglot.http.transport import Outbound, Timeouts
from wireglot_core.cache.sightings import Sightings


def test_every_pair_of_dialects_is_counted_with_a_request_and_an_event():
    names = {path.name for path in hot_paths.hot_paths()} | {figure.name for figure in gateway.figures()}
    for source, target in permutations(MODELS, 2):
        pair = f"{source} > {target}"
        assert {f"gateway, 2 KB: {pair}", f"core, a text event: {pair}"} <= names


def test_every_hot_path_can_be_run():
    for path in hot_paths.hot_paths():
        path.prepare(1)()


def _figure(name):
    return next(figure for figure in gateway.figures() if figure.name.startswith(f"gateway, {name}"))


def _contents(name, many=6):
    return [_figure(name).cases[0].content(number) for number in range(many)]


@pytest.mark.parametrize("pair", ["openai-chat > openai-chat", "anthropic > openai-chat"])
def test_bodies_that_are_first_seen_have_nothing_at_the_same_place(pair):
    contents = _contents(f"100 KB, first seen: {pair}")
    sightings = Sightings()
    for content in contents:
        assert 95_000 < len(content) < 110_000
        assert not sightings.comes_again("a caller", content, within=10**9, within_own=10**9)


@pytest.mark.parametrize("pair", ["openai-chat > openai-chat", "anthropic > openai-chat"])
def test_bodies_of_one_template_differ_in_the_ids_of_all_calls_and_in_nothing_else(pair):
    contents = _contents(f"100 KB of one template: {pair}")
    assert len(set(contents)) == len(contents)
    first, second = contents[1:3]
    assert len(first) == len(second) > 95_000
    ids = first.count(b"toolu_")
    assert ids > 50
    assert ids < sum(one != other for one, other in zip(first, second, strict=True)) <= 6 * ids


def test_each_turn_of_the_conversation_begins_with_the_one_before():
    turns = _contents("a turn of a conversation", many=15)
    assert all(later.startswith(earlier.removesuffix(b"]}")) for earlier, later in pairwise(turns))
    assert all(80_000 < len(turn) < 120_000 for turn in turns[3:])


def test_an_event_is_the_difference_of_two_streams_and_a_template_a_ratio():
    assert _figure("an event").of(1000.0, 1000.0 + 30 * gateway.EVENTS) == 30
    assert _figure("a stream without its events").of(1000.0, 1000.0 + 30 * gateway.EVENTS) == 970
    on_to_off = _figure("100 KB of one template, cache on to off")
    assert [case.cached for case in on_to_off.cases] == [True, False]
    assert on_to_off.of(300.0, 200.0) == 1500


def test_timers_of_the_counted_gateway_wait_for_a_tick_and_can_be_cancelled():
    ran: list[str] = []
    loop = serve.HeldLoop()

    async def wait(seconds: float) -> None:
        async with asyncio.timeout(seconds):
            loop.call_soon(tick)
            await asyncio.Event().wait()

    def tick() -> None:
        ran.append("tick")
        loop.tick()

    loop.call_later(0.001, ran.append, "short")
    loop.call_later(0.001, ran.append, "cancelled").cancel()
    loop.call_at(loop.time() + 1.1, ran.append, "long")
    loop.call_later(0, ran.append, "now")
    with asyncio.Runner(loop_factory=lambda: loop) as runner, pytest.raises(TimeoutError):
        runner.run(wait(0.9))
    assert ran == ["now", "tick", "short"]


class _Echo(floor.BareProxy):
    async def handle(self, head, body, reply):
        reply.send(200, [("content-type", "application/json")], body)


@pytest.mark.parametrize(
    ("decodes", "answered"), [(False, b'{"a":  [1, 2]}'), (True, b'{"a":[1,2]}')], ids=["forwards", "decodes"]
)
def test_the_floor_is_a_proxy_that_forwards_a_body_unread_or_as_json_written_again(decodes, answered):
    async def ask() -> bytes:
        upstream = HttpServer(_Echo("", decodes=False), ProcessLimits())
        _, echo = await upstream.listen("127.0.0.1", 0)
        proxy = HttpServer(floor.BareProxy(f"http://127.0.0.1:{echo}", decodes=decodes), ProcessLimits())
        _, port = await proxy.listen("127.0.0.1", 0)
        client = HttpTransport(ProcessLimits())
        request = Outbound("POST", f"http://127.0.0.1:{port}/v1/x", [], b'{"a":  [1, 2]}')
        answer = await client.send(request, Timeouts())
        content = await answer.read(1000)
        await client.close()
        await proxy.drain(0)
        await upstream.drain(0)
        return content

    assert asyncio.run(ask()) == answered
    assert [figure.name for figure in floor.figures()] == [
        "2 KB forwarded",
        "2 KB decoded and encoded",
        "100 KB forwarded",
        "100 KB decoded and encoded",
    ]


@pytest.mark.whole
def test_calls_and_files_of_four_requests_are_counted_in_a_gateway():
    counts = calls.count()
    assert list(counts) == list(calls.names())
    for request in calls.REQUESTS:
        assert counts[f"calls, {request.name}"] > counts[f"files, {request.name}"] > 20
    forwarded, translated = (counts[f"calls, {calls.REQUESTS[at].name}"] for at in (2, 0))
    assert translated > forwarded


def test_the_events_that_are_counted_are_all_of_one_kind():
    for upstream in ("anthropic", "openai-chat", "openai-responses", "gemini"):
        frames = hot_paths._stream(upstream, "text", 20)
        words = [hot_paths._word(frame) for frame in frames]
        assert [word for word in words if word is not None][:20] == list(range(20))


def _path(name, turns=2, units=1):
    return hot_paths.HotPath(name, lambda turn: lambda: None, 1, turns, units)


def test_a_count_is_reported_for_one_unit_of_one_turn():
    paths = [_path("one", turns=4), _path("events", turns=2, units=50)]
    assert callgrind.format_counts(paths, [999, 400, 777, 3000]) == {"one": 100, "events": 30}


def test_a_number_of_counts_that_does_not_fit_the_paths_is_refused():
    with pytest.raises(callgrind.NotCounted, match="expected 4 counts of 2 paths, got 3"):
        callgrind.format_counts([_path("one"), _path("two")], [1, 2, 3])


def test_more_than_the_tolerance_is_slower_and_less_than_it_is_reported_as_faster():
    recorded = {"same": 1000, "slow": 1000, "fast": 1000, "near": 1000, "gone": 5}
    counts = {"same": 1000, "slow": 1051, "fast": 880, "near": 1049, "new": 7}
    verdict = baseline.compare(counts, recorded)
    assert verdict.slower == ["slow: 5.1% more (1,000 -> 1,051)"]
    assert verdict.faster == ["fast: 12.0% fewer (1,000 -> 880)"]
    assert verdict.unknown == ["new: 7, not recorded yet", "gone: recorded, but no longer counted"]
    assert baseline.compare({"same": 1000}, recorded, whole=False) == baseline.Verdict([], [], [])


def test_an_event_in_the_gateway_may_take_more_over_what_is_recorded():
    recorded = {"gateway, an event: one": 1000, "core, a text event: one": 1000}
    counts = {"gateway, an event: one": 1149, "core, a text event: one": 1049}
    assert baseline.compare(counts, recorded).slower == []
    assert len(baseline.compare({name: count + 2 for name, count in counts.items()}, recorded).slower) == 2


def test_calls_and_files_have_a_tolerance_of_their_own():
    recorded = {"calls, one": 1000, "files, one": 100}
    assert baseline.compare({"calls, one": 1029, "files, one": 102}, recorded).slower == []
    assert len(baseline.compare({"calls, one": 1031, "files, one": 104}, recorded).slower) == 2


def test_another_python_library_or_form_has_a_record_of_its_own(tmp_path):
    key = baseline.key()
    assert {"machine", "python", "build", "libc", "processor", "msgspec", "form"} == set(key)
    assert key["form"] in ("pure", "compiled")
    paths = {baseline.path_of({**key, field: "other"}, tmp_path) for field in key}
    assert len(paths | {baseline.path_of(key, tmp_path)}) == len(key) + 1


def _record(directory, counts=None, **changed):
    key = {**baseline.key(), **changed}
    path = baseline.path_of(key, directory=directory)
    baseline.write(path, key, counts or {"one": 100})
    return path


def test_another_machine_is_compared_with_where_it_is_nearest(tmp_path):
    key = baseline.key()

    def nearest():
        found = baseline.nearest(key, tmp_path)
        assert found is not None
        return found

    far = _record(tmp_path, processor="another", libc="another")
    assert nearest().path == far
    near = _record(tmp_path, processor="another")
    assert nearest().path == near
    assert baseline.differences(key, nearest().key) == ["processor another"]
    own = _record(tmp_path)
    assert nearest().path == own


@pytest.mark.parametrize("other", [{"machine": "riscv"}, {"python": "cpython 3.9.1"}, {"form": "neither"}])
def test_counts_of_another_architecture_python_or_form_are_not_compared(tmp_path, other):
    _record(tmp_path, **other)
    assert baseline.nearest(baseline.key(), tmp_path) is None


@pytest.fixture
def counted(monkeypatch, tmp_path):
    """A guard that counts what it is given and records in a directory of its own."""
    counts = {"one": 100, "two": 200}
    monkeypatch.setattr(callgrind, "find_valgrind", lambda: "valgrind")
    monkeypatch.setattr(guard, "count", lambda only: {} if "no such figure" in only else dict(counts))
    monkeypatch.setattr(baseline, "path_of", partial(baseline.path_of, directory=tmp_path))
    monkeypatch.setattr(baseline, "nearest", partial(baseline.nearest, directory=tmp_path))
    return counts


def test_without_a_record_nothing_is_counted_or_recorded(counted, tmp_path, capsys):
    assert guard.main([]) == 0
    assert "nothing is recorded for such a machine" in capsys.readouterr().out
    assert not list(tmp_path.iterdir())
    assert guard.main(["--update"]) == 0
    (path,) = tmp_path.iterdir()
    assert json.loads(path.read_text())["counts"] == counted
    assert guard.main([]) == 0
    assert "none is more than 5%" in capsys.readouterr().out


def test_more_than_is_recorded_fails_and_less_is_reported(counted, capsys):
    guard.main(["--update"])
    counted["one"] = 150
    assert guard.main([]) == 1
    assert "MORE one: 50.0% more" in capsys.readouterr().out
    counted["one"] = 50
    assert guard.main([]) == 0
    assert "renew it with `make guard-update`" in capsys.readouterr().out
    assert guard.main(["--update"]) == 0
    capsys.readouterr()
    assert guard.main([]) == 0
    assert "out of date" not in capsys.readouterr().out


def test_more_than_another_machine_took_fails_too_and_says_which(counted, tmp_path, capsys):
    _record(tmp_path, {"one": 90, "two": 200}, processor="another")
    assert guard.main([]) == 1
    printed = capsys.readouterr().out
    assert "the nearest one has processor another" in printed
    assert "MORE one: 11.1% more" in printed


def test_a_few_figures_neither_record_nor_miss_the_others(counted, capsys):
    guard.main(["--update"])
    del counted["two"]
    capsys.readouterr()
    assert guard.main(["--only", "one"]) == 0
    assert "no longer counted" not in capsys.readouterr().out
    assert guard.main(["--only", "no such figure"]) == 2
    with pytest.raises(SystemExit):
        guard.main(["--only", "one", "--update"])


def test_the_quick_figures_are_some_of_each_kind():
    figures = [*calls.names(), *(figure.name for figure in gateway.figures())]
    figures += [path.name for path in hot_paths.hot_paths()]
    assert [text for text in guard.QUICK if not any(text in name for name in figures)] == []
    quick = [name for name in figures if any(text in name for text in guard.QUICK)]
    assert {name.split(",")[0] for name in quick} == {name.split(",")[0] for name in figures}
    assert len(quick) < len(figures) / 3


def test_counts_of_another_run_can_stand_for_the_record(counted, tmp_path):
    before = tmp_path / "before.json"
    assert guard.main(["--update", "--json", str(before)]) == 0
    counted["two"] = 300
    assert guard.main(["--against", str(before)]) == 1


def test_without_valgrind_nothing_fails_unless_it_is_required(monkeypatch, capsys):
    monkeypatch.setattr(callgrind, "find_valgrind", lambda: None)
    assert guard.main([]) == 0
    assert "valgrind is not installed" in capsys.readouterr().out
    assert guard.main(["--required"]) == 1


def test_counts_that_failed_are_reported_and_fail(counted, monkeypatch, capsys):
    def refuse(only):
        raise callgrind.NotCounted("valgrind ended with status 2")

    guard.main(["--update"])
    monkeypatch.setattr(guard, "count", refuse)
    assert guard.main([]) == 1
    assert "status 2" in capsys.readouterr().out


def test_processors_are_distinguished_and_cores_are_not(tmp_path):
    reported = tmp_path / "cpuinfo"
    core = "processor : {}\nvendor_id : GenuineIntel\ncpu family : 6\nmodel : {}\nmodel name : Any\n\n"
    reported.write_text(core.format(0, 106) + core.format(1, 106))
    assert baseline.processor(reported) == "GenuineIntel 6 106"
    reported.write_text("processor : 0\nCPU implementer : 0x41\nCPU part : 0xd0c\n")
    assert baseline.processor(reported) == "0x41 0xd0c"


def test_what_is_recorded_belongs_to_its_key():
    for path in baseline.DIRECTORY.glob("*.json"):
        recorded = json.loads(path.read_text())
        assert baseline.path_of(recorded["key"]) == path
        assert all(count > 0 for count in recorded["counts"].values())
