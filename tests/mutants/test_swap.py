"""A defect made in functions that are already loaded does what the same defect in the file would do."""

import pytest

from proofs.mutants.changes import changes
from proofs.mutants.swap import is_in_function, swap

SOURCE = """
from functools import lru_cache

TABLE = {"a": 1}


def plain(number):
    return number == 1


def outer(factor):
    def inner(number):
        product = number * factor
        return product

    return inner


class Box:
    shared = 5

    @property
    def content(self):
        return self.shared - 1

    @lru_cache
    def cached(self, number=3):
        return [each for each in range(number) if each > 0]

    async def late(self):
        return not self.shared
"""


def load(text, file):
    names = {"__name__": "module"}
    exec(compile(text, file, "exec", dont_inherit=True), names)
    return names


def results(names):
    box = names["Box"]()
    with pytest.raises(StopIteration) as late:
        box.late().send(None)
    made = names["outer"](3)
    return [
        names["plain"](1),
        made and made(5),
        box.content,
        box.cached(),
        late.value.value,
    ]


def inside():
    return [change for change in changes(SOURCE) if is_in_function(SOURCE, change)]


def test_only_what_a_call_runs_is_in_a_function():
    texts = {SOURCE.splitlines()[change.line - 1].strip() for change in changes(SOURCE)}
    in_functions = {SOURCE.splitlines()[change.line - 1].strip() for change in inside()}
    assert texts - in_functions == {'TABLE = {"a": 1}', "shared = 5"}


def test_every_defect_in_a_function_has_the_effect_that_it_has_in_the_file():
    assert len(inside()) > 10
    for number, change in enumerate(inside()):
        file = f"swapped-{number}.py"
        names = load(SOURCE, file)
        original = results(load(SOURCE, "original.py"))
        assert swap(SOURCE, change, file), change.what
        assert results(names) == results(load(change.of(SOURCE), "changed.py")) != original, change.what


def test_what_is_not_loaded_cannot_be_swapped():
    assert not swap(SOURCE, inside()[0], "never-loaded.py")


def test_a_function_that_is_loaded_with_a_variable_around_it_keeps_it_or_is_not_swapped():
    text = "def outer(factor):\n    def inner(number):\n        return number * factor\n    return inner\n"
    without = next(change for change in changes(text) if "number * factor -> return None" in change.what)
    made = load(text, "with-variable.py")["outer"](2)
    assert not swap(text, without, "with-variable.py")
    assert made(4) == 8
