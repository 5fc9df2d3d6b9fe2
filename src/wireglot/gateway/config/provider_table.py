"""[providers] and [providers.NAME]: the settings that choose a catalog entry, change it, or replace one."""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import Struct

from wireglot.gateway.process_limits import setting
from wireglot.gateway.settings import Secret
from wireglot.logins.login import LoginKind
from wireglot_core.providers.spec import Auth, Streams

_ENTRY: Final = "the entry's"


class ProvidersTable(Struct, frozen=True):
    """The settings of [providers] that are not providers."""

    discover: Annotated[
        bool,
        setting("enable providers that are not in the file if their keys are in the environment"),
    ] = True


class LoginTable(Struct, frozen=True):
    """[providers.NAME.login]. Every value may be a reference, `env:NAME` or `file:PATH`."""

    kind: Annotated[
        LoginKind | None,
        setting("`google`, `entra` (Azure) or `aws`", default=_ENTRY),
    ] = None
    key_file: Annotated[
        str,
        setting(
            "`google`: the file with the key of a service account; without it, application "
            "default credentials"
        ),
    ] = ""
    tenant: Annotated[str, setting("`entra`: the tenant", default="`$AZURE_TENANT_ID`")] = ""
    client: Annotated[
        str,
        setting("`entra`: the application's id, or that of a managed identity", default="`$AZURE_CLIENT_ID`"),
    ] = ""
    secret: Annotated[
        Secret | None,
        setting("`entra`: the client secret", default="`$AZURE_CLIENT_SECRET`"),
    ] = None
    token_file: Annotated[
        str,
        setting(
            "`entra`: the file with the platform's token (workload identity); without "
            "secret and file, the machine's managed identity",
            default="`$AZURE_FEDERATED_TOKEN_FILE`",
        ),
    ] = ""
    authority: Annotated[
        str,
        setting(
            "`entra`: the token issuer",
            form="URL",
            default="`$AZURE_AUTHORITY_HOST`, or Microsoft's public one",
        ),
    ] = ""
    metadata: Annotated[
        str,
        setting(
            "`entra`: the endpoint for managed identities",
            form="URL",
            default="`http://169.254.169.254`",
        ),
    ] = ""
    access_key: Annotated[
        Secret | None,
        setting("`aws`: the id of an access key", default="`$AWS_ACCESS_KEY_ID`"),
    ] = None
    secret_key: Annotated[
        Secret | None,
        setting("`aws`: the key itself", default="`$AWS_SECRET_ACCESS_KEY`"),
    ] = None
    session_token: Annotated[
        Secret | None,
        setting("`aws`: the token of temporary credentials", default="`$AWS_SESSION_TOKEN`"),
    ] = None
    profile: Annotated[
        str,
        setting(
            "`aws`: the profile that `botocore` uses if no keys are set; without it, "
            "the default credential chain of AWS"
        ),
    ] = ""
    region: Annotated[
        str,
        setting("`aws`: the region that requests are signed for", default="`variables.region`"),
    ] = ""
    service: Annotated[str, setting("`aws`: the service that requests are signed for", default=_ENTRY)] = ""
    scope: Annotated[str, setting("`google`, `entra`: what the token is for", default=_ENTRY)] = ""


class ProviderTable(Struct, frozen=True):
    """[providers.NAME], as it is written. Settings that are not given are the entry's. Further fields, which
    no catalog entry has, are in `settings.Provider`."""

    catalog: Annotated[str, setting("the catalog entry to use, if the name is not one")] = ""
    dialect: Annotated[
        str,
        setting(
            "its API dialect: `anthropic`, `openai-chat`, `openai-responses`, `gemini`, "
            "`gemini-interactions`, `code-assist`, `ollama`, or one of an installed package"
        ),
    ] = ""
    dialects: Annotated[
        tuple[str, ...],
        setting(
            "the same for several dialects; preferred first",
            expected="a list of dialects",
            default=_ENTRY,
        ),
    ] = ()
    base_url: Annotated[
        str,
        setting(
            "what precedes the path of a request: without `/v1` for `anthropic`, with it "
            "for OpenAI's dialects, with the version for `gemini`",
            form="URL",
            default=_ENTRY,
        ),
    ] = ""
    base_urls: Annotated[
        dict[str, str],
        setting(
            'other base URLs for some of its dialects: `{ anthropic = "https://..." }`. If '
            "`base_url` replaces that of a catalog entry, dialects with a separate URL there "
            "(MiniMax's `/anthropic`) are off unless listed here or in `dialects`; an Anthropic URL that "
            "differs only by the missing `/v1` is derived from the new `base_url`",
            default=_ENTRY,
        ),
    ] = {}
    api_key: Annotated[
        Secret | None,
        setting(
            "its key. Default: the catalog's variable, unless `base_url` was changed, so that a key is "
            "never sent to another host"
        ),
    ] = None
    api_keys: Annotated[
        tuple[Secret, ...],
        setting("[a pool of keys](gateway.md#keys-in-a-pool)", expected="a list of keys"),
    ] = ()
    login: Annotated[
        str,
        setting(
            "[signing in](#login) instead of a key: `google`, `entra` or `aws`, or a table. "
            "Default: the entry's, if there is no key",
            form="text, table",
            default=_ENTRY,
        ),
    ] = ""
    auth: Annotated[Auth | None, setting("how the key is sent", default=_ENTRY)] = None
    models: Annotated[
        tuple[str, ...],
        setting(
            "the only models it serves; patterns are allowed",
            expected="a list of model names",
            default=_ENTRY,
        ),
    ] = ()
    project: Annotated[str, setting("short for `variables.project`")] = ""
    location: Annotated[str, setting("short for `variables.location`")] = ""
    streams: Annotated[
        Streams | None,
        setting(
            "`only`: it always streams; `never`: it never streams. The gateway converts",
            default=_ENTRY,
        ),
    ] = None
    websocket: Annotated[
        bool | None,
        setting(
            "`true`: it also serves `openai-responses` over a [WebSocket](gateway.md#toward-providers). "
            "Default: the entry's, unless `base_url` was changed"
        ),
    ] = None
    counts: Annotated[
        tuple[str, ...],
        setting(
            "dialects in which it counts tokens itself", expected="a list of its dialects", default=_ENTRY
        ),
    ] = ()
    limits: Annotated[
        dict[str, object],
        setting("what it rejects, as in a catalog file", default=_ENTRY),
    ] = {}
    home: Annotated[
        bool | None,
        setting(
            "`true` for the dialect's own vendor: requests in it are [forwarded "
            "unchanged](gateway.md#forwarded-or-translated)",
            default=_ENTRY,
        ),
    ] = None
    title: Annotated[str, setting("display name", default="the entry's, or the name")] = ""
