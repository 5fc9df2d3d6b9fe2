"""When runs of tests show that a defect was noticed: other programs on the machine must not change the answer."""

import pytest

from proofs.mutants.runs import PASSED, Judge

FOREVER = 1e9


class Machine:
    """A clock, and runs that take a given time on it."""

    def __init__(self, with_defect, without_defect=(1, {})):
        self.now = 0.0
        self.started = []
        self._plans = {True: with_defect, False: without_defect}

    def start(self, tests, with_defect):
        self.started.append((tuple(tests), with_defect))
        seconds, failures = self._plans[with_defect]
        outcome = next((failures[test] for test in tests if failures.get(test) is not None), PASSED)
        if isinstance(outcome, list):
            outcome = outcome.pop(0) if outcome else PASSED
        return Run(self, self.now + seconds, outcome)

    def judge(self, *batches):
        tests = [test for batch in batches for test in batch]
        judge = Judge(dict.fromkeys(tests, 1.0), clock=lambda: self.now)
        return judge.noticed_by(self.start, batches), judge.unreliable


class Run:
    def __init__(self, machine, end, outcome):
        self._machine = machine
        self._end = end
        self._outcome = outcome

    def wait(self, seconds):
        until = self._machine.now + seconds
        self._machine.now = max(self._machine.now, min(self._end, until))
        return self._outcome if self._end <= until else None

    def kill(self):
        pass


def test_a_defect_with_which_every_test_passes_is_not_noticed():
    machine = Machine((1, {}))
    assert machine.judge(["a", "b"], ["c"]) == (None, set())
    assert machine.started == [(("a", "b"), True), (("c",), True)]


def test_a_test_that_fails_only_with_the_defect_notices_it():
    machine = Machine((1, {"b": "b"}))
    assert machine.judge(["a", "b"], ["c"]) == ("b", set())
    assert {(("b",), False), (("b",), True)} <= set(machine.started)


def test_a_test_that_fails_without_the_defect_too_is_dropped_and_the_search_goes_on():
    unreliable = Machine((1, {"a": "a", "b": "b"}), (1, {"a": "a"}))
    assert unreliable.judge(["a", "b"], ["a", "c"]) == ("b", {"a"})
    assert Machine((1, {"a": "a"}), (1, {"a": "a"})).judge(["a", "b"]) == (None, {"a"})


def test_a_test_that_does_not_fail_again_has_not_noticed_the_defect():
    machine = Machine((1, {"a": ["a"]}))
    assert machine.judge(["a", "b"]) == (None, set())
    assert machine.started[-1] == (("b",), True)


def test_what_never_ends_is_noticed():
    assert Machine((FOREVER, {})).judge(["a"]) == ("too slow", set())


@pytest.mark.parametrize("slowness", [20, 100, 200])
def test_a_busy_machine_is_not_a_slow_defect(slowness):
    machine = Machine((2 * slowness, {}), (slowness, {}))
    assert machine.judge(["a"]) == (None, set())


def test_a_process_that_ends_by_itself_is_noticed_unless_it_does_so_without_the_defect():
    assert Machine((1, {"a": ""})).judge(["a"]) == ("ended early", set())
    assert Machine((1, {"a": ""}), (1, {"a": ""})).judge(["a"]) == (None, set())
