"""Every field of the vendors' SDKs is mapped, declared or refused; what is new in an SDK is judged by somebody."""

from pathlib import Path

import pytest

from proofs.sdk_fields.page import allowed, judged, silent
from proofs.sdk_fields.probe import rows, unread_words
from proofs.sdk_fields.stages import ENDPOINTS, Endpoint

FIELDS = Path(__file__).parents[1] / "docs" / "reference" / "fields"

endpoints = pytest.mark.parametrize("endpoint", ENDPOINTS, ids=lambda each: f"{each.dialect}-{each.kind}")


@pytest.mark.sampled(each=3)
@endpoints
def test_no_field_of_an_sdk_goes_nowhere_without_a_word(endpoint: Endpoint):
    """[D] [X11] Fields without effect are few, and each has its reason."""
    found = set(silent(endpoint, rows(endpoint)))
    named = {name for name in allowed() if name.startswith(f"{endpoint.name} ") and "=" not in name}
    assert sorted(found - named) == []
    assert sorted(named - found) == [], "a reason for a field that has an effect now"


@pytest.mark.sampled(each=3)
@endpoints
def test_what_an_sdk_brings_has_been_judged(endpoint: Endpoint):
    """[D] R-L-05: a type or field that the pages do not know is new in the SDK: `make docs`, and look at it."""
    known = judged(FIELDS)
    new = {f"{endpoint.dialect} {row.structure}.{row.field}" for row in rows(endpoint)} - known
    assert sorted(new) == []


@pytest.mark.sampled(each=3)
@endpoints
def test_no_word_of_an_enumeration_is_unknown_without_a_reason(endpoint: Endpoint):
    """Stop reasons, statuses, tiers, efforts: a new word of an SDK is read, or has its reason."""
    found = {f"{endpoint.name} {name}" for name in unread_words(endpoint)}
    named = {name for name in allowed() if name.startswith(f"{endpoint.name} ") and "=" in name}
    whole = {name for name in named if name.endswith("=*")}  # fields that are declared whatever they say
    covered = {name for name in found if f"{name.partition('=')[0]}=*" in whole}
    assert sorted(found - covered - named) == []
    stale = {name for name in named - whole if name not in found}
    stale |= {name for name in whole if not any(each.startswith(name[:-1]) for each in covered)}
    assert sorted(stale) == [], "a reason for a word that is read now"
