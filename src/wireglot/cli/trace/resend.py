"""A recorded request sent again by a gateway, once somebody has agreed to pay for it."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any, Final

from wireglot.cli.exit_status import FAILED, OK
from wireglot.cli.paint import one_line
from wireglot.cli.telling import say
from wireglot.cli.trace.access import AtGateway, NoTrace, Unusable, at_running_gateway, is_file
from wireglot.cli.trace.answers import compared, compared_lines
from wireglot.cli.trace.table import upstream_of
from wireglot.traces.trace import Trace

_REFUSED: Final = 400
_MILLION: Final = 1_000_000


def send_again(arguments: argparse.Namespace, trace: Trace) -> int:
    """Raises Unusable where nobody agrees."""
    url = arguments.url
    gateway = at_running_gateway(arguments.config) if url is None else AtGateway(url)
    if gateway is None:
        raise Unusable("--url: which gateway is to send it again? With --offline nothing is sent")
    asked = {**_request(trace, arguments), "to": arguments.to or upstream_of(trace.row) or trace.row.asked}
    say(_price(gateway.send_again({**asked, "dry": True}), asked["to"]))
    if not arguments.yes and not _agreed():
        raise Unusable("not sent: say --yes to agree beforehand")
    sent = gateway.send_again({**asked, "dry": False})
    status, id = sent.get("status"), one_line(str(sent.get("id", "")))
    if arguments.json:
        print(json.dumps(sent, indent=2, ensure_ascii=False))
    else:
        print(f"{id}  {one_line(str(status))}")
        _tell(gateway, trace, id)
    return FAILED if isinstance(status, int) and status >= _REFUSED else OK


def _request(trace: Trace, arguments: argparse.Namespace) -> dict[str, Any]:
    """The gateway has what it recorded itself; what went upstream, or lies in a file, it is told."""
    dialect, message = trace.row.dialect, trace.request
    if arguments.raw:
        attempt = trace.attempts[-1] if trace.attempts else None
        if attempt is None or attempt.request is None:
            raise Unusable("--raw: nothing went upstream in this exchange")
        dialect, message = attempt.dialect, attempt.request
    elif not is_file(arguments.id):
        return {"id": trace.row.id}
    if message.truncated:
        raise Unusable("the request was not recorded to its end: it cannot be sent again")
    return {"dialect": dialect, "body": message.body, "stream": trace.row.stream}


def _tell(gateway: AtGateway, before: Trace, id: str) -> None:
    """How the answers differ, where the new one was recorded too."""
    try:
        lines = compared_lines(compared(before, gateway.trace(id)))
    except NoTrace as problem:
        say(f"not compared: {problem}")
        return
    for line in lines:
        print(line)


def _price(dry: dict[str, Any], to: str) -> str:
    estimate = dry.get("estimate")
    known = estimate if isinstance(estimate, dict) else {}
    tokens = f"about {known.get('input', '?')} tokens in, at most {known.get('output_most', '?')} out"
    cost, currency = known.get("cost"), one_line(str(known.get("currency", "")))
    price = "at a price that is not known"
    if isinstance(cost, (int, float)):
        price = f"for at most {cost / _MILLION:.6f} {currency}".rstrip()
    pays = one_line(str(dry.get("pays") or ""))
    paid = f"paid with the key in {pays}" if pays else "no key pays for it"
    return one_line(f"This asks {to}: {tokens}, {price}; {paid}.")


def _agreed() -> bool:
    if not sys.stdin.isatty():
        return False
    say("Send it? [y/N]")
    return sys.stdin.readline().strip().lower() in ("y", "yes")
