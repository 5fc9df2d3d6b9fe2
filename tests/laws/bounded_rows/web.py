"""Domain rules, pages and answers of search engines."""

from tests.laws.bounded import Row
from wireglot.web.domains import domain_filter, parse_rule
from wireglot.web.page_text import read_page

ROWS = [
    Row(
        "a path rule with many stars",
        lambda n: "http://example.com/" + "a" * n,
        lambda url: domain_filter(["example.com/" + "*a" * 12 + "b"], []).admits(url),
        n=150,
    ),
    Row(
        "a long host",
        lambda n: f"http://{'a.' * n}com/",
        lambda url: domain_filter(["example.com/api"], []).admits(url),
    ),
    Row("a long rule", lambda n: "a-" * n, parse_rule),
    Row(
        "many rules",
        lambda n: [f"{number}.of-{n}.example/x" for number in range(n)],
        lambda rules: domain_filter([], rules).admits("https://a.example/y"),
    ),
]


def page(html: str) -> tuple[str, str]:
    return read_page(html.encode(), "text/html", "", "http://example.com/", 10_000)


ROWS += [
    Row("nested elements", lambda n: "<div>" * n + "x", page),
    Row("open links", lambda n: "<a href=/x>" * n + "x", page),
    Row("open titles", lambda n: "<title>x" * n, page),
    Row("tables in tables", lambda n: "<table><tr><td>" * n + "x", page),
    Row("elements that close others", lambda n: "<b><p>x" * n, page),
    Row("attributes", lambda n: "<p " + "".join(f"a{x}=1 " for x in range(n)) + ">x", page),
    Row("an attribute", lambda n: "<p style='" + "display " * n + "'>x", page),
    Row("entities", lambda n: "<p>" + "&amp;" * n, page),
    Row("open comments", lambda n: "<p>x" + "<!--" * n, page),
    Row("blanks", lambda n: "<p>" + " \n" * n + "x", page),
    Row("lines", lambda n: "<pre>" + "\n" * n + "x", page),
    Row("line breaks", lambda n: "<br>" * n + "x", page),
    Row("statements of a charset", lambda n: "<meta " * n + "charset =   ", page),
    Row("text that is no page", lambda n: "<" * n, page),
]
