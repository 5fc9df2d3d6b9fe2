"""Wireglot: any LLM client, any LLM provider. The pure translation library.

import wireglot
out = wireglot.translate_request(body, source="anthropic", target="gemini", model="gemini-2.5-pro")
out.value, out.losses
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wireglot.dialects.base import Context, Rendered
from wireglot.dialects.registry import DialectName, OwnDialect, dialect_name
from wireglot.ir.errors import ClientFault, StrictLoss, Unsupported, UpstreamFault, WireglotError
from wireglot.ir.loss import Loss
from wireglot.translate import StreamTranslator, translate_request, translate_response

__version__ = "0.1.0"

__all__ = [
    "ClientFault",
    "Context",
    "DialectName",
    "Loss",
    "OwnDialect",
    "Rendered",
    "StreamTranslator",
    "StrictLoss",
    "Unsupported",
    "UpstreamFault",
    "WireglotError",
    "__version__",
    "dialect_name",
    "translate_request",
    "translate_response",
]

if TYPE_CHECKING:  # a checker sees names, so that a misspelt one is an error
    from wireglot import history as history
    from wireglot import kimi as kimi
else:

    def __getattr__(name: str) -> Any:
        """`wireglot.kimi` and `wireglot.history`, loaded when they are named: nobody else pays for them."""
        if name in ("history", "kimi"):
            from importlib import import_module

            return import_module(f"wireglot.{name}")
        raise AttributeError(f"module 'wireglot' has no attribute {name!r}")
