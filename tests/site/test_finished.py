"""A site that would ask somebody else for something is refused."""

from tests.tiers import rows
from tools.site.finished import problems


def site(folder, page, sheet=""):
    (folder / "index.html").write_text(f"<html>{page}</html>", encoding="utf-8")
    (folder / "own.css").write_text(sheet, encoding="utf-8")
    (folder / "searchindex.js").write_text("", encoding="utf-8")
    return folder


def test_a_site_of_its_own_is_well(tmp_path):
    page = '<link rel="stylesheet" href="own.css?v=1"><a href="https://example.com">x</a><img src="data:,">'
    assert problems(site(tmp_path, page, "a { background: url(data:,) }"), 1) == []


@rows(
    ("page", "sheet", "problem"),
    [
        ('<script src="https://cdn.example.com/x.js"></script>', "", "which is elsewhere"),
        ('<img src="//example.com/x.png">', "", "which is elsewhere"),
        ('<link rel="stylesheet" href="https://fonts.example.com/css">', "", "which is elsewhere"),
        ('<img src="gone.svg">', "", "which is not there"),
        ("", "@font-face { src: url('https://fonts.example.com/a.woff2') }", "which is elsewhere"),
        ("", '@import "https://fonts.example.com/css";', "which is elsewhere"),
    ],
)
def test_what_is_loaded_from_elsewhere_or_not_there_is_reported(tmp_path, page, sheet, problem):
    (found,) = problems(site(tmp_path, page, sheet), 1)
    assert problem in found


def test_pages_that_are_missing_are_reported(tmp_path):
    assert problems(site(tmp_path, ""), 2) == ["1 pages where 2 were expected"]
