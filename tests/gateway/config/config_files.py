"""Configurations for tests: a file with the text given, and nothing of this machine's environment."""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from wireglot.gateway.config import ConfigError, load
from wireglot.gateway.settings import Settings

SECRET = "a-secret-of-the-tests-own"
QUIET = {"WIREGLOT_SECRET": SECRET}


def digest(key: str) -> str:
    return "sha256:" + hashlib.sha256(key.encode()).hexdigest()


def written(directory: Path, text: str, mode: int = 0o600) -> Path:
    path = directory / "wireglot.toml"
    path.write_text(dedent(text), encoding="utf-8")
    path.chmod(mode)
    return path


def loaded(directory: Path, text: str, environ: Mapping[str, str] = {}, **rest: Any) -> Settings:
    return load(written(directory, text), environ={**QUIET, **environ}, **rest)


def refused(directory: Path, text: str, environ: Mapping[str, str] = {}, **rest: Any) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        loaded(directory, text, environ, **rest)
    return caught.value


def problems(directory: Path, text: str, environ: Mapping[str, str] = {}, **rest: Any) -> dict[str, str]:
    """path -> "expected / found" of every problem."""
    error = refused(directory, text, environ, **rest)
    return {problem.path: f"{problem.expected} / {problem.found}" for problem in error.problems}
