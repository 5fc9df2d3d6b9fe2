"""One entry of `model_list` -> a deployment: its provider, key and model."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from typing import Any, Final

import msgspec

from wireglot.cli.import_.draft import ImportReport, is_model_name, place, table
from wireglot.cli.import_.endpoints import (
    NoAddress,
    Secrets,
    based,
    is_secret_header,
    key_name,
    label,
    place_of,
)
from wireglot.cli.import_.source import NotCarried, NotKnownHere, SourceNode, kind
from wireglot.cli.terminal import one_line
from wireglot.gateway.config.providers import may_be_set
from wireglot_core.providers import spec as catalog

_VARIABLE: Final = "os.environ/"
_TEMPLATE: Final = re.compile(r"\$\{\w{1,200}\}", re.ASCII)
_WORD: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]*")
_SENDABLE: Final = re.compile(r"[\x21-\x7e]+")


def variable_of(node: SourceNode | None) -> str:
    """The variable that a value references; "" if it is a value itself."""
    text = node.text if node is not None else ""
    return text.removeprefix(_VARIABLE).strip() if text.startswith(_VARIABLE) else ""


def _refuse_templates(params: SourceNode) -> None:
    """LiteLLM sends `${NAME}` unchanged: what fills it before LiteLLM reads the file must do so here."""
    for node in params.fields.values():
        if isinstance(node.value, str) and (found := _TEMPLATE.search(node.text)) is not None:
            field, whole = one_line(node.name.rpartition(".")[2]), _VARIABLE + found[0][2:-1]
            raise NotKnownHere(
                f"{field} contains {found[0]}, which LiteLLM does not expand: fill it in, or write {whole} "
                "as the whole value, and import again"
            )


def plain(node: SourceNode, secrets: Secrets) -> str:
    """A value that is written into the configuration."""
    name = variable_of(node)
    if not name:
        return node.text if isinstance(node.value, str) else str(node.value)
    found = secrets.value(name)
    if not found:
        raise NotKnownHere(f"the value of {name} is needed, and it is not set: set it, and import again")
    return found


def reference(node: SourceNode, secrets: Secrets) -> str:
    """A value that is not secret, and may be a reference."""
    name = variable_of(node)
    return secrets.variable(name) if name else node.text or str(node.value)


def word(node: SourceNode, secrets: Secrets) -> str:
    """The same for a value that becomes part of an address."""
    found = reference(node, secrets)
    if not variable_of(node) and not _WORD.fullmatch(found):
        raise NotKnownHere(
            "its region, project or version contains characters that are invalid in an address"
        )
    return found


def secret(node: SourceNode, secrets: Secrets, wish: str) -> str:
    """A value that must not be written into the configuration: always a reference."""
    name = variable_of(node)
    if not name and not _SENDABLE.fullmatch(node.text or str(node.value)):
        raise NotKnownHere("a key must be plain ASCII without spaces")
    return secrets.variable(name) if name else secrets.hidden(node.text or str(node.value), wish)


_AZURE_HOST: Final = re.compile(
    r"https://([A-Za-z0-9-]+)\.(openai\.azure\.com|services\.ai\.azure\.com)(/.*)?"
)
_AZURE_VERSION: Final = "2025-02-01-preview"
"""LiteLLM's default (litellm/__init__.py, 2026-08)."""
_VERTEX_LOCATION: Final = "us-central1"
"""LiteLLM's default."""
_REGION: Final = re.compile(r"[a-z]{2}(-[a-z]+)+-\d")
_BEDROCK_ROUTES: Final = ("converse/", "converse_like/", "invoke/", "openai/")
_ENTRA: Final = {"tenant_id": "tenant", "client_id": "client", "client_secret": "secret"}
_AWS: Final = {
    "aws_access_key_id": "access_key",
    "aws_secret_access_key": "secret_key",
    "aws_session_token": "session_token",
}


class ModelAddress(msgspec.Struct):
    """`used` are the settings that are in `fields`; `variables` are searched for a key."""

    model: str
    fields: dict[str, Any]
    wish: str
    used: list[SourceNode] = []
    said: str = "fields of the provider"
    variables: tuple[str, ...] = ()
    keyless: bool = False
    takes_key: bool = True


def address_of(
    prefix: str, row: Mapping[str, Any], model: str, given: Mapping[str, SourceNode], secrets: Secrets
) -> ModelAddress:
    form = _FORMS.get(row.get("form", ""))
    if form is not None:
        return form(row, model, given, secrets)
    return _plain(prefix, row, model, given, secrets)


def _plain(
    prefix: str, row: Mapping[str, Any], model: str, given: Mapping[str, SourceNode], secrets: Secrets
) -> ModelAddress:
    model = model.removeprefix("responses/")
    base = given.get("api_base") or given.get("base_url")
    variables = tuple(row.get("env", ()))
    keyless = row.get("keyless", False)
    entry = row.get("catalog", "")
    if base is None:
        if entry:
            return ModelAddress(model, {"catalog": entry}, entry, variables=variables, keyless=keyless)
        if "base_url" not in row:
            raise NotCarried(f"a model of {prefix}/ needs an api_base")
        fields = {"dialect": row["dialect"], "base_url": row["base_url"]}
        return ModelAddress(model, fields, prefix, variables=variables, keyless=keyless)
    url = plain(base, secrets)
    append = row.get("append", "")
    if append and not url.rstrip("/").endswith(append):
        url = url.rstrip("/") + append
    place = place_of(url, row["dialect"], entry)
    wish = place.catalog or label(place.base_url)
    if place.catalog:
        keyless = keyless or catalog.provider(place.catalog).auth == "none"
    return ModelAddress(model, place.fields(), wish, [base], variables=variables, keyless=keyless)


def _azure(
    row: Mapping[str, Any], model: str, given: Mapping[str, SourceNode], secrets: Secrets
) -> ModelAddress:
    """A deployment of Azure OpenAI: the model is its name."""
    base = given.get("api_base") or given.get("base_url")
    if base is None:
        raise NotCarried("an Azure model needs an api_base: AZURE_API_BASE is not read")
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
    return _entra(ModelAddress(model, fields, wish, used, variables=tuple(row["env"])), given, secrets)


def _entra(address: ModelAddress, given: Mapping[str, SourceNode], secrets: Secrets) -> ModelAddress:
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


def _foundry(
    row: Mapping[str, Any], model: str, given: Mapping[str, SourceNode], secrets: Secrets
) -> ModelAddress:
    """Claude on Microsoft Foundry; other models there by OpenAI's dialects."""
    base = given.get("api_base") or given.get("base_url")
    if base is None:
        raise NotCarried("a model of azure_ai/ needs an api_base: AZURE_AI_API_BASE is not read")
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
        return ModelAddress(model, fields, f"{wish}-claude", used, variables=variables)
    fields = {"catalog": "azure", "base_url": f"{root}/openai/v1"}
    return ModelAddress(model, fields, wish, used, variables=variables)


def _bedrock(
    _: Mapping[str, Any], model: str, given: Mapping[str, SourceNode], secrets: Secrets
) -> ModelAddress:
    """Claude by InvokeModel, all others by Bedrock's OpenAI-compatible endpoint."""
    for route in _BEDROCK_ROUTES:
        model = model.removeprefix(route)
    head, slash, rest = model.partition("/")
    region: str | None = head if slash and _REGION.fullmatch(head) else None
    model = rest if region is not None else model
    claude = "claude" in model or "anthropic" in model or model.startswith(("arn:", "*"))
    entry = "bedrock" if claude else "bedrock-openai"
    fields: dict[str, Any] = {"catalog": entry}
    used: list[SourceNode] = []
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
    return ModelAddress(
        model, fields, wish, used, variables=("AWS_BEARER_TOKEN_BEDROCK",), takes_key=takes_key
    )


def _aws_login(given: Mapping[str, SourceNode], secrets: Secrets, used: list[SourceNode]) -> dict[str, str]:
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


def _vertex(
    _: Mapping[str, Any], model: str, given: Mapping[str, SourceNode], secrets: Secrets
) -> ModelAddress:
    """Gemini and Claude on Vertex."""
    claude = model.startswith("claude")
    if not claude and not model.startswith(("gemini", "*")):
        raise NotCarried("only Gemini and Claude models of Vertex are supported")
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
    return ModelAddress(model, fields, wish, used, takes_key=False)


def _key_file(node: SourceNode, secrets: Secrets) -> str:
    if node.fields or plain(node, secrets).lstrip().startswith("{"):
        raise NotCarried(
            "the key of its service account is in the file itself: save it as a file and use its path"
        )
    return plain(node, secrets)


def _said(node: SourceNode | None, secrets: Secrets, variable: str, usual: str) -> str:
    """The entry's value, else a variable that LiteLLM reads, else its default."""
    if node is not None:
        return word(node, secrets)
    return secrets.variable(variable) if secrets.value(variable) else usual


def _first_variable(secrets: Secrets, *names: str) -> str:
    """The first that is set here, else the last, which is the one of the cloud's own tools."""
    return secrets.variable(next((name for name in names if secrets.value(name)), names[-1]))


_FORMS: Final[
    dict[str, Callable[[Mapping[str, Any], str, Mapping[str, SourceNode], Secrets], ModelAddress]]
] = {
    "azure": _azure,
    "foundry": _foundry,
    "bedrock": _bedrock,
    "vertex": _vertex,
}


_TABLES: Final = ("extra_headers", "headers", "vertex_credentials", "vertex_ai_credentials")
"""Parameters that may contain a table."""
# Retries that are carried over from an entry of a LiteLLM configuration.
_MAX_RETRIES: Final = 100
_ORGANIZATION: Final = "OpenAI-Organization"
_MODEL: Final = "the target model in [models]"
_COSTS: Final = {
    "input_cost_per_token": "input",
    "output_cost_per_token": "output",
    "cache_read_input_token_cost": "cache_read",
    "cache_creation_input_token_cost": "cache_write",
    "output_cost_per_reasoning_token": "reasoning",
}


class Deployment(msgspec.Struct):
    """`fields` are those of the provider, without its key."""

    group: str
    model: str
    fields: dict[str, Any]
    node: SourceNode
    key: str = ""
    wish: str = ""
    order: float = math.inf
    """LiteLLM takes the lowest that any entry of the name has, and leaves out entries without one."""
    shares: tuple[float, ...] = (0, 0, 0)
    """`weight`, `rpm`, `tpm`."""
    price: dict[str, float] = {}
    is_any: bool = False
    """`*` for `*`: any provider that the name contains."""
    general: set[str] = msgspec.field(default_factory=set)
    """Fields that come from a setting for all models."""


class Entries:
    """Reads entries; reports what it cannot carry over, and continues."""

    def __init__(self, report: ImportReport, secrets: Secrets, credentials: dict[str, SourceNode]) -> None:
        self._report = report
        self._secrets = secrets
        self._credentials = credentials
        self._prefixes = table("litellm", "prefixes.toml")

    def read(self, entry: SourceNode) -> Deployment | None:
        try:
            return self._read(entry)
        except (NotCarried, NoAddress, NotKnownHere) as reason:
            self._refuse(entry, str(reason))
            return None

    def _refuse(self, entry: SourceNode, reason: str) -> None:
        named = entry.get("model_name")
        name = one_line(named.text) if named is not None else "?"
        self._report.warnings.append(f"{place(entry)}: model {name} is not carried over: {reason}")
        self._report.left(entry, reason)

    def _read(self, entry: SourceNode) -> Deployment:
        group, params = self._shape(entry)
        _refuse_templates(params)
        self._refuse_unserved(entry, params)
        model = params.fields["model"]
        prefix, name = self._split(params)
        row = self._prefixes["prefix"].get(prefix)
        if group == "*" and model.text == "*":
            self._report.carried(
                entry, "providers.discover: every provider with a key in the environment is on"
            )
            return Deployment(group, "*", {}, node=entry, is_any=True)
        if row is None:
            known = f"no known provider of LiteLLM has the prefix {one_line(prefix)}/"
            raise NotCarried(
                known
                if prefix
                else f"the provider of model {one_line(name)} cannot be determined without a prefix"
            )
        if "refused" in row:
            raise NotCarried(row["refused"])
        given = self._with_credentials(params)
        address = address_of(prefix, row, name, given, self._secrets)
        if not is_model_name(address.model):
            raise NotCarried("its name is empty or contains spaces")
        if address.model.count("*") > group.count("*") or (0 < address.model.count("*") < group.count("*")):
            raise NotCarried("the name and the model have different numbers of *")
        self._report.carried(entry.get("model_name"), "a name of [models]")
        self._report.carried(model, _MODEL)
        for node in address.used:
            self._report.carried(node, address.said)
        self._report.carried(params.get("litellm_credential_name"), "fields of the provider")
        return self._deployment(entry, group, given, address)

    def _shape(self, entry: SourceNode) -> tuple[str, SourceNode]:
        name, params = entry.get("model_name"), entry.get("litellm_params")
        if not entry.fields:
            raise NotCarried(f"expected a table with model_name and litellm_params, found {kind(entry)}")
        if name is None or not name.text:
            raise NotCarried("it has no model_name")
        if params is None or params.get("model") is None or not params.fields["model"].text:
            raise NotCarried("it has no litellm_params with a model")
        if not is_model_name(name.text):
            raise NotCarried(
                "a name with spaces, control characters or more than 256 characters is not supported"
            )
        return name.text, params

    def _refuse_unserved(self, entry: SourceNode, params: SourceNode) -> None:
        unserved = self._prefixes["unserved"]
        info = entry.get("model_info")
        mode = info.get("mode") if info is not None else None
        said = mode.text if mode is not None else ""
        name = params.fields["model"].text.lower()
        by_name = not said and any(fnmatchcase(name, pattern) for pattern in unserved["names"])
        if said in unserved["modes"] or by_name:
            what = said.replace("_", " ") if said else "images, audio and the like"
            raise NotCarried(f"only text generation and embeddings are supported, not {what}")

    def _split(self, params: SourceNode) -> tuple[str, str]:
        """The prefix and the rest of the model."""
        text = params.fields["model"].text
        named = params.get("custom_llm_provider")
        if named is not None:
            self._report.carried(named, _MODEL)
            return named.text, text.removeprefix(f"{named.text}/")
        prefix, slash, rest = text.partition("/")
        if slash and rest and prefix in self._prefixes["prefix"]:
            return prefix, rest
        for pattern, whose in self._prefixes["bare"].items():
            if not slash and fnmatchcase(text, pattern):
                return whose, text
        return (prefix, rest) if slash else ("", text)

    def _with_credentials(self, params: SourceNode) -> dict[str, SourceNode]:
        """The fields of the entry, applied over those of the credential that it names."""
        named = params.get("litellm_credential_name")
        shared: dict[str, SourceNode] = {}
        if named is not None:
            if named.text not in self._credentials:
                raise NotCarried("its credential is not in credential_list")
            shared = dict(self._credentials[named.text].fields)
        said = {name: node for name, node in params.fields.items() if not node.is_nothing}
        given = {**{name: node for name, node in shared.items() if not node.is_nothing}, **said}
        return {name: node for name, node in given.items() if name in _TABLES or _is_scalar(node)}

    def _deployment(
        self, entry: SourceNode, group: str, given: dict[str, SourceNode], address: ModelAddress
    ) -> Deployment:
        key_node = given.get("api_key") if address.takes_key else None
        key = ""
        if key_node is not None:
            key = secret(key_node, self._secrets, key_name(address.wish, address.fields.get("catalog", "")))
            self._report.carried(key_node, self._secrets.describe(key))
        elif address.variables and address.takes_key and not address.keyless:
            known = (name for name in address.variables if self._secrets.value(name))
            key = self._secrets.variable(next(known, address.variables[0]))
        fields = {**address.fields, **self._more(given)}
        if not key and address.keyless and "base_url" in fields and "catalog" not in fields:
            fields["auth"] = "none"
        return Deployment(
            group=group,
            model=address.model,
            fields=fields,
            key=key,
            wish=address.wish,
            order=self._number(given, "order", "the order of the targets", math.inf),
            shares=self._shares(entry, given),
            price=self._price(entry, given),
            node=entry,
        )

    def _more(self, given: dict[str, SourceNode]) -> dict[str, Any]:
        """Fields of the provider besides its address."""
        fields: dict[str, Any] = {}
        headers: dict[str, str] = {}
        organization = given.get("organization")
        if organization is not None and may_be_set(_ORGANIZATION, organization.text):
            headers[_ORGANIZATION] = reference(organization, self._secrets)
            self._report.carried(organization, f"the header {_ORGANIZATION} of the provider")
        for name in ("extra_headers", "headers"):
            for header, node in (given[name].fields if name in given else {}).items():
                if node.text and may_be_set(header, node.text):
                    headers[header] = self._header(header, node)
                    self._report.carried(node, "headers of the provider")
                else:
                    self._report.left(node, "set by the gateway itself, or not a valid header")
        if headers:
            fields["headers"] = headers
        seconds = self._number(given, "timeout", "first_byte and idle of the provider's timeouts")
        if seconds > 0:
            fields["timeouts"] = {"first_byte": seconds, "idle": seconds}
        for name in ("max_retries", "num_retries"):
            if name in given and given[name].number is not None:
                fields["retry"] = {"retries": int(min(_MAX_RETRIES, max(0, given[name].number or 0)))}
                self._report.carried(given[name], "retries of the provider's retry")
        return fields

    def _header(self, name: str, node: SourceNode) -> str:
        if variable_of(node) or not is_secret_header(name, node.text):
            return reference(node, self._secrets)
        return self._secrets.hidden(node.text, name)

    def _shares(self, entry: SourceNode, given: dict[str, SourceNode]) -> tuple[float, ...]:
        """What LiteLLM's shuffle weighs entries by: the first of these that any entry of the name has."""
        said = "the order of the targets, among those with the same `order`: the heaviest first"
        rates = (given.get("rpm") or entry.get("rpm"), given.get("tpm") or entry.get("tpm"))
        return (
            self._number(given, "weight", said),
            *((rate.number or 0) if rate is not None else 0 for rate in rates),
        )

    def _number(self, given: dict[str, SourceNode], name: str, said: str, missing: float = 0) -> float:
        node = given.get(name)
        if node is None:
            return missing
        number = node.number
        if number is None and variable_of(node):
            try:
                number = float(plain(node, self._secrets))
            except ValueError:  # of values, too: reported as not carried over
                return missing
        if number is None or number < 0:
            return missing
        self._report.carried(node, said)
        return number

    def _price(self, entry: SourceNode, given: dict[str, SourceNode]) -> dict[str, float]:
        """Per million tokens. Without both halves there is no price."""
        info = entry.get("model_info")
        fields = {**(info.fields if info is not None else {}), **given}
        nodes = {ours: fields[theirs] for theirs, ours in _COSTS.items() if theirs in fields}
        numbers = {ours: node.number for ours, node in nodes.items()}
        price = {
            ours: round(number * 1_000_000, 6)
            for ours, number in numbers.items()
            if number is not None and 0 <= number < 1000
        }
        if not {"input", "output"} <= price.keys():
            for node in nodes.values():
                self._report.left(node, "a price needs input and output: set [prices] for this model")
            return {}
        for ours in price:
            self._report.carried(nodes[ours], "[prices], per million tokens")
        return price


def _is_scalar(node: SourceNode) -> bool:
    return not isinstance(node.value, dict | list)
