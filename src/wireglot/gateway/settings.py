"""The settings: each is declared here once, and a checked configuration is one immutable snapshot of them.

A setting is a field: its name and default, its type and bounds, and what it means. `config/declared.py` reads
these declarations; the reader of `wireglot.toml`, the environment and docs/configuration.md follow from them.
More that `setting` may be given:

env       the environment variable that wins over the file
unit      what a number counts
form      how it is written, where the type does not tell
expected  what a list must hold, as a problem words it
default   the default in words, where it is found out at the start
computed  True: not a setting, but made from others
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from wireglot.gateway.process_limits import KIB, MIB, ProcessLimits, setting
from wireglot.gateway.setting_tables import (
    BreakerPolicy,
    ManagedSettings,
    SafeguardSettings,
    TelemetrySettings,
    TraceSettings,
)
from wireglot.http.retry import RetryPolicy
from wireglot.http.transport import Timeouts
from wireglot.logins.aws import SigningKey
from wireglot.logins.login import Login
from wireglot.stores.records import KeyQuotas
from wireglot_core.ir.purpose import PURPOSES
from wireglot_core.providers.prices import PriceRule
from wireglot_core.providers.spec import ProviderSpec

LossPolicy = Literal["strict", "warn", "silent", "as-is"]
"""as-is: the request is not repaired. It is passed on unchanged, and the provider judges it."""

SyncOrder = Literal["during", "before", "off"]


class Secret(msgspec.Struct, frozen=True):
    """A value that no sink may show. `source` ("env:NAME", "file:PATH", "config") may be reported."""

    value: str
    source: str = "config"

    def __repr__(self) -> str:
        return f"Secret({self.source})"


class Credential(msgspec.Struct, frozen=True):
    """One key of a provider's pool. `account` is a fingerprint: it identifies the key without revealing
    it."""

    secret: Secret
    account: str
    login: Login | None = None
    """The credential that is sent is obtained from this login (`relay/sign_ins.py`); the secret itself is
    never sent."""
    token: bool = False
    """Obtained by a login: sent as a bearer token, however the provider's keys are sent."""
    headers: tuple[tuple[str, str], ...] = ()
    signing: SigningKey | None = None
    """Requests are signed with this key, which is not sent itself."""


class Provider(msgspec.Struct, frozen=True):
    """One enabled provider: its catalog entry, or one made from the configuration, and what was set.

    The fields of [providers.NAME] that change the entry are in config/provider_table.py.
    """

    name: Annotated[str, setting("the name of its table", computed=True)]
    spec: Annotated[ProviderSpec, setting("what it speaks, and where", computed=True)]
    credentials: Annotated[
        tuple[Credential, ...], setting("its keys, none where it needs none", computed=True)
    ] = ()
    stated: Annotated[str, setting("the file and the line of its table, if it has one", computed=True)] = ""
    timeouts: Annotated[Timeouts, setting("[timeouts](#timeouts)")] = Timeouts()
    retry: Annotated[
        RetryPolicy,
        setting(
            '`"default"`, `"fixed-100ms"` (three more tries after 0.1, 0.2 and 0.4 s, none after '
            "a broken connection), or [a table](#retries)",
            form="text, table",
        ),
    ] = RetryPolicy()
    breaker: Annotated[BreakerPolicy, setting("[circuit breaker](#breaker)")] = BreakerPolicy()
    headers: Annotated[
        tuple[tuple[str, str], ...],
        setting("headers for every request; values may be secrets", form="table"),
    ] = ()
    concurrency: Annotated[int, setting("maximum concurrent requests; 0: unlimited", ge=0)] = 0
    losses: Annotated[
        LossPolicy | None,
        setting("`losses` of the top level, for this provider", default="the top level's"),
    ] = None
    proxy: Annotated[
        str,
        setting("`http://host:port`; proxies of the environment are not used", form="secret"),
    ] = ""
    variables: Annotated[
        dict[str, str], setting("values for `{placeholders}` of the base URL, by their names")
    ] = {}

    def __repr__(self) -> str:
        """Headers and the proxy may contain secrets: they are not shown."""
        return f"Provider({self.name}, {', '.join(self.spec.dialects)}, {len(self.credentials)} keys)"


class Rule(msgspec.Struct, frozen=True):
    """One line of [models]: a name or pattern, and the targets of its requests in order."""

    match: Annotated[str, setting("the name or the pattern", computed=True)]
    targets: Annotated[tuple[str, ...], setting("the target, or a list of them", form="text, list")] = (
        msgspec.field(name="to")
    )
    """`provider/model`; a `*` in the model is replaced by what the pattern's `*` matched."""
    effort: Annotated[
        tuple[str, ...],
        setting(
            "only for requests with one of these efforts, also if it is set as a budget of thinking",
            expected="a list of efforts",
        ),
    ] = ()
    purpose: Annotated[
        tuple[str, ...],
        setting(
            "only for requests with [one of these purposes](gateway.md#routing-by-purpose): "
            + ", ".join(f"`{purpose}`" for purpose in PURPOSES),
            form="text, list",
            expected="a purpose, or a list of them",
        ),
    ] = ()
    agent: Annotated[
        tuple[str, ...],
        setting(
            "only for requests of an agent with one of these names; `*` matches any text, case is ignored",
            form="text, list",
            expected="an agent's name or pattern, or a list of them",
        ),
    ] = ()
    prompt_over: Annotated[
        int,
        setting("only for requests whose prompt has more tokens than this, by estimate", ge=0, unit="tokens"),
    ] = 0
    images: Annotated[bool, setting("only for requests with an image")] = False
    losses: Annotated[
        LossPolicy | None,
        setting("`losses` of the top level, for this rule", default="the top level's"),
    ] = None

    @property
    def reads_body(self) -> bool:
        """Whether the request must be read to know whether the rule applies."""
        return bool(self.effort or self.prompt_over or self.images)

    @property
    def is_conditional(self) -> bool:
        """Whether it applies only to some of the requests for its name."""
        return self.reads_body or bool(self.purpose or self.agent)


class Group(msgspec.Struct, frozen=True):
    """One of [groups]. Its quotas, the fields of KeyQuotas, are in the group's own table."""

    name: Annotated[str, setting("the name of its table", computed=True)]
    losses: Annotated[
        LossPolicy | None,
        setting("`losses` of its keys that set none", default="the top level's"),
    ] = None
    models: Annotated[
        tuple[str, ...],
        setting(
            "models that its keys may use unless they set their own: names and patterns",
            expected="a list of model names and patterns",
            default="all",
        ),
    ] = ()
    limits: Annotated[KeyQuotas, setting("what each of its keys may use", computed=True)] = KeyQuotas()
    shared: Annotated[
        KeyQuotas,
        setting("the same quotas, for all its keys together", form="table", default="none"),
    ] = KeyQuotas()
    safeguards: Annotated[
        SafeguardSettings | None,
        setting("[`[safeguards]`](#safeguards) for its keys", form="table", default="the top level's"),
    ] = None
    managed: Annotated[
        ManagedSettings,
        setting(
            "[`[claude_code]`](#claude_code) for its keys, merged with that of the top level: tables are "
            "merged, any other value is replaced",
            form="table",
            default="the top level's",
        ),
    ] = msgspec.field(default=ManagedSettings(), name="claude_code")


class ClientKey(msgspec.Struct, frozen=True):
    """One of [keys]. Its quotas, the fields of KeyQuotas, are in the key's own table."""

    name: Annotated[str, setting("the caller that it identifies", computed=True)]
    digest: Annotated[str, setting("`sha256:HEX`, the hash of the key", form="text")] = msgspec.field(
        name="hash"
    )
    """Hex SHA-256 of the key, without the prefix."""
    losses: Annotated[
        LossPolicy | None,
        setting("`losses` of the top level, for requests with this key", default="the top level's"),
    ] = None
    models: Annotated[
        tuple[str, ...],
        setting(
            "models that the key may use: names and patterns",
            expected="a list of model names and patterns",
            default="all",
        ),
    ] = ()
    limits: Annotated[KeyQuotas, setting("what it may use", computed=True)] = KeyQuotas()
    expires: Annotated[
        int,
        setting(
            "expiry (a date: the start of that day): `2027-01-31`, `2027-01-31T18:00:00Z`; UTC by default",
            form="date, time",
            default="never",
        ),
    ] = 0
    """Unix milliseconds; 0: never."""
    group: Annotated[str, setting("a group of [`[groups]`](#groups): used for what the key does not set")] = (
        ""
    )
    owner: Annotated[str, setting("the person who uses the key, for reports")] = ""
    full_errors: Annotated[
        bool,
        setting(
            "whether errors of providers name hosts, variables and places in the configuration, as they do "
            "for callers on this machine where no keys are required"
        ),
    ] = False
    created: Annotated[int, setting("when it was made; 0: in the file", computed=True)] = 0
    sign_in: Annotated[str, setting("the sign-in whose token was sent, if any", computed=True)] = ""

    def in_group(self, group: Group | None) -> ClientKey:
        """The key, with its group's values for the settings that it does not set."""
        if group is None:
            return self
        limits = {
            name: getattr(self.limits, name) or getattr(group.limits, name)
            for name in KeyQuotas.__struct_fields__
        }
        return msgspec.structs.replace(
            self,
            losses=self.losses or group.losses,
            models=self.models or group.models,
            limits=KeyQuotas(**limits),
        )


class ServerSettings(msgspec.Struct, frozen=True):
    """[server]"""

    host: Annotated[
        str,
        setting(
            "the address to listen on; any other than this machine's own needs a client key in "
            "`[keys]`, or `require_key`",
            env="WIREGLOT_HOST",
        ),
    ] = "127.0.0.1"
    port: Annotated[
        int, setting("the port to listen on; 0: any free port", ge=0, le=65535, env="WIREGLOT_PORT")
    ] = 8484
    workers: Annotated[
        int,
        setting("number of worker processes that share the port", ge=1, le=256, env="WIREGLOT_WORKERS"),
    ] = 1
    hosts: Annotated[
        tuple[str, ...],
        setting(
            "additional host names that clients use",
            env="WIREGLOT_HOSTS",
            expected="a list of host names",
        ),
    ] = ()
    origins: Annotated[
        tuple[str, ...],
        setting(
            'origins of web pages that may call the gateway: `["https://app.example.com"]`',
            expected="a list of origins",
        ),
    ] = ()
    secret: Annotated[
        Secret,
        setting(
            "seals [reasoning state](gateway.md#reasoning-state) and all that callers store, the "
            "same on every machine of a fleet; without it one is generated at the first start, in the "
            "user's data (`$XDG_DATA_HOME` or `~/.local/share`, `wireglot/secret`)",
            min_length=16,
            env="WIREGLOT_SECRET",
            default="generated",
        ),
    ] = Secret("", "none")
    old_secrets: Annotated[
        tuple[Secret, ...],
        setting("previous secrets: data sealed with them can still be read", expected="a list of secrets"),
    ] = ()
    admin_secret: Annotated[
        Secret,
        setting(
            "authorizes the [admin API](keys.md#admin-api); without it the API is off. `wireglot keys "
            "--url` sends it",
            min_length=16,
            env="WIREGLOT_ADMIN_SECRET",
        ),
    ] = Secret("", "none")
    metrics_key: Annotated[
        Secret,
        setting(
            "authorizes `/metrics` and nothing else; `admin_secret` works too. If clients need no key and "
            "this is not set, `/metrics` needs none either",
            min_length=16,
            env="WIREGLOT_METRICS_KEY",
        ),
    ] = Secret("", "none")
    require_key: Annotated[
        bool,
        setting(
            "refuse requests without a client key even before the first key is made",
            env="WIREGLOT_REQUIRE_KEY",
        ),
    ] = False
    inspector: Annotated[
        Literal["auto", "secret", "off"],
        setting(
            "the [inspector](inspector.md) at `/inspector`: `auto` is open to this machine while no client "
            "keys are required, and otherwise requires the admin secret or a client key; `secret` always "
            "requires it",
            env="WIREGLOT_INSPECTOR",
        ),
    ] = "auto"
    log: Annotated[
        Literal["auto", "json", "pretty", "off"],
        setting("`auto`: pretty on a terminal, else JSON", env="WIREGLOT_LOG"),
    ] = "auto"
    telemetry: Annotated[
        bool, setting("send [OpenTelemetry](operations.md#opentelemetry) spans and metrics")
    ] = False


Approval = Literal["key", "admin", "oidc"]


class LoginSettings(msgspec.Struct, frozen=True):
    """[login]"""

    approval: Annotated[
        tuple[Approval, ...],
        setting(
            "how people sign in: with a client `key`, through the identity provider (`oidc`), or by the "
            "`admin`, who signs in the person's device with the admin secret; one of them or a list",
            form="text, list",
            default='`"oidc"` with `issuer`, else `"key"`',
        ),
    ] = ("key",)
    public_url: Annotated[
        str,
        setting(
            "the address of this gateway for browsers and clients: `https://gateway.example.com`; required "
            "unless the gateway listens on a loopback address only",
        ),
    ] = ""
    issuer: Annotated[
        str, setting("the OpenID Connect provider: its URL without `/.well-known/openid-configuration`")
    ] = ""
    client_id: Annotated[str, setting("the id of this gateway at the provider")] = ""
    client_secret: Annotated[Secret, setting("its secret; none: a public client, with PKCE only")] = Secret(
        "", "none"
    )
    scopes: Annotated[
        tuple[str, ...],
        setting(
            "scopes requested from the provider; with `offline_access` each renewal checks that "
            "the person still has access",
            expected="a list of scopes",
            default='`["openid", "email", "profile"]`',
        ),
    ] = ("openid", "email", "profile")
    groups_claim: Annotated[str, setting("the claim of the ID token that lists a person's groups")] = "groups"
    groups: Annotated[
        dict[str, str],
        setting(
            "values of that claim, each with a group of [`[groups]`](#groups); the first match is used",
            form="table",
        ),
    ] = {}
    default_group: Annotated[
        str,
        setting(
            "the group of people without any of these; if it is not set and `groups` is, they cannot sign in"
        ),
    ] = ""
    allowed_domains: Annotated[
        tuple[str, ...],
        setting(
            "domains of e-mail addresses that may sign in: `example.com`",
            expected="a list of domains",
            default="all",
        ),
    ] = ()
    require_verified_email: Annotated[
        bool,
        setting(
            "refuse people whose e-mail address the provider does not call verified; turn it off only for a "
            "provider that never does, and whose addresses people cannot choose themselves"
        ),
    ] = True
    token_hours: Annotated[
        float, setting("hours until an access token expires; clients renew it before", gt=0, le=720)
    ] = 1.0
    refresh_days: Annotated[float, setting("days until a person must sign in again", gt=0, le=365)] = 7.0
    notice: Annotated[
        str, setting("a sentence that clients show next to the code; at most 500 characters")
    ] = ""


class Keep(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """[store.keep]: how long and how many records are kept. 0: without a limit."""

    responses_days: Annotated[float, setting("days of a stored response, from its end")] = 30.0
    responses_bytes: Annotated[int, setting("bytes of stored responses together")] = 2 * 1024 * MIB
    conversations_days: Annotated[float, setting("days of a conversation")] = 0.0
    conversations_bytes: Annotated[int, setting("bytes of conversations together")] = 0
    vault_days: Annotated[float, setting("days of reasoning that clients cannot carry")] = 30.0
    usage_days: Annotated[float, setting("days of usage")] = 400.0
    idempotency_hours: Annotated[
        float, setting("hours in which an Idempotency-Key returns the same answer")
    ] = 24.0
    idempotency_bytes: Annotated[int, setting("bytes of such answers together")] = 256 * MIB
    events_bytes: Annotated[int, setting("bytes of the streams of background responses together")] = 512 * MIB
    events_hours: Annotated[
        float,
        setting(
            "hours in which the stream of a background response can be resumed; then it can be "
            "fetched whole, but not streamed again"
        ),
    ] = 24.0


class StoreSettings(msgspec.Struct, frozen=True):
    """[store]: where the gateway keeps its state. See docs/state.md for one machine, several workers, a
    fleet."""

    url: Annotated[
        Secret,
        setting(
            "`sqlite:///PATH` (relative: from the configuration), `postgresql://...`, or "
            "`memory:` for the lifetime of the process",
            env="WIREGLOT_STORE",
            default="a file in the user's data",
        ),
    ] = Secret("memory:", "default")
    """A secret, since it may contain a password."""
    shared: Annotated[
        Secret,
        setting("`redis://...`: limits, cool-downs, reasoning and locks of a fleet", env="WIREGLOT_SHARED"),
    ] = Secret("", "none")
    folder: Annotated[
        str,
        setting("for the journal of usage, and what workers share", default="the user's data"),
    ] = ""
    """"": a temporary one."""
    timeout: Annotated[
        float,
        setting(
            "timeout of one call to the store or to Redis; after three failures in a row requests do not "
            "wait for it until a check succeeds",
            gt=0,
            unit="seconds",
        ),
    ] = 2.0
    responses: Annotated[
        Literal["gateway", "upstream"],
        setting(
            "where stored responses are kept: the `gateway`, for every provider, or `upstream`: a "
            "provider of the same dialect itself"
        ),
    ] = "gateway"
    sync: Annotated[
        SyncOrder,
        setting(
            "when the record of a request has reached the disk, so that it survives a power cut: `during` "
            "the provider's work, and before the first byte of its answer is sent to the client; `before` "
            "the provider is called (also: true); or when the operating system decides, `off` (also: false)"
        ),
    ] = "during"
    journal: Annotated[
        int,
        setting("usage stored on the local disk while the store is down", ge=64 * KIB, unit="bytes"),
    ] = 64 * MIB
    ledger_required: Annotated[
        bool,
        setting("refuse requests whose usage could not be recorded, because the journal is full too"),
    ] = False
    keep: Annotated[Keep, setting("[how long, and how much](#how-long-records-are-kept)")] = Keep()


class SearchSettings(msgspec.Struct, frozen=True):
    """[search]"""

    backend: Annotated[
        Literal["searxng", "brave", "tavily", "exa", "google", "model"],
        setting(
            "the search engine: `searxng`, `brave`, `tavily`, `exa`, `google` (Programmable Search), or "
            "`model`, another model whose provider searches the web",
            default="must be given",
        ),
    ] = "searxng"
    url: Annotated[
        str,
        setting(
            "its base URL: required for `searxng`, without `/search`; for others only to go through another "
            "host, which then needs `key`",
            default="the vendor's",
        ),
    ] = ""
    key: Annotated[
        Secret,
        setting(
            "its API key",
            default="`BRAVE_API_KEY`, `TAVILY_API_KEY`, `EXA_API_KEY`, `GOOGLE_SEARCH_API_KEY`",
        ),
    ] = Secret("", "none")
    engine: Annotated[str, setting("for `google`: the id of the search engine, `cx`")] = ""
    model: Annotated[
        str,
        setting(
            "for `model`: the model, as a client would name it: `provider/model`, or a name of `[models]`"
        ),
    ] = ""
    max_results: Annotated[
        int,
        setting("maximum results of a search; a client that asks for little context gets half", ge=1, le=20),
    ] = 8
    timeout: Annotated[float, setting("timeout of a search", gt=0, le=300, unit="seconds")] = 10.0
    price: Annotated[
        float | None,
        setting(
            "what one search costs, in units of `currency`; needed with a currency other than `USD`",
            ge=0,
            le=1000,
            default="the vendor's list price; 0 for `searxng`",
        ),
    ] = None
    allowed_domains: Annotated[
        tuple[str, ...],
        setting(
            "only results of these domains and their subdomains, whatever the client asks for: "
            "`example.com`, `example.com/docs`",
            expected="a list of domains",
            default="all",
        ),
    ] = ()
    blocked_domains: Annotated[
        tuple[str, ...], setting("no results of these domains", expected="a list of domains")
    ] = ()
    proxy: Annotated[
        str, setting("`http://host:port`; proxies of the environment are not used", form="secret")
    ] = ""
    fetch: Annotated[
        bool, setting("fetch pages, too, with the defaults of [`[fetch]`](#fetch), if there is no such table")
    ] = False

    def __repr__(self) -> str:
        """The proxy may contain a password: it is not shown."""
        return f"SearchSettings({self.backend})"


class FetchSettings(msgspec.Struct, frozen=True):
    """[fetch]"""

    max_bytes: Annotated[
        int, setting("maximum size of a page, after decompression", gt=0, le=64 * MIB, unit="bytes")
    ] = 10 * MIB
    max_tokens: Annotated[
        int, setting("maximum length of its text, by estimate; the rest is cut off", gt=0, unit="tokens")
    ] = 50_000
    timeout: Annotated[
        float, setting("timeout of a fetch with all its redirects", gt=0, le=300, unit="seconds")
    ] = 15.0
    allowed_domains: Annotated[
        tuple[str, ...],
        setting(
            "only pages of these domains and their subdomains, whatever the client asks for",
            expected="a list of domains",
            default="all",
        ),
    ] = ()
    blocked_domains: Annotated[
        tuple[str, ...], setting("no pages of these domains", expected="a list of domains")
    ] = ()
    private_hosts: Annotated[
        tuple[str, ...],
        setting(
            "hosts of the private network that may be fetched from, although only public addresses may: "
            "`wiki.example.com`, `wiki.example.com:8080`, `10.1.2.0/24`. Anyone who may use the gateway can "
            "read what they serve without a login",
            expected="a list of host names, addresses and networks",
        ),
    ] = ()
    proxy: Annotated[
        str,
        setting(
            "`http://host:port`. The proxy resolves names, so it must itself refuse private addresses",
            form="secret",
        ),
    ] = ""

    def __repr__(self) -> str:
        """The proxy may contain a password: it is not shown."""
        return f"FetchSettings({self.max_bytes} bytes)"


class McpSettings(msgspec.Struct, frozen=True):
    """[mcp]"""

    hosts: Annotated[
        tuple[str, ...],
        setting(
            "hosts of MCP servers that may be connected to over HTTPS: `mcp.example.com`, "
            "`mcp.example.com:8443`. They must have public addresses",
            expected="a list of host names and addresses",
        ),
    ] = ()
    private_hosts: Annotated[
        tuple[str, ...],
        setting(
            "hosts that may also have private addresses, over HTTPS or HTTP: `tools.internal`, "
            "`127.0.0.1:8000`. Anyone who may use the gateway can call the tools that they serve",
            expected="a list of host names and addresses",
        ),
    ] = ()
    timeout: Annotated[
        float,
        setting("timeout of connecting, of listing the tools and of each call", gt=0, le=600, unit="seconds"),
    ] = 60.0
    max_result: Annotated[
        int, setting("maximum size of the answer to one call or listing", gt=0, le=64 * MIB, unit="bytes")
    ] = MIB
    max_tools: Annotated[
        int, setting("maximum number of tools of one server that a request may offer to a model", gt=0)
    ] = 128


class Settings(msgspec.Struct, frozen=True):
    """A whole configuration. A request keeps the one that it began with."""

    server: Annotated[ServerSettings, setting("[listen address, workers and access control](#server)")] = (
        ServerSettings()
    )
    limits: Annotated[ProcessLimits, setting("[resource limits](#limits)")] = ProcessLimits()
    providers: Annotated[dict[str, Provider], setting("[upstream providers](#providersname)")] = {}
    rules: Annotated[
        tuple[Rule, ...],
        setting(
            "[model routing](#models)",
            examples=["claude-*=kimi/kimi-k3;fast=gemini/gemini-2.5-flash,mine/some-model"],
            env="WIREGLOT_MODELS",
            form="table",
        ),
    ] = msgspec.field(default=(), name="models")
    keys: Annotated[
        tuple[ClientKey, ...],
        setting(
            "[client keys](#keys)",
            examples=["team-a=sha256:HEX,sha256:HEX"],
            env="WIREGLOT_KEYS",
            form="table",
        ),
    ] = ()
    groups: Annotated[dict[str, Group], setting("[groups of client keys](#groups)")] = {}
    login: Annotated[
        LoginSettings | None,
        setting("[signing in to the gateway](#sign-in-login); without this table it is off", form="table"),
    ] = None
    losses: Annotated[
        LossPolicy,
        setting(
            "what to do with a request that cannot be translated without loss: reject it, report it in the "
            "answer's headers, or neither; `as-is` repairs nothing and sends the request unchanged. A rule,"
            " a key or a provider [can override it](gateway.md#losses)",
            env="WIREGLOT_LOSSES",
        ),
    ] = "warn"
    store: Annotated[StoreSettings, setting("[persistent state](#store)")] = StoreSettings()
    safeguards: Annotated[SafeguardSettings, setting("[safety checks of tool calls](#safeguards)")] = (
        SafeguardSettings()
    )
    search: Annotated[
        SearchSettings | None,
        setting(
            "[web search for models whose provider has none](#search); without this table it is off",
            form="table",
        ),
    ] = None
    fetch: Annotated[
        FetchSettings | None,
        setting(
            "[web fetch for models whose provider has none](#fetch); without this table, or `fetch` in "
            "`[search]`, it is off",
            form="table",
        ),
    ] = None
    mcp: Annotated[
        McpSettings | None,
        setting(
            "[MCP servers for models whose provider does not connect to them](#mcp); without this table it "
            "is off",
            form="table",
        ),
    ] = None
    managed: Annotated[ManagedSettings, setting("[settings of Claude Code](#claude_code)", form="table")] = (
        msgspec.field(default=ManagedSettings(), name="claude_code")
    )
    telemetry: Annotated[
        TelemetrySettings, setting("[where the telemetry of clients goes](#telemetry)", form="table")
    ] = TelemetrySettings()
    trace: Annotated[TraceSettings, setting("[which bodies are recorded](#trace)")] = TraceSettings()
    prices: Annotated[tuple[PriceRule, ...], setting("[what models cost](#prices)", form="table")] = ()
    """Checked before the catalog's prices; the first match applies."""
    currency: Annotated[str, setting("the currency of all amounts")] = "USD"
    off: Annotated[
        dict[str, str],
        setting(
            "providers of the file that are off because the variable of their key is not set, "
            "with that variable",
            computed=True,
        ),
    ] = {}
    source: Annotated[str, setting('the file it was read from, "" where there is none', computed=True)] = ""
    notes: Annotated[
        tuple[str, ...],
        setting(
            "what a person should know of it: which keys were found, that only the demo is on", computed=True
        ),
    ] = ()
