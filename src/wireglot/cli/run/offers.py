"""Menus of `wireglot run` in a terminal: a client, a model for it, and the installation of a missing
client."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from typing import Final

from wireglot.cli.menu import pick
from wireglot.cli.run.asking import can_ask
from wireglot.cli.run.clients import CLIENTS
from wireglot.cli.run.pointing import Client
from wireglot.cli.terminal import Unusable, complain, one_line
from wireglot.gateway.pages.models import models
from wireglot.gateway.settings import Settings
from wireglot_core.providers import spec as catalog

_DEMO_MODEL: Final = "demo/demo"
_GIVEN_UP: Final = "no selection"


def offer_clients() -> str:
    """The name of the chosen one; raises Unusable if there is none. Installed ones are first."""
    names = sorted(CLIENTS, key=lambda name: (shutil.which(CLIENTS[name].program) is None, name))
    width = max(map(len, names))
    rows = [f"{name:{width}}  {_state(CLIENTS[name])}" for name in names]
    chosen = pick("Client:", rows)
    if chosen is None:
        raise Unusable(_GIVEN_UP)
    return names[chosen]


def _state(client: Client) -> str:
    return client.title if shutil.which(client.program) else f"{client.title} (not installed)"


def offer_models(settings: Settings, dialect: str, own_model: str) -> str:
    """The chosen one, "" for the client's default; raises Unusable if there is none. Models of providers
    without a key are offered too: the key is asked for later."""
    found: list[tuple[str, str]] = []
    if own_model and set(settings.providers) - {"demo"}:
        found.append(("", f"the client's own choice ({own_model})"))
    found += [(each.id, each.id) for each in models(settings, dialect) if _is_offered(each.id, each.embeds)]
    found.append((_DEMO_MODEL, f"{_DEMO_MODEL}  a built-in model that needs no key"))
    found += _without_key(settings)
    chosen = pick("Model:", [one_line(row) for _, row in found])
    if chosen is None:
        raise Unusable(_GIVEN_UP)
    return found[chosen][0]


def _is_offered(name: str, embeds: bool) -> bool:
    provider, slash, _ = name.partition("/")
    return bool(slash) and not embeds and provider != "demo"


def _without_key(settings: Settings) -> Iterator[tuple[str, str]]:
    """The first model of each provider that needs nothing but a key; of those with the same key one."""
    seen = {each.spec.api_key_env[:1] for each in settings.providers.values()}
    for spec in map(catalog.provider, catalog.names()):
        first = next((entry for entry in spec.models if entry.is_name and not entry.retired), None)
        if first is None or "{" in spec.base_url or not spec.api_key_env[:1] or spec.api_key_env[:1] in seen:
            continue
        if spec.api_key_env[0].endswith("_API_KEY"):
            seen.add(spec.api_key_env[:1])
            yield f"{spec.name}/{first.match}", f"{spec.name}/{first.match}  requires a key of {spec.title}"


def offer_install(client: Client) -> bool:
    """Returns whether it is installed now. The command is shown, and run only after a yes."""
    command = install_command(client)
    if not can_ask() or shutil.which(command[0]) is None:
        return False
    complain(f"{client.title} is not installed. To install it:\n\n  {shlex.join(command)}\n")
    print("Run it now? [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        return False
    status = subprocess.run(command, check=False).returncode
    if status:
        complain(f"{command[0]} ended with status {status}")
    return shutil.which(client.program) is not None


def install_command(client: Client) -> list[str]:
    """Python programs get a separate environment if a tool for that is installed."""
    command = client.install.split()
    if command[:2] == ["pip", "install"]:
        for tool in (["uv", "tool", "install"], ["pipx", "install"]):
            if shutil.which(tool[0]):
                return [*tool, *command[2:]]
    return command
