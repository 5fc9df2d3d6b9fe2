"""Wireglot: any LLM client, any LLM provider. The pure translation library.

import wireglot
out = wireglot.translate_request(body, source="anthropic", target="gemini", model="gemini-2.5-pro")
out.value, out.losses
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.2.0"

__all__ = [
    "ClientFault",
    "Context",
    "DialectName",
    "Loss",
    "OwnDialect",
    "Rendered",
    "StreamTranslator",
    "StrictLoss",
    "UnknownDialect",
    "UnknownProvider",
    "Unsupported",
    "UpstreamFault",
    "WireglotError",
    "__version__",
    "dialect_name",
    "translate_embedding_request",
    "translate_embedding_response",
    "translate_request",
    "translate_response",
]

if TYPE_CHECKING:  # for type checkers, so that a misspelt name is an error
    from wireglot import history as history
    from wireglot import kimi as kimi
    from wireglot.dialects.base import Context, Rendered
    from wireglot.dialects.registry import DialectName, OwnDialect, UnknownDialect, dialect_name
    from wireglot.ir.errors import ClientFault, StrictLoss, Unsupported, UpstreamFault, WireglotError
    from wireglot.ir.loss import Loss
    from wireglot.providers.spec import UnknownProvider
    from wireglot.translate import (
        StreamTranslator,
        translate_embedding_request,
        translate_embedding_response,
        translate_request,
        translate_response,
    )
else:
    __homes__ = {
        "Context": "dialects.base",
        "Rendered": "dialects.base",
        "DialectName": "dialects.registry",
        "OwnDialect": "dialects.registry",
        "UnknownDialect": "dialects.registry",
        "UnknownProvider": "providers.spec",
        "dialect_name": "dialects.registry",
        "ClientFault": "ir.errors",
        "StrictLoss": "ir.errors",
        "Unsupported": "ir.errors",
        "UpstreamFault": "ir.errors",
        "WireglotError": "ir.errors",
        "Loss": "ir.loss",
        "StreamTranslator": "translate",
        "translate_embedding_request": "translate",
        "translate_embedding_response": "translate",
        "translate_request": "translate",
        "translate_response": "translate",
    }

    def __getattr__(name: str) -> Any:
        """Everything is loaded on first access: a command that needs none of it answers at once, and can be
        interrupted early."""
        from importlib import import_module

        if name in ("history", "kimi"):
            return import_module(f"wireglot.{name}")
        if name not in __homes__:
            raise AttributeError(f"module 'wireglot' has no attribute {name!r}")
        found = globals()[name] = getattr(import_module(f"wireglot.{__homes__[name]}"), name)
        return found

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__, "history", "kimi"})
