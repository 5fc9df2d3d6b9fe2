"""Runs the scenarios against the gateway of one tree, over HTTP, and records all that can be seen of it.

Of each request: the answer, what the upstream received, the log lines, the row of usage, the row or the whole
of the trace. Of each scenario: how the metrics changed. Of each process: its other log lines and what it
stored.
"""

from __future__ import annotations

import http.client
import json
import re
import socket
import sqlite3
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from proofs.comparison.normalise import Normaliser, step_names
from proofs.served import Served, Tree
from wireglot.testing.scripted_upstream import Behaviour, ScriptedUpstream

Facets = dict[str, str]
Recording = dict[str, Facets]
"""By the name of a request, or of what else was looked at."""

ADMIN: Final = "an-admin-secret-of-these-runs"
SECRET: Final = "a-secret-that-seals-these-runs"
_PATIENCE_SECONDS: Final = 30.0
_POLL_SECONDS: Final = 0.005
_TIMED_SERIES: Final = re.compile(r"_seconds_(?:bucket|sum)\b")
_VOLATILE: Final = frozenset(
    {
        "wireglot_tasks",
        "wireglot_connections",
        "wireglot_upstream_connections",
        "wireglot_usage_journal_bytes",
        "wireglot_start_time_seconds",
    }
)
"""Gauges whose value depends on when one looks."""


class Answer(msgspec.Struct, frozen=True):
    status: int
    headers: list[tuple[str, str]]
    body: bytes
    ending: str = ""
    """How it broke off, if it did."""

    def json(self) -> Any:
        return json.loads(self.body)

    def header(self, name: str) -> str:
        return next((value for header, value in self.headers if header.lower() == name), "")


class Asked(msgspec.Struct):
    """A request of a scenario, before what was seen of it is normalised."""

    name: str
    at: float
    known: str
    request_id: str


class Setup(msgspec.Struct, frozen=True):
    """One gateway: its configuration, in which `{upstream}` is the upstream's URL, and its scenarios."""

    name: str
    toml: str
    scenarios: dict[str, Callable[[Recorder], None]]
    traces: bool = False
    """Whether whole traces are compared, and not only their rows."""


class Recorder:
    """What a scenario sends its requests with."""

    def __init__(self, setup: Setup, gateway: Served, upstream: ScriptedUpstream, folder: Path) -> None:
        self.upstream = upstream
        self.recording: Recording = {}
        self.scenario = ""
        self.spares: dict[str, int] = {}
        """How many spare routes of an upstream were used."""
        self._setup = setup
        self._gateway = gateway
        places = {
            str(folder): "<folder>",
            f"127.0.0.1:{gateway.port}": "<gateway>",
            f"127.0.0.1:{upstream.port}": "<upstream>",
            f"{socket.gethostname()}/{gateway.pid}": "<worker>",
            f"{socket.gethostname()}-{gateway.pid}-": "<instance>-",
        }
        self._normal = Normaliser(places)
        self._connection = self._connect()
        self._asked: dict[str, Asked] = {}
        self._metrics: dict[str, float] = {}
        self._began = time.time()

    def ask(
        self,
        name: str,
        path: str,
        body: Any = None,
        *behaviours: Behaviour,
        method: str = "",
        headers: dict[str, str] | None = None,
        waits: int = 0,
    ) -> Answer:
        """Send a request for which the upstream does `behaviours`, or answers as the demo model does.

        `waits`: how many requests reach the upstream when the answer is out already."""
        name = f"{self._setup.name}/{self.scenario}/{name}"
        assert name not in self.recording, f"two requests are named {name}"
        content = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        self.upstream.reset()
        self.upstream.next(*behaviours)
        at = time.time()
        sent = {
            "user-agent": "same/1",
            **({"content-type": "application/json"} if content else {}),
            **(headers or {}),
        }
        answer = self._exchange(method or ("POST" if content else "GET"), path, content, sent)
        if waits:
            self.upstream.wait_for(waits, _PATIENCE_SECONDS)
        known = "\n".join([content.decode("utf-8", "replace"), path, str(sent), *map(_scripted, behaviours)])
        asked = Asked(name, at, known, answer.header("x-wireglot-request-id"))
        if asked.request_id:
            self._asked[asked.request_id] = asked
        self.recording[name] = {
            "answer": self._normal.text(_shown(answer), name, at, known),
            "upstream": self._normal.text(self._received(len(behaviours)), name, at, known),
        }
        return answer

    def send_raw(self, name: str, data: bytes) -> None:
        """Bytes that need not be HTTP, and what comes back until the gateway closes the connection."""
        name = f"{self._setup.name}/{self.scenario}/{name}"
        at, received = time.time(), b""
        with socket.create_connection(("127.0.0.1", self._gateway.port), timeout=_PATIENCE_SECONDS) as peer:
            peer.sendall(data)
            peer.shutdown(socket.SHUT_WR)
            while more := peer.recv(65_536):
                received += more
        text = received.decode("utf-8", "backslashreplace")
        self.recording[name] = {"answer": self._normal.text(text, name, at)}

    def settle(self) -> None:
        """Until no exchange is under way, those in the background included, and all usage is in the store."""
        self._settled_rows()
        self._settled_metrics()

    # What is seen beside the answers

    def end_scenario(self) -> None:
        """Add how the metrics changed since the scenario before."""
        series = self._settled_metrics()
        lines = []
        for name, value in sorted(series.items()):
            before = self._metrics.get(name)
            if name.startswith("wireglot_key_budget_used_ratio{"):
                continue  # looked up in the store now and then
            if _TIMED_SERIES.search(name) or name.split("{")[0] in _VOLATILE:
                if before is None:
                    lines.append(name)
            elif value != before:
                lines.append(f"{name} {value:g}" if before is None else f"{name} {value - before:+g}")
        self._metrics = series
        name = f"{self._setup.name}/{self.scenario}"
        self.recording[name] = {"metrics": self._normal.text("\n".join(lines), name, time.time())}

    def end(self) -> Recording:
        """Stop the gateway and add what it logged and stored."""
        text = self._get("/metrics").body.decode()
        descriptions = [line for line in text.splitlines() if line.startswith("#")]
        whole = self.recording[self._setup.name] = {"metrics": "\n".join(sorted(descriptions))}
        self._add_traces(whole)
        self._connection.close()
        status = self._gateway.stop()
        whole["exit"] = f"status {status}"
        self._add_log(whole)
        self._add_store(whole)
        return self.recording

    def _add_traces(self, whole: Facets) -> None:
        rows = self._settled_rows()
        unasked = [row for row in rows if row["id"] not in self._asked]
        steps: set[str] = set()
        for row in rows:
            asked = self._asked.get(row["id"])
            if asked is None:
                continue
            trace = _compact(row)
            if self._setup.traces:
                trace += "\n" + self._get(f"/inspector/api/exchanges/{row['id']}").body.decode()
            steps |= step_names(trace)
            self._add(asked, "trace", trace)
        whole["traces"] = "\n".join(
            self._normal.timed(_compact(row), self._setup.name, self._began) for row in unasked
        )
        whole["steps"] = ", ".join(sorted(steps - {"queue", "provider queue"}))

    def _add_log(self, whole: Facets) -> None:
        other = []
        for line in (self._gateway.folder / "log").read_text("utf-8", "backslashreplace").splitlines():
            found = re.search(r'"id":"(req_[0-9a-f]+)"', line)
            asked = self._asked.get(found[1]) if found else None
            if asked is not None:
                self._add(asked, "log", line)
            else:
                other.append(self._normal.timed(line, self._setup.name, self._began))
        whole["log"] = "\n".join(other)

    def _add_store(self, whole: Facets) -> None:
        """All rows of all tables, but for what the process keeps of itself and of its clock."""
        lines = []
        for file in sorted(self._gateway.folder.rglob("*.db")):
            with sqlite3.connect(f"file:{file}?mode=ro", uri=True) as database:
                tables = database.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")
                for (table,) in tables.fetchall():
                    lines += self._table(database, file.name, table)
        whole["store"] = "\n".join(lines)

    def _table(self, database: sqlite3.Connection, file: str, table: str) -> list[str]:
        cursor = database.execute(
            f"SELECT * FROM {table} ORDER BY rowid"
            if _has_rowid(database, table)
            else f"SELECT * FROM {table}"
        )
        names = [column[0] for column in cursor.description]
        lines = []
        for values in cursor.fetchall():
            row = dict(zip(names, values, strict=True))
            asked = self._asked.get(row.get("id", ""))
            if table == "usage" and asked is not None:
                self._add(asked, "usage", _columns(row))
            elif row.get("kind") != "losses":  # written when there is time for it, or not at all
                lines.append(
                    self._normal.stored(f"{file} {table}: {_columns(row)}", self._setup.name, self._began)
                )
        return sorted(lines)

    def _add(self, asked: Asked, facet: str, text: str) -> None:
        text = self._normal.timed(text, asked.name, asked.at, asked.known)
        facets = self.recording[asked.name]
        facets[facet] = f"{facets[facet]}\n{text}" if facet in facets else text

    def _settled_metrics(self) -> dict[str, float]:
        """Once no request is under way: they are counted when they have ended."""
        end = time.monotonic() + _PATIENCE_SECONDS
        while True:
            series = _series(self._get("/metrics").body.decode())
            busy = series.get("wireglot_requests_in_flight") or series.get("wireglot_usage_journal_bytes")
            if not busy or time.monotonic() > end:
                return series
            time.sleep(_POLL_SECONDS)

    def _settled_rows(self) -> list[dict[str, Any]]:
        """The rows of all exchanges, in the order of their beginning, once all are complete."""
        end = time.monotonic() + _PATIENCE_SECONDS
        while True:
            rows: list[dict[str, Any]] = []
            before = ""
            while True:
                page = self._get(f"/inspector/api/exchanges?limit=500{before}").json()
                rows += page["rows"]
                if not page["rows"] or not page.get("next"):
                    break
                before = f"&before={page['next']}"
            if all("state" in row for row in rows) or time.monotonic() > end:  # none: it runs
                return rows[::-1]
            time.sleep(_POLL_SECONDS)

    # HTTP

    def _connect(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self._gateway.port, timeout=_PATIENCE_SECONDS)

    def _get(self, path: str) -> Answer:
        return self._exchange("GET", path, b"", {"authorization": f"Bearer {ADMIN}"})

    def _exchange(self, method: str, path: str, content: bytes, headers: dict[str, str]) -> Answer:
        try:
            self._connection.request(method, path, content or None, headers)
            response = self._connection.getresponse()
        except (OSError, http.client.HTTPException) as problem:
            self._connection.close()
            return Answer(0, [], b"", type(problem).__name__)
        ending = ""
        try:
            body = response.read()
        except http.client.IncompleteRead as problem:
            body, ending = problem.partial, "IncompleteRead"
        except OSError as problem:
            body, ending = b"", type(problem).__name__
        if ending:
            self._connection.close()
        return Answer(response.status, response.getheaders(), body, ending)

    def _received(self, scripted: int) -> str:
        """What the upstream got; and how many of the answers it had for it were not asked for."""
        parts = [
            request.raw.decode("latin-1").replace("\r\n", "\n")
            + request.body.decode("utf-8", "backslashreplace")
            for request in self.upstream.requests
        ]
        if all(request.method == "GET" for request in self.upstream.requests):
            parts.sort()  # lists of models are asked for at once
        unused = scripted - len(self.upstream.requests)
        return "\n\n".join(parts) + (f"\n\nunused answers: {unused}" if unused > 0 else "")


def record(setups: Sequence[Setup], tree: Tree, folder: Path) -> Recording:
    recording: Recording = {}
    for setup in setups:
        with ScriptedUpstream() as upstream:
            place = folder / setup.name
            gateway = Served(place, setup.toml.replace("{upstream}", upstream.url), tree=tree)
            gateway.start()
            try:
                recorder = Recorder(setup, gateway, upstream, place)
                for recorder.scenario, play in setup.scenarios.items():
                    play(recorder)
                    recorder.end_scenario()
                recording |= recorder.end()
            finally:
                gateway.kill()
    return recording


def _scripted(behaviour: Behaviour) -> str:
    sent = b"".join([behaviour.body or b"", *(behaviour.pieces or ())])
    return sent.decode("utf-8", "replace")


def _shown(answer: Answer) -> str:
    head = [str(answer.status), *(f"{name}: {value}" for name, value in answer.headers)]
    body = answer.body.decode("utf-8", "backslashreplace").replace("\r", "\\r")
    return "\n".join([*head, "", body]) + (f"\n\nbroken off: {answer.ending}" if answer.ending else "")


def _series(text: str) -> dict[str, float]:
    lines = (line.rpartition(" ") for line in text.splitlines() if line and not line.startswith("#"))
    return {name: float(value) for name, _, value in lines}


def _compact(document: Any) -> str:
    return json.dumps(document, ensure_ascii=False, separators=(",", ":"))


def _has_rowid(database: sqlite3.Connection, table: str) -> bool:
    (statement,) = database.execute("SELECT sql FROM sqlite_master WHERE name = ?", (table,)).fetchone()
    return "WITHOUT ROWID" not in str(statement)


def _columns(row: dict[str, Any]) -> str:
    """Bodies are sealed, and most are compressed: their size depends on the ids in them."""
    shown = {}
    for name, value in row.items():
        if isinstance(value, bytes) or name == "size":
            shown[name] = "<size>"
        else:
            shown[name] = value.replace("\x1f", " ") if isinstance(value, str) else value
    return _compact(shown)
