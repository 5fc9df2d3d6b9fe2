"""What an account of tokens says beside the tokens that are counted: cost, times, modalities, searches.

It stands in the fields of `Usage.raw`, beside the account as it came, and every other dialect declares it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from wireglot.dialects.unknown_fields import is_hollow
from wireglot.ir.content import Extra
from wireglot.ir.loss import Loss, losses_of_extra

Counted = Mapping[str, frozenset[str] | None]
"""Fields that are counted, or say again what is; with the fields inside where it is an object."""


def untold(raw: dict[str, Any], counted: Counted) -> dict[str, Any]:
    """What the counts do not hold, by its path. Zeros and empties are nothing that could be told."""
    out: dict[str, Any] = {}
    for key, value in raw.items():
        if not value:  # as hollow as it can be
            continue
        if key not in counted:
            if not is_hollow(value):
                out[key] = value
        elif type(value) is dict:
            inside = counted[key]
            if inside is not None:
                for name, item in value.items():
                    if item and name not in inside and not is_hollow(item):
                        out[f"{key}.{name}"] = item
    return out


def losses_of_usage(raw: Extra | None, own: str, path: str, out: list[Loss]) -> None:
    """Declare what another dialect's account says beside the counts, and counts that it cannot mean."""
    if raw is None or raw.dialect == own:
        return
    losses_of_extra(raw, own, path, out, "usage.detail")
    for key, value in raw.form.items():
        if type(value) in (int, float) and value < 0:
            detail = "a count below zero is read as none"
            out.append(Loss(f"{path}.{key}", "usage.detail", "dropped", detail))
