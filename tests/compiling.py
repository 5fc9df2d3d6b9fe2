"""Test modules are compiled by a process beside the one that collects them.

pytest rewrites the assertions of each module and keeps what it compiled. In a fresh clone that is half of the time of
collecting, in which the other workers have nothing to do yet. This process begins with the module that is collected
last and ends where the two meet.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

_FORK = multiprocessing.get_context("fork")


def start_compiling(config: pytest.Config) -> Any:
    """The process, which is to be joined."""
    process = _FORK.Process(target=_compile_and_end, args=(config,), daemon=True)
    process.start()
    return process


def _compile_and_end(config: pytest.Config) -> None:
    with suppress(Exception):  # what it does not compile is compiled where it is collected
        compile_modules(reversed(list(_modules(config))), config)
    os._exit(0)


def _modules(config: pytest.Config) -> Iterator[Path]:
    """In the order in which they are collected."""
    for argument in config.args:
        place = Path(config.invocation_params.dir, argument.partition("::")[0])
        if place.is_dir():
            yield from sorted(place.rglob("test_*.py"))
        elif place.suffix == ".py":
            yield place


def compile_modules(modules: Iterable[Path], config: pytest.Config) -> None:
    # pytest has no public function for it. One that has moved fails tests/test_compiling.py.
    from _pytest.assertion import rewrite

    state = config.stash[rewrite.assertstate_key]
    for module in modules:
        folder = rewrite.get_cache_dir(module)
        kept = folder / f"{module.stem}{rewrite.PYC_TAIL}"
        if kept.exists() and kept.stat().st_mtime >= module.stat().st_mtime:
            continue
        if rewrite.try_makedirs(folder) and rewrite._read_pyc(module, kept) is None:
            written, code = rewrite._rewrite_test(module, config)
            rewrite._write_pyc(state, code, written, kept)
