"""Acme's dialect for Wireglot."""

from acme_wireglot.dialect import DIALECT

__all__ = ["DIALECT"]
