"""Every search backend against a server that speaks its form, with all that can go wrong."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from proofs.search_double import KEY, RESULTS, SearchDouble
from tests.http.limits_kit import Limits
from tests.tiers import rows
from wireglot.http.client.client import HttpTransport
from wireglot.web import backends
from wireglot.web.backends import FORMS, HttpBackend, HttpSearch, SearchAccount
from wireglot.web.contract import Hit, Query, WebFailed

BACKENDS: list[HttpBackend] = list(FORMS)
PAGES = [(url, title, text, age) for url, title, text, age in RESULTS if url.startswith("http")]


@pytest.fixture(scope="module")
def server():
    with SearchDouble() as double:
        yield double


def search(server: SearchDouble, backend: HttpBackend, query: Query | str, **account) -> Sequence[Hit]:
    async def run() -> Sequence[Hit]:
        transport = HttpTransport(Limits())
        try:
            made = SearchAccount(
                **{"url": server.url, "key": KEY, "engine": "cx-1", "timeout": 60.0, **account}
            )
            asked = query if isinstance(query, Query) else Query(query)
            return await HttpSearch(backend, made, {"http": transport, "https": transport}).search(asked)
        finally:
            await transport.close()

    server.requests.clear()
    return asyncio.run(run())


def failure(server: SearchDouble, backend: HttpBackend, query: Query | str, **account) -> WebFailed:
    with pytest.raises(WebFailed) as caught:
        search(server, backend, query, **account)
    assert KEY not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None or KEY not in repr(caught.value.__context__)
    return caught.value


@rows("backend", BACKENDS)
def test_results_come_with_address_title_text_and_age(server, backend):
    hits = search(server, backend, "what is new")
    assert [(hit.url, hit.title) for hit in hits] == [(url, title) for url, title, _, _ in PAGES]
    assert all(page[2] in hit.text for hit, page in zip(hits, PAGES, strict=True))
    if backend != "google":  # which reports none
        assert [hit.age for hit in hits] == [page[3] for page in PAGES]
    ((asked, fields, _),) = server.requests
    assert asked == backend
    assert (fields.get("q") or fields.get("query")) == "what is new"


@rows("backend", BACKENDS)
def test_no_result_is_no_failure(server, backend):
    assert search(server, backend, "[[none]]") == ()


def test_searxng_without_an_engine_that_answers_has_failed(server, monkeypatch):
    found = {"results": [], "unresponsive_engines": [["google", "CAPTCHA"], ["bing", "timeout"]]}
    monkeypatch.setattr("proofs.search_double._document", lambda *_: found)
    failed = failure(server, "searxng", "x")
    assert (failed.code, str(failed)) == (
        "unavailable",
        "SearXNG found nothing, and 2 of its engines did not answer",
    )


FAILURES = [
    ("fail 401", "unavailable", "refused access (status 401)"),
    ("fail 403", "unavailable", "refused access (status 403)"),
    ("fail 402", "unavailable", "credit is used up (status 402)"),
    ("fail 429", "too_many_requests", "too many requests (status 429)"),
    ("fail 432", "unavailable", "credit is used up (status 432)"),
    ("fail 433", "unavailable", "credit is used up (status 433)"),
    ("fail 413", "request_too_large", "too large (status 413)"),
    ("fail 414", "request_too_large", "too large (status 414)"),
    ("fail 422", "unavailable", "status 422"),
    ("fail 500", "unavailable", "status 500"),
    ("fail 302", "unavailable", "status 302"),
    ("malformed", "unavailable", "something other than a JSON object"),
    ("list", "unavailable", "something other than a JSON object"),
    ("cut", "unavailable", "could not be reached: broken"),
    ("huge", "unavailable", "could not be reached: too_large"),
]


@rows("backend", BACKENDS)
@rows("order, code, words", FAILURES, ids=lambda row: row[0])
def test_a_failure_is_reported_by_its_code_and_without_the_key(server, backend, order, code, words):
    failed = failure(server, backend, f"[[{order}]]")
    assert failed.code == code
    assert words in str(failed)
    assert str(failed).startswith(FORMS[backend].title)


@rows("backend", BACKENDS)
def test_a_backend_that_is_silent_is_given_up(server, backend):
    failed = failure(server, backend, "[[silent]]", timeout=0.2)
    assert (failed.code, str(failed)) == (
        "unavailable",
        f"{FORMS[backend].title} did not answer within 0.2 s",
    )


def test_a_host_that_is_not_there_is_reported(server):
    failed = failure(server, "brave", "x", url="http://127.0.0.1:9")
    assert (failed.code, str(failed)) == ("unavailable", "Brave Search could not be reached: connect")


@rows("backend", [name for name in BACKENDS if name != "searxng"])
def test_a_wrong_key_is_refused_and_not_repeated(server, backend):
    wrong = "wrong-key-123456789"
    failed = failure(server, backend, "x", key=wrong)
    assert failed.code == "unavailable"
    assert wrong not in str(failed)


@rows("backend", BACKENDS)
def test_the_key_is_in_a_header_and_never_in_the_url_or_the_body(server, backend):
    search(server, backend, "x")
    (_, fields, headers) = server.requests[0]
    assert KEY not in str(fields)
    assert sum(KEY in value for value in headers.values()) == 1


@rows("backend", BACKENDS)
def test_an_account_does_not_show_its_key(server, backend):
    account = SearchAccount(url=server.url, key=KEY, proxy="http://user:hunter2@proxy:8080")
    transport = HttpTransport(Limits())
    backend_object = HttpSearch(backend, account, {"http": transport})
    for shown in (repr(account), str(account), repr(backend_object)):
        assert KEY not in shown
        assert "hunter2" not in shown


def fields_of(server: SearchDouble, backend: HttpBackend, query: Query, **account) -> dict:
    search(server, backend, query, **account)
    return server.requests[0][1]


def test_domains_go_out_in_the_backends_own_way(server):
    allow = Query("q", allowed_domains=("example.com", "example.org/news"))
    block = Query("q", blocked_domains=("example.com", "example.org/news"))
    assert fields_of(server, "tavily", allow)["include_domains"] == ["example.com", "example.org"]
    assert fields_of(server, "tavily", block)["exclude_domains"] == [
        "example.com"
    ]  # the rest of the other may come
    assert fields_of(server, "exa", allow)["includeDomains"] == ["example.com", "example.org"]
    assert fields_of(server, "exa", block)["excludeDomains"] == ["example.com"]
    operators: list[HttpBackend] = ["searxng", "brave", "google"]
    for backend in operators:
        assert fields_of(server, backend, allow)["q"] == "q (site:example.com OR site:example.org)"
    for backend in operators[:2]:
        assert fields_of(server, backend, block)["q"] == "q -site:example.com"
    one = fields_of(server, "google", Query("q", allowed_domains=("example.com",)))
    assert (one["q"], one["siteSearch"], one["siteSearchFilter"]) == ("q", "example.com", "i")
    none = fields_of(server, "google", block)
    assert (none["q"], none["siteSearch"], none["siteSearchFilter"]) == ("q", "example.com", "e")


def test_operators_that_do_not_fit_are_left_out_and_results_filtered_all_the_same(server):
    many = (*(f"domain-{n}.example" for n in range(60)), "docs.example.com")
    query = Query("q", allowed_domains=many)
    assert fields_of(server, "brave", query)["q"] == "q"
    assert {hit.url for hit in search(server, "brave", query)} == {RESULTS[0][0], RESULTS[3][0]}


@rows("backend", BACKENDS)
def test_results_are_filtered_again_whatever_the_backend_sends(server, backend):
    allowed = search(server, backend, Query("q", allowed_domains=("docs.example.com",)))
    assert [hit.url for hit in allowed] == [RESULTS[0][0], RESULTS[3][0]]
    blocked = search(server, backend, Query("q", blocked_domains=("example.com", "notexample.com")))
    assert [hit.url for hit in blocked] == [RESULTS[1][0], RESULTS[2][0]]


@rows("backend", BACKENDS)
def test_the_operators_lists_hold_for_every_search(server, backend):
    always = {
        "allowed_domains": ("example.com", "example.net"),
        "blocked_domains": ("blog.docs.example.com",),
    }
    assert [hit.url for hit in search(server, backend, "q", **always)] == [RESULTS[0][0], RESULTS[2][0]]
    narrowed = search(server, backend, Query("q", allowed_domains=("docs.example.com",)), **always)
    assert [hit.url for hit in narrowed] == [RESULTS[0][0]]


@rows("backend", BACKENDS)
def test_lists_that_exclude_one_another_find_nothing_and_ask_nobody(server, backend):
    query = Query("q", allowed_domains=("example.org",))
    assert search(server, backend, query, allowed_domains=("example.com",)) == ()
    assert server.requests == []


def test_the_place_of_the_user_goes_out_where_it_can(server):
    query = Query(
        "q", location={"city": "Zürich", "region": "ZH", "country": "ch", "timezone": "Europe/Zurich"}
    )
    assert fields_of(server, "brave", query)["country"] == "CH"
    headers = server.requests[0][2]
    assert "x-loc-city" not in headers  # a header holds ASCII
    assert (headers["x-loc-country"], headers["x-loc-state-name"]) == ("ch", "ZH")
    assert headers["x-loc-timezone"] == "Europe/Zurich"
    assert fields_of(server, "tavily", query)["country"] == "switzerland"
    assert fields_of(server, "exa", query)["userLocation"] == "CH"
    assert fields_of(server, "google", query)["gl"] == "ch"
    unknown = Query("q", location={"country": "XX", "city": "a\r\nx-evil: 1"})
    assert "country" not in fields_of(server, "brave", unknown)
    assert "x-evil" not in server.requests[0][2]
    assert "country" not in fields_of(server, "tavily", unknown)


def test_the_context_size_chooses_how_much_comes(server):
    sizes = {
        size: fields_of(server, "exa", Query("q", context_size=size), max_results=9)
        for size in ("low", "", "high")
    }
    assert [sizes[size]["numResults"] for size in sizes] == [5, 9, 9]
    assert [sizes[size]["contents"] for size in sizes] == [
        {"highlights": {"maxCharacters": 400}},
        {"highlights": {"maxCharacters": 1500}},
        {"text": {"maxCharacters": 5000}},
    ]
    assert "extra_snippets" not in fields_of(server, "brave", Query("q", context_size="low"))
    assert fields_of(server, "brave", Query("q"))["extra_snippets"] == "true"
    assert "include_raw_content" not in fields_of(server, "tavily", Query("q"))
    assert fields_of(server, "tavily", Query("q", context_size="high"))["include_raw_content"] == "text"


def test_no_more_results_come_than_are_wanted_and_text_is_cut(server, monkeypatch):
    long = tuple((f"https://example.com/{n}", "T" * 1000, "word " * 5000, "") for n in range(30))
    monkeypatch.setattr("proofs.search_double.RESULTS", long)
    hits = search(server, "searxng", "q", max_results=7)
    assert len(hits) == 7
    assert {len(hit.title) for hit in hits} == {300}
    assert {hit.text[-9:] for hit in hits} == {"word [...]"[-9:]}
    assert max(len(hit.text) for hit in hits) <= backends._TEXT["medium"] + 6


def test_a_page_comes_once(server, monkeypatch):
    monkeypatch.setattr("proofs.search_double.RESULTS", (*RESULTS[:2], *RESULTS[:2]))
    assert len(search(server, "searxng", "q")) == 2


def test_what_is_no_text_is_overlooked(server, monkeypatch):
    found = {"results": [None, 7, {"url": 5}, {"url": "https://a.example/", "title": None, "content": ["x"]}]}
    monkeypatch.setattr("proofs.search_double._document", lambda *_: found)
    assert search(server, "searxng", "q") == (Hit("https://a.example/", "https://a.example/"),)


QUERIES = [
    ("brave", "x" * 401, "query_too_long"),
    ("brave", "x " * 51, "query_too_long"),
    ("tavily", "x" * 401, "query_too_long"),
    ("google", "x " * 33, "query_too_long"),
    ("searxng", "x" * 2001, "query_too_long"),
    ("exa", "", "invalid_tool_input"),
    ("searxng", " \n ", "invalid_tool_input"),
]


@rows("backend, text, code", QUERIES)
def test_a_query_that_no_backend_takes_is_not_sent(server, backend, text, code):
    assert failure(server, backend, text).code == code
    assert server.requests == []


@rows(
    "backend, text",
    [
        ("brave", "x" * 400),
        ("brave", "x " * 50),
        ("tavily", "x" * 400),
        ("google", "x " * 32),
        ("google", "x" * 2000),
        ("searxng", "x" * 2000),
        ("searxng", "x " * 1000),
        ("exa", "x" * 2000),
    ],
)
def test_a_query_may_be_as_long_as_its_backend_takes(server, backend, text):
    fields = fields_of(server, backend, Query(text))
    assert (fields.get("q") or fields.get("query")) == text.strip()


def test_each_backend_is_sent_what_its_reference_asks_for(server):
    """Every field of the plainest search."""
    plain = {
        "searxng": {"q": "q", "format": "json"},
        "brave": {
            "q": "q",
            "count": "8",
            "result_filter": "web",
            "text_decorations": "false",
            "extra_snippets": "true",
        },
        "tavily": {"query": "q", "max_results": 8, "search_depth": "basic"},
        "exa": {
            "query": "q",
            "type": "auto",
            "numResults": 8,
            "contents": {"highlights": {"maxCharacters": 1500}},
        },
        "google": {"q": "q", "cx": "cx-1", "num": "8"},
    }
    assert {backend: fields_of(server, backend, Query("q")) for backend in BACKENDS} == plain


KEY_HEADERS = {
    "searxng": ("authorization", f"Bearer {KEY}"),
    "brave": ("x-subscription-token", KEY),
    "tavily": ("authorization", f"Bearer {KEY}"),
    "exa": ("x-api-key", KEY),
    "google": ("x-goog-api-key", KEY),
}


@rows("backend", BACKENDS)
def test_each_backend_gets_its_key_where_its_reference_says(server, backend):
    search(server, backend, "q")
    headers = server.requests[0][2]
    name, value = KEY_HEADERS[backend]
    assert headers[name] == value
    assert headers["user-agent"] == "wireglot"
    if backend in ("tavily", "exa"):
        assert headers["content-type"] == "application/json"
    if backend == "brave":
        assert headers["accept"] == "application/json"


def test_searxng_without_a_key_gets_no_header_for_one(server):
    search(server, "searxng", "q", key="")
    assert "authorization" not in server.requests[0][2]


def test_the_addresses_and_variables_are_the_vendors():
    assert {name: (form.title, form.url, form.variables) for name, form in FORMS.items()} == {
        "searxng": ("SearXNG", "", ()),
        "brave": ("Brave Search", "https://api.search.brave.com", ("BRAVE_API_KEY", "BRAVE_SEARCH_API_KEY")),
        "tavily": ("Tavily", "https://api.tavily.com", ("TAVILY_API_KEY",)),
        "exa": ("Exa", "https://api.exa.ai", ("EXA_API_KEY",)),
        "google": ("Google Programmable Search", "https://www.googleapis.com", ("GOOGLE_SEARCH_API_KEY",)),
    }


def test_a_slash_behind_the_address_changes_nothing(server):
    assert len(search(server, "brave", "q", url=f"{server.url}/")) == len(PAGES)
    transport = HttpTransport(Limits())
    made = HttpSearch("searxng", SearchAccount(url="https://h.example/searx/"), {"https": transport})
    assert made._url == "https://h.example/searx"


def test_no_backend_is_asked_for_more_than_it_gives(server):
    wanted = {
        "brave": fields_of(server, "brave", Query("q"), max_results=100)["count"],
        "tavily": fields_of(server, "tavily", Query("q"), max_results=100)["max_results"],
        "exa": fields_of(server, "exa", Query("q"), max_results=100)["numResults"],
        "google": fields_of(server, "google", Query("q"), max_results=100)["num"],
    }
    assert wanted == {"brave": "20", "tavily": 20, "exa": 20, "google": "10"}


def test_tavily_takes_long_lists_of_domains_up_to_its_limits(server):
    hosts = tuple(f"d{n}.example" for n in range(301))
    assert len(fields_of(server, "tavily", Query("q", allowed_domains=hosts[:300]))["include_domains"]) == 300
    assert "include_domains" not in fields_of(server, "tavily", Query("q", allowed_domains=hosts))
    blocked = fields_of(server, "tavily", Query("q", blocked_domains=hosts))["exclude_domains"]
    assert blocked == list(hosts[:150])
    assert not {"include_domains", "exclude_domains"} & set(fields_of(server, "tavily", Query("q")))


def test_google_gets_operators_where_its_fields_take_one_domain_only(server):
    two = Query("q", blocked_domains=("a.example", "b.example"))
    fields = fields_of(server, "google", two)
    assert (fields["q"], "siteSearch" in fields) == ("q -site:a.example -site:b.example", False)
    both = Query("q", allowed_domains=("a.example", "b.example"), blocked_domains=("c.example",))
    fields = fields_of(server, "google", both)
    assert (fields["q"], "siteSearch" in fields) == ("q (site:a.example OR site:b.example)", False)


def test_a_country_that_is_no_code_is_not_sent(server):
    for country in ("", "Switzerland", "c"):
        query = Query("q", location={"country": country})
        assert "userLocation" not in fields_of(server, "exa", query)
        assert "gl" not in fields_of(server, "google", query)
    headers = {"city": "Bern", "region": "BE", "country": "CH", "timezone": "Europe/Zurich"}
    search(server, "brave", Query("q", location=headers))
    sent = server.requests[0][2]
    names = ("x-loc-city", "x-loc-state-name", "x-loc-country", "x-loc-timezone")
    assert [sent[name] for name in names] == list(headers.values())


def test_the_parts_of_a_result_are_read_where_each_backend_has_them(server, monkeypatch):
    """With all that a result may have; of two places for one part, the better one."""
    url = "https://a.example/"
    documents: dict[HttpBackend, tuple[dict, Hit]] = {
        "searxng": (
            {"results": [{"url": url, "title": "T", "content": "C", "publishedDate": "D"}]},
            Hit(url, "T", "C", "D"),
        ),
        "brave": (
            {
                "web": {
                    "results": [
                        {
                            "url": url,
                            "title": "T",
                            "description": "C",
                            "extra_snippets": ["E", 5, "F"],
                            "page_age": "D",
                            "age": "A",
                        }
                    ]
                }
            },
            Hit(url, "T", "C\nE\nF", "D"),
        ),
        "tavily": (
            {
                "results": [
                    {"url": url, "title": "T", "raw_content": "R", "content": "C", "published_date": "D"}
                ]
            },
            Hit(url, "T", "R", "D"),
        ),
        "exa": (
            {"results": [{"url": url, "title": "T", "text": "X", "highlights": ["H"], "publishedDate": "D"}]},
            Hit(url, "T", "X", "D"),
        ),
        "google": ({"items": [{"link": url, "title": "T", "snippet": "C"}]}, Hit(url, "T", "C")),
    }
    for backend, (document, hit) in documents.items():
        monkeypatch.setattr("proofs.search_double._document", lambda *_, found=document: found)
        assert search(server, backend, "q") == (hit,), backend
    others: list[tuple[HttpBackend, dict, Hit]] = [
        ("brave", {"web": {"results": [{"url": url, "age": "A"}]}}, Hit(url, url, "", "A")),
        ("tavily", {"results": [{"url": url, "content": "C"}]}, Hit(url, url, "C")),
        ("exa", {"results": [{"url": url, "highlights": ["H", None, "I"]}]}, Hit(url, url, "H\nI")),
        ("exa", {"results": [{"url": url, "highlights": "H"}]}, Hit(url, url)),
        ("brave", {"web": {"results": [{"url": url, "extra_snippets": "E"}]}}, Hit(url, url)),
    ]
    for backend, document, hit in others:
        monkeypatch.setattr("proofs.search_double._document", lambda *_, found=document: found)
        assert search(server, backend, "q") == (hit,), document
    nothing: list[tuple[HttpBackend, dict]] = [
        ("brave", {"web": [1]}),
        ("brave", {}),
        ("searxng", {"results": {"url": url}}),
        ("searxng", {"results": [], "unresponsive_engines": "google"}),
        ("searxng", {"results": [], "unresponsive_engines": []}),
        ("google", {"searchInformation": {}}),
    ]
    for backend, document in nothing:
        monkeypatch.setattr("proofs.search_double._document", lambda *_, found=document: found)
        assert search(server, backend, "q") == (), document


def test_engines_that_do_not_answer_are_no_failure_beside_results(server, monkeypatch):
    found = {"results": [{"url": "https://a.example/"}], "unresponsive_engines": [["google", "CAPTCHA"]]}
    monkeypatch.setattr("proofs.search_double._document", lambda *_: found)
    assert len(search(server, "searxng", "q")) == 1


def test_a_text_is_cut_after_the_characters_of_its_context_size(server, monkeypatch):
    for size, characters in (("low", 400), ("medium", 1500), ("high", 5000), ("unknown", 1500)):
        query = Query("q", context_size=size)
        for length, end in ((characters, ""), (characters + 1, " [...]")):
            result = (("https://a.example/", " T \n U ", f"  {'x' * length} ", ""),)
            monkeypatch.setattr("proofs.search_double.RESULTS", result)
            (hit,) = search(server, "searxng", query)
            assert (hit.title, hit.text) == ("T U", "x" * characters + end)


def test_a_search_of_low_context_gives_half_the_results_rounded_up(server):
    for most, half in ((1, 1), (2, 1), (3, 2)):
        assert len(search(server, "searxng", Query("q", context_size="low"), max_results=most)) == half


def test_a_query_may_hold_any_text(server):
    assert (
        fields_of(server, "searxng", Query('a&b=c #"ü€\U0001f600 \ud800\n\tz'))["q"]
        == 'a&b=c #"ü€\U0001f600 ? z'
    )
    assert fields_of(server, "exa", Query("\ud800 x"))["query"] == "? x"


def test_prices_are_the_vendors_unless_the_operator_says_otherwise(server):
    transport = HttpTransport(Limits())

    def price(backend: HttpBackend, **account) -> float:
        made = SearchAccount(url="https://search.example", **account)
        return HttpSearch(backend, made, {"https": transport}).price

    assert {backend: price(backend) for backend in BACKENDS} == {
        "searxng": 0.0,
        "brave": 0.005,
        "tavily": 0.008,
        "exa": 0.007,
        "google": 0.005,
    }
    assert price("brave", price=0.0) == 0.0
    assert price("searxng", price=0.01) == 0.01
