"""Our own gateway passes every case that applies, in every dialect, over every demo upstream."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.waiting import DEADLINE_SECONDS, wait_until
from wireglot.probe.endpoint import HttpEndpoint, root_of
from wireglot.probe.report import score_of
from wireglot.probe.run import WIRES, cases_for, run_cases
from wireglot.probe.talk import ProbeLedger

KEY: Final = "wg-key-of-the-probe-0123456789"
UPSTREAMS: Final = ("demo", "demo-anthropic", "demo-openai-chat", "demo-openai-responses", "demo-gemini")
WHOLE: Final = bool(os.environ.get("WIREGLOT_WHOLE"))  # `make full`
SAMPLED: Final = {
    # Passed through, and one that is translated: all in `make full`.
    "anthropic": ("demo", "demo-openai-chat"),
    "openai-chat": ("demo", "demo-gemini"),
    "openai-responses": ("demo", "demo-anthropic"),
    "gemini": ("demo", "demo-openai-responses"),
    "ollama": ("demo", "demo-anthropic"),
    "gemini-interactions": ("demo", "demo-openai-chat"),
}
PAIRS: Final = [(name, model) for name in WIRES for model in (UPSTREAMS if WHOLE else SAMPLED[name])]
MAY_BE_MISSING: Final = {
    # What the upstream's dialect has no word for, and the gateway says so with its answer.
    "demo-openai-responses": {
        "stops.sequence",
        "stops.sequence-stream",
        "stops.several-sequences",
        "stops.which-sequence",
    },
    "demo-anthropic": {"schemas.json"},
    "demo-openai-chat": {"stops.which-sequence"},
    "demo-gemini": {"tools.parallel-off", "stops.which-sequence"},
}

_TOML: Final = f"""\
[server]
port = 0
[providers.demo]
[limits]
auth_failures = 1000000
[keys]
probe = "sha256:{hashlib.sha256(KEY.encode()).hexdigest()}"
"""


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A process of its own; where it listens."""
    folder = tmp_path_factory.mktemp("gateway")
    (folder / "wireglot.toml").write_text(_TOML)
    reported = folder / "reported.log"
    environ = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
    with reported.open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "wireglot", "serve", "--config", "wireglot.toml"],
            cwd=folder,
            env={**environ, "HOME": str(folder), "XDG_DATA_HOME": str(folder)},
            stdout=log,
            stderr=log,
        )
    try:
        wait_until(lambda: listening(reported) is not None)
        found = listening(reported)
        assert found is not None
        yield found
    finally:
        process.terminate()
        process.wait(DEADLINE_SECONDS)


def listening(log: Path) -> str | None:
    found = re.search(rb'"event":"listening","url":"([^"]+)"', log.read_bytes())
    return found[1].decode() if found else None


@pytest.mark.sampled(each=6)
@pytest.mark.parametrize(("dialect", "model"), PAIRS, ids=[f"{name} over {model}" for name, model in PAIRS])
def test_our_gateway_passes_every_case(gateway: str, dialect: str, model: str) -> None:
    wire = WIRES[dialect]
    cases = [case for case in cases_for(dialect) if WHOLE or case.cost != "large"]
    with HttpEndpoint(root_of(gateway, dialect), wire.key_header, KEY) as endpoint:
        findings = list(run_cases(cases, endpoint, wire, model, ProbeLedger(), wait=lambda _: None))
    wrong = {f.id: f.words for f in findings if f.verdict not in ("pass", "not applicable")}
    assert not wrong
    lacking = {case.id for case in cases if dialect in case.lacking}
    missing = {f.id: f for f in findings if f.verdict == "not applicable" and f.id not in lacking}
    assert missing.keys() <= MAY_BE_MISSING.get(model, set()), missing
    for finding in missing.values():
        refused = [each.status for each in finding.exchanges if each.status != 200]
        reported = {name for each in finding.exchanges for name in each.left_out}
        assert refused or reported, f"{finding.id}: nobody was informed: {finding.words}"
    assert score_of(cases, findings).percent == 100
