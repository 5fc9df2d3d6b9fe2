"""[mcp]: which servers of tools may be connected to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from wireglot.gateway.config import load, web
from wireglot.gateway.config.problems import ConfigError
from wireglot.gateway.settings import McpSettings, Settings
from wireglot_core.extras import install_hint


def settings(tmp_path: Path, mcp: Any = None) -> Settings:
    overrides = {"providers": {"demo": {}}, **({} if mcp is None else {"mcp": mcp})}
    return load(None, environ={"XDG_DATA_HOME": str(tmp_path)}, overrides=overrides, create_secret=False)


def refusal(tmp_path: Path, mcp: Any) -> str:
    with pytest.raises(ConfigError) as refused:
        settings(tmp_path, mcp)
    return str(refused.value)


def test_no_server_is_connected_to_without_the_table(tmp_path: Path) -> None:
    assert settings(tmp_path).mcp is None
    assert settings(tmp_path, {}).mcp == McpSettings()


def test_hosts_have_names_or_addresses(tmp_path: Path) -> None:
    table: dict[str, Any] = {
        "hosts": ["mcp.example.com", "mcp.example.com:8443"],
        "private_hosts": ["127.0.0.1:8000", "tools.internal", "[::1]:9"],
        "timeout": 5,
        "max_result": 1000,
        "max_tools": 7,
    }
    found = settings(tmp_path, table).mcp
    assert found is not None
    assert (found.hosts, found.private_hosts) == (tuple(table["hosts"]), tuple(table["private_hosts"]))
    assert (found.timeout, found.max_result, found.max_tools) == (5.0, 1000, 7)


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"hosts": ["https://mcp.example.com"]}, "mcp.hosts"),
        ({"hosts": ["*.example.com"]}, "mcp.hosts"),
        ({"private_hosts": ["10.0.0.0/8"]}, "mcp.private_hosts"),
        ({"timeout": 0}, "mcp.timeout"),
        ({"max_tools": 0}, "mcp.max_tools"),
        ({"host": ["a"]}, "mcp.host"),
        ("a", "mcp"),
    ],
)
def test_what_is_no_host_or_no_number_is_refused(tmp_path: Path, table: Any, said: str) -> None:
    assert said in refusal(tmp_path, table)


def test_the_package_that_is_missing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web, "MCP_PACKAGE", "no_such_package")
    assert install_hint("mcp") in refusal(tmp_path, {})
