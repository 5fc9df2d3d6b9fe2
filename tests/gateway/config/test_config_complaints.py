"""Each mistake in a file is reported at its place, with what was expected and what was found."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.gateway.config.config_files import digest, loaded, problems
from tests.tiers import rows
from wireglot.gateway.config import ConfigError, load
from wireglot.gateway.config.keys import moment

MINE = '[providers.mine]\ndialect = "openai-chat"\nbase_url = "https://h.example/v1"\n'
KEY = digest("a-key-0123456789")
MONEY = "an amount of money from 0 to 1000000000, like 2.50"


@rows(
    ("text", "path", "expected", "found"),
    [
        ("groups = 1", "groups", "a table", "a number"),
        ('[groups]\n"a/b" = {}', 'groups."a/b"', "a name of letters", '"a/b"'),
        ("[groups]\na = 1", "groups.a", "a table", "a number"),
        ("[groups.a]\ncost_per_day = -1", "groups.a.cost_per_day", MONEY, "-1"),
        ('[groups.a]\ncost_per_day = "much"', "groups.a.cost_per_day", MONEY, '"much"'),
        ("[groups.a.shared]\ncost_per_month = 1e30", "groups.a.shared.cost_per_month", MONEY, "1e+30"),
        (f'[keys.a]\nhash = "{KEY}"\ngroup = "no"', "keys.a.group", "a group of [groups]", '"no"'),
        (f'[keys.a]\nhash = "{KEY}"\nexpires = 5', "keys.a.expires", "a date or a time", "a number"),
        (f'[keys.a]\nhash = "{KEY}"\nexpires = "soon"', "keys.a.expires", "a date or a time", "text"),
        (f'[keys]\na = "sha256:{"x" * 64}"', "keys.a", "sha256:", "characters that are not hex digits"),
        (f'[keys]\na = "{KEY[:-1]}"', "keys.a", "sha256:", "63 digits"),
        (
            "[claude_code.settings]\nx = [1, 2027-01-31]",
            "claude_code.settings.x[1]",
            "a JSON value",
            "a date",
        ),
        ("[claude_code.settings]\nx.y = nan", "claude_code.settings.x.y", "a JSON value", "a number"),
        ("prices = 1", "prices", "a table", "a number"),
        ('[prices]\n"a/b" = 5', 'prices."a/b"', "a table with input and output", "a number"),
        ('[prices]\n"a/b" = { input = -1, output = 1 }', 'prices."a/b".input', "for a million tokens", "-1"),
        ('[prices]\n"a/b" = { input = 1 }', 'prices."a/b".output', "for a million tokens", "none"),
        (MINE + "api_keys = 5", "providers.mine.api_keys", "list", "a number"),
        (MINE + "api_keys = []", "providers.mine.api_keys", "list", "an empty list"),
        (MINE + 'auth = "none"\napi_key = "k-0123456789"', "providers.mine.auth", "a way to send", "none"),
        (MINE + 'dialects = ["openai-chat"]', "providers.mine.dialect", "either dialect or dialects", "both"),
        (
            MINE + 'base_urls = { esperanto = "https://h.example" }',
            "providers.mine.base_urls.esperanto",
            "openai-chat",
            "another name",
        ),
        (MINE + 'models = ["a", ""]', "providers.mine.models[1]", "the name of a model", "empty text"),
        (MINE + 'models = ["a b"]', "providers.mine.models[0]", "the name of a model", '"a b"'),
        (MINE + 'models = ["a", "a"]', "providers.mine.models[1]", "each name once", '"a" again'),
        ('[providers."a b"]\ncatalog = "demo"', 'providers."a b"', "a name of letters", '"a b"'),
        ("[providers]\na = 5", "providers.a", "a table", "a number"),
        ('[providers.a]\ndialect = "openai-chat"\nbase_url = 5', "providers.a.base_url", "text", "5"),
        (
            '[providers.a]\ndialect = "openai-chat"\nbase_url = ""',
            "providers.a.base_url",
            "http",
            "empty text",
        ),
        (
            '[providers.a]\ndialect = "openai-chat"\nbase_url = "http://[::1"',
            "providers.a.base_url",
            "http",
            "text that is not a URL",
        ),
        (
            '[providers.a]\ndialect = "openai-chat"\nbase_url = "http:///v1"',
            "providers.a.base_url",
            "a URL with a host name",
            "none",
        ),
        (
            '[providers.a]\ndialect = "openai-chat"\nbase_url = "http://h/../v1"',
            "providers.a.base_url",
            "a plain path",
            "'..'",
        ),
        (
            '[providers.vertex]\nproject = "a b"\napi_key = "k-0123456789"',
            "providers.vertex.project",
            "letters, digits",
            "text",
        ),
        ('[server]\nold_secrets = "x"', "server.old_secrets", "list", "text"),
        ('[models]\nx = "demo/"\n[providers.demo]', "models.x", "provider/model", '"demo/"'),
        ("[models]\nx = []", "models.x", "provider/model", "an empty list"),
        ("[models]\nx = 5\ny = []", "models.y", "provider/model", "an empty list"),
        ('[models]\nx = ["demo/demo", "a b"]\n[providers.demo]', "models.x[1]", "provider/model", '"a b"'),
        (
            MINE + 'login = { kind = "entra", tenant = "tä", client = "c", secret = "s-0123456789" }',
            "providers.mine.login.tenant",
            "text of ASCII characters",
            "text",
        ),
    ],
)
def test_a_mistake_is_reported_at_its_place(
    tmp_path: Path, text: str, path: str, expected: str, found: str
) -> None:
    reported = problems(tmp_path, text)
    assert path in reported, reported
    said, came = reported[path].rsplit(" / ", 1)
    assert expected in said
    assert found in came


def test_a_key_file_that_is_no_service_account_is_reported(tmp_path: Path) -> None:
    text = '[providers.vertex]\nproject = "p"\nlogin = { kind = "google", key_file = "sa.json" }\n'
    for content in ('{"type": "authorized_user"}', "[]", "no JSON"):
        (tmp_path / "sa.json").write_text(content)
        reported = problems(tmp_path, text)["providers.vertex.login.key_file"]
        assert "the key of a service account" in reported
        assert "something else" in reported


@rows(
    ("value", "expected"),
    [
        ("2027-01-31", 1801353600000),
        ("2027-01-31T18:00:00Z", 1801418400000),
        ("2027-01-31T18:00:00+02:00", 1801411200000),
        ("1960-01-01", None),
        ("tomorrow", None),
        (5, None),
    ],
)
def test_a_key_ends_at_a_date_or_a_time_in_utc(value: object, expected: int | None) -> None:
    assert moment(value) == expected


def test_old_secrets_are_kept_in_their_order(tmp_path: Path) -> None:
    text = '[server]\nold_secrets = ["an-older-secret-0123456789", "env:OLDEST"]\n'
    settings = loaded(tmp_path, text, {"OLDEST": "the-oldest-secret-0123456789"})
    assert [secret.value for secret in settings.server.old_secrets] == [
        "an-older-secret-0123456789",
        "the-oldest-secret-0123456789",
    ]


def test_no_limit_is_said_by_null_where_json_is_read() -> None:
    """Overrides of a program are JSON, and a group's limit can be taken back there."""
    with pytest.raises(ConfigError):
        load(None, environ={}, overrides={"groups": {"a": {"cost_per_day": "x"}}}, create_secret=False)
    settings = load(
        None, environ={}, overrides={"groups": {"a": {"cost_per_day": None}}}, create_secret=False
    )
    assert settings.groups["a"].limits.cost_per_day == 0


def test_a_key_that_cannot_be_sent_leaves_its_provider_off_with_a_note(tmp_path: Path) -> None:
    settings = loaded(tmp_path, "", {"OPENAI_API_KEY": "two words"})
    assert "openai" not in settings.providers
    assert "provider openai is off: OPENAI_API_KEY contains no valid key" in "\n".join(
        settings.notes
    ).replace("env:", "")
