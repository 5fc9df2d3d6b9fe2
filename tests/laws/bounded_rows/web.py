"""Domain rules, pages and answers of search engines."""

from tests.laws.bounded import Row
from wireglot.web.domains import domain_filter

ROWS = [
    Row(
        "a long host",
        lambda n: f"http://{'a.' * n}com/",
        lambda url: domain_filter(["example.com/api"], []).admits(url),
    ),
]
