"""llm-comply, which checks answers against the vendors' own OpenAPI documents.

Each suite runs against each demo model, so that answers of every dialect are translated into the one that is
checked. A warning counts as a failure.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any, Final, NamedTuple

from proofs.judges import environments
from proofs.judges.results import Case, Verdict
from wireglot.testing.live_gateway import LiveGateway


class Suite(NamedTuple):
    path: str
    """What its own paths follow."""
    prefix: str
    """Of model names that it takes for reasoning ones; it skips its test of reasoning for others."""


SUITES: Final = {
    "anthropic": Suite("/v1", "claude-sonnet-4-"),
    "open-responses": Suite("/v1", "gpt-5-"),
    "openai-chat": Suite("/v1", "gpt-5-"),
    "google-genai": Suite("", "gemini-3-"),
    "google-interactions": Suite("", "gemini-3-"),
}
MODELS: Final = (
    *("demo", "demo-anthropic", "demo-openai-chat", "demo-openai-responses"),
    *("demo-gemini", "demo-gemini-interactions", "demo-ollama"),
)
INTENDED: Final = {
    "anth-error-handling": "a request without max_tokens is answered, with the model's maximum"
}
"""Tests that may warn, with the reason."""


def judge() -> Verdict:
    interpreter = environments.python("llm-comply", "llm-comply")
    program = interpreter.with_name("llm-comply")
    passed, failed = 0, list[Case]()
    with LiveGateway(configuration()) as gateway:
        for suite in SUITES:
            for model in MODELS:
                for result in results(program, suite, gateway.url, model):
                    if wrong := problems(result):
                        failed.append(Case(f"{suite} {model} {result['id']}", "; ".join(wrong)))
                    else:
                        passed += 1
    return Verdict(
        "llm-comply",
        environments.version(interpreter, "llm-comply"),
        "answers against the OpenAPI documents of Anthropic, OpenAI and Google, five formats on seven models",
        passed,
        tuple(failed),
    )


def configuration() -> str:
    aliases = {f"{suite.prefix}{model}": model for suite in SUITES.values() for model in MODELS}
    return "[providers.demo]\n[models]\n" + "".join(
        f'"{alias}" = "demo/{model}"\n' for alias, model in aliases.items()
    )


def results(program: Path, suite: str, url: str, model: str) -> list[dict[str, Any]]:
    where = ("--format", suite, "-u", url + SUITES[suite].path, "-m", SUITES[suite].prefix + model)
    command = [str(program), "run", "--json", "-k", "x", *where]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    if not done.stdout.strip():
        raise environments.Missing(f"{' '.join(command)}: {done.stderr.strip()}")
    found: list[dict[str, Any]] = json.loads(done.stdout)["results"]
    return found


def problems(result: dict[str, Any]) -> list[str]:
    """What is wrong with one test's result; a test that was not run is wrong too."""
    found = [*result.get("errors", ())]
    if result["id"] not in INTENDED:
        found += result.get("warnings", ())
    return found or ([result["status"]] if result["status"] != "passed" else [])
