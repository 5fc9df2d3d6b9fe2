"""[search] and [fetch]: what they may say, what is refused, and that no key is shown."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.gateway.config.config_files import loaded, problems, refused
from tests.tiers import rows
from wireglot.gateway.observe.redact import secrets_of
from wireglot.gateway.settings import FetchSettings, SearchSettings, Secret
from wireglot_core.extras import install_hint

KEY = "bsa-0123456789abcdefABCDEF"
DEMO = "\n[providers.demo]\n"


def search(tmp_path: Path, lines: str, environ: dict[str, str] | None = None) -> SearchSettings:
    found = loaded(tmp_path, f"[search]\n{lines}{DEMO}", environ or {}).search
    assert found is not None
    return found


def test_without_their_tables_both_are_off(tmp_path):
    settings = loaded(tmp_path, DEMO)
    assert (settings.search, settings.fetch) == (None, None)


WORKING = [
    ('backend = "searxng"\nurl = "http://127.0.0.1:8888/"', {}, "http://127.0.0.1:8888", ""),
    ('backend = "brave"', {"BRAVE_API_KEY": KEY}, "", KEY),
    ('backend = "brave"', {"BRAVE_SEARCH_API_KEY": KEY}, "", KEY),
    ('backend = "tavily"\nkey = "env:MINE"', {"MINE": KEY, "TAVILY_API_KEY": "other"}, "", KEY),
    ('backend = "exa"', {"EXA_API_KEY": KEY}, "", KEY),
    (
        'backend = "exa"\nkey = "KEY"\nurl = "https://proxy.example/exa"',
        {},
        "https://proxy.example/exa",
        "KEY",
    ),
    ('backend = "google"\nengine = "cx:1"', {"GOOGLE_SEARCH_API_KEY": KEY}, "", KEY),
    ('backend = "model"\nmodel = "demo/demo"', {}, "", ""),
]


@rows("lines, environ, url, key", WORKING)
def test_each_backend_is_set_up_with_few_lines(tmp_path, lines, environ, url, key):
    found = search(tmp_path, lines, environ)
    assert (found.url, found.key.value) == (url, key)
    assert found.backend in lines


def test_the_other_fields_have_defaults_and_bounds(tmp_path):
    found = search(tmp_path, 'backend = "searxng"\nurl = "http://s.example"')
    assert (found.max_results, found.timeout, found.price, found.fetch) == (8, 10.0, None, False)
    text = 'backend = "searxng"\nurl = "http://s.example"\nmax_results = 3\ntimeout = 2\nprice = 0.001\n'
    text += 'allowed_domains = ["example.com/docs"]\nblocked_domains = ["example.org"]\nproxy = "http://p.example:3128"'
    found = search(tmp_path, text)
    assert (found.max_results, found.timeout, found.price) == (3, 2.0, 0.001)
    assert (found.allowed_domains, found.blocked_domains) == (("example.com/docs",), ("example.org",))
    assert found.proxy == "http://p.example:3128"


WRONG = [
    ("", "search.backend", "one of brave, exa, google, model, searxng, tavily / none"),
    ('backend = "bing"', "search.backend", "one of"),
    ('backend = "searx"', "search.backend", "did you mean searxng"),
    ("backend = []", "search.backend", "one of"),
    ('backend = "searxng"', "search.url", "SearXNG instance / none"),
    ('backend = "searxng"\nurl = "s.example"', "search.url", "https://"),
    ('backend = "searxng"\nurl = "http://u:p@s.example"', "search.url", "without a user name"),
    ('backend = "searxng"\nurl = "http://s.example/search?q=1"', "search.url", "without a query"),
    ('backend = "brave"', "search.key", "BRAVE_API_KEY or BRAVE_SEARCH_API_KEY in the environment / none"),
    ('backend = "brave"\nkey = "env:NOT_SET"', "search.key", "NOT_SET to be set"),
    ('backend = "brave"\nkey = "a b"', "search.key", "without spaces"),
    ('backend = "brave"\nkey = ""', "search.key", "empty text"),
    ('backend = "searxng"\nurl = "http://s.example"\nprice = inf', "search.price", "to 1000"),
    ('backend = "google"\nkey = "k"', "search.engine", "Programmable Search Engine (cx) / none"),
    ('backend = "brave"\nkey = "k"\nengine = "x"', "search.engine", 'backend = "google"'),
    ('backend = "model"', "search.model", "provider/model / none"),
    ('backend = "model"\nmodel = "nowhere/x"', "search.model", "nowhere/x"),
    (
        'backend = "model"\nmodel = "demo/demo"\nkey = "k"',
        "search.key",
        "the provider of the model has its own",
    ),
    ('backend = "brave"\nkey = "k"\nmodel = "demo/demo"', "search.model", 'backend = "model"'),
    ('backend = "brave"\nkey = "k"\nmax_results = 0', "search.max_results", "from 1 to 20"),
    ('backend = "brave"\nkey = "k"\nmax_results = 21', "search.max_results", "from 1 to 20"),
    ('backend = "brave"\nkey = "k"\ntimeout = 0', "search.timeout", "more than 0"),
    ('backend = "brave"\nkey = "k"\nprice = -1', "search.price", "from 0 to 1000"),
    ('backend = "brave"\nkey = "k"\nallowed_domains = ["a b"]', "search.allowed_domains", "example.com"),
    (
        'backend = "brave"\nkey = "k"\nblocked_domains = "x.com"',
        "search.blocked_domains",
        "a list of domains",
    ),
    ('backend = "brave"\nkey = "k"\nproxy = "socks5://p"', "search.proxy", "http://host:port"),
    ('backend = "brave"\nkey = "k"\nresults = 3', "search.results", "max_results"),
    ('backend = "brave"\nkey = "k"\nfetch = "yes"', "search.fetch", "true or false"),
]


@rows("lines, place, words", WRONG)
def test_what_cannot_work_is_refused_with_its_place(tmp_path, lines, place, words):
    found = problems(tmp_path, f"[search]\n{lines}{DEMO}")
    assert list(found) == [place]
    assert words in found[place]


def test_a_key_of_the_environment_is_not_sent_to_another_host(tmp_path):
    text = f'[search]\nbackend = "brave"\nurl = "https://elsewhere.example"{DEMO}'
    found = problems(tmp_path, text, {"BRAVE_API_KEY": KEY})
    assert found == {"search.key": "an API key for that host / none"}


def test_list_prices_are_in_dollars(tmp_path):
    """With another currency the price of a search is unknown, unless it is free or configured."""
    brave = 'currency = "EUR"\n[search]\nbackend = "brave"\nkey = "k"\n'
    assert problems(tmp_path, brave + DEMO) == {
        "search.price": "what a search costs in EUR: the list price is in US dollars / none"
    }
    found = loaded(tmp_path, f"{brave}price = 0.004{DEMO}", {}).search
    assert found is not None
    assert found.price == 0.004
    free = f'currency = "EUR"\n[search]\nbackend = "searxng"\nurl = "http://s.example"{DEMO}'
    assert loaded(tmp_path, free, {}).search is not None


def test_neither_table_may_be_anything_else(tmp_path):
    assert problems(tmp_path, f"search = 1\nfetch = true{DEMO}") == {
        "search": "a table / a number",
        "fetch": "a table / true",
    }


def test_the_table_or_a_word_of_search_turns_fetching_on(tmp_path):
    searxng = '[search]\nbackend = "searxng"\nurl = "http://s.example"\n'
    assert loaded(tmp_path, f"[fetch]{DEMO}").fetch == FetchSettings()
    assert loaded(tmp_path, f"{searxng}fetch = true{DEMO}").fetch == FetchSettings()
    assert loaded(tmp_path, f"{searxng}fetch = true\n[fetch]\ntimeout = 3{DEMO}").fetch == FetchSettings(
        timeout=3.0
    )
    assert loaded(tmp_path, f"{searxng}{DEMO}").fetch is None
    assert loaded(tmp_path, f"{searxng}fetch = false{DEMO}").fetch is None


FETCHES = [
    ("max_bytes = 0", "fetch.max_bytes", "more than 0"),
    ("max_bytes = 100000000", "fetch.max_bytes", "67108864"),
    ("timeout = 301", "fetch.timeout", "300"),
    ('private_hosts = ["http://wiki"]', "fetch.private_hosts", "host:port"),
    ('private_hosts = ["10.0.0.1/8"]', "fetch.private_hosts", "host:port"),
    ('private_hosts = "wiki"', "fetch.private_hosts", "a list of host names"),
    ('allowed_domains = ["*"]', "fetch.allowed_domains", "example.com"),
    ('proxy = "ftp://p"', "fetch.proxy", "http://host:port"),
    ("max_size = 1", "fetch.max_size", "max_bytes"),
]


@rows("lines, place, words", FETCHES)
def test_a_wrong_fetch_table_is_refused(tmp_path, lines, place, words):
    found = problems(tmp_path, f"[fetch]\n{lines}{DEMO}")
    assert list(found) == [place]
    assert words in found[place]


def test_without_its_package_fetching_is_refused_with_the_command_that_installs_it(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "lxml", None)
    monkeypatch.setattr("wireglot.gateway.config.web.find_spec", lambda name: None)
    assert problems(tmp_path, f"[fetch]{DEMO}") == {
        "fetch": f"the package lxml: {install_hint('web')} / none"
    }


def test_no_secret_of_the_tables_is_shown(tmp_path):
    text = (
        f'[search]\nbackend = "brave"\nkey = "{KEY}"\nproxy = "http://user:hunter2hunter2@p.example:3128"\n'
    )
    settings = loaded(tmp_path, f'{text}[fetch]\nproxy = "http://user:swordfish99@p.example:3128"{DEMO}')
    assert {KEY, "hunter2hunter2", "swordfish99"} <= secrets_of(settings)
    for shown in (repr(settings.search), repr(settings.fetch), repr(settings)):
        assert KEY not in shown
        assert "hunter2" not in shown
        assert "swordfish" not in shown
    error = refused(tmp_path, f'[search]\nbackend = "brave"\nkey = "{KEY}"\nurl = "{KEY}"{DEMO}')
    assert KEY not in str(error)


def test_a_command_that_sends_nothing_does_without_the_key(tmp_path):
    text = f'[search]\nbackend = "brave"\nkey = "env:NOT_SET"{DEMO}'
    settings = loaded(tmp_path, text, keys_needed=False)
    assert settings.search is None
    assert "web search is off: NOT_SET is not set" in settings.notes
    settings = loaded(tmp_path, f'[search]\nbackend = "tavily"{DEMO}', keys_needed=False)
    assert settings.search is None
    assert "web search is off: TAVILY_API_KEY is not set" in settings.notes
    assert "search.max_results" in problems(
        tmp_path, f"{text.replace(DEMO, '')}\nmax_results = 99{DEMO}", keys_needed=False
    )


@pytest.mark.parametrize("source", ["env:BRAVE_API_KEY", "file:brave.key", "config"])
def test_where_the_key_comes_from_is_known(tmp_path, source):
    (tmp_path / "brave.key").write_text(KEY + "\n")
    line = {"config": f'key = "{KEY}"', "file:brave.key": 'key = "file:brave.key"'}.get(source, "")
    found = search(tmp_path, f'backend = "brave"\n{line}', {"BRAVE_API_KEY": KEY})
    assert found.key == Secret(KEY, source)
