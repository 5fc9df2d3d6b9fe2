"""What the fuzzer takes for a fault."""

from random import Random

import pytest

from proofs.lab import fuzz_target
from proofs.lab.fuzz_mutations import Mutator
from proofs.lab.fuzz_target import Fuzzer, Hang, Input, Silence


class _Slow:
    """Raises these in turn, then answers."""

    words = (b"x",)

    def __init__(self, *faults: BaseException) -> None:
        self._faults = list(faults)
        self.begun = 0

    def seeds(self) -> list[Input]:
        return [Input("form", b"data")]

    def changed(self, mutator: Mutator, one: Input, other: Input) -> bytes:
        return one.data

    def tried(self, given: Input, chance: Random) -> str:
        if self._faults:
            raise self._faults.pop(0)
        return "read"

    def begin(self) -> None:
        self.begun += 1

    def end(self) -> None:
        pass


@pytest.fixture(autouse=True)
def _without_timers(monkeypatch):
    monkeypatch.setattr(fuzz_target, "_timed", lambda work: work())


def test_a_process_that_was_stopped_meanwhile_is_no_hang(tmp_path):
    target = _Slow(Silence("nothing happens"))
    counts, problems = Fuzzer(target, tmp_path / "corpus").run(3, "seed")
    assert counts == {"read": 3}
    assert problems == []
    assert target.begun == 2


@pytest.mark.parametrize("faults", [[Silence("again"), Silence("again")], [Hang("too much work")]])
def test_what_hangs_again_or_works_for_too_long_is_a_fault(faults, tmp_path):
    counts, problems = Fuzzer(_Slow(*faults), tmp_path / "corpus").run(3, "seed")
    assert counts.total() == 3
    assert len(problems) == 1
    assert "for b'data'" in problems[0]
