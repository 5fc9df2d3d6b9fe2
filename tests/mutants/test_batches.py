"""Which tests are tried on a defect, in which order: likely and quick ones first, slow ones while there is time."""

from proofs.mutants.__main__ import _batches, _made_with


def test_a_few_quick_tests_of_a_few_files_come_first():
    seconds = {f"file{file}.py::test_{number}": 0.1 for file in range(6) for number in range(20)}
    first, *others = _batches(list(seconds), seconds)
    assert len(first) == 4 * 12
    assert {name.partition("::")[0] for name in first} == {f"file{number}.py" for number in range(4)}
    assert sorted(name for batch in (first, *others) for name in batch) == sorted(seconds)


def test_quick_tests_keep_their_order_and_of_slow_ones_the_quickest_come_first():
    seconds = {"a.py::slow": 15.0, "b.py::likely": 0.2, "c.py::other": 0.1, "d.py::slowish": 3.0}
    first, second = _batches(list(seconds), seconds)
    assert first == ["b.py::likely", "c.py::other"]
    assert second == ["d.py::slowish", "a.py::slow"]


def test_tests_beyond_the_time_are_left_out_but_never_all():
    slow = {f"a.py::slow_{number}": 30.0 for number in range(9)}
    assert [len(batch) for batch in _batches(list(slow), slow)] == [1, 2]
    one = {"a.py::only": 500.0}
    assert list(_batches(list(one), one)) == [["a.py::only"]]


def test_a_table_is_looked_for_under_the_names_of_those_made_with_it():
    text = (
        "A = {1: 2}\nB: dict = {**A, 3: 4}\nOTHER = 5\n\n"
        "def f():\n    C = A\n    return C\n\nSURFACE = make(unserved=B)\n"
    )
    assert _made_with("A", text) == ["A", "B", "SURFACE"]
    assert _made_with("OTHER", text) == ["OTHER"]
