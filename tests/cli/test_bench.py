"""proofs/bench/core.py: what it measures is what it says. Times are not tested."""

from itertools import groupby

import msgspec
import pytest

from proofs.bench import core as bench
from proofs.bench import page as figures_page
from proofs.bench.bodies import agent_request
from proofs.bench.streams import MODELS


def test_the_request_is_a_coding_agents_of_a_hundred_kilobytes():
    body = agent_request()
    assert 95_000 < len(msgspec.json.encode(body)) < 105_000
    assert len(body["messages"]) == 60
    assert len(body["tools"]) == 30


@pytest.mark.parametrize("dialect", list(MODELS))
def test_a_stream_has_an_event_for_each_word(dialect):
    frames = bench.text_stream(dialect)
    assert sum(b" of the answer" in frame and frame.count(b" word ") == 1 for frame in frames) >= bench.EVENTS


def test_the_yardstick_is_measured_beside_every_job():
    def yardstick() -> None:
        calls.append("yardstick")
        sum(range(20_000))

    def job() -> None:
        calls.append("job")
        sum(range(20_000))

    calls: list[str] = []
    first, second = bench.measure(yardstick, [job, job], 3)
    turns = [name for name, _ in groupby(calls)]
    assert turns == ["job", *["yardstick", "job"] * (len(turns) // 2)]
    assert calls.count("job") == 1 + 2 * 3
    assert first.best > 0
    assert second.ratio > 0


def test_figures_are_put_between_the_marks(tmp_path):
    page = tmp_path / "bench.md"
    page.write_text(f"before\n{figures_page.FIGURES.begin}\nold\n{figures_page.FIGURES.end}\nafter\n")
    figures_page.write(page, "new")
    assert (
        page.read_text()
        == f"before\n{figures_page.FIGURES.begin}\n\nnew\n\n{figures_page.FIGURES.end}\nafter\n"
    )
    page.write_text("no marks")
    with pytest.raises(SystemExit):
        figures_page.write(page, "new")


def test_importing_wireglot_loads_no_network_library():
    _, modules, network = bench.import_figures(1)
    assert modules > 0
    assert network == []
