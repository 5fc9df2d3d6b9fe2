"""What the machine takes of a wait is not the gateway's."""

from pathlib import Path

import pytest

from proofs.lab.others import MachineDelay
from tests.tiers import rows

PID = 77


def reported(proc: Path, *, stolen_ticks: tuple[int, ...], queued_ms: tuple[int, int]) -> None:
    lines = [f"cpu  1 2 3 4 5 6 7 {sum(stolen_ticks)} 0 0"]
    lines += [f"cpu{number} 1 2 3 4 5 6 7 {ticks} 0 0" for number, ticks in enumerate(stolen_ticks)]
    (proc / "stat").write_text("\n".join([*lines, "intr 1 2 3", ""]))
    for name, milliseconds in zip((str(PID), "self"), queued_ms, strict=True):
        (proc / name).mkdir(exist_ok=True)
        (proc / name / "schedstat").write_text(f"123 {milliseconds * 1_000_000} 9\n")


@rows(
    ("stolen", "queued", "seconds"),
    [
        ((3, 5), (10, 20), 0.0),
        ((7, 5), (10, 20), 0.04),
        ((7, 11), (10, 20), 0.06),
        ((3, 5), (60, 40), 0.07),
        ((7, 5), (15, 20), 0.04),
        ((7, 5), (100, 20), 0.09),
    ],
)
def test_the_larger_of_what_was_stolen_and_what_was_queued_is_taken_off(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    stolen: tuple[int, int],
    queued: tuple[int, int],
    seconds: float,
) -> None:
    monkeypatch.setattr("os.sysconf", lambda name: 100)
    reported(tmp_path, stolen_ticks=(3, 5), queued_ms=(10, 20))
    machine = MachineDelay(PID, tmp_path)
    reported(tmp_path, stolen_ticks=stolen, queued_ms=queued)
    assert machine.seconds() == pytest.approx(seconds)


def test_where_nothing_is_reported_nothing_is_taken_off(tmp_path: Path) -> None:
    assert MachineDelay(PID, tmp_path).seconds() == 0
