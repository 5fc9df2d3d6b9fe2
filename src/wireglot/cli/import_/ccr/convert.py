"""A whole `config.json` of claude-code-router -> a draft and a report. No I/O."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import Final

from wireglot.cli.import_.ccr.providers import Providers
from wireglot.cli.import_.ccr.values import NotKnownHere, plain, secret, variables_in
from wireglot.cli.import_.document import Node, Unreadable, kind
from wireglot.cli.import_.draft import Draft, DraftProvider, DraftRule
from wireglot.cli.import_.known_settings import tell_known
from wireglot.cli.import_.report import Report, place
from wireglot.cli.import_.secret_names import Secrets
from wireglot.cli.paint import one_line
from wireglot.gateway.config.urls import is_loopback, proxy_fault
from wireglot.ir.request import EFFORTS

_KEY: Final = "ccr"
_HOST: Final = re.compile(r"[A-Za-z0-9.:_-]+")
_BACKGROUND: Final = "*claude*haiku*"
"""The models that claude-code-router takes for background work."""
_THINKING: Final = tuple(effort for effort in EFFORTS if effort != "none")
_PROXIES: Final = ("HTTPS_PROXY", "https_proxy", "httpsProxy", "PROXY_URL")
"""In claude-code-router's order."""
_ROUTES: Final = {
    "default": ("*", (), "all names that no other line leads elsewhere"),
    "background": (_BACKGROUND, (), "every Claude Haiku: Claude Code's background work"),
    "think": ("*", _THINKING, "requests that ask for thinking by an effort"),
}


def convert(root: Node, known: Mapping[str, str], beside: Sequence[Node] = ()) -> tuple[Draft, Report]:
    """`known`: variables whose values are known here."""
    listed = _check(root)
    report = Report(root, beside)
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


def _check(root: Node) -> Node:
    if not isinstance(root.value, dict):
        raise Unreadable(f"line {root.line}: expected a table with Providers and Router, found {kind(root)}")
    listed = root.get("Providers", "providers")
    if listed is None:
        raise Unreadable("is no configuration of claude-code-router: there is no Providers in it")
    if not isinstance(listed.value, list):
        raise Unreadable(f"line {listed.line}: Providers: expected a list, found {kind(listed)}")
    router = root.get("Router")
    if router is not None and not isinstance(router.value, dict):
        raise Unreadable(f"line {router.line}: Router: expected a table, found {kind(router)}")
    return listed


def _proxy(root: Node, draft: Draft, report: Report) -> str:
    """A reference or the URL itself, if there is no password in it."""
    node = root.get(*_PROXIES)
    if node is None:
        return ""
    try:
        url = plain(node, draft.secrets)
    except NotKnownHere:
        report.carried(node, "proxy of every provider, by its variable")
        return secret(node, draft.secrets, "PROXY_URL")
    if proxy_fault(url) is not None:
        report.left(node, "a proxy is http://host:port here")
        return ""
    report.carried(node, "proxy of every provider")
    if variables_in(node) or "@" in url:
        return secret(node, draft.secrets, "PROXY_URL")
    return url


def _router(root: Node, providers: Mapping[str, DraftProvider], draft: Draft, report: Report) -> None:
    router, fallback = root.get("Router"), root.get("fallback")
    lines: dict[str, list[str]] = {}
    for route in _ROUTES:
        node = router.get(route) if router is not None else None
        others = fallback.get(route) if fallback is not None else None
        for given in ([node] if node is not None else []) + (others.items if others is not None else []):
            target = _target(given, providers, report)
            if target:
                lines.setdefault(route, []).append(target)
                report.carried(
                    given, _ROUTES[route][2] if given is node else "a further target, if one fails"
                )
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
            DraftRule((f"{provider.name}/*",), about="provider/model, as names are here"),
        )
    for route in ("background", "think", "default"):
        match, effort, about = _ROUTES[route]
        if route in lines:
            draft.rule(match, DraftRule(tuple(dict.fromkeys(lines[route])), effort, about))
    if "default" not in lines:
        draft.hints.append("no default route was carried over: clients name provider/model")


def _target(node: Node, providers: Mapping[str, DraftProvider], report: Report) -> str:
    """`provider,model` as it is called here."""
    name, comma, model = node.text.partition(",")
    name, model = name.strip(), model.strip()
    if not comma or not model:
        reason = "expected provider,model"
    elif name not in providers:
        reason = f"no provider {one_line(name)} was carried over"
    elif " " in model:
        reason = "a name with spaces is no model here"
    else:
        return f"{providers[name].name}/{model}"
    report.warnings.append(f"{place(node)}: {node.path} is not carried over: {reason}")
    report.left(node, reason)
    return ""


def _server(root: Node, draft: Draft, report: Report) -> None:
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


def _client_key(node: Node, draft: Draft, report: Report) -> None:
    """Clients go on with the key that they have. Its hash is kept."""
    try:
        value = plain(node, draft.secrets)
    except NotKnownHere as reason:
        draft.server["require_key"] = True
        draft.hints.append("no client key was carried over: make one with wireglot keys create NAME")
        report.left(
            node, f"its hash would stand in [keys]: {reason}, or make a key with wireglot keys create NAME"
        )
        return
    draft.keys[_KEY] = "sha256:" + hashlib.sha256(value.encode()).hexdigest()
    report.carried(node, f"its hash, as the client key {_KEY} of [keys]")


def _host(node: Node, keyed: bool, draft: Draft, report: Report) -> None:
    try:
        host = plain(node, draft.secrets)
    except NotKnownHere as reason:
        report.left(node, str(reason))
        return
    if not node.text or not _HOST.fullmatch(host):
        report.left(node, "expected an address or the name of a host")
    elif is_loopback(host):
        report.default(node, "only this machine reaches it")
    elif keyed:
        draft.server["host"] = host
        report.carried(node, "host of [server]")
    else:
        report.default(
            node, "without APIKEY claude-code-router listens on this machine alone; so does the gateway"
        )
