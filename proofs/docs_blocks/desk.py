"""A clean place for a reader who types: a folder, a home, a PATH, variables, and what they left running."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from proofs.docs_blocks import stand_ins
from proofs.docs_blocks.blocks import ROOT
from proofs.docs_blocks.terminal import Terminal
from proofs.docs_blocks.worker import PythonWorker
from wireglot.cli.trust import trust
from wireglot.gateway.config.environment import CONFIG_FILE

_BLOCK_SECONDS: Final = 300
_START_SECONDS: Final = 60
_REPORTED_SECONDS: Final = 60
_POLL_SECONDS: Final = 0.02
_URL: Final = re.compile(r"https?://([\w.-]+):(\d+)")
_SERVES: Final = re.compile(r"(?:^|[\s/])wireglot (?:\S+ )*?serve\b(?!.*--help)")
_NOT_COPIED: Final = (
    ".git",
    ".venv*",
    ".installed",
    "__pycache__",
    ".*_cache",
    ".hypothesis",
    "dist",
    ".coverage*",
)
_PRELUDE: Final = r"""
__save() {
    local status=$? v
    for v in $(compgen -v); do
        case $v in
            BASH*|FUNCNAME|PIPESTATUS|EUID|UID|PPID|SHELLOPTS|_) ;;
            LINENO|*RANDOM|EPOCH*|SECONDS|DIRSTACK|GROUPS|OPT*) ;;
            IFS|PWD|OLDPWD|HOSTNAME|HOSTTYPE|MACHTYPE|OSTYPE|SHLVL|TERM|COMP_*|HISTCMD|v|status|PS4) ;;
            *) declare -p "$v" ;;
        esac
    done > "$__STATE" 2>/dev/null
    pwd > "$__STATE.folder"
    exit $status
}
trap __save EXIT
"""
"""A shell leaves its variables and its folder to the next one."""


class Failed(Exception):
    """A block did not do what its page says."""


class Desk:
    def __init__(self, place: Path, variables: dict[str, str]) -> None:
        self.home = place / "home"
        self.folder = place / "work"
        self.printed = ""
        """What the last block printed."""
        self._place = place
        self._state = place / "state"
        self._output = place / "output"
        self._scripts = 0
        self._worker: PythonWorker | None = None
        self._running: list[Terminal] = []
        temporary = place / "tmp"
        for folder in (self.home, self.folder, temporary):
            folder.mkdir(parents=True)

        self.variables = {
            **variables,
            "HOME": str(self.home),
            "TMPDIR": str(temporary),
            "PATH": f"{stand_ins.written(place / 'bin')}:{os.environ.get('PATH', os.defpath)}",
            "PYTHONPATH": str(ROOT / "src"),
            "LANG": "C.UTF-8",
            "TERM": "xterm-256color",
            "__STATE": str(self._state),
        }

    def close(self) -> None:
        if self._worker is not None:
            self._worker.close()
        for terminal in self._running:
            terminal.close()
        shutil.rmtree(self._place, ignore_errors=True)

    def use_checkout(self) -> None:
        """The folder is a copy of the project, with its environment."""
        if not (self.folder / "pyproject.toml").exists():
            ignored = shutil.ignore_patterns(*_NOT_COPIED)
            shutil.copytree(ROOT, self.folder, ignore=ignored, symlinks=True, dirs_exist_ok=True)
            # Not the real one: what a page installs into it would stay.
            (self.folder / ".venv").mkdir()
            (self.folder / ".venv" / "bin").symlink_to(self._place / "bin")

    def write(self, name: str, text: str) -> Path:
        path = self.home / name[2:] if name.startswith("~/") else self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        path.chmod(0o600)
        if path.name == CONFIG_FILE:
            trust(path, self.variables)  # a reader who writes it by hand is asked once, and says yes
        return path

    # Shell

    def shell(self, text: str, *, fails: bool = False, stays: bool = False) -> None:
        """Run the commands one after the other. Servers are left running, as in a terminal of their own."""
        self.printed = ""
        pending: list[str] = []
        commands = commands_in(text)
        for number, command in enumerate(commands, start=1):
            if _SERVES.search(_bare(command)) or (stays and number == len(commands)):
                self._run(pending)
                pending = []
                self._leave_running(command.rstrip().removesuffix("&"))
            else:
                pending.append(command)
        self._run(pending, fails=fails)

    def _run(self, commands: list[str], *, fails: bool = False) -> None:
        if not "".join(commands).strip():
            return
        script = self._script("set -e\n" + _PRELUDE, commands)
        status = self._status(["bash", str(script)])
        printed = self._output.read_text(encoding="utf-8", errors="replace").replace(str(self.home), "~")
        self.printed += printed.replace(str(self._place / "work"), ".")
        if (status != 0) is not fails:
            text = "ended well, but the page says that it fails" if fails else f"exit status {status}"
            raise Failed(f"{text}\n{self.printed}")

    def _status(self, command: list[str]) -> int:
        """Into a file and not a pipe: what a command leaves in the background would hold a pipe open."""
        with self._output.open("wb") as output:
            process = subprocess.Popen(
                command, cwd=self._at(), env=self.variables, stdin=subprocess.DEVNULL, stdout=output,
                stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip
        try:
            return process.wait(_BLOCK_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            printed = self._output.read_text(encoding="utf-8", errors="replace")
            raise Failed(f"did not end in {_BLOCK_SECONDS} s\n{printed}") from None

    def _script(self, prelude: str, commands: list[str]) -> Path:
        self._scripts += 1  # a shell reads its script as it goes
        script = self._place / f"script-{self._scripts}.sh"
        before = f". {shlex.quote(str(self._state))}\n" if self._state.exists() else ""
        script.write_text(before + prelude + "".join(commands), encoding="utf-8")
        return script

    def _at(self) -> Path:
        """Where the last shell was when it ended."""
        left = Path(f"{self._state}.folder")
        return Path(left.read_text().strip()) if left.exists() else self.folder

    # Servers

    def has_gateway(self) -> bool:
        return any(terminal.is_gateway and terminal.alive for terminal in self._running)

    def gateway_printed(self) -> str:
        return "".join(terminal.printed for terminal in self._running if terminal.is_gateway)

    def wait_gateway_printed(self, enough: Callable[[str], bool]) -> None:
        """It tells of a request a moment after it was answered."""
        until = time.monotonic() + _REPORTED_SECONDS
        while not enough(self.gateway_printed()) and time.monotonic() < until:
            time.sleep(_POLL_SECONDS)

    def start_gateway(self) -> None:
        if not self.has_gateway():
            self._leave_running("wireglot serve\n")

    def _leave_running(self, command: str) -> None:
        is_gateway = _SERVES.search(_bare(command)) is not None
        if is_gateway and "--port" not in command:
            for other in [one for one in self._running if one.is_gateway]:
                other.interrupt()  # as the reader must before the port is free again
        terminal = Terminal(
            ["bash", str(self._script("", [command]))], self._at(), self.variables, is_gateway
        )
        self._running.append(terminal)
        until = time.monotonic() + _START_SECONDS
        while not (_answers(terminal.printed) if is_gateway else terminal.printed):
            if not terminal.alive or time.monotonic() > until:
                raise Failed(f"{command.strip()} does not run\n{terminal.printed}")
            time.sleep(_POLL_SECONDS)
        self.printed += terminal.printed

    # Python

    def python(self, source: str, page: str, line: int) -> None:
        if self._worker is None:
            self._worker = PythonWorker(self._at(), self.variables, self._place / "printed")
        problem, printed = self._worker.run(source, page, line, _BLOCK_SECONDS)
        self.printed = printed
        if problem:
            raise Failed(f"{problem}\n{printed}")


def commands_in(text: str) -> list[str]:
    """The lines of a block, those together that a shell reads together."""
    found: list[str] = []
    pending = ""
    for line in text.splitlines(keepends=True):
        pending += line
        if not line.rstrip("\n").endswith("\\") and _is_whole(pending):
            found.append(pending)
            pending = ""
    return [*found, pending] if pending else found


def _is_whole(text: str) -> bool:
    if not set(text) & set("'\"`<({"):  # nothing that goes on over lines, but for `do` and the like
        plain = (
            re.search(r"\b(?:do|then|else|in)\s*$|^\s*(?:for|if|while|until|case)\b", text, re.MULTILINE)
            is None
        )
        if plain:
            return True
    read = subprocess.run(["bash", "-n"], input=text.encode(), capture_output=True, check=False)
    return read.returncode == 0 and b"here-document" not in read.stderr


def _bare(command: str) -> str:
    """Without a comment."""
    with contextlib.suppress(ValueError):
        return " ".join(shlex.split(command, comments=True))
    return command


def _answers(printed: str) -> bool:
    """Whether somebody listens at an address that was printed."""
    found = _URL.search(printed)
    if found is None:
        return False
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", int(found[2])), timeout=1):
        return True
    return False
