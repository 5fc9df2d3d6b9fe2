"""A file without an end is refused with what was expected, and never read to the end of memory."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.tiers import rows
from wireglot.cli import translate_io
from wireglot.cli.run.opencode_agents import agent_names
from wireglot.cli.run.pointing import plain_json5
from wireglot.cli.terminal import Unusable
from wireglot.cli.trust import find_config
from wireglot.gateway.config import read
from wireglot.gateway.config.problems import ConfigError
from wireglot.gateway.config.watch import _content

ENDLESS = Path("/dev/zero")

pytestmark = pytest.mark.skipif(os.name != "posix", reason="there is no endless file")


def test_an_endless_configuration_is_refused() -> None:
    with pytest.raises(ConfigError) as refused:
        read.document(ENDLESS)
    (problem,) = refused.value.problems
    assert (problem.path, problem.found) == ("/dev/zero", "more than 16 MiB")
    assert read.table_lines(ENDLESS, "models") == {}
    assert _content(ENDLESS) is None


def test_a_configuration_of_a_folder_that_is_too_large_needs_approval(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(read, "MAX_FILE_BYTES", 5)
    (tmp_path / "wireglot.toml").write_bytes(b"a = 12")
    monkeypatch.chdir(tmp_path)
    found = find_config(None, {})
    assert (found.content, found.needs_approval) == (None, True)


@rows("path", ["/dev/zero"])
def test_an_endless_document_is_not_translated(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(translate_io, "MAX_INPUT_BYTES", 1 << 20)
    with pytest.raises(Unusable, match="--in /dev/zero: expected at most 1 MiB"):
        translate_io.read_all(path)


def test_a_file_as_large_as_allowed_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read, "MAX_FILE_BYTES", 5)
    file = tmp_path / "wireglot.toml"
    file.write_bytes(b"a = 1")
    assert read.document(file) == {"a": 1}
    file.write_bytes(b"a = 12")
    with pytest.raises(OSError, match="more than 0 MiB"):
        read.read_file(file)


def test_endless_settings_of_a_client_are_left_out(tmp_path: Path) -> None:
    assert plain_json5(str(ENDLESS)) is None
    folder = tmp_path / ".opencode/agent"
    folder.mkdir(parents=True)
    (tmp_path / "opencode.json").symlink_to(ENDLESS)
    (folder / "zero.md").symlink_to(ENDLESS)
    assert agent_names({"HOME": str(tmp_path)}, str(tmp_path)) == []
