"""proofs/bench/capacity.py and queueing.py: the laws of the model, and known values of its formulas."""

import math

import pytest

from proofs.bench import capacity, page, queueing
from proofs.bench.capacity import Costs, Machine, Traffic, plan
from proofs.bench.queueing import Queue, Work, single_server
from proofs.bench.results import Results
from tests.cli.test_bench_report import full_results
from tests.tiers import rows

COSTS = Costs(
    request=600.0,
    event=40.0,
    stream_kib=50.0,
    idle_mib=30.0,
    transactions=0.5,
    rows=2.0,
    wal_bytes=900.0,
    postgres_us=200.0,
    redis_calls=3.0,
    redis_us=50.0,
)


def test_a_queue_with_exponential_service_waits_as_the_textbook_says():
    # M/M/1 with half the capacity used: as long as one service.
    queue = single_server([Work(5, 0.1)])
    assert queue.utilisation == pytest.approx(0.5)
    assert queue.mean_wait == pytest.approx(0.1)
    # M/D/1: half of it.
    assert single_server([Work(5, 0.1, variation=0)]).mean_wait == pytest.approx(0.05)


def test_kinds_of_work_add_up():
    both = single_server([Work(2, 0.1), Work(3, 0.1)])
    assert both == pytest.approx(single_server([Work(5, 0.1)]))
    with_short = single_server([Work(5, 0.1), Work(100, 0.001)])
    assert with_short.utilisation == pytest.approx(0.6)
    assert with_short.mean_wait > single_server([Work(5, 0.1)]).mean_wait


def test_the_percentile_of_an_exponential_queue_is_exact():
    queue = single_server([Work(5, 0.1)])
    # P(wait > t) = utilisation * exp(-t * (1 - utilisation) / service)
    assert 0.5 * math.exp(-queue.percentile_wait(0.99) * 0.5 / 0.1) == pytest.approx(0.01)
    assert queue.percentile_wait(0.5) == 0.0
    assert Queue(0.005, 0.1).percentile_wait(0.99) == 0.0


def test_waits_grow_with_the_load_and_without_bound():
    waits = [single_server([Work(rate, 0.1)]).mean_wait for rate in (1, 5, 9, 9.9)]
    assert waits == sorted(waits)
    assert waits[-1] > 50 * waits[0]
    with pytest.raises(queueing.Overloaded):
        single_server([Work(10, 0.1)])


def test_erlang_has_its_known_values():
    # Of tables: two erlangs and three servers; ten and fifteen.
    assert queueing.erlang_b(2, 3) == pytest.approx(4 / 19)
    assert queueing.erlang_c(2, 3) == pytest.approx(4 / 9)
    assert queueing.erlang_b(10, 15) == pytest.approx(0.0365, abs=1e-4)
    assert queueing.erlang_b(0.7, 1) == pytest.approx(0.7 / 1.7)
    # With one server who waits is who finds it busy.
    assert queueing.erlang_c(0.7, 1) == pytest.approx(0.7)
    with pytest.raises(queueing.Overloaded):
        queueing.erlang_c(3, 3)


def test_as_many_servers_are_found_as_are_needed_and_no_more():
    servers = queueing.servers_for(10, 0.05)
    assert queueing.erlang_c(10, servers) <= 0.05 < queueing.erlang_c(10, servers - 1)


def test_the_fullest_of_many_places_has_more_than_the_mean():
    assert queueing.fullest(100, 1) == 100
    assert 100 < queueing.fullest(100, 10) < queueing.fullest(100, 1000) < 150


@rows("field", ["requests", "cores", "workers", "machines", "memory_gib", "gbit", "redis_cores"])
def test_more_streams_need_no_less_of_anything(field):
    plans = [
        plan(streams, COSTS, Traffic(), Machine()) for streams in (1, 10, 1000, 5000, 100_000, 1_000_000)
    ]
    found = [getattr(one, field) for one in plans]
    assert found == sorted(found)


def test_as_many_requests_begin_as_end():
    """Little's law."""
    assert plan(1000, COSTS, Traffic(seconds=20), Machine()).requests == 50


def test_no_worker_is_planned_busier_than_it_may_be():
    for streams in capacity.PLANS:
        for utilisation in (0.3, 0.6, 0.9):
            made = plan(streams, COSTS, Traffic(), Machine(utilisation=utilisation))
            fullest = queueing.fullest(streams / made.workers, made.workers) / streams * made.cores
            assert fullest <= utilisation
            assert made.cores / made.workers <= utilisation


def test_cheaper_events_need_fewer_workers_and_busier_cores_fewer_still():
    dear = plan(100_000, COSTS, Traffic(), Machine())
    cheap = plan(100_000, COSTS._replace(event=20.0), Traffic(), Machine())
    busier = plan(100_000, COSTS, Traffic(), Machine(utilisation=0.8))
    assert cheap.workers < dear.workers
    assert busier.workers < dear.workers
    assert busier.wait_p99_ms > dear.wait_p99_ms


def test_what_is_used_up_first_follows_from_the_costs():
    assert plan(100_000, COSTS, Traffic(), Machine()).tightest == "the gateways' processors"
    slow_redis = COSTS._replace(redis_us=500.0)
    assert plan(100_000, slow_redis, Traffic(), Machine()).tightest == "Redis"
    slow_store = COSTS._replace(postgres_us=3000.0)
    assert plan(100_000, slow_store, Traffic(), Machine()).tightest == "PostgreSQL"
    idle = Traffic(events=0.01)
    assert plan(100_000, COSTS, idle, Machine(addresses=1)).tightest == "ports towards a provider"


def test_the_page_has_a_table_of_costs_and_three_plans():
    found = capacity.sections(full_results(), Traffic(), Machine(price=0.06))
    assert found[0].rows[0][0] == "a request of 2 KB, same dialect"
    assert "0.06 for a core and hour" in found[0].note
    assert [section.title for section in found[1:]] == [
        "Cross streams",
        "Cross streams of keys with limits",
        "Same-dialect streams",
    ]
    assert found[1].header == ["concurrent streams", "1,000", "100,000", "1,000,000"]


def test_the_price_of_a_million_is_what_their_core_hours_cost():
    row = capacity._kind("", 3600.0, Machine(utilisation=1.0, price=0.04))
    assert row[2:] == ["278", "1.000", "0.0400"]


def test_a_run_that_lacks_something_is_refused_with_the_command_that_measures_it():
    results = full_results()
    del results.runs["D1000-ac"]
    with pytest.raises(capacity.Missing, match="make bench ARGS=--only=D1000-ac"):
        capacity.costs(results)
    results = full_results()
    results.stores = {}
    with pytest.raises(capacity.Missing, match="only=stores"):
        capacity.costs(results)
    with pytest.raises(capacity.Missing):
        capacity.costs(Results())


def test_the_plan_is_written_between_its_marks(tmp_path, capsys):
    source, target = tmp_path / "bench.json", tmp_path / "capacity.md"
    source.write_text(full_results().as_json())
    target.write_text(f"before\n{page.CAPACITY.begin}\n{page.CAPACITY.end}\nafter\n")
    capacity.main([str(source), "--write", str(target), "--price", "0.1", "--cores", "8"])
    assert "0.1 for a core and hour" in target.read_text()
    assert "Machines of 8 cores" in capsys.readouterr().out
    source.write_text(Results().as_json())
    with pytest.raises(SystemExit, match="was not measured"):
        capacity.main([str(source)])
