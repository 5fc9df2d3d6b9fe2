"""Where a LiteLLM model is: the fields of a provider, by the prefix of the model and what the entry says."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from wireglot.cli.import_.document import Node
from wireglot.cli.import_.endpoints import based, label, place_of
from wireglot.cli.import_.litellm.values import plain, reference, secret, word
from wireglot.cli.import_.secret_names import Secrets
from wireglot.providers import spec as catalog

_AZURE_HOST: Final = re.compile(
    r"https://([A-Za-z0-9-]+)\.(openai\.azure\.com|services\.ai\.azure\.com)(/.*)?"
)
_AZURE_VERSION: Final = "2025-02-01-preview"
"""LiteLLM's, where nobody names one (litellm/__init__.py, 2026-08)."""
_VERTEX_LOCATION: Final = "us-central1"
"""LiteLLM's, where nobody names one."""
_REGION: Final = re.compile(r"[a-z]{2}(-[a-z]+)+-\d")
_BEDROCK_ROUTES: Final = ("converse/", "converse_like/", "invoke/", "openai/")
_ENTRA: Final = {"tenant_id": "tenant", "client_id": "client", "client_secret": "secret"}
_AWS: Final = {
    "aws_access_key_id": "access_key",
    "aws_secret_access_key": "secret_key",
    "aws_session_token": "session_token",
}


class NotCarried(Exception):
    """The message says why, and what to do."""


class Address(msgspec.Struct):
    """`used` are the settings that are in `fields`; `variables` are where a key is looked for."""

    model: str
    fields: dict[str, Any]
    wish: str
    used: list[Node] = []
    said: str = "the fields of its provider"
    variables: tuple[str, ...] = ()
    keyless: bool = False
    takes_key: bool = True


def address_of(
    prefix: str, row: Mapping[str, Any], model: str, given: Mapping[str, Node], secrets: Secrets
) -> Address:
    form = _FORMS.get(row.get("form", ""))
    if form is not None:
        return form(row, model, given, secrets)
    return _plain(prefix, row, model, given, secrets)


def _plain(
    prefix: str, row: Mapping[str, Any], model: str, given: Mapping[str, Node], secrets: Secrets
) -> Address:
    model = model.removeprefix("responses/")
    base = given.get("api_base") or given.get("base_url")
    variables = tuple(row.get("env", ()))
    keyless = row.get("keyless", False)
    entry = row.get("catalog", "")
    if base is None:
        if entry:
            return Address(model, {"catalog": entry}, entry, variables=variables, keyless=keyless)
        if "base_url" not in row:
            raise NotCarried(f"a model of {prefix}/ needs an api_base")
        fields = {"dialect": row["dialect"], "base_url": row["base_url"]}
        return Address(model, fields, prefix, variables=variables, keyless=keyless)
    url = plain(base, secrets)
    append = row.get("append", "")
    if append and not url.rstrip("/").endswith(append):
        url = url.rstrip("/") + append
    place = place_of(url, row["dialect"], entry)
    wish = place.catalog or label(place.base_url)
    if place.catalog:
        keyless = keyless or catalog.provider(place.catalog).auth == "none"
    return Address(model, place.fields(), wish, [base], variables=variables, keyless=keyless)


def _azure(row: Mapping[str, Any], model: str, given: Mapping[str, Node], secrets: Secrets) -> Address:
    """A deployment of Azure OpenAI: the model is its name."""
    base = given.get("api_base") or given.get("base_url")
    if base is None:
        raise NotCarried("an Azure model needs an api_base: it is not looked for in AZURE_API_BASE")
    url = based(plain(base, secrets), "openai-chat")
    version = given.get("api_version")
    named = version.text or str(version.value) if version is not None else ""
    used = [node for node in (base, version) if node is not None]
    known = _AZURE_HOST.fullmatch(url)
    model = re.sub(r"^(responses|o_series|gpt5_series)/", "", model)
    path = url.partition("://")[2].partition("/")[2]
    fields: dict[str, Any]
    if "openai/v1" in path or named in ("v1", "preview", "latest"):
        fields = {"catalog": "azure"}
        address = f"{url.partition('/openai')[0]}/openai/v1"
    else:
        fields = {"catalog": "azure-deployments"}
        address = f"{url.partition('/openai')[0]}/openai"
        fields["variables"] = {"api_version": _said(version, secrets, "AZURE_API_VERSION", _AZURE_VERSION)}
    if known is not None and known[2] == "openai.azure.com":
        fields["variables"] = {"resource": known[1], **fields.get("variables", {})}
    else:
        fields["base_url"] = address
    wish = f"azure-{known[1]}" if known is not None else f"azure-{label(url)}"
    return _entra(Address(model, fields, wish, used, variables=tuple(row["env"])), given, secrets)


def _entra(address: Address, given: Mapping[str, Node], secrets: Secrets) -> Address:
    """With the application that signs in, if the entry names one."""
    parts = {ours: given[theirs] for theirs, ours in _ENTRA.items() if theirs in given}
    if "api_key" in given or not parts:
        return address
    login = {"kind": "entra"}
    for ours, node in parts.items():
        login[ours] = (
            secret(node, secrets, "AZURE_CLIENT_SECRET") if ours == "secret" else reference(node, secrets)
        )
    address.fields["login"] = login
    address.used.extend(parts.values())
    address.takes_key = False
    return address


def _foundry(row: Mapping[str, Any], model: str, given: Mapping[str, Node], secrets: Secrets) -> Address:
    """Claude on Microsoft Foundry; other models there by OpenAI's dialects."""
    base = given.get("api_base") or given.get("base_url")
    if base is None:
        raise NotCarried("a model of azure_ai/ needs an api_base: it is not looked for in AZURE_AI_API_BASE")
    url = based(plain(base, secrets), "openai-chat")
    known = _AZURE_HOST.fullmatch(url)
    used = [base]
    variables = tuple(row["env"])
    scheme, _, rest = url.partition("://")
    root = f"{scheme}://{rest.partition('/')[0]}"
    wish = f"azure-{known[1]}" if known is not None else f"azure-{label(root)}"
    if "claude" in model.lower():
        fields: dict[str, Any] = {"catalog": "azure-anthropic"}
        if known is not None and known[2] == "services.ai.azure.com":
            fields["variables"] = {"resource": known[1]}
        else:
            fields["base_url"] = f"{root}/anthropic"
        return Address(model, fields, f"{wish}-claude", used, variables=variables)
    fields = {"catalog": "azure", "base_url": f"{root}/openai/v1"}
    return Address(model, fields, wish, used, variables=variables)


def _bedrock(_: Mapping[str, Any], model: str, given: Mapping[str, Node], secrets: Secrets) -> Address:
    """Claude by InvokeModel, all others by Bedrock's OpenAI-compatible endpoint."""
    for route in _BEDROCK_ROUTES:
        model = model.removeprefix(route)
    head, slash, rest = model.partition("/")
    region: str | None = head if slash and _REGION.fullmatch(head) else None
    model = rest if region is not None else model
    claude = "claude" in model or "anthropic" in model or model.startswith(("arn:", "*"))
    entry = "bedrock" if claude else "bedrock-openai"
    fields: dict[str, Any] = {"catalog": entry}
    used: list[Node] = []
    if "aws_region_name" in given:
        region = word(given["aws_region_name"], secrets)
        used.append(given["aws_region_name"])
    elif region is None:
        region = _first_variable(secrets, "AWS_REGION_NAME", "AWS_REGION")
    endpoint = given.get("aws_bedrock_runtime_endpoint") or given.get("api_base")
    if endpoint is not None:
        root = based(plain(endpoint, secrets), "anthropic")
        fields["base_url"] = root if claude else f"{root}/openai/v1"
        used.append(endpoint)
    else:
        fields["variables"] = {"region": region}
    login = _aws_login(given, secrets, used)
    takes_key = "api_key" in given
    if not takes_key:
        if endpoint is not None:
            login["region"] = region
        fields["login"] = {"kind": "aws", **login} if login else "aws"
    wish = f"{entry}-{region}" if not region.startswith("env:") else entry
    return Address(model, fields, wish, used, variables=("AWS_BEARER_TOKEN_BEDROCK",), takes_key=takes_key)


def _aws_login(given: Mapping[str, Node], secrets: Secrets, used: list[Node]) -> dict[str, str]:
    login = {}
    for theirs, ours in _AWS.items():
        if theirs in given:
            login[ours] = secret(given[theirs], secrets, theirs.upper())
            used.append(given[theirs])
    if "aws_profile_name" in given:
        used.append(given["aws_profile_name"])
        if not login:
            login["profile"] = reference(given["aws_profile_name"], secrets)
    return login


def _vertex(_: Mapping[str, Any], model: str, given: Mapping[str, Node], secrets: Secrets) -> Address:
    """Gemini and Claude on Vertex."""
    claude = model.startswith("claude")
    if not claude and not model.startswith(("gemini", "*")):
        raise NotCarried("of Vertex only Gemini and Claude are served here")
    fields: dict[str, Any] = {"catalog": "vertex-anthropic" if claude else "vertex"}
    project = given.get("vertex_project") or given.get("vertex_ai_project")
    location = given.get("vertex_location") or given.get("vertex_ai_location")
    credentials = given.get("vertex_credentials") or given.get("vertex_ai_credentials")
    used = [node for node in (project, location, credentials) if node is not None]
    if project is not None:
        fields["project"] = word(project, secrets)
    else:
        fields["project"] = _first_variable(
            secrets, "VERTEXAI_PROJECT", "VERTEX_PROJECT", "GOOGLE_CLOUD_PROJECT"
        )
    fields["location"] = _said(location, secrets, "VERTEXAI_LOCATION", _VERTEX_LOCATION)
    if credentials is not None:
        fields["login"] = {"kind": "google", "key_file": _key_file(credentials, secrets)}
    wish = fields["catalog"]
    return Address(model, fields, wish, used, takes_key=False)


def _key_file(node: Node, secrets: Secrets) -> str:
    if node.fields or plain(node, secrets).lstrip().startswith("{"):
        raise NotCarried(
            "the key of its service account stands in the file itself: save it as a file, and name that"
        )
    return plain(node, secrets)


def _said(node: Node | None, secrets: Secrets, variable: str, usual: str) -> str:
    """What the entry says, else a variable that LiteLLM looks in, else what it takes without any."""
    if node is not None:
        return word(node, secrets)
    return secrets.variable(variable) if secrets.value(variable) else usual


def _first_variable(secrets: Secrets, *names: str) -> str:
    """The first that is set here, else the last, which is the one of the cloud's own tools."""
    return secrets.variable(next((name for name in names if secrets.value(name)), names[-1]))


_FORMS: Final[dict[str, Callable[[Mapping[str, Any], str, Mapping[str, Node], Secrets], Address]]] = {
    "azure": _azure,
    "foundry": _foundry,
    "bedrock": _bedrock,
    "vertex": _vertex,
}
