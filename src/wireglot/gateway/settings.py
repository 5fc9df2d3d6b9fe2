"""The settings: each is declared here once, and a checked configuration is one immutable snapshot of them.

A setting is a field: its name and default, its type and bounds, and what it means. `config/declared.py` reads
these declarations; the reader of `wireglot.toml`, the environment and docs/configuration.md follow from them.
`extra` may say more:

env       the environment variable that wins over the file
unit      what a number counts
form      how it is written, where the type does not tell
expected  what a list must hold, as a problem words it
default   the default in words, where it is found out at the start
computed  True: not a setting, but made from others
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

from wireglot.gateway.process_limits import KIB, MIB, ProcessLimits
from wireglot.gateway.setting_tables import BreakerPolicy, SafeguardSettings, TraceSettings
from wireglot.http.retry import RetryPolicy
from wireglot.http.transport import Timeouts
from wireglot.logins.aws import SigningKey
from wireglot.logins.login import Login
from wireglot.providers.prices import PriceRule
from wireglot.providers.spec import ProviderSpec
from wireglot.stores.records import KeyQuotas

LossPolicy = Literal["strict", "warn", "silent", "as-is"]
"""as-is: nothing of a request is mended. It passes as it came, and the provider judges it."""

SyncOrder = Literal["during", "before", "off"]

COMPUTED: Final = {"computed": True}


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
    login: Login | None = None
    """What is sent comes of it (`relay/sign_ins.py`), and is never the secret itself."""
    token: bool = False
    """It came of a login: a bearer token, however the provider's keys are sent."""
    headers: tuple[tuple[str, str], ...] = ()
    signing: SigningKey | None = None
    """Requests are signed with it, and nothing is sent."""


class Provider(msgspec.Struct, frozen=True):
    """One provider that is on: its catalog entry, or one made from the configuration, and what was set.

    The fields of [providers.NAME] that change the entry are in config/provider_table.py."""

    name: Annotated[str, Meta(description="the name of its table", extra=COMPUTED)]
    spec: Annotated[ProviderSpec, Meta(description="what it speaks, and where", extra=COMPUTED)]
    credentials: Annotated[
        tuple[Credential, ...], Meta(description="its keys, none where it needs none", extra=COMPUTED)
    ] = ()
    stated: Annotated[
        str, Meta(description="the file and the line of its table, if it has one", extra=COMPUTED)
    ] = ""
    timeouts: Annotated[Timeouts, Meta(description="[seconds to wait for it](#timeouts)")] = Timeouts()
    retry: Annotated[
        RetryPolicy,
        Meta(
            description='`"default"`, `"fixed-100ms"` (three more tries after 0.1, 0.2 and 0.4 s, none after '
            "a broken connection), or [a table](#retries)",
            extra={"form": "text, table"},
        ),
    ] = RetryPolicy()
    breaker: Annotated[BreakerPolicy, Meta(description="[when it is left alone](#breaker)")] = BreakerPolicy()
    headers: Annotated[
        tuple[tuple[str, str], ...],
        Meta(description="headers for every request; values may be secrets", extra={"form": "table"}),
    ] = ()
    concurrency: Annotated[int, Meta(ge=0, description="requests at once; 0: as many as come")] = 0
    losses: Annotated[
        LossPolicy | None,
        Meta(
            description="`losses` of the top level, for this provider", extra={"default": "the top level's"}
        ),
    ] = None
    proxy: Annotated[
        str,
        Meta(
            description="`http://host:port`; proxies of the environment are not used",
            extra={"form": "secret"},
        ),
    ] = ""
    variables: Annotated[
        dict[str, str], Meta(description="values for `{placeholders}` of the base URL, by their names")
    ] = {}

    def __repr__(self) -> str:
        """Headers and the proxy may hold secrets: they are not shown."""
        return f"Provider({self.name}, {', '.join(self.spec.dialects)}, {len(self.credentials)} keys)"


class Rule(msgspec.Struct, frozen=True):
    """One line of [models]: a name or a pattern, and where requests for it go, in order."""

    match: Annotated[str, Meta(description="the name or the pattern", extra=COMPUTED)]
    targets: Annotated[
        tuple[str, ...], Meta(description="the target, or a list of them", extra={"form": "text, list"})
    ] = msgspec.field(name="to")
    """`provider/model`; a `*` in the model stands for what the pattern's `*` matched."""
    effort: Annotated[
        tuple[str, ...],
        Meta(
            description="only for requests that ask for one of these efforts",
            extra={"expected": "a list of efforts"},
        ),
    ] = ()
    losses: Annotated[
        LossPolicy | None,
        Meta(description="`losses` of the top level, for this rule", extra={"default": "the top level's"}),
    ] = None


class ClientKey(msgspec.Struct, frozen=True):
    """One of [keys]. Its quotas, the fields of KeyQuotas, stand in the key's own table."""

    name: Annotated[str, Meta(description="the caller that it stands for", extra=COMPUTED)]
    digest: Annotated[str, Meta(description="`sha256:HEX`, the hash of the key", extra={"form": "text"})] = (
        msgspec.field(name="hash")
    )
    """Hex SHA-256 of the key, without the prefix."""
    losses: Annotated[
        LossPolicy | None,
        Meta(
            description="`losses` of the top level, for requests with this key",
            extra={"default": "the top level's"},
        ),
    ] = None
    models: Annotated[
        tuple[str, ...],
        Meta(
            description="names and patterns that the key may ask for",
            extra={"expected": "a list of model names and patterns", "default": "all"},
        ),
    ] = ()
    limits: Annotated[KeyQuotas, Meta(description="what it may use", extra=COMPUTED)] = KeyQuotas()
    expires: Annotated[
        int,
        Meta(
            description="when it ends (a date: at its beginning): `2027-01-31`, `2027-01-31T18:00:00Z`; UTC "
            "where it does not say",
            extra={"form": "date, time", "default": "never"},
        ),
    ] = 0
    """Unix milliseconds, 0: never."""
    created: Annotated[int, Meta(description="when it was made; 0: in the file", extra=COMPUTED)] = 0


class ServerSettings(msgspec.Struct, frozen=True):
    """[server]"""

    host: Annotated[
        str,
        Meta(
            description="the address to listen on; any other than this machine's own needs a client key in "
            "`[keys]`, or `require_key`",
            extra={"env": "WIREGLOT_HOST"},
        ),
    ] = "127.0.0.1"
    port: Annotated[
        int, Meta(ge=0, le=65535, description="0 takes a free one", extra={"env": "WIREGLOT_PORT"})
    ] = 8484
    workers: Annotated[
        int,
        Meta(ge=1, le=256, description="processes that share the port", extra={"env": "WIREGLOT_WORKERS"}),
    ] = 1
    hosts: Annotated[
        tuple[str, ...],
        Meta(
            description="names under which clients may call it, beside those it is bound to",
            extra={"env": "WIREGLOT_HOSTS", "expected": "a list of host names"},
        ),
    ] = ()
    origins: Annotated[
        tuple[str, ...],
        Meta(
            description='web pages that may call it: `["https://app.example.com"]`',
            extra={"expected": "a list of origins"},
        ),
    ] = ()
    secret: Annotated[
        Secret,
        Meta(
            min_length=16,
            description="seals [reasoning state](gateway.md#reasoning-state) and all that callers store, the "
            "same on every machine of a fleet; without it one is made at the first start and kept in the "
            "user's data (`$XDG_DATA_HOME` or `~/.local/share`, `wireglot/secret`)",
            extra={"env": "WIREGLOT_SECRET", "default": "made once"},
        ),
    ] = Secret("", "none")
    old_secrets: Annotated[
        tuple[Secret, ...],
        Meta(
            description="secrets of before: what they sealed can still be read",
            extra={"expected": "a list of secrets"},
        ),
    ] = ()
    admin_secret: Annotated[
        Secret,
        Meta(
            min_length=16,
            description="opens the [admin API](keys.md#admin-api); without it there is none. Also what "
            "`wireglot keys --url` sends",
            extra={"env": "WIREGLOT_ADMIN_SECRET"},
        ),
    ] = Secret("", "none")
    metrics_key: Annotated[
        Secret,
        Meta(
            min_length=16,
            description="opens `/metrics`, and nothing else; `admin_secret` opens it too. Where clients need "
            "no key and this is not set, nobody needs one there either",
            extra={"env": "WIREGLOT_METRICS_KEY"},
        ),
    ] = Secret("", "none")
    require_key: Annotated[
        bool,
        Meta(
            description="refuse requests without a client key even before the first key is made",
            extra={"env": "WIREGLOT_REQUIRE_KEY"},
        ),
    ] = False
    inspector: Annotated[
        Literal["auto", "secret", "off"],
        Meta(
            description="the [inspector](inspector.md) at `/inspector`: `auto` is open to this machine while "
            "no client keys are asked for, and otherwise asks for the admin secret or a client key; `secret` "
            "always asks",
            extra={"env": "WIREGLOT_INSPECTOR"},
        ),
    ] = "auto"
    log: Annotated[
        Literal["auto", "json", "pretty", "off"],
        Meta(description="`auto`: pretty on a terminal, else JSON", extra={"env": "WIREGLOT_LOG"}),
    ] = "auto"
    telemetry: Annotated[
        bool, Meta(description="send [OpenTelemetry](operations.md#opentelemetry) spans and metrics")
    ] = False


class Keep(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """[store.keep]: how long records are kept, and how much of them. 0: for ever, and as much as comes."""

    responses_days: Annotated[float, Meta(description="days of a stored response, from its end")] = 30.0
    responses_bytes: Annotated[int, Meta(description="bytes of stored responses together")] = 2 * 1024 * MIB
    conversations_days: Annotated[float, Meta(description="days of a conversation")] = 0.0
    conversations_bytes: Annotated[int, Meta(description="bytes of conversations together")] = 0
    vault_days: Annotated[float, Meta(description="days of reasoning that clients cannot carry")] = 30.0
    usage_days: Annotated[float, Meta(description="days of usage")] = 400.0
    idempotency_hours: Annotated[
        float, Meta(description="hours in which an Idempotency-Key gets the same answer again")
    ] = 24.0
    idempotency_bytes: Annotated[int, Meta(description="bytes of such answers together")] = 256 * MIB
    events_bytes: Annotated[
        int, Meta(description="bytes of the streams of background responses together")
    ] = 512 * MIB
    events_hours: Annotated[
        float,
        Meta(
            description="hours in which the stream of a background response can be resumed; then it can be "
            "fetched whole, but not streamed again"
        ),
    ] = 24.0


class StoreSettings(msgspec.Struct, frozen=True):
    """[store]: where the gateway remembers. See docs/state.md for one machine, several workers, a fleet."""

    url: Annotated[
        Secret,
        Meta(
            description="`sqlite:///PATH` (relative: from the configuration), `postgresql://...`, or "
            "`memory:` for nothing that outlives the process",
            extra={"env": "WIREGLOT_STORE", "default": "a file in the user's data"},
        ),
    ] = Secret("memory:", "default")
    """A secret, since it may hold a password."""
    shared: Annotated[
        Secret,
        Meta(
            description="`redis://...`: limits, cool-downs, reasoning and locks of a fleet",
            extra={"env": "WIREGLOT_SHARED"},
        ),
    ] = Secret("", "none")
    folder: Annotated[
        str,
        Meta(
            description="for the journal of usage, and what workers share",
            extra={"default": "the user's data"},
        ),
    ] = ""
    """"": a temporary one."""
    timeout: Annotated[
        float,
        Meta(
            gt=0,
            description="that one call to the store, or to what is shared, is waited for; after three that "
            "failed in a row no request waits, until a look at it goes well",
            extra={"unit": "seconds"},
        ),
    ] = 2.0
    responses: Annotated[
        Literal["gateway", "upstream"],
        Meta(
            description="who keeps stored responses: the `gateway`, for every provider, or `upstream`: a "
            "provider of the same dialect itself"
        ),
    ] = "gateway"
    sync: Annotated[
        SyncOrder,
        Meta(
            description="when the record of a request has reached the disk, so that it survives a power cut: "
            "`during` the provider's work, and before the first byte of its answer goes out to the client; "
            "`before` the provider is asked (also: true); or whenever the system likes, `off` (also: false)"
        ),
    ] = "during"
    journal: Annotated[
        int,
        Meta(
            ge=64 * KIB,
            description="usage that is held on disk while the store is down",
            extra={"unit": "bytes"},
        ),
    ] = 64 * MIB
    ledger_required: Annotated[
        bool,
        Meta(
            description="refuse requests whose usage could not be recorded, because the journal is full too"
        ),
    ] = False
    keep: Annotated[Keep, Meta(description="[how long, and how much](#how-long-records-are-kept)")] = Keep()


class Settings(msgspec.Struct, frozen=True):
    """The whole of a configuration. A request keeps the one that it began with."""

    server: Annotated[ServerSettings, Meta(description="[who may call it, and where](#server)")] = (
        ServerSettings()
    )
    limits: Annotated[ProcessLimits, Meta(description="[what protects the process](#limits)")] = (
        ProcessLimits()
    )
    providers: Annotated[dict[str, Provider], Meta(description="[who is asked](#providersname)")] = {}
    rules: Annotated[
        tuple[Rule, ...],
        Meta(
            description="[which model's name leads where](#models)",
            examples=["claude-*=kimi/kimi-k3;fast=gemini/gemini-2.5-flash,mine/some-model"],
            extra={"env": "WIREGLOT_MODELS", "form": "table"},
        ),
    ] = msgspec.field(default=(), name="models")
    keys: Annotated[
        tuple[ClientKey, ...],
        Meta(
            description="[the keys of clients](#keys)",
            examples=["team-a=sha256:HEX,sha256:HEX"],
            extra={"env": "WIREGLOT_KEYS", "form": "table"},
        ),
    ] = ()
    losses: Annotated[
        LossPolicy,
        Meta(
            description="what becomes of a request that cannot be translated without loss: refused, marked "
            "in the answer's headers, or neither; `as-is` mends nothing, and leaves it to the provider to "
            "judge. A rule, a key or a provider [may say otherwise](gateway.md#losses)",
            extra={"env": "WIREGLOT_LOSSES"},
        ),
    ] = "warn"
    store: Annotated[StoreSettings, Meta(description="[where it remembers](#store)")] = StoreSettings()
    safeguards: Annotated[SafeguardSettings, Meta(description="[who checks tool calls](#safeguards)")] = (
        SafeguardSettings()
    )
    trace: Annotated[TraceSettings, Meta(description="[which bodies are recorded](#trace)")] = TraceSettings()
    prices: Annotated[
        tuple[PriceRule, ...], Meta(description="[what models cost](#prices)", extra={"form": "table"})
    ] = ()
    """Before the catalog's, the first that matches holds."""
    currency: Annotated[str, Meta(description="what money is counted in, everywhere")] = "USD"
    off: Annotated[
        dict[str, str],
        Meta(
            description="providers of the file that are off because the variable of their key is not set, "
            "with that variable",
            extra=COMPUTED,
        ),
    ] = {}
    source: Annotated[
        str, Meta(description='the file it was read from, "" where there is none', extra=COMPUTED)
    ] = ""
    notes: Annotated[
        tuple[str, ...],
        Meta(
            description="what a person should know of it: which keys were found, that only the demo is on",
            extra=COMPUTED,
        ),
    ] = ()
