"""The file of one trace."""

from __future__ import annotations

import contextlib
import gzip
import json

import pytest

from tests.core.traces.conversations import conversation
from tests.tiers import rows
from tests.traces.recorded import recorded
from wireglot_core.traces import file
from wireglot_core.traces.analysis import with_analysis
from wireglot_core.traces.file import BadTrace, read_trace, write_trace


@pytest.mark.parametrize("packed", [False, True])
def test_what_is_written_is_read_again(packed: bool) -> None:
    trace = with_analysis(recorded("anthropic", "gemini", conversation("anthropic"), stream=True))
    data = write_trace(trace, packed=packed)
    assert read_trace(data) == trace
    assert write_trace(trace, packed=packed) == data


def test_it_is_text_that_people_can_read() -> None:
    text = write_trace(recorded("anthropic", "gemini", conversation("anthropic"))).decode()
    assert text.startswith('{\n "format": "wireglot-trace/1",\n "version": ')
    assert text.endswith("}\n")


ROW = {"id": "r", "at": 1}
WHOLE = {"format": "wireglot-trace/1", "row": ROW, "request": {}, "answer": {}}


@rows(
    ("data", "says"),
    [
        (b"", "expected the JSON of an exported trace: Input data was truncated"),
        (b"{}", "format: expected wireglot-trace/1: this is no exported trace"),
        (b"[]", "expected an exported trace: Expected `object`, got `array`"),
        (
            b"\xff\xfe",
            "expected the JSON of an exported trace: JSON is malformed: invalid character (byte 0)",
        ),
        (
            {"format": "wireglot-trace/7", "version": "9.0"},
            "format: expected wireglot-trace/1, got wireglot-trace/7, written by wireglot 9.0: get a newer wireglot",
        ),
        ({**WHOLE, "row": {"id": 7, "at": 1}}, "row.id: Expected `str`, got `int`"),
        ({**WHOLE, "row": {"id": "../../x", "at": 1}}, "row.id: expected at most 64 letters, digits"),
        ({**WHOLE, "row": {"id": "r" * 65, "at": 1}}, "row.id: expected at most 64 letters, digits"),
        ({**WHOLE, "row": {"id": "", "at": 1}}, "row.id: expected at most 64 letters, digits"),
        ({**WHOLE, "row": {"id": "r", "at": -1}}, "row.at: expected seconds since 1970"),
        ({**WHOLE, "row": {"id": "r", "at": 1e10}}, "row.at: expected seconds since 1970"),
        ({**WHOLE, "row": {"id": "r", "at": 1, "cost": -(2**64)}}, "row.cost: expected millionths"),
        ({**WHOLE, "row": {"id": "r", "at": 1e300}}, "row.at: expected seconds since 1970"),
        ({**WHOLE, "row": {"id": "r", "at": 1, "cost": 10**400}}, "row.cost: expected millionths"),
        ({**WHOLE, "row": {"id": "r"}}, "row: Object missing required field `at`"),
        ({**WHOLE, "attempts": [{"provider": "p"}]}, "attempts[0]: Object missing required field `model`"),
        (gzip.compress(b"{}", mtime=0)[:-4], "expected a whole gzip file: it ends too early"),
        (b"\x1f\x8bnot", "expected a gzip file: "),
        (b'{"x":' * 100_000, "expected the JSON of an exported trace: "),
    ],
)
def test_what_is_no_trace_is_refused_by_the_name_of_its_field(
    data: bytes | dict[str, object], says: str
) -> None:
    with pytest.raises(BadTrace) as refused:
        read_trace(data if isinstance(data, bytes) else json.dumps(data).encode())
    assert str(refused.value).startswith(says)


@rows(
    "row",
    [
        {"id": "r" * 64, "at": 0},
        {"id": "A-z_9", "at": 9999999999.5},
        {"id": "r", "at": 1, "cost": 0},
        {"id": "r", "at": 1, "cost": 2**63},
        {"id": "r", "at": 1, "cost": -(2**63)},
    ],
)
def test_what_is_within_the_limits_is_read(row: dict[str, object]) -> None:
    read = read_trace(json.dumps({**WHOLE, "row": row}).encode()).row
    assert (read.id, read.at, read.cost) == (row["id"], row["at"], row.get("cost"))


def test_a_field_of_a_newer_version_is_passed_over() -> None:
    assert read_trace(json.dumps({**WHOLE, "colour": "red"}).encode()).row.id == "r"


@pytest.mark.parametrize("packed", [False, True])
def test_a_file_is_bounded_once_it_is_unpacked(packed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file, "MAX_BYTES", 1024 * 1024)
    data = b" " * (1024 * 1024 + 1)
    with pytest.raises(BadTrace, match="expected at most 1 MB"):
        read_trace(gzip.compress(data) if packed else data)


def test_a_file_with_a_damaged_byte_is_read_or_refused_wherever_it_is() -> None:
    whole = write_trace(recorded("anthropic", "gemini", conversation("anthropic")))
    for at in range(0, len(whole), 7):
        for byte in (b"\xff", b"\x00", b'"', b"{"):
            with contextlib.suppress(BadTrace):
                read_trace(whole[:at] + byte + whole[at + 1 :])


def test_a_damaged_letter_is_refused_in_words() -> None:
    damaged = write_trace(recorded("anthropic", "gemini", conversation("anthropic"))).replace(
        b"Lima", b"L\xffma"
    )
    with pytest.raises(BadTrace, match=r"expected the JSON of an exported trace: .*utf-8"):
        read_trace(damaged)
