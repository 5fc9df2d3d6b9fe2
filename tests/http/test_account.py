"""Who may hold more bytes, and who waits until others are through."""

from __future__ import annotations

from wireglot.http.account import ByteAccount


class Asker:
    """Wants so many bytes more, each time that it is let in."""

    def __init__(self, account: ByteAccount) -> None:
        self.account = account
        self.bytes = 0
        self._asked = 0

    def ask(self, size: int) -> bool:
        self._asked = size
        if self.account.admits(self):
            self.admitted()
            return True
        self.account.wait(self)
        return False

    def admitted(self) -> None:
        self.account.held += self._asked
        self.bytes += self._asked
        self._asked = 0

    def leave(self) -> None:
        self.account.leave(self)
        self.account.give(self.bytes)
        self.bytes = 0


def test_one_goes_past_the_limit_and_all_others_wait_for_it() -> None:
    account = ByteAccount(lambda: 100)
    first, second, third = Asker(account), Asker(account), Asker(account)
    assert first.ask(60)
    assert second.ask(60)
    assert not first.ask(10)
    assert not third.ask(10)
    assert second.ask(1000)
    assert account.waiting == 2
    second.leave()
    assert (first.bytes, third.bytes, account.waiting) == (70, 10, 0)
    assert account.held == 80


def test_they_are_let_in_as_they_came_until_one_is_past_the_limit_again() -> None:
    account = ByteAccount(lambda: 100)
    holder = Asker(account)
    holder.ask(101)
    waiting = [Asker(account) for _ in range(4)]
    assert not any(each.ask(60) for each in waiting)
    holder.leave()
    assert [each.bytes for each in waiting] == [60, 60, 0, 0]
    waiting[0].leave()
    assert [each.bytes for each in waiting] == [0, 60, 60, 0]


def test_what_a_client_has_yet_to_take_keeps_the_next_waiting() -> None:
    """Else each answer that is done would let one more past the limit, whether it is taken or not."""
    account = ByteAccount(lambda: 100)
    done, waiting = Asker(account), Asker(account)
    done.ask(150)
    assert not waiting.ask(10)
    account.owe(150)
    done.leave()
    assert account.waiting == 1
    account.owe(-150)
    assert (waiting.bytes, account.waiting, account.held) == (10, 0, 10)


def test_one_that_leaves_while_it_waits_is_not_let_in() -> None:
    account = ByteAccount(lambda: 100)
    holder, gone, waiting = Asker(account), Asker(account), Asker(account)
    holder.ask(101)
    assert not gone.ask(10)
    assert not waiting.ask(10)
    gone.leave()
    holder.leave()
    assert (gone.bytes, waiting.bytes, account.held) == (0, 10, 10)


def test_a_limit_that_is_lowered_leaves_not_all_of_them_waiting() -> None:
    most = 100
    account = ByteAccount(lambda: most)
    askers = [Asker(account) for _ in range(3)]
    assert all(each.ask(30) for each in askers)
    most = 20
    assert [each.ask(5) for each in askers] == [False, False, True]
    askers[2].leave()
    assert [each.bytes for each in askers] == [35, 30, 0]
    askers[0].leave()
    assert [each.bytes for each in askers] == [0, 35, 0]


def test_what_is_only_remembered_is_given_up_before_anybody_waits() -> None:
    account = ByteAccount(lambda: 100)
    account.remembered = 80

    def forget(size: int) -> None:
        account.remembered -= size

    account.forget = forget
    one, other = Asker(account), Asker(account)
    assert one.ask(60)
    assert other.ask(30)
    assert account.remembered == 40
