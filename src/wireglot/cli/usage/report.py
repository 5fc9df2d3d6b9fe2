"""What was used, asked of the store or of a gateway, and shown as a table and bars."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

from wireglot.cli.paint import one_line
from wireglot.cli.usage.table import chart_lines, table_lines
from wireglot.gateway import config
from wireglot.gateway.settings import Settings
from wireglot.gateway.state.ledger.report import BadParameter, query_of, report
from wireglot.stores import StoreDown, StoreUnusable, open_engine
from wireglot.wire.json import BadJson, decode

FAILED = 1
UNUSABLE = 2
_ANSWER_SECONDS: Final = 30.0
_OPTIONS: Final = {"group_by": "--by", "start": "--since", "end": "--until"}

Asked = dict[str, str]
Reports = list[dict[str, Any]]


class _Failed(Exception):
    """In words for people."""


def run(arguments: argparse.Namespace) -> int:
    asked = _asked(arguments)
    chart = sys.stdout.isatty() if arguments.chart is None else arguments.chart
    # The bars are by day, whatever the table is by.
    questions = [asked, asked | {"group_by": "day"}] if chart and not arguments.json else [asked]
    try:
        for question in questions:
            query_of(question)
        reports = _there(arguments, questions) if arguments.url else _here(arguments, questions)
    except BadParameter as wrong:
        print(f"wireglot: {_OPTIONS.get(wrong.name, '--' + wrong.name)}: {wrong}", file=sys.stderr)
        return UNUSABLE
    except config.ConfigError as error:
        print(f"wireglot: {error}", file=sys.stderr)
        return UNUSABLE
    except (StoreDown, StoreUnusable, _Failed) as problem:
        print(f"wireglot: {problem}", file=sys.stderr)
        return FAILED
    _show(reports, as_json=arguments.json)
    return 0


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


# From the store itself.


def _here(arguments: argparse.Namespace, questions: list[Asked]) -> Reports:
    path = Path(arguments.config) if arguments.config else config.find()
    settings = config.load(path, create_secret=False)
    url = settings.store.url.value
    if url.startswith("memory:"):
        raise _Failed("the store is in the gateway's memory: ask the gateway itself with --url")
    return asyncio.run(_read(settings, questions))


async def _read(settings: Settings, questions: list[Asked]) -> Reports:
    engine = await open_engine(settings.store.url.value)
    try:
        return [await report(engine.ledger, query_of(each), settings.currency) for each in questions]
    finally:
        await engine.close()


# From a gateway.


def _there(arguments: argparse.Namespace, questions: list[Asked]) -> Reports:
    if urlsplit(arguments.url).scheme not in ("http", "https"):
        raise _Failed("--url: expected http://... or https://...")
    path, name, secret = "/v1/usage", "WIREGLOT_KEY", arguments.api_key or ""
    if arguments.admin:
        path, name, secret = "/v1/admin/usage", "WIREGLOT_ADMIN_SECRET", ""
    secret = secret or os.environ.get(name, "")
    if arguments.admin and not secret:
        raise _Failed(f"--admin: set {name}")
    if arguments.key and not arguments.admin:
        raise _Failed("--key: only --admin sees other keys' usage")
    return [_get(arguments.url.rstrip("/") + path, secret, each) for each in questions]


def _get(url: str, secret: str, asked: Asked) -> dict[str, Any]:
    headers = {"authorization": f"Bearer {secret}"} if secret else {}
    request = urllib.request.Request(f"{url}?{urlencode(asked)}", headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=_ANSWER_SECONDS) as answer:
            document = decode(answer.read())
    except urllib.error.HTTPError as refused:
        raise _Failed(f"{url}: {_complaint(refused)}") from None
    except (OSError, BadJson) as problem:
        reason = getattr(problem, "reason", problem)
        raise _Failed(f"{url}: {one_line(str(reason))}") from None
    if not isinstance(document, dict) or document.get("object") != "usage.list":
        raise _Failed(f"{url}: that is no usage of a gateway")
    return document


def _complaint(refused: urllib.error.HTTPError) -> str:
    read: Callable[[], bytes] = refused.read
    try:
        document = decode(read())
    except (OSError, BadJson):
        document = None
    error = document.get("error") if isinstance(document, dict) else None
    message = error.get("message") if isinstance(error, dict) else None
    return one_line(message) if isinstance(message, str) else f"status {refused.code}"
