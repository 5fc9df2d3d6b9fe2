"""Another gateway, given by a small file: what to install, how to start it, where its clients knock.

A recipe is TOML; docs/performance.md explains its fields. In `start`, `environment` and `files` these words
stand for what is known only when it runs:

    {port}       where it shall listen            {venv}       its own environment, if it has packages
    {upstream}   the mock upstream's port         {directory}  a folder of its own, with its files
    {python}     the interpreter that measures
"""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import msgspec

from tools.bench import processes
from tools.bench.scenarios import DIALECTS, PROVIDERS, Scenario
from tools.bench.targets import Target, post

SHIPPED = Path(__file__).with_name("recipes")


class BadRecipe(Exception):
    """A file that is no recipe, or an environment that could not be made."""


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


def install(recipe: Recipe, cache: Path) -> Path | None:
    """Its environment in the cache folder, made once for one list of packages."""
    if not recipe.packages:
        return None
    venv = cache / recipe.name
    mark = venv / ".packages"
    wanted = "\n".join(recipe.packages)
    if mark.exists() and mark.read_text(encoding="utf-8") == wanted:
        return venv
    _run([sys.executable, "-m", "venv", "--clear", str(venv)])
    pip = [str(venv / "bin" / "python"), "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    _run([*pip, *recipe.packages])
    mark.write_text(wanted, encoding="utf-8")
    return venv


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BadRecipe(f"{' '.join(command[:6])}: {done.stderr[-1000:]}")


def version(recipe: Recipe, venv: Path | None) -> str:
    """Of its first package."""
    if venv is None:
        return ""
    name = recipe.packages[0].partition("[")[0].partition("=")[0]
    code = f"import importlib.metadata; print(importlib.metadata.version({name!r}))"
    done = subprocess.run(
        [str(venv / "bin" / "python"), "-c", code], capture_output=True, text=True, check=False
    )
    return done.stdout.strip()


class Peer(Target):
    """A gateway that runs as its recipe says."""

    optional = True

    def __init__(self, recipe: Recipe, venv: Path | None, upstream: int, directory: Path) -> None:
        own = directory / recipe.name
        own.mkdir(parents=True, exist_ok=True)
        port = processes.free_port()
        words = {"port": port, "upstream": upstream, "venv": venv or "", "directory": own}
        words["python"] = sys.executable
        for name, text in recipe.files.items():
            (own / name).write_text(_filled(text, words), encoding="utf-8")
        environment = [f"{name}={_filled(text, words)}" for name, text in recipe.environment.items()]
        # Nobody's own settings or provider keys take part, ours neither.
        foreign = [name for name in os.environ if name.endswith("_API_KEY") or name == "PYTHONPATH"]
        argv = ["env", "-C", str(own), *(f"-u{name}" for name in foreign), *environment]
        argv += [_filled(word, words) for word in recipe.start]
        super().__init__(recipe.name, argv, port, directory / f"{recipe.name}.log")
        self.recipe = recipe
        self.headers = tuple(recipe.headers)
        self.patience = recipe.patience_seconds

    def takes(self, scenario: Scenario) -> bool:
        recipe = self.recipe
        return (
            scenario.family in recipe.scenarios
            and DIALECTS[scenario.client] in recipe.paths
            and DIALECTS[scenario.upstream] in recipe.upstreams
        )

    def path(self, scenario: Scenario) -> str:
        return _filled(self.recipe.paths[DIALECTS[scenario.client]], {"model": self._model(scenario)})

    def body(self, scenario: Scenario) -> bytes:
        return scenario.body(self._model(scenario))

    def _model(self, scenario: Scenario) -> str:
        plan = scenario.model.removeprefix(f"{PROVIDERS[scenario.upstream]}/")
        return _filled(self.recipe.model, {"model": plan, "upstream": DIALECTS[scenario.upstream]})

    def _probe(self) -> tuple[int, str]:
        letters: dict[str, str] = {str(dialect): letter for letter, dialect in DIALECTS.items()}
        client, upstream = next(iter(self.recipe.paths)), self.recipe.upstreams[0]
        scenario = Scenario(f"-{letters[client]}{letters[upstream]}", "tiny", 1)
        return post(self.port, self.path(scenario), self.body(scenario), self.headers)


def _filled(text: str, words: dict[str, Any]) -> str:
    # Not `format`: a file may have braces of its own.
    for name, value in words.items():
        text = text.replace("{" + name + "}", str(value))
    return text
