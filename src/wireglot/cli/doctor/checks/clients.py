"""Clients on this machine, and whether settings of their own send them elsewhere. None is changed."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from wireglot.cli.ask_providers import host_of
from wireglot.cli.doctor.case import Case
from wireglot.cli.doctor.finding import Finding, note, ok, warning
from wireglot.cli.run.clients import CLIENTS
from wireglot.gateway.config.urls import is_loopback

_SETTINGS: Final = {
    "aider": (".aider.conf.yml", ".env"),
    "claude": (".claude/settings.json", ".claude/settings.local.json"),
    "codex": (".codex/config.toml",),
    "gemini": (".gemini/settings.json", ".gemini/.env"),
    "kimi": (".kimi/config.toml", ".kimi-code/config.toml"),
    "llm": (".config/io.datasette.llm/extra-openai-models.yaml",),
    "opencode": (".config/opencode/opencode.json", ".config/opencode/opencode.jsonc"),
    "qwen": (".qwen/settings.json", ".qwen/.env"),
}
"""Below the user's home."""
_VARIABLES: Final = (
    "ANTHROPIC_BASE_URL",
    "OPENAI_BASE_URL",
    "OPENAI_API_BASE",
    "GOOGLE_GEMINI_BASE_URL",
    "CODE_ASSIST_ENDPOINT",
    "KIMI_MODEL_BASE_URL",
)
_NAMED_URL: Final = re.compile(
    rf"(?i)(?:{'|'.join(_VARIABLES)}|base_?url|api[_-]base|openai-api-base)[\"']?\s*[:=]\s*[\"']?(https?://[^\s\"',}}]+)"
)
"""The same in JSON, TOML, YAML and .env files."""
_FILE_MAX_BYTES: Final = 256 * 1024


def look_at_clients(case: Case) -> Iterator[Finding]:
    here = [
        name
        for name, client in CLIENTS.items()
        if shutil.which(client.program, path=case.environ.get("PATH"))
    ]
    if not here:
        client = CLIENTS["claude"]
        yield note("no client that is known by name is on the PATH", client.install)
    else:
        yield ok(
            f"found: {', '.join(CLIENTS[name].title for name in here)}; start one: wireglot run {here[0]}"
        )
    for variable in _VARIABLES:
        if url := case.environ.get(variable, "").strip():
            yield _pointed(case, f"{variable} in this shell sends clients to", url, f"unset {variable}")
    home = case.environ.get("HOME", "")
    for name in here if home else ():
        for place in _SETTINGS[name]:
            for url in _urls(Path(home) / place):
                fix = f"wireglot run {name} goes past it; or change it there yourself"
                yield _pointed(case, f"{CLIENTS[name].title}: ~/{place} sends it to", url, fix)


def _urls(file: Path) -> list[str]:
    try:
        with file.open("rb") as opened:
            text = opened.read(_FILE_MAX_BYTES).decode("utf-8", "replace")
    except OSError:
        return []
    lines = (line for line in text.splitlines() if not line.lstrip().startswith(("#", "//")))
    return list(dict.fromkeys(_NAMED_URL.findall("\n".join(lines))))


def _pointed(case: Case, told: str, url: str, fix: str) -> Finding:
    """Of a URL only the host is told: the rest may hold a key."""
    host = host_of(url) or "another place"
    port = _port(url)
    if is_loopback(host.partition(":")[0]) and port:
        if any(running.url.endswith(f":{port}") for running in case.running):
            return ok(f"{told} {host}: your gateway, which runs")
        if case.settings is not None and port == case.settings.server.port:
            return warning(f"{told} {host}: your gateway, which does not run", "wireglot serve")
    return note(f"{told} {host}", fix)


def _port(url: str) -> int:
    try:
        return urlsplit(url).port or 0
    except ValueError:
        return 0
