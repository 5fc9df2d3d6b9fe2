"""The tries at one target: its circuit breaker, its budget of retries, and what failed before."""

from __future__ import annotations

import asyncio
import random
from typing import Final

from wireglot.gateway.relay import refusals
from wireglot.gateway.relay.after import after, resting
from wireglot.gateway.relay.sign_ins import SignIns
from wireglot.gateway.request.exchange import Exchange
from wireglot.gateway.settings import Credential
from wireglot.gateway.targets.health import Health, SpentAccount
from wireglot.gateway.targets.routing import Target
from wireglot_core.ir import failures
from wireglot_core.ir.failures import AttemptFailed

_UNBUDGETED: Final = frozenset({"credential", "answer"})
"""Retries that put no load on a failing upstream."""


class Tries:
    """`check` and `begin` before each try; then one of `answered`, `go_on` and `failed`; `end` of a probe."""

    def __init__(self, exchange: Exchange, target: Target, health: Health, sign_ins: SignIns) -> None:
        self._exchange = exchange
        self._target = target
        self._health = health
        self._sign_ins = sign_ins
        self._breaker = health.breakers[target.name]
        self._budget = health.budgets[target.provider.name]
        self._policy = target.provider.breaker
        self._caller = exchange.job.caller.name
        self._now = asyncio.get_running_loop().time
        self._earlier: AttemptFailed | None = None
        self.is_probe = False
        self.number = self._unanswered = 0

    def check(self) -> None:
        """Raises the failure of a target whose breaker is open."""
        if self._breaker.open_until is not None and not self.is_probe:
            closed_for = self._breaker.wait(self._now(), self._caller)
            if closed_for > 0:
                raise resting(self._target.name, closed_for)

    def begin(self) -> None:
        if self._breaker.open_until is not None and not self.is_probe:
            self.is_probe = self._breaker.begin(self._now(), self._caller)
        self.number += 1

    def answered(self, *, whole: bool) -> None:
        if whole:
            self._budget.answered()
            self._breaker.succeeded(self._policy, self._now(), self._caller)
        else:
            self._breaker.failed(self._policy, self._now(), self._caller, probe=self.is_probe)

    def go_on(self) -> float:
        """The failure is about something of this request alone, which is sent again without it, at once."""
        self._breaker.succeeded(self._policy, self._now(), self._caller)
        self.is_probe, self._earlier = False, None
        return 0.0

    def failed(self, failed: AttemptFailed, used: Credential | None) -> float | None:
        """Seconds until the next try; None: there is none."""
        self._unanswered += failed.blame == "answer"
        now = self._now()
        again = refusals.is_same(self._earlier, failed)
        wait = self._wait(failed, used, now)
        is_counted = failed.blame in failures.COUNTED
        if again or (self.is_probe and is_counted and not refusals.is_internal(failed)):
            wait = None  # this retry only finds out whose fault it is
        if wait is None or (failed.blame not in _UNBUDGETED and not self._budget.spend()):
            if not again and not _says_nothing(self._exchange, self._target, failed):
                self._count(failed, now, is_counted=is_counted)
            return None
        self._earlier = failed.with_traceback(None)  # it references the frames of the caller: a cycle
        self._earlier.__context__ = None  # and so does its context
        return wait

    def end(self) -> None:
        self._breaker.release()

    def _count(self, failed: AttemptFailed, now: float, *, is_counted: bool) -> None:
        """The breaker counts requests, whatever the number of their tries."""
        if not is_counted:
            self._breaker.succeeded(self._policy, now, self._caller)
            return
        self._breaker.failed(self._policy, now, self._caller, probe=self.is_probe)
        if failed.reported_wait is None and failed.is_outage:
            failed.reported_wait = self._breaker.advice(now, chance=random.random())

    def _wait(self, failed: AttemptFailed, used: Credential | None, now: float) -> float | None:
        """Seconds until the next try at this target; None: there is none. What the failure says about its key
        applies to all requests."""
        provider, health, model = self._target.provider, self._health, self._target.model
        account = used.account if used is not None else ""
        if failed.blame == "credential" and self._sign_ins.renews(used):
            return 0.0  # the token was revoked, or has expired by the provider's clock
        others = any(
            credential.account != account
            and health.usable_at(provider.name, credential.account, model, now) <= now
            for credential in provider.credentials
        )
        then = after(
            failed,
            provider,
            account=account,
            others=others,
            tried=self.number,
            chance=random.random(),
            unanswered=self._unanswered,
        )
        if then.rejected:
            health.reject(provider.name, account, now, failed.error.message)
        if then.rest and failed.blame == "quota":
            free_at = now + failed.wait if failed.wait is not None else 0.0
            dialect, body = failed.answered or ("", b"")
            said = SpentAccount(failed.error, dialect, body, failed.status, free_at)
            health.spend(provider.name, account, model, now + then.rest, said)
        elif then.rest:
            health.cool(provider.name, account, model, now + then.rest)
        return then.wait


def _says_nothing(exchange: Exchange, target: Target, failed: AttemptFailed) -> bool:
    """Whether a failure says nothing about the upstream: it was not called, or the caller's time limit ended
    it."""
    if failed.blame == "gateway":
        return True
    given = exchange.job.timeout
    return (
        given is not None and failed.error.kind == "timeout" and given < target.provider.timeouts.first_byte
    )
