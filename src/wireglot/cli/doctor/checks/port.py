"""Whether a gateway could listen where the configuration says, and who is there if it could not."""

from __future__ import annotations

import errno
import json
import os
import socket
from collections.abc import Iterator
from http.client import HTTPConnection, HTTPException
from typing import Final

from wireglot import __version__
from wireglot.cli.doctor.case import Case
from wireglot.cli.doctor.finding import Finding, note, ok, problem, warning
from wireglot.cli.doctor.port_holder import holder_of
from wireglot.cli.paint import count
from wireglot.gateway.observe.running import RunningGateway, left_over

_ANSWER_SECONDS: Final = 2.0
_ANSWER_BYTES: Final = 65536
_EVERYWHERE: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}


def look_at_port(case: Case) -> Iterator[Finding]:
    server = case.loaded.server
    place = f"{server.host}:{server.port}"
    if server.port == 0:
        yield ok("port 0: any free one is taken")
    else:
        fault = _fault(server.host, server.port)
        if fault is None:
            yield ok(f"{place} is free")
        elif fault.errno == errno.EADDRINUSE:
            yield _in_use(case, place)
        elif fault.errno in (errno.EACCES, errno.EPERM):
            fix = f"a port from 1024 up: [server] in {case.file}: port = 8484"
            yield problem(f"this user may not listen on {place}", fix)
        else:
            reason = os.strerror(fault.errno) if fault.errno else str(fault)
            fix = f'[server] in {case.file}: host = "127.0.0.1", or an address of this machine'
            yield problem(f"nobody can listen on {place}: {reason}", fix)
    gone = left_over(case.environ)
    if gone:

        def remove() -> None:
            for file in left_over(case.environ):
                file.unlink(missing_ok=True)

        yield note(
            f"{count(len(gone), 'file')} of gateways that have gone in {gone[0].parent}",
            f"rm {' '.join(map(str, gone))}",
            remove,
        )


def _fault(host: str, port: int) -> OSError | None:
    """Why nobody can listen there now."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        with socket.socket(family, kind, protocol) as probe:
            if os.name == "posix":  # elsewhere it would share the port
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except OSError as fault:
        return fault
    return None


def _in_use(case: Case, place: str) -> Finding:
    server = case.loaded.server
    other = f"another port: [server] in {case.file}: port = {server.port + 1}"
    mine = next((each for each in case.running if each.url.endswith(f":{server.port}")), None)
    if mine is not None:
        return _mine(mine)
    if _is_gateway(_EVERYWHERE.get(server.host, server.host), server.port):
        return warning(
            f"a gateway that is not yours listens on {place}",
            f"wireglot run claude --url http://{place}, or {other}",
        )
    held = holder_of(server.port)
    return problem(f"{place} is held by {held or 'another program'}", f"end it, or {other}")


def _mine(running: RunningGateway) -> Finding:
    told = f"your gateway runs at {running.url} (process {running.pid})"
    if running.version != __version__:
        return note(f"{told} with version {running.version}, and this is {__version__}", "start it again")
    return ok(told)


def _is_gateway(host: str, port: int) -> bool:
    connection = HTTPConnection(host, port, timeout=_ANSWER_SECONDS)
    try:
        connection.request("GET", "/")
        found = json.loads(connection.getresponse().read(_ANSWER_BYTES))
    except (OSError, HTTPException, ValueError):
        return False
    finally:
        connection.close()
    return isinstance(found, dict) and found.get("name") == "wireglot"
