"""A whole `config.json` of claude-code-router -> a draft and a report. No I/O."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from wireglot.cli.import_.draft import (
    Draft,
    DraftProvider,
    DraftRule,
    ImportReport,
    is_model_name,
    place,
    table,
    tell_known,
)
from wireglot.cli.import_.endpoints import NoAddress, Secrets, key_name, place_of
from wireglot.cli.import_.source import NotCarried, NotKnownHere, SourceNode, UnreadableSource, kind
from wireglot.cli.terminal import one_line
from wireglot.gateway.config.urls import is_loopback, proxy_fault
from wireglot_core.ir.request import EFFORTS
from wireglot_core.providers import spec as catalog

_VARIABLE: Final = re.compile(r"\$\{([^}$]+)\}|\$([A-Z_][A-Z0-9_]*)")
_SENDABLE: Final = re.compile(r"[\x21-\x7e]+")


def variables_in(node: SourceNode) -> list[str]:
    return [braced or bare for braced, bare in _VARIABLE.findall(node.text)]


def plain(node: SourceNode, secrets: Secrets) -> str:
    """A value that is written into the configuration."""

    def held(found: re.Match[str]) -> str:
        name = found[1] or found[2]
        value = secrets.value(name)
        if not value:
            raise NotKnownHere(f"the value of {name} is needed, and it is not set: set it, and import again")
        return value

    return _VARIABLE.sub(held, node.text or str(node.value))


def secret(node: SourceNode, secrets: Secrets, wish: str) -> str:
    """A value that must not be written into the configuration: a reference, unless it is a mere
    placeholder."""
    whole = _VARIABLE.fullmatch(node.text)
    if whole is not None:
        return secrets.variable(whole[1] or whole[2])
    value = plain(node, secrets) if variables_in(node) else node.text
    if not _SENDABLE.fullmatch(value):
        raise NotKnownHere("a key must be plain ASCII without spaces")
    return secrets.hidden(value, wish)


_OF_YOUR_OWN: Final = "custom code is not supported: set limits of a provider instead"


class Providers:
    """Reads providers; reports what it cannot carry over, and continues."""

    def __init__(self, draft: Draft, report: ImportReport, proxy: str) -> None:
        self._draft = draft
        self._report = report
        self._proxy = proxy
        self._known: dict[str, dict[str, Any]] = table("ccr", "transformers.toml")["transformer"]

    def read(self, node: SourceNode) -> tuple[str, DraftProvider] | None:
        """Its name in the source, and the resulting provider."""
        try:
            return self._read(node)
        except (NotCarried, NoAddress, NotKnownHere) as reason:
            named = node.get("name")
            name = one_line(named.text) if named is not None else "?"
            self._report.warnings.append(f"{place(node)}: provider {name} is not carried over: {reason}")
            self._report.left(node, str(reason))
            return None

    def _read(self, node: SourceNode) -> tuple[str, DraftProvider]:
        if not node.fields:
            raise NotCarried(
                f"expected a table with name, api_base_url, api_key and models, found {kind(node)}"
            )
        name, url, key = (_needed(node, field) for field in ("name", "api_base_url", "api_key"))
        fields = self._transformers(node)
        if "catalog" in fields:
            self._report.default(url, "the address is derived from project and location")
            self._report.default(key, "no key is sent: the gateway signs in (docs/clouds.md)")
        else:
            dialect = fields.pop("dialect", "openai-chat")
            fields = {**place_of(plain(url, self._draft.secrets), dialect, name.text).fields(), **fields}
            self._report.carried(url, "base_url, or the catalog entry with this address")
            fields = _with_key(fields, self._key(name.text, key, fields))
        models = self._models(node)
        if models:
            fields["models"] = models
        if self._proxy:
            fields["proxy"] = self._proxy
        self._report.carried(name, "name of the provider")
        return name.text, self._draft.provider(fields, name.text)

    def _key(self, name: str, node: SourceNode, fields: dict[str, Any]) -> str:
        entry = catalog.provider(fields["catalog"]) if "catalog" in fields else None
        if entry is not None and entry.auth == "none" and not fields.get("auth"):
            self._report.default(node, "a custom server without a key")
            return ""
        usual = key_name(name, fields.get("catalog", ""))
        found = secret(node, self._draft.secrets, usual)
        self._report.carried(node, self._draft.secrets.describe(found))
        return found

    def _models(self, node: SourceNode) -> list[str]:
        listed = node.get("models")
        names: dict[str, None] = {}
        for item in listed.items if listed is not None else []:
            if not is_model_name(item.text):
                self._report.left(item, "empty model names and names with spaces are not supported")
                continue
            names.setdefault(item.text)
            self._report.carried(item, "models of the provider")
        return list(names)

    def _transformers(self, node: SourceNode) -> dict[str, Any]:
        """The fields of a provider that the transformers of all models result in."""
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

    def _apply(
        self, row: dict[str, Any], named: SourceNode, options: SourceNode | None, fields: dict[str, Any]
    ) -> None:
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
            report.carried(named, "the catalog entry that signs in to Vertex")
        elif "dialect" in row:
            fields["dialect"] = row["dialect"]
            report.carried(named, "dialect of the provider")
            bearer = options.get("UseBearer") if options is not None else None
            if bearer is not None and bearer.value is True:
                fields["auth"] = "bearer"
                report.carried(bearer, "auth of the provider")
        for theirs, ours in row.get("limit", {}).items():
            given = options.get(theirs) if options is not None else None
            if given is not None and given.number:
                fields["limits"] = {**fields.get("limits", {}), ours: int(given.number)}
                report.carried(given, "limits of the provider")
                report.carried(named, "limits of the provider")
        report.left(options, "adding fields to requests is not supported")

    def _tell_of_model(self, node: SourceNode) -> None:
        """Reports transformers of one model; those that are not needed here do not matter."""
        used = node.get("use")
        for item in used.items if used is not None else []:
            named = item.items[0] if item.items else item
            row = self._known.get(named.text, {})
            if "default" in row:
                self._report.default(named, row["default"])
            elif "left" in row:
                self._report.left(named, row["left"])


def _needed(node: SourceNode, field: str) -> SourceNode:
    given = node.get(field)
    if given is None or not given.text:
        raise NotCarried(f"it has no {field}; claude-code-router ignores it too")
    return given


def _with_key(fields: dict[str, Any], key: str) -> dict[str, Any]:
    """The key comes after the fields for the address."""
    where = {name: each for name, each in fields.items() if name in ("catalog", "dialect", "base_url")}
    rest = {name: each for name, each in fields.items() if name not in where}
    return {**where, **({"api_key": key} if key else {}), **rest}


_KEY: Final = "ccr"
_HOST: Final = re.compile(r"[A-Za-z0-9.:_-]+")
_BACKGROUND: Final = "*claude*haiku*"
"""The models that claude-code-router uses for background work."""
_THINKING: Final = tuple(effort for effort in EFFORTS if effort != "none")
_PROXIES: Final = ("HTTPS_PROXY", "https_proxy", "httpsProxy", "PROXY_URL")
"""In claude-code-router's order."""
_LONG_TOKENS: Final = 60_000
"""The length that claude-code-router considers long, unless it is set."""
# Tokens of a threshold in an imported configuration.
_MAX_TOKENS: Final = 1_000_000_000
_ROUTES: Final = {
    "default": "all names without another route",
    "background": "every Claude Haiku model: background work of Claude Code",
    "think": "requests with a thinking effort",
    "longContext": "requests with a long prompt",
    "image": "requests with images",
}


def convert(
    root: SourceNode, known: Mapping[str, str], overridden: Sequence[SourceNode] = ()
) -> tuple[Draft, ImportReport]:
    """`known`: variables whose values are known here."""
    listed = _check(root)
    report = ImportReport(root, overridden)
    report.begin()
    secrets = Secrets(known)
    draft = Draft(secrets)
    draft.discover = False
    for leaf in root.leaves():
        secrets.reserve(*variables_in(leaf))
    providers = Providers(draft, report, _proxy(root, draft, report))
    found = dict(each for node in listed.items if (each := providers.read(node)) is not None)
    _router(root, found, draft, report)
    _server(root, draft, report)
    tell_known(report, "ccr")
    report.close()
    return draft, report


def _check(root: SourceNode) -> SourceNode:
    if not isinstance(root.value, dict):
        raise UnreadableSource(
            f"line {root.line}: expected a table with Providers and Router, found {kind(root)}"
        )
    listed = root.get("Providers", "providers")
    if listed is None:
        raise UnreadableSource("is not a configuration of claude-code-router: it has no Providers")
    if not isinstance(listed.value, list):
        raise UnreadableSource(f"line {listed.line}: Providers: expected a list, found {kind(listed)}")
    router = root.get("Router")
    if router is not None and not isinstance(router.value, dict):
        raise UnreadableSource(f"line {router.line}: Router: expected a table, found {kind(router)}")
    return listed


def _proxy(root: SourceNode, draft: Draft, report: ImportReport) -> str:
    """A reference, or the URL itself if there is no password in it."""
    node = root.get(*_PROXIES)
    if node is None:
        return ""
    try:
        url = plain(node, draft.secrets)
    except NotKnownHere:
        report.carried(node, "proxy of every provider, from a variable")
        return secret(node, draft.secrets, "PROXY_URL")
    if proxy_fault(url) is not None:
        report.left(node, "a proxy is http://host:port here")
        return ""
    report.carried(node, "proxy of every provider")
    if variables_in(node) or "@" in url:
        return secret(node, draft.secrets, "PROXY_URL")
    return url


def _router(
    root: SourceNode, providers: Mapping[str, DraftProvider], draft: Draft, report: ImportReport
) -> None:
    lines = _route_targets(root, providers, report)
    long = _long_tokens(root.get("Router"), report, used="longContext" in lines)
    for name, provider in providers.items():
        for spelled in dict.fromkeys((name, name.lower())):
            if " " not in spelled:
                draft.rule(
                    f"{spelled},*",
                    DraftRule((f"{provider.name}/*",), about="/model PROVIDER,MODEL of Claude Code"),
                )
    for provider in providers.values() if "default" in lines else ():
        draft.rule(
            f"{provider.name}/*",
            DraftRule((f"{provider.name}/*",), about="provider/model, the standard form"),
        )
    for match, rule in _rules_of_routes(lines, long):
        draft.rule(match, rule)
    if "default" not in lines:
        draft.hints.append("no default route was carried over: clients must request provider/model")


def _route_targets(
    root: SourceNode, providers: Mapping[str, DraftProvider], report: ImportReport
) -> dict[str, list[str]]:
    """The target of each route, and its fallbacks."""
    router, fallback = root.get("Router"), root.get("fallback")
    lines: dict[str, list[str]] = {}
    for route in _ROUTES:
        node = router.get(route) if router is not None else None
        others = fallback.get(route) if fallback is not None else None
        for given in ([node] if node is not None else []) + (others.items if others is not None else []):
            target = _target(given, providers, report)
            if target:
                lines.setdefault(route, []).append(target)
                report.carried(given, _ROUTES[route] if given is node else "a fallback target")
    return lines


def _rules_of_routes(lines: Mapping[str, list[str]], long: int) -> Iterator[tuple[str, DraftRule]]:
    """In claude-code-router's order: images and length come before the model's name."""
    rules = {
        route: DraftRule(tuple(dict.fromkeys(targets)), about=_ROUTES[route])
        for route, targets in lines.items()
    }
    replace = msgspec.structs.replace
    first = [
        *([replace(rules["image"], images=True)] if "image" in rules else []),
        *([replace(rules["longContext"], prompt_over=long)] if "longContext" in rules else []),
    ]
    if "background" in rules:
        for rule in (*first, rules["background"]):
            yield _BACKGROUND, rule
    thinking = [replace(rules["think"], effort=_THINKING)] if "think" in rules else []
    for rule in (*first, *thinking, *([rules["default"]] if "default" in rules else [])):
        yield "*", rule


def _long_tokens(router: SourceNode | None, report: ImportReport, *, used: bool) -> int:
    node = router.get("longContextThreshold") if router is not None else None
    number = node.number if node is not None else None
    if number is None or not 1 <= number <= _MAX_TOKENS:
        return _LONG_TOKENS
    if used:
        report.carried(node, "prompt_over of the requests with a long prompt")
    else:
        report.default(node, "no route for long prompts was carried over")
    return int(number)


def _target(node: SourceNode, providers: Mapping[str, DraftProvider], report: ImportReport) -> str:
    """`provider,model` with the names used here."""
    name, comma, model = node.text.partition(",")
    name, model = name.strip(), model.strip()
    if not comma or not model:
        reason = "expected provider,model"
    elif name not in providers:
        reason = f"no provider {one_line(name)} was carried over"
    elif " " in model:
        reason = "model names with spaces are not supported"
    else:
        return f"{providers[name].name}/{model}"
    report.warnings.append(f"{place(node)}: {node.path} is not carried over: {reason}")
    report.left(node, reason)
    return ""


def _server(root: SourceNode, draft: Draft, report: ImportReport) -> None:
    key = root.get("APIKEY")
    if key is not None:
        _client_key(key, draft, report)
    host, port = root.get("HOST"), root.get("PORT")
    if host is not None:
        _host(host, bool(draft.keys) or "require_key" in draft.server, draft, report)
    number = port.number if port is not None else None
    if number is not None and number.is_integer() and 0 < number < 65536:
        draft.server["port"] = int(number)
        report.carried(port, "port of [server]")


def _client_key(node: SourceNode, draft: Draft, report: ImportReport) -> None:
    """Clients keep using their key. Only its hash is stored."""
    try:
        value = plain(node, draft.secrets)
    except NotKnownHere as reason:
        draft.server["require_key"] = True
        draft.hints.append("no client key was carried over: create one with wireglot keys create NAME")
        report.left(
            node, f"its hash would be in [keys]: {reason}, or create a key with wireglot keys create NAME"
        )
        return
    draft.keys[_KEY] = "sha256:" + hashlib.sha256(value.encode()).hexdigest()
    report.carried(node, f"its hash, as the client key {_KEY} of [keys]")


def _host(node: SourceNode, keyed: bool, draft: Draft, report: ImportReport) -> None:
    try:
        host = plain(node, draft.secrets)
    except NotKnownHere as reason:
        report.left(node, str(reason))
        return
    if not node.text or not _HOST.fullmatch(host):
        report.left(node, "expected an address or a host name")
    elif is_loopback(host):
        report.default(node, "listening on this machine only is the default")
    elif keyed:
        draft.server["host"] = host
        report.carried(node, "host of [server]")
    else:
        report.default(
            node, "without APIKEY claude-code-router listens on this machine only, as the gateway does"
        )
