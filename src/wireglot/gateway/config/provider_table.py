"""[providers] and [providers.NAME]: the settings that choose a catalog entry, change it, or stand for one."""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import Meta, Struct

from wireglot.gateway.settings import Secret
from wireglot.logins.login import LoginKind
from wireglot.providers.spec import Auth, Streams

_ENTRY: Final = "the entry's"


class ProvidersTable(Struct, frozen=True):
    """What [providers] says beside the providers."""

    discover: Annotated[
        bool,
        Meta(
            description="whether providers that the file does not name are on if their keys are in the "
            "environment"
        ),
    ] = True


class LoginTable(Struct, frozen=True):
    """[providers.NAME.login]. Every value may be a reference, `env:NAME` or `file:PATH`."""

    kind: Annotated[
        LoginKind | None,
        Meta(description="`google`, `entra` (Azure) or `aws`", extra={"default": _ENTRY}),
    ] = None
    key_file: Annotated[
        str,
        Meta(
            description="`google`: the file with the key of a service account; without it, application "
            "default credentials"
        ),
    ] = ""
    tenant: Annotated[
        str, Meta(description="`entra`: the tenant", extra={"default": "`$AZURE_TENANT_ID`"})
    ] = ""
    client: Annotated[
        str,
        Meta(
            description="`entra`: the application's id, or that of a managed identity",
            extra={"default": "`$AZURE_CLIENT_ID`"},
        ),
    ] = ""
    secret: Annotated[
        Secret | None,
        Meta(description="`entra`: the client secret", extra={"default": "`$AZURE_CLIENT_SECRET`"}),
    ] = None
    token_file: Annotated[
        str,
        Meta(
            description="`entra`: the file in which the platform keeps a token (workload identity); without "
            "secret and file, the machine's managed identity",
            extra={"default": "`$AZURE_FEDERATED_TOKEN_FILE`"},
        ),
    ] = ""
    authority: Annotated[
        str,
        Meta(
            description="`entra`: who gives out tokens",
            extra={"form": "URL", "default": "`$AZURE_AUTHORITY_HOST`, or Microsoft's public one"},
        ),
    ] = ""
    metadata: Annotated[
        str,
        Meta(
            description="`entra`: where a machine asks for its own identity",
            extra={"form": "URL", "default": "`http://169.254.169.254`"},
        ),
    ] = ""
    access_key: Annotated[
        Secret | None,
        Meta(description="`aws`: the id of an access key", extra={"default": "`$AWS_ACCESS_KEY_ID`"}),
    ] = None
    secret_key: Annotated[
        Secret | None,
        Meta(description="`aws`: the key itself", extra={"default": "`$AWS_SECRET_ACCESS_KEY`"}),
    ] = None
    session_token: Annotated[
        Secret | None,
        Meta(description="`aws`: goes with a key that was lent", extra={"default": "`$AWS_SESSION_TOKEN`"}),
    ] = None
    profile: Annotated[
        str,
        Meta(
            description="`aws`: the profile that `botocore` looks in, where no keys are given; without it, "
            "all places that Amazon's tools know"
        ),
    ] = ""
    region: Annotated[
        str,
        Meta(
            description="`aws`: the region that requests are signed for",
            extra={"default": "`variables.region`"},
        ),
    ] = ""
    service: Annotated[
        str, Meta(description="`aws`: the service that requests are signed for", extra={"default": _ENTRY})
    ] = ""
    scope: Annotated[
        str, Meta(description="`google`, `entra`: what the token is for", extra={"default": _ENTRY})
    ] = ""


class ProviderTable(Struct, frozen=True):
    """[providers.NAME], as it is written. What is not said is the entry's. More of its fields, those that no
    catalog knows, are in `settings.Provider`."""

    catalog: Annotated[str, Meta(description="the entry to start from, where the name is not one itself")] = (
        ""
    )
    dialect: Annotated[
        str,
        Meta(
            description="what it speaks: `anthropic`, `openai-chat`, `openai-responses`, `gemini`, "
            "`code-assist`, or one that is registered from outside"
        ),
    ] = ""
    dialects: Annotated[
        tuple[str, ...],
        Meta(
            description="the same, where it speaks several; preferred first",
            extra={"expected": "a list of dialects", "default": _ENTRY},
        ),
    ] = ()
    base_url: Annotated[
        str,
        Meta(
            description="what stands before the path of a request: without `/v1` for `anthropic`, with it "
            "for OpenAI's dialects, with the version for `gemini`",
            extra={"form": "URL", "default": _ENTRY},
        ),
    ] = ""
    base_urls: Annotated[
        dict[str, str],
        Meta(
            description='other base URLs for some of its dialects: `{ anthropic = "https://..." }`. Where '
            "`base_url` replaces the one of a catalog entry, dialects with a place of their own there "
            "(MiniMax's `/anthropic`) are off unless named here or in `dialects`; an Anthropic form that "
            "only lacks the `/v1` moves along",
            extra={"default": _ENTRY},
        ),
    ] = {}
    api_key: Annotated[
        Secret | None,
        Meta(
            description="its key. Without, the catalog's variable is looked for, unless `base_url` was "
            "changed: a key goes to no other host unasked"
        ),
    ] = None
    api_keys: Annotated[
        tuple[Secret, ...],
        Meta(description="[a pool of keys](gateway.md#keys-in-a-pool)", extra={"expected": "a list of keys"}),
    ] = ()
    login: Annotated[
        str,
        Meta(
            description="[signing in](#login) instead of a key: `google`, `entra` or `aws`, or a table. "
            "Where there is no key, the entry's",
            extra={"form": "text, table", "default": _ENTRY},
        ),
    ] = ""
    auth: Annotated[Auth | None, Meta(description="how the key is sent", extra={"default": _ENTRY})] = None
    models: Annotated[
        tuple[str, ...],
        Meta(
            description="the names it serves, and no others are looked for there; patterns are allowed",
            extra={"expected": "a list of model names", "default": _ENTRY},
        ),
    ] = ()
    project: Annotated[str, Meta(description="`variables.project`, for short")] = ""
    location: Annotated[str, Meta(description="`variables.location`, for short")] = ""
    streams: Annotated[
        Streams | None,
        Meta(
            description="`only`: a whole answer is folded from a stream; `never`: a stream is unfolded from "
            "a whole answer",
            extra={"default": _ENTRY},
        ),
    ] = None
    counts: Annotated[
        tuple[str, ...],
        Meta(
            description="dialects in which it counts tokens itself",
            extra={"expected": "a list of its dialects", "default": _ENTRY},
        ),
    ] = ()
    limits: Annotated[
        dict[str, object],
        Meta(description="what it refuses, as in a catalog file", extra={"default": _ENTRY}),
    ] = {}
    home: Annotated[
        bool | None,
        Meta(
            description="`true` for the dialect's own vendor: what clients say in it "
            "[goes there as it is](gateway.md#forwarded-or-translated)",
            extra={"default": _ENTRY},
        ),
    ] = None
    title: Annotated[
        str, Meta(description="how lists call it", extra={"default": "the entry's, or the name"})
    ] = ""
