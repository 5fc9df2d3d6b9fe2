"""The README as a package's page has it."""

from tools.release.package_page import package_page, project_urls

HOME = "https://code.example/o/n/"
README = """# A
[docs](docs/a.md#b), [`code`](src/x.py), [away](https://example.com/), [here](#a), ![shot](docs/s.svg)
<p><img width="9" src="docs/t.svg"></p>

```mermaid
flowchart LR
```

```sh
echo "[kept](docs/as-it-is.md)"
```
"""


def test_links_become_text_and_pictures_go_while_there_is_no_address():
    assert package_page(README, "", "1.0") == (
        "# A\ndocs, `code`, [away](https://example.com/), here, \n<p></p>\n\n"
        '```sh\necho "[kept](docs/as-it-is.md)"\n```\n'
    )


def test_links_lead_to_the_tag_where_there_is_one():
    page = package_page(README, HOME, "1.0")
    assert "[docs](https://code.example/o/n/blob/v1.0/docs/a.md#b)" in page
    assert "![shot](https://code.example/o/n/raw/v1.0/docs/s.svg)" in page
    assert 'src="https://code.example/o/n/raw/v1.0/docs/t.svg"' in page
    assert "[away](https://example.com/)" in page


def test_addresses_are_reported_only_where_there_is_one():
    assert project_urls("", "1.0") == {}
    assert project_urls(HOME, "1.0")["Issues"] == "https://code.example/o/n/issues"
    assert project_urls(HOME, "1.0")["Changelog"].endswith("/blob/v1.0/CHANGELOG.md")
