"""What a run was measured with and on, without saying whose machine it is."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from proofs.bench.targets import find_nginx
from proofs.bench.toolbox import ROOT

_PACKAGES = ("uvloop", "httptools", "msgspec")


def read(tools: str, *, pinned: bool) -> dict[str, Any]:
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "versions": {"Python": platform.python_version(), **{name: _version(name) for name in _PACKAGES}},
        "nginx": _nginx(),
        "commit": _commit(),
        "day": datetime.now(UTC).date().isoformat(),
        "tools": tools,
        "pinned": pinned,
    }


def sentence(setting: dict[str, Any]) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in setting["versions"].items())
    nginx = f"nginx {setting['nginx']}" if setting["nginx"] else "no nginx, so there are no ratios"
    where = "server and tools each on a core of their own" if setting["pinned"] else "all on the same cores"
    return (
        f"Commit {setting['commit']}, {setting['day']}; {setting['processor']}, {setting['cores']} cores, "
        f"{setting['system']}; {versions}; {nginx}; mock upstream and load generator: {setting['tools']}; "
        f"{where}."
    )


def _processor() -> str:
    path = Path("/proc/cpuinfo")
    text = path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""
    found = re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
    return found[1].strip() if found else platform.machine()


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "none"


def _nginx() -> str:
    program = find_nginx()
    if program is None:
        return ""
    shown = subprocess.run([program, "-v"], capture_output=True, text=True, check=False).stderr
    found = re.search(r"nginx/([\d.]+)", shown)
    return found[1] if found else "?"


def _commit() -> str:
    """Of the tree that is measured; `+` where it has changes that are in none."""
    reported = [_git("rev-parse", "--short", "HEAD"), _git("status", "--porcelain", "--untracked-files=no")]
    return (reported[0] or "unknown") + ("+" if reported[1] else "")


def _git(*words: str) -> str:
    try:
        done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout.strip() if not done.returncode else ""
