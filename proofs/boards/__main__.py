"""`python -m proofs.boards`: start each gateway in front of one double, probe it, write the figures.

The double is the demo model behind real HTTP, in the vendors' own paths (`scripted_upstream`).
Each gateway has the configuration of its own documentation and real names of models, since gateways decide by
them what a model can do.
"""

from __future__ import annotations

import argparse
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import msgspec

from proofs.boards.recipe import (
    BadRecipe,
    Installed,
    Recipe,
    clean_environment,
    filled,
    install,
    read,
    reason_apart,
)
from wireglot.demo.service import serve, target_of
from wireglot.http.transport import Timeouts
from wireglot.probe.endpoint import HttpEndpoint
from wireglot.probe.reply import Verdict
from wireglot.probe.run import WIRES, ProbeFinding, cases_for, run_cases
from wireglot.probe.talk import ProbeLedger
from wireglot.testing.scripted_upstream import Behaviour, ScriptedUpstream
from wireglot.testing.scripted_upstream.behaviour import Recorded

FIGURES = Path(__file__).parents[2] / "docs" / "figures" / "probe-peers.json"
DEFAULT = ("wireglot", "litellm", "llm-rosetta", "claude-code-router", "portkey", "bifrost", "cliproxyapi")
_KINDS: Final[dict[Verdict, str]] = {
    "not applicable": "none",
    "fail": "failed",
    "warn": "warned",
    "inconclusive": "undecided",
    "not run": "undecided",
}
_REPORTED: Final = re.compile(r"rejected with a proper error|the answer says that it left out")
_TIMES = Timeouts(connect=5.0, tls=5.0, first_byte=30.0, idle=30.0, total=60.0)


def main() -> int:
    parser = argparse.ArgumentParser(description="Probe other gateways in front of the same double.")
    parser.add_argument(
        "--recipe", action="append", default=[], help="a file, or one that is shipped; again for more"
    )
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "wireglot-probe"
    parser.add_argument("--cache", type=Path, default=cache, help="where their packages are kept")
    parser.add_argument("--write", type=Path, default=FIGURES, help="where the figures are written")
    arguments = parser.parse_args()
    peers = _measured(arguments.write)
    status = 0
    for name in arguments.recipe or DEFAULT:
        recipe = read(name)
        try:
            installed = install(recipe, arguments.cache)
        except BadRecipe as fault:  # the others can still be measured
            print(f"{recipe.name} cannot be had here: {fault}", file=sys.stderr)
            status = 1
            continue
        print(f"{recipe.name} {installed.version}", flush=True)
        date = time.strftime("%Y-%m-%d", time.gmtime())
        peer: dict[str, Any] = {"name": recipe.name, "version": installed.version, "date": date, "runs": []}
        peers[recipe.name] = peer
        for run in probe(recipe, installed):
            peer["runs"].append(run)
            arguments.write.write_bytes(_figures(peers))  # as soon as it is there: all of them take a while
    return status


def _measured(file: Path) -> dict[str, dict[str, Any]]:
    """Gateways of earlier runs, by name: a run replaces those that it measures."""
    if not file.exists():
        return {}
    return {peer["name"]: peer for peer in msgspec.json.decode(file.read_bytes())["peers"]}


def _figures(peers: Mapping[str, dict[str, Any]]) -> bytes:
    figures = {"peers": list(peers.values())}
    return msgspec.json.format(msgspec.json.encode(figures), indent=1) + b"\n"


def probe(recipe: Recipe, installed: Installed) -> Iterator[dict[str, Any]]:
    with (
        ScriptedUpstream(decide=as_vendors_frame) as upstream,
        started(recipe, installed, upstream.port) as port,
    ):
        for dialect, root in recipe.roots.items():
            for spoken, model in recipe.models.items():
                if spoken not in recipe.upstreams.get(dialect, recipe.models):
                    continue
                words: dict[str, object] = {"upstream": upstream.port}
                sent = {name: filled(text, words) for name, text in recipe.headers.get(spoken, {}).items()}
                url = f"http://127.0.0.1:{port}{root}"
                run = one_run(recipe, url, dialect, model, tuple(sent.items()))
                works = f"{run['works']} of {run['cases']} work, {len(run['reported'])} reported"
                print(f"  {dialect} over {spoken}: {works}", flush=True)
                yield {"client": dialect, "upstream": spoken, **run}


def as_vendors_frame(request: Recorded) -> Behaviour | None:
    """Google ends the lines of its streams with CRLF, which some clients depend on."""
    if not request.path.endswith(":streamGenerateContent"):
        return None
    target = target_of(request.path, request.query, request.headers)
    assert target is not None
    served = serve(target, request.body)
    headers = tuple(dict(served.headers).items())
    return Behaviour(status=served.status, headers=headers, body=served.body.replace(b"\n", b"\r\n"))


def one_run(
    recipe: Recipe, root: str, dialect: str, model: str, headers: tuple[tuple[str, str], ...] = ()
) -> dict[str, Any]:
    wire = WIRES[dialect]
    cases = [case for case in cases_for(dialect) if case.cost != "large"]
    with HttpEndpoint(root, wire.key_header, recipe.key, timeouts=_TIMES, headers=headers) as endpoint:
        findings = list(run_cases(cases, endpoint, wire, model, ProbeLedger(), wait=lambda _: None))
    return counted(recipe, findings)


def counted(recipe: Recipe, findings: Sequence[ProbeFinding]) -> dict[str, Any]:
    """What works; what does not and is reported (rejected with a proper error, or named as left out), or is
    not; what the endpoint does not have; what cannot be decided."""
    apart: dict[str, str] = {}
    kinds: dict[str, dict[str, str]] = {
        name: {} for name in ("reported", "failed", "warned", "none", "undecided")
    }
    passed: list[str] = []
    for finding in findings:
        if finding.verdict == "pass":
            passed.append(finding.id)
            continue
        if reason := reason_apart(recipe, finding.id, finding.words):
            apart[finding.id] = reason
            continue
        kind = _KINDS[finding.verdict]
        if kind == "none" and _REPORTED.search(finding.words):
            kind = "reported"
        kinds[kind][finding.id] = finding.words[:300]
    cases = len(passed) + len(kinds["reported"]) + len(kinds["failed"]) + len(kinds["warned"])
    return {"works": len(passed), "cases": cases, "passed": passed, **kinds, "apart": apart}


@contextmanager
def started(recipe: Recipe, installed: Installed, upstream: int) -> Iterator[int]:
    with tempfile.TemporaryDirectory(prefix="wireglot-probe-") as made:
        folder = Path(made)
        port = _free_port()
        words: dict[str, object] = {
            "port": port,
            "upstream": upstream,
            **installed.words(),
            "folder": folder,
            "python": sys.executable,
        }
        for name, text in recipe.files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(filled(text, words), encoding="utf-8")
        own = {name: filled(text, words) for name, text in recipe.environment.items()}
        with (folder / "peer.log").open("wb") as log:
            process = subprocess.Popen(
                [filled(word, words) for word in recipe.start],
                cwd=folder,
                env={**clean_environment(), "HOME": str(folder), **own},
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        try:
            _wait_for(port, process, recipe.patience_seconds, folder / "peer.log")
            yield port
        finally:
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _wait_for(port: int, process: subprocess.Popen[bytes], seconds: float, log: Path) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if process.poll() is not None:
            break
        with socket.socket() as probe_socket:
            probe_socket.settimeout(1.0)
            if probe_socket.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.2)
    raise SystemExit(f"it does not listen: {log.read_text(encoding='utf-8', errors='replace')[-2000:]}")


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


if __name__ == "__main__":
    sys.exit(main())
