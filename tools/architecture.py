"""Documentation generated from the code: import contracts, packages, modules."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tools.blocks import table
from tools.structure import PACKAGES, Module, broad_excepts, modules

_PROJECT = Path(__file__).parents[1] / "pyproject.toml"
_TOP = "wireglot"
"""Names of its packages are short; those of the core begin with `wireglot_core`."""
_MIN_WORDS = 4
"""Words of a clause that says what a module is for: `wireglot init` alone does not."""


def blocks() -> dict[str, str]:
    contracts = _contracts()
    return {
        "contracts": "\n\n".join(contract_text(contract) for contract in contracts),
        "packages": packages_table(contracts),
    }


def modules_page() -> Iterator[str]:
    """Every module with the beginning of its docstring, and every broad `except`."""
    yield "# Modules"
    yield ""
    yield "Every module of `wireglot` and `wireglot_core`, with the beginning of its docstring."
    yield "[Architecture](../architecture.md) explains how they work together."
    for text in package_sections(_contracts()):
        yield ""
        yield text
    yield ""
    yield "## Broad exception handlers"
    yield ""
    yield "Errors are caught by type. These handlers catch everything: one failure must not affect others."
    yield ""
    yield broad_excepts_list()


def packages_table(contracts: list[dict[str, Any]]) -> str:
    """The packages in the order of their layers, and those of the gateway below it."""
    rows: list[tuple[str, str]] = []
    for package in _packages(contracts):
        rows.append((f"**`{_short(package.name)}`**", package.title))
        if _short(package.name) == "gateway":
            inside = [module for module in modules().values() if module.is_package and _depth(module) == 2]
            rows += [
                (f"`{_short(module.name).replace('.', '/')}`", module.title)
                for module in inside
                if module.name.startswith(f"{package.name}.")
            ]
    return table(("package", "purpose"), rows)


def _contracts() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = tomllib.loads(_PROJECT.read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    return found


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
    drawn = [found for layer in layers if (found := _layer(layer, container))]
    lines = ["flowchart TD"]
    for number, names in enumerate(drawn):
        lines += _drawn_layer(number, names)
    lines += [f"    layer{number} --> layer{number + 1}" for number in range(len(drawn) - 1)]
    where = f" in `{_short(container)}`" if container else ""
    return "\n".join([f"{name}{where}", "", "```mermaid", *lines, "```"])


def _drawn_layer(number: int, names: list[str]) -> list[str]:
    if len(names) == 1:
        return [f"    layer{number}[{names[0]}]"]
    inside = [f"        module{number}_{place}[{name}]" for place, name in enumerate(names)]
    # Without a direction mermaid stacks unconnected nodes.
    return [f'    subgraph layer{number}[" "]', "        direction TB", *inside, "    end"]


def _layer(layer: str, container: str) -> list[str]:
    """The existing modules of a layer: one in parentheses may be missing."""
    names = re.findall(r"[\w.]+", layer)
    full = {name: f"{container}.{name}" if container else name for name in names}
    return [_short(name) for name in names if full[name] in modules()]


def _short(module: str) -> str:
    return module.removeprefix(f"{_TOP}.")


def _listed(names: list[str]) -> str:
    return ", ".join(f"`{_short(name)}`" for name in names)


# Modules.


def package_sections(contracts: list[dict[str, Any]]) -> Iterator[str]:
    """A heading and a list for each package, from the top layer down."""
    for package in _packages(contracts):
        prefix = f"{package.name}."
        inside = [module for module in modules().values() if module.name.startswith(prefix)]
        # The package's own modules first, then its subpackages.
        inside.sort(key=lambda module: (module.path.parent, not module.is_package, module.name))
        items = "\n".join(_item(module, package) for module in inside)
        yield "\n\n".join([f"## `{_short(package.name)}`", package.title, *([items] if items else [])])
    alone = [module for module in modules().values() if _depth(module) == 1 and not module.is_package]
    items = "\n".join(f"- `{module.file}`: {_beginning(module.title)}" for module in alone)
    yield f"## Top-level modules\n\n{items}"


def _packages(contracts: list[dict[str, Any]]) -> list[Module]:
    """The packages below `wireglot`, then those of the core, from the top layer down."""
    layers = list(_layered(contracts))
    order = {name: place for place, name in reversed(list(enumerate(layers)))}
    found = [module for module in modules().values() if _depth(module) == 1 and module.is_package]
    return sorted(found, key=lambda module: (order.get(module.name, len(layers)), module.name))


def _layered(contracts: list[dict[str, Any]]) -> Iterator[str]:
    for contract in contracts:
        if contract["type"] == "layers" and contract["containers"][0] in PACKAGES:
            for layer in contract["layers"]:
                yield from (f"{contract['containers'][0]}.{name}" for name in re.findall(r"[\w.]+", layer))


def _item(module: Module, package: Module) -> str:
    """A subpackage is an item in bold before those of its modules."""
    place = module.path.relative_to(package.path.parent).as_posix()
    if module.is_package:
        return f"- **`{place.removesuffix('__init__.py')}`: {module.title}**"
    return f"- `{place}`: {_beginning(module.title)}"


def _beginning(title: str) -> str:
    """The first clause that says enough: the rest is in the file."""
    for end in re.finditer(r"[.:;](?= )", title):
        if len(title[: end.start()].split()) >= _MIN_WORDS:
            return title[: end.start()]
    return title.removesuffix(".")


def _depth(module: Module) -> int:
    return module.name.count(".")


# Exceptions.


def broad_excepts_list() -> str:
    found = (each for module in modules().values() for each in broad_excepts(module))
    return "\n".join(f"- `{each.file}`, `{each.function}`: {each.why}" for each in found)
