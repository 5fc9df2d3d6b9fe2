"""Who is measured: Wireglot as it is run, nginx as a plain reverse proxy, and the mock upstream itself."""

from __future__ import annotations

import getpass
import hashlib
import http.client
import os
import shutil
import subprocess
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType

from proofs.bench import processes
from proofs.bench.bodies import body
from proofs.bench.scenarios import Scenario

KEY = "bench-client-key"
HEADERS = (f"Authorization: Bearer {KEY}",)

PROVIDERS = {
    "mine": ("openai-chat", "/v1"),
    "resp": ("openai-responses", "/v1"),
    "gem": ("gemini", "/v1beta"),
    "ant": ("anthropic", ""),
}
"""Name in the configuration, dialect, and what stands in the base URL behind the port."""


class NotStarted(SystemExit):
    """A server that did not answer in time, with the last it wrote."""


class Target:
    """A server on a port of its own. `argv` is empty for the mock upstream, which runs already."""

    headers: tuple[str, ...] = HEADERS
    optional = False
    """A run goes on without it if it does not start."""
    patience = 30.0
    """Seconds for its start."""

    def __init__(self, name: str, argv: list[str], port: int, log: Path) -> None:
        self.name = name
        self.port = port
        self.process: subprocess.Popen[bytes] | None = None
        self._argv = argv
        self._log = log

    @property
    def pid(self) -> int:
        return self.process.pid if self.process else 0

    def start(self, core: int | None) -> float:
        """Seconds from the start of the process to its first good answer."""
        began = time.monotonic()
        self.process = processes.start(self._argv, self._log, core)
        problem = "no answer"
        while time.monotonic() - began < self.patience and self.process.poll() is None:
            try:
                status, text = self._probe()
            except OSError as fault:
                problem = str(fault)
                time.sleep(0.003)
                continue
            if status == 200:
                return time.monotonic() - began
            problem = f"status {status}: {text[:300]}"
            time.sleep(0.02)
        self.stop()
        raise NotStarted(f"bench: {self.name} did not start: {problem}\n{self._last_words()}")

    def takes(self, scenario: Scenario) -> bool:
        """Whether it is measured in it."""
        return True

    def path(self, scenario: Scenario) -> str:
        return scenario.path

    def body(self, scenario: Scenario) -> bytes:
        return scenario.body()

    def stop(self) -> None:
        if self.process is not None:
            processes.stop(self.process)
            self.process = None

    def memory(self) -> processes.Memory:
        return processes.memory(processes.family(self.pid))

    def _probe(self) -> tuple[int, str]:
        content = body("openai-chat", "tiny", "mine/mock", stream=False)
        return post(self.port, "/v1/chat/completions", content, self.headers)

    def _last_words(self) -> str:
        return self._log.read_text(errors="replace")[-2000:] if self._log.exists() else ""


def wireglot(
    command: list[str],
    upstream: int,
    directory: Path,
    extra: str = "",
    *,
    workers: int = 1,
    store: str = "",
    limits: Mapping[str, int] | None = None,
) -> Target:
    """With a client key, log lines and the ledger on, all of it in `directory`.

    `store` is what stands in its table instead of a file there, as TOML; `extra` more tables,
    `limits` more lines of the one of this name.
    """
    port = processes.free_port()
    config = directory / "wireglot.toml"
    url = store or f'url = "sqlite://{directory.resolve()}/wireglot.db"\n'
    stored = f'[store]\nfolder = "{directory.resolve()}"\n{url}\n'
    config.write_text(
        wireglot_config(port, upstream, workers, limits or {}) + stored + extra, encoding="utf-8"
    )
    config.chmod(0o600)  # it names a key, and Wireglot would remark on it
    # Nobody's own settings or provider keys take part.
    own = [name for name in os.environ if name.startswith("WIREGLOT_") or name.endswith("_API_KEY")]
    # Anyone who measures is not always root, and looks at its memory and files.
    seen = "WIREGLOT_DEBUGGABLE=1"
    argv = ["env", *(f"-u{name}" for name in own), seen, *command, "serve", "--config", str(config)]
    return Target("wireglot", argv, port, directory / "wireglot.log")


def wireglot_config(
    port: int, upstream: int, workers: int = 1, limits: Mapping[str, int] = MappingProxyType({})
) -> str:
    # Limits that would refuse so much of one client are raised, and the providers' connections are all kept,
    # as nginx keeps its own.
    digest = hashlib.sha256(KEY.encode()).hexdigest()
    providers = "".join(provider(name, upstream) for name in PROVIDERS)
    more = "".join(f"{name} = {value}\n" for name, value in limits.items())
    return f"""\
[server]
host = "127.0.0.1"
port = {port}
workers = {workers}
log = "json"
secret = "a secret of the benchmark"
metrics_key = "{KEY}"

[limits]
requests_per_key = 4000
connections_per_peer = 4000
pool = 4000
{more}
[keys]
bench = "sha256:{digest}"

{providers}"""


def provider(name: str, upstream: int, called: str = "") -> str:
    dialect, prefix = PROVIDERS[name]
    base_url = f"http://127.0.0.1:{upstream}{prefix}"
    return f"""\
[providers.{called or name}]
dialect = "{dialect}"
base_url = "{base_url}"
api_key = "upstream-key-of-the-bench"

"""


def nginx(upstream: int, directory: Path) -> Target | None:
    """None where nginx is not installed."""
    program = find_nginx()
    if program is None:
        return None
    port = processes.free_port()
    config = directory / "nginx.conf"
    config.write_text(_nginx_config(port, upstream, directory), encoding="utf-8")
    return Target("nginx", [program, "-p", str(directory), "-c", str(config)], port, directory / "nginx.log")


def find_nginx() -> str | None:
    return shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin:/usr/local/sbin")


def _nginx_config(port: int, upstream: int, directory: Path) -> str:
    # As quick as nginx is for this work: connections are kept for ever, bodies stay in memory, nothing is
    # buffered before it is passed on. One log line a request, as Wireglot writes.
    user = f"user {getpass.getuser()};" if os.geteuid() == 0 else ""
    temporary = "".join(
        f"    {kind}_temp_path {directory}/{kind};\n"
        for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    return f"""\
{user}
worker_processes 1;
daemon off;
pid {directory}/nginx.pid;
error_log {directory}/nginx-error.log;
events {{ worker_connections 16384; }}
http {{
    access_log {directory}/nginx-access.log;
{temporary}
    gzip off;
    keepalive_requests 1000000000;
    client_max_body_size 64m;
    client_body_buffer_size 2m;
    upstream mock {{
        server 127.0.0.1:{upstream};
        keepalive 2048;
        keepalive_requests 1000000000;
    }}
    server {{
        listen 127.0.0.1:{port} backlog=4096;
        location / {{
            proxy_pass http://mock;
            proxy_http_version 1.1;
            proxy_set_header Connection "";
            proxy_buffering off;
        }}
    }}
}}
"""


def post(port: int, path: str, content: bytes, lines: Iterable[str] = HEADERS) -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    headers = {"content-type": "application/json", **dict(line.split(": ", 1) for line in lines)}
    try:
        connection.request("POST", path, content, headers)
        answer = connection.getresponse()
        return answer.status, answer.read().decode(errors="replace")
    except http.client.HTTPException as fault:
        raise OSError(f"answer: {fault!r}") from fault
    finally:
        connection.close()
