"""schemathesis, which drives our own OpenAPI document against a running gateway.

It runs without keys, with a client key, and with the admin secret. A failure is a status 5xx, a status, a
content type, a header or a body that the document does not describe, or access without a key.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from proofs.judges import environments
from proofs.judges.results import Case, Verdict
from wireglot.testing.live_gateway import LiveGateway

DOCUMENT: Final = Path(__file__).parents[2] / "docs" / "reference" / "openapi.json"
KEY: Final = "client-key-0123456789abcdef"
SECRET: Final = "admin-secret-0123456789abcdef"
EXAMPLES: Final = 25
NOT_CHECKED: Final = {
    "positive_data_acceptance": "request bodies are the vendors' own; our document names their main fields",
    "negative_data_rejection": "fields that a vendor adds tomorrow pass through today",
    "missing_required_header": "after a few wrong keys every key gets 429; `ignored_auth` checks access",
    "unsupported_method": "paths with an id take every method that another path of the same form takes",
}
TIMEOUT: Final = "x-wireglot-timeout: 60"
NOT_ASKED: Final = {
    "/inspector/api/live": "a stream that stays open until its reader leaves",
    "x-wireglot-timeout of a moment": "is answered with 504, as it asks for; 60 seconds are sent",
}


ADMIN: Final = "^/v1/admin/"


class Stage(NamedTuple):
    """A gateway, the key that is sent to it, and the paths that are asked for."""

    name: str
    toml: str
    paths: tuple[str, str]
    key: str = ""


_DEMO: Final = '[providers.demo]\n[models]\n"*" = "demo/demo"\n'
_KEYS: Final = (
    f'[server]\nadmin_secret = "{SECRET}"\n{_DEMO}[keys]\n'
    f'someone = "sha256:{hashlib.sha256(KEY.encode()).hexdigest()}"\n'
)
STAGES: Final = (
    Stage("without a key", _DEMO, ("--exclude-path-regex", ADMIN)),
    Stage("with a client key", _KEYS, ("--exclude-path-regex", ADMIN), KEY),
    Stage("with the admin secret", _KEYS, ("--include-path-regex", ADMIN), SECRET),
)


def judge() -> Verdict:
    interpreter = environments.python("schemathesis", "schemathesis")
    passed = 0
    failed: list[Case] = []
    for stage in STAGES:
        with LiveGateway(stage.toml) as gateway:
            report = run(interpreter.with_name("st"), gateway.url, stage)
        failed += (Case(f"{stage.name}: {name}", reason) for name, reason in problems(report))
        passed += report["test_cases"]["generated"] - report["test_cases"]["with_failures"]
    return Verdict(
        "schemathesis",
        environments.version(interpreter, "schemathesis"),
        "docs/reference/openapi.json against a running gateway, without keys and with them",
        passed,
        tuple(failed),
        tuple(Case(name, why) for name, why in (NOT_CHECKED | NOT_ASKED).items()),
    )


def run(program: Path, url: str, stage: Stage) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        command = [str(program), "run", str(DOCUMENT), "--url", url, "--report-json-path", str(report)]
        command += ["--max-examples", str(EXAMPLES), "--seed", "1", "--request-timeout", "60"]
        command += ["--phases", "examples,coverage,fuzzing", "--continue-on-failure", "--no-shrink"]
        command += ["--exclude-checks", ",".join(NOT_CHECKED)]
        for path in (each for each in NOT_ASKED if each.startswith("/")):
            command += ["--exclude-path", path]
        command += ["--header", TIMEOUT, *stage.paths]
        if stage.key:
            command += ["--header", f"Authorization: Bearer {stage.key}"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=3600, check=False, cwd=folder)
        if not report.is_file():
            raise environments.Missing(f"{' '.join(command)}: {(done.stdout + done.stderr)[-2000:]}")
        found: dict[str, Any] = json.loads(report.read_text(encoding="utf-8"))
        if found["failures"]:  # only its text has the answers, and the requests that repeat them
            print(done.stdout.partition("FAILURES")[2], flush=True)
        return found


def problems(report: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for failure in report["failures"]:
        for operation in failure["operations"]:
            yield operation if isinstance(operation, str) else str(operation), failure["title"]
    for error in report["errors"]:
        yield "error", json.dumps(error)[:300]
