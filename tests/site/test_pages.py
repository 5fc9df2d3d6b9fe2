"""What becomes of a page on its way to the site: its links, its pictures, its place."""

import re

from tests.tiers import rows
from tools.site.diagrams import described, drawn, pictures, write
from tools.site.links import Places, rewritten
from tools.site.navigation import sections
from tools.site.staging import staged_paths

PAGES = {
    "README.md": "index.md",
    "docs/README.md": "index.md",
    "docs/gateway.md": "gateway.md",
    "docs/reference/errors.md": "reference/errors.md",
    "CHANGELOG.md": "project/changelog.md",
}
PLACES = Places(PAGES, frozenset({"docs/figures/pairs.svg"}))


@rows(
    ("page", "text", "expected"),
    [
        ("docs/gateway.md", "[codes](reference/errors.md#all)", "[codes](reference/errors.md#all)"),
        ("docs/gateway.md", "[news](../CHANGELOG.md)", "[news](project/changelog.md)"),
        ("CHANGELOG.md", "[how](docs/gateway.md)", "[how](../gateway.md)"),
        ("docs/reference/errors.md", "[all](../README.md)", "[all](../index.md)"),
        ("docs/gateway.md", "[here](#losses)", "[here](#losses)"),
        ("docs/gateway.md", "[away](https://example.com/x)", "[away](https://example.com/x)"),
        ("docs/gateway.md", "[`Dockerfile`](../Dockerfile)", "`Dockerfile`"),
        ("docs/gateway.md", "![](figures/pairs.svg)", "![](figures/pairs.svg)"),
        ("CHANGELOG.md", "![](docs/figures/pairs.svg)", "![](../figures/pairs.svg)"),
        ("docs/gateway.md", "`[x](../nowhere)`", "`[x](../nowhere)`"),
        ("docs/gateway.md", "```sh\n[x](../nowhere)\n```\n", "```sh\n[x](../nowhere)\n```\n"),
    ],
)
def test_links_are_those_of_the_site(page, text, expected):
    assert rewritten(text, page, PLACES) == expected


def test_with_an_address_files_of_the_repository_are_there():
    places = Places(PAGES, frozenset(), "https://example.com/o/n/")
    assert rewritten("[c](../compose.yaml#L3)", "docs/gateway.md", places) == (
        "[c](https://example.com/o/n/blob/main/compose.yaml#L3)"
    )


def test_pages_of_the_root_have_a_folder_of_their_own():
    paths = staged_paths(sections())
    assert paths["CHANGELOG.md"] == "project/changelog.md"
    assert paths["docs/decisions/0001-fit-before-render.md"] == "decisions/0001-fit-before-render.md"
    assert paths["docs/README.md"] == "index.md"


PICTURE = "a\n\n```mermaid\nflowchart LR\n    A[one <br/>word] -->|two| B{three}\n```\n\n```sh\nls\n```\n"


SVG = '<svg viewBox="0 0 200.4 50"/>'


def test_a_picture_becomes_files_for_light_and_dark(tmp_path):
    wanted = pictures([PICTURE, PICTURE, "no picture"])
    assert [picture.shade for picture in wanted] == ["light", "dark"]
    assert wanted[0].source == "flowchart LR\n    A[one <br/>word] -->|two| B{three}\n"
    svgs = dict.fromkeys(wanted, SVG)
    write(svgs, tmp_path)
    page = drawn(PICTURE, "reference/errors.md", svgs)
    files = re.findall(r'<img class="only-(light|dark)" src="\.\./_static/diagrams/(\S+)" alt="(.*?)"', page)
    assert [shade for shade, _, _ in files] == ["light", "dark"]
    assert {path.name for path in tmp_path.iterdir()} == {name for _, name, _ in files}
    assert "mermaid" not in page
    assert "```sh\nls\n```" in page


def test_a_wide_picture_is_not_made_too_small_to_be_read():
    page = drawn(PICTURE, "index.md", dict.fromkeys(pictures([PICTURE]), SVG))
    assert 'style="width: 200px; min-width: 120px"' in page


def test_who_does_not_see_a_picture_is_given_its_words():
    assert described(PICTURE) == "diagram: one word, two, three"
