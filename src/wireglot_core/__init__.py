"""The pure translation library of Wireglot: any LLM client, any LLM provider. It needs msgspec only.

import wireglot_core
out = wireglot_core.translate_request(body, source="anthropic", target="gemini", model="gemini-2.5-pro")
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
    from wireglot_core.dialects.context import Context, Rendered
    from wireglot_core.dialects.registry import DialectName, OwnDialect, UnknownDialect, dialect_name
    from wireglot_core.ir.errors import ClientFault, StrictLoss, Unsupported, UpstreamFault, WireglotError
    from wireglot_core.ir.loss import Loss
    from wireglot_core.providers.spec import UnknownProvider
    from wireglot_core.translate import (
        StreamTranslator,
        translate_embedding_request,
        translate_embedding_response,
        translate_request,
        translate_response,
    )
else:
    __homes__ = {
        "Context": "dialects.context",
        "Rendered": "dialects.context",
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

        if name not in __homes__:
            raise AttributeError(f"module 'wireglot_core' has no attribute {name!r}")
        found = globals()[name] = getattr(import_module(f"wireglot_core.{__homes__[name]}"), name)
        return found

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
