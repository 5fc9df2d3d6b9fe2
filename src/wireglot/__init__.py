"""Wireglot: any LLM client, any LLM provider. The pure translation library.

import wireglot
out = wireglot.translate_request(body, source="anthropic", target="gemini", model="gemini-2.5-pro")
out.value, out.losses
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wireglot.former_names import VERSION
from wireglot_core import __all__ as __all__

__version__ = VERSION

if TYPE_CHECKING:  # for type checkers, so that a misspelt name is an error
    from wireglot import history as history
    from wireglot import kimi as kimi
    from wireglot_core import *  # noqa: F403  # its names are in its `__all__`
else:

    def __getattr__(name: str) -> Any:
        """Everything is loaded on first access: a command that needs none of it answers at once, and can be
        interrupted early."""
        from importlib import import_module

        if name in ("history", "kimi"):
            return import_module(f"wireglot.{name}")
        if name not in __all__:
            raise AttributeError(f"module 'wireglot' has no attribute {name!r}")
        found = globals()[name] = getattr(import_module("wireglot_core"), name)
        return found

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__, "history", "kimi"})
