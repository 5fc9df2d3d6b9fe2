"""What a run of the benchmark says, and what it refuses to say. Times are not tested."""

import argparse
import json
from xml.etree import ElementTree

import pytest

from proofs.bench import charts, gateway, report, setting, tables, targets
from proofs.bench.results import Results
from proofs.bench.scenarios import BY_KEY
from proofs.bench.standing import TOO_SHORT, TOO_UNEVEN, Ratio, Reading, Undocumented, ratio, spread


def _readings(*costs, cpu=1.0, finished=1000):
    return [Reading(cost, cpu, finished) for cost in costs]


def _unreported(ours, theirs):
    found = ratio(ours, theirs)
    assert isinstance(found, Undocumented)
    return found


def test_a_ratio_is_the_median_of_the_rounds_with_the_lowest_and_the_highest():
    found = ratio(_readings(100, 110, 130), _readings(10, 10, 10))
    assert found == Ratio(11, 10, 13)
    assert str(found) == "11.0 (10.0-13.0)"


def test_nothing_is_divided_by_what_was_too_short_to_measure():
    found = _unreported(_readings(100, 100, 100), _readings(0.001, 0.001, 0.001, cpu=0.0))
    assert str(found) == TOO_SHORT
    assert "nginx took 0 ms of processor time in a round" in found.why
    found = _unreported(_readings(1, 1, 1, cpu=0.04), _readings(1, 1, 1))
    assert "wireglot took 40 ms" in found.why


def test_a_ratio_needs_three_rounds_and_enough_requests_in_each():
    assert _unreported(_readings(1, 1), _readings(1, 1)).why == "2 of 3 rounds"
    assert "finished 5 in a round" in _unreported(_readings(1, 1, 1, finished=5), _readings(1, 1, 1)).why
    assert _unreported(_readings(1, 1, 1), []).what == "-"


def test_rounds_that_do_not_agree_are_reported_and_no_ratio_is():
    found = spread([3.0, 10.0, 12.0])
    assert found == Undocumented(TOO_UNEVEN, "the rounds say 3.00 to 12.0")
    assert found.verdict(5) == ""


def test_a_goal_is_reached_missed_or_between_the_rounds():
    assert Ratio(5, 4.9, 5.1).verdict(7) == "reached"
    assert Ratio(9, 8, 10).verdict(7) == "missed"
    assert Ratio(6.9, 6.5, 7.5).verdict(7) == "near"
    assert Ratio(9, 8, 10).verdict(None) == ""


def _round(cost, rps=100.0, **more):
    return {
        "ok": 1000,
        "err": 0,
        "rps": rps,
        "cpu_s": 1.0,
        "cpu_us_req": cost,
        "p50": cost,
        "p99": cost * 2,
    } | more


def _event(cost, **more):
    return _round(cost, cpu_us_ev=cost, events=5000, delay_p50=cost, delay_p99=cost * 10) | more


def _turn(cost):
    return {"cpu_us": cost, "cpu_s": 1.0, "ok": 100, "err": 0}


def _turns(*costs):
    return {
        "bytes": [10_000, 20_000, 30_000, 40_000],
        "cpu_us": list(costs),
        "cpu_s": 2.0,
        "ok": 400,
        "err": 0,
    }


def _setting():
    return setting.read("proofs/bench (Python)", pinned=True)


def full_results():
    """A run in which everything was measured."""
    rounds = [
        (key, {"nginx": [_round(10)] * 3, "wireglot": [_round(60), _round(70), _round(65)]})
        for key in ("A-cc", "D-ac", "DB-ac", "B-cc")
    ]
    events = [
        (key, {"nginx": [_event(10)] * 3, "wireglot": [_event(15), _event(17), _event(16)]})
        for key in ("P-cc", "DP-ac", "E-cc", "DE-ac")
    ]
    crowds = {
        "nginx": [_event(10, kib_stream=20.0)] * 3,
        "wireglot": [_event(16, kib_stream=50.0)] * 3,
    }
    runs_of_500 = {"nginx": [_event(10)] * 3, "wireglot": [_event(16)] * 3}
    direct = {"direct": [_event(1)] * 3}
    runs = {
        **dict(rounds),
        **dict(events),
        "D1000-ac": crowds,
        "E1000-cc": crowds,
        "D500-ac": runs_of_500 | direct,
    }
    runs["D-ag"] = {"wireglot": [_round(90), _round(95), _round(99)]}
    runs["A1-cc"] = {"direct": [_round(20)] * 3, "nginx": [_round(60)] * 3, "wireglot": [_round(220)] * 3}
    runs["T60-ac"] = {"wireglot": [_round(500)] * 3}
    runs["T300-ac"] = {"wireglot": [_round(2500)] * 3}
    store = {
        "transactions": 0.5,
        "rows": 2.0,
        "wal_bytes": 900.0,
        "postgres_cpu": 2e-4,
        "redis_commands": 3.0,
    }
    store |= {"redis_cpu": 5e-5, "err": 0}
    results = Results(
        {
            "setting": _setting(),
            "runs": runs,
            "growing": {"nginx": [_turns(10, 20, 30, 40)] * 3, "wireglot": [_turns(50, 90, 130, 170)] * 3},
            "conversations": {
                "1 x 1": {"off": [_turn(30)] * 3, "on": [_turn(12)] * 3},
                "500 x 1": {"off": [_turn(30)] * 3, "on": [_turn(33)] * 2},
            },
            "bystanders": {
                "wireglot": [{"worst_ms": 40.0, "quiet_ms": 2.0, "huge_ms": 300.0, "err": 0}] * 3,
            },
            "workers": {"A-cc": {"1": [_round(60, 1000)] * 3, "2": [_round(62, 1900)] * 3}},
            "stores": {"plain": store, "limited": store, "stream": store, "stored": store},
            "starts": {"nginx": [0.03], "wireglot": [0.5, 0.3, 0.34]},
            "idle": {"nginx": {"rss": 12.0, "pss": 5.0}, "wireglot": {"rss": 61.0, "pss": 40.0}},
        }
    )
    return Results(json.loads(results.as_json()))


def _section(results, title):
    return next(section for section in report.sections(results) if section.title == title)


def test_paced_events_come_first_and_each_goal_has_a_verdict():
    section = _section(full_results(), "Cost compared with nginx")
    assert section.rows[0] == [
        "paced event, 20 streams (P)",
        "10.0",
        "16.0",
        "1.60 (1.50-1.70)",
        "1.8",
        "reached",
        "0",
    ]
    by_title = {row[0]: row for row in section.rows}
    assert by_title["request of 2 KB (A)"][3:6] == ["6.50 (6.00-7.00)", "7", "reached"]
    assert len(section.rows) == 9


def test_a_pair_is_held_against_what_nginx_did_to_the_same_request():
    rows = {row[0]: row for row in _section(full_results(), "Every pair").rows}
    assert rows["Chat > Chat"][1:3] == ["65.0", "6.50 (6.00-7.00)"]
    assert rows["Anthropic > Chat"][6] == "6.50 (6.00-7.00)"
    assert BY_KEY["D-ag"].reference == "A-aa"
    # nginx was not measured with that client here.
    assert rows["Anthropic > Gemini"][2] == "-"


def test_a_growing_conversation_is_reported_turn_by_turn_and_as_a_line():
    section = _section(full_results(), "Growing conversation")
    assert section.rows[0] == ["1", "10.0", "10.0", "50.0"]
    assert "wireglot 10 us and 4.00 us a KB" in section.note


def test_a_crowd_of_conversations_is_held_against_itself_without_memory():
    section = _section(full_results(), "Many conversations")
    assert section.rows[0] == ["1", "1", "30.0", "12.0", "0.40 (0.40-0.40)"]
    assert section.rows[1][4] == TOO_SHORT
    assert "500 x 1: too short: 2 of 3 rounds" in section.note


def test_lone_requests_many_streams_tools_bystanders_workers_and_stores_are_reported():
    results = full_results()
    assert _section(results, "A lone request").rows[0][1:] == [
        "20.0",
        "40.0",
        "80.0",
        "200",
        "400",
        "350",
        "reached",
    ]
    crowds = _section(results, "Many streams at once").rows
    assert any(row[4].endswith("; 64 KiB reached") for row in crowds)
    assert any(row[4].startswith("p99 2x: 1.67") and row[4].endswith("reached") for row in crowds)
    assert "no cliff" in _section(results, "Many tools").note
    assert _section(results, "One body of 10 MB").rows[0][4:6] == ["100", "reached"]
    assert _section(results, "Two workers").rows[0][3] == "1.90 (1.90-1.90)"
    assert _section(results, "What a request asks of the stores").rows[0][1] == "0.50"


def test_start_and_memory_have_goals():
    rows = _section(full_results(), "Process").rows
    assert ["wireglot: start to the first answer", "0.34 s (0.30-0.50)", "0.35 s", "reached"] in rows
    assert ["wireglot: idle memory (RSS; PSS)", "61 MiB; 40 MiB", "45 MiB", "missed"] in rows


def test_a_steeper_kilobyte_at_one_size_is_called_a_cliff():
    results = full_results()
    results.runs["T300-ac"] = {"wireglot": [_round(9000)] * 3}
    assert _section(results, "Many tools").note.endswith("a cliff.")


def test_why_a_ratio_is_not_reported_stands_under_the_table():
    results = full_results()
    results.runs["A-cc"]["nginx"] = [_round(0.0001, cpu_s=0.0)] * 3
    section = _section(results, "Cost compared with nginx")
    assert any(row[3] == TOO_SHORT and row[5] == "" for row in section.rows)
    assert "request of 2 KB (A): too short: nginx took 0 ms" in section.note


def test_without_nginx_there_are_figures_and_no_verdicts():
    results = Results({"runs": {"A-cc": {"wireglot": [_round(90)] * 3}}})
    (row,) = _section(results, "Cost compared with nginx").rows
    assert row == ["request of 2 KB (A)", "-", "90.0", "-", "7", "", "0"]


def test_a_scenario_without_any_success_fails_the_run():
    failed = {"ok": 0, "err": 1, "error": "no", "cpu_us_req": 0.0, "cpu_s": 0.0}
    results = Results({"runs": {"A-cc": {"wireglot": [_round(90), failed]}}})
    assert results.failures() == ["A-cc (wireglot)"]


def test_tables_are_aligned_in_a_terminal_and_marked_down_on_a_page():
    sections = [tables.Section("Title", "note", ["", "value"], [["a", "1"], ["longer", "22"]], "picture")]
    assert tables.as_text("On a machine.", sections).splitlines()[3:] == [
        "note",
        "          value",
        "  a           1",
        "  longer     22",
    ]
    page = tables.as_markdown("On a machine.", sections, {"picture": "![picture](figures/picture.svg)"})
    assert "| longer | 22 |" in page
    assert "![picture](figures/picture.svg)" in page


def test_the_setting_names_machine_versions_and_commit():
    reported = setting.sentence(_setting())
    assert all(
        word in reported for word in ("Commit ", "cores", "Python ", "msgspec ", "nginx", "load generator")
    )


@pytest.mark.parametrize("draw", [charts.ratios, charts.pairs, charts.growing, charts.peers])
def test_a_picture_is_well_formed_has_a_title_and_knows_dark_pages(draw):
    picture = draw(full_results())
    root = ElementTree.fromstring(picture)
    assert root.tag.endswith("svg")
    assert root[0].tag.endswith("title")
    assert "prefers-color-scheme: dark" in picture
    assert draw(Results()) is None


def test_pictures_are_written_beside_the_page_that_shows_them(tmp_path):
    shown = charts.write(full_results(), tmp_path / "figures")
    assert set(shown) == {"ratios", "pairs", "growing"}
    for name, text in shown.items():
        assert text == f"![{name}](figures/{name}.svg)"
        assert (tmp_path / "figures" / f"{name}.svg").exists()


def test_a_picture_has_no_bar_for_what_could_not_be_reported():
    results = full_results()
    results.runs["A-cc"]["nginx"] = [_round(0.0001, cpu_s=0.0)] * 3
    assert "request of 2 KB (A)" not in str(charts.ratios(results))


def test_scenarios_are_chosen_by_family_or_by_name():
    assert gateway.wanted(BY_KEY["D-ac"], ["D"])
    assert gateway.wanted(BY_KEY["D-ac"], ["A", "D-ac"])
    assert not gateway.wanted(BY_KEY["DB-ac"], ["D"])
    assert gateway.wanted(BY_KEY["DB-ac"], [])


def test_what_a_resumed_run_has_is_not_measured_again(tmp_path):
    bench = gateway.Bench.__new__(gateway.Bench)
    bench.arguments = argparse.Namespace(only=[], rounds=3)
    bench.results = full_results()
    bench.nginx = None
    bench.servers = [targets.Target("wireglot", [], 1, tmp_path)]
    assert not bench._is_open(BY_KEY["A-cc"])
    bench.arguments.rounds = 4
    assert bench._is_open(BY_KEY["A-cc"])


def test_figures_of_a_file_are_reported_without_a_measurement(tmp_path, capsys, monkeypatch):
    path = tmp_path / "bench.json"
    path.write_text(full_results().as_json())
    monkeypatch.setattr("sys.argv", ["bench", "--from", str(path)])
    gateway.main()
    assert "Cost compared with nginx" in capsys.readouterr().out


def test_resuming_needs_a_file_to_go_on_with():
    with pytest.raises(SystemExit):
        gateway.options(argparse.ArgumentParser(), ["--resume"])


def test_a_fixed_cost_of_each_request_is_no_cliff():
    assert report._steepest([22.0, 12.0, 10.0, 9.0, 5.0]) < 1
    assert report._steepest([10.0, 9.0, 18.0]) == 2
