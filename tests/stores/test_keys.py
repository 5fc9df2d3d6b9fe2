"""The contract of client keys, over every store."""

from __future__ import annotations

import asyncio

import msgspec

from wireglot.stores.records import KeyQuotas, KeyRow

WHOLE = KeyRow(
    name="team",
    digest="d" * 64,
    prefix="wg-abc",
    created=5,
    models=("fast", "sl*w"),
    limits=KeyQuotas(requests_per_minute=3, cost_per_month=2**40),
    losses="refuse",
    expires=7,
    revoked=8,
    old_digest="e" * 64,
    old_until=9,
)


def test_a_key_comes_back_as_it_was(run, engine):
    other = KeyRow("a", "0" * 64, "wg-000", 1)
    run(engine.keys.put(WHOLE))
    run(engine.keys.put(other))
    assert sorted(run(engine.keys.all()), key=lambda row: row.name) == [other, WHOLE]


def test_the_version_changes_with_every_change(run, engine):
    """FAULTS 90: how every worker hears of a revoked key."""
    seen = [run(engine.keys.version())]
    run(engine.keys.put(WHOLE))
    seen.append(run(engine.keys.version()))
    run(engine.keys.put(msgspec.structs.replace(WHOLE, revoked=99)))
    seen.append(run(engine.keys.version()))
    assert len(set(seen)) == 3
    assert run(engine.keys.version()) == seen[-1]


def test_a_name_is_never_given_twice(run, engine):
    assert run(engine.keys.put(WHOLE, new=True)) is True
    before = run(engine.keys.version())
    assert run(engine.keys.put(msgspec.structs.replace(WHOLE, digest="f" * 64), new=True)) is False
    assert run(engine.keys.all()) == [WHOLE]
    assert run(engine.keys.version()) == before


def test_a_key_that_is_deleted_was_never_there(run, engine):
    """[M6] One trial key is no reason to delete the store."""
    run(engine.keys.put(WHOLE))
    before = run(engine.keys.version())
    assert run(engine.keys.delete(WHOLE.name)) is True
    assert run(engine.keys.all()) == []
    assert run(engine.keys.version()) != before
    assert run(engine.keys.delete(WHOLE.name)) is False
    assert run(engine.keys.put(WHOLE, new=True)) is True


def test_a_change_of_what_has_changed_meanwhile_is_refused(run, engine):
    first = msgspec.structs.replace(WHOLE, revoked=0)
    assert run(engine.keys.put(first, over=WHOLE)) is False  # there is none yet
    run(engine.keys.put(first))
    assert run(engine.keys.put(msgspec.structs.replace(WHOLE, revoked=11), over=first)) is True
    assert run(engine.keys.put(msgspec.structs.replace(first, models=("other",)), over=first)) is False
    (found,) = run(engine.keys.all())
    assert (found.revoked, found.models) == (11, WHOLE.models)


def test_of_many_that_create_the_same_key_one_succeeds(run, engine):
    async def race():
        rows = [msgspec.structs.replace(WHOLE, digest=f"{n:064}") for n in range(20)]
        return await asyncio.gather(*(engine.keys.put(row, new=True) for row in rows))

    won = run(race())
    assert won.count(True) == 1
    assert run(engine.keys.all())[0].digest == f"{won.index(True):064}"


def test_a_key_is_found_by_its_name(run, engine):
    run(engine.keys.put(WHOLE))
    assert run(engine.keys.get(WHOLE.name)) == WHOLE
    assert run(engine.keys.get("other")) is None
    assert run(engine.keys.get("\ud800 \\ \0")) is None


def test_only_what_was_written_since_a_version_has_changed(run, engine):
    others = [KeyRow(f"other-{n}", f"{n:064}", "wg-000", 1) for n in range(5)]
    run(engine.load(others))
    last = KeyRow("last", "f" * 64, "wg-000", 1)
    run(engine.keys.put(last))
    before = run(engine.keys.version())
    run(engine.keys.put(WHOLE, new=True))
    assert run(engine.keys.changed(before)) == [last, WHOLE]
    changed = msgspec.structs.replace(others[3], revoked=7)
    run(engine.keys.put(changed, over=others[3]))
    assert run(engine.keys.changed(before)) == [last, WHOLE, changed]
    assert run(engine.keys.changed(before + 1)) == [WHOLE, changed]


def test_the_change_of_a_key_that_is_gone_or_was_changed_twice_cannot_be_reported(run, engine):
    run(engine.keys.put(WHOLE))
    before = run(engine.keys.version())
    run(engine.keys.delete(WHOLE.name))
    assert run(engine.keys.changed(before)) is None
    run(engine.keys.put(WHOLE))
    assert run(engine.keys.changed(before)) is None
    assert run(engine.keys.changed(before + 1)) is None
    assert run(engine.keys.changed(run(engine.keys.version()))) is None
    assert run(engine.keys.changed(run(engine.keys.version()) + 5)) is None
