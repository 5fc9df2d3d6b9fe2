"""`wireglot store`: what is remembered, looked at, cleaned, moved, while a gateway may run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.tiers import rows
from wireglot.cli import main
from wireglot.cli.store import _size
from wireglot.testing.live_gateway import LiveGateway


@pytest.fixture
def used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the store of a gateway that has answered: two stored responses, one turn of a session."""
    folder = tmp_path / "data"
    monkeypatch.setenv("XDG_DATA_HOME", str(folder))
    monkeypatch.delenv("WIREGLOT_CONFIG", raising=False)
    monkeypatch.chdir(tmp_path)
    with LiveGateway(folder=folder) as live:
        for text in ("a secret word", "another"):
            _ask(live, "/v1/responses", {"model": "demo-gemini", "input": text})
        message = {"role": "user", "content": "hi"}
        _ask(live, "/v1/chat/completions", {"model": "demo", "messages": [message], "conversation": "trip"})
    return folder


def _ask(live: LiveGateway, path: str, body: dict[str, object]) -> None:
    from urllib.request import Request, urlopen

    request = Request(live.url + path, json.dumps(body).encode(), {"content-type": "application/json"})
    with urlopen(request) as answer:
        assert answer.status == 200


def _stats(capsys: pytest.CaptureFixture[str]) -> dict[str, int]:
    capsys.readouterr()
    assert main(["store", "stats", "--json"]) == 0
    kinds = json.loads(capsys.readouterr().out)["kinds"]
    return {kind: about["count"] for kind, about in kinds.items()}


def test_stats_tell_what_is_there(used: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = _stats(capsys)
    assert found["response"] == 2
    assert found["conversation"] == 1
    assert found["usage"] == 3
    assert main(["store", "stats"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("SQLite ")
    assert "response" in shown


def test_an_export_is_sealed_and_comes_back_in_another_store(
    used: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "all.jsonl"
    assert main(["store", "export", str(file)]) == 0
    assert b"a secret word" not in file.read_bytes()
    assert file.stat().st_mode & 0o077 == 0
    before = _stats(capsys)
    other = tmp_path / "other.toml"
    other.write_text(
        f'[providers.demo]\n[store]\nurl = "sqlite:///{tmp_path}/other.db"\n'.replace("////", "///")
    )
    assert main(["store", "--config", str(other), "import", str(file)]) == 0
    capsys.readouterr()
    assert main(["store", "--config", str(other), "stats", "--json"]) == 0
    kinds = json.loads(capsys.readouterr().out)["kinds"]
    assert {kind: about["count"] for kind, about in kinds.items()} == before


def test_a_damaged_export_is_refused_with_its_line(
    used: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "all.jsonl"
    main(["store", "export", str(file)])
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join([*lines[:2], b"{nonsense\n", *lines[3:]]))
    assert main(["store", "import", str(file)]) == 2
    assert "line 3" in capsys.readouterr().err


def test_wiping_a_caller_removes_its_data_and_keeps_the_books(
    used: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """T19, and the owner's account of what was used."""
    assert main(["store", "wipe", "local"]) == 0
    found = _stats(capsys)
    assert not found.get("response")
    assert not found.get("conversation")
    assert found["usage"] == 3
    assert main(["store", "wipe", "nobody"]) == 0
    assert "no data of 'nobody'" in capsys.readouterr().out


def test_pruning_a_fresh_store_removes_nothing(used: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = _stats(capsys)
    assert main(["store", "prune"]) == 0
    assert "nothing to remove" in capsys.readouterr().out
    assert _stats(capsys) == before


def test_a_store_in_memory_cannot_be_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "wireglot.toml"
    config.write_text('[providers.demo]\n[store]\nurl = "memory:"\n')
    assert main(["store", "--config", str(config), "stats"]) == 2
    assert "memory" in capsys.readouterr().err


def test_a_store_that_is_none_is_refused_and_left_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """FAULTS 97"""
    (tmp_path / "no.db").write_bytes(b"this is no database" * 100)
    config = tmp_path / "wireglot.toml"
    config.write_text(f'[providers.demo]\n[store]\nurl = "sqlite://{tmp_path}/no.db"\n')
    assert main(["store", "--config", str(config), "stats"]) == 1
    assert "no.db" in capsys.readouterr().err
    assert (tmp_path / "no.db").read_bytes() == b"this is no database" * 100


@rows(
    ("number", "shown"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (1536, "1.5 KiB"),
        (2**20, "1.0 MiB"),
        (3 * 2**30, "3.0 GiB"),
        (2**40, "1.0 TiB"),
        (5000 * 2**40, "5000.0 TiB"),
    ],
)
def test_sizes_are_shown_in_binary_units(number: int, shown: str) -> None:
    assert _size(number) == shown
