"""`login` of a provider: what it comes to, and what `wireglot config check` tells is missing."""

from __future__ import annotations

import pickle
import re
from pathlib import Path
from typing import get_args

import pytest

from tests.gateway.config.config_files import QUIET, loaded, problems
from tests.tiers import rows
from wireglot.gateway.config.logins import format_login
from wireglot.gateway.config.provider_table import LoginTable
from wireglot.gateway.observe.redact import secrets_of
from wireglot.gateway.settings import Credential, Settings
from wireglot.logins.login import AwsLogin, EntraLogin, GoogleLogin, LoginKind
from wireglot_core.extras import install_hint
from wireglot_core.providers.spec import names, provider

ENTRA = {"AZURE_TENANT_ID": "t", "AZURE_CLIENT_ID": "c", "AZURE_CLIENT_SECRET": "entra-secret-0123"}
AWS = {"AWS_ACCESS_KEY_ID": "AK", "AWS_SECRET_ACCESS_KEY": "aws-secret-0123", "AWS_REGION": "eu-west-1"}


def credential(settings: Settings, name: str) -> Credential:
    (found,) = settings.providers[name].credentials
    return found


def test_without_a_key_the_entry_says_how_one_signs_in(tmp_path: Path) -> None:
    environ = {**QUIET, **ENTRA, **AWS, "AZURE_RESOURCE_NAME": "res"}
    settings = loaded(tmp_path, "[providers.azure]\n[providers.bedrock]\n", environ)
    assert credential(settings, "azure").login == EntraLogin(
        tenant="t", client="c", secret="entra-secret-0123"
    )
    assert credential(settings, "bedrock").login == AwsLogin(
        "eu-west-1", access_key="AK", secret_key="aws-secret-0123"
    )
    assert {"entra-secret-0123", "aws-secret-0123"} <= secrets_of(settings)
    notes = "\n".join(settings.notes)
    assert "provider azure is on: signs in to entra as c" in notes
    assert "provider bedrock is on: signs in to aws with an access key" in notes
    assert "secret-0123" not in repr(settings.providers) + notes
    assert pickle.loads(pickle.dumps(settings)) == settings  # for a worker that takes another's place


def test_the_variables_of_the_vendors_own_tools_are_read(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("x")
    text = """
        [providers.azure]
        [providers.bedrock]
        [providers.mine]
        dialect = "openai-chat"
        base_url = "https://h.example/v1"
        login = "aws"
    """
    environ = {
        **QUIET,
        "AZURE_RESOURCE_NAME": "res",
        "AZURE_TENANT_ID": "t",
        "AZURE_CLIENT_ID": "c",
        "AZURE_FEDERATED_TOKEN_FILE": str(file),
        "AZURE_AUTHORITY_HOST": "https://login.microsoftonline.us",
        "AWS_ACCESS_KEY_ID": "AK",
        "AWS_SECRET_ACCESS_KEY": "aws-secret-0123",
        "AWS_SESSION_TOKEN": "aws-session-0123",
        "AWS_DEFAULT_REGION": "us-west-2",
    }
    settings = loaded(tmp_path, text, environ)
    assert credential(settings, "azure").login == EntraLogin(
        tenant="t", client="c", token_file=str(file), authority="https://login.microsoftonline.us"
    )
    assert credential(settings, "mine").login == AwsLogin(
        "us-west-2", access_key="AK", secret_key="aws-secret-0123", session_token="aws-session-0123"
    )
    assert settings.providers["bedrock"].variables == {"region": "us-west-2"}
    assert credential(settings, "bedrock").login == credential(settings, "mine").login
    both = loaded(tmp_path, text, {**environ, "AWS_REGION": "eu-west-1"})
    assert both.providers["bedrock"].variables == {"region": "eu-west-1"}
    assert credential(both, "mine").login == AwsLogin(
        "eu-west-1", access_key="AK", secret_key="aws-secret-0123", session_token="aws-session-0123"
    )


@rows(
    "host",
    [
        *("login.microsoftonline.com", "login.microsoftonline.us", "login.partner.microsoftonline.cn"),
        "login.chinacloudapi.cn",
    ],
)
def test_every_cloud_of_microsoft_may_be_named_by_the_environment(tmp_path: Path, host: str) -> None:
    environ = {**QUIET, **ENTRA, "AZURE_RESOURCE_NAME": "res", "AZURE_AUTHORITY_HOST": f"https://{host}"}
    login = credential(loaded(tmp_path, "[providers.azure]\n", environ), "azure").login
    assert isinstance(login, EntraLogin)
    assert login.authority == f"https://{host}"


@rows(
    ("kind", "foreign"),
    [
        ("google", "tenant"),
        ("entra", "region"),
        ("aws", "tenant"),
        ("aws", "key_file"),
        ("google", "profile"),
    ],
)
def test_a_field_of_another_login_is_refused(tmp_path: Path, kind: str, foreign: str) -> None:
    text = f'[providers.vertex]\nproject = "p"\nlogin = {{ kind = "{kind}", {foreign} = "x" }}\n'
    assert f"providers.vertex.login.{foreign}" in problems(tmp_path, text)


@rows(
    ("fields", "login"),
    [
        ('kind = "google", scope = "s"', GoogleLogin(scope="s")),
        (
            'kind = "entra", tenant = "a", client = "b", secret = "a-secret-0123", scope = "s", '
            'authority = "https://login.microsoftonline.us", metadata = "http://127.0.0.1:1"',
            EntraLogin(
                scope="s",
                tenant="a",
                client="b",
                secret="a-secret-0123",
                authority="https://login.microsoftonline.us",
                metadata="http://127.0.0.1:1",
            ),
        ),
        (
            'kind = "aws", access_key = "k", secret_key = "a-secret-0123", session_token = "a-token-0123", '
            'region = "r", service = "x"',
            AwsLogin("r", "x", access_key="k", secret_key="a-secret-0123", session_token="a-token-0123"),
        ),
        ('kind = "aws", profile = "p", region = "r"', AwsLogin("r", profile="p")),
    ],
)
def test_every_field_of_a_login_is_taken(
    tmp_path: Path, fields: str, login: GoogleLogin | EntraLogin | AwsLogin
) -> None:
    text = (
        '[providers.mine]\ndialect = "openai-chat"\nbase_url = "https://h.example/v1"\n'
        f"login = {{ {fields} }}\n"
    )
    assert credential(loaded(tmp_path, text), "mine").login == login


def test_a_key_of_the_environment_comes_before_a_login(tmp_path: Path) -> None:
    environ = {**QUIET, **AWS, "AWS_BEARER_TOKEN_BEDROCK": "bedrock-key-0123"}
    found = credential(loaded(tmp_path, "[providers.bedrock]\n", environ), "bedrock")
    assert (found.login, found.secret.value) == (None, "bedrock-key-0123")
    text = '[providers.bedrock]\nlogin = "aws"\n'
    assert credential(loaded(tmp_path, text, environ), "bedrock").login is not None


def test_no_login_of_the_environment_turns_a_provider_on_that_nobody_named(tmp_path: Path) -> None:
    environ = {**QUIET, **AWS, **ENTRA, "AZURE_RESOURCE_NAME": "res", "GOOGLE_CLOUD_PROJECT": "p"}
    assert loaded(tmp_path, "[providers.demo]\n", environ).providers.keys() == {"demo"}


def test_a_service_account_is_read_from_its_file(tmp_path: Path) -> None:
    (tmp_path / "sa.json").write_text('{"type": "service_account", "private_key": "very-private-0123"}')
    text = '[providers.vertex]\nproject = "p"\nlogin = { kind = "google", key_file = "sa.json" }\n'
    found = credential(loaded(tmp_path, text), "vertex")
    assert found.login == GoogleLogin(str(tmp_path / "sa.json"))
    assert "very-private" in found.secret.value  # so that no sink shows it
    assert format_login(found.login) == "signs in to google with sa.json"


@pytest.mark.parametrize(
    ("location", "host"),
    [
        ("global", "aiplatform.googleapis.com"),
        ("europe-west1", "europe-west1-aiplatform.googleapis.com"),
        ("eu", "aiplatform.eu.rep.googleapis.com"),
    ],
)
def test_a_location_has_its_own_host(tmp_path: Path, location: str, host: str) -> None:
    text = f'[providers.vertex]\napi_key = "t"\nproject = "p"\nlocation = "{location}"\n'
    assert loaded(tmp_path, text).providers["vertex"].variables["host"] == host


def test_two_configurations_of_one_login_are_one_account(tmp_path: Path) -> None:
    environ = {**QUIET, **AWS}
    once, again = (credential(loaded(tmp_path, "[providers.bedrock]\n", environ), "bedrock") for _ in "ab")
    assert once.account == again.account
    other = credential(
        loaded(tmp_path, "[providers.bedrock]\n", {**environ, "AWS_ACCESS_KEY_ID": "B"}), "bedrock"
    )
    assert other.account != once.account


@rows(
    ("text", "environ", "path", "expected"),
    [
        ('[providers.bedrock]\nlogin = "amazon"\n', AWS, "providers.bedrock.login", "one of aws, entra, google"),
        ('[providers.bedrock]\nlogin = "aws"\napi_key = "k"\n', AWS, "providers.bedrock.login", "either login or api_key"),
        ("[providers.bedrock]\nlogin = { tenant = 't' }\n", AWS, "providers.bedrock.login.tenant", "a field of the login aws"),
        ("[providers.bedrock]\nlogin = { regoin = 'r' }\n", AWS, "providers.bedrock.login.regoin", "did you mean region"),
        ("[providers.bedrock]\nlogin = { access_key = 'a' }\n", {"AWS_REGION": "r"}, "providers.bedrock.login.secret_key", "AWS_SECRET_ACCESS_KEY"),
        ("[providers.bedrock]\n", {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "s"}, "providers.bedrock.variables.region", "AWS_REGION"),
        ("[providers.azure]\n", {**ENTRA, "AZURE_TENANT_ID": "", "AZURE_RESOURCE_NAME": "r"}, "providers.azure.login.tenant", "AZURE_TENANT_ID"),
        ("[providers.azure]\nlogin = { authority = 'login' }\n", {**ENTRA, "AZURE_RESOURCE_NAME": "r"}, "providers.azure.login.authority", "https://"),
        ("[providers.vertex]\nproject = 'p'\nlogin = { key_file = 'gone' }\n", {}, "providers.vertex.login.key_file", "the file of a service account"),
        ("[providers.azure]\nbase_url = 'https://proxy.example/v1'\n", ENTRA, "providers.azure.api_key", 'login = "entra"'),
        ("[providers.mine]\ndialect = 'openai-chat'\nbase_url = 'https://x.example/v1'\nlogin = {}\n", {}, "providers.mine.login.kind", "one of aws, entra, google"),
    ],
)  # fmt: skip
def test_what_is_missing_is_reported_by_its_place(
    tmp_path: Path, text: str, environ: dict[str, str], path: str, expected: str
) -> None:
    found = problems(tmp_path, text, environ)
    assert path in found, found
    assert expected in found[path]


def test_a_missing_extra_is_one_line_that_names_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wireglot.gateway.config.logins.find_spec", lambda module: None)
    text = "[providers.vertex]\nproject = 'p'\n[providers.bedrock]\n"
    assert problems(tmp_path, text, {"AWS_REGION": "r"}) == {
        "providers.vertex.login": f"the package google-auth ({install_hint('vertex')}) / no such package",
        "providers.bedrock.login": f"the package botocore ({install_hint('bedrock')}) / no such package",
    }


def test_keys_that_are_given_need_no_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wireglot.gateway.config.logins.find_spec", lambda module: None)
    assert credential(loaded(tmp_path, "[providers.bedrock]\n", {**QUIET, **AWS}), "bedrock").login


@rows("number", range(9))
def test_every_example_of_the_page_about_clouds_loads(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (Path(__file__).parents[3] / "docs" / "clouds.md").read_text(encoding="utf-8")
    examples = re.findall(r"^```toml\n(.*?)^```", page, flags=re.DOTALL | re.MULTILINE)
    assert len(examples) == 9
    (tmp_path / "service-account.json").write_text('{"type": "service_account"}')
    monkeypatch.setattr("wireglot.gateway.config.logins.find_spec", lambda module: module)  # the extras
    environ = {"AZURE_OPENAI_API_KEY": "k1", "AZURE_CLIENT_SECRET": "k2", "AWS_BEARER_TOKEN_BEDROCK": "k3"}
    settings = loaded(tmp_path, f"{examples[number]}\n[providers]\ndiscover = false\n", environ)
    assert all(provider.credentials for provider in settings.providers.values())


@rows(
    ("authority", "named", "reported"),
    [
        ("https://login.microsoftonline.us", False, ""),
        ("https://login.partner.microsoftonline.cn", False, ""),
        ("https://login.evil.example", False, "providers.azure.login.secret"),
        ("https://login.microsoftonline.com.evil.example", False, "providers.azure.login.secret"),
        ("https://login.evil.example", True, ""),
        ("http://login.evil.example", True, "providers.azure.login.authority"),
        ("http://127.0.0.1:9", True, ""),
    ],
)
def test_a_secret_of_the_environment_goes_to_no_other_authority_unasked(
    tmp_path: Path, authority: str, named: bool, reported: str
) -> None:
    """As a key of the environment goes to no other host; and no secret goes anywhere in the clear."""
    secret = ', secret = "env:AZURE_CLIENT_SECRET"' if named else ""
    text = f'[providers.azure]\nlogin = {{ kind = "entra", authority = "{authority}"{secret} }}\n'
    environ = {**QUIET, **ENTRA, "AZURE_RESOURCE_NAME": "res"}
    if reported:
        assert reported in problems(tmp_path, text, environ)
    else:
        login = credential(loaded(tmp_path, text, environ), "azure").login
        assert isinstance(login, EntraLogin)
        assert login.authority == authority


def test_a_token_file_of_the_environment_goes_to_no_other_authority_unasked(tmp_path: Path) -> None:
    environ = {**QUIET, **ENTRA, "AZURE_RESOURCE_NAME": "res", "AZURE_FEDERATED_TOKEN_FILE": "/token"}
    environ.pop("AZURE_CLIENT_SECRET")
    text = '[providers.azure]\nlogin = { kind = "entra", authority = "https://login.evil.example" }\n'
    assert list(problems(tmp_path, text, environ)) == ["providers.azure.login.token_file"]


def test_logins_of_the_catalog_are_what_a_configuration_may_say() -> None:
    logins = [login for name in names() if (login := provider(name).login)]
    assert logins
    for login in logins:
        assert login["kind"] in get_args(LoginKind)
        assert set(login) <= set(LoginTable.__struct_fields__)
