"""Test suites of others that run with pytest: their source, one run, and the verdict on it."""

from __future__ import annotations

import os
import re
import subprocess
import tarfile
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, Literal, NamedTuple
from xml.etree import ElementTree

from proofs.judges import environments
from proofs.judges.reasons import Reason, reason_of, summary
from proofs.judges.results import Case, Verdict

MODELS: Final = ("demo-anthropic", "demo-openai-chat", "demo-openai-responses", "demo-gemini")
"""One for each dialect of an upstream: a suite that runs on all of them has every translation behind it."""
NOT_SERVED: Final = "the gateway does not serve this API"
OFFLINE: Final = "tests of the client alone: they send nothing, or to a mock transport inside the process"
_SECONDS: Final = 1800


class Outcome(NamedTuple):
    name: str
    """Module, class and test, with dots and `::` as pytest writes them."""
    status: Literal["passed", "failed", "skipped"]
    message: str = ""


def source(interpreter: Path, package: str) -> Path:
    """The unpacked source distribution of the version that is installed, with the tests in it."""
    version = environments.version(interpreter, package)
    folder = environments.FOLDER / "sources"
    unpacked = folder / f"{package.replace('-', '_')}-{version}"
    if not unpacked.is_dir():
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as temporary:
            environments.run(
                interpreter, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", package,
                "--dest", temporary, f"{package}=={version}",
            )  # fmt: skip
            (archive,) = Path(temporary).glob("*.tar.gz")
            with tarfile.open(archive) as packed:
                packed.extractall(folder, filter="data")
    return unpacked


def run(
    interpreter: Path,
    folder: Path,
    *arguments: str,
    environ: Mapping[str, str],
    label: str = "",
) -> list[Outcome]:
    """The outcome of every case, `label` before its name; one that cannot be collected is `Missing`."""
    with tempfile.TemporaryDirectory() as temporary:
        report = Path(temporary) / "report.xml"
        command = [str(interpreter), "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={report}"]
        done = subprocess.run(
            [*command, *arguments],
            cwd=folder,
            env=_environment(environ),
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
        )
        if done.returncode not in (0, 1):
            raise environments.Missing(f"{' '.join(arguments)}: {(done.stdout + done.stderr)[-2000:]}")
        found = outcomes(report.read_text(encoding="utf-8"))
    return [each._replace(name=label + each.name) for each in found]


def problems(found: Iterable[Outcome]) -> list[tuple[str, str]]:
    """For `reasons.sort`: names without their folders, and what went wrong."""
    named = [(each.name.partition("::"), each) for each in found]
    return [
        (
            f"{where.rpartition('.')[2]} {name}",
            "" if each.status == "passed" else f"{each.status}: {each.message}",
        )
        for (where, _, name), each in named
    ]


def collected(interpreter: Path, folder: Path, *arguments: str, environ: Mapping[str, str]) -> Counter[str]:
    """How many cases each file has, without running any."""
    command = [str(interpreter), "-m", "pytest", "-qq", "-p", "no:cacheprovider", "--collect-only"]
    done = subprocess.run(
        [*command, "--continue-on-collection-errors", *arguments],
        cwd=folder,
        env=_environment(environ),
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
    )
    found = Counter[str]()
    for line in done.stdout.splitlines():
        if match := re.fullmatch(r"(\S+\.py): (\d+)", line):
            found[match[1]] += int(match[2])
    return found


def outcomes(report: str) -> list[Outcome]:
    """Of a JUnit report. A case that has several entries (it failed, then its teardown did) failed."""
    found: dict[str, Outcome] = {}
    for case in ElementTree.fromstring(report).iter("testcase"):
        name = f"{case.get('classname', '')}::{case.get('name', '')}"
        outcome = Outcome(name, "passed")
        for child in case:
            if child.tag in ("failure", "error"):
                outcome = Outcome(name, "failed", child.get("message") or child.tag)
                break
            if child.tag == "skipped":
                outcome = Outcome(name, "skipped", child.get("message") or "")
        if name not in found or found[name].status == "passed" or outcome.status == "failed":
            found[name] = outcome
    return list(found.values())


def compared(through: Sequence[Outcome], alone: Callable[[], Iterable[Outcome]]) -> list[Outcome]:
    """What ran through the gateway, where a case that does not pass without it is not run. `alone` runs the
    same cases without it, and is called only if one failed."""
    if all(each.status != "failed" for each in through):
        return [*through]
    status = {each.name: each.status for each in alone()}
    reason = "does not pass without the gateway either"
    return [
        Outcome(each.name, "skipped", reason)
        if each.status == "failed" and status.get(each.name) == "failed"
        else each
        for each in through
    ]


def never_run(every: Mapping[str, int], served: Sequence[str], apis: str) -> Iterator[Case]:
    """The files that are not among those served, which are paths or their beginnings. `apis`: the folder of
    tests that ask a server."""
    for path, count in every.items():
        if not path.startswith(tuple(served)):
            yield Case(path, NOT_SERVED if path.startswith(apis) else OFFLINE, count)


def verdict(
    judge: str,
    version: str,
    about: str,
    found: Sequence[Outcome],
    reasons: Sequence[Reason],
    never_run: Iterable[Case] = (),
) -> Verdict:
    """Each case with its reason; a failure without a known one has its own message."""
    failed, not_run = list[Case](), Counter[tuple[str, str]]()
    for outcome in found:
        if outcome.status == "passed":
            continue
        why = reason_of(outcome.name, outcome.message, reasons)
        reason = why.text if why else summary(outcome.message)
        if outcome.status == "skipped" or (why and not why.is_run):
            not_run[re.sub(r"\[.*", "", outcome.name), reason] += 1
        else:
            failed.append(Case(outcome.name, reason))
    return Verdict(
        judge,
        version,
        about,
        sum(outcome.status == "passed" for outcome in found),
        tuple(failed),
        (*(Case(name, reason, count) for (name, reason), count in not_run.items()), *never_run),
    )


def _environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Nothing of the caller's keys: only what a program needs to start, and what the suite is given."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "TMPDIR") if name in os.environ}
    return {**kept, "NO_PROXY": "127.0.0.1,localhost", **environ}
