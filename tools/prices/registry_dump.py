"""What the `genai-prices` package knows, as JSON on standard output.

Run by the Python of an environment that has that package and nothing of ours: `make prices` makes one.
"""

from __future__ import annotations

import json
import sys
from importlib import import_module
from importlib.metadata import version
from typing import Any

REGISTRY = "genai-prices"


def dumped() -> dict[str, Any]:
    providers = import_module("genai_prices.data").providers
    return {
        "registry": REGISTRY,
        "version": version(REGISTRY),
        "providers": {
            each.id: {
                "urls": list(each.pricing_urls or ()),
                "models": {model.id: _conditions(model.prices) for model in each.models},
                "contexts": {model.id: model.context_window for model in each.models if model.context_window},
            }
            for each in providers
        },
    }


def _conditions(prices: Any) -> list[dict[str, Any]]:
    """In the registry's order, in which the last that holds is the price."""
    if not isinstance(prices, list):
        return [{"prices": _amounts(prices)}]
    return [_condition(each.constraint) | {"prices": _amounts(each.prices)} for each in prices]


def _condition(constraint: Any) -> dict[str, Any]:
    if constraint is None:
        return {}
    if hasattr(constraint, "start_date"):
        return {"since": constraint.start_date.isoformat()}
    return {"from": constraint.start_time.isoformat(), "to": constraint.end_time.isoformat()}


def _amounts(prices: Any) -> dict[str, Any]:
    return {name: _amount(value) for name, value in vars(prices).items() if value is not None}


def _amount(value: Any) -> Any:
    """Decimals as text; what depends on the length of the prompt as its base and its tiers."""
    if hasattr(value, "tiers"):
        return {"base": str(value.base), "tiers": [[tier.start, str(tier.price)] for tier in value.tiers]}
    return str(value)


if __name__ == "__main__":
    json.dump(dumped(), sys.stdout)
