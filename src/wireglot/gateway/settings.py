"""The configuration once it is read, checked and complete: one immutable snapshot, which a request keeps."""

from __future__ import annotations

from typing import Literal

import msgspec

from wireglot.http.retry import RetryPolicy
from wireglot.http.transport import Timeouts
from wireglot.providers.prices import PriceRule
from wireglot.providers.spec import ProviderSpec
from wireglot.stores.records import KeyQuotas

LossPolicy = Literal["strict", "warn", "silent"]

MIB = 1024 * 1024


class Secret(msgspec.Struct, frozen=True):
    """A value that no sink may show. `source` ("env:NAME", "file:PATH", "config") may be told."""

    value: str
    source: str = "config"

    def __repr__(self) -> str:
        return f"Secret({self.source})"


class Credential(msgspec.Struct, frozen=True):
    """One key of a provider's pool. `account` is a fingerprint: it names the key and does not tell it."""

    secret: Secret
    account: str


class BreakerPolicy(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    consecutive: int = 5
    ratio: float = 0.5
    minimum: int = 20
    window: float = 30.0
    probe_after: float = 10.0
    probe_cap: float = 120.0


class Provider(msgspec.Struct, frozen=True):
    """One provider that is on: its catalog entry, or one made from the configuration, and what was set."""

    name: str
    spec: ProviderSpec
    credentials: tuple[Credential, ...] = ()
    timeouts: Timeouts = Timeouts()
    retry: RetryPolicy = RetryPolicy()
    breaker: BreakerPolicy = BreakerPolicy()
    headers: tuple[tuple[str, str], ...] = ()
    concurrency: int = 0
    """Requests at once, 0: as many as come."""
    losses: LossPolicy | None = None
    proxy: str = ""
    variables: dict[str, str] = {}
    """Values for the `{placeholders}` of a base URL (project, location)."""

    def __repr__(self) -> str:
        """Headers and the proxy may hold secrets: they are not shown."""
        return f"Provider({self.name}, {', '.join(self.spec.dialects)}, {len(self.credentials)} keys)"


class Rule(msgspec.Struct, frozen=True):
    """One line of [models]: a name or a pattern, and where requests for it go, in order."""

    match: str
    targets: tuple[str, ...]
    """`provider/model`; a `*` in the model stands for what the pattern's `*` matched."""
    effort: tuple[str, ...] = ()
    """Only for requests that ask for one of these efforts."""
    losses: LossPolicy | None = None


class ClientKey(msgspec.Struct, frozen=True):
    name: str
    digest: str
    """Hex SHA-256 of the key."""
    losses: LossPolicy | None = None
    models: tuple[str, ...] = ()
    """Patterns of the model names it may ask for; none: all."""
    limits: KeyQuotas = KeyQuotas()
    expires: int = 0
    """Unix milliseconds, 0: never."""


class ProcessLimits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Limits that protect the process. Sizes in bytes, times in seconds."""

    body: int = 64 * MIB
    anthropic_body: int = 32 * MIB
    header_line: int = 8 * 1024
    header_count: int = 128
    header_total: int = 32 * 1024
    url: int = 8 * 1024
    json_depth: int = 128
    json_items: int = 500_000
    header_time: float = 10.0
    body_idle: float = 30.0
    body_total: float = 120.0
    """For a body that arrives slower than 1 KiB a second."""
    keep_alive: float = 75.0
    ping: float = 15.0
    write_stall: float = 60.0
    write_pending: int = 64 * 1024
    event: int = 32 * MIB
    response: int = 64 * MIB
    error_body: int = 64 * 1024
    buffered: int = 512 * MIB
    connections: int = 10_000
    connections_per_peer: int = 256
    requests: int = 5_000
    requests_per_key: int = 64
    queue: int = 256
    queue_time: float = 2.0
    pool: int = 256
    pool_idle: float = 15.0
    auth_failures: int = 20
    """A minute and address."""
    drain: float = 300.0
    drain_again: float = 2.0


class ServerSettings(msgspec.Struct, frozen=True):
    host: str = "127.0.0.1"
    port: int = 8484
    workers: int = 1
    hosts: tuple[str, ...] = ()
    """Host names beside those it is bound to."""
    origins: tuple[str, ...] = ()
    """Web pages that may call it."""
    secret: Secret = Secret("", "none")
    """Seals reasoning state of other providers and all that is stored; see docs/state.md."""
    old_secrets: tuple[Secret, ...] = ()
    """Secrets of before: what they sealed can still be read."""
    admin_secret: Secret = Secret("", "none")
    """Opens the admin API; empty: there is none."""
    require_key: bool = False
    """Demand a client key even where none is known yet."""
    log: Literal["auto", "json", "pretty", "off"] = "auto"
    telemetry: bool = False


class Keep(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How long records are kept, and how much of them. 0: for ever, and as much as comes."""

    responses_days: float = 30.0
    responses_bytes: int = 2 * 1024 * MIB
    conversations_days: float = 0.0
    conversations_bytes: int = 0
    vault_days: float = 30.0
    usage_days: float = 400.0
    idempotency_hours: float = 24.0
    idempotency_bytes: int = 256 * MIB
    events_bytes: int = 512 * MIB
    events_hours: float = 24.0
    """Of the streams of background responses; then they can be fetched whole, but not streamed again."""


class StoreSettings(msgspec.Struct, frozen=True):
    """Where the gateway remembers. See docs/state.md for one machine, several workers, a fleet."""

    url: Secret = Secret("memory:", "default")
    """`sqlite:///path`, `postgresql://...` or `memory:`; a secret, since it may hold a password."""
    shared: Secret = Secret("", "none")
    """`redis://...`: counters, cool-downs, the vault and locks of a fleet."""
    folder: str = ""
    """For the journal of usage; "": a temporary one."""
    responses: Literal["gateway", "upstream"] = "gateway"
    """Who keeps stored responses: we, for every provider, or a provider of the same dialect itself."""
    sync: bool = True
    """Whether a request waits until its intent would survive a power cut, not only the end of the process."""
    journal: int = 64 * MIB
    """Bytes of usage that are held on disk while the store is down."""
    ledger_required: bool = False
    """Refuse requests whose usage could not be recorded (the journal is full too)."""
    keep: Keep = Keep()


class Settings(msgspec.Struct, frozen=True):
    server: ServerSettings = ServerSettings()
    limits: ProcessLimits = ProcessLimits()
    providers: dict[str, Provider] = {}
    rules: tuple[Rule, ...] = ()
    keys: tuple[ClientKey, ...] = ()
    losses: LossPolicy = "warn"
    store: StoreSettings = StoreSettings()
    prices: tuple[PriceRule, ...] = ()
    """Before the catalog's, the first that matches holds."""
    currency: str = "USD"
    source: str = ""
    """The file it was read from, "" where there is none."""
    notes: tuple[str, ...] = ()
    """What a person should know of it: which keys were found, that only the demo is on."""
