"""One of `Providers` -> a provider: its transformers say what it speaks, its address who it is."""

from __future__ import annotations

from typing import Any, Final

from wireglot.cli.import_.ccr.values import NotKnownHere, plain, secret
from wireglot.cli.import_.document import Node, kind
from wireglot.cli.import_.draft import Draft, DraftProvider, is_model_name
from wireglot.cli.import_.endpoints import NoAddress, place_of
from wireglot.cli.import_.known_settings import table
from wireglot.cli.import_.report import Report, place
from wireglot.cli.import_.secret_names import key_name
from wireglot.cli.paint import one_line
from wireglot.providers import spec as catalog

_OF_YOUR_OWN: Final = "a program of your own: what a provider refuses is data here (limits of a provider)"


class NotCarried(Exception):
    """The message says why."""


class Providers:
    """Reads providers; what it cannot carry over it tells of, and goes on."""

    def __init__(self, draft: Draft, report: Report, proxy: str) -> None:
        self._draft = draft
        self._report = report
        self._proxy = proxy
        self._known: dict[str, dict[str, Any]] = table("ccr", "transformers.toml")["transformer"]

    def read(self, node: Node) -> tuple[str, DraftProvider] | None:
        """Its name there, and the provider here."""
        try:
            return self._read(node)
        except (NotCarried, NoAddress, NotKnownHere) as reason:
            named = node.get("name")
            name = one_line(named.text) if named is not None else "?"
            self._report.warnings.append(f"{place(node)}: provider {name} is not carried over: {reason}")
            self._report.left(node, str(reason))
            return None

    def _read(self, node: Node) -> tuple[str, DraftProvider]:
        if not node.fields:
            raise NotCarried(
                f"expected a table with name, api_base_url, api_key and models, found {kind(node)}"
            )
        name, url, key = (_needed(node, field) for field in ("name", "api_base_url", "api_key"))
        fields = self._transformers(node)
        if "catalog" in fields:
            self._report.default(url, "the address follows from project and location")
            self._report.default(key, "no key is sent: the gateway signs in (docs/clouds.md)")
        else:
            dialect = fields.pop("dialect", "openai-chat")
            fields = {**place_of(plain(url, self._draft.secrets), dialect, name.text).fields(), **fields}
            self._report.carried(url, "base_url, or the entry of the catalog with this address")
            fields = _with_key(fields, self._key(name.text, key, fields))
        models = self._models(node)
        if models:
            fields["models"] = models
        if self._proxy:
            fields["proxy"] = self._proxy
        self._report.carried(name, "the provider's name")
        return name.text, self._draft.provider(fields, name.text)

    def _key(self, name: str, node: Node, fields: dict[str, Any]) -> str:
        entry = catalog.provider(fields["catalog"]) if "catalog" in fields else None
        if entry is not None and entry.auth == "none" and not fields.get("auth"):
            self._report.default(node, "a server of one's own, which asks for no key")
            return ""
        usual = key_name(name, fields.get("catalog", ""))
        found = secret(node, self._draft.secrets, usual)
        self._report.carried(node, self._draft.secrets.told(found))
        return found

    def _models(self, node: Node) -> list[str]:
        listed = node.get("models")
        names: dict[str, None] = {}
        for item in listed.items if listed is not None else []:
            if not is_model_name(item.text):
                self._report.left(item, "a name with spaces, or none, is no model here")
                continue
            names.setdefault(item.text)
            self._report.carried(item, "models of its provider")
        return list(names)

    def _transformers(self, node: Node) -> dict[str, Any]:
        """What the transformers of all models come to, as fields of a provider."""
        outer = node.get("transformer")
        used = outer.get("use") if outer is not None else None
        fields: dict[str, Any] = {}
        for item in used.items if used is not None else []:
            named, options = (item.items[0], item.items[1:]) if item.items else (item, [])
            row = self._known.get(named.text, {"left": _OF_YOUR_OWN})
            self._apply(row, named, options[0] if options else None, fields)
        for model, inner in (outer.fields if outer is not None else {}).items():
            if model != "use":
                self._tell_of_model(inner)
        return fields

    def _apply(self, row: dict[str, Any], named: Node, options: Node | None, fields: dict[str, Any]) -> None:
        report = self._report
        if "left" in row:
            report.left(named, row["left"])
        elif "default" in row:
            report.default(named, row["default"])
        elif "entry" in row:
            secrets = self._draft.secrets
            fields["catalog"] = row["entry"]
            fields["project"] = secrets.variable("GOOGLE_CLOUD_PROJECT")
            where = "GOOGLE_CLOUD_LOCATION"
            fields["location"] = secrets.variable(where) if secrets.value(where) else row["location"]
            report.carried(named, "the entry of the catalog that signs in to Vertex")
        elif "dialect" in row:
            fields["dialect"] = row["dialect"]
            report.carried(named, "the dialect that its provider speaks")
            bearer = options.get("UseBearer") if options is not None else None
            if bearer is not None and bearer.value is True:
                fields["auth"] = "bearer"
                report.carried(bearer, "auth of its provider")
        for theirs, ours in row.get("limit", {}).items():
            given = options.get(theirs) if options is not None else None
            if given is not None and given.number:
                fields["limits"] = {**fields.get("limits", {}), ours: int(given.number)}
                report.carried(given, "limits of its provider")
                report.carried(named, "limits of its provider")
        report.left(options, "no fields are added to requests")

    def _tell_of_model(self, node: Node) -> None:
        """Transformers of one model: those that are no work here need none."""
        used = node.get("use")
        for item in used.items if used is not None else []:
            named = item.items[0] if item.items else item
            row = self._known.get(named.text, {})
            if "default" in row:
                self._report.default(named, row["default"])
            elif "left" in row:
                self._report.left(named, row["left"])


def _needed(node: Node, field: str) -> Node:
    given = node.get(field)
    if given is None or not given.text:
        raise NotCarried(f"it has no {field}, and claude-code-router leaves it out, too")
    return given


def _with_key(fields: dict[str, Any], key: str) -> dict[str, Any]:
    """Behind those that say where it is."""
    where = {name: each for name, each in fields.items() if name in ("catalog", "dialect", "base_url")}
    rest = {name: each for name, each in fields.items() if name not in where}
    return {**where, **({"api_key": key} if key else {}), **rest}
