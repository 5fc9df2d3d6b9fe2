"""Another gateway, given by a small file: what to install, how to start it, where its clients knock.

A recipe is TOML; docs/performance.md explains its fields. In `start`, `environment` and `files` these words
stand for what is known only when it runs:

    {port}       where it shall listen            {venv}       its own environment, if it has packages
    {upstream}   the mock upstream's port         {directory}  a folder of its own, with its files
    {python}     the interpreter that measures    {npm} {source} {program}  see proofs/boards/recipe.py
"""

from __future__ import annotations

import os
import sys
import tomllib
from pathlib import Path
from typing import Final

import msgspec

from proofs.bench import processes
from proofs.bench.scenarios import DIALECTS, PROVIDERS, Scenario
from proofs.bench.targets import Target, post
from proofs.boards import recipe as probed
from proofs.boards.recipe import BadRecipe, Installed, filled

SHIPPED = Path(__file__).with_name("recipes")
_LEFT_OUT: Final = {"__pycache__", "pip", "setuptools", "pkg_resources"}


class Recipe(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    name: str
    start: list[str]
    paths: dict[str, str]
    """Where a client of each dialect sends its requests; a dialect that is not here is not measured."""
    scenarios: list[str]
    """Families: A, B, D, DB, P, DP, ..."""
    upstreams: tuple[str, ...] = ("openai-chat",)
    """The dialects it can ask the mock upstream in."""
    packages: list[str] = []
    """From the Python package index, into an environment of its own."""
    installed: str = ""
    """Or the name of a recipe of proofs/boards: the same version is measured and probed."""
    headers: list[str] = []
    environment: dict[str, str] = {}
    files: dict[str, str] = {}
    """Name and text: written before it is started."""
    model: str = "{model}"
    """What a client names: {model} is the mock's plan, {upstream} the upstream's dialect."""
    patience_seconds: float = 60.0
    """For its start."""


def read(path: Path) -> Recipe:
    try:
        return msgspec.convert(tomllib.loads(path.read_text(encoding="utf-8")), Recipe)
    except (OSError, tomllib.TOMLDecodeError, msgspec.ValidationError) as fault:
        raise BadRecipe(f"{path}: {fault}") from None


def find(name: str) -> Path:
    """A file, or the name of one that is shipped."""
    shipped = SHIPPED / f"{name}.toml"
    return shipped if shipped.exists() else Path(name)


def install(recipe: Recipe, cache: Path) -> Installed:
    """Once for one list of packages; then it is there."""
    if recipe.installed:
        return probed.install(probed.read(recipe.installed), cache)
    named = probed.Recipe(name=recipe.name, start=[], roots={}, models={}, packages=recipe.packages)
    return probed.install(named, cache)


def size(recipe: Recipe, installed: Installed) -> float:
    """MiB on disk of what was installed for it: a program, or packages without their interpreter; 0: nothing
    was."""
    if recipe.installed and (source := probed.read(recipe.installed).source):
        assert installed.source is not None
        return (installed.source / source.program).stat().st_size / 2**20
    root = installed.program or installed.npm or installed.venv
    return tree_size(root) if root else 0.0


def tree_size(root: Path) -> float:
    """MiB, without what makes environments, and what Python compiles when it first runs."""
    paths = [root, *root.rglob("*")] if root.is_dir() else [root]
    kept = (
        path for path in paths if not _LEFT_OUT & set(path.relative_to(root).parts) and not path.is_symlink()
    )
    return sum(path.stat().st_size for path in kept if path.is_file()) / 2**20


class Peer(Target):
    """A gateway that runs as its recipe says."""

    optional = True

    def __init__(self, recipe: Recipe, installed: Installed, upstream: int, directory: Path) -> None:
        own = directory / recipe.name
        own.mkdir(parents=True, exist_ok=True)
        port = processes.free_port()
        words: dict[str, object] = {"port": port, "upstream": upstream, "directory": own}
        words |= {"python": sys.executable, **installed.words()}
        for name, text in recipe.files.items():
            path = own / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(filled(text, words), encoding="utf-8")
        environment = [f"HOME={own}"]
        environment += [f"{name}={filled(text, words)}" for name, text in recipe.environment.items()]
        # Nobody's own settings or provider keys take part, ours neither.
        foreign = [name for name in os.environ if name.endswith("_API_KEY") or name == "PYTHONPATH"]
        argv = ["env", "-C", str(own), *(f"-u{name}" for name in foreign), *environment]
        argv += [filled(word, words) for word in recipe.start]
        super().__init__(recipe.name, argv, port, directory / f"{recipe.name}.log")
        self.recipe = recipe
        self.headers = tuple(filled(line, words) for line in recipe.headers)
        self.patience = recipe.patience_seconds

    def takes(self, scenario: Scenario) -> bool:
        recipe = self.recipe
        return (
            scenario.family in recipe.scenarios
            and DIALECTS[scenario.client] in recipe.paths
            and DIALECTS[scenario.upstream] in recipe.upstreams
        )

    def path(self, scenario: Scenario) -> str:
        return filled(self.recipe.paths[DIALECTS[scenario.client]], {"model": self._model(scenario)})

    def body(self, scenario: Scenario) -> bytes:
        return scenario.body(self._model(scenario))

    def _model(self, scenario: Scenario) -> str:
        plan = scenario.model.removeprefix(f"{PROVIDERS[scenario.upstream]}/")
        return filled(self.recipe.model, {"model": plan, "upstream": DIALECTS[scenario.upstream]})

    def _probe(self) -> tuple[int, str]:
        letters: dict[str, str] = {str(dialect): letter for letter, dialect in DIALECTS.items()}
        client, upstream = next(iter(self.recipe.paths)), self.recipe.upstreams[0]
        scenario = Scenario(f"-{letters[client]}{letters[upstream]}", "tiny", 1)
        return post(self.port, self.path(scenario), self.body(scenario), self.headers)
