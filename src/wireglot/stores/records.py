"""The records, in the form common to all stores. Times are unix milliseconds; 0: never, or not yet."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, Final, Literal

import msgspec

from wireglot.stores.durations import Durations, merged
from wireglot_core.ir.usage import KINDS, TokenCounts

Outcome = Literal["", "ok", "error", "client_abort", "gateway_abort", "crash"]
"""How a request ended; "": it has not (there is only its intent). `crash` is concluded from a process's
silence: if that process reports a result after all, that applies."""

MICRO: Final = 1_000_000
"""Money is counted in millionths of the currency unit, prices in millionths per million tokens."""


class Document(msgspec.Struct, frozen=True):
    """One opaque value of one caller. A store does not interpret `body`: it is sealed."""

    caller: str = msgspec.field(name="tenant")
    """`tenant` in exports: its former name."""
    kind: str
    id: str
    body: bytes
    parent: str = ""
    """The object that it is a piece of: a conversation's items, a response's events."""
    number: int = 0
    """Its place among the pieces of its parent."""
    created: int = 0
    expires: int = 0


class VaultEntry(msgspec.Struct, frozen=True):
    caller: str = msgspec.field(name="tenant")
    """`tenant` in exports: its former name."""
    name: str
    body: bytes
    expires: int


class _Counted(TokenCounts, frozen=True, omit_defaults=True, kw_only=True):
    """Counts that are added up: unreported ones are 0."""

    reasoning: int = 0


class UsageRow(_Counted, frozen=True, omit_defaults=True, gc=False):
    """One request: written as an intent before an upstream is called, completed exactly once.

    To add a column, add a field with a default here or to `ir.usage.TokenCounts`: the journal writes by name,
    and a reader ignores unknown names; columns: see `sql.USAGE`.
    """

    id: str
    caller: str
    started: int
    instance: str = ""
    """The process that answers it; an open row of an ended process is a crash."""
    operation: str = ""
    dialect: str = ""
    session: str = ""
    model: str = ""
    """As the client named it."""
    provider: str = ""
    upstream_model: str = ""
    upstream_dialect: str = ""
    stream: bool = False
    purpose: str = ""
    """The purpose of the request, by the client's headers: `ir.purpose.Purpose`."""
    agent: str = ""
    """The sub-agent that sent it, by its name or type."""

    outcome: Outcome = ""
    finished: int = 0
    status: int = 0
    error: str = ""
    """The kind of the error."""
    attempts: int = 0
    first_byte: int = 0
    """Milliseconds until the first byte of the answer."""
    source: Literal["provider", "partial", "estimated", "none"] = "none"
    cost: int | None = None
    """In millionths; None: the model's price is unknown."""
    losses: tuple[str, ...] = ()
    """The features that were changed or dropped."""
    flags: tuple[str, ...] = ()
    """Inconsistencies in the provider's own numbers."""
    caller_group: str = ""
    """The group that the caller's key was in."""
    client: str = ""
    """The program that sent it, by its User-Agent: `claude-code`, `codex`."""


def model_of(row: UsageRow) -> str:
    """The model that answered, or was meant to."""
    return row.upstream_model or row.model


def gives_way(there: UsageRow, row: UsageRow) -> bool:
    """Whether `row` replaces the existing one: an end replaces an intent, a fact a guess."""
    if not there.outcome:
        return row.outcome != ""
    return there.outcome == "crash" and row.outcome not in ("", "crash")


Spender = Literal["caller", "caller_group"]
"""The usage that counts for a budget: one caller's, or that of all keys of a group."""

Grouping = Literal[
    "caller", "caller_group", "model", "provider", "day", "session", "outcome", "operation", "purpose",
    "agent", "client", "step",
]  # fmt: skip
"""`model` is the upstream's (`upstream_model`), or the client's if none was called; `day` is UTC; `step` is
the start of a period of `UsageQuery.step`, in milliseconds."""


class UsageQuery(msgspec.Struct, frozen=True):
    """Which rows, and how they are grouped (in this order). Empty: all of them in one sum."""

    groups: tuple[Grouping, ...] = ()
    since: int = 0
    until: int = 0
    """Rows that started before it; 0: no end."""
    caller: str | None = None
    model: str = ""
    provider: str = ""
    session: str = ""
    group: str = ""
    client: str = ""
    agent: str = ""
    step: int = 0
    """Milliseconds of a `step`."""
    durations: bool = True
    """Whether to report the durations of requests, which costs more than all other sums."""

    def chooses(self, row: UsageRow) -> bool:
        return (
            row.started >= self.since
            and (not self.until or row.started < self.until)
            and (self.caller is None or row.caller == self.caller)
            and (not self.model or model_of(row) == self.model)
            and (not self.provider or row.provider == self.provider)
            and (not self.session or row.session == self.session)
            and (not self.group or row.caller_group == self.group)
            and (not self.client or row.client == self.client)
            and (not self.agent or row.agent == self.agent)
        )


class UsageTotal(msgspec.Struct, frozen=True, omit_defaults=True):
    """A sum of rows. `group` has one value for each of the query's groups; `day` as YYYY-MM-DD."""

    group: tuple[str, ...]
    requests: int
    failed: int
    """Ended with anything but ok."""
    left: int
    """Of these, those whose client left."""
    open: int
    tokens: dict[str, int]
    """By kind: see `ir.usage.KINDS`."""
    cost: int
    unpriced: int
    """Completed requests of unknown cost: the price is unknown, or the provider reported no
    tokens."""
    milliseconds: int
    """The total time of all completed requests."""
    lossy: int
    """Requests with losses."""
    first: int
    last: int
    took: Durations = Durations()
    """Durations of the completed requests, until their end."""
    first_byte: Durations = Durations()
    """Durations of the completed requests that were answered, until their first byte."""


def added(totals: Sequence[UsageTotal], group: tuple[str, ...] = ()) -> UsageTotal:
    """Several totals as one."""
    plain = ("requests", "failed", "left", "open", "cost", "unpriced", "milliseconds", "lossy")
    sums = {name: sum(getattr(total, name) for total in totals) for name in plain}
    tokens = {kind: sum(total.tokens[kind] for total in totals) for kind in KINDS}
    counted = [total for total in totals if total.requests]
    return UsageTotal(
        group,
        tokens=tokens,
        first=min((total.first for total in counted), default=0),
        last=max((total.last for total in counted), default=0),
        took=merged(total.took for total in totals),
        first_byte=merged(total.first_byte for total in totals),
        **sums,
    )


QUOTA_MAX: Final = 10**15
"""The largest amount of a budget or limit: more than anyone uses, and small enough for the integers of every
store."""
Quota = Annotated[int, msgspec.Meta(ge=0, le=QUOTA_MAX)]
MoneyQuota = Annotated[int, msgspec.Meta(ge=0, le=QUOTA_MAX, extra={"unit": "money"})]


class KeyQuotas(msgspec.Struct, frozen=True, omit_defaults=True):
    """The limits of a client key. 0: no limit. Money in millionths; days and months are UTC."""

    requests_per_minute: Annotated[Quota, msgspec.Meta(description="requests in any minute")] = 0
    tokens_per_minute: Annotated[Quota, msgspec.Meta(description="tokens in any minute")] = 0
    concurrent: Annotated[Quota, msgspec.Meta(description="maximum concurrent requests")] = 0
    tokens_per_day: Annotated[
        Quota, msgspec.Meta(description="tokens of a day, input and output together")
    ] = 0
    tokens_per_month: Annotated[
        Quota, msgspec.Meta(description="tokens of a month, input and output together")
    ] = 0
    cost_per_day: Annotated[MoneyQuota, msgspec.Meta(description="what the requests of a day may cost")] = 0
    cost_per_month: Annotated[
        MoneyQuota, msgspec.Meta(description="what the requests of a month may cost")
    ] = 0
    searches_per_day: Annotated[
        Quota, msgspec.Meta(description="web searches in any day that the gateway runs itself")
    ] = 0

    def __bool__(self) -> bool:
        return any(getattr(self, name) for name in self.__struct_fields__)


class SignIn(msgspec.Struct, frozen=True, omit_defaults=True):
    """The rights of one device after its user signed in: it acts as a client key, with separate tokens. It
    ends with that key, whatever ends it: revocation, expiry, rotation, removal from the configuration."""

    key: str
    """The name of that key, which is the caller."""
    parent: str
    """The digest of that key."""
    digest: str
    """Of the access token."""
    until: int
    """When the access token expires."""
    family: str
    """Digest of the part that all its refresh tokens have in common."""
    refresh: str
    """Digest of the part that only the current refresh token has."""
    surface: str = ""
    """The client application, as it names itself."""
    address: str = ""
    """The client's network address at its last request for tokens."""
    grant: str = ""
    """The grant used at each renewal to check with the identity provider whether the person still has an
    account."""


class KeyRow(msgspec.Struct, frozen=True, omit_defaults=True):
    """A client key. `name` is the caller whose data it gives access to: it is never given to another key."""

    name: str
    digest: str
    """Hex SHA-256 of the key, which is stored nowhere else. "": the row cannot be read, and the key is
    invalid; or it is a sign-in, which older versions must not take for a key without limits."""
    prefix: str
    """Its first characters, for people to distinguish keys."""
    created: int
    models: tuple[str, ...] = ()
    limits: KeyQuotas = KeyQuotas()
    losses: str = ""
    expires: int = 0
    revoked: int = 0
    old_digest: str = ""
    """The key before the last rotation, valid until `old_until`."""
    old_until: int = 0
    group: str = ""
    """A group of the configuration's [groups]: what the row does not set is the group's."""
    owner: str = ""
    """The person who uses it."""
    subject: str = ""
    """Digest of the identity that signs in as this key: an issuer and its name for the person."""
    sign_in: SignIn | None = None
    """Set if the row is not a key, but a device that signed in. `expires` is when it must sign in again."""


_KEYS: Final = msgspec.json.Decoder(KeyRow)


def read_key(name: str, body: bytes) -> KeyRow:
    """A stored key. One that cannot be read (damaged, or of a later version) has no digest: it is invalid,
    and the others are not affected."""
    try:
        return _KEYS.decode(body)
    except msgspec.DecodeError:
        return KeyRow(name, "", "", 0)


def are_all_changes(revisions: Iterable[int], since: int, version: int) -> bool:
    """Whether these revisions are `since` and all that followed. A deletion leaves a gap, and so does a key
    that was written again."""
    return 0 < version - since == len(set(revisions)) - 1


class Session(msgspec.Struct, frozen=True):
    """Data from the ledger about the requests of one caller that named the same session."""

    id: str
    caller: str
    requests: int
    tokens: int
    cost: int
    model: str
    """Of the last request."""
    dialects: tuple[str, ...]
    first: int
    last: int
    route: str = ""
    """`provider/model` that answered the last request; only set for a single session."""
    last_request: str = ""
    """The id of that request."""


class LogEntry(msgspec.Struct, frozen=True):
    """What a process of the fleet reported to the others."""

    place: str
    """Its place in the log: later entries have later places."""
    reported: int
    body: bytes


# Counters.


class Rate(msgspec.Struct, frozen=True):
    """At most `limit` in any `seconds`, returned evenly (GCRA, a leaky bucket of `limit`). An `amount` larger
    than the limit passes if the bucket is empty, and delays the next one: up to two windows of it. The rest
    is ignored, so that one answer of unexpected length locks no caller out for long."""

    name: str
    amount: int
    limit: int
    seconds: float


class Budget(msgspec.Struct, frozen=True):
    """At most `limit` until `until` (unix milliseconds). Passes if anything was left before it; reservations
    of others count. A budget that has not begun counts from 0 unless it is seeded."""

    name: str
    amount: int
    limit: int
    until: int


class Denied(msgspec.Struct, frozen=True):
    """`wait`: seconds until the claim called `name` would pass (of several, the longest)."""

    name: str
    wait: float


Record = Document | UsageRow | KeyRow | VaultEntry
"""The types of records in a store."""


class KindLimits(msgspec.Struct, frozen=True):
    """The limits for one kind of document: the oldest are removed first. 0: no limit."""

    bytes: int = 0


class Swept(msgspec.Struct, frozen=True, omit_defaults=True):
    expired: dict[str, int] = {}
    """Expired documents and vault entries, by kind."""
    evicted: dict[str, int] = {}
    """Documents removed because their kind exceeded its limit."""
    usage: int = 0
    crashed: int = 0
    """Open rows of ended processes, closed."""


class KindStats(msgspec.Struct, frozen=True):
    count: int
    bytes: int
    oldest: int = 0
    newest: int = 0


class Stats(msgspec.Struct, frozen=True):
    """`kinds`: documents by kind, and "vault", "usage", "keys"."""

    engine: str
    """For display: "SQLite 3.54.1, /path/wireglot.db"."""
    version: int
    """Of the schema."""
    kinds: dict[str, KindStats]
    size: int = 0
    """Bytes on disk, if the engine reports them."""
