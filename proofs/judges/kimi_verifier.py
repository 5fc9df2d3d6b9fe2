"""Kimi Vendor Verifier, Moonshot's checks of vendors that serve Kimi models.

It judges a model; a gateway in between must not change its verdict. It runs twice against the same upstream,
directly and through a gateway that forwards requests unchanged (`losses = "as-is"`): a case passes if it ends
the same way and the same bodies arrive.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Final, NamedTuple

from proofs.judges import environments, pytest_run
from proofs.judges.results import Case, Verdict
from wireglot.testing.live_gateway import LiveGateway
from wireglot.testing.scripted_upstream import ScriptedUpstream

SUITES: Final = ("tests/params", "tests/tool_call_json_schema", "tests/k3_features")
NOT_RUN: Final = (
    Case("tests/prompt_tokens", "its cases are in Git LFS; they count the tokens of a real model"),
    Case(
        "tests/k3_features/test_tokenization_groundtruth.py",
        "it compares the token counts of two real models",
    ),
    Case("eval.py", "it measures the answers of a real model"),
)
PACKAGES: Final = ("openai", "httpx[http2]", "jsonschema", "pytest", "pytest-rerunfailures")


class Run(NamedTuple):
    outcomes: dict[str, str]
    bodies: list[bytes]


def judge() -> Verdict:
    folder = environments.checkout("Kimi-Vendor-Verifier", "MoonshotAI/Kimi-Vendor-Verifier")
    interpreter = environments.python("kimi-vendor-verifier", *PACKAGES)
    with ScriptedUpstream() as upstream:
        direct = _run(interpreter, folder, upstream.url, upstream)
    with (
        ScriptedUpstream() as upstream,
        LiveGateway.before(upstream, "openai-chat", losses='"as-is"') as gateway,
    ):
        through = _run(interpreter, folder, gateway.url, upstream)
    failed = [
        Case(name, f"{outcome} directly, {through.outcomes.get(name, 'not run')} through the gateway")
        for name, outcome in direct.outcomes.items()
        if through.outcomes.get(name) != outcome
    ]
    if changed := sum(one != other for one, other in zip(direct.bodies, through.bodies, strict=False)):
        failed.append(Case("request bodies", f"{changed} of {len(direct.bodies)} arrive changed"))
    if len(direct.bodies) != len(through.bodies):
        failed.append(
            Case("requests", f"{len(direct.bodies)} directly, {len(through.bodies)} through the gateway")
        )
    return Verdict(
        "kimi-vendor-verifier",
        environments.commit(folder),
        f"Moonshot's verifier of Kimi vendors: the same verdict with the gateway in between, and "
        f"{len(direct.bodies)} request bodies unchanged",
        len(direct.outcomes) - sum(case.name in direct.outcomes for case in failed),
        tuple(failed),
        NOT_RUN,
    )


def _run(interpreter: Path, folder: Path, url: str, upstream: ScriptedUpstream) -> Run:
    with tempfile.TemporaryDirectory(prefix="wireglot-judge-") as temporary:
        arguments = (
            *("-o", "addopts=", "--reruns", "0", f"--tool-json-report={temporary}/tools.json"),
            *("--ignore=tests/k3_features/test_tokenization_groundtruth.py", *SUITES),
            *("--base-url", f"{url}/v1", "--api-key", "k", "--smoke-model", "kimi-k3"),
        )
        tests = pytest_run.problems(pytest_run.run(interpreter, folder, *arguments, environ={}))
    outcomes = {name: problem.partition(":")[0] or "passed" for name, problem in tests}
    return Run(outcomes, [request.body for request in upstream.requests])
