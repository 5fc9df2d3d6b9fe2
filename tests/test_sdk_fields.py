"""Every field of the vendors' SDKs has been judged: mapped, declared, refused."""

from pathlib import Path

import pytest

from tools.sdk_fields.page import judged
from tools.sdk_fields.probe import rows
from tools.sdk_fields.stages import ENDPOINTS, Endpoint

FIELDS = Path(__file__).parents[1] / "docs" / "reference" / "fields"

endpoints = pytest.mark.parametrize("endpoint", ENDPOINTS, ids=lambda each: f"{each.dialect}-{each.kind}")


@endpoints
def test_what_an_sdk_brings_has_been_judged(endpoint: Endpoint):
    """[D] R-L-05: a type or field that the pages do not know is new in the SDK: `make docs`, and look at it."""
    known = judged(FIELDS)
    new = {f"{endpoint.dialect} {row.structure}.{row.field}" for row in rows(endpoint)} - known
    assert sorted(new) == []
