"""What the page is made of: small, whole, and nothing from anywhere else."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
ASSETS = ROOT / "src/wireglot/gateway/inspector/assets"
SOURCES = sorted((ROOT / "page/src").rglob("*.ts*"))
KIB = 1024


def test_all_of_the_page_is_under_230_kilobytes_and_the_first_view_under_100():
    small = {
        each.name: len(gzip.compress(each.read_bytes(), 9))
        for each in ASSETS.iterdir()
        if each.suffix in (".js", ".css", ".html")
    }
    assert sum(small.values()) < 230_000
    assert small["page.js"] + small["page.css"] + small["index.html"] < 100 * KIB


def test_the_document_names_files_of_its_own_only_and_has_nothing_inline():
    text = (ASSETS / "index.html").read_text(encoding="utf-8")
    named = re.findall(r'(?:href|src)="([^"]+)"', text)
    assert named
    assert all(
        each.startswith("/inspector/assets/") and (ASSETS / each.rpartition("/")[2]).is_file()
        for each in named
    )
    assert re.findall(r"<script(?![^>]* src=)|<style|\son\w+=|\sstyle=", text) == []


def test_styles_load_nothing():
    text = (ASSETS / "page.css").read_text(encoding="utf-8")
    assert re.findall(r"@import|url\(|@font-face", text) == []


def test_no_source_writes_html_or_runs_text():
    wrong = re.compile(
        r"innerHTML|outerHTML|insertAdjacentHTML|dangerouslySetInnerHTML|document\.write|\beval\(|new Function|srcdoc|javascript:"
    )
    assert [each.name for each in SOURCES if wrong.search(each.read_text(encoding="utf-8"))] == []


def test_every_address_in_the_sources_is_of_this_gateway():
    wrong = re.compile(r"[\"'`](?:https?:)?//[\w.]")
    assert [each.name for each in SOURCES if wrong.search(each.read_text(encoding="utf-8"))] == []


def test_the_lock_names_no_host_and_has_a_hash_for_every_package():
    lock = json.loads((ROOT / "page/package-lock.json").read_text(encoding="utf-8"))
    packages = {name: each for name, each in lock["packages"].items() if name}
    assert [name for name, each in packages.items() if "resolved" in each] == []
    assert [
        name for name, each in packages.items() if not each.get("integrity", "").startswith("sha512-")
    ] == []


def test_what_is_in_the_bundle_has_its_licence_beside_it():
    reported = (ASSETS / "LICENSES.txt").read_text(encoding="utf-8")
    for name in json.loads((ROOT / "page/package.json").read_text(encoding="utf-8"))["dependencies"]:
        assert re.search(rf"^{re.escape(name)} \d", reported, re.MULTILINE), name
