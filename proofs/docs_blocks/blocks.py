"""The code blocks of a page, and what the comments above them say about running them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
WORDS: Final = frozenset({"gateway", "goes on", "clean", "checkout", "fails", "stays", "whole"})
"""What may stand in `<!-- run: ... -->`, besides variables."""
SHELL: Final = frozenset({"sh", "bash"})
_TOP: Final = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CODE_OF_CONDUCT.md")
_FENCE: Final = re.compile(r"^( *)(```+|~~~+) *([\w+-]*).*$")
_COMMENT: Final = re.compile(r"^ *<!--(.*?)-->\s*$", re.DOTALL)
_MARKER: Final = re.compile(r"(run all|run|not run|output|file|given)(?::\s*(.*)|)", re.DOTALL)
_OTHERS: Final = re.compile(r"generated: [\w-]+|end|Generated .*", re.DOTALL)
"""Comments of `make docs`."""
_VARIABLE: Final = re.compile(r"([A-Z][A-Z0-9_]*)(?:=(.*))?")
MADE_UP: Final = "made-up-0123456789abcdef"


class BadPage(Exception):
    """A comment above a block that nobody understands, or a block that cannot be distinguished from text."""


@dataclass(frozen=True)
class Block:
    page: str
    line: int
    """Of the first line inside the fence, counted from 1."""
    language: str
    text: str
    words: frozenset[str] = frozenset()
    variables: tuple[tuple[str, str], ...] = ()
    file: str = ""
    given: str = ""
    output: str = ""
    """Whose output it shows: "command" (the block before it) or "gateway" (its terminal)."""
    about: bool = False
    """Numbers of that output are others at each run or on each machine."""
    not_run: str = ""

    @property
    def place(self) -> str:
        return f"{self.page}:{self.line}"

    @property
    def is_session(self) -> bool:
        """Lines that begin with `$ ` are commands, what is below them is what they print."""
        return self.language in ("", "console") and self.text.startswith("$ ")


def pages(root: Path = ROOT) -> dict[str, str]:
    """The text of every page, by its path. The changelog tells of what was, and is none."""
    found = [*(root / name for name in _TOP), *sorted((root / "docs").rglob("*.md"))]
    return {path.relative_to(root).as_posix(): path.read_text(encoding="utf-8") for path in found}


def blocks_of(page: str, text: str) -> list[Block]:
    """In the order of the page; BadPage where a comment cannot be understood."""
    return _Reader(page, text.splitlines()).read()


@dataclass
class _Reader:
    page: str
    lines: list[str]
    at: int = 0
    found: list[Block] = field(default_factory=list)
    markers: list[tuple[str, str]] = field(default_factory=list)
    """Those that wait for their block."""
    everywhere: Block = field(default_factory=lambda: Block("", 0, "", ""))
    behind_shell: bool = False
    """No heading and no other block since the last shell block."""

    def read(self) -> list[Block]:
        self.everywhere = replace(self.everywhere, page=self.page)
        blank = True
        while self.at < len(self.lines):
            line = self.lines[self.at]
            if _FENCE.match(line):
                self._fence()
            elif line.lstrip().startswith("<!--"):
                self._comment()
            elif line.strip():
                if self.markers:
                    raise self._bad(f"`{self.markers[0][0]}` belongs to no block")
                if line.startswith("    ") and blank and not self._in_list():
                    raise self._bad("a block by indentation: write a fence, with its language")
                self.behind_shell &= not line.startswith("#")
                self.at += 1
            else:
                self.at += 1
            blank = not line.strip()
        if self.markers:
            raise self._bad(f"`{self.markers[0][0]}` belongs to no block")
        return self.found

    def _bad(self, problem: str) -> BadPage:
        return BadPage(f"{self.page}:{self.at + 1}: {problem}")

    def _in_list(self) -> bool:
        """Whether the last line that is not indented belongs to a list, whose items go on indented."""
        for line in reversed(self.lines[: self.at]):
            if line.strip() and not line.startswith("  "):
                return re.match(r"[-*+] |\d+[.)] ", line) is not None
        return False

    def _comment(self) -> None:
        start = self.at
        while "-->" not in self.lines[self.at]:
            self.at += 1
            if self.at == len(self.lines):
                self.at = start
                raise self._bad("a comment that does not end")
        said = _COMMENT.match("\n".join(self.lines[start : self.at + 1]))
        self.at += 1
        if said is None or _OTHERS.fullmatch(said[1].strip()):
            return
        marker = _MARKER.fullmatch(said[1].strip("\n "))
        if marker is None:
            if self._before_a_fence():
                raise self._bad(f"the comment {said[1].strip()!r} says nothing about the block below it")
            return
        name, value = marker[1], (marker[2] or "").strip("\n ")
        if name != "run all":
            self.markers.append((name, value))
        elif self.found:
            raise self._bad("`run all` stands before the first block")
        else:
            self.everywhere = self._run(self.everywhere, value)

    def _before_a_fence(self) -> bool:
        ahead = next((line for line in self.lines[self.at :] if line.strip()), "")
        return _FENCE.match(ahead) is not None

    def _fence(self) -> None:
        opening = _FENCE.match(self.lines[self.at])
        assert opening is not None
        indent, fence, language = opening.groups()
        self.at += 1
        start = self.at
        while self.at < len(self.lines) and self.lines[self.at].strip() != fence:
            self.at += 1
        if self.at == len(self.lines):
            self.at = start - 1
            raise self._bad("a fence that does not end")
        body = [line.removeprefix(indent) for line in self.lines[start : self.at]]
        block = replace(self.everywhere, line=start + 1, language=language, text="\n".join(body) + "\n")
        for name, value in self.markers:
            block = self._marked(block, name, value)
        self.found.append(self._settled(block))
        self.markers = []
        self.behind_shell = language in SHELL
        self.at += 1

    def _marked(self, block: Block, name: str, value: str) -> Block:
        match name:
            case "run":
                return self._run(block, value)
            case "output":
                words = {word.strip() for word in value.split(";") if word.strip()}
                if words - {"gateway", "about"}:
                    raise self._bad(f"output of {value!r}: expected nothing, `gateway` or `about`")
                whose = "gateway" if "gateway" in words else "command"
                return replace(block, output=whose, about="about" in words)
        if not value:
            raise self._bad(f"`{name}` says nothing")
        match name:
            case "file":
                return replace(block, file=value)
            case "given":
                return replace(block, given=value + "\n")
            case _:
                return replace(block, not_run=value)

    def _run(self, block: Block, value: str) -> Block:
        said = [part.strip() for part in value.split(";")]
        block = block if "clean" not in said else replace(block, words=frozenset(), variables=())
        words, variables = set(block.words), dict(block.variables)
        for word in said:
            if word in WORDS:
                words.add(word)
            elif (variable := _VARIABLE.fullmatch(word)) is not None:
                variables[variable[1]] = MADE_UP if variable[2] is None else variable[2]
            else:
                raise self._bad(f"run: {word!r}: expected some of {', '.join(sorted(WORDS))}, or a variable")
        return replace(block, words=frozenset(words), variables=tuple(variables.items()))

    def _settled(self, block: Block) -> Block:
        """With what goes without saying."""
        said = block.output or block.not_run or block.file
        if block.language in ("", "text") and not block.is_session and not said:
            if not self.behind_shell:
                raise self._bad("what is this block? `output`, `file`, or `not run` with the reason")
            return replace(block, output="command")
        return block
