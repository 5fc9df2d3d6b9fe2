"""Python blocks of a page in one process: those that go on know the names of those before.

python worker.py FD     # orders on standard input, one JSON a line; answers on that descriptor
"""

from __future__ import annotations

import ast
import asyncio
import contextlib
import inspect
import json
import os
import subprocess
import sys
import threading
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any


class PythonWorker:
    def __init__(self, folder: Path, variables: Mapping[str, str], printed: Path) -> None:
        self._printed = printed
        answers, theirs = os.pipe()
        with printed.open("wb") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-P", __file__, str(theirs)],
                cwd=folder, env=variables, stdin=subprocess.PIPE, stdout=output, stderr=output,
                pass_fds=(theirs,), start_new_session=True,
            )  # fmt: skip
        os.close(theirs)
        self._answers = os.fdopen(answers, "rb")
        self._seen = 0

    def run(self, source: str, page: str, line: int, seconds: float) -> tuple[str, str]:
        """What went wrong (empty: nothing), and what was printed."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"source": source, "page": page, "line": line}).encode() + b"\n")
        self._process.stdin.flush()
        late = threading.Timer(seconds, self._process.kill)
        late.start()
        answer = self._answers.readline()
        late.cancel()
        printed = self._printed.read_bytes()[self._seen :]
        self._seen += len(printed)
        problem = json.loads(answer) if answer else "it ended, or did not end in time"
        return problem, printed.decode(errors="replace")

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        self._answers.close()


def _serve(answers_fd: int) -> None:
    """`await` may stand outside of functions, as in a notebook; functions called `test_...` are called."""
    sys.path.insert(0, "")
    names: dict[str, Any] = {"__name__": "__main__"}
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    with os.fdopen(answers_fd, "wb", buffering=0) as answers:
        for line in sys.stdin.buffer:
            order = json.loads(line)
            before = dict(names)
            problem = ""
            try:
                # Blank lines in front: a traceback names the line of the page.
                source = "\n" * (order["line"] - 1) + order["source"]
                code = compile(source, order["page"], "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
                result = eval(code, names)
                if inspect.iscoroutine(result):
                    loop.run_until_complete(result)
                for name in names.keys() - before.keys():
                    if name.startswith("test_") and not inspect.signature(names[name]).parameters:
                        names[name]()
            except (Exception, SystemExit) as fault:
                if not (isinstance(fault, SystemExit) and not fault.code):
                    problem = traceback.format_exc()
            sys.stdout.flush()
            sys.stderr.flush()
            answers.write(json.dumps(problem).encode() + b"\n")


if __name__ == "__main__":
    _serve(int(sys.argv[1]))
