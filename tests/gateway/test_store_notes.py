"""What would go wrong in silence with a store that several share is reported at the start."""

from __future__ import annotations

from pathlib import Path

import pytest

from wireglot.gateway.config import load


def notes(tmp_path: Path, toml: str) -> str:
    file = tmp_path / "wireglot.toml"
    file.write_text(f"[providers.demo]\n{toml}")
    return " | ".join(load(file, environ={"HOME": str(tmp_path)}).notes)


@pytest.mark.parametrize(
    "store", ['url = "postgresql://u@h/d"', 'shared = "redis://h"', 'url = "postgres://u@h/d"']
)
def test_a_shared_store_wants_a_shared_secret(tmp_path: Path, store: str) -> None:
    assert "the store is shared, and server.secret is not" in notes(tmp_path, f"[store]\n{store}\n")
    text = f'[store]\n{store}\n[server]\nsecret = "one-for-all-machines"\n'
    assert "this machine's own" not in notes(tmp_path, text)


def test_workers_without_a_common_store_are_reported(tmp_path: Path) -> None:
    assert "own memory" in notes(tmp_path, '[store]\nurl = "memory:"\n[server]\nworkers = 2\n')
    assert "own memory" not in notes(tmp_path, '[store]\nurl = "memory:"\n')
    assert "own memory" not in notes(tmp_path, "[server]\nworkers = 2\n")
