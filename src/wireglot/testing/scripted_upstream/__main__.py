"""`python -m wireglot.testing.scripted_upstream`: the upstream alone, until it is interrupted."""

from __future__ import annotations

import argparse
import sys
import threading

from wireglot.testing.scripted_upstream.upstream import ScriptedUpstream


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="A provider for tests that speaks every dialect.")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--websockets", action="store_true", help="serve Responses over WebSockets too")
    given = parser.parse_args(arguments)
    with ScriptedUpstream(host=given.host, port=given.port, websockets=given.websockets) as upstream:
        sys.stdout.write(f"{upstream.url}\n")
        sys.stdout.flush()
        try:
            threading.Event().wait()
        except KeyboardInterrupt:
            return


if __name__ == "__main__":
    main()
