"""The core beside this package: of the same version, and for one release also under its former names.

Up to 0.2.0 the core was a part of `wireglot`: `wireglot.ir.stream` is `wireglot_core.ir.stream` now.
"""

from __future__ import annotations

import importlib
import sys
import warnings
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING, Final, cast

import wireglot_core

if TYPE_CHECKING:
    from importlib.abc import Loader

VERSION: Final = "0.2.0"
_CORE: Final = "wireglot_core"
_MOVED: Final = frozenset(
    f"wireglot.{name}"
    for name in (
        *("ir", "wire", "dialects", "providers", "cache", "traces", "translate", "plugins", "extras"),
        *("testing.laws", "testing.codec_laws", "testing.conservation", "testing.check_dialect"),
        "testing.strategies",
    )
)

_ELSEWHERE: Final = {"wireglot.dialects.base": "wireglot_core.extension"}
"""It had all names that dialects have in common."""


class FormerNames:
    """Finds and loads modules as `importlib.abc` says, which takes 12 ms to import. It gives the core's own
    module: its classes exist once."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        parts = fullname.split(".")
        if parts[0] != "wireglot" or not any(".".join(parts[:count]) in _MOVED for count in (2, 3)):
            return None
        found = _core_name(fullname)
        from importlib.util import find_spec

        if find_spec(found) is None:
            return None
        warnings.warn(
            f"{fullname} is {found} now; the former name goes with the next release",
            DeprecationWarning,
            stacklevel=2,
        )
        return ModuleSpec(fullname, cast("Loader", self), is_package=True)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return None  # an empty one, see below

    def exec_module(self, module: ModuleType) -> None:
        # What is left here is what an import gives.
        sys.modules[module.__name__] = importlib.import_module(_core_name(module.__name__))


def _core_name(former: str) -> str:
    return _ELSEWHERE.get(former) or f"{_CORE}.{former.partition('.')[2]}"


def _check_version(core: str) -> None:
    """Installing `wireglot-core` may have overwritten the core that `wireglot` brings, or the reverse."""
    if core != VERSION:
        raise ImportError(
            f"wireglot {VERSION} needs wireglot_core {VERSION}, but {wireglot_core.__path__[0]} is {core}: "
            "uninstall wireglot and wireglot-core, then install one of them"
        )


_check_version(wireglot_core.__version__)
# First: the others would find the files of the core as modules of their own.
sys.meta_path.insert(0, FormerNames())
