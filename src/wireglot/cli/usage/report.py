"""What was used, asked of the store or of a gateway, and shown as a table and bars."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
from typing import Any, Final
from urllib.parse import urlencode

from wireglot.cli.exit_status import FAILED, OK, UNUSABLE
from wireglot.cli.local_gateway import ADMIN_SECRET, StoreNote, operated_gateway, reachable
from wireglot.cli.paint import one_line
from wireglot.cli.remote_gateway import (
    Address,
    NoAnswer,
    UnusableKey,
    UnusableUrl,
    address_of,
    ask,
    usable_key,
)
from wireglot.cli.store_trouble import store_failed
from wireglot.cli.telling import complain
from wireglot.cli.trust import trusted_config
from wireglot.cli.usage.table import chart_lines, table_lines
from wireglot.gateway import config
from wireglot.gateway.settings import Settings
from wireglot.gateway.state.ledger.report import BadParameter, query_of, report
from wireglot.stores import StoreDown, StoreUnusable, open_engine

_KEY: Final = "WIREGLOT_KEY"
_ADMIN_PATH: Final = "/v1/admin/usage"
_DONE: Final = 200
_UNAUTHORIZED: Final = 401
_OPTIONS: Final = {"group_by": "--by", "start": "--since", "end": "--until"}

Asked = dict[str, str]
Reports = list[dict[str, Any]]


class _Failed(Exception):
    """In words for people."""


class _Unusable(Exception):
    """In words for people."""


def run(arguments: argparse.Namespace) -> int:
    asked = _asked(arguments)
    chart = sys.stdout.isatty() if arguments.chart is None else arguments.chart
    # The bars are by day, whatever the table is by.
    questions = [asked, asked | {"group_by": "day"}] if chart and not arguments.json else [asked]
    try:
        _check(arguments)
        for question in questions:
            query_of(question)
        reports = _reports(arguments, questions)
    except BadParameter as wrong:
        option = _OPTIONS.get(wrong.name, f"--{wrong.name}")
        told = str(wrong).removeprefix(f"{wrong.name}: ")
        given = asked.get(wrong.name, "")
        complain(f"{option}: {told}, got {one_line(given)!r}")
        return UNUSABLE
    except (config.ConfigError, UnusableUrl, UnusableKey, _Unusable) as problem:
        complain(problem)
        return UNUSABLE
    except (StoreDown, StoreUnusable) as problem:
        return store_failed(problem)
    except (NoAnswer, _Failed) as problem:
        complain(problem)
        return FAILED
    _show(reports, as_json=arguments.json)
    return OK


def _check(arguments: argparse.Namespace) -> None:
    given = {"--admin": arguments.admin, "--api-key": arguments.api_key}
    for option, value in given.items():
        if value and not arguments.url:
            raise _Unusable(f"{option}: expected with --url only")


def _asked(arguments: argparse.Namespace) -> Asked:
    given = {
        "group_by": arguments.by,
        "start": arguments.since,
        "end": arguments.until,
        "key": arguments.key,
        "model": arguments.model,
        "provider": arguments.provider,
    }
    return {name: value for name, value in given.items() if value}


def _show(reports: Reports, *, as_json: bool) -> None:
    if as_json:
        print(json.dumps(reports[0], indent=2, ensure_ascii=False))
        return
    lines = table_lines(reports[0], sys.stdout)
    if len(reports) > 1:
        lines += ["", *chart_lines(reports[1], sys.stdout)]
    for line in lines:
        print(line)


def _reports(arguments: argparse.Namespace, questions: list[Asked]) -> Reports:
    if arguments.url:
        return _there(arguments, questions)
    running = operated_gateway(arguments.config)
    if running is None:
        return _here(arguments, questions)
    address = address_of(reachable(running.url))
    return [_get(address, _ADMIN_PATH, running.key, each, ADMIN_SECRET) for each in questions]


# From the store itself.


def _here(arguments: argparse.Namespace, questions: list[Asked]) -> Reports:
    file = trusted_config(arguments.config)
    settings = config.load(file.path, create_secret=False, content=file.content, keys_needed=False)
    url = settings.store.url.value
    if url.startswith("memory:"):
        raise _Unusable("the store is in the gateway's memory: ask the gateway itself with --url")
    note = StoreNote(settings, " --admin")
    reports = asyncio.run(_read(settings, questions))
    note.say()
    return reports


async def _read(settings: Settings, questions: list[Asked]) -> Reports:
    engine = await open_engine(settings.store.url.value)
    try:
        return [await report(engine.ledger, query_of(each), settings.currency) for each in questions]
    finally:
        await engine.close()


# From a gateway.


def _there(arguments: argparse.Namespace, questions: list[Asked]) -> Reports:
    address = address_of(arguments.url)
    path, name, given = "/v1/usage", _KEY, arguments.api_key or ""
    if arguments.admin:
        path, name, given = _ADMIN_PATH, ADMIN_SECRET, ""
    secret = usable_key(given or os.environ.get(name, ""), "--api-key" if given else name)
    if arguments.admin and not secret:
        raise _Unusable(f"--admin: set {name} to the admin secret of that gateway")
    if arguments.key and not arguments.admin:
        raise _Unusable("--key: only --admin sees other keys' usage")
    return [_get(address, path, secret, each, name) for each in questions]


def _get(address: Address, path: str, secret: str, asked: Asked, name: str) -> dict[str, Any]:
    answer = ask(address, "GET", f"{path}?{urlencode(asked, errors='replace')}", key=secret)
    if answer.status == _UNAUTHORIZED:
        fix = f"give one that it knows in {'' if name == ADMIN_SECRET else '--api-key or '}{name}"
        if not secret:
            raise UnusableKey(f"{address.url} wants a key: {fix}")
        raise _Failed(f"{address.url} does not take the key: {fix}")
    if answer.status != _DONE:
        raise _Failed(f"{address.url}: {answer.complaint()}")
    document = answer.document()
    if document.get("object") != "usage.list":
        raise _Failed(f"{address.url}: what answers there is no gateway")
    return document
