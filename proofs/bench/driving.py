"""One measurement: the load generator at work, and the processor time of the server meanwhile."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path
from typing import Any, NamedTuple

from proofs.bench import processes
from proofs.bench.bodies import VARIED
from proofs.bench.scenarios import Scenario
from proofs.bench.targets import Target
from proofs.bench.toolbox import Toolbox

Figures = dict[str, Any]

_LAG_SECONDS = 0.03
"""A process needs a moment to start: what is read begins a little later and ends a little earlier."""


class Driver(NamedTuple):
    tools: Toolbox
    varying: Toolbox
    """For bodies of which no two are the same."""
    upstream: int
    """Its process."""
    directory: Path
    core: int | None

    def drive(self, target: Target, scenario: Scenario, seconds: float, warm: float) -> Figures:
        tools = self.varying if scenario.varied else self.tools
        command = [*tools.load, f"http://127.0.0.1:{target.port}{target.path(scenario)}"]
        command += ["-f", str(self._body(target, scenario)), "-c", str(scenario.connections)]
        command += ["-d", str(seconds), "-w", str(warm), "-p", str(target.pid or self.upstream)]
        command += ["-m", str(self.upstream), *(["-s"] if scenario.events else [])]
        command += ["-v", VARIED] if scenario.varied else []
        command += ["-r", f"{scenario.begun_a_second:.1f}"] if scenario.out_of_step else []
        for header in target.headers:
            command += ["-H", header]
        command = processes.pinned(command, self.core)
        if tools.exact:
            return _reported(subprocess.Popen(command, stdout=subprocess.PIPE, text=True), seconds + warm)
        return self._watched(command, target.pid or self.upstream, seconds, warm)

    def _body(self, target: Target, scenario: Scenario) -> Path:
        path = self.directory / f"{scenario.key}-{target.name}.json"
        if not path.exists():
            path.write_bytes(target.body(scenario))
        return path

    def _watched(self, command: list[str], pid: int, seconds: float, warm: float) -> Figures:
        """For a generator that reads processor time in ticks: the clock is read beside it. In a steady load
        the time a second and the requests a second belong together, whatever moment each was read at."""
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        time.sleep(warm + _LAG_SECONDS)
        began, meter = time.monotonic(), processes.Meter(pid)
        time.sleep(max(seconds - 3 * _LAG_SECONDS, seconds / 2))
        spent, span = meter.spent(), time.monotonic() - began
        figures = _reported(process, seconds + warm)
        figures["cpu_s"] = spent
        for cost, rate in (("cpu_us_req", "rps"), ("cpu_us_ev", "events_s")):
            if figures.get(rate):
                figures[cost] = spent / span * 1e6 / figures[rate]
        return figures


def _reported(process: subprocess.Popen[str], lasts: float) -> Figures:
    try:
        out, _ = process.communicate(timeout=lasts + 60)
        figures: Figures = json.loads(out)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return {"ok": 0, "err": 1, "error": "the load generator did not end"}
    except ValueError:
        return {"ok": 0, "err": 1, "error": "the load generator gave no figures"}
    return figures
