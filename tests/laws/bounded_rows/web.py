"""Domain rules, pages and answers of search engines."""

from tests.laws.bounded import Row
from wireglot.web.domains import domain_filter, parse_rule

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
