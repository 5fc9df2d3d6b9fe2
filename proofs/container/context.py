"""What a build may copy: the tree without what `.dockerignore` leaves out."""

from __future__ import annotations

import re
import shutil
from pathlib import Path, PurePosixPath

from proofs.container.dockerfile import Instruction, Unreadable


class Context:
    def __init__(self, tree: Path) -> None:
        self._tree = tree
        lines = (tree / ".dockerignore").read_text(encoding="utf-8").splitlines()
        rules = [line for line in lines if line.strip() and not line.startswith("#")]
        if rules[:1] != ["*"]:
            raise Unreadable(".dockerignore: expected * first: what is shipped is named")
        self.named = [rule[1:] for rule in rules[1:] if rule.startswith("!")]
        everywhere = [rule for rule in rules[1:] if not rule.startswith("!")]
        if odd := [rule for rule in everywhere if not re.fullmatch(r"\*\*/[\w.-]+", rule)]:
            raise Unreadable(f".dockerignore: {odd[0]}: expected **/NAME")
        self.never = {rule.removeprefix("**/") for rule in everywhere}

    def sources(self, copy: Instruction) -> list[Path]:
        """Of a COPY without --from."""
        *sources, _ = copy.words()
        for source in sources:
            if PurePosixPath(source).parts[0] not in self.named:
                raise Unreadable(f"COPY {source}: .dockerignore leaves it out")
            if not (self._tree / source).exists():
                raise Unreadable(f"COPY {source}: not in the tree")
        return [self._tree / source for source in sources]

    def copy(self, copy: Instruction, target: Path) -> None:
        """A directory's content, files under their names."""
        for source in self.sources(copy):
            copy_into(source, target, skip=self.never)


def copy_into(source: Path, target: Path, skip: set[str]) -> None:
    if source.is_dir():
        shutil.copytree(
            source, target, symlinks=True, dirs_exist_ok=True, ignore=lambda _, names: skip & set(names)
        )
    else:
        target.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, target)
