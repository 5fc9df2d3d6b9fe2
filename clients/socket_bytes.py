"""What Codex's requests weigh on both sides of a gateway, with its provider over HTTP and over a WebSocket.

python -m clients.socket_bytes    # sessions of 10 and 40 tool calls, the demo model as the provider
python -m clients.socket_bytes --calls 5 --codex PATH
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from clients.packages import CODEX
from clients.seat import Launch, Seat
from wireglot.gateway import websockets
from wireglot.testing.live_gateway import LiveGateway
from wireglot.testing.scripted_upstream import ScriptedUpstream

_KEY = "none-0123456789"
_CONFIG = """\
model = "gpt-5.5"
openai_base_url = "{base}/v1"
approval_policy = "never"
sandbox_mode = "danger-full-access"
check_for_update_on_startup = false
[analytics]
enabled = false
"""
_GATEWAY = """\
[providers.up]
dialect = "openai-responses"
base_url = "{url}/v1"
api_key = "{key}"
websocket = {websocket}
[models]
"*" = "up/*"
"""
_SECONDS = 300.0


def session(codex: Path, calls: int, *, websocket: bool) -> tuple[list[int], list[int]]:
    """The sizes of the requests of one session: from Codex to the gateway, from that to its provider."""
    received: list[int] = []
    read = websockets._decoded

    def decoded(message: bytes) -> object:
        received.append(len(message))
        return read(message)

    websockets._decoded = decoded
    try:
        with (
            tempfile.TemporaryDirectory() as logs,
            ScriptedUpstream(websockets=True) as upstream,
            LiveGateway(
                _GATEWAY.format(url=upstream.url, key=_KEY, websocket=str(websocket).lower())
            ) as gateway,
            Seat(gateway.url, _KEY, Path(logs), "openai-responses", calls) as seat,
        ):
            launch = Launch(
                [codex, "exec", "--skip-git-repo-check", seat.prompt],
                {"CODEX_HOME": str(seat.home / ".codex"), "CODEX_API_KEY": _KEY},
                {".codex/config.toml": _CONFIG.format(base=gateway.url)},
            )
            outcome = seat.run(launch, finals=1, timeout=_SECONDS)
            if not outcome.passed:
                raise SystemExit(f"Codex failed: {outcome.reason}")
            requests = [each for each in upstream.requests if each.path.endswith("/responses")]
            return received, [len(each.message or each.body) for each in requests]
    finally:
        websockets._decoded = read


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--codex", type=Path, default=CODEX.binaries / "codex")
    parser.add_argument("--calls", type=int, nargs="+", default=[10, 40])
    given = parser.parse_args(arguments)
    for calls in given.calls:
        for websocket in (False, True):
            received, sent = session(given.codex, calls, websocket=websocket)
            way = f"{calls} calls, provider over {'WebSocket' if websocket else 'HTTP'}"
            sys.stdout.write(
                f"{way}: {len(sent)} requests, {sum(received):,} bytes received, "
                f"{sum(sent):,} sent, the last {received[-1]:,} and {sent[-1]:,}\n"
            )


if __name__ == "__main__":
    main()
