"""Persistence: documents, vault, ledger, keys, counters."""

from __future__ import annotations

from wireglot.stores.base import StoreDown, StoreUnusable
from wireglot.stores.open import described, open_counters, open_engine, open_fleet_log

__all__ = ["StoreDown", "StoreUnusable", "described", "open_counters", "open_engine", "open_fleet_log"]
