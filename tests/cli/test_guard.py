"""tools/guard: what it counts, what it compares, and when it refuses. Counts themselves are not tested."""

import json
from itertools import permutations

import pytest

from tools.bench.streams import MODELS
from tools.guard import __main__ as guard
from tools.guard import baseline, callgrind, hot_paths
from wireglot.translate import translate_request


def test_every_pair_of_dialects_is_counted_with_a_request_an_answer_and_an_event():
    names = {path.name for path in hot_paths.hot_paths()}
    for source, target in permutations(MODELS, 2):
        pair = f"{source} > {target}"
        assert {f"a request of 2 KB: {pair}", f"a whole answer: {pair}", f"a text event: {pair}"} <= names
    assert any(name.startswith("fit 100 KB") for name in names)
    assert any(name.startswith("render and encode 100 KB") for name in names)


def test_every_path_can_be_run_and_no_two_turns_have_the_same_bytes():
    for path in hot_paths.hot_paths():
        path.prepare(1)()
    for name in MODELS:
        first, second = (hot_paths._body(name, "100k", turn) for turn in (1, 2))
        assert first != second
        assert len(first) == len(second)
        assert translate_request(first, source=name, target=name).losses == ()


def test_the_events_that_are_counted_are_all_of_one_kind():
    for upstream in ("anthropic", "openai-chat", "openai-responses", "gemini"):
        frames = hot_paths._stream(upstream, "text", 20)
        words = [hot_paths._word(frame) for frame in frames]
        assert [word for word in words if word is not None][:20] == list(range(20))


def _path(name, turns=2, units=1):
    return hot_paths.HotPath(name, lambda turn: lambda: None, 1, turns, units)


def test_a_count_is_told_for_one_unit_of_one_turn():
    paths = [_path("one", turns=4), _path("events", turns=2, units=50)]
    assert callgrind.told_counts(paths, [999, 400, 777, 3000]) == {"one": 100, "events": 30}


def test_a_number_of_counts_that_does_not_fit_the_paths_is_refused():
    with pytest.raises(callgrind.NotCounted, match="expected 4 counts of 2 paths, got 3"):
        callgrind.told_counts([_path("one"), _path("two")], [1, 2, 3])


def test_more_than_the_tolerance_is_slower_and_less_than_it_is_told_as_faster():
    recorded = {"same": 1000, "slow": 1000, "fast": 1000, "near": 1000, "gone": 5}
    counts = {"same": 1000, "slow": 1031, "fast": 880, "near": 1029, "new": 7}
    verdict = baseline.compare(counts, recorded)
    assert verdict.slower == ["slow: 3.1% more (1,000 -> 1,031 instructions)"]
    assert verdict.faster == ["fast: 12.0% fewer (1,000 -> 880 instructions)"]
    assert verdict.unknown == [
        "new: 7 instructions, not recorded yet",
        "gone: recorded, but no longer counted",
    ]
    assert baseline.compare({"same": 1000}, recorded, whole=False) == baseline.Verdict([], [], [])


def test_another_python_library_or_form_has_a_record_of_its_own(tmp_path):
    key = baseline.key()
    assert {"machine", "python", "build", "libc", "processor", "msgspec", "form"} == set(key)
    assert key["form"] in ("pure", "compiled")
    paths = {baseline.path_of({**key, field: "other"}, tmp_path) for field in key}
    assert len(paths | {baseline.path_of(key, tmp_path)}) == len(key) + 1


@pytest.fixture
def counted(monkeypatch, tmp_path):
    """A guard that counts what it is told and records in a place of its own."""
    counts = {"one": 100, "two": 200}
    monkeypatch.setattr(callgrind, "find_valgrind", lambda: "valgrind")
    monkeypatch.setattr(callgrind, "count", lambda paths, arguments: dict(counts))
    monkeypatch.setattr(baseline, "path_of", lambda key: tmp_path / "record.json")
    return counts


def test_without_a_record_it_records_says_so_and_passes(counted, tmp_path, capsys):
    assert guard.main([]) == 0
    assert "nothing was recorded for this machine" in capsys.readouterr().out
    assert json.loads((tmp_path / "record.json").read_text())["instructions"] == counted
    assert guard.main([]) == 0


def test_who_only_compares_counts_nothing_without_a_record(counted, tmp_path, capsys):
    assert guard.main(["--compare"]) == 0
    assert "nothing to compare with" in capsys.readouterr().out
    assert not (tmp_path / "record.json").exists()
    assert guard.main([]) == 0
    assert guard.main(["--compare"]) == 0
    assert "none takes more" in capsys.readouterr().out


def test_a_slower_path_fails_and_a_faster_one_is_told(counted, capsys):
    guard.main([])
    counted["one"] = 150
    assert guard.main([]) == 1
    assert "SLOWER one: 50.0% more" in capsys.readouterr().out
    counted["one"] = 50
    assert guard.main([]) == 0
    assert "renew it with `make guard-update`" in capsys.readouterr().out
    assert guard.main(["--update"]) == 0
    capsys.readouterr()
    assert guard.main([]) == 0
    assert "out of date" not in capsys.readouterr().out


def test_a_few_paths_neither_record_nor_miss_the_others(counted, tmp_path):
    assert guard.main(["--only", "a text event"]) == 0
    assert not (tmp_path / "record.json").exists()
    assert guard.main(["--only", "no such path"]) == 2
    with pytest.raises(SystemExit):
        guard.main(["--only", "a text event", "--update"])


def test_counts_of_another_run_can_stand_for_the_record(counted, tmp_path):
    before = tmp_path / "before.json"
    assert guard.main(["--json", str(before)]) == 0
    counted["two"] = 300
    assert guard.main(["--against", str(before)]) == 1


def test_without_valgrind_nothing_fails_unless_it_is_required(monkeypatch, capsys):
    monkeypatch.setattr(callgrind, "find_valgrind", lambda: None)
    assert guard.main([]) == 0
    assert "valgrind is not installed" in capsys.readouterr().out
    assert guard.main(["--required"]) == 1


def test_counts_that_failed_are_told_and_fail(counted, monkeypatch, capsys):
    def refuse(paths, arguments):
        raise callgrind.NotCounted("valgrind ended with status 2")

    monkeypatch.setattr(callgrind, "count", refuse)
    assert guard.main([]) == 1
    assert "status 2" in capsys.readouterr().out


def test_processors_are_told_apart_and_cores_are_not(tmp_path):
    told = tmp_path / "cpuinfo"
    core = "processor : {}\nvendor_id : GenuineIntel\ncpu family : 6\nmodel : {}\nmodel name : Any\n\n"
    told.write_text(core.format(0, 106) + core.format(1, 106))
    assert baseline.processor(told) == "GenuineIntel 6 106"
    told.write_text("processor : 0\nCPU implementer : 0x41\nCPU part : 0xd0c\n")
    assert baseline.processor(told) == "0x41 0xd0c"


def test_what_is_recorded_belongs_to_its_key():
    for path in baseline.DIRECTORY.glob("*.json"):
        recorded = json.loads(path.read_text())
        assert baseline.path_of(recorded["key"]) == path
        assert all(count > 0 for count in recorded["instructions"].values())
