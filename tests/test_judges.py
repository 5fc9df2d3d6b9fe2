"""The parsing of other projects' test reports, and the verdicts made of them."""

import pytest

from proofs.judges.pytest_run import (
    NOT_SERVED,
    OFFLINE,
    Outcome,
    compared,
    never_run,
    outcomes,
    problems,
    verdict,
)
from proofs.judges.reasons import Reason
from proofs.judges.results import Case

REPORT = """<testsuites><testsuite>
<testcase classname="tests.test_a.TestA" name="test_one[loose]"/>
<testcase classname="tests.test_a" name="test_two"><failure message="assert 1 == 2">trace</failure></testcase>
<testcase classname="tests.test_a" name="test_three"><skipped message="no key"/></testcase>
<testcase classname="tests.test_a" name="test_four"/>
<testcase classname="tests.test_a" name="test_four"><error message="teardown"/></testcase>
<testcase classname="tests.test_a" name="test_five"/>
<testcase classname="tests.test_a" name="test_five"><skipped message="after the call"/></testcase>
</testsuite></testsuites>"""


def test_a_report_has_one_outcome_for_each_case_and_the_worse_of_two() -> None:
    assert outcomes(REPORT) == [
        Outcome("tests.test_a.TestA::test_one[loose]", "passed"),
        Outcome("tests.test_a::test_two", "failed", "assert 1 == 2"),
        Outcome("tests.test_a::test_three", "skipped", "no key"),
        Outcome("tests.test_a::test_four", "failed", "teardown"),
        Outcome("tests.test_a::test_five", "skipped", "after the call"),
    ]


def test_a_failure_has_the_reason_of_the_first_rule_that_fits_and_else_its_message() -> None:
    rules = [
        Reason("mock", "made for a mock server"),
        Reason("batches", "not served", is_run=False),
        Reason("test_a", "too late"),
    ]
    found = [
        Outcome("a", "passed"),
        Outcome("test_a", "failed", "mock"),
        Outcome("b", "failed", "a\n  long message"),
        Outcome("batches[x]", "failed"),
        Outcome("batches[y]", "failed"),
        Outcome("c", "skipped", "no key"),
    ]
    made = verdict("suite", "1.0", "about", found, rules, [Case("other.py", "not served", 7)])
    assert made.passed == 1
    assert made.failed == (Case("test_a", "made for a mock server"), Case("b", "a long message"))
    assert made.not_run == (
        Case("batches", "not served", 2),
        Case("c", "no key"),
        Case("other.py", "not served", 7),
    )
    assert str(made) == "suite 1.0: 1 passed, 2 failed, 10 not run"


def test_a_case_that_fails_without_the_gateway_too_is_not_run() -> None:
    alone = [Outcome("a", "failed", "x"), Outcome("b", "passed"), Outcome("c", "failed", "x")]
    through = [Outcome("a", "failed", "y"), Outcome("b", "failed", "y"), Outcome("c", "passed")]
    assert compared(through, lambda: alone) == [
        Outcome("a", "skipped", "does not pass without the gateway either"),
        Outcome("b", "failed", "y"),
        Outcome("c", "passed"),
    ]


def test_cases_that_all_pass_are_not_run_again_without_the_gateway() -> None:
    through = [Outcome("a", "passed"), Outcome("b", "skipped", "no key")]
    assert compared(through, lambda: pytest.fail("run again")) == through


def test_a_problem_has_the_name_of_its_test_whatever_its_parameters_hold() -> None:
    found = [Outcome("tests.unit.test_a::test_one[a.b::c-0.5]", "failed", "no"), Outcome("t::x", "passed")]
    assert problems(found) == [("test_a test_one[a.b::c-0.5]", "failed: no"), ("t x", "")]


def test_a_file_is_not_run_because_of_its_api_or_because_it_asks_no_server() -> None:
    every = {"tests/api/test_chat.py": 3, "tests/api/test_files.py": 2, "tests/test_client.py": 1}
    assert list(never_run(every, ["tests/api/test_chat.py"], "tests/api/")) == [
        Case("tests/api/test_files.py", NOT_SERVED, 2),
        Case("tests/test_client.py", OFFLINE, 1),
    ]
