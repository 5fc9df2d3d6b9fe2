"""Another gateway, given by a small file: what to install, how to start it, where each dialect is.

In `start`, `environment`, `files` and `headers` these words stand for what is known only when it runs:

    {port}      where it shall listen        {upstream}  the double's port
    {venv}      its own environment          {npm}       the folder with its packages of npm
    {folder}    a folder of its own, with its files
    {source}    the copy of its sources that it was built in
    {program}   what was built of its Go module
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import msgspec

SHIPPED = Path(__file__).with_name("recipes")


class BadRecipe(Exception):
    """A file that is no recipe, or packages that could not be had."""


class Source(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A tag of a repository, and what makes a program of it, step by step, in a copy of its own."""

    repository: str
    tag: str
    commit: str
    folders: list[str]
    """Of the repository, those that are needed."""
    files: dict[str, str] = {}
    """What the sources want and do not have."""
    build: list[list[str]]
    program: str = ""
    """What they make, in the copy."""


class GoModule(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A version of a module in Go's module index, and the package in it that is the program."""

    path: str
    version: str
    sum: str
    """As in go.sum: another content is refused."""
    package: str


class Recipe(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    name: str
    start: list[str]
    roots: dict[str, str]
    """Dialect -> what stands before its paths."""
    models: dict[str, str]
    """Dialect of the upstream -> the model that a client names to be led there."""
    packages: list[str] = []
    """Of the Python package index, into an environment of its own."""
    npm: list[str] = []
    overrides: dict[str, str] = {}
    """Versions of packages that those of `packages` or `npm` bring along, whatever these ask for."""
    source: Source | None = None
    """Where it is built from its sources."""
    module: GoModule | None = None
    """Where it is built from Go's module index."""
    upstreams: dict[str, list[str]] = {}
    """Dialect -> the upstreams that it is served over, where that is not all of `models`."""
    headers: dict[str, dict[str, str]] = {}
    """Dialect of the upstream -> headers that its clients send to be led there."""
    key: str = "client-key-of-the-probe"
    environment: dict[str, str] = {}
    files: dict[str, str] = {}
    apart: dict[str, str] = {}
    """What is missing here and not in the gateway: a pattern of `case: words` -> the reason. Such a
    case is listed apart and counts for nothing."""
    patience_seconds: float = 120.0


class Installed(msgspec.Struct, frozen=True):
    venv: Path | None
    npm: Path | None
    version: str
    source: Path | None = None
    program: Path | None = None

    def words(self) -> dict[str, object]:
        """What stands for it in a recipe."""
        return {
            "venv": self.venv or "",
            "npm": self.npm or "",
            "source": self.source or "",
            "program": self.program or "",
        }


def reason_apart(recipe: Recipe, case: str, words: str) -> str:
    """Why a case that did not work says nothing about the gateway; "" where it does."""
    said = f"{case}: {words}"
    return next((reason for pattern, reason in recipe.apart.items() if re.search(pattern, said)), "")


def read(name: str) -> Recipe:
    """A file, or the name of one that is shipped."""
    shipped = SHIPPED / f"{name}.toml"
    path = shipped if shipped.exists() else Path(name)
    try:
        return msgspec.convert(tomllib.loads(path.read_text(encoding="utf-8")), Recipe)
    except (OSError, tomllib.TOMLDecodeError, msgspec.ValidationError) as fault:
        raise BadRecipe(f"{path}: {fault}") from None


def install(recipe: Recipe, cache: Path) -> Installed:
    """Once for one list of packages; then they are there."""
    if recipe.packages:
        venv = cache / recipe.name
        listed = [*recipe.packages, *_pinned(recipe)]
        if _is_new(venv, listed):
            _run([sys.executable, "-m", "venv", "--clear", str(venv)])
            pip = [str(venv / "bin" / "python"), "-m", "pip", "install", "-q", "--disable-pip-version-check"]
            if recipe.overrides:  # pip itself has no such thing
                (venv / "overrides.txt").write_text("\n".join(_pinned(recipe)), encoding="utf-8")
                _run([*pip, "uv"])
                pip = [
                    str(venv / "bin" / "uv"),
                    "pip",
                    "install",
                    "-q",
                    "--python",
                    str(venv / "bin" / "python"),
                ]
                pip += ["--override", str(venv / "overrides.txt")]
            _run([*pip, *recipe.packages])
            _mark(venv, listed)
        name = recipe.packages[0].partition("[")[0].partition("=")[0]
        code = f"import importlib.metadata; print(importlib.metadata.version({name!r}))"
        return Installed(venv, None, _run([str(venv / "bin" / "python"), "-c", code]).strip())
    if recipe.npm:
        folder = cache / recipe.name
        reported = [*recipe.npm, *_pinned(recipe)]
        if _is_new(folder, reported):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            about = json.dumps({"overrides": recipe.overrides})
            (folder / "package.json").write_text(about, encoding="utf-8")
            _run(["npm", "install", "--silent", "--no-audit", "--no-fund", *recipe.npm], folder)
            _mark(folder, reported)
        name = recipe.npm[0]
        name = name[: name.rindex("@")] if "@" in name[1:] else name
        described = folder / "node_modules" / name / "package.json"
        version = str(json.loads(described.read_text(encoding="utf-8"))["version"])
        return Installed(None, folder / "node_modules", version)
    if recipe.source is not None:
        folder = cache / recipe.name
        reported = [recipe.source.commit, *(" ".join(step) for step in recipe.source.build)]
        if _is_new(folder, reported):
            _build(recipe.source, folder)
            _mark(folder, reported)
        return Installed(None, None, recipe.source.tag.rpartition("/")[2].removeprefix("v"), folder)
    if recipe.module is not None:
        folder = cache / recipe.name
        program = folder / "program"
        told = [f"{recipe.module.path}@{recipe.module.version} {recipe.module.package} {recipe.module.sum}"]
        if _is_new(folder, told):
            _build_module(recipe.module, folder, program)
            _mark(folder, told)
        return Installed(None, None, recipe.module.version.removeprefix("v"), program=program)
    from wireglot import __version__

    return Installed(None, None, __version__)


def _pinned(recipe: Recipe) -> list[str]:
    return [f"{name}=={version}" for name, version in recipe.overrides.items()]


def _build(source: Source, folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    tagged = ["clone", "-q", "--no-checkout", "--depth", "1", "--branch", source.tag]
    _run(["git", *tagged, source.repository, str(folder)])
    _run(["git", "sparse-checkout", "set", *source.folders], folder)
    _run(["git", "checkout", "-q"], folder)
    if (found := _run(["git", "rev-parse", "HEAD"], folder).strip()) != source.commit:
        raise BadRecipe(f"{source.repository}: {source.tag} is {found}, expected {source.commit}")
    for name, text in source.files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    for step in source.build:
        _run(step, folder)


def _build_module(module: GoModule, folder: Path, program: Path) -> None:
    """As the main module: its own go.sum says which content its dependencies must have."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    found = json.loads(_run(["go", "mod", "download", "-json", f"{module.path}@{module.version}"], folder))
    if found["Sum"] != module.sum:
        raise BadRecipe(f"{module.path}: {module.version} is {found['Sum']}, expected {module.sum}")
    sources = folder / "sources"
    shutil.copytree(found["Dir"], sources, copy_function=shutil.copyfile)
    for path in (sources, *sources.rglob("*")):
        if path.is_dir():
            path.chmod(0o755)
    _run(["go", "build", "-trimpath", "-ldflags", "-s -w", "-o", str(program), module.package], sources)


def filled(text: str, words: dict[str, object]) -> str:
    # Not `format`: a file may have braces of its own.
    for name, value in words.items():
        text = text.replace("{" + name + "}", str(value))
    return text


def clean_environment() -> dict[str, str]:
    """Nobody's own settings or provider keys take part."""
    return {
        name: value
        for name, value in os.environ.items()
        if not name.endswith(("_API_KEY", "_proxy", "_PROXY")) and not name.startswith("WIREGLOT_")
    }


def _is_new(folder: Path, packages: list[str]) -> bool:
    mark = folder / ".packages"
    return not mark.exists() or mark.read_text(encoding="utf-8") != "\n".join(packages)


def _mark(folder: Path, packages: list[str]) -> None:
    (folder / ".packages").write_text("\n".join(packages), encoding="utf-8")


def _run(command: list[str], folder: Path | None = None) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    if done.returncode:
        raise BadRecipe(f"{' '.join(command[:6])}: {done.stderr[-1000:]}")
    return done.stdout
