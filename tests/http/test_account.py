"""Who may hold more bytes, and who waits until others are through."""

from __future__ import annotations

import asyncio
from typing import cast

import pytest

from wireglot.http.account import ByteAccount, MemoryLease
from wireglot.http.transport import Answer


def grows(lease: MemoryLease, size: int) -> bool:
    """Whether there is room for it at once."""
    lease.grow(size)
    return not lease.waits


def test_one_goes_past_the_limit_and_all_others_wait_for_it() -> None:
    account = ByteAccount(100)
    first, second, third = MemoryLease(account), MemoryLease(account), MemoryLease(account)
    assert grows(first, 60)
    assert grows(second, 60)
    assert not grows(first, 10)
    assert not grows(third, 10)
    assert grows(second, 1000)
    assert account.waiting == 2
    second.release()
    assert (first.held, third.held, account.waiting) == (70, 10, 0)
    assert account.held == 80


def test_they_are_let_in_as_they_came_until_one_is_past_the_limit_again() -> None:
    account = ByteAccount(100)
    holder = MemoryLease(account)
    grows(holder, 101)
    waiting = [MemoryLease(account) for _ in range(4)]
    assert not any(grows(each, 60) for each in waiting)
    holder.release()
    assert [each.held for each in waiting] == [60, 60, 0, 0]
    waiting[0].release()
    assert [each.held for each in waiting] == [0, 60, 60, 0]


def test_what_a_client_has_yet_to_take_keeps_the_next_waiting() -> None:
    """Else each answer that is done would let one more past the limit, whether it is taken or not."""
    account = ByteAccount(100)
    done, waiting = MemoryLease(account), MemoryLease(account)
    grows(done, 150)
    assert not grows(waiting, 10)
    account.owe(150)
    done.release()
    assert account.waiting == 1
    account.owe(-150)
    assert (waiting.held, account.waiting, account.held) == (10, 0, 10)


def test_one_that_leaves_while_it_waits_is_not_let_in() -> None:
    account = ByteAccount(100)
    holder, gone, waiting = MemoryLease(account), MemoryLease(account), MemoryLease(account)
    grows(holder, 101)
    assert not grows(gone, 10)
    assert not grows(waiting, 10)
    gone.release()
    holder.release()
    assert (gone.held, waiting.held, account.held) == (0, 10, 10)


def test_a_limit_that_is_lowered_leaves_not_all_of_them_waiting() -> None:
    account = ByteAccount(100)
    leases = [MemoryLease(account) for _ in range(3)]
    assert all(grows(each, 30) for each in leases)
    account.limit = 20
    assert [grows(each, 5) for each in leases] == [False, False, True]
    leases[2].release()
    assert [each.held for each in leases] == [35, 30, 0]
    leases[0].release()
    assert [each.held for each in leases] == [0, 35, 0]


def test_what_is_only_remembered_is_given_up_before_anybody_waits() -> None:
    account = ByteAccount(100)
    account.remembered = 80

    def forget(size: int) -> None:
        account.remembered -= size

    account.forget = forget
    one, other = MemoryLease(account), MemoryLease(account)
    assert grows(one, 60)
    assert grows(other, 30)
    assert account.remembered == 40


class Full(Exception):
    """Of this test alone."""


def test_an_attempt_takes_the_place_of_the_one_before_and_is_refused_where_there_is_no_room() -> None:
    account = ByteAccount(100, Full)
    lease = MemoryLease(account)
    lease.take(30)
    lease.attempt(60)
    assert (lease.held, account.held) == (90, 90)
    lease.grow(20)
    assert account.held == 110
    lease.attempt(10)
    assert (lease.held, account.held, account.shed) == (40, 40, 0)
    with pytest.raises(Full):
        lease.another().take(61)
    assert account.shed == 1
    lease.release()
    assert (lease.held, account.held) == (0, 61)


def test_an_answer_is_paused_until_there_is_room_for_what_has_come_of_it() -> None:
    account = ByteAccount(100)
    steps: list[str] = []

    class Coming:
        def pause(self) -> None:
            steps.append("pause")

        def resume(self) -> None:
            steps.append("resume")

    holder, lease = MemoryLease(account), MemoryLease(account)
    holder.grow(101)
    come = lease.reading(cast(Answer, Coming()))
    come(5)
    come(6)
    assert (steps, lease.waits, lease.held) == (["pause", "pause"], True, 0)
    holder.release()
    assert (steps[2:], lease.waits, lease.held, account.held) == (["resume"], False, 11, 11)


def test_there_is_room_up_to_the_limit_to_the_byte() -> None:
    account = ByteAccount(100)
    forgotten: list[int] = []
    account.forget = forgotten.append
    assert not account.lacks(100)
    assert account.lacks(101)
    assert forgotten == [], "nothing is cached"
    account.held, account.remembered = 50, 30
    assert not account.lacks(20)
    assert account.lacks(25)
    assert forgotten == [5]
    account.give(10)
    assert account.held == 40


def test_one_that_reaches_the_limit_exactly_needs_no_room() -> None:
    account = ByteAccount(100)
    first, second, third = MemoryLease(account), MemoryLease(account), MemoryLease(account)
    assert grows(first, 60)
    assert grows(second, 40)
    assert grows(third, 1), "the limit itself is not past it"
    assert not grows(first, 1)
    account.give(2)
    assert (first.held, account.waiting) == (61, 0)


def test_what_waits_for_room_is_done_when_there_is_some() -> None:
    async def scenario() -> None:
        account = ByteAccount(100)
        holder, lease = MemoryLease(account), MemoryLease(account)
        await lease.room(5)
        assert lease.held == 5
        holder.grow(101)
        waiting = asyncio.ensure_future(lease.room(7))
        await asyncio.sleep(0)
        assert (waiting.done(), lease.waits, lease.missing, account.waiting) == (False, True, 7, 1)
        holder.release()
        await waiting
        assert (lease.held, lease.missing, lease.waits) == (12, 0, False)

    asyncio.run(scenario())


def test_what_is_released_gives_back_all_but_what_is_kept() -> None:
    account = ByteAccount(100)
    lease = MemoryLease(account)
    lease.take(30)
    lease.release(keep=10)
    assert (lease.held, account.held) == (10, 10)
    lease.attempt(5)
    assert lease.lasting == 10
    lease.attempt(7)
    assert (lease.held, account.held) == (17, 17)
    with pytest.raises(MemoryError):
        lease.take(84)
    assert account.shed == 1
