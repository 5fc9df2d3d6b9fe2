"""Options of `wireglot keys`, and what reads them."""

from __future__ import annotations

import argparse
import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from wireglot.cli.options import Commands, add_config

_UNIT_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
_LONGEST_SECONDS: Final = 5200 * 7 * 86400
_MOST: Final = 10**15
"""Of tokens, requests or money: more is a slip, and no store takes it."""

_EXAMPLES: Final = """\
examples:
  KEY=$(wireglot keys create laptop)
  wireglot keys create team-a --models 'claude-*,fast' --requests-per-minute 60 --cost-per-month 50
  wireglot keys update team-a --concurrent 5 --cost-per-month 0
  wireglot keys rotate team-a --overlap 1h
  wireglot keys list
  wireglot keys delete team-a
  wireglot keys off

The new key is all that goes to standard output, once: only its hash is kept.
"""

_LIMITS: Final = {
    "requests_per_minute": "requests in any minute",
    "tokens_per_minute": "tokens in any minute, input and output together",
    "concurrent": "requests answered at once",
    "tokens_per_day": "tokens a day (UTC)",
    "tokens_per_month": "tokens a month (UTC)",
    "cost_per_day": "money a day, in the currency of the configuration",
    "cost_per_month": "money a month",
}


def add_command(commands: Commands) -> None:
    parser = commands.add_parser(
        "keys",
        help="make and revoke keys for clients",
        description="Make and revoke keys for clients of the gateway that runs on this machine, or of the "
        "one at --url; if none runs, in the store of the configuration. All of it may be done while the "
        "gateway runs; every process of it knows within seconds.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True, help="what to do")
    create = actions.add_parser("create", help="make a key, and print it this once")
    _name(create)
    _what_it_may(create)
    update = actions.add_parser("update", help="change what a key may do; 0 takes a limit off")
    _name(update)
    _what_it_may(update)
    actions.add_parser("list", help="all keys, and what they may do")
    _name(actions.add_parser("revoke", help="let a key open nothing any more"))
    delete = actions.add_parser("delete", help="forget a key and all that its caller stored")
    _name(delete)
    off = actions.add_parser("off", help="delete all stored keys: the gateway asks for none again")
    for action in (delete, off):
        action.add_argument("--yes", action="store_true", help="do not ask")
    rotate = actions.add_parser("rotate", help="replace a key by a new one for the same caller")
    _name(rotate)
    rotate.add_argument(
        "--overlap",
        type=_seconds,
        default=0,
        metavar="TIME",
        help="how long the old one still works: 30m, 1h, 7d",
    )
    for action in actions.choices.values():
        action.add_argument("--json", action="store_true", help="print JSON")
        add_config(action)
        action.add_argument(
            "--url",
            metavar="URL",
            help="use the admin API of the gateway there; its secret is in WIREGLOT_ADMIN_SECRET",
        )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    from wireglot.cli.keys.actions import Task, change_keys

    task = Task(arguments.action, as_json=arguments.json)
    if arguments.action not in ("list", "off"):
        task.name = arguments.name
    if arguments.action in ("create", "update"):
        task.fields = _fields(arguments)
    if arguments.action in ("delete", "off"):
        task.sure = arguments.yes
    if arguments.action == "rotate":
        task.overlap_seconds = arguments.overlap
    return change_keys(task, config_file=arguments.config, url=arguments.url)


def _fields(arguments: argparse.Namespace) -> dict[str, Any]:
    """What was named on the command line, as the admin API spells it."""
    fields = {name: value for name in _LIMITS if (value := getattr(arguments, name)) is not None}
    if arguments.models is not None:
        fields["models"] = arguments.models
    if arguments.expires is not None:
        expires = arguments.expires
        if isinstance(expires, int):
            expires = (datetime.now(UTC) + timedelta(seconds=expires)).isoformat(timespec="seconds")
        fields["expires"] = expires
    return fields


def _name(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="what the caller is called")


def _what_it_may(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--models", type=_names, metavar="A,B", help="names and patterns it may ask for (default: all)"
    )
    parser.add_argument(
        "--expires", type=_expiry, metavar="TIME|DATE", help="30d, 12h, or a date like 2027-01-31"
    )
    for name, meaning in _LIMITS.items():
        money = name.startswith("cost_")
        parser.add_argument(
            f"--{name.replace('_', '-')}",
            type=_money if money else _count,
            metavar="2.50" if money else "N",
            help=meaning,
        )


def _seconds(text: str) -> int:
    found = re.fullmatch(r"(\d{1,9})([smhdw]?)", text)
    if found is None:
        raise argparse.ArgumentTypeError(f"expected a time like 30m, 1h or 7d, got {text!r}")
    seconds = int(found[1]) * _UNIT_SECONDS[found[2] or "s"]
    if seconds > _LONGEST_SECONDS:
        raise argparse.ArgumentTypeError(f"expected at most 5200w (100 years), got {text!r}")
    return seconds


def _expiry(text: str) -> int | str:
    """Seconds from now, or a date."""
    return _seconds(text) if re.fullmatch(r"\d+[smhdw]", text) else text


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _count(text: str) -> int:
    if not re.fullmatch("[0-9]{1,16}", text) or int(text) > _MOST:
        raise argparse.ArgumentTypeError(f"expected a whole number up to {_MOST}, got {text[:40]!r}")
    return int(text)


def _money(text: str) -> float:
    try:
        amount = Decimal(text)
    except InvalidOperation:
        amount = Decimal(-1)
    if not amount.is_finite() or not 0 <= amount <= _MOST:
        raise argparse.ArgumentTypeError(f"expected an amount of money like 2.50, got {text!r}")
    return float(amount)
