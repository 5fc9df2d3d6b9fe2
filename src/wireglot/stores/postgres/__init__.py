"""PostgreSQL engine: durable records shared by the gateways of a fleet."""

from __future__ import annotations

from wireglot.stores.postgres.engine import PostgresEngine

__all__ = ["PostgresEngine"]
