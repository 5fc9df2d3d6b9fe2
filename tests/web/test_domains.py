"""Laws of domain filters."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.tiers import rows
from wireglot.web.domains import MAX_RULE_CHARACTERS, DomainRule, bad_rules, domain_filter, parse_rule

MATCHES = [
    ("example.com", "https://example.com/", True),
    ("example.com", "http://example.com", True),
    ("example.com", "https://docs.example.com/x", True),
    ("example.com", "https://a.b.example.com/x", True),
    ("example.com", "https://example.com./x", True),
    ("example.com", "https://EXAMPLE.COM:8443/x", True),
    ("example.com", "https://notexample.com/", False),
    ("example.com", "https://example.com.evil.net/", False),
    ("example.com", "https://example.org/?example.com", False),
    ("example.com", "https://user@example.com/", True),
    ("example.com", "https://example.com@evil.net/", False),
    ("example.com", "ftp://example.com/", False),
    ("example.com", "example.com", False),
    ("example.com", "https://", False),
    ("example.com", "https://[::1", False),
    ("docs.example.com", "https://example.com/", False),
    ("*.example.com", "https://docs.example.com/", True),
    ("https://example.com", "https://example.com/", True),
    ("Example.COM.", "https://example.com/", True),
    ("bücher.example", "https://xn--bcher-kva.example/", True),
    ("xn--bcher-kva.example", "https://bücher.example/", True),
    ("example.com/", "https://example.com/any", True),
    ("example.com/*", "https://example.com/any", True),
    ("example.com/blog", "https://example.com/blog/post", True),
    ("example.com/blog", "https://sub.example.com/blog", True),
    ("example.com/blog", "https://example.com/", False),
    ("example.com/blog", "https://example.com/about/blog", False),
    ("example.com/*/news", "https://example.com/de/news/1", True),
    ("example.com/*/news", "https://example.com/de/about", False),
    ("example.com/blog", "https://example.com/%62log/x", True),
    ("example.com/blog", "https://example.com/x/../blog/y", True),
    ("example.com/blog", "https://example.com/blog/../about", False),
    ("example.com/blog", "https://example.com/./blog/", True),
    ("example.com/blog", "https://example.com/../../blog", True),
    ("example.com/blog", "https://example.com/blogs", True),
    ("example.com/blog/", "https://example.com/blog", False),
    ("example.com/a.b", "https://example.com/axb", False),
    ("HTTP://example.com/x", "https://example.com/x", True),
    (" example.com ", "https://example.com/", True),
    ("example.com/*/", "https://example.com/x/", True),
    ("a_b.example", "https://a_b.example/", True),
    ("example.com/*/news", "https://example.com/a%3Fb/news", True),
    ("example.com/a*b*c", "https://example.com/a/b/c/d", True),
    ("example.com/a*b*c", "https://example.com/a/c/b", False),
]


@rows("rule, url, matched", MATCHES)
def test_a_rule_lets_its_domain_and_what_is_below_it_through(rule, url, matched):
    assert domain_filter([rule], []).admits(url) is matched
    if url.startswith("http") and "[" not in url and url != "https://":
        assert domain_filter([], [rule]).admits(url) is not matched


def test_texts_that_are_no_domains_match_nothing():
    wrong = [
        "",
        " ",
        "a b.com",
        "exa*mple.com",
        "..",
        "-a.com",
        "http://",
        "a..b",
        "é" * 300,
        f"a.com/{'a' * MAX_RULE_CHARACTERS}",
    ]
    assert bad_rules(wrong) == wrong
    assert domain_filter(wrong, []).admits_nothing
    assert not domain_filter(wrong, []).admits("https://example.com/")
    assert domain_filter([], wrong).admits("https://example.com/")


def test_without_lists_every_page_is_admitted():
    assert domain_filter([], []).admits("https://anything.example/")


def test_a_rule_is_a_host_and_a_path():
    for text, rule in (
        ("https://*.Example.com/a/*", DomainRule("example.com", "/a/")),
        ("example.com/*", DomainRule("example.com")),
        ("example.com", DomainRule("example.com")),
        ("a-.example", None),
    ):
        assert parse_rule(text) == rule, text


def test_the_hosts_for_a_backend_are_what_all_lists_have_in_common():
    for lists, hosts in (
        ([], []),
        ([["b.com", "a.com/x", "b.com/y"]], ["b.com", "a.com"]),
        ([["a.com", "b.com"], ["sub.a.com", "c.com"]], ["sub.a.com"]),
        ([["sub.a.com", "c.com"], ["a.com"], ["c.com", "sub.a.com"]], ["sub.a.com"]),
        ([["a.com"], ["b.com"]], []),
    ):
        filtered = domain_filter([], [])
        for rules in lists:
            filtered = filtered.within(domain_filter(rules, []))
        assert filtered.allowed_hosts == hosts, lists
        assert filtered.admits_nothing is (bool(lists) and not hosts)
    assert domain_filter([], ["a.com", "b.com/x", "a.com"]).blocked_hosts == ["a.com"]


def test_operators_are_added_as_far_as_they_fit():
    allowing, blocking = domain_filter(["a.com", "b.com"], ["c.com"]), domain_filter([], ["a.com", "b.com"])
    for filtered, characters, words, query in (
        (allowing, 30, 4, "q (site:a.com OR site:b.com)"),
        (allowing, 28, 4, "q (site:a.com OR site:b.com)"),
        (allowing, 27, 4, "q"),
        (allowing, 30, 3, "q"),
        (domain_filter(["a.com"], []), 30, 4, "q site:a.com"),
        (blocking, 30, 4, "q -site:a.com -site:b.com"),
        (blocking, 25, 3, "q -site:a.com -site:b.com"),
        (blocking, 24, 3, "q -site:a.com"),
        (blocking, 30, 2, "q -site:a.com"),
        (blocking, 12, 9, "q"),
    ):
        assert filtered.with_operators("q", characters, words) == query


labels = st.sampled_from(["a", "b", "example", "com", "net"])
hosts = st.lists(labels, min_size=1, max_size=4).map(".".join)
paths = st.sampled_from(["", "/", "/x", "/x/y", "/y"])
rules = st.builds(lambda host, path: host + path, hosts, paths)
filters = st.builds(domain_filter, st.lists(rules, max_size=3), st.lists(rules, max_size=2))
urls = st.builds(lambda host, path: f"https://{host}{path}", hosts, paths)


@given(filters, filters, urls)
def test_what_two_filters_admit_together_is_what_both_admit(first, second, url):
    assert first.within(second).admits(url) == (first.admits(url) and second.admits(url))


@given(filters, filters, urls)
def test_the_order_of_two_filters_does_not_matter(first, second, url):
    assert first.within(second).admits(url) == second.within(first).admits(url)


@given(filters, urls)
def test_a_blocked_domain_is_never_admitted(filtered, url):
    blocking = domain_filter([], [url.removeprefix("https://")])
    assert not filtered.within(blocking).admits(url)


@given(filters, filters, urls)
def test_the_hosts_for_a_backend_hide_nothing_that_is_admitted(first, second, url):
    filtered = first.within(second)
    if filtered.admits(url) and filtered.allowed:
        assert not filtered.admits_nothing
        host = url.removeprefix("https://").partition("/")[0]
        assert any(host == each or host.endswith(f".{each}") for each in filtered.allowed_hosts)
    if filtered.admits(url):
        assert domain_filter([], filtered.blocked_hosts).admits(url)


@given(st.text(max_size=30))
def test_any_text_is_a_rule_or_none(text):
    found = parse_rule(text)
    assert found is None or found == parse_rule(found.host + found.path) or "*" in text
    assert found is None or isinstance(found, DomainRule)


@given(filters, st.text("ab ", min_size=1, max_size=30), st.integers(1, 60), st.integers(1, 8))
def test_operators_keep_within_the_limits_of_a_backend(filtered, query, characters, words):
    asked = filtered.with_operators(query, characters, words)
    assert asked.startswith(query)
    assert asked == query or (len(asked) <= characters and len(asked.split()) <= words)
