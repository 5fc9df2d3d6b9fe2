"""Running the command line, here or as a process of its own, on the bundled examples."""

import contextlib
import io
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

from wireglot.cli import main
from wireglot.cli.examples import conversation
from wireglot.cli.parser import build_parser
from wireglot.cli.trust import trust

COMMAND = [sys.executable, "-m", "wireglot.cli"]
_PARSER = cache(build_parser)
"""The parser is the same for all calls of a process; to build it takes longer than most commands."""
PLAIN = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "NO_COLOR")}


def run(*arguments: str, given: bytes | str | dict[str, Any] = b"") -> subprocess.CompletedProcess[bytes]:
    """One call to its end, in this process: what is said where, and the status. A dict is given as JSON."""
    stdin, stdout, stderr = (
        io.TextIOWrapper(io.BytesIO(data), encoding="utf-8") for data in (_data(given), b"", b"")
    )
    kept = sys.stdin, sys.stdout, sys.stderr
    sys.stdin, sys.stdout, sys.stderr = stdin, stdout, stderr
    try:
        with mock.patch("wireglot.cli.parser.build_parser", _PARSER):
            status = main(arguments)
    finally:
        sys.stdin, sys.stdout, sys.stderr = kept
    return subprocess.CompletedProcess(arguments, status, _written(stdout), _written(stderr))


def run_in(
    folder: Path, environ: Mapping[str, str], *arguments: str, given: str = ""
) -> subprocess.CompletedProcess[str]:
    """The same in a folder and with these variables alone: for what needs neither a terminal nor a process."""
    with ExitStack() as stack:
        stack.enter_context(contextlib.chdir(folder))
        stack.enter_context(mock.patch.dict(os.environ, environ, clear=True))
        stack.enter_context(mock.patch.object(tempfile, "tempdir", None))
        done = run(*arguments, given=given)
    return subprocess.CompletedProcess(arguments, done.returncode, done.stdout.decode(), done.stderr.decode())


def configure(text: str, folder: Path = Path()) -> Path:
    """A wireglot.toml in a folder, as its user has written and approved it."""
    file = folder / "wireglot.toml"
    file.write_text(text)
    assert trust(file)
    return file


def _written(stream: io.TextIOWrapper) -> bytes:
    stream.flush()
    buffer = stream.detach()
    assert isinstance(buffer, io.BytesIO)
    return buffer.getvalue()


def spawn(*arguments: str, given: bytes | str | dict[str, Any] = b"") -> subprocess.CompletedProcess[bytes]:
    """The same as a process of its own."""
    return subprocess.run(
        [*COMMAND, *arguments], input=_data(given), capture_output=True, env=PLAIN, timeout=300
    )


def _data(given: bytes | str | dict[str, Any]) -> bytes:
    text = json.dumps(given) if isinstance(given, dict) else given
    return text.encode() if isinstance(text, str) else text


def run_lines(*arguments: str, cases: list[Any]) -> list[dict[str, Any]]:
    """`translate --jsonl` over cases; one that is a string or bytes is the line itself."""
    done = run("translate", "--jsonl", *arguments, given=b"".join(as_line(case) for case in cases))
    assert done.stderr == b""
    results = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == (0 if all(result["ok"] for result in results) else 1)
    return results


def as_line(case: Any) -> bytes:
    if isinstance(case, bytes):
        return case + b"\n"
    return (case if isinstance(case, str) else json.dumps(case)).encode() + b"\n"


def request_case(
    identity: Any = 1, source: str = "anthropic", target: str = "openai-chat", **more: Any
) -> dict[str, Any]:
    body = conversation.document(source, "request")
    return {"id": identity, "kind": "request", "from": source, "to": target, "body": body, **more}


def response_case(
    identity: Any = 1, source: str = "gemini", target: str = "anthropic", **more: Any
) -> dict[str, Any]:
    body = conversation.document(source, "response")
    return {"id": identity, "kind": "response", "from": source, "to": target, "body": body, **more}


def stream_case(
    identity: Any = 1, source: str = "gemini", target: str = "anthropic", **more: Any
) -> dict[str, Any]:
    sse = conversation.stream(source).decode()
    return {"id": identity, "kind": "stream", "from": source, "to": target, "sse": sse, **more}


def complaint(done: subprocess.CompletedProcess[bytes], status: int = 2) -> str:
    """The one line a refused call leaves on standard error."""
    assert done.returncode == status, done
    lines = done.stderr.decode().splitlines()
    assert len(lines) == 1, lines
    assert lines[0].startswith("wireglot: ")
    return lines[0].removeprefix("wireglot: ")
