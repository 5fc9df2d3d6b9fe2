"""What the generator makes of pages, where it is installed (`make site`)."""

import pytest

from tools.site.__main__ import generate
from tools.site.finished import problems

pytest.importorskip("sphinx", reason="what builds the site is an extra of its own")

pytestmark = pytest.mark.filterwarnings("ignore:.*is deprecated. Check CHANGES for Sphinx")

INDEX = """# Home

[A page](page.md#what-it-costs), `--option`, --option.

```{toctree}
:caption: How-to
:hidden:

/page
```
"""
PAGE = """# A page

## What it costs?

<!-- generated: x -->
| field | meaning |
| --- | --- |
| `a\\|b` | a [link](index.md) |
<!-- end -->

```json
{"left out": ...}
```
"""


@pytest.fixture
def source(tmp_path):
    folder = tmp_path / "source"
    (folder / "_static").mkdir(parents=True)
    (folder / "extra").mkdir()
    (folder / "index.md").write_text(INDEX, encoding="utf-8")
    (folder / "page.md").write_text(PAGE, encoding="utf-8")
    return folder


def test_pages_as_github_shows_them_become_a_site_with_search(source, tmp_path):
    out = tmp_path / "site"
    assert generate(source, out) == 0
    assert problems(out, 2) == []
    home = (out / "index.html").read_text(encoding="utf-8")
    assert 'href="page.html#what-it-costs"' in home
    assert ", --option." in home
    assert "How-to" in home
    page = (out / "page.html").read_text(encoding="utf-8")
    assert "a|b" in page
    assert "prefers-color-scheme" in (out / "_static" / "styles" / "furo.css").read_text(encoding="utf-8")
    assert '"cost"' in (out / "searchindex.js").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "text",
    ["[x](page.md#nowhere)", "[x](nowhere.md)", "[x](#nowhere)", "![](nowhere.svg)"],
)
def test_a_link_that_leads_nowhere_is_a_failure(source, tmp_path, text):
    (source / "page.md").write_text(f"# A page\n\n{text}\n\n## What it costs\n", encoding="utf-8")
    assert generate(source, tmp_path / "site") != 0


def test_a_page_that_is_in_no_tree_is_a_failure(source, tmp_path):
    (source / "lost.md").write_text("# Lost\n", encoding="utf-8")
    assert generate(source, tmp_path / "site") != 0
