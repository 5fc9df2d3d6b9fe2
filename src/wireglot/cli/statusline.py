"""`wireglot statusline`: one line for the status line of Claude Code.

Claude Code gives the command a JSON document on standard input, and shows the first lines that it prints.
Whatever goes wrong, a line is printed and the status is 0: there is no other place for a message.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

from wireglot.cli.remote_gateway import GatewayAddress, GatewayAnswer, address_of, ask, usable_key
from wireglot.cli.terminal import OK, Failed, Unusable, one_line
from wireglot.stores.records import MICRO
from wireglot_core.wire.json import BadJson, decode

_SECONDS: Final = 2.0
# Bytes that the status line reads from its agent.
_MAX_INPUT: Final = 1024 * 1024
# Losses that the status line names.
_MAX_LOSSES: Final = 3
_KEYS: Final = ("ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_API_KEY", "WIREGLOT_KEY")
_KILO: Final = 1000


def run(arguments: argparse.Namespace) -> int:
    given = _given(sys.stdin.buffer.read(_MAX_INPUT) if sys.stdin is not None else b"")
    url = arguments.url or os.environ.get("ANTHROPIC_BASE_URL", "")
    key = next((os.environ[name] for name in _KEYS if os.environ.get(name)), "")
    print(line(given, _Session.found(url, key, _text(given, "session_id"))))
    return OK


class _Session:
    """What the gateway knows about a session; `fault`: why it knows nothing."""

    def __init__(self, document: Mapping[str, Any], losses: list[str], fault: str = "") -> None:
        self.document = document
        self.losses = losses
        self.fault = fault

    @classmethod
    def found(cls, url: str, key: str, session: str) -> _Session:
        if not url:
            return cls({}, [], "ANTHROPIC_BASE_URL is not set")
        if not session:
            return cls({}, [])
        try:
            address, key = address_of(url), usable_key(key, "key")
            answer = _asked(address, f"/v1/sessions/{quote(session, safe='')}", key)
            if answer.status != 200:
                # A session is unknown before its first request.
                is_new = answer.status == 404 and "error" in answer.document()
                return cls({}, [], "" if is_new else answer.complaint())
            document = answer.document()
            latest = _text(document, "last_request")
            if not latest:
                return cls(document, [])
            lost = _asked(address, f"/v1/requests/{quote(latest, safe='')}/losses", key)
            return cls(document, _serious(lost))
        except (Failed, Unusable) as fault:
            return cls({}, [], str(fault))


def line(given: Mapping[str, Any], session: _Session) -> str:
    """Model and route, cost, context used, serious losses: unknown values are left out."""
    document = session.document
    model = _inner(given, "model")
    name, route = _text(model, "display_name") or _text(model, "id"), _text(document, "route")
    pieces = [f"{name} → {route}" if name and route and name != route else route or name or "wireglot"]
    cost = document.get("cost")
    if type(cost) is int:
        pieces.append(f"{cost / MICRO:.2f} {_text(document, 'currency')}".strip())
    pieces += _context(_inner(given, "context_window"))
    if session.fault:
        pieces.append(f"gateway: {session.fault}")
    elif session.losses:
        pieces.append(_lost(session.losses))
    return " · ".join(map(one_line, pieces))


def _lost(losses: list[str]) -> str:
    more = f" and {len(losses) - _MAX_LOSSES} more" if len(losses) > _MAX_LOSSES else ""
    return f"lost: {', '.join(losses[:_MAX_LOSSES])}{more}"


def _context(window: Mapping[str, Any]) -> list[str]:
    size, used = window.get("context_window_size"), window.get("total_input_tokens")
    if type(size) is not int or type(used) is not int or size <= 0 or used <= 0:
        return []
    return [f"{used / size:.0%} of {size // _KILO}k"]


def _serious(answer: GatewayAnswer) -> list[str]:
    found = answer.document().get("losses") if answer.status == 200 else None
    losses = [loss for loss in found if isinstance(loss, dict)] if isinstance(found, list) else []
    return list(dict.fromkeys(_text(loss, "feature") for loss in losses if loss.get("grade") == "serious"))


def _asked(address: GatewayAddress, path: str, key: str) -> GatewayAnswer:
    return ask(address, "GET", path, key=key, seconds=_SECONDS)


def _given(data: bytes) -> dict[str, Any]:
    try:
        found = decode(data) if data.strip() else {}
    except BadJson:
        return {}
    return found if isinstance(found, dict) else {}


def _inner(document: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = document.get(name)
    return found if isinstance(found, dict) else {}


def _text(document: Mapping[str, Any], name: str) -> str:
    found = document.get(name)
    return found if isinstance(found, str) else ""
