"""A provider for tests: a real HTTP server with the demo model behind it, which fails on request.

    with ScriptedUpstream() as upstream:
        upstream.next(Behaviour(error=429, retry_after=1), Behaviour(fault="reset-midstream", after=3))
        client = anthropic.Anthropic(base_url=upstream.url, api_key="x")
        ...
        assert upstream.requests[0].path == "/v1/messages"

It serves every dialect under its official paths, `/v1` or `/v1beta` before them or not, and accepts any model
name. The server runs in a separate thread, on a free port. It can also be run alone: `python -m
wireglot.testing.scripted_upstream --port N`.
"""

from wireglot.testing.scripted_upstream.behaviour import FAULTS, Behaviour, Fault, Recorded
from wireglot.testing.scripted_upstream.upstream import ScriptedUpstream

__all__ = ["FAULTS", "Behaviour", "Fault", "Recorded", "ScriptedUpstream"]
