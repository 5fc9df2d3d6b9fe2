"""One grant for everybody, renewed once and before it runs out."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from functools import partial
from threading import Event, get_ident

import pytest

from tests.waiting import until
from wireglot.logins.login import Grant, LoginFailed
from wireglot.logins.renewal import EARLY_SECONDS, FRESH_SECONDS, LEEWAY_SECONDS, RETRY_MOST_SECONDS, Renewal


class Giver:
    """The one that gives out grants, as slowly and as badly as it is asked to."""

    def __init__(self, seconds: float = 3600.0) -> None:
        self.seconds = seconds
        self.asked = 0
        self.inside = 0
        self.most_inside = 0
        self.threads: set[int] = set()
        self.open = Event()
        self.open.set()
        self.raises: Exception | None = None

    def __call__(self) -> Grant:
        self.asked += 1
        self.inside += 1
        self.most_inside = max(self.inside, self.most_inside)
        self.threads.add(get_ident())
        number = self.asked
        try:
            assert self.open.wait(60)
            if self.raises is not None:
                raise self.raises
            return Grant(f"token-{number}", self.seconds)
        finally:
            self.inside -= 1


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def made(
    giver: Giver, reported: Callable[[Grant | LoginFailed], None] = lambda outcome: None
) -> tuple[Renewal, Clock]:
    clock = Clock()
    return Renewal(giver, reported, clock), clock


async def asked(renewal: Renewal) -> str:
    grant = renewal.grant()
    return (grant or await renewal.renewed()).secret


def run(test: Callable[[], object]) -> None:
    asyncio.run(test())  # type: ignore[arg-type]  # a coroutine function


def test_fifty_at_once_cause_one_renewal_beside_the_loop() -> None:
    async def main() -> None:
        giver = Giver()
        renewal, _ = made(giver)
        giver.open.clear()
        tasks = [asyncio.create_task(asked(renewal)) for _ in range(50)]
        await until(lambda: giver.inside)
        assert not any(task.done() for task in tasks)  # the loop goes on meanwhile
        giver.open.set()
        assert set(await asyncio.gather(*tasks)) == {"token-1"}
        assert (giver.asked, giver.most_inside) == (1, 1)
        assert get_ident() not in giver.threads

    run(main)


def test_while_the_old_one_is_good_nobody_waits_for_the_new_one() -> None:
    async def main() -> None:
        giver = Giver()
        renewal, clock = made(giver)
        assert await asked(renewal) == "token-1"
        clock.now += 3600 - EARLY_SECONDS - 1
        assert renewal.grant() is not None
        assert giver.asked == 1  # not yet
        clock.now += 2
        giver.open.clear()
        for _ in range(50):
            grant = renewal.grant()
            assert grant is not None
            assert grant.secret == "token-1"
            await asyncio.sleep(0)
        await until(lambda: giver.inside)
        giver.open.set()
        await until(lambda: _secret(renewal) == "token-2")
        assert (giver.asked, giver.most_inside) == (2, 1)

    run(main)


def _secret(renewal: Renewal) -> str:
    grant = renewal.grant()
    return grant.secret if grant is not None else ""


def test_a_grant_is_not_used_to_its_last_second() -> None:
    async def main() -> None:
        giver = Giver(seconds=100)
        renewal, clock = made(giver)
        assert await asked(renewal) == "token-1"
        clock.now += 100 - LEEWAY_SECONDS
        assert await asked(renewal) == "token-2"

    run(main)


def test_a_short_grant_is_not_renewed_without_end() -> None:
    """Metadata servers give out the same token until five minutes before its end."""

    async def main() -> None:
        giver = Giver(seconds=240)
        renewal, clock = made(giver)
        await asked(renewal)
        clock.now += 119
        assert _secret(renewal) == "token-1"
        await asyncio.sleep(0)
        assert giver.asked == 1

    run(main)


def test_what_has_no_end_is_never_renewed() -> None:
    async def main() -> None:
        giver = Giver(seconds=math.inf)
        renewal, clock = made(giver)
        await asked(renewal)
        clock.now += 1e9
        assert _secret(renewal) == "token-1"
        assert giver.asked == 1

    run(main)


def test_a_renewal_that_fails_is_reported_to_nobody_while_the_old_one_is_good_and_tried_again_later() -> None:
    async def main() -> None:
        heard: list[Grant | LoginFailed] = []
        giver = Giver()
        renewal, clock = made(giver, heard.append)
        await asked(renewal)
        clock.now += 3600 - EARLY_SECONDS
        giver.raises = LoginFailed("the door is shut", "knock")
        pauses = []
        for _ in range(8):
            before = len(heard)
            assert _secret(renewal) == "token-1"
            await until(partial(lambda before: len(heard) > before, before))
            asked_before = giver.asked
            assert _secret(renewal) == "token-1"  # within the pause nobody is asked
            assert giver.asked == asked_before
            pauses.append(renewal.retry_in)
            clock.now += renewal.retry_in
        assert pauses == [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, RETRY_MOST_SECONDS, RETRY_MOST_SECONDS]
        assert isinstance(heard[0], Grant)
        assert {str(failed) for failed in heard[1:]} == {"the door is shut"}
        giver.raises = None
        await until(lambda: _secret(renewal) == "token-10")
        assert isinstance(heard[-1], Grant)

    run(main)


def test_without_any_grant_all_are_given_the_reason_and_its_giver_is_left_alone_for_a_while() -> None:
    async def main() -> None:
        giver = Giver()
        giver.raises = LoginFailed("no such account", "make one")
        renewal, clock = made(giver)
        results = await asyncio.gather(*(asked(renewal) for _ in range(20)), return_exceptions=True)
        assert {str(result) for result in results} == {"no such account"}
        assert {result.fix for result in results if isinstance(result, LoginFailed)} == {"make one"}
        assert giver.asked == 1
        with pytest.raises(LoginFailed):
            await asked(renewal)
        assert giver.asked == 1
        giver.raises = None
        clock.now += renewal.retry_in
        assert await asked(renewal) == "token-2"

    run(main)


def test_anyone_who_leaves_while_waiting_takes_nothing_from_the_others() -> None:
    async def main() -> None:
        giver = Giver()
        renewal, _ = made(giver)
        giver.open.clear()
        leaving = asyncio.create_task(asked(renewal))
        staying = asyncio.create_task(asked(renewal))
        await until(lambda: giver.inside)
        leaving.cancel()
        await asyncio.gather(leaving, return_exceptions=True)
        giver.open.set()
        assert await staying == "token-1"
        assert giver.asked == 1

    run(main)


def test_a_grant_that_is_refused_is_renewed_unless_it_is_fresh() -> None:
    """A revoked token: a new one may help. One that was given a moment ago is not the reason."""

    async def main() -> None:
        giver = Giver()
        renewal, clock = made(giver)
        assert not renewal.refused("token-0")
        await asked(renewal)
        assert not renewal.refused("token-1")
        assert _secret(renewal) == "token-1"
        clock.now += FRESH_SECONDS
        assert renewal.refused("token-1")
        assert await asked(renewal) == "token-2"
        assert renewal.refused("token-1")  # of a request that was on its way: the new one is there
        assert not renewal.refused("token-2")
        assert giver.asked == 2

    run(main)


def test_a_grant_that_is_refused_while_it_is_renewed_is_used_by_nobody_any_more() -> None:
    """Else those who ask again would be refused again, without end, until the new one is there."""

    async def main() -> None:
        giver = Giver()
        renewal, clock = made(giver)
        await asked(renewal)
        clock.now += 3600 - EARLY_SECONDS
        giver.open.clear()
        assert _secret(renewal) == "token-1"
        await until(lambda: giver.inside)
        assert renewal.refused("token-1")
        assert renewal.grant() is None
        waiting = asyncio.create_task(asked(renewal))
        giver.open.set()
        assert await waiting == "token-2"
        assert giver.asked == 2

    run(main)


def test_what_a_library_raises_is_reported_by_its_name_and_not_by_its_words() -> None:
    async def main() -> None:
        giver = Giver()
        giver.raises = KeyError("s3cret-value")
        renewal, _ = made(giver)
        with pytest.raises(LoginFailed, match="KeyError") as reported:
            await asked(renewal)
        assert reported.value.message == "signing in failed (KeyError)"
        assert reported.value.fix == "see the library's own manual"

    run(main)


def test_a_token_that_has_run_out_when_it_is_given_tells_of_the_clock() -> None:
    async def main() -> None:
        renewal, _ = made(Giver(seconds=-30))
        with pytest.raises(LoginFailed) as reported:
            await asked(renewal)
        assert reported.value.message == "the token that was given has run out already"
        assert reported.value.fix == "set the clock of this machine"

    run(main)


def test_anyone_who_never_answers_is_not_waited_for_without_end() -> None:
    async def main() -> None:
        giver = Giver()
        giver.open.clear()
        renewal = Renewal(giver, clock=Clock(), patience=0.01)
        with pytest.raises(LoginFailed, match="no answer"):
            await asked(renewal)
        giver.open.set()  # what comes too late is for nobody
        assert renewal.grant() is None

    run(main)


def test_a_loop_that_ends_while_somebody_is_asked_is_no_error() -> None:
    giver = Giver()
    giver.open.clear()

    async def main() -> None:
        renewal, _ = made(giver)
        assert renewal.grant() is None
        await until(lambda: giver.inside)

    run(main)
    giver.open.set()


@pytest.mark.parametrize("seconds", [math.nan, -math.inf, -1.0, 0.0])
def test_a_grant_whose_end_is_no_time_to_come_is_none_and_is_asked_for_again(seconds: float) -> None:
    """Not a number is never reached: the one that waited for it waited for good."""

    async def work() -> None:
        giver = Giver(seconds)
        renewal, clock = made(giver)
        with pytest.raises(LoginFailed):
            await asked(renewal)
        giver.seconds = 3600.0
        clock.now += 2 * RETRY_MOST_SECONDS
        assert await asked(renewal) == "token-2"

    asyncio.run(work())
