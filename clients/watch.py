"""Run the newest release of every client and report what it sends that it did not send before.

    python -m clients.watch                    # install and run the newest releases, compare with the record
    python -m clients.watch --only claude      # these clients only
    python -m clients.watch --write            # make what was seen the record (clients/seen)

Facts of a client are its paths, headers, beta values, body fields and values of enumerations; texts, ids and
the schemas of its tools are none. The exit code is 1 if there are new facts or fields that no codec knows, or
if a client failed or could not be installed, 2 if nothing could run. Only the package registries are asked.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import h11

from clients.catalog import CLIENTS, Client
from clients.install import CannotInstall, install
from clients.packages import CLIENT_PACKAGES, HERE, NODE22, Package
from clients.run import Address, one
from clients.servers import DidNotStart, gateway
from clients.upstream import Upstream
from wireglot import DialectName, dialect_name, translate_request
from wireglot_core.ir.errors import WireglotError

RUNS = HERE / ".watched"
SEEN = HERE / "seen"
_LISTS = ("anthropic-beta", "openai-beta")
"""Headers that hold a list of names."""
_VALUES = ("anthropic-version", "content-type", "accept", "x-app", "x-claude-code-request-class")
"""Headers of which the value is a fact."""
_UNREPORTED = re.compile(r"[0-9a-f]{8}-|\d{5,}")
"""In header names that are made for one run."""
_ENUMERATED = frozenset(
    {"type", "role", "effort", "mode", "summary", "verbosity", "display", "truncation", "service_tier", "ttl"}
)
_FREE = frozenset(
    {
        "input_schema", "parameters", "parametersJsonSchema", "parameters_json_schema", "responseJsonSchema",
        "schema", "args", "response", "classifier_context", "metadata", "client_metadata",
        "environment_context",
    }
)  # fmt: skip
"""Fields whose inside is the client's own, and no dialect's."""
_TEXT = re.compile(r"[A-Za-z][A-Za-z0-9_./-]{0,60}")
_FOREIGN: dict[str, DialectName] = {
    "anthropic": "gemini",
    "openai-chat": "gemini",
    "openai-responses": "gemini",
    "gemini": "openai-chat",
}
_UNKNOWN = "unknown_field"


@dataclass(frozen=True)
class Sent:
    method: str
    path: str
    query: str
    headers: dict[str, str]
    body: bytes


def requests(data: bytes) -> Iterator[Sent]:
    """The requests of one connection. What is no HTTP, or is cut, ends it."""
    connection = h11.Connection(h11.SERVER)
    connection.receive_data(data)
    connection.receive_data(b"")
    head: h11.Request | None = None
    body = b""
    try:
        while True:
            event = connection.next_event()
            match event:
                case h11.Request():
                    head, body = event, b""
                case h11.Data():
                    body += event.data
                case h11.EndOfMessage():
                    assert head is not None
                    place = urlsplit(head.target.decode())
                    headers = {name.decode(): value.decode("latin-1") for name, value in head.headers}
                    yield Sent(head.method.decode(), place.path, place.query, headers, body)
                    if connection.our_state is not h11.SEND_RESPONSE:
                        return
                    connection.send(h11.Response(status_code=200, headers=[("content-length", "0")]))
                    connection.send(h11.EndOfMessage())
                    connection.start_next_cycle()
                case _:
                    return
    except (h11.RemoteProtocolError, h11.LocalProtocolError):
        return


def facts(sent: Sent) -> Iterator[str]:
    yield f"path {sent.method} {_plain_path(sent.path)}"
    for name in parse_qs(sent.query, keep_blank_values=True):
        yield f"query {name}"
    for name, value in sent.headers.items():
        if _UNREPORTED.search(name):
            continue
        yield f"header {name}"
        if name in _LISTS:
            yield from (f"value {name}: {each.strip()}" for each in value.split(","))
        elif name in _VALUES:
            yield f"value {name}: {value}"
    document = _document(sent)
    if document is not None:
        yield from _fields(document, "$")


def _plain_path(path: str) -> str:
    return re.sub(
        r"(/models/)[^:/]+", r"\1*", re.sub(r"[0-9a-f]{8}-[0-9a-f-]{20,}|\w+_[0-9a-f]{16,}", "*", path)
    )


def _fields(value: Any, path: str) -> Iterator[str]:
    if isinstance(value, list):
        for each in value:
            yield from _fields(each, f"{path}[]")
    elif isinstance(value, dict):
        for name, each in value.items():
            place = f"{path}.{name}"
            yield f"field {place}"
            if name in _ENUMERATED and isinstance(each, str) and _TEXT.fullmatch(each):
                yield f"value {place}: {each}"
            if name not in _FREE and not (name == "input" and isinstance(each, dict)):
                yield from _fields(each, place)


def _document(sent: Sent) -> dict[str, Any] | None:
    try:
        found = json.loads(sent.body) if sent.body else None
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def unknown(sent: Sent, dialect: str) -> Iterator[str]:
    """Fields of a request that the codec of its dialect does not know."""
    document = _document(sent)
    target = _FOREIGN.get(dialect)
    if document is None or target is None or sent.method != "POST":
        return
    try:
        losses = translate_request(document, source=dialect_name(dialect), target=target).losses
    except WireglotError:
        return
    yield from (re.sub(r"\[\d+\]", "[]", loss.path) for loss in losses if loss.feature == _UNKNOWN)


# --- the newest releases


def newest(package: Package) -> Package:
    """The same client in its newest release, whatever is pinned."""
    mark = "@" if package.kind == "npm" else "=="
    return replace(
        package, specs=tuple(f"{name}{mark}{_newest_version(package, name)}" for name in package.versions)
    )


def renewed(packages: Sequence[Package]) -> tuple[dict[str, str], list[str]]:
    """Installs the newest release of each. What was installed, by name; and why others were not: the registry
    may not have all that a release needs."""
    versions: dict[str, str] = {}
    faults: list[str] = []
    for package in packages:
        try:
            found = newest(package)
            print(f"{', '.join(found.specs)}: {install(found)}", flush=True)
        except (CannotInstall, subprocess.TimeoutExpired) as problem:
            print(f"not installed: {problem}", file=sys.stderr, flush=True)
            faults.append(package.name)
        else:
            versions[package.name] = ", ".join(found.specs)
    return versions, faults


def _newest_version(package: Package, name: str) -> str:
    if package.kind == "npm":
        return _printed(["npm", "view", name, "version"]).strip()
    printed = _printed(
        [sys.executable, "-m", "pip", "index", "versions", name, "--disable-pip-version-check"]
    )
    found = re.search(r"\(([^)]+)\)", printed)
    if found is None:
        raise CannotInstall(f"{name}: its newest version is not known")
    return found[1]


def _printed(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL)
    if done.returncode:
        raise CannotInstall(f"{' '.join(command)}: {done.stderr.strip()[-300:]}")
    return done.stdout


# --- the record


@dataclass(frozen=True)
class Seen:
    """What one client has sent. `version`: of its packages, for people."""

    version: str
    facts: frozenset[str]
    unknown: frozenset[str] = frozenset()

    def text(self) -> str:
        lines = [
            f"# {self.version}",
            *sorted(self.facts),
            *(f"unknown {each}" for each in sorted(self.unknown)),
        ]
        return "\n".join(lines) + "\n"


def recorded(name: str, folder: Path = SEEN) -> Seen:
    """The record of a client; an empty one where there is none."""
    file = folder / f"{name}.txt"
    lines = file.read_text().splitlines() if file.is_file() else [""]
    said = frozenset(lines[1:])
    kept = frozenset(line.removeprefix("unknown ") for line in said if line.startswith("unknown "))
    return Seen(
        lines[0].removeprefix("# "), frozenset(line for line in said if not line.startswith("unknown ")), kept
    )


def changes(before: Seen, now: Seen) -> list[str]:
    """What is new, and what no codec knows; what is no longer sent is no reason to act."""
    return [
        *(f"new: {each}" for each in sorted(now.facts - before.facts)),
        *(f"unknown to the codecs: {each}" for each in sorted(now.unknown - before.unknown)),
    ]


def watched(client: Client, address: Address, version: str) -> tuple[str, Seen]:
    """Why it failed, "" if it did not; and what it sent."""
    folder = RUNS / client.name
    outcome = one(client, address, folder, trace=True)
    files = sorted((folder / "wire").glob("*.sent"))
    sent = [each for file in files for each in requests(file.read_bytes())]
    reported = frozenset(fact for each in sent for fact in facts(each))
    lost = frozenset(each for one_sent in sent for each in unknown(one_sent, client.speaks))
    return ("" if outcome.passed else outcome.reason or "failed"), Seen(version, reported, lost)


def main(arguments: list[str]) -> int:
    options = _options(arguments)
    clients = [
        client for client in CLIENTS if re.search(options.only, client.name) and not client.package.held
    ]
    packages = {client.package.name for client in clients}
    try:
        install(NODE22)
        versions, faults = renewed([each for each in CLIENT_PACKAGES if each.name in packages])
        clients = [client for client in clients if client.package.name in versions]
        if not clients:
            return 2
        with Upstream() as upstream, gateway("openai-chat", upstream.url, RUNS, thinks=True) as (base, key):
            address = Address(base, key, "openai-chat", upstream)
            with ThreadPoolExecutor(options.jobs) as pool:
                results = pool.map(
                    lambda client: watched(client, address, versions[client.package.name]), clients
                )
                found_all = dict(zip(clients, results, strict=True))
    except (CannotInstall, DidNotStart, subprocess.TimeoutExpired) as problem:
        print(problem, file=sys.stderr)
        return 2
    return _report(found_all, options.write) or int(bool(faults))


def _report(found: dict[Client, tuple[str, Seen]], write: bool) -> int:
    failed = False
    for client, (fault, seen) in found.items():
        before = recorded(client.name)
        news = changes(before, seen)
        failed |= bool(news or fault)
        print(f"{client.title}: {fault or 'passed'}, {len(seen.facts)} facts, {len(news)} new")
        for line in news:
            print(f"  {line}")
        if write and not fault:
            SEEN.mkdir(exist_ok=True)
            (SEEN / f"{client.name}.txt").write_text(seen.text())
    return 0 if write else int(failed)


def _options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="clients.watch", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", default="", metavar="REGEX", help="clients whose name matches")
    parser.add_argument("--jobs", type=int, default=2, help="clients at once (2)")
    parser.add_argument("--write", action="store_true", help="make what was seen the record")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
