"""Which stores there are, where their files lie, and what is said of those that would lose something."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from wireglot.gateway.config import load
from wireglot.gateway.config.problems import ConfigError
from wireglot.gateway.settings import Settings


def settings(tmp_path: Path, server: dict[str, Any] | None = None, **store: Any) -> Settings:
    overrides = {"store": store, "server": server or {}, "providers": {"demo": {}}}
    return load(None, environ={"XDG_DATA_HOME": str(tmp_path)}, overrides=overrides, create_secret=False)


def refusal(tmp_path: Path, **store: Any) -> str:
    with pytest.raises(ConfigError) as refused:
        settings(tmp_path, **store)
    return str(refused.value)


@pytest.mark.parametrize("url", ["memory:", "sqlite:///a/b.db", "postgresql://h/d", "postgres://h/d"])
def test_a_store_is_in_memory_in_a_file_or_at_a_server(tmp_path: Path, url: str) -> None:
    assert settings(tmp_path, url=url).store.url.value == url


@pytest.mark.parametrize("server", ["redis", "rediss", "valkey", "valkeys"])
@pytest.mark.parametrize("way", ["", "+sentinel"])
def test_what_is_shared_is_at_a_redis_or_a_valkey_with_or_without_a_sentinel(
    tmp_path: Path, server: str, way: str
) -> None:
    url = f"{server}{way}://user:hush-hush@h:1"
    assert settings(tmp_path, shared=url).store.shared.value == url
    assert "hush" not in refusal(tmp_path, shared=f"x{url}")


def test_another_store_is_refused_without_a_word_of_its_password(tmp_path: Path) -> None:
    told = refusal(tmp_path, url="mysql://root:hush-hush@h/d")
    assert "store.url" in told
    assert "mysql:..." in told
    assert "hush" not in told
    assert "no URL" in refusal(tmp_path, url="mysql")


def test_a_file_is_beside_the_data_of_its_user_and_a_relative_one_beside_the_configuration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = settings(tmp_path).store
    assert usual.url.value == f"sqlite://{tmp_path}/wireglot/wireglot.db"
    assert usual.folder == str(tmp_path / "wireglot")
    monkeypatch.chdir(tmp_path)
    assert settings(tmp_path, url="sqlite:here.db").store.url.value == f"sqlite://{tmp_path}/here.db"
    assert settings(tmp_path, url="memory:").store.folder == ""
    assert settings(tmp_path, url="memory:", folder="f").store.folder == str(tmp_path / "f")


@pytest.mark.parametrize(
    ("url", "is_open"),
    [
        ("postgresql://db.example.com/d", True),
        ("postgresql://u:p@10.0.0.1,db.example.com:5/d", True),
        ("postgresql://db.example.com/d?sslmode=verify-full", False),
        ("postgresql://db.example.com/d?sslrootcert=x", False),
        ("postgresql://10.0.0.1,localhost:5/d", False),
        ("postgresql://u:p@[::1]:5/d", False),
        ("sqlite:///a/b.db", False),
    ],
)
def test_a_connection_that_need_not_be_encrypted_is_noted(tmp_path: Path, url: str, is_open: bool) -> None:
    notes = settings(tmp_path, url=url).notes
    assert any("sslmode" in note for note in notes) is is_open


@pytest.mark.parametrize(("workers", "url", "is_lost"), [(1, "memory:", False), (2, "memory:", True)])
def test_workers_with_a_memory_each_are_noted(tmp_path: Path, workers: int, url: str, is_lost: bool) -> None:
    notes = settings(tmp_path, {"workers": workers}, url=url).notes
    assert any("in its own memory" in note for note in notes) is is_lost
