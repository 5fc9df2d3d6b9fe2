"""Programs that pages call and that must not do here what they do for a reader.

    python -m proofs.docs_blocks.stand_ins pip install wireglot

An installer finds the tree installed, and fails for what is neither ours nor here. `make` takes the
environment as it is. Clients without a question of their own get one, so that they answer and end.
"""

from __future__ import annotations

import importlib.metadata
import os
import re
import shutil
import sys
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from clients import packages
from proofs.docs_blocks.blocks import ROOT
from wireglot_core.extras import SOURCE

_BEFORE: Final = "PYTHONPATH_OF_THE_PAGE"
_MODULE: Final = "proofs.docs_blocks.stand_ins"
_INSTALLERS: Final = ("pip", "pipx", "uv", "uvx", "npm")
_CORE: Final = "./core"
_OURS: Final = re.compile(rf"(?:{re.escape(SOURCE)}|dist/\S+\.whl)(?:\[([\w,-]+)\])?(?:==\S+)?")
_WITH_VALUE: Final = frozenset({"-r", "-c", "--from", "--only-binary", "--python", "--with"})


_CURL: Final = """for word in "$@"; do
    case $word in
        --fail*) exec CURL "$@" ;;
        --* | -*[!a-zA-Z]*) ;;
        -*f*) exec CURL "$@" ;;
    esac
done
exec CURL --fail-with-body "$@"
"""
"""A page that is answered with an error must say that it fails; curl by itself ends well then."""


@dataclass(frozen=True)
class _Client:
    package: packages.Package
    question: tuple[str, ...]
    """What makes it answer and end."""
    commands: frozenset[str] = frozenset()
    """Arguments that do so already."""
    variables: Mapping[str, str] = field(default_factory=dict)


CLIENTS: Final = {
    "claude": _Client(
        packages.CLAUDE_CODE,
        ("-p", "Say hello"),
        frozenset({"-p", "--version"}),
        {"IS_SANDBOX": "1", "DISABLE_AUTOUPDATER": "1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"},
    ),
    "codex": _Client(packages.CODEX, ("exec", "--skip-git-repo-check", "Say hello"), frozenset({"exec"})),
    "gemini": _Client(
        packages.GEMINI_CLI, ("-p", "Say hello"), frozenset({"-p"}), {"GEMINI_CLI_TRUST_WORKSPACE": "true"}
    ),
    "kimi": _Client(packages.KIMI_CODE, ("-p", "Say hello"), frozenset({"-p"})),
    "qwen": _Client(packages.QWEN_CODE, ("-p", "Say hello"), frozenset({"-p"})),
    "opencode": _Client(
        packages.OPENCODE,
        ("run", "Say hello"),
        frozenset({"run"}),
        {
            "OPENCODE_DISABLE_AUTOUPDATE": "1",
            "OPENCODE_DISABLE_MODELS_FETCH": "1",
            "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
        },
    ),
    "llm": _Client(packages.LLM, ("Say hello",), frozenset({"keys", "-m", "logs", "models", "Say hello"})),
    "aider": _Client(
        packages.AIDER,
        ("--no-git", "--yes-always", "--no-check-update", "--message", "Say hello"),
        frozenset({"--message"}),
        {"AIDER_ANALYTICS": "false"},
    ),
}


def written(folder: Path) -> Path:
    """A folder for the front of PATH."""
    folder.mkdir()
    _script(folder / "wireglot", f'exec {sys.executable} -m wireglot "$@"')
    for name in ("python", "python3"):
        _script(folder / name, f'exec {sys.executable} "$@"')
    for name in (*_INSTALLERS, *(client for client in CLIENTS if _program(client).exists())):
        # What a page calls may change its variables; the stand-in itself is found in any case.
        ours = f"env {_BEFORE}=$PYTHONPATH PYTHONPATH={ROOT}:{ROOT / 'src'} CLIENTS_DIR={packages.INSTALLED}"
        _script(folder / name, f'exec {ours} {sys.executable} -m {_MODULE} {name} "$@"')
    _script(folder / "activate", "")
    _script(folder / "pytest", f'exec {sys.executable} -m pytest "$@"')
    _script(folder / "curl", _CURL.replace("CURL", shutil.which("curl") or "/usr/bin/curl"))
    made = shutil.which("make") or "/usr/bin/make"
    as_it_is = " ".join(f"-o .venv/{name}" for name in (".dev", ".package", "bin/python"))
    _script(folder / "make", f'exec {made} --no-print-directory {as_it_is} "$@"')
    return folder


def called_clients(text: str) -> list[str]:
    return [name for name in CLIENTS if re.search(rf"(?:^|[;&|]|wireglot run) *{name}\b", text, re.MULTILINE)]


def missing_client(text: str) -> str:
    """A client that a block calls and that is not installed here."""
    return next((name for name in called_clients(text) if not _program(name).exists()), "")


def _script(path: Path, text: str) -> None:
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    path.chmod(0o755)


def _program(name: str) -> Path:
    return CLIENTS[name].package.binaries / name


def _client(name: str, arguments: Sequence[str]) -> None:
    client = CLIENTS[name]
    asked = client.commands.intersection(arguments)
    node = f"{packages.NODE22.binaries}:" if client.package.node22 else ""
    variables = {**os.environ, **client.variables, "PATH": node + os.environ["PATH"]}
    # llm finds its models by the one that it was started with.
    variables["PYTHONPATH"] = variables.pop(_BEFORE, "")
    os.execve(_program(name), [name, *arguments, *(() if asked else client.question)], variables)


def refused_install(arguments: Sequence[str]) -> str:
    """Why an installer fails here: what is asked for is neither ours nor here. Empty where it does not."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    clients = {name for package in packages.PACKAGES for name in package.versions}
    before = ""
    for argument in arguments:
        if argument.startswith("-") or before in _WITH_VALUE:
            before = argument
        elif (ours := _OURS.fullmatch(argument)) is not None:
            unknown = {*filter(None, (ours[1] or "").split(","))} - project["optional-dependencies"].keys()
            if unknown:
                return f"no such extra: {', '.join(sorted(unknown))}"
        elif argument == _CORE and (ROOT / _CORE / "pyproject.toml").is_file():
            pass
        elif argument not in clients:
            if re.match(r"wireglot\b", argument):
                return f"{argument}: no index has it, and {SOURCE} is what works"
            try:
                importlib.metadata.version(re.split(r"[\[=<>~]", argument)[0])
            except importlib.metadata.PackageNotFoundError:
                return f"{argument}: nothing that is here, and nothing is fetched"
    return ""


def main(name: str, arguments: list[str]) -> None:
    if name in CLIENTS:
        _client(name, arguments)
    if name in ("uv", "uvx", "pipx") and "wireglot" in arguments and "install" not in arguments:
        behind = arguments[arguments.index("wireglot") + 1 :]
        os.execvp("wireglot", ["wireglot", *behind])
    at = arguments.index("install") + 1 if "install" in arguments else 0
    sys.exit(refused_install(arguments[at:]) or 0)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
