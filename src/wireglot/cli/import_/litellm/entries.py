"""One entry of `model_list` -> a deployment: which provider, with which key, which model there."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Any, Final

import msgspec

from wireglot.cli.import_.document import Node, kind
from wireglot.cli.import_.draft import is_model_name
from wireglot.cli.import_.endpoints import NoAddress
from wireglot.cli.import_.known_settings import table
from wireglot.cli.import_.litellm.addresses import Address, NotCarried, address_of
from wireglot.cli.import_.litellm.values import NotKnownHere, plain, reference, secret, variable_of
from wireglot.cli.import_.report import Report, place
from wireglot.cli.import_.secret_names import Secrets, is_secret_header, key_name
from wireglot.cli.paint import one_line
from wireglot.gateway.config.headers import may_be_set

_TABLES: Final = ("extra_headers", "headers", "vertex_credentials", "vertex_ai_credentials")
"""Parameters that may hold a table."""
_RETRIES_MOST: Final = 100
_ORGANIZATION: Final = "OpenAI-Organization"
_MODEL: Final = "the model of its line in [models]"
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
    node: Node
    key: str = ""
    wish: str = ""
    order: float = 0
    weight: float = 0
    price: dict[str, float] = {}
    is_any: bool = False
    """`*` for `*`: whatever provider the name says."""
    general: set[str] = msgspec.field(default_factory=set)
    """Fields that a setting for all models has put there."""


class Entries:
    """Reads entries; what it cannot carry over it tells of, and goes on."""

    def __init__(self, report: Report, secrets: Secrets, credentials: dict[str, Node]) -> None:
        self._report = report
        self._secrets = secrets
        self._credentials = credentials
        self._prefixes = table("litellm", "prefixes.toml")

    def read(self, entry: Node) -> Deployment | None:
        try:
            return self._read(entry)
        except (NotCarried, NoAddress, NotKnownHere) as reason:
            self._refuse(entry, str(reason))
            return None

    def _refuse(self, entry: Node, reason: str) -> None:
        named = entry.get("model_name")
        name = one_line(named.text) if named is not None else "?"
        self._report.warnings.append(f"{place(entry)}: model {name} is not carried over: {reason}")
        self._report.left(entry, reason)

    def _read(self, entry: Node) -> Deployment:
        group, params = self._shape(entry)
        self._refuse_unserved(entry, params)
        model = params.fields["model"]
        prefix, name = self._split(params)
        row = self._prefixes["prefix"].get(prefix)
        if group == "*" and model.text == "*":
            self._report.carried(
                entry, "providers.discover: every provider whose key is in the environment is on"
            )
            return Deployment(group, "*", {}, node=entry, is_any=True)
        if row is None:
            known = f"no provider of LiteLLM that is known here has the prefix {one_line(prefix)}/"
            raise NotCarried(
                known if prefix else f"whose model {one_line(name)} is cannot be told without a prefix"
            )
        if "refused" in row:
            raise NotCarried(row["refused"])
        given = self._with_credentials(params)
        address = address_of(prefix, row, name, given, self._secrets)
        if not is_model_name(address.model):
            raise NotCarried("its name has spaces or nothing in it")
        if address.model.count("*") > group.count("*") or (0 < address.model.count("*") < group.count("*")):
            raise NotCarried("the name and the model have not the same number of *")
        self._report.carried(entry.get("model_name"), "a name of [models]")
        self._report.carried(model, _MODEL)
        for node in address.used:
            self._report.carried(node, address.said)
        self._report.carried(params.get("litellm_credential_name"), "the fields of its provider")
        return self._deployment(entry, group, given, address)

    def _shape(self, entry: Node) -> tuple[str, Node]:
        name, params = entry.get("model_name"), entry.get("litellm_params")
        if not entry.fields:
            raise NotCarried(f"expected a table with model_name and litellm_params, found {kind(entry)}")
        if name is None or not name.text:
            raise NotCarried("it has no model_name")
        if params is None or params.get("model") is None or not params.fields["model"].text:
            raise NotCarried("it has no litellm_params with a model")
        if not is_model_name(name.text):
            raise NotCarried("a name with spaces, control characters or more than 256 letters is none here")
        return name.text, params

    def _refuse_unserved(self, entry: Node, params: Node) -> None:
        unserved = self._prefixes["unserved"]
        info = entry.get("model_info")
        mode = info.get("mode") if info is not None else None
        said = mode.text if mode is not None else ""
        name = params.fields["model"].text.lower()
        by_name = not said and any(fnmatchcase(name, pattern) for pattern in unserved["names"])
        if said in unserved["modes"] or by_name:
            what = said.replace("_", " ") if said else "embeddings, images, audio and the like"
            raise NotCarried(f"only text generation is served here, no {what}")

    def _split(self, params: Node) -> tuple[str, str]:
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

    def _with_credentials(self, params: Node) -> dict[str, Node]:
        """The fields of the entry over those of the credential that it names."""
        named = params.get("litellm_credential_name")
        shared: dict[str, Node] = {}
        if named is not None:
            if named.text not in self._credentials:
                raise NotCarried("it names a credential that is not in credential_list")
            shared = dict(self._credentials[named.text].fields)
        said = {name: node for name, node in params.fields.items() if not node.is_nothing}
        given = {**{name: node for name, node in shared.items() if not node.is_nothing}, **said}
        return {name: node for name, node in given.items() if name in _TABLES or _is_scalar(node)}

    def _deployment(self, entry: Node, group: str, given: dict[str, Node], address: Address) -> Deployment:
        key_node = given.get("api_key") if address.takes_key else None
        key = ""
        if key_node is not None:
            key = secret(key_node, self._secrets, key_name(address.wish, address.fields.get("catalog", "")))
            self._report.carried(key_node, self._secrets.told(key))
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
            order=self._number(given, "order", "the order of the targets"),
            weight=self._weight(entry, given),
            price=self._price(entry, given),
            node=entry,
        )

    def _more(self, given: dict[str, Node]) -> dict[str, Any]:
        """Fields of the provider that have nothing to do with where it is."""
        fields: dict[str, Any] = {}
        headers: dict[str, str] = {}
        organization = given.get("organization")
        if organization is not None and may_be_set(_ORGANIZATION, organization.text):
            headers[_ORGANIZATION] = reference(organization, self._secrets)
            self._report.carried(organization, f"the header {_ORGANIZATION} of its provider")
        for name in ("extra_headers", "headers"):
            for header, node in (given[name].fields if name in given else {}).items():
                if node.text and may_be_set(header, node.text):
                    headers[header] = self._header(header, node)
                    self._report.carried(node, "headers of its provider")
                else:
                    self._report.left(node, "a header that the gateway sets itself, or none")
        if headers:
            fields["headers"] = headers
        seconds = self._number(given, "timeout", "first_byte and idle of its provider's timeouts")
        if seconds > 0:
            fields["timeouts"] = {"first_byte": seconds, "idle": seconds}
        for name in ("max_retries", "num_retries"):
            if name in given and given[name].number is not None:
                fields["retry"] = {"retries": int(min(_RETRIES_MOST, max(0, given[name].number or 0)))}
                self._report.carried(given[name], "retries of its provider's retry")
        return fields

    def _header(self, name: str, node: Node) -> str:
        if variable_of(node) or not is_secret_header(name, node.text):
            return reference(node, self._secrets)
        return self._secrets.hidden(node.text, name)

    def _weight(self, entry: Node, given: dict[str, Node]) -> float:
        """What LiteLLM's shuffle goes by: the first of these that is set."""
        weight = self._number(given, "weight", "the order of the targets: the heaviest first")
        rates = (given.get("rpm"), entry.get("rpm"), given.get("tpm"), entry.get("tpm"))
        return weight or next((rate.number or 0 for rate in rates if rate is not None), 0)

    def _number(self, given: dict[str, Node], name: str, said: str) -> float:
        node = given.get(name)
        if node is None:
            return 0
        number = node.number
        if number is None and variable_of(node):
            try:
                number = float(plain(node, self._secrets))
            except ValueError:  # of values, too: told as not carried over
                return 0
        if number is None or number < 0:
            return 0
        self._report.carried(node, said)
        return number

    def _price(self, entry: Node, given: dict[str, Node]) -> dict[str, float]:
        """Of a million tokens. Without both halves there is no price."""
        info = entry.get("model_info")
        fields = {**(info.fields if info is not None else {}), **given}
        nodes = {ours: fields[theirs] for theirs, ours in _COSTS.items() if theirs in fields}
        if not {"input", "output"} <= nodes.keys():
            for node in nodes.values():
                self._report.left(node, "a price has an input and an output: [prices] for this model")
            return {}
        price = {}
        for ours, node in nodes.items():
            number = node.number
            if number is not None and 0 <= number < 1000:
                price[ours] = round(number * 1_000_000, 6)
                self._report.carried(node, "[prices], for a million tokens")
        return price if {"input", "output"} <= price.keys() else {}


def _is_scalar(node: Node) -> bool:
    return not isinstance(node.value, dict | list)
