"""`make same` in small: one scenario against real gateways, and how its report judges."""

import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest

from proofs.comparison.__main__ import differences, report
from proofs.comparison.normalise import Normaliser, step_names
from proofs.comparison.record import Recorder, Recording, record
from proofs.comparison.scenarios import addressed, said, setups, whole
from proofs.served import Tree

_ROOT = Path(__file__).parents[2]
_NOW = 1_800_000_000.0


def _play(recorder: Recorder) -> None:
    path, body = addressed("anthropic", said("anthropic", "Hello"), "openai-chat/model-1", streams=True)
    recorder.ask("demo", path, body)
    path, body = addressed(
        "openai-responses", said("openai-responses", "Hello"), "gemini/model-1", streams=False
    )
    recorder.ask("canned", path, body, whole("gemini"))


def _recorded(tree: Path, folder: Path) -> Recording:
    plain = next(setup for setup in setups() if setup.name == "plain")
    return record([msgspec.structs.replace(plain, scenarios={"small": _play})], Tree(tree), folder)


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    return _recorded(_ROOT, tmp_path_factory.mktemp("original"))


@pytest.mark.whole
def test_the_same_tree_shows_no_difference(original: Recording, tmp_path: Path) -> None:
    again = _recorded(_ROOT, tmp_path)
    assert list(differences(original, again)) == []
    assert set(again["plain/small/demo"]) == {"answer", "upstream", "log", "trace", "usage"}


@pytest.mark.whole
def test_a_changed_tree_shows_what_was_changed(original: Recording, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    shutil.copytree(_ROOT / "src", tree / "src", ignore=shutil.ignore_patterns("__pycache__"))
    log = tree / "src/wireglot/gateway/observe/log.py"
    text = log.read_text(encoding="utf-8")
    assert '"attempts"' in text
    log.write_text(text.replace('"attempts"', '"tries"'), encoding="utf-8")
    changed = _recorded(tree, tmp_path / "run")
    found = {(name, facet) for name, facet, _, _ in differences(original, changed)}
    assert found == {("plain/small/demo", "log"), ("plain/small/canned", "log")}


@pytest.mark.parametrize(
    ("expected", "status"), [([], 1), (["a/b:log"], 0), (["a/*"], 0), (["a/b:answer"], 1)]
)
def test_only_an_expected_difference_is_no_failure(
    expected: list[str], status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    before, after = {"a/b": {"log": "one"}}, {"a/b": {"log": "two"}}
    assert report(before, after, expected, ["a/b"]) == status
    assert ("a/b: log" in capsys.readouterr().out) == bool(status)


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        ("req_" + "1" * 24, "req_" + "2" * 24, True),
        ("req_" + "1" * 24, "res_" + "2" * 24, False),
        ("req_" + "1" * 24, "req_" + "2" * 22, False),
        ("msg_" + "1" * 24 + " msg_" + "1" * 24, "msg_" + "2" * 24 + " msg_" + "3" * 24, False),
        ('"created":1800000001', '"created":1800000004', True),
        ('"created":1800000001', '"created":1800000001000', False),
        ('"created":1800000001', '"created":1700000001', False),
        ("date: Fri, 15 Jan 2027 08:00:01 GMT", "date: Fri, 15 Jan 2027 08:00:02 GMT", True),
        ('"retryDelay":"1.5s"', '"retryDelay":"1.25s"', True),
        ('"ms":5', '"ms":6', False),
    ],
)
def test_a_rule_hides_what_varies_and_nothing_else(one: str, other: str, equal: bool) -> None:
    texts: list[Any] = [Normaliser({}).text(text, "name", _NOW) for text in (one, other)]
    assert (texts[0] == texts[1]) is equal


def test_steps_that_a_trace_may_leave_out_are_compared_by_their_names_alone() -> None:
    store, retry, answer = (
        f'{{"name":"{name}","began_ms":0.0,"ended_ms":0.051}}' for name in ("store", "retry wait", "answer")
    )
    shown = [
        Normaliser({}).timed(f'"steps":[{",".join(steps)}]', "name", _NOW)
        for steps in ([store, retry, answer], [store, answer, retry], [store, answer], [store])
    ]
    assert shown[0] == shown[1] == shown[2] != shown[3]
    assert step_names(f"{store},{retry}") == {"store", "retry wait"}
