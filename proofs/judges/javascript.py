"""Test suites of JavaScript SDKs, run from a checkout with its dependencies installed.

Two ways: against the demo model (tests that send requests to an address; see with_objects.js), and with the
gateway between the SDK and a test's own answers (tests that replace `fetch`; see through_gateway.js).
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

from proofs.judges import environments
from wireglot.testing.live_gateway import BASES, LiveGateway

_SETUP: Final = Path(__file__).with_name("through_gateway.js")
_OBJECTS: Final = Path(__file__).with_name("with_objects.js")
_SECONDS: Final = 900
_PASSED: Final = "passed"


class Test(NamedTuple):
    """A test and how it ended; `problem` is empty if it passed."""

    file: str
    name: str
    problem: str


def named(way: str, tests: Iterable[Test]) -> Iterator[tuple[str, str]]:
    """Tests that ran in one of several ways, by their names in all of them."""
    for test in tests:
        yield f"{way}: {test.file} {test.name}", test.problem


class Checkout(NamedTuple):
    """An SDK's repository: its folder, the runner of its tests and the name that they import it by."""

    folder: Path
    runner: str
    package: str

    @classmethod
    def of(cls, name: str, repository: str, runner: str, package: str) -> Checkout:
        folder = environments.checkout(name, repository)
        if not (folder / "node_modules" / ".bin" / runner).exists():
            raise environments.Missing(f"the dependencies of {folder} are not installed")
        return cls(folder, runner, package)

    def against(self, url: str, files: Sequence[str]) -> list[Test]:
        """Tests that take the address of a server from the environment."""
        return self._run(files, {"TEST_API_BASE_URL": url}, _OBJECTS)

    def through(self, url: str, port: int, files: Sequence[str]) -> list[Test]:
        """Tests with answers of their own; only those that sent a request through the gateway."""
        with tempfile.TemporaryDirectory(prefix="wireglot-judge-") as temporary:
            setup = Path(temporary, "through_gateway.js")
            setup.write_text(_SETUP.read_text(encoding="utf-8").replace("'SDK'", f"'{self.package}'"))
            judged = Path(temporary, "judged")
            judged.touch()
            environ = {"GATEWAY_URL": url, "UPSTREAM_PORT": str(port), "JUDGED_TESTS": str(judged)}
            tests = self._run(files, environ, setup)
            names = {line.replace(" > ", " ") for line in judged.read_text(encoding="utf-8").splitlines()}
        return [test for test in tests if test.name in names]

    def _run(self, files: Sequence[str], environ: dict[str, str], setup: Path | None = None) -> list[Test]:
        with tempfile.TemporaryDirectory(prefix="wireglot-judge-") as temporary:
            report = Path(temporary, "report.json")
            command = _jest if self.runner == "jest" else _vitest
            done = subprocess.run(
                [node(), *command(self.folder, Path(temporary), files, setup), f"--outputFile={report}"],
                cwd=self.folder,
                env={**os.environ, **environ},
                capture_output=True,
                text=True,
                timeout=_SECONDS,
                check=False,
            )
            if not report.is_file():
                raise environments.Missing(f"{self.folder.name}: {(done.stderr or done.stdout)[-2000:]}")
            found = json.loads(report.read_bytes())
        return list(self._tests(found))

    def _tests(self, report: dict[str, Any]) -> Iterator[Test]:
        for file in report["testResults"]:
            path = str(Path(file["name"]).relative_to(self.folder))
            if not file["assertionResults"]:
                yield Test(path, "", file.get("message", "no tests"))
            for test in file["assertionResults"]:
                if test["status"] in {_PASSED, "failed"}:
                    problem = "" if test["status"] == _PASSED else "".join(test["failureMessages"][:1])
                    yield Test(path, test["fullName"].strip(), problem)


@contextmanager
def between(*dialects: str, over: str = "") -> Iterator[tuple[str, int]]:
    """A gateway in front of an upstream of these dialects, which have the same base URL, and the port where
    the upstream is to listen.

    `over`: a second gateway translates every request into that dialect, and the first one back.
    """
    port = _free_port()
    with LiveGateway(_provider(dialects, f"http://127.0.0.1:{port}")) as first:
        if not over:
            yield first.url, port
            return
        with LiveGateway(_provider((over,), first.url)) as second:
            yield second.url, port


def _provider(dialects: Sequence[str], url: str) -> str:
    return (
        f"[providers.mine]\ndialects = {json.dumps(dialects)}\n"
        f'base_url = "{url}{BASES[dialects[0]]}"\napi_key = "k"\n'
        "retry = { retries = 0 }\nbreaker = { consecutive = 1000000, minimum = 1000000 }\n"
        '[models]\n"*" = "mine/*"\n'
    )


def _jest(folder: Path, _: Path, files: Sequence[str], setup: Path | None) -> list[str]:
    command = [
        str(folder / "node_modules" / "jest" / "bin" / "jest.js"),
        "--json",
        "--runInBand",
        "--forceExit",
    ]
    return [*command, *(["--setupFilesAfterEnv", str(setup)] if setup else []), "--runTestsByPath", *files]


def _vitest(folder: Path, temporary: Path, files: Sequence[str], setup: Path | None) -> list[str]:
    """With the aliases of the SDK's own configuration; one file after the other, since they share a port."""
    source = json.dumps(str(folder / "src"))
    config = temporary / "vitest.config.mjs"
    config.write_text(
        "export default { resolve: { alias: ["
        f"{{ find: /^openai$/, replacement: {source} + '/index.ts' }},"
        f"{{ find: /^openai\\/(.*)$/, replacement: {source} + '/$1' }}] }},"
        "test: { environment: 'node', globals: true, testTimeout: 30000, fileParallelism: false,"
        f"include: {json.dumps(list(files))}, setupFiles: {json.dumps([str(setup)] if setup else [])} }} }};"
    )
    program = str(folder / "node_modules" / "vitest" / "vitest.mjs")
    return [program, "run", "--root", str(folder), "--config", str(config), "--reporter=json"]


def node() -> str:
    """The newest Node: one that was installed for judges, or that of the machine."""
    own = environments.FOLDER / "node" / "node_modules" / ".bin" / "node"
    found = str(own) if own.exists() else shutil.which("node")
    if found is None:
        raise environments.Missing(f"npm install --prefix {environments.FOLDER / 'node'} node")
    return found


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
