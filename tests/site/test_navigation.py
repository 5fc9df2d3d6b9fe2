"""Every page has one place in the navigation, and every place has a page."""

import re
from pathlib import Path

import pytest

from tools.site import navigation
from tools.site.navigation import BadNavigation, all_pages, check, page_list, sections

ROOT = Path(__file__).parents[2]
HOME = (ROOT / "docs" / navigation.HOME).read_text(encoding="utf-8")


def test_every_page_of_the_docs_has_one_place_and_every_place_a_page():
    check(sections())


def test_the_kinds_of_pages_are_those_that_readers_know():
    titles = [section.title for section in sections()]
    wanted = ["Tutorial", "How-to", "Reference", "Explanation", "Operations", "Project"]
    assert [title for title in wanted if title in titles] == titles


def test_the_first_page_lists_all_others():
    listed = set(re.findall(r"^ *- \[.*\]\((.*?)\)", HOME, flags=re.MULTILINE))
    assert listed == {page.path for page in all_pages(sections()) if not page.path.startswith("decisions/0")}


def small_docs(folder, *pages):
    for page in pages:
        (folder / page).parent.mkdir(parents=True, exist_ok=True)
        (folder / page).write_text(f"# About {page}\n", encoding="utf-8")
    return folder


def small_navigation(folder, pages):
    file = folder / "navigation.toml"
    file.write_text(f'[[section]]\ntitle = "All"\nabout = "All."\npages = [{pages}]\n', encoding="utf-8")
    return file


def test_a_page_that_is_nowhere_is_reported(tmp_path):
    docs = small_docs(tmp_path / "docs", "README.md", "a.md", "b/c.md")
    file = small_navigation(tmp_path, '{ page = "a.md" }')
    with pytest.raises(BadNavigation, match=r"^b/c\.md: in no section"):
        check(sections(docs, file), docs)


def test_a_page_in_two_places_is_reported(tmp_path):
    docs = small_docs(tmp_path / "docs", "a.md")
    file = small_navigation(tmp_path, '{ page = "a.md" }, { page = "a.md" }')
    with pytest.raises(BadNavigation, match=r"^a\.md: in two places"):
        check(sections(docs, file), docs)


def test_an_entry_without_a_page_is_reported(tmp_path):
    docs = small_docs(tmp_path / "docs", "a.md")
    with pytest.raises(BadNavigation, match=r"^b\.md: in navigation\.toml, and not there"):
        sections(docs, small_navigation(tmp_path, '{ page = "b.md" }'))


def test_a_pattern_stands_for_what_is_there_and_named_nowhere_in_order(tmp_path):
    docs = small_docs(tmp_path / "docs", "howto/b.md", "howto/a.md", "howto/c.md", "x.md")
    file = small_navigation(
        tmp_path, '{ page = "howto/*.md" }, { page = "x.md", below = ["howto/c.md", "y/*.md"] }'
    )
    found = sections(docs, file)
    assert [page.path for page in all_pages(found)] == ["howto/a.md", "howto/b.md", "x.md", "howto/c.md"]
    assert "- [About x.md](x.md)\n  - [About howto/c.md](howto/c.md)" in page_list(found)


def test_a_section_without_pages_is_left_out(tmp_path):
    docs = small_docs(tmp_path / "docs")
    assert sections(docs, small_navigation(tmp_path, '{ page = "tutorial*.md" }')) == ()
