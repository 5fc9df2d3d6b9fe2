"""[login]: what it may say, and what is refused."""

from pathlib import Path

import pytest

from tests.gateway.config.config_files import digest, loaded, problems

KEYS = f'\n[keys]\nada = "{digest("k")}"\n[providers.demo]\n[groups.team]\n'
PROVIDER = 'issuer = "https://login.example.com/realm/"\nclient_id = "gw"\nclient_secret = "hush-hush"\n'


def test_without_its_table_there_is_no_login(tmp_path: Path) -> None:
    assert loaded(tmp_path, KEYS).login is None


def test_with_an_empty_table_people_sign_in_with_their_keys(tmp_path: Path) -> None:
    login = loaded(tmp_path, f"[login]\n{KEYS}").login
    assert login is not None
    assert (login.approval, login.token_hours, login.refresh_days) == (("key",), 1.0, 7.0)


def test_with_an_issuer_people_sign_in_there(tmp_path: Path) -> None:
    text = f'[login]\n{PROVIDER}allowed_domains = ["@Example.com"]\n[login.groups]\ndev = "team"\n{KEYS}'
    login = loaded(tmp_path, text).login
    assert login is not None
    assert login.approval == ("oidc",)
    assert login.issuer == "https://login.example.com/realm/"  # to the letter: tokens name it so
    assert login.allowed_domains == ("example.com",)
    assert login.groups == {"dev": "team"}
    assert "hush" not in repr(login)


def test_the_host_of_the_public_url_is_served(tmp_path: Path) -> None:
    settings = loaded(tmp_path, f'[login]\npublic_url = "https://Gateway.example.com/"\n{KEYS}')
    assert settings.login is not None
    assert settings.login.public_url == "https://gateway.example.com"
    assert settings.server.hosts == ("gateway.example.com",)


def test_a_login_that_nobody_needs_is_noted(tmp_path: Path) -> None:
    notes = loaded(tmp_path, "[login]\n[providers.demo]\n").notes
    assert any("[login] is off until" in note for note in notes)
    assert not any("[login]" in note for note in loaded(tmp_path, f"[login]\n{KEYS}").notes)


@pytest.mark.parametrize(
    ("lines", "place", "reported"),
    [
        ('approval = "oidc"\nclient_id = "x"', "login.issuer", "identity provider"),
        ('approval = "oidc"\nissuer = "https://login.example.com"', "login.client_id", "identity provider"),
        ('approval = "admin"', "login.approval", "server.admin_secret"),
        ('approval = "keys"', "login.approval", "did you mean key"),
        ("approval = []", "login.approval", "one of"),
        ("approval = 1", "login.approval", "one of"),
        ('issuer = "http://login.example.com"\nclient_id = "x"', "login.issuer", "https://"),
        (
            'issuer = "https://user:pw@login.example.com"\nclient_id = "x"',
            "login.issuer",
            "without user name",
        ),
        ('issuer = "login.example.com"\nclient_id = "x"', "login.issuer", "https://"),
        (f'{PROVIDER}scopes = ["email"]', "login.scopes", "openid"),
        ('public_url = "http://gateway.example.com"', "login.public_url", "https://"),
        ('public_url = "https://gateway.example.com/path"', "login.public_url", "without a path"),
        ('default_group = "taem"', "login.default_group", "did you mean team"),
        ('[login.groups]\ndev = "taem"', "login.groups.dev", "did you mean team"),
        ("[login.groups]\ndev = 1", "login.groups.dev", "a group of [groups]"),
        ("token_hours = 0", "login.token_hours", "0"),
        ("refresh_days = 1000", "login.refresh_days", "365"),
        (f'notice = "{"x" * 501}"', "login.notice", "500"),
        ('isuer = "x"', "login.isuer", "did you mean issuer"),
    ],
)
def test_what_is_wrong_is_said_at_its_place(tmp_path: Path, lines: str, place: str, reported: str) -> None:
    found = problems(tmp_path, f"[login]\n{lines}\n{KEYS}")
    assert reported in found[place]
    assert set(found) == {place}


def test_beyond_this_machine_the_address_must_be_given(tmp_path: Path) -> None:
    text = f'[server]\nhost = "0.0.0.0"\n[login]\n{KEYS}'
    assert set(problems(tmp_path, text)) == {"login.public_url"}


def test_a_login_that_is_no_table_is_a_problem(tmp_path: Path) -> None:
    assert set(problems(tmp_path, f"login = true\n{KEYS}")) == {"login"}
