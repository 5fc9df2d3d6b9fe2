"""What this tree writes is what older ones can read: the same clients leave the same forms behind.

The clients of `proofs.lab.leave_behind` were served by the versions in tests/fixtures/left_behind, and are served
by this tree now. What either left is read by `proofs.lab.forms`, which knows nothing of the package. A form that
has to change needs a version of its own, and older ones that can read it.
"""

from __future__ import annotations

import base64
import re
from pathlib import Path
from typing import Any

import pytest

from proofs.lab.client_record import ClientRecord, read_client_record
from proofs.lab.forms import open_envelope, open_sealed, read_database
from proofs.lab.leave_behind import unpack
from tests.upgrade import forms_kit
from tests.upgrade.left_behind_kit import RELEASED, THIS_TREE, packed

_LATER = {"wireglot.db-kept"}
"""Of which the oldest versions know nothing: they leave it alone, and newer ones do not rely on it for long. So it
is with the folder `running`, in which gateways tell `wireglot run` that they are there."""


_LATER_COLUMNS = re.compile(
    r", (?:revision INTEGER NOT NULL DEFAULT 0|(?:purpose|agent|caller_group|client) TEXT NOT NULL DEFAULT '')"
)
_LATER_USAGE = re.compile(r'"(?:purpose|agent|caller_group|client)":"",?')
"""The clients of then say nothing of it."""


class Left:
    def __init__(self, packed: Path, folder: Path) -> None:
        unpack(packed, folder)
        self.folder = folder
        self.reported: ClientRecord = read_client_record(packed)


@pytest.fixture(scope="module", params=RELEASED)
def old(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Left:
    return Left(packed(request.param), tmp_path_factory.mktemp("old"))


@pytest.fixture(scope="module")
def new(tmp_path_factory: pytest.TempPathFactory) -> Left:
    return Left(packed(THIS_TREE), tmp_path_factory.mktemp("new"))


@pytest.mark.parametrize("name", ["wireglot.db", "counters.db"])
def test_the_tables_are_the_same(old: Left, new: Left, name: str) -> None:
    before, after = (read_database(left.folder / "wireglot" / name) for left in (old, new))
    assert after.pragmas == before.pragmas
    # Older versions name the columns that they read and write, and leave out these.
    known = [_LATER_COLUMNS.sub("", sql) for sql in after.schema]
    added = ("keys_by_revision", "usage_by_group", "usage_sums_", "usage_summed_")
    assert [sql for sql in known if not any(name in sql for name in added)] == before.schema


def test_callers_documents_are_sealed_and_written_alike(old: Left, new: Left) -> None:
    before = forms_kit.documents(old.folder)
    assert len(before) > 50
    assert forms_kit.documents(new.folder) == before


def test_the_vault_has_the_same_names_for_the_same_turns(old: Left, new: Left) -> None:
    """What an older version looks for is there, and says the same; newer ones keep more turns, and find them in
    more ways."""
    before, after = (forms_kit.vault(left.folder) for left in (old, new))
    assert len(before) > 5
    assert {name: after.get(name) for name in before} == before


def test_usage_in_the_store_is_written_alike(old: Left, new: Left) -> None:
    known = [_LATER_USAGE.sub("", row) for row in forms_kit.usage(new.folder)]
    assert known == forms_kit.usage(old.folder)


def test_usage_in_the_journal_is_written_alike(old: Left, new: Left) -> None:
    before = forms_kit.journal(old.folder)
    assert len(before) > len(old.reported.requests)
    assert forms_kit.journal(new.folder) == before


def test_keys_are_written_alike(old: Left, new: Left) -> None:
    assert forms_kit.keys(new.folder) == forms_kit.keys(old.folder)


def test_envelopes_in_clients_histories_are_the_same_but_for_what_stands_behind(old: Left, new: Left) -> None:
    """Newer versions say for whom they sealed, who wrote a thought that nobody signed, and where they seal what
    older ones did not, how long the text was: behind all that those read."""
    before, after = (_envelopes(left.reported) for left in (old, new))
    assert len(before) > 5
    assert {fields[:7] for fields in after} >= {*before}
    assert all(len(fields) == 7 for fields in before)
    owned = [fields for fields in after if len(fields) > 8]
    assert all(fields[7] >= 0 or fields[:7] in before for fields in after)
    assert owned
    assert all(len(fields[8]) == 16 for fields in owned)
    assert {fields[0] for fields in before} >= {"reasoning", "text", "unsigned"}
    named = [fields for fields in after if len(fields) > 9]
    assert {fields[:7] for fields in named} == {("unsigned", "", "", "", "", "", "")}


def test_summaries_are_sealed_alike(old: Left, new: Left) -> None:
    texts = [_summary(left) for left in (old, new)]
    assert texts[0]
    assert texts[1] == texts[0]


def test_the_places_of_files_are_the_same(old: Left, new: Left) -> None:
    """Databases, the journals' folder, and in it one for each process with its lock and its files."""
    later = {each for each in _places(new.folder) if each in _LATER or each.split("/")[0] == "running"}
    assert _places(new.folder) - later == _places(old.folder)


def _envelopes(reported: ClientRecord) -> set[tuple[Any, ...]]:
    texts: set[str] = set()
    for exchange in reported.again:
        texts |= set(_texts(exchange.body)) | set(_texts(exchange.json()))
    sealed = (text for text in texts if text.startswith("V0cx") and not _is_summary(text))
    return {_hashable(open_envelope(text) or []) for text in sealed}


def _hashable(fields: list[Any]) -> tuple[Any, ...]:
    return tuple(tuple(field) if type(field) is list else field for field in fields)


def _summary(left: Left) -> str:
    exchange = next(each for each in left.reported.again if each.name == "a summary is opened")
    item = next(item for item in exchange.body["input"] if item.get("type") == "compaction")
    raw = base64.b64decode(item["encrypted_content"])
    assert raw.startswith(b"WG1")
    return open_sealed(forms_kit.secret_of(left.folder), exchange.caller, "compaction", "", raw[3:]).decode()


def _is_summary(text: str) -> bool:
    """Sealed with a nonce, and so never the same."""
    return base64.b64decode(text, altchars=b"-_" if set(text) & set("-_") else None)[3] in (0x01, 0x81)


def _texts(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [text for each in value.values() for text in _texts(each)]
    if isinstance(value, list):
        return [text for each in value for text in _texts(each)]
    return [value] if isinstance(value, str) else []


def _places(folder: Path) -> set[str]:
    inside = folder / "wireglot"
    found = {str(path.relative_to(inside)) for path in inside.rglob("*")}
    return {forms_kit.MACHINE.sub("a-machine", path) for path in found}
