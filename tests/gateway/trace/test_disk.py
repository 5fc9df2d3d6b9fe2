"""A place for recordings that takes none: clients notice nothing, and it is reported."""

from __future__ import annotations

import errno
import io
import os
from pathlib import Path
from typing import Any

import pytest

from tests.gateway.faults.faults_kit import BY_NAME, ask
from tests.gateway.trace.trace_kit import id_of, stage
from tests.traces.conversations import conversation
from tests.traces.recorded import recorded
from tests.waiting import wait_until
from wireglot.gateway.setting_tables import TraceSettings
from wireglot.gateway.trace.shelf import TraceShelf
from wireglot.stores.seal import Sealer


def shelf(folder: Path) -> TraceShelf:
    return TraceShelf(folder, Sealer(b"s" * 32), lambda *_, **__: None)


def test_a_place_that_is_no_folder_costs_recordings_alone(tmp_path: Path) -> None:
    with stage(folder=tmp_path) as made:
        there = made.gateway.folder / "wireglot" / "traces"
        there.parent.mkdir(parents=True, exist_ok=True)
        if there.exists():
            there.rmdir()
        there.write_text("in the way")
        answer = ask(made.gateway, BY_NAME["anthropic"], "gemini-up/m1")
        assert answer.status == 200
        wait_until(lambda: made.look.get("recording")["dropped"] == 1)
        shown = made.look.get(f"exchanges/{id_of(answer)}")
        assert "recorded" not in shown["row"]
        assert made.look.rows()
        there.unlink()
        again = ask(made.gateway, BY_NAME["anthropic"], "gemini-up/m1")
        assert made.look.trace(id_of(again))["attempts"]


def test_a_full_disk_leaves_no_half_of_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trace = recorded("anthropic", "gemini", conversation("anthropic"))
    kept = shelf(tmp_path)

    class Full(io.BytesIO):
        def write(self, data: Any) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

    def opened(descriptor: int, mode: str) -> Full:
        os.close(descriptor)
        return Full()

    monkeypatch.setattr("builtins.open", opened)
    with pytest.raises(OSError, match="No space left"):
        kept.put(trace)
    monkeypatch.undo()
    assert list(tmp_path.iterdir()) == []
    assert kept.listed() == []
    kept.put(trace)
    assert [each.id for each in kept.listed()] == [trace.row.id]


def test_what_a_killed_process_left_half_written_is_not_shown_and_goes(tmp_path: Path) -> None:
    trace = recorded("anthropic", "gemini", conversation("anthropic"))
    kept = shelf(tmp_path)
    kept.put(trace)
    (whole,) = tmp_path.iterdir()
    half = tmp_path / f".{whole.name.replace('req_0', 'req_1')}.new"
    half.write_bytes(whole.read_bytes()[:100])
    kept.sweep(TraceSettings(), now=trace.row.at)
    assert half.exists()  # somebody may be writing it just now
    assert [each.name for each in kept.listed()] == [whole.name]
    os.utime(half, (0, 0))
    kept.sweep(TraceSettings(), now=trace.row.at)
    assert [each.name for each in tmp_path.iterdir()] == [whole.name]
