"""A gateway killed with requests in flight: FAULTS 95, rule L."""

from __future__ import annotations

import contextlib
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.gateway.state.ledger_kit import ORDERS, Served
from tests.gateway.state.usage_kit import ask, usage
from wireglot.testing.live_gateway import LiveGateway
from wireglot.testing.scripted_upstream import Behaviour, ScriptedUpstream


def _leave_it(gateway: Any) -> None:
    """Ask for what is never answered."""
    with contextlib.suppress(OSError):
        ask(gateway, "anthropic", "m", True, x_wireglot_session="lost")


@pytest.mark.sampled(each=2)
@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
@pytest.mark.parametrize("order", ORDERS)
def test_a_killed_gateway_loses_no_answered_request_and_its_open_ones_are_crashes(
    tmp_path: Path, order: str
) -> None:
    with ScriptedUpstream() as upstream:
        toml = (
            f'[providers.mine]\ndialect = "openai-chat"\nbase_url = "{upstream.url}/v1"\napi_key = "k"\n'
            f'[models]\n"*" = "mine/*"\n[store]\nsync = "{order}"\n'
        )
        served = Served(tmp_path, toml)
        answered = 0
        for number in range(12):
            ask(served, "anthropic", "m", number % 2 == 0, x_wireglot_session="answered")  # type: ignore[arg-type]  # it has a url
            answered += 1
        upstream.reset()
        upstream.next(Behaviour(fault="stall"), Behaviour(fault="stall"))
        lost = [threading.Thread(target=_leave_it, args=(served,)) for _ in range(2)]
        for thread in lost:
            thread.start()
        upstream.wait_for(2)
        served.kill()
        for thread in lost:
            thread.join()
        with LiveGateway(toml, folder=tmp_path) as gateway:
            rows = usage(gateway, "group_by=session,outcome")["data"]
    assert {(row["session"], row["outcome"]): row["requests"] for row in rows} == {
        ("answered", "ok"): answered,
        ("lost", "crash"): 2,
    }
