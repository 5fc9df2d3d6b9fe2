"""A document alone in an array, as some hosts send errors in whatever dialect they speak."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.core.laws.cases import MAIN
from wireglot.gateway.relay.delivery import Delivery
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.registry import dialect
from wireglot_core.ir.errors import ApiError
from wireglot_core.ir.failures import AttemptFailed
from wireglot_core.wire.json import encode


@pytest.mark.parametrize("name", MAIN)
def test_an_error_alone_in_an_array_is_found(name: str) -> None:
    error = dialect(name).render_error(ApiError("rate_limit", "slow down", status=429), Context()).value
    delivery = Delivery(cast(Any, None), cast(Any, None), lambda key: False)
    target, prepared = SimpleNamespace(codec=dialect(name)), SimpleNamespace(context=Context())
    with pytest.raises(AttemptFailed) as failed:
        delivery._parsed(cast(Any, target), cast(Any, prepared), encode([error]))
    assert failed.value.error.kind == "rate_limit"
