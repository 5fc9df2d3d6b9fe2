"""The processes beside a client: the gateway on a free port, and a provider double to stand behind it."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from clients.packages import ROOT
from proofs.bench.processes import free_port
from proofs.served import DidNotStart as DidNotStart
from proofs.served import Served

# What stands before the dialect's own paths in a base URL.
_PREFIX = {"anthropic": "", "openai-chat": "/v1", "openai-responses": "/v1", "gemini": "/v1beta"}
UPSTREAMS: tuple[str, ...] = tuple(_PREFIX)

_PATIENCE = 30.0


def configuration(
    port: int, key: str, upstream: str, double: str | None, *, thinks: bool = False, more: str = ""
) -> str:
    """The gateway's file: every model name goes to one upstream, which speaks one dialect.

    `thinks`: in Chat it wants its `reasoning_content` back, as the catalog says of Kimi and DeepSeek.
    `more`: further tables.
    """
    if double is None:
        provider, model = "[providers.demo]", f"demo/demo-{upstream}"
    else:
        # A TOML basic string reads like a JSON string.
        url = json.dumps(double.rstrip("/") + _PREFIX[upstream])
        provider = f'[providers.double]\ndialect = "{upstream}"\nbase_url = {url}\napi_key = "none"'
        if thinks and upstream == "openai-chat":
            provider += '\nlimits = { reasoning = "text" }'
        model = "double/scripted"
    digest = hashlib.sha256(key.encode()).hexdigest()
    return f"""\
[server]
port = {port}
log = "json"

{provider}

[models]
"*" = "{model}"

[keys]
clients = "sha256:{digest}"

{more}"""


@contextmanager
def gateway(
    upstream: str, double: str | None, folder: Path, *, thinks: bool = False, more: str = ""
) -> Iterator[tuple[str, str]]:
    """Run `wireglot serve` in front of one upstream; gives its URL and a client key."""
    port, key = free_port(), f"client-{secrets.token_hex(16)}"
    toml = configuration(port, key, upstream, double, thinks=thinks, more=more)
    with Served(folder, toml, port=port, bare=True) as served:
        yield served.url, key


@contextmanager
def provider_double(script: Path, folder: Path) -> Iterator[str]:
    """Run a provider double: a program that takes `--port 0 --port-file FILE --log FILE`. Gives its URL."""
    folder.mkdir(parents=True, exist_ok=True)
    chosen = folder / "port"
    chosen.unlink(missing_ok=True)
    log = folder / "double.log"
    command = [sys.executable, str(script), "--port", "0", "--port-file", str(chosen)]
    command += ["--log", str(folder / "requests.jsonl")]
    with run_process(command, dict(os.environ), log) as process:
        wait_until(process, log, chosen.is_file)
        yield f"http://127.0.0.1:{int(chosen.read_text())}"


def shared_double() -> Path:
    """The double that lives beside a working copy, where there is one."""
    return ROOT.parent / "shared" / "clients" / "fake_provider.py"


@contextmanager
def run_process(command: list[str], env: dict[str, str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("wb") as sink:
        process = subprocess.Popen(
            command, cwd=ROOT, env=env, stdin=subprocess.DEVNULL, stdout=sink, stderr=subprocess.STDOUT
        )
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def wait_until(process: subprocess.Popen[bytes], log: Path, ready: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _PATIENCE
    while not ready():
        if process.poll() is not None or time.monotonic() > deadline:
            tail = "\n".join(log.read_text(errors="replace").splitlines()[-20:])
            state = "ended" if process.poll() is not None else f"is silent after {_PATIENCE:.0f} s"
            raise DidNotStart(f"{process.args!r} {state}:\n{tail}")
        time.sleep(0.05)
