"""Run llm-comply, which checks answers against the vendors' own OpenAPI documents, on a demo gateway.

`make judges` installs it into an environment of its own. Each suite runs against each demo model, so that
answers of every dialect are translated into the one that is checked. A warning counts as a failure.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Final, NamedTuple

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
}
MODELS: Final = ("demo", "demo-anthropic", "demo-openai-chat", "demo-openai-responses", "demo-gemini")
INTENDED: Final = {
    "anth-error-handling": "a request without max_tokens is answered, with the model's maximum"
}
"""Tests that may warn, with the reason."""


def configuration() -> str:
    aliases = {f"{suite.prefix}{model}": model for suite in SUITES.values() for model in MODELS}
    return "[providers.demo]\n[models]\n" + "".join(
        f'"{alias}" = "demo/{model}"\n' for alias, model in aliases.items()
    )


def judge(program: Path, suite: str, url: str, model: str) -> list[dict[str, Any]]:
    where = ("--format", suite, "-u", url + SUITES[suite].path, "-m", SUITES[suite].prefix + model)
    command = [str(program), "run", "--json", "-k", "x", *where]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    if not done.stdout.strip():
        raise SystemExit(f"{' '.join(command)}: {done.stderr.strip()}")
    results: list[dict[str, Any]] = json.loads(done.stdout)["results"]
    return results


def problems(result: dict[str, Any]) -> list[str]:
    """What is wrong with one test's result; a test that was not run is wrong too."""
    found = [*result.get("errors", ())]
    if result["id"] not in INTENDED:
        found += result.get("warnings", ())
    return found or ([result["status"]] if result["status"] != "passed" else [])


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.judges", description=__doc__)
    parser.add_argument("program", type=Path, help="the installed llm-comply")
    program = parser.parse_args().program
    failed = 0
    with LiveGateway(configuration()) as gateway:
        for suite in SUITES:
            for model in MODELS:
                results = judge(program, suite, gateway.url, model)
                wrong = {each["id"]: found for each in results if (found := problems(each))}
                failed += len(wrong)
                print(f"{suite:15} {model:22} {len(results) - len(wrong)} of {len(results)}")
                for name, found in wrong.items():
                    print("".join(f"    {name}: {problem}\n" for problem in found), end="")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
