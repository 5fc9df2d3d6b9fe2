"""One vendor: its scenarios in each of its dialects, then smoke and the probe, within a limit of cost."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from proofs.live.scenarios import SCENARIOS, Scenario
from proofs.live.shapes import Difference, differences, merged, shape_of
from proofs.live.vendors import Vendor
from wireglot.cli.remote_gateway import address_of
from wireglot.cli.smoke import MAX_SMOKE_TOKENS, SmokeTarget, checks
from wireglot.http.redaction import Redactor
from wireglot.probe.endpoint import Endpoint, EndpointRequest, Got, HttpEndpoint
from wireglot.probe.reply import Broken, Inconclusive, NotApplicable
from wireglot.probe.report import ProbeReport
from wireglot.probe.run import WIRES, DemoEndpoint
from wireglot.probe.talk import ProbeLedger, Talk
from wireglot.testing.live_gateway import LiveGateway
from wireglot_core.ir.outcome import Usage
from wireglot_core.providers.prices import cost
from wireglot_core.wire.json import BadJson

MICRO: Final = 1_000_000
_SMOKE_REQUESTS: Final = 40
_SMOKE_INPUT: Final = 600
"""More tokens than the longest of its requests has."""
_BYTES_OF_A_TOKEN: Final = 2
_KEPT_HEADERS: Final = ("content-type", "retry-after")
"""Others name the account, or are the same in no two answers."""


class LiveRow(msgspec.Struct, frozen=True):
    """The outcome of one step; `words` is empty if it passed."""

    vendor: str
    dialect: str
    step: str
    verdict: str
    words: str = ""
    differences: tuple[Difference, ...] = ()


class CostLimit:
    """In millionths of a dollar. A step is only begun if its most fits."""

    def __init__(self, dollars: float) -> None:
        self.most = round(dollars * MICRO)
        self.spent = 0

    @property
    def left(self) -> int:
        return max(0, self.most - self.spent)

    def part(self, of: int) -> CostLimit:
        """An equal part of what is left, for one of so many vendors."""
        return CostLimit(self.left / max(1, of) / MICRO)


class _Recording:
    """An endpoint that keeps what it was asked and what it answered."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self.kept: list[tuple[EndpointRequest, Got]] = []

    def ask(self, ask: EndpointRequest) -> Got:
        got = self._endpoint.ask(ask)
        self.kept.append((ask, got))
        return got


def contact(
    vendor: Vendor,
    limit: CostLimit,
    folder: Path,
    *,
    steps: tuple[str, ...] = ("scenarios", "smoke", "probe"),
) -> Iterator[LiveRow]:
    """Yields each row as soon as it is known. Recordings, without secrets, go to the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    if "scenarios" in steps:
        for dialect in vendor.dialects:
            yield from _scenarios(vendor, dialect, limit, folder / f"{vendor.name}-{dialect}.jsonl")
    if "smoke" in steps:
        yield from _smoke(vendor, limit)
    if "probe" in steps:
        for dialect in vendor.dialects:
            yield _probe(vendor, dialect, limit, folder / f"{vendor.name}-{dialect}-probe.json")


def _scenarios(vendor: Vendor, dialect: str, limit: CostLimit, file: Path) -> Iterator[LiveRow]:
    redactor = Redactor([vendor.key])
    ledger = ProbeLedger()
    with (
        HttpEndpoint(vendor.root(dialect), vendor.key_header, vendor.key) as endpoint,
        file.open("wb") as out,
    ):
        for scenario in SCENARIOS:
            expected, most = _expected(scenario, vendor, dialect)
            if most > limit.left:
                yield LiveRow(vendor.name, dialect, scenario.name, "not run", _over(most, limit))
                continue
            recording, wire = _Recording(endpoint), WIRES[dialect]
            before = ledger.input, ledger.output
            verdict, words = _outcome(scenario, Talk(recording, wire, vendor.model, ledger, fresh=True))
            used = _cost(vendor, ledger.input - before[0], ledger.output - before[1])
            # Where an answer was not understood its tokens are unknown.
            limit.spent += used if verdict == "pass" else max(used, most)
            for ask, got in recording.kept:
                out.write(redactor.data(_line(scenario.name, ask, got)) + b"\n")
            found: list[Difference] = []
            if scenario.compared and recording.kept:
                # Names and kinds are the vendor's text, too.
                clean = (
                    msgspec.structs.replace(got, body=redactor.data(got.body)) for _, got in recording.kept
                )
                theirs = merged(shape_of(got, wire) for got in clean if got.status != 429)
                found = differences(theirs, merged(shape_of(got, wire) for _, got in expected))
            yield LiveRow(vendor.name, dialect, scenario.name, verdict, redactor.text(words), tuple(found))


def _expected(
    scenario: Scenario, vendor: Vendor, dialect: str
) -> tuple[list[tuple[EndpointRequest, Got]], int]:
    """What the scripted upstream says to it, and the most that it can cost."""
    ours, ledger = _Recording(DemoEndpoint(dialect)), ProbeLedger()
    _outcome(scenario, Talk(ours, WIRES[dialect], vendor.model, ledger, fresh=True))
    return ours.kept, _cost(vendor, math.ceil(ledger.bytes_sent / _BYTES_OF_A_TOKEN), ledger.most_output)


def _outcome(scenario: Scenario, talk: Talk) -> tuple[str, str]:
    try:
        scenario.run(talk)
    except NotApplicable as why:
        return "not applicable", str(why)
    except Inconclusive as why:
        return "inconclusive", str(why)
    except (Broken, BadJson) as broken:
        return "fail", str(broken)
    return "pass", ""


def _smoke(vendor: Vendor, limit: CostLimit) -> Iterator[LiveRow]:
    """Through a gateway of our own before it, in each dialect of its clients."""
    most = _cost(vendor, _SMOKE_REQUESTS * _SMOKE_INPUT, _SMOKE_REQUESTS * MAX_SMOKE_TOKENS)
    if most > limit.left:
        yield LiveRow(vendor.name, "", "smoke", "not run", _over(most, limit))
        return
    redactor = Redactor([vendor.key])
    entry = f'[providers.{vendor.name}]\napi_key = "env:{vendor.variable}"\n'
    if vendor.moved:
        entry += f'base_url = "{vendor.root(vendor.dialects[0])}"\n'
    with LiveGateway(entry, environ={vendor.variable: vendor.key}) as gateway:
        target = SmokeTarget(address_of(gateway.url))
        for result in checks(target, f"{vendor.name}/{vendor.model}"):
            verdict = "fail" if result.fault else "pass"
            step = f"smoke: {result.endpoint}, {result.check}"
            yield LiveRow(vendor.name, "", step, verdict, redactor.text(result.fault))
        for line in gateway.log():
            tokens = line.get("tokens") or {}
            limit.spent += _cost(vendor, tokens.get("input", 0), tokens.get("output", 0))


def _probe(vendor: Vendor, dialect: str, limit: CostLimit, file: Path) -> LiveRow:
    """With the budget that is left: it ends before the case that could exceed it."""
    file.unlink(missing_ok=True)
    words = ["probe", vendor.root(dialect), "--dialect", dialect, "--model", vendor.model, "--yes"]
    words += ["--key-env", vendor.variable, "--json", str(file)]
    price = vendor.price
    tokens = limit.left * MICRO // max(1, price.input, price.output)
    words += ["--budget", str(tokens)]
    ran = subprocess.run(
        [sys.executable, "-m", "wireglot", *words],
        env={**os.environ, vendor.variable: vendor.key},
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    if not file.exists():
        said = Redactor([vendor.key]).text((ran.stderr or ran.stdout).strip()[-300:])
        return LiveRow(vendor.name, dialect, "probe", "fail", said or f"exit status {ran.returncode}")
    report = msgspec.json.decode(file.read_bytes(), type=ProbeReport)
    limit.spent += _cost(vendor, report.input_tokens, report.output_tokens)
    score = f"{report.score.passed} of {report.score.applicable} cases"
    left_out = report.verdicts.get("not run", 0)
    unrun = f", {left_out} not run for the limit of cost" if left_out else ""
    return LiveRow(vendor.name, dialect, "probe", "fail" if report.failed else "pass", f"{score}{unrun}")


def _cost(vendor: Vendor, tokens_in: int, tokens_out: int) -> int:
    return cost(vendor.price, Usage(input=tokens_in, output=tokens_out))


def _over(most: int, limit: CostLimit) -> str:
    return f"it could cost {most / MICRO:.4f} USD, and {limit.left / MICRO:.4f} are left"


def _line(scenario: str, ask: EndpointRequest, got: Got) -> bytes:
    return msgspec.json.encode(
        {
            "scenario": scenario,
            "method": ask.method,
            "path": ask.path,
            "request": ask.body.decode("utf-8", "replace"),
            "status": got.status,
            "headers": {name: got.headers[name] for name in _KEPT_HEADERS if name in got.headers},
            "answer": got.body.decode("utf-8", "replace"),
        }
    )
