"""Twenty secrets in a gateway, and an upstream that says them back in every way it can: where do they show?

    python -m proofs.lab.secrets [--seed 1]

Provider keys, extra headers, client keys, the admin's, the metrics', the server's old and new secret: each
is a value of its own. The upstream repeats what it was sent (plain, quoted, in base64, in JSON and HTML) in
errors of every status, in broken bodies, streams, headers and redirects; another provider cannot be reached,
and callers send wrong keys. Then every place is searched where people or programs look: what clients got, the
log in both forms, metrics, traces, pages, the command line, the files of the store; for the value, its
spellings in quotes and base64, and any twelve letters of it.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import random
import re
import string
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Final
from urllib.parse import quote

from proofs.bench import processes
from proofs.lab.link import Link
from proofs.lab.questions import CLIENTS, question, whole
from proofs.lab.result import Run, add_options
from proofs.served import Served, keys_table

_PIECE: Final = 12
_STATUSES: Final = (400, 404, 413, 422, 500, 502, 503)
_RESTING: Final = (401, 403, 429, 529)
"""After these a key is left alone for a while: the next question needs a new start to be asked."""
_WAYS: Final = ("plain", "quoted", "base64", "html", "broken", "stream", "redirect", "header", "reset")
_PREFIXES: Final = ("sk-", "sk-ant-", "AIza", "gsk_", "xai-", "", "", "")
_PROVIDERS: Final = ("openai-chat", "anthropic", "openai-responses", "gemini")


class Planted:
    """Names and values."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        self.values: dict[str, str] = {}

    def new(self, name: str) -> str:
        prefix = _PREFIXES[len(self.values) % len(_PREFIXES)]
        letters = string.ascii_letters + string.digits
        self.values[name] = prefix + "".join(self._chance.choices(letters, k=40))
        return self.values[name]

    def found_in(self, data: bytes) -> list[str]:
        hits = []
        for name, value in self.values.items():
            spellings = {value, quote(value, safe=""), base64.b64encode(value.encode()).decode().rstrip("=")}
            if any(spelling.encode() in data for spelling in spellings):
                hits.append(f"{name}, whole")
            elif any(value[at : at + _PIECE].encode() in data for at in range(len(value) - _PIECE + 1)):
                hits.append(f"{name}, a piece")
        return hits


class Parrot:
    """Says what it was sent. The model's name says how: `say-STATUS-WAY`. Also takes traces."""

    def __init__(self) -> None:
        self.traces = bytearray()
        self.asked = 0

    async def start(self) -> int:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, limit=1 << 22)
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    async def stop(self) -> None:
        self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            length = re.search(rb"content-length: *(\d+)", head, re.IGNORECASE)
            body = await reader.readexactly(int(length[1])) if length else b""
            if b"/v1/traces" in head or b"/v1/metrics" in head:
                self.traces += body
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
                return
            self.asked += 1
            found = re.search(rb"say-(\d+)-(\w+)", head + body)
            status, way = (int(found[1]), found[2].decode()) if found else (404, "plain")
            # What a careless server puts into its errors: everything it was sent.
            said = re.sub(rb"[\r\n\"\\]+", b" ", head).decode("latin-1")
            writer.write(_answer(status, way, said))
        except (asyncio.IncompleteReadError, ConnectionError):
            return
        finally:
            writer.close()


def _answer(status: int, way: str, said: str) -> bytes:
    spelled = {
        "quoted": quote(said, safe=""),
        "base64": base64.b64encode(said.encode()).decode(),
    }.get(way, said)
    kind, more = "application/json", ""
    text = f'"message":"you sent {spelled}","type":"invalid_request_error","code":"{spelled[:200]}"'
    body = f'{{"error":{{{text}}}}}'
    if way == "html":
        kind, body = "text/html", f"<html><body>{said}</body></html>"
    elif way == "broken":
        body = body[:-3]
    elif way == "stream":
        kind, status = "text/event-stream", 200
        body = f"event: error\ndata: {body}\n\n"
    elif way == "redirect":
        status, more = 302, f"location: https://example.invalid/?{quote(said, safe='')}\r\n"
    elif way == "header":
        more = f"x-request-id: {spelled[:2000]}\r\nretry-after: {spelled[:50]}\r\nx-odd: {spelled[:2000]}\r\n"
    elif way == "reset":
        return f"HTTP/1.1 {said[:300]}\r\n\r\n".encode("latin-1")
    raw = body.encode("latin-1", "replace")
    head = f"HTTP/1.1 {status} Said\r\ncontent-type: {kind}\r\n{more}content-length: {len(raw)}\r\n"
    return f"{head}connection: close\r\n\r\n".encode("latin-1") + raw


def _config(planted: Planted, port: int, log: str) -> tuple[str, dict[str, str], dict[str, str]]:
    """The file, the environment, and the clients' keys."""
    environ: dict[str, str] = {}
    clients = {name: planted.new(f"client key {name}") for name in ("one", "two", "three")}
    lines = [
        f'[server]\nlog = "{log}"\ntelemetry = true',
        f'secret = "{planted.new("server secret")}"',
        f'old_secrets = ["{planted.new("old secret")}"]',
        f'admin_secret = "{planted.new("admin secret")}"',
        f'metrics_key = "{planted.new("metrics key")}"',
    ]
    for name in _PROVIDERS:
        version = "/v1" if name.startswith("openai") else ""
        environ[f"KEY_{name.replace('-', '_').upper()}"] = planted.new(f"second key of {name}")
        lines += [
            f'[providers.{name}]\ndialect = "{name}"\nbase_url = "http://127.0.0.1:{port}{version}"',
            f'api_keys = ["{planted.new(f"key of {name}")}", "env:KEY_{name.replace("-", "_").upper()}"]',
            f'headers = {{ x-extra = "{planted.new(f"header of {name}")}" }}',
            f"[providers.{name}.retry]\nretries = 1\nbase = 0.001\ncap = 0.001",
            f"[providers.{name}.breaker]\nconsecutive = 1000000000\nminimum = 1000000000",
        ]
    lines += [
        f'[providers.dead]\ndialect = "openai-chat"\nbase_url = "http://127.0.0.1:{processes.free_port()}/v1"',
        f'api_key = "{planted.new("key of a dead host")}"\n[providers.dead.retry]\nretries = 0',
        keys_table(clients),
    ]
    return "\n".join(lines) + "\n", environ, clients


async def trial(seed: int, log: str, folder: Path, tally: Counter[str]) -> list[str]:
    planted, parrot = Planted(seed), Parrot()
    port = await parrot.start()
    toml, environ, keys = _config(planted, port, log)
    environ["OTEL_EXPORTER_OTLP_ENDPOINT"] = f"http://127.0.0.1:{port}"
    served = Served(folder, toml, environ=environ, log=log)
    await asyncio.to_thread(served.start)
    hits: list[str] = []

    def searched(sink: str, data: bytes) -> None:
        tally["places searched"] += 1
        hits.extend(f"{sink} ({log}): {hit}" for hit in planted.found_in(data))

    async def asked(link: Link, method: str, path: str, body: object = None) -> None:
        try:
            reply = await link.ask(method, path, body)
        except OSError:
            tally["broken off"] += 1
            return
        tally[f"status {reply.status}"] += 1
        searched(f"{method} {path}", repr(reply.headers).encode() + reply.body)

    link = Link(served.port, keys["one"])

    async def all_asked(status: int, way: str) -> None:
        for client in CLIENTS:
            for provider in (*_PROVIDERS, "dead"):
                path, body = question(client, f"{provider}/say-{status}-{way}")
                if way != "stream":
                    path, body = whole(path, body)
                await asked(link, "POST", path, body)

    for status in _STATUSES:
        for way in _WAYS:
            await all_asked(status, way)
    for status in _RESTING:
        for way in _WAYS:
            link.close()
            await asyncio.to_thread(served.stop)
            await asyncio.to_thread(served.start)
            await all_asked(status, way)
    admin, metrics = planted.values["admin secret"], planted.values["metrics key"]
    for path in ("/v1/models", "/v1beta/models", "/v1/usage", "/healthz", "/readyz", "/", "/nowhere"):
        await asked(link, "GET", path)
        await asked(Link(served.port, planted.values["client key two"][:-1] + "_"), "GET", path)
    for path in ("/admin/keys", "/admin/usage", "/admin/config", "/admin"):
        await asked(Link(served.port, admin), "GET", path)
        await asked(Link(served.port, admin[:-1] + "_"), "GET", path)
    await asked(Link(served.port, metrics), "GET", "/metrics")
    await asked(link, "GET", "/v1/models?key=" + keys["two"])
    for words in (["config", "check", "--config", "wireglot.toml"], ["usage"], ["store", "stats"]):
        try:
            searched(f"wireglot {' '.join(words)}", (await asyncio.to_thread(served.run, *words)).encode())
        except RuntimeError as refused:
            searched(f"wireglot {' '.join(words)}", str(refused).encode())
    await asyncio.to_thread(served.stop)
    searched("traces", bytes(parrot.traces))
    tally["bytes of traces"] += len(parrot.traces)
    tally["upstream requests"] += parrot.asked
    for path_on_disk in sorted(folder.rglob("*")):
        # The configuration and the secret's own file are where they belong.
        if path_on_disk.is_file() and path_on_disk.name not in ("wireglot.toml", "secret"):
            data = path_on_disk.read_bytes()
            tally["bytes of files"] += len(data)
            searched(f"file {path_on_disk.name}", data)
    await parrot.stop()
    tally["secrets"] = len(planted.values)
    return hits


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m proofs.lab.secrets", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    add_options(parser)
    arguments = parser.parse_args()
    run = Run("secrets", "planted secrets through every class of error and every sink", seed=arguments.seed)
    tally: Counter[str] = Counter()
    hits: list[str] = []
    for log in ("json", "pretty"):
        with tempfile.TemporaryDirectory(prefix="secrets-") as work:
            hits += asyncio.run(trial(arguments.seed, log, Path(work), tally))
    for hit in sorted(set(hits))[:40]:
        print(hit, file=sys.stderr)
    run.counts.update(sorted(tally.items()))
    run.figure("hits", demanded="0", measured=len(hits), holds=not hits)
    return run.write(arguments.out)


if __name__ == "__main__":
    sys.exit(main())
