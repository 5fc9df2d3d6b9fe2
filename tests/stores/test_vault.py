"""The contract of the vault, over every store."""

from __future__ import annotations

from wireglot.stores.memory.engine import MemoryVault


def test_what_was_kept_is_recalled(run, vault):
    run(vault.keep("t", {"a": b"\0one", "b": b""}, 3600))
    assert run(vault.recall("t", ["a", "b", "nothing"])) == {"a": b"\0one", "b": b""}
    assert run(vault.recall("t", [])) == {}


def test_the_last_value_under_a_name_holds(run, vault):
    run(vault.keep("t", {"a": b"one"}, 3600))
    run(vault.keep("t", {"a": b"two"}, 3600))
    assert run(vault.recall("t", ["a"])) == {"a": b"two"}


def test_another_caller_recalls_nothing(run, vault):
    """T19"""
    run(vault.keep("t", {"a": b"mine"}, 3600))
    assert run(vault.recall("u", ["a"])) == {}
    run(vault.keep("u", {"a": b"theirs"}, 3600))
    assert run(vault.recall("t", ["a"])) == {"a": b"mine"}


def test_tenant_and_name_do_not_run_together(run, vault):
    """T19"""
    run(vault.keep("t:a", {"b": b"1"}, 3600))
    run(vault.keep("t", {"a:b": b"2"}, 3600))
    assert run(vault.recall("t:a", ["b"])) == {"b": b"1"}
    assert run(vault.recall("t", ["a:b"])) == {"a:b": b"2"}


def test_odd_names_are_names(run, vault):
    odd = {name: repr(name).encode() for name in ["\0", "\\", "é🙂", "\ud800", "'", "{x}", "*"]}
    run(vault.keep("{t}*", odd, 3600))
    assert run(vault.recall("{t}*", list(odd))) == odd


def test_an_entry_in_memory_lasts_for_its_seconds_and_not_a_millisecond_longer(run):
    now = [1_000_000]
    vault = MemoryVault(lambda: now[0])
    run(vault.keep("t", {"a": b"one"}, 2))
    now[0] += 1999
    assert run(vault.recall("t", ["a"])) == {"a": b"one"}
    now[0] += 1
    assert run(vault.recall("t", ["a"])) == {}


def test_who_has_nothing_is_known_to_lack_it_until_something_comes(run):
    vault = MemoryVault(lambda: 0)
    assert run(vault.recall("t", ["a"])) == {}
    assert run(vault.recall("u", ["a"])) == {}
    assert vault.lacking == {"t", "u"}
    run(vault.keep("t", {"a": b"one"}, 1))
    assert vault.lacking == {"u"}
