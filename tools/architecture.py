"""The generated parts of docs/architecture.md: pictures of the import contracts, and what every file is."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tools.blocks import table
from tools.house import Module, broad_excepts, modules

_PROJECT = Path(__file__).parents[1] / "pyproject.toml"
_PACKAGE = "wireglot"
_HEADS = ("file", "what it is")


def blocks() -> dict[str, str]:
    contracts = tomllib.loads(_PROJECT.read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"]
    return {
        "contracts": "\n\n".join(contract_text(contract) for contract in contracts),
        "files": "\n\n".join(room_texts(contracts)),
        "broad-excepts": broad_excepts_table(),
    }


# Contracts.


def contract_text(contract: dict[str, Any]) -> str:
    """A picture of layers, a sentence for other kinds of contract."""
    name = f"**{contract['name']}**"
    match contract["type"]:
        case "layers":
            containers = contract.get("containers") or [""]
            return "\n\n".join(_drawn(name, container, contract["layers"]) for container in containers)
        case "independence":
            return f"{name}: {_listed(contract['modules'])} do not import one another."
        case "forbidden":
            sources, targets = _listed(contract["source_modules"]), _listed(contract["forbidden_modules"])
            return f"{name}: {sources} import none of {targets}."
        case _:
            return name


def _drawn(name: str, container: str, layers: list[str]) -> str:
    floors = [floor for layer in layers if (floor := _floor(layer, container))]
    lines = ["flowchart TD"]
    for number, floor in enumerate(floors):
        lines += _drawn_floor(number, floor)
    lines += [f"    floor{number} --> floor{number + 1}" for number in range(len(floors) - 1)]
    where = f" in `{_short(container)}`" if container else ""
    return "\n".join([f"{name}{where}", "", "```mermaid", *lines, "```"])


def _drawn_floor(number: int, rooms: list[str]) -> list[str]:
    if len(rooms) == 1:
        return [f"    floor{number}[{rooms[0]}]"]
    inside = [f"        room{number}_{place}[{room}]" for place, room in enumerate(rooms)]
    # Without it mermaid puts rooms that nothing joins on top of one another.
    return [f'    subgraph floor{number}[" "]', "        direction TB", *inside, "    end"]


def _floor(layer: str, container: str) -> list[str]:
    """The modules of a layer that there are: one in parentheses may be missing."""
    rooms = re.findall(r"[\w.]+", layer)
    full = {room: f"{container}.{room}" if container else room for room in rooms}
    return [_short(room) for room in rooms if full[room] in modules()]


def _short(module: str) -> str:
    return module.removeprefix(f"{_PACKAGE}.")


def _listed(names: list[str]) -> str:
    return ", ".join(f"`{_short(name)}`" for name in names)


# Files.


def room_texts(contracts: list[dict[str, Any]]) -> Iterator[str]:
    """A heading and a table for each package below `wireglot`, from the top floor down."""
    packages = [module for module in modules().values() if _depth(module) == 1 and module.is_package]
    floors = [_short(name).partition(".")[0] for name in _layered(contracts)]
    order = {name: place for place, name in reversed(list(enumerate(floors)))}
    for package in sorted(packages, key=lambda room: (order.get(_short(room.name), len(floors)), room.name)):
        prefix = f"{package.name}."
        inside = [module for module in modules().values() if module.name.startswith(prefix)]
        # Loose files stand before the rooms within the room.
        inside.sort(key=lambda module: (module.path.parent, not module.is_package, module.name))
        rows = [_row(module, package) for module in inside]
        yield "\n\n".join(
            [
                f"### `{_short(package.name)}/`",
                package.title,
                *([table(("file", "what it is"), rows)] if rows else []),
            ]
        )
    alone = [module for module in modules().values() if _depth(module) == 1 and not module.is_package]
    rows = [(f"`{module.file}`", module.title) for module in alone]
    yield f"### Beside them\n\n{table(_HEADS, rows)}"


def _layered(contracts: list[dict[str, Any]]) -> Iterator[str]:
    for contract in contracts:
        if contract["type"] == "layers" and not contract.get("containers"):
            for layer in contract["layers"]:
                yield from re.findall(r"[\w.]+", layer)


def _row(module: Module, room: Module) -> tuple[str, str]:
    """A room within the room stands in bold before its files."""
    place = module.path.relative_to(room.path.parent).as_posix()
    if module.is_package:
        return f"**`{place.removesuffix('__init__.py')}`**", f"**{module.title}**"
    return f"`{place}`", module.title


def _depth(module: Module) -> int:
    return module.name.count(".")


# Exceptions.


def broad_excepts_table() -> str:
    rows = [
        (f"`{found.file}`", f"`{found.function}`", found.why)
        for module in modules().values()
        for found in broad_excepts(module)
    ]
    return table(("file", "where", "why"), rows)
