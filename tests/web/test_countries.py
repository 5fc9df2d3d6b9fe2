"""The countries of search backends, against their vendors' lists and the codes of the time zone database."""

from __future__ import annotations

import zoneinfo
from pathlib import Path
from typing import Final

import pytest

from wireglot.web.countries import BRAVE_COUNTRIES, COUNTRY_NAMES

# api-dashboard.search.brave.com, Country Codes, in the order of that table; without "ALL".
_BRAVE: Final = "AR AU AT BE BR CA CL DK FI FR DE GR HK IN ID IT JP KR MY MX NL NZ NO CN PL PT PH RU SA ZA ES SE CH TW TR GB US"
_TAVILY_NAMES: Final = {
    "BA": "bosnia and herzegovina",
    "GB": "united kingdom",
    "KR": "south korea",
    "MM": "myanmar",
}
"""Where Tavily writes a name in another way than the time zone database."""


def test_brave_takes_the_countries_of_its_reference():
    assert sorted(BRAVE_COUNTRIES) == sorted(_BRAVE.split())


def test_tavily_is_given_the_name_of_each_country():
    tables = [Path(folder) / "iso3166.tab" for folder in zoneinfo.TZPATH]
    table = next((path for path in tables if path.exists()), None)
    if table is None:
        pytest.skip("no time zone database")
    lines = [line.split("\t") for line in table.read_text(encoding="utf-8").splitlines() if line[:1] != "#"]
    known = {code: name.lower() for code, name in lines} | _TAVILY_NAMES
    assert {code: known.get(code) for code in COUNTRY_NAMES} == COUNTRY_NAMES
