"""One login's grant, shared by all requests: renewed once, in a worker thread, before it expires.

While the grant is valid no request waits: in its last minutes the first request starts a renewal, and all use
the old grant until the new one is there. Only without a valid grant do requests wait, all of them for one
renewal. A failed renewal is not retried at once: until then, with a valid grant requests are not affected,
and without one they get the reason.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import Callable
from threading import Thread
from typing import Final, assert_never

from wireglot.logins.aws import obtain_aws
from wireglot.logins.entra import obtain_entra
from wireglot.logins.google import obtain_google
from wireglot.logins.login import AwsLogin, EntraLogin, GoogleLogin, Grant, Login, LoginFailed

EARLY_SECONDS: Final = 300.0
"""How long before its end a grant is renewed; half its lifetime if that is shorter."""
LEEWAY_SECONDS: Final = 10.0
"""How long before its end a grant is not used any more: a request takes time to arrive."""
RETRY_LEAST_SECONDS: Final = 1.0
# Seconds between two attempts to renew a sign-in.
RETRY_MOST_SECONDS: Final = 60.0
PATIENCE_SECONDS: Final = 30.0
"""How long a renewal is waited for: the server may answer a byte at a time."""
FRESH_SECONDS: Final = 60.0
"""If a refused grant is younger than this, its age is not the reason."""

Reported = Callable[[Grant | LoginFailed], None]


class Renewal:
    """`obtain` blocks, and is called in a thread, never twice at once. `reported` is called with each
    renewal's result, or its failure."""

    def __init__(
        self,
        obtain: Callable[[], Grant],
        reported: Reported = lambda outcome: None,
        clock: Callable[[], float] | None = None,
        patience: float = PATIENCE_SECONDS,
    ) -> None:
        self._obtain = obtain
        self._reported = reported
        self._clock = clock
        self._patience = patience
        self._grant: Grant | None = None
        self._since = 0.0
        self._renew_at = 0.0
        self._good_until = 0.0
        self._failed: LoginFailed | None = None
        self._retry_at = 0.0
        self._pause = 0.0
        self._renewing: asyncio.Task[None] | None = None

    @property
    def retry_in(self) -> float:
        """Seconds until a failed renewal is retried."""
        return max(0.0, self._retry_at - self._now())

    def grant(self) -> Grant | None:
        """The one to use now; None: wait for `renewed`."""
        now = self._now()
        if now >= self._renew_at and now >= self._retry_at:
            self._begin()
        return self._grant if now < self._good_until else None

    async def renewed(self) -> Grant:
        """For callers without a grant. Raises LoginFailed."""
        renewing = self._renewing
        if renewing is not None:
            # A cancelled caller does not affect the others.
            await asyncio.shield(renewing)
        grant = self._grant
        if grant is not None and self._now() < self._good_until:
            return grant
        assert self._failed is not None, "there was no grant, so a renewal has been tried"
        raise LoginFailed(self._failed.message, self._failed.fix)

    def refused(self, secret: str) -> bool:
        """The cloud rejected a grant. Returns whether another one may help: one that exists by now, or one
        that the next request will wait for."""
        now = self._now()
        if self._grant is None or self._grant.secret != secret:
            return self._grant is not None or self._renewing is not None
        if now - self._since < FRESH_SECONDS:
            return False
        self._good_until = self._renew_at = now
        return self._renewing is not None or now >= self._retry_at

    def _begin(self) -> None:
        if self._renewing is None:
            self._renewing = asyncio.get_running_loop().create_task(self._renew())

    async def _renew(self) -> None:
        started = self._now()
        try:
            grant = await self._obtained()
            if not grant.seconds > LEEWAY_SECONDS:  # nan is not a time, either
                raise LoginFailed(
                    "the token that was given has run out already", "set the clock of this machine"
                )
        except LoginFailed as failed:
            self._pause = min(RETRY_MOST_SECONDS, max(RETRY_LEAST_SECONDS, 2 * self._pause))
            self._retry_at = self._now() + self._pause
            self._failed = failed.with_traceback(None)
        else:
            self._grant, self._since, self._failed = grant, started, None
            self._pause = self._retry_at = 0.0
            self._good_until = started + grant.seconds - LEEWAY_SECONDS
            self._renew_at = started + grant.seconds - min(EARLY_SECONDS, grant.seconds / 2)
            if math.isinf(grant.seconds):
                self._renew_at = math.inf
        finally:
            self._renewing = None
        self._reported(self._failed or self._good())

    async def _obtained(self) -> Grant:
        try:
            async with asyncio.timeout(self._patience):
                return await _beside(self._obtain)
        except TimeoutError:
            text = f"no answer within {self._patience:.0f} s"
            raise LoginFailed(text, "check the network of this machine, and `proxy`") from None

    def _good(self) -> Grant:
        assert self._grant is not None, "a renewal that did not fail"
        return self._grant

    def _now(self) -> float:
        return self._clock() if self._clock is not None else asyncio.get_running_loop().time()


async def _beside(work: Callable[[], Grant]) -> Grant:
    """In a thread that is not joined at the end of the process: a metadata server may not answer."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Grant] = loop.create_future()

    def tell(grant: Grant | None, failed: LoginFailed | None) -> None:
        if done.cancelled():
            return
        if grant is not None:
            done.set_result(grant)
        else:
            assert failed is not None
            done.set_exception(failed)

    def run() -> None:
        grant, failed = None, None
        try:
            grant = work()
        except LoginFailed as fault:
            failed = fault
        except Exception as bug:  # whatever a vendor's library raises, waiting callers are informed
            failed = LoginFailed(f"signing in failed ({type(bug).__name__})", "see the library's own manual")
        with contextlib.suppress(RuntimeError):  # the loop has ended meanwhile
            loop.call_soon_threadsafe(tell, grant, failed)

    Thread(target=run, name="sign-in", daemon=True).start()
    return await done


def obtain(login: Login) -> Grant:
    """Blocks as long as the server takes. Raises LoginFailed."""
    match login:
        case GoogleLogin():
            return obtain_google(login)
        case EntraLogin():
            return obtain_entra(login)
        case AwsLogin():
            return obtain_aws(login)
        case _ as never:
            assert_never(never)
