"""The compliance suite of Open Responses, over HTTP and WebSockets, against each demo model.

No registry has the suite: it runs from a working copy of its repository, with the Bun and zod of npm.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any, Final

from proofs.judges import environments
from proofs.judges.llm_comply import MODELS
from proofs.judges.results import Case, Verdict
from wireglot.testing.live_gateway import LiveGateway

PACKAGES: Final = ("bun", "zod@3")


def judge() -> Verdict:
    suite = environments.checkout("openresponses", "openresponses/openresponses")
    folder = installed()
    passed = 0
    failed: list[Case] = []
    with LiveGateway("") as gateway:
        for model in MODELS:
            for result in results(suite, folder, f"{gateway.url}/v1", model):
                case = Case(f"{model} {result['id']}", "; ".join(result.get("errors") or [result["status"]]))
                if result["status"] == "passed":
                    passed += 1
                else:
                    failed.append(case)
    return Verdict(
        "open-responses",
        environments.commit(suite),
        "the compliance suite of Open Responses over HTTP and WebSockets, on five models",
        passed,
        tuple(failed),
    )


def installed() -> Path:
    """The folder with what the suite runs on; made on first use."""
    folder = environments.FOLDER / "open-responses"
    if not (folder / "node_modules" / ".bin" / "bun").exists():
        npm = shutil.which("npm")
        if npm is None:
            raise environments.Missing("npm")
        folder.mkdir(parents=True, exist_ok=True)
        options = ("--no-audit", "--no-fund", "--loglevel=error")
        done = subprocess.run(
            [npm, "install", "--prefix", str(folder), *options, *PACKAGES],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise environments.Missing(f"npm install {' '.join(PACKAGES)}: {done.stderr.strip()[-2000:]}")
    return folder


def results(suite: Path, folder: Path, url: str, model: str) -> list[dict[str, Any]]:
    modules = folder / "node_modules"
    program = [str(modules / ".bin" / "bun"), "run", str(suite / "bin" / "compliance-test.ts")]
    done = subprocess.run(
        [*program, "--json", "-u", url, "-k", "x", "-m", model],
        capture_output=True,
        text=True,
        timeout=600,
        env={**os.environ, "NODE_PATH": str(modules)},
        check=False,
    )
    try:
        found: list[dict[str, Any]] = json.loads(done.stdout)["results"]
    except ValueError:
        raise environments.Missing(f"{' '.join(program)}: {done.stderr.strip()[-2000:]}") from None
    return found
