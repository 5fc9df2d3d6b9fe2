"""[search], [fetch] and [mcp]: the search engine, and the pages and servers that may be called."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from typing import Final

from wireglot.gateway.config.problems import Problems, kind, one_of, shown
from wireglot.gateway.config.providers import SENDABLE, read_proxy
from wireglot.gateway.config.references import References
from wireglot.gateway.config.table import Table
from wireglot.gateway.config.urls import base_url
from wireglot.gateway.settings import FetchSettings, McpSettings, SearchSettings, Secret
from wireglot.web.backends import FORMS
from wireglot.web.domains import bad_rules
from wireglot.web.guard import parse_private_host
from wireglot.web.server_hosts import parse_server_host
from wireglot_core.extras import install_hint

_DOMAINS: Final = "domains like example.com or example.com/docs, without a scheme"
_LISTED_IN: Final = "USD"
HTML_PACKAGE: Final = "lxml"
MCP_PACKAGE: Final = "mcp"


def read_search(
    value: object, references: References, *, key_needed: bool, currency: str
) -> SearchSettings | None:
    """None: there is no table, and the gateway does not search; or only the key is missing, and it is not
    needed."""
    problems = references.problems
    table = _table(value, "search", problems)
    if table is None:
        return None
    before = len(problems.found)
    if "backend" not in table:
        table.wrong("backend", one_of((*FORMS, "model")), "none")
    search = table.over(
        SearchSettings(),
        url=base_url(table, "url", ""),
        key=_key(table, references),
        proxy=read_proxy(table, references),
    )
    table.close()
    _check_domains(table, search.allowed_domains, search.blocked_domains)
    _check_backend(table, search)
    listed = FORMS[search.backend].price if search.backend != "model" else 0.0
    if listed and search.price is None and currency != _LISTED_IN:
        table.wrong("price", f"what a search costs in {currency}: the list price is in US dollars", "none")
    lacking = range(before, len(problems.found))
    if key_needed or not lacking or not all(each in references.unset for each in lacking):
        return search
    references.notes.append(f"web search is off: {references.unset[before]} is not set")
    for each in lacking:
        del references.unset[each]
    del problems.found[before:]
    return None


def read_fetch(value: object, search: SearchSettings | None, references: References) -> FetchSettings | None:
    """None: pages are not fetched."""
    table = _table(value, "fetch", references.problems)
    if table is None:
        if value is not None or search is None or not search.fetch:
            return None
        table = Table({}, "fetch", references.problems)
    fetch = table.over(FetchSettings(), proxy=read_proxy(table, references))
    table.close()
    _check_domains(table, fetch.allowed_domains, fetch.blocked_domains)
    for host in fetch.private_hosts:
        if parse_private_host(host) is None:
            table.wrong("private_hosts", "a host name, host:port, an address or a network", shown(host))
    if find_spec(HTML_PACKAGE) is None:
        references.problems.add("fetch", f"the package {HTML_PACKAGE}: {install_hint('web')}", "none")
    return fetch


def read_mcp(value: object, problems: Problems) -> McpSettings | None:
    """None: there is no table, and the gateway connects to no MCP server."""
    table = _table(value, "mcp", problems)
    if table is None:
        return None
    settings = table.over(McpSettings())
    table.close()
    for name, hosts in (("hosts", settings.hosts), ("private_hosts", settings.private_hosts)):
        for host in hosts:
            if parse_server_host(host) is None:
                table.wrong(name, "a host name or address, with or without a port", shown(host))
    if find_spec(MCP_PACKAGE) is None:
        problems.add("mcp", f"the package {MCP_PACKAGE}: {install_hint('mcp')}", "none")
    return settings


def _table(value: object, name: str, problems: Problems) -> Table | None:
    if value is not None and not isinstance(value, Mapping):
        problems.add(name, "a table", kind(value))
        return None
    return None if value is None else Table(value, name, problems)


def _key(table: Table, references: References) -> Secret:
    """As written, or from the vendor's variable, which is only used for the vendor's host."""
    value, key = table.raw("key"), SearchSettings().key
    form = next((form for name, form in FORMS.items() if name == table.values.get("backend")), None)
    if value is not None:
        key = references.secret(value, table.at("key")) or key
    elif form is not None and form.variables:
        found = None if "url" in table else references.variable(*form.variables)
        if found is not None:
            key = found
        elif "url" in table:
            table.wrong("key", "an API key for that host", "none")
        else:
            references.unset[len(references.problems.found)] = form.variables[0]
            variables = " or ".join(form.variables)
            table.wrong("key", f"an API key of {form.title}, or {variables} in the environment", "none")
    if key.value and not SENDABLE.fullmatch(key.value):
        table.wrong("key", "a key of ASCII characters without spaces", "another text")
    return key


def _check_domains(table: Table, allowed: tuple[str, ...], blocked: tuple[str, ...]) -> None:
    for name, rules in (("allowed_domains", allowed), ("blocked_domains", blocked)):
        for bad in bad_rules(rules):
            table.wrong(name, _DOMAINS, shown(bad))


def _check_backend(table: Table, search: SearchSettings) -> None:
    """Reports settings that the chosen backend needs or does not use."""
    if table.values.get("backend") != search.backend:
        return  # reported already
    needs: dict[str, str] = {}
    match search.backend:
        case "searxng":
            needs = {"url": "the base URL of a SearXNG instance"}
        case "google":
            needs = {"engine": "the id of a Programmable Search Engine (cx)"}
        case "model":
            needs = {"model": "a model whose provider searches the web: provider/model"}
    for name, expected in needs.items():
        if not table.values.get(name):
            table.wrong(name, expected, "none")
    for name, backend in (("engine", "google"), ("model", "model")):
        if getattr(search, name) and search.backend != backend:
            table.wrong(name, f'nothing: it is for backend = "{backend}"', "a value")
    if search.backend == "model":
        for name in ("url", "key", "proxy"):
            if name in table:
                table.wrong(name, "nothing: the provider of the model has its own", "a value")
