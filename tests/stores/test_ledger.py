"""The contract of the ledger, over every store."""

from __future__ import annotations

import asyncio
import random
import threading
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from wireglot.stores.durations import Durations
from wireglot.stores.memory import MemoryEngine
from wireglot.stores.records import UsageQuery, UsageRow

DAY = 86_400_000
NOON = int(datetime(2026, 3, 1, 12, tzinfo=UTC).timestamp() * 1000)


@pytest.fixture
def ledger(engine):
    return engine.ledger


def intent(id: str, **more) -> UsageRow:
    fields: dict[str, Any] = {"caller": "c", "started": NOON, "instance": "one", "model": "fast"}
    return UsageRow(id, **fields | more)


def done(id: str, **more) -> UsageRow:
    return intent(id, **{"outcome": "ok", "finished": more.get("started", NOON) + 100, "status": 200} | more)


def rows(run, ledger, **query):
    return run(ledger.rows(UsageQuery(**query), limit=10_000, newest_first=False))


def test_a_row_comes_back_as_it_was(run, ledger):
    whole = UsageRow(
        id="r",
        caller="c",
        started=NOON,
        instance="i",
        operation="chat",
        dialect="openai-chat",
        session="s",
        model="m",
        provider="p",
        upstream_model="um",
        upstream_dialect="anthropic",
        stream=True,
        outcome="client_abort",
        finished=NOON + 5,
        status=499,
        error="aborted",
        attempts=2,
        first_byte=3,
        input=1,
        cache_read=2,
        cache_write=3,
        cache_write_long=4,
        tool_prompt=5,
        output=6,
        reasoning=7,
        source="partial",
        cost=2**40,
        losses=("logprobs", 'a"b'),
        flags=("total",),
    )
    run(ledger.apply([whole, intent("plain")]))
    assert rows(run, ledger) == [intent("plain"), whole]


def test_an_intent_is_completed_once_and_never_changes_again(run, ledger):
    """FAULTS rule L, 102"""
    run(ledger.apply([intent("a")]))
    run(ledger.apply([done("a", output=5)]))
    run(ledger.apply([done("a", output=99, outcome="error"), intent("a")]))
    assert rows(run, ledger) == [done("a", output=5)]


def test_a_completion_without_its_intent_is_the_whole_row(run, ledger):
    """FAULTS 93: the spool may bring the end before the beginning, or without it."""
    run(ledger.apply([done("a", output=5)]))
    run(ledger.apply([intent("a", model="changed")]))
    assert rows(run, ledger) == [done("a", output=5)]


def test_intent_and_completion_may_come_together_in_any_order(run, ledger):
    run(ledger.apply([done("a"), intent("a"), intent("b"), done("b"), done("b", output=1)]))
    assert rows(run, ledger) == [done("a"), done("b")]


def test_a_second_intent_changes_nothing(run, ledger):
    run(ledger.apply([intent("a")]))
    run(ledger.apply([intent("a", model="other")]))
    assert rows(run, ledger) == [intent("a")]


def test_any_order_any_number_of_times_and_at_once_gives_the_same_ledger(run, ledger):
    """FAULTS rule L, 102"""
    chance = random.Random(4)
    ids = [f"r{n:02}" for n in range(40)]
    messages = [[intent(id), done(id, output=n)] for n, id in enumerate(ids)]
    batches = [[chance.choice(pair) for pair in chance.sample(messages, 10)] for _ in range(12)]
    batches += [[pair[1]] for pair in messages]

    async def at_once() -> None:
        await asyncio.gather(*(ledger.apply(batch) for batch in batches))

    run(at_once())
    assert rows(run, ledger) == [done(id, output=n) for n, id in enumerate(ids)]


def test_totals_of_everything_are_one_sum(run, ledger):
    nothing = run(ledger.totals(UsageQuery()))
    assert [(total.group, total.requests, total.took, total.first) for total in nothing] == [
        ((), 0, Durations(), 0)
    ]
    run(
        ledger.apply(
            [
                done(
                    "a",
                    input=10,
                    cache_read=1,
                    cache_write=2,
                    cache_write_long=3,
                    output=4,
                    reasoning=5,
                    cost=7,
                ),
                done("b", started=NOON + 10, finished=NOON + 40, outcome="error", output=2),
                done("c", started=NOON + 20, finished=NOON + 21, outcome="client_abort"),
                intent("d", started=NOON + 30),
            ]
        )
    )
    (total,) = run(ledger.totals(UsageQuery()))
    assert (total.requests, total.failed, total.open, total.unpriced) == (4, 2, 1, 1)
    assert total.tokens == {"input": 10, "cache_read": 1, "cache_write": 5, "output": 6, "reasoning": 5}
    assert (total.cost, total.milliseconds, total.took) == (7, 131, Durations({100: 1, 30: 1, 1: 1}))
    assert (total.first, total.last) == (NOON, NOON + 30)


@pytest.mark.parametrize(("durations", "p50"), [([5], 5), ([5, 9], 5), ([9, 1, 5], 5), ([4, 1, 3, 2], 2)])
def test_half_of_the_requests_took_no_longer_than_p50(run, ledger, durations, p50):
    run(ledger.apply([done(f"r{n}", finished=NOON + took) for n, took in enumerate(durations)]))
    assert run(ledger.totals(UsageQuery()))[0].took.percentile(50) == p50


def test_totals_by_groups_in_their_order(run, ledger):
    run(
        ledger.apply(
            [
                done("a", caller="y", upstream_model="real", provider="p", purpose="main"),
                done("b", caller="x", started=NOON + DAY, purpose="subagent", agent="Explore"),
                done("c", caller="x", started=NOON + DAY - 1, outcome="error", caller_group="research"),
                intent("d", caller="x", session="s"),
            ]
        )
    )

    def groups(*names) -> list[tuple]:
        return [(*total.group, total.requests) for total in run(ledger.totals(UsageQuery(groups=names)))]

    assert groups("caller") == [("x", 3), ("y", 1)]
    assert groups("model") == [("fast", 3), ("real", 1)]
    assert groups("provider") == [("", 3), ("p", 1)]
    assert groups("day") == [("2026-03-01", 2), ("2026-03-02", 2)]
    assert groups("session") == [("", 3), ("s", 1)]
    assert groups("outcome") == [("", 1), ("error", 1), ("ok", 2)]
    assert groups("purpose", "agent") == [("", "", 2), ("main", "", 1), ("subagent", "Explore", 1)]
    assert groups("caller_group") == [("", 3), ("research", 1)]
    assert groups("day", "caller") == [
        ("2026-03-01", "x", 1),
        ("2026-03-01", "y", 1),
        ("2026-03-02", "x", 2),
    ]


def test_a_day_ends_at_midnight_utc(run, ledger):
    midnight = NOON + DAY // 2
    run(ledger.apply([done("a", started=midnight - 1), done("b", started=midnight)]))
    days = run(ledger.totals(UsageQuery(groups=("day",))))
    assert [total.group for total in days] == [("2026-03-01",), ("2026-03-02",)]


def test_a_query_chooses_rows(run, ledger):
    everything = [
        done("a", caller="x", started=NOON, upstream_model="m", provider="p", session="s"),
        done("b", caller="y", started=NOON + 1, model="m", upstream_model="n"),
        done("c", caller="", started=NOON + 2, model="m"),
    ]
    run(ledger.apply(everything))

    def ids(**query) -> str:
        return "".join(row.id for row in rows(run, ledger, **query))

    assert ids() == "abc"
    assert ids(since=NOON + 1) == "bc"
    assert ids(until=NOON + 2) == "ab"
    assert ids(caller="x") == "a"
    assert ids(caller="") == "c"
    assert ids(model="m") == "ac"
    assert ids(provider="p") == "a"
    assert ids(session="s") == "a"
    assert [row.id for row in run(ledger.rows(UsageQuery(), limit=2))] == ["c", "b"]


def test_spent_counts_completed_requests_since_then(run, ledger):
    """R-Z: budgets are seeded with it."""
    run(
        ledger.apply(
            [
                done("a", started=NOON - 1, output=100, cost=100),
                done("b", input=1, cache_read=2, cache_write=3, cache_write_long=4, tool_prompt=5, cost=10),
                done("c", started=NOON + 1, output=6, reasoning=7, outcome="error"),
                intent("d", started=NOON + 1),
                done("e", caller="other", output=1000, cost=1000),
            ]
        )
    )
    assert run(ledger.spent("c", NOON)) == (28, 10)
    assert run(ledger.spent("nobody", 0)) == (0, 0)


def test_spent_of_a_group_is_that_of_all_its_keys(run, ledger):
    run(
        ledger.apply(
            [
                done("a", started=NOON - 1, output=100, cost=100, caller_group="research"),
                done("b", output=1, cost=10, caller_group="research"),
                done("c", caller="other", output=2, cost=20, caller_group="research"),
                done("d", caller="research", output=1000, cost=1000),
                done("e", output=1000, cost=1000, caller_group="sales"),
            ]
        )
    )
    assert run(ledger.spent("research", NOON, "caller_group")) == (3, 30)
    assert run(ledger.spent("c", NOON, "caller")) == (1001, 1010), "whatever groups its key was in"


def test_sessions_come_with_the_last_used_first(run, ledger):
    """R-X-07"""
    run(
        ledger.apply(
            [
                done("a", session="s1", dialect="openai-chat", output=3, cost=5),
                done("b", session="s2", started=NOON + 5, dialect="gemini"),
                done("c", session="s1", started=NOON + 9, dialect="anthropic", model="slow", input=4),
                intent("d", session="s3", started=NOON + 1),
                done("e", started=NOON + 50),
                done("f", caller="other", session="s1", started=NOON + 99, output=1000),
            ]
        )
    )
    found = run(ledger.sessions("c", limit=9))
    assert [session.id for session in found] == ["s1", "s2", "s3"]
    first = found[0]
    assert (first.caller, first.requests, first.tokens, first.cost, first.model) == ("c", 2, 7, 5, "slow")
    assert (first.dialects, first.first, first.last) == (("anthropic", "openai-chat"), NOON, NOON + 9)
    assert [session.id for session in run(ledger.sessions("c", limit=1, before=NOON + 9))] == ["s2"]
    assert [session.id for session in run(ledger.sessions("c", limit=9, before=NOON + 5))] == ["s3"]


def test_sessions_of_the_same_millisecond_are_all_on_some_page(run, ledger):
    """R-X-07"""
    names = ["b", "a", "d\\", "c", "\u00e9"]
    run(
        ledger.apply(
            [done(name, session=name) for name in names] + [done("z", session="z", started=NOON - 1)]
        )
    )
    seen: list[str] = []
    last, id = 0, ""
    while page := run(ledger.sessions("c", limit=2, before=last, beyond=id)):
        seen += [session.id for session in page]
        last, id = page[-1].last, page[-1].id
    assert seen == ["\u00e9", "d\\", "c", "b", "a", "z"]


def test_forgetting_a_session_takes_its_name_off_the_rows_which_stay(run, ledger):
    run(
        ledger.apply([done("a", session="s"), done("b", session="s"), done("o", caller="other", session="s")])
    )
    assert run(ledger.forget_session("c", "s")) == 2
    assert run(ledger.forget_session("c", "s")) == 0
    assert run(ledger.sessions("c", limit=9)) == []
    assert [row.session for row in rows(run, ledger)] == ["", "", "s"]


def test_open_rows_of_instances_are_closed_as_crashes(run, ledger):
    """FAULTS 95, 110"""
    run(ledger.apply([intent("a"), intent("b", instance="two"), intent("c", instance="three"), done("d")]))
    assert run(ledger.close_open(["one", "two", "nobody"], NOON + 7)) == 2
    assert run(ledger.close_open(["one", "two"], NOON + 8)) == 0
    crashed = msgspec.structs.replace(intent("a"), outcome="crash", finished=NOON + 7)
    found = rows(run, ledger)
    assert found[0] == crashed
    assert [row.outcome for row in found] == ["crash", "crash", "", "ok"]


def test_a_crash_is_a_guess_that_gives_way_to_what_its_process_tells_later(run, ledger):
    """FAULTS 93, 95: a machine that was cut off from the store had completed its requests all along."""
    run(ledger.apply([intent("a"), intent("b")]))
    run(ledger.close_open(["one"], NOON + 7))
    run(ledger.apply([intent("a"), msgspec.structs.replace(intent("a"), outcome="crash", finished=NOON + 9)]))
    assert [(row.outcome, row.finished) for row in rows(run, ledger)] == [("crash", NOON + 7)] * 2
    run(ledger.apply([done("a", output=5, cost=3)]))
    run(ledger.apply([done("a", output=99, outcome="error"), intent("a")]))
    run(ledger.close_open(["one"], NOON + 8))
    assert rows(run, ledger)[0] == done("a", output=5, cost=3)
    assert rows(run, ledger)[1].outcome == "crash"
    assert run(ledger.spent("c", 0)) == (5, 3)


def test_odd_names_do_not_harm_the_rows_beside_them(run, ledger):
    """T5: what a client calls its model or session is not trusted."""
    odd = ["a\0b", "\ud800", "\\u0000", "'; DROP TABLE usage; --", "🙂"]
    run(ledger.apply([done(name, caller=name, session=name, model=name) for name in odd]))
    assert {row.model for row in rows(run, ledger)} == set(odd)
    totals = run(ledger.totals(UsageQuery(groups=("caller",))))
    assert [total.group for total in totals] == sorted((name,) for name in odd)
    for name in odd:
        assert [row.id for row in rows(run, ledger, caller=name, model=name, session=name)] == [name]
        assert [session.id for session in run(ledger.sessions(name, limit=9))] == [name]
        assert run(ledger.forget_session(name, name)) == 1


def test_every_word_of_a_row_comes_back_as_it_was(run, ledger):
    words = ("instance", "operation", "dialect", "session", "model", "provider", "upstream_model", "error")
    row = done("a", **dict.fromkeys(words, "C:\\u0041\\\\"), upstream_dialect="\\\\")
    run(ledger.apply([row]))
    assert rows(run, ledger, provider=row.provider) == [row]
    (total,) = run(ledger.totals(UsageQuery(groups=("provider", "model"))))
    assert total.group == (row.provider, row.upstream_model)
    assert run(ledger.sessions("c", limit=1))[0].dialects == (row.dialect,)


def test_nothing_to_apply_is_no_fault(run, ledger):
    run(ledger.apply([]))
    assert run(ledger.close_open([], NOON)) == 0


def test_totals_in_memory_are_added_up_beside_the_loop(run):
    threads = []

    class Watched(UsageQuery, frozen=True):
        def chooses(self, row: UsageRow) -> bool:
            threads.append(threading.current_thread())
            return super().chooses(row)

    ledger = MemoryEngine().ledger
    run(ledger.apply([done("a"), done("b")]))
    assert run(ledger.totals(Watched()))[0].requests == 2
    assert threading.main_thread() not in threads
    assert len(threads) == 2
