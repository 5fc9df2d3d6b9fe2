"""Pages, block by block; only inside namespaces of their own.

Reads lines of `["PAGE", "TIER"]` and answers each with a JSON line for each block and an empty line.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import yaml

from clients.packages import AI_SDK
from proofs.docs_blocks import checks, outputs, vendors
from proofs.docs_blocks.blocks import MADE_UP, ROOT, SHELL, Block, blocks_of
from proofs.docs_blocks.desk import Desk, Failed
from proofs.docs_blocks.result import Result, State
from proofs.docs_blocks.stand_ins import called_clients, missing_client

_DEMO_SAYS: Final = ("the demo model", "The tool answered")
_CONFIGURATIONS: Final = (checks.CONFIGURATION, "~/.config/wireglot/wireglot.toml")


def is_program(block: Block) -> bool:
    return block.language in (*SHELL, "python", "js") or block.is_session


def needs_network(block: Block, *, whole: bool) -> bool:
    """Whether it is run in this tier, and so must be kept from the real one."""
    return is_program(block) and not block.not_run and (whole or "whole" not in block.words)


class Page:
    def __init__(self, blocks: list[Block], whole: bool, folder: Path, variables: dict[str, str]) -> None:
        self._blocks = blocks
        self._whole = whole
        self._folder = folder
        self._variables = variables
        self._desk: Desk | None = None
        self._desks = 0
        self._skipped = ""
        """Why the last program of the page was not run, if it was not: its output is not there, either."""
        self._kept_names = frozenset(vendors.key_variables())
        self._configuration: dict[str, Any] = {}
        """What the TOML blocks that go on have said so far."""

    def results(self) -> Iterator[Result]:
        try:
            for block in self._blocks:
                try:
                    state, detail = self._one(block)
                except (
                    Failed,
                    ValueError,
                    yaml.YAMLError,
                ) as problem:  # or text that cannot be read
                    state, detail = "failed", str(problem)
                yield Result(block.page, block.line, block.language, state, detail)
        finally:
            if self._desk is not None:
                self._desk.close()

    def _one(self, block: Block) -> tuple[State, str]:
        if block.not_run:
            self._skipped = block.not_run if block.language in (*SHELL, "python") else self._skipped
            return "not run", block.not_run
        if block.output:
            return self._compared(block)
        if not is_program(block):
            return self._checked(block)
        if block.language == "js" and not self._whole:
            absent = checks.script(block.text, self._folder)
            return ("left out", absent) if absent else ("checked", "")
        self._skipped = self._not_now(block)
        if self._skipped:
            return "left out", self._skipped
        desk = self._prepared(block)
        if block.language == "python":
            if block.given:
                desk.python(block.given, block.page, 1)
            desk.python(block.text, str(ROOT / block.page), block.line)
        elif block.language == "js":
            desk.write("block.mjs", block.text)
            (desk.folder / "node_modules").symlink_to(AI_SDK.folder / "node_modules")
            desk.shell(block.given + "node block.mjs\n")
        elif block.is_session:
            desk.shell(block.given)
            self._session(desk, block)
        else:
            if block.file:
                desk.write(block.file, block.text)
            desk.shell(block.given + block.text, fails="fails" in block.words, stays="stays" in block.words)
            must_have_answered(block.text, desk.printed)
        return "ran", ""

    def _not_now(self, block: Block) -> str:
        if "whole" not in block.words:
            return ""
        if not self._whole:
            return "whole"
        absent = missing_client(block.text)
        return f"{absent} is not installed here" if absent else ""

    def _prepared(self, block: Block) -> Desk:
        if self._desk is None or "goes on" not in block.words:
            desk = self._new_desk()
        else:
            desk = self._desk
        kept = {
            name: value for name, value in block.variables if name in self._kept_names and value == MADE_UP
        }
        desk.variables.update((name, value) for name, value in block.variables if name not in kept)
        if kept:
            # Where `wireglot run` keeps them: the gateway has the keys, and the client beside it has not.
            desk.write(
                "~/.local/share/wireglot/credentials",
                "".join(f"{name}={value}\n" for name, value in kept.items()),
            )
        if "checkout" in block.words:
            desk.use_checkout()
        if "gateway" in block.words:
            desk.start_gateway()
        return desk

    def _new_desk(self) -> Desk:
        if self._desk is not None:
            self._desk.close()
        self._desks += 1
        self._desk = Desk(self._folder / f"desk-{self._desks}", self._variables)
        return self._desk

    def _session(self, desk: Desk, block: Block) -> None:
        """Each command, and what is shown below it."""
        for part in ("\n" + block.text).split("\n$ ")[1:]:
            command, _, shown = part.partition("\n")
            while command.endswith("\\"):
                more, _, shown = shown.partition("\n")
                command += "\n" + more.removeprefix("> ")
            desk.shell(command + "\n", fails="fails" in block.words)
            _agreed(outputs.difference(shown, desk.printed))

    def _compared(self, block: Block) -> tuple[State, str]:
        if self._skipped:
            return "left out", self._skipped
        if self._desk is None:
            raise Failed("nothing ran that could have printed it")
        if block.output == "gateway":
            self._desk.wait_gateway_printed(
                lambda printed: not outputs.missing(block.text, printed, about=block.about)
            )
            _agreed(outputs.missing(block.text, self._desk.gateway_printed(), about=block.about))
        elif block.language == "json":
            _agreed(outputs.json_difference(block.text, self._desk.printed))
        else:
            _agreed(outputs.difference(block.text, self._desk.printed, about=block.about))
        return "compared", ""

    def _checked(self, block: Block) -> tuple[State, str]:
        absent = self._by_kind(block)
        if block.file:
            desk = self._desk if self._desk is not None and "goes on" in block.words else self._new_desk()
            desk.write(block.file, block.text)
        return ("left out", absent) if absent else ("checked", "")

    def _by_kind(self, block: Block) -> str:
        """Empty, or why it could not be checked here."""
        absent = ""
        match block.language:
            case "toml" if not block.file or block.file in _CONFIGURATIONS:
                before = self._configuration if "goes on" in block.words else {}
                self._configuration = checks.configuration(block.text, before, self._folder)
            case "toml":
                checks.toml_file(block.file, block.text, self._folder)
            case "json" | "jsonc":
                checks.json_text(block.text)
            case "yaml":
                checks.yaml_text(block.text, self._folder)
            case "nginx":
                absent = checks.nginx(block.text, self._folder)
            case "ini":
                absent = checks.unit(block.text, self._folder)
            case "mermaid":
                checks.diagram(block.text)
            case _ if not block.file:
                raise Failed(f"nobody knows how to check {block.language or 'a block without language'}")
        return absent


def must_have_answered(commands: str, printed: str) -> None:
    """Some clients end well although nobody answered."""
    asks = called_clients(commands) and "--print-env" not in commands
    words = " ".join(outputs.plain(printed).split())
    if asks and not any(says in words for says in _DEMO_SAYS):
        raise Failed(f"no answer of the model was printed\n{printed}")


def _agreed(difference: str) -> None:
    if difference:
        raise Failed(difference)


def main() -> None:
    if os.getpid() != 1:
        raise SystemExit("only as the first process of a namespace: it ends all others of it")
    with (
        tempfile.TemporaryDirectory(prefix="wireglot-vendors-") as certificates,
        vendors.standing_in(Path(certificates)) as trust,
    ):
        for line in sys.stdin:
            page, tier = json.loads(line)
            text = (ROOT / page).read_text(encoding="utf-8")
            with tempfile.TemporaryDirectory(prefix="wireglot-page-") as name:
                for result in Page(blocks_of(page, text), tier == "whole", Path(name), trust).results():
                    print(json.dumps(result.__dict__), flush=True)
                _end_others()
            print(flush=True)


def _end_others() -> None:
    """Whatever a page has started ends with it."""
    with contextlib.suppress(ProcessLookupError, ChildProcessError):
        os.kill(-1, signal.SIGKILL)
        while True:
            os.wait()


if __name__ == "__main__":
    main()
