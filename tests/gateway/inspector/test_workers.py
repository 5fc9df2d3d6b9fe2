"""Several workers, one session: whichever of them is asked knows who looks."""

from __future__ import annotations

import sys

import pytest

from tests.gateway.faults.test_faults_process import serving, workers_of
from tests.gateway.inspector.inspector_kit import ADMIN, Visitor
from tests.waiting import wait_until
from wireglot.testing.scripted_upstream import ScriptedUpstream

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="several workers are Unix's")

TABLES = f"""
[server]
admin_secret = "{ADMIN}"
inspector = "secret"
[providers.demo]
"""


def test_a_session_of_one_worker_is_one_of_all(tmp_path):
    with (
        ScriptedUpstream() as upstream,
        serving(upstream, tmp_path, "--workers", "2", more=TABLES) as served,
    ):
        wait_until(lambda: b'state="answered"} 2' in served.get("/metrics")[1])
        assert len(workers_of(served)) == 2
        visitor = Visitor(served).browse()
        assert visitor.get("/inspector/api/setup").status == 401
        assert visitor.sign_in(ADMIN).status == 200
        # Each on a connection of its own, which the kernel gives to either of them.
        assert {visitor.get("/inspector/api/setup").status for _ in range(24)} == {200}
        asked = [visitor.post("/inspector/api/ask", {}).json()["status"] for _ in range(12)]
        assert asked == [200] * 12, "and so does its token"
        reported = wait_until(
            lambda: (
                reported
                if (reported := visitor.get("/inspector/api/dashboard").json())["total"]["requests"] == 12
                else None
            )
        )
        assert reported["health"]["in_flight"] == 0
        assert visitor.look()["workers"] == 2
        assert visitor.ask("DELETE", "/inspector/api/session").status == 200
        wait_until(
            lambda: {visitor.get("/inspector/api/setup").status for _ in range(24)} == {401},
            "some worker does not know that the session has ended",
        )
