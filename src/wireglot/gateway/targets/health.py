"""The gateway's state about upstreams: cool-downs, rejected keys, open circuit breakers.

The clock is a parameter; nothing here waits or does I/O.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Sequence
from typing import Final

import msgspec

from wireglot.gateway.setting_tables import BreakerPolicy
from wireglot.gateway.settings import Credential
from wireglot_core.ir.errors import ApiError

QUARANTINE_SECONDS: Final = 60.0
"""Seconds for which a rejected key is not used."""
_ADVICE_LEAST_SECONDS: Final = 1.0
# Seconds that a client is advised to wait while a circuit breaker is open.
_ADVICE_MOST_SECONDS: Final = 30.0
_ADVICE_JITTER: Final = 0.5
# Targets whose failures are known.
_MAX_REMEMBERED: Final = 50_000
# Outcomes of one target that are counted.
_MAX_RECENT: Final = 1000


class Breaker:
    """Closed until requests fail; then open, with one probe at a time at growing intervals.

    It opens for the caller whose requests fail. The failure may be due to that caller's requests, so it opens
    for all only if the requests of several callers fail: no caller can block a model for the others.
    """

    def __init__(self) -> None:
        self._recent: deque[tuple[float, str, bool]] = deque()
        self._row: dict[str, int] = {}
        """Consecutive failures since the last success, by caller."""
        self._failing_since = 0.0
        self.open_until: float | None = None
        """None: it is closed."""
        self._only: str | None = None
        """The only caller that it is open for; None: it is open for all."""
        self._pause = 0.0
        self._probing = False

    @property
    def is_open(self) -> bool:
        return self.open_until is not None

    def wait(self, now: float, caller: str) -> float:
        """Seconds until a request may be sent; 0: now."""
        if self.open_until is None or not self._concerns(caller):
            return 0.0
        left = self.open_until - now
        if left > 0:
            return left
        return 1.0 if self._probing else 0.0

    def advice(self, now: float, *, chance: float) -> float:
        """Seconds a client should wait after a failure: about as long as the outage has lasted. Agents that
        obey `retry-after` wait exactly that, for a fixed number of attempts: a constant would make them give
        up in a short outage."""
        failing = now - self._failing_since if self._row else 0.0
        wait = min(_ADVICE_MOST_SECONDS, max(_ADVICE_LEAST_SECONDS, failing))
        return wait * (1 + _ADVICE_JITTER * chance)

    def begin(self, now: float, caller: str) -> bool:
        """Whether this request is a probe: its result decides, and it must be reported by one of the three
        methods below."""
        if self.open_until is None or now < self.open_until or not self._concerns(caller):
            return False
        self._probing = True
        return True

    def release(self) -> None:
        """A probe ended without a result (its client left, or the request was at fault)."""
        self._probing = False

    def succeeded(self, policy: BreakerPolicy, now: float, caller: str) -> None:
        self._probing = False
        if self._row:
            self._row.clear()
        self.open_until = self._only = None
        self._pause = 0.0
        if self._recent:
            self._note(policy, now, caller, True)

    def failed(self, policy: BreakerPolicy, now: float, caller: str, *, probe: bool = False) -> None:
        """A whole request failed, whatever the number of its attempts."""
        if not self._row:
            self._failing_since = now
        self._row[caller] = self._row.get(caller, 0) + 1
        self._note(policy, now, caller, False)
        if self.open_until is None:
            for_all = self._fails_for_all(policy)
            if for_all or self._fails_for(policy, caller):
                self._only = None if for_all else caller
                self._pause = policy.probe_after
                self.open_until = now + self._pause
            return
        if probe:
            self._probing = False
            self._pause = min(policy.probe_cap, self._pause * 2)
            self.open_until = now + self._pause
        # Otherwise it began before the breaker opened, or is another caller's.
        if self._only is not None and self._fails_for_all(policy):
            self._only = None
            self.open_until = max(self.open_until, now + self._pause)

    def _concerns(self, caller: str) -> bool:
        return self._only is None or self._only == caller

    def _note(self, policy: BreakerPolicy, now: float, caller: str, ok: bool) -> None:
        recent = self._recent
        recent.append((now, caller, ok))
        while recent and (recent[0][0] < now - policy.window or len(recent) > _MAX_RECENT):
            recent.popleft()

    def _fails_for_all(self, policy: BreakerPolicy) -> bool:
        row = self._row
        if len(row) > 1:
            most_of_one = (policy.consecutive + 1) // 2
            if sum(min(times, most_of_one) for times in row.values()) >= policy.consecutive:
                return True
        if len(self._recent) < policy.minimum:
            return False
        bad = Counter(caller for _, caller, ok in self._recent if not ok)
        if len(bad) < 2 or bad.total() < policy.ratio * len(self._recent):
            return False
        (worst, _), *_ = bad.most_common(1)
        others = [ok for _, caller, ok in self._recent if caller != worst]
        return len(others) * 2 >= policy.minimum and others.count(False) >= policy.ratio * len(others)

    def _fails_for(self, policy: BreakerPolicy, caller: str) -> bool:
        if self._row[caller] >= policy.consecutive:
            return True
        own = [ok for _, name, ok in self._recent if name == caller]
        return len(own) >= policy.minimum and own.count(False) >= policy.ratio * len(own)


class Resting(msgspec.Struct, frozen=True):
    """A key that is not used for a while, for one model or, if it was rejected, for all."""

    provider: str
    account: str
    model: str
    seconds: float
    """Seconds left."""
    rejected: bool = False


class SpentAccount(msgspec.Struct, frozen=True):
    """What a provider answered when an account had nothing left: the next clients get the same answer, since
    a wait, which the status of a busy provider promises, does not help."""

    error: ApiError
    dialect: str = ""
    body: bytes = b""
    """The provider's own error in this dialect, for clients of it; empty: there is none."""
    status: int = 0
    free_at: float = 0.0
    """When the provider said that the account can be used again; 0: it did not say."""

    def shortened(self) -> SpentAccount:
        """Without what is longer than `MAX_LAST_WORDS_BYTES`."""
        texts = {name: getattr(self.error, name) for name in ("message", "type", "code", "param")}
        cut = {name: text[:MAX_LAST_WORDS_BYTES] for name, text in texts.items()}
        error = msgspec.structs.replace(self.error, extra=None, **cut)
        body = self.body if len(self.body) <= MAX_LAST_WORDS_BYTES else b""
        return msgspec.structs.replace(self, error=error, body=body)


# Bytes of a provider's error that are kept for each of its accounts: real ones are below 1 KB, and a longer
# one is rendered from its message.
MAX_LAST_WORDS_BYTES: Final = 8192


class RetryBudget:
    """Limits retries to a fifth of the answered requests, so that a failing upstream is not overloaded
    further. Failed requests add nothing: if all fail, only the saved retries are used."""

    def __init__(self, ratio: float = 0.2, minimum: float = 3.0, most: float = 100.0) -> None:
        self._ratio = ratio
        self._most = most
        self._tokens = minimum

    def answered(self) -> None:
        self._tokens = min(self._most, self._tokens + self._ratio)

    def spend(self) -> bool:
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True


class Breakers(dict[str, Breaker]):
    """One breaker for each model of a provider: a failing model does not affect the others."""

    def __missing__(self, route: str) -> Breaker:
        if len(self) >= _MAX_REMEMBERED:  # model names come from clients
            for name in [name for name, each in self.items() if not each.is_open]:
                del self[name]
        made = self[route] = Breaker()
        return made


class Health:
    """One process's knowledge about its upstreams, keyed so that one exhausted model does not affect
    others."""

    def __init__(self) -> None:
        self._cool: dict[tuple[str, str, str], float] = {}
        self._rejected: dict[tuple[str, str], float] = {}
        self._last_words: dict[tuple[str, str], str] = {}
        self._spent: dict[tuple[str, str, str], float] = {}
        """Until when keys in `_cool` are not used because their account is spent."""
        self._spent_words: dict[tuple[str, str], SpentAccount] = {}
        self.breakers = Breakers()
        """By route."""
        self.budgets: defaultdict[str, RetryBudget] = defaultdict(RetryBudget)
        """By provider."""
        self._on_cool: Callable[[str, str, str, float], None] | None = None
        self._on_reject: Callable[[str, str, float], None] | None = None
        self._on_spend: Callable[[str, str, str, float, SpentAccount], None] | None = None

    def listen(
        self,
        on_cool: Callable[[str, str, str, float], None],
        on_reject: Callable[[str, str, float], None],
        on_spend: Callable[[str, str, str, float, SpentAccount], None],
    ) -> None:
        """Call these with what this process finds out, to inform other processes. What they report is not
        passed back."""
        self._on_cool, self._on_reject, self._on_spend = on_cool, on_reject, on_spend

    def open_breakers(self) -> list[str]:
        """Routes whose circuit breaker is open."""
        return [route for route, breaker in self.breakers.items() if breaker.is_open]

    def cool(self, provider: str, account: str, model: str, until: float) -> None:
        self.heard_cool(provider, account, model, until)
        if self._on_cool is not None:
            self._on_cool(provider, account, model, until)

    def heard_cool(self, provider: str, account: str, model: str, until: float) -> None:
        """Another process found it."""
        if len(self._cool) >= _MAX_REMEMBERED:  # model names come from clients
            self._cool.clear()
            self._spent.clear()
        key = (provider, account, model)
        self._cool[key] = max(until, self._cool.get(key, 0.0))

    def spend(self, provider: str, account: str, model: str, until: float, said: SpentAccount) -> None:
        """The account has nothing left for the model."""
        said = self._spent_words[provider, account] = said.shortened()
        self.heard_spent(provider, account, model, until, said)
        if self._on_spend is not None:
            self._on_spend(provider, account, model, until, said)

    def heard_spent(self, provider: str, account: str, model: str, until: float, said: SpentAccount) -> None:
        """Another process found it. Its words are used if this one has none."""
        self.heard_cool(provider, account, model, until)
        key = (provider, account, model)
        self._spent[key] = max(until, self._spent.get(key, 0.0))
        self._spent_words.setdefault((provider, account), said)

    def spent(self, provider: str, account: str, model: str, now: float) -> SpentAccount | None:
        """What the provider said of an account that is not used now because it has nothing left."""
        if self._spent.get((provider, account, model), 0.0) <= now:
            return None
        return self._spent_words.get((provider, account))

    def reject(self, provider: str, account: str, now: float, said: str = "") -> None:
        """`said`: why, in the provider's own words."""
        self._last_words[provider, account] = said
        self.heard_rejected(provider, account, now + QUARANTINE_SECONDS)
        if self._on_reject is not None:
            self._on_reject(provider, account, now + QUARANTINE_SECONDS)

    def heard_rejected(self, provider: str, account: str, until: float) -> None:
        key = (provider, account)
        self._rejected[key] = max(until, self._rejected.get(key, 0.0))

    def usable_at(self, provider: str, account: str, model: str, now: float) -> float:
        """When a key may be used for a model: `now` or later."""
        if not self._cool and not self._rejected:
            return now
        cool = self._cool.get((provider, account, model), 0.0)
        if 0.0 < cool <= now:
            del self._cool[provider, account, model]
            self._spent.pop((provider, account, model), None)
        return max(now, cool, self._rejected.get((provider, account), 0.0))

    def last_words(self, provider: str, account: str) -> str:
        """What the provider said when it rejected a key; "" if another process reported it."""
        return self._last_words.get((provider, account), "")

    def is_rejected(self, provider: str, account: str, now: float) -> bool:
        return self._rejected.get((provider, account), 0.0) > now

    def resting(self, now: float) -> list[Resting]:
        """The keys not used now, for display."""
        cooling = [
            Resting(provider, account, model, until - now)
            for (provider, account, model), until in self._cool.items()
            if until > now
        ]
        rejected = [
            Resting(provider, account, "", until - now, True)
            for (provider, account), until in self._rejected.items()
            if until > now
        ]
        return cooling + rejected

    def order(
        self,
        provider: str,
        pool: Sequence[Credential],
        model: str,
        now: float,
        *,
        minted_by: Iterable[str] = (),
        conversation: str = "",
    ) -> list[Credential]:
        """The keys of a pool in the order to try them: first the one that minted the reasoning of old turns,
        then always the same one for the same conversation; paused ones come last."""
        if len(pool) < 2:
            return list(pool)
        minters = set(minted_by)

        def rank(credential: Credential) -> tuple[float, bool, bytes]:
            ready = self.usable_at(provider, credential.account, model, now)
            draw = hashlib.blake2b(f"{conversation}\x1f{credential.account}".encode(), digest_size=8).digest()
            return (ready, credential.account not in minters, draw)

        return sorted(pool, key=rank)
