"""Durable records in PostgreSQL, shared by a fleet."""

from __future__ import annotations

from wireglot.stores.postgres.engine import PostgresEngine

__all__ = ["PostgresEngine"]
