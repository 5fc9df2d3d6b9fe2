"""A gateway of this tree, started on what one that was killed left behind."""

from __future__ import annotations

import asyncio
import atexit
import re
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import apsw
import msgspec

from proofs.lab.client_record import ClientRecord, Exchange, read_client_record
from proofs.lab.leave_behind import WORKERS, leave_behind, pack, unpack
from proofs.lab.link import Link, Reply
from proofs.lab.scenario import sent
from proofs.lab.scenario_config import UPSTREAM
from proofs.served import Served
from tests.upgrade.forms_kit import without_later_fields
from wireglot.testing.scripted_upstream import ScriptedUpstream

FIXTURES = Path(__file__).parents[1] / "fixtures" / "left_behind"
RELEASED = sorted(path.name for path in FIXTURES.iterdir() if path.is_dir())
THIS_TREE = "this tree"

_MADE_UP = re.compile(r"\b((?:msg_)?resp|msg|rs|fc|cmp|req|gen)_(wg|demo)?[0-9a-f]{18,}")
_LATER = (',"include":["reasoning.encrypted_content"]', ',"summary":"auto"', '"includeThoughts":true,')
_TIER = re.compile(r',"(service_tier|serviceTier)":"(default|standard)"(?=})')
_ASKED_MODEL = re.compile(r'("role":"assistant","model":")[\w-]+/')
_WITHHELD = re.compile(r',"input_transformations":\[[^\]]*\]')
"""Reasoning that did not reach the model: older versions did not name it."""
_TIME = re.compile(r'"(created|created_at|completed_at)":\d+')


def packed(version: str) -> Path:
    """Where lies what a version left behind: committed, or of this tree and made now."""
    return _made_now() if version == THIS_TREE else FIXTURES / version


@cache
def _made_now() -> Path:
    """Once in a test process: it takes seconds."""
    folder = Path(tempfile.mkdtemp(prefix="wireglot-left-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    reported = asyncio.run(leave_behind(folder / "lived"))
    pack(folder / "lived", reported, folder / "packed")
    return folder / "packed"


class Restarted:
    def __init__(
        self, folder: Path, reported: ClientRecord, gateway: Served, upstream: ScriptedUpstream
    ) -> None:
        self.folder = folder
        self.reported = reported
        self.gateway = gateway
        self.upstream = upstream
        self.shown = [self.repeat(each)[0] for each in reported.fetched]
        """What is stored, before any test has gone on with it."""

    def ask(
        self,
        caller: str,
        method: str,
        path: str,
        body: Any = None,
        headers: dict[str, str] | None = None,
        *,
        key: str = "",
    ) -> Reply:
        key = key or (self.reported.admin if caller == "admin" else self.reported.keys[caller])

        async def asked() -> Reply:
            link = Link(self.gateway.port, key)
            try:
                return await link.ask(method, path, body, headers)
            finally:
                link.close()

        return asyncio.run(asked())

    def repeat(self, reported: Exchange) -> tuple[Reply, list[tuple[str, str]]]:
        """The same request again, and what a provider got for it."""
        self.upstream.reset()
        reply = self.ask(reported.caller, reported.method, reported.path, reported.body, reported.headers)
        return reply, sent(self.upstream)

    def exported(self, kind: str) -> list[dict[str, Any]]:
        """The records of one kind in `wireglot store export`."""
        lines = self.gateway.run("store", "--config", "wireglot.toml", "export").splitlines()
        return [line[kind] for line in map(msgspec.json.decode, lines) if kind in line]


@contextmanager
def restarted(left: Path, folder: Path) -> Iterator[Restarted]:
    unpack(left, folder)
    _spend_today(folder / "wireglot" / "wireglot.db", "spent")
    with ScriptedUpstream() as upstream:
        toml = (folder / "wireglot.toml").read_text(encoding="utf-8").replace(UPSTREAM, upstream.url)
        gateway = Served(folder, toml, workers=WORKERS)
        gateway.start()
        try:
            yield Restarted(folder, read_client_record(left), gateway, upstream)
        finally:
            gateway.kill()


def _spend_today(database: Path, caller: str) -> None:
    """Budgets are of a day or a month, and what was left behind may be years old."""
    connection = apsw.Connection(str(database))
    connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    now = int(time.time() * 1000)
    connection.execute("UPDATE usage SET started = ?, finished = ? WHERE caller = ?", (now, now, caller))
    connection.close(True)


def asked_for_state(body: str, before: str) -> str:
    """What went out, without what newer versions ask for whatever the client says of thinking."""
    for asked in _LATER:
        if asked not in before:
            body = body.replace(asked, "")
    return body


def plain(text: str) -> str:
    """An answer without what is made up again for each, and without what newer versions tell besides: how fast
    it was served, and in which words Anthropic's clients asked for the model."""
    text = _TIER.sub("", without_later_fields(_WITHHELD.sub("", text)))
    return _TIME.sub(r'"\1":0', _MADE_UP.sub(r"\1_", _ASKED_MODEL.sub(r"\1", text)))
