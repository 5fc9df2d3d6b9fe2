"""A place for recordings that takes none: clients notice nothing, and it is reported."""

from __future__ import annotations

import errno
import io
import os
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.core.traces.conversations import conversation
from tests.gateway.faults.faults_kit import BY_NAME, ask
from tests.gateway.trace.trace_kit import id_of, stage
from tests.traces.recorded import recorded
from tests.waiting import wait_until
from wireglot.gateway.setting_tables import TraceSettings
from wireglot.gateway.trace import shelf as shelves
from wireglot.gateway.trace.shelf import TraceShelf
from wireglot.gateway.trace.wanted import Wanted
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


def test_all_rows_are_read_from_the_disk_once_and_held_packed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shelves, "_BLOCK_ROWS", 4)
    monkeypatch.setattr(shelves, "_MAX_ROWS_KNOWN", 0)
    reads: list[str] = []
    read = shelves._sealed_row

    def counted(path: str) -> bytes:
        reads.append(path)
        return read(path)

    monkeypatch.setattr(shelves, "_sealed_row", counted)
    trace = recorded("anthropic", "gemini", conversation("anthropic"))
    kept = shelf(tmp_path)
    rows = [
        msgspec.structs.replace(trace.row, id=f"req_{number}", at=1000.0 + number, cost=number * 7 % 10,
                                key="bob" if number == 3 else "ada", agent="a" * (9000 if number == 5 else 9))
        for number in range(10)
    ]  # fmt: skip
    for row in rows:
        kept.put(msgspec.structs.replace(trace, row=row))

    dearest = Wanted(sort="cost", limit=3)

    def ids(wanted: Wanted = dearest) -> list[str]:
        reads.clear()
        return [row.id for row in wanted.first(kept.rows(lambda each: each.at >= wanted.since))]

    assert ids() == ["req_7", "req_4", "req_1"], "9, 8, 7"
    assert len(reads) >= 10
    assert ids(Wanted(sort="cost", limit=3, ascending=True)) == ["req_0", "req_3", "req_6"]
    assert len(reads) == 2, "what makes no whole block"
    assert ids(Wanted(sort="cost", since=1004.0)) == ["req_7", "req_4", "req_8", "req_5", "req_9", "req_6"]
    (tmp_path / shelves.file_name(rows[7])).unlink()  # as another process does
    assert ids() == ["req_4", "req_1", "req_8"]
    assert kept.forget("bob") == 1
    held = [name for block in kept._blocks.values() for name in block.names]
    assert not [name for name in held if "req_3" in name or "req_7" in name], "no row outlives its file"
    assert sorted(ids(Wanted())) == sorted(row.id for row in rows if row.id not in ("req_3", "req_7"))
    monkeypatch.setattr(shelves, "_MAX_ROWS_PACKED", 0)
    kept._blocks.clear()
    assert ids() == ["req_4", "req_1", "req_8"]
    assert not kept._blocks


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
