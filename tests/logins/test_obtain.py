"""Each login against a double of its cloud: what is sent, what comes of it, and what is reported when it fails."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.logins.clouds import CLIENT, CLIENT_SECRET, TENANT, Cloud, service_account
from tests.tiers import rows
from wireglot.logins.entra import _refused, _seconds
from wireglot.logins.google import _fix as google_fix
from wireglot.logins.google import _seconds as google_seconds
from wireglot.logins.login import AwsLogin, EntraLogin, GoogleLogin, Grant, Login, LoginFailed
from wireglot.logins.renewal import obtain
from wireglot_core.extras import install_hint


def google(folder: Path, cloud: Cloud) -> GoogleLogin:
    file = folder / "account.json"
    file.write_text(service_account(cloud.url))
    return GoogleLogin(str(file))


def entra(cloud: Cloud, secret: str = CLIENT_SECRET, client: str = CLIENT) -> EntraLogin:
    return EntraLogin(tenant=TENANT, client=client, secret=secret, authority=cloud.url, metadata=cloud.url)


def failure(login: Login) -> LoginFailed:
    with pytest.raises(LoginFailed) as reported:
        obtain(login)
    return reported.value


def test_a_service_account_signs_for_a_token(tmp_path: Path) -> None:
    pytest.importorskip("google.auth", reason="the extra wireglot[vertex]")
    with Cloud() as cloud:
        grant = obtain(google(tmp_path, cloud))
    assert grant.secret in cloud.tokens
    assert 3500 < grant.seconds <= 3600
    assert grant.headers == ()


def test_application_default_credentials_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("google.auth", reason="the extra wireglot[vertex]")
    with Cloud() as cloud:
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", google(tmp_path, cloud).key_file)
        assert obtain(GoogleLogin()).secret in cloud.tokens


def test_credentials_that_name_the_project_that_pays_have_it_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`gcloud auth application-default login` leaves a quota project, which Google wants to know."""
    pytest.importorskip("google.auth", reason="the extra wireglot[vertex]")
    with Cloud() as cloud:
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", google(tmp_path, cloud).key_file)
        monkeypatch.setenv("GOOGLE_CLOUD_QUOTA_PROJECT", "pays")
        assert obtain(GoogleLogin()).headers == (("x-goog-user-project", "pays"),)


def test_a_machine_with_a_wrong_clock_is_informed(tmp_path: Path) -> None:
    pytest.importorskip("google.auth", reason="the extra wireglot[vertex]")
    with Cloud() as cloud:
        cloud.skew = 7200
        failed = failure(google(tmp_path, cloud))
    assert "reasonable timeframe" in failed.message
    assert "clock" in failed.fix


def test_the_wrong_key_of_a_service_account_is_reported_with_the_fix(tmp_path: Path) -> None:
    pytest.importorskip("google.auth", reason="the extra wireglot[vertex]")
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import rsa

    with Cloud() as cloud:
        login = google(tmp_path, cloud)
        document = json.loads(Path(login.key_file).read_text())
        other = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        document["private_key"] = other.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        ).decode()
        Path(login.key_file).write_text(json.dumps(document))
        failed = failure(login)
    assert "Invalid JWT Signature" in failed.message
    assert "make a new key" in failed.fix


def test_without_google_credentials_the_fix_names_the_three_ways(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("google.auth", reason="the extra wireglot[vertex]")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("CLOUDSDK_CONFIG", str(tmp_path))
    monkeypatch.setenv("NO_GCE_CHECK", "true")
    monkeypatch.delenv("GOOGLE_APPLICATION_CREDENTIALS", raising=False)
    assert failure(GoogleLogin()).fix == (
        "run `gcloud auth application-default login`, set GOOGLE_APPLICATION_CREDENTIALS, or name the file of "
        'a service account: login = { kind = "google", key_file = "PATH" }'
    )


def test_a_google_file_that_is_gone_is_reported_by_its_name(tmp_path: Path) -> None:
    pytest.importorskip("google.auth", reason="the extra wireglot[vertex]")
    failed = failure(GoogleLogin(str(tmp_path / "gone.json")))
    assert failed.message == "gone.json cannot be used (FileNotFoundError)"


def test_a_default_google_file_that_is_a_folder_is_reported_by_its_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("google.auth", reason="the extra wireglot[vertex]")
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path))
    failed = failure(GoogleLogin())
    assert failed.message == ("the file of GOOGLE_APPLICATION_CREDENTIALS cannot be used (IsADirectoryError)")


def test_the_life_of_a_google_token_is_what_is_left_of_it() -> None:
    """google-auth gives the end in UTC, without a zone."""
    end = datetime.now(UTC) + timedelta(hours=1)
    assert google_seconds(None) == 300.0
    for expiry in (end, end.replace(tzinfo=None)):
        assert 3590 < google_seconds(expiry) <= 3600


def test_a_dead_host_is_reported_as_the_network(tmp_path: Path) -> None:
    with Cloud() as cloud:
        login = entra(cloud)
    failed = failure(login)
    assert failed.message == "127.0.0.1 could not be reached (ConnectionRefusedError)"
    assert failed.fix == "check the network of this machine, and `proxy`"


@pytest.mark.parametrize("package", ["google", "aws"])
def test_a_missing_extra_is_reported_in_one_line_that_names_it(
    package: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for module in ("google.auth", "botocore.session", "botocore"):
        monkeypatch.setitem(sys.modules, module, None)
    failed = failure(GoogleLogin() if package == "google" else AwsLogin("us-east-1"))
    name, extra = {"google": ("google-auth", "vertex"), "aws": ("botocore", "bedrock")}[package]
    assert failed.fix == f"install {name}: {install_hint(extra)}"


def test_an_application_gets_a_token_by_its_secret() -> None:
    with Cloud() as cloud:
        grant = obtain(entra(cloud))
        assert grant == Grant(next(iter(cloud.tokens)), 3600.0)
        assert CLIENT_SECRET.encode() in cloud.asked[0][2]


def test_an_application_gets_a_token_by_what_its_platform_keeps(tmp_path: Path) -> None:
    file = tmp_path / "token"
    with Cloud() as cloud:
        file.write_text("platform-token\n")
        login = EntraLogin(tenant=TENANT, client=CLIENT, token_file=str(file), authority=cloud.url)
        assert obtain(login).secret in cloud.tokens
        assert b"client_secret" not in cloud.asked[0][2]
    file.unlink()
    assert "AZURE_FEDERATED_TOKEN_FILE" in failure(login).fix


def test_a_machine_gets_a_token_by_being_itself() -> None:
    with Cloud() as cloud:
        grant = obtain(EntraLogin(client="who", metadata=cloud.url))
        assert (grant.secret in cloud.tokens, grant.seconds) == (True, 3600.0)
        asked = cloud.asked[0][0]
        assert "resource=https%3A%2F%2Fcognitiveservices.azure.com&client_id=who" in asked


def test_a_machine_without_an_identity_is_shown_what_else_there_is() -> None:
    with Cloud() as cloud:
        url = cloud.url
    assert "AZURE_CLIENT_SECRET" in failure(EntraLogin(metadata=url)).fix


@pytest.mark.parametrize(
    ("client", "secret", "said", "fix"),
    [
        (CLIENT, "wrong-secret-0123456789", "AADSTS7000215", "the value of the client secret"),
        ("nobody", CLIENT_SECRET, "AADSTS700016", "check `client`"),
    ],
)
def test_what_entra_refuses_is_reported_in_its_words_with_the_fix(
    client: str, secret: str, said: str, fix: str
) -> None:
    with Cloud() as cloud:
        failed = failure(entra(cloud, secret, client))
    assert said in failed.message
    assert "Trace ID" not in failed.message
    assert fix in failed.fix
    assert secret not in failed.message + failed.fix


def test_a_token_endpoint_that_answers_with_something_else_is_reported() -> None:
    with Cloud() as cloud:
        login = EntraLogin(tenant="elsewhere", client=CLIENT, secret="x", authority=cloud.url)
        assert "401" in failure(login).message


def test_no_redirect_takes_a_secret_along() -> None:
    from http.server import BaseHTTPRequestHandler, HTTPServer
    from threading import Thread

    class Elsewhere(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.send_response(307)
            self.send_header("location", f"{there.url}/{TENANT}/oauth2/v2.0/token")
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *reported: object) -> None: ...

    with Cloud() as there:
        server = HTTPServer(("127.0.0.1", 0), Elsewhere)
        Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        login = EntraLogin(
            tenant=TENANT,
            client=CLIENT,
            secret=CLIENT_SECRET,
            authority=f"http://127.0.0.1:{server.server_address[1]}",
        )
        assert "status 307" in failure(login).message
        assert there.asked == []
        server.shutdown()
        server.server_close()


def test_keys_of_amazon_that_are_given_need_no_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "botocore.session", None)
    grant = obtain(AwsLogin("us-east-1", access_key="AK", secret_key="SK", session_token="ST"))
    assert (grant.access_key, grant.secret, grant.session_token) == ("AK", "SK", "ST")
    assert grant.seconds == float("inf")


def test_botocore_finds_keys_where_amazons_tools_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("botocore", reason="the extra wireglot[bedrock]")
    file = tmp_path / "credentials"
    file.write_text("[team]\naws_access_key_id = AKTEAM\naws_secret_access_key = SKTEAM\n")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(file))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    assert obtain(AwsLogin("us-east-1", profile="team")).access_key == "AKTEAM"
    file.write_text("[team]\naws_access_key_id = AKNEW\naws_secret_access_key = SKNEW\n")
    assert obtain(AwsLogin("us-east-1", profile="team")).access_key == "AKNEW"  # it was replaced
    missing = failure(AwsLogin("us-east-1", profile="nobody"))
    assert missing.message == "The config profile (nobody) could not be found"
    monkeypatch.delenv("AWS_ACCESS_KEY_ID", raising=False)
    file.write_text("")
    empty = failure(AwsLogin("us-east-1"))
    assert empty.message == "no credentials of AWS were found"
    assert (
        missing.fix
        == empty.fix
        == (
            "run `aws configure` or `aws sso login`, give this machine a role, or set AWS_ACCESS_KEY_ID and "
            "AWS_SECRET_ACCESS_KEY; an API key of Bedrock goes into AWS_BEARER_TOKEN_BEDROCK"
        )
    )


def test_keys_that_a_process_lends_run_out_when_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("botocore", reason="the extra wireglot[bedrock]")
    ends = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
    lent = {
        "Version": 1,
        "AccessKeyId": "AKL",
        "SecretAccessKey": "SKL",
        "SessionToken": "STL",
        "Expiration": ends,
    }
    script = tmp_path / "lend.py"
    script.write_text(f"print('''{json.dumps(lent)}''')")
    config = tmp_path / "config"
    config.write_text(f"[profile lent]\ncredential_process = {sys.executable} {script}\n")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(config))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    grant = obtain(AwsLogin("us-east-1", profile="lent"))
    assert (grant.access_key, grant.secret, grant.session_token) == ("AKL", "SKL", "STL")
    assert 3400 < grant.seconds <= 3600


def test_no_login_or_grant_shows_a_secret() -> None:
    shown = repr(
        (
            EntraLogin(secret="hidden-1"),
            AwsLogin("r", access_key="id", secret_key="hidden-2", session_token="hidden-3"),
            Grant("hidden-4", session_token="hidden-5"),
            GoogleLogin("file.json", proxy="http://user:hidden-6@proxy:1"),
        )
    )
    assert "hidden" not in shown


@rows(
    ("said", "message"),
    [
        (" Trace ID: 1", "status 400"),
        ("\n", "status 400"),
        ("", "status 400"),
        (5, "5"),
        ({"a": 1}, "{'a': 1}"),
        (None, "status 400"),
        ("one line\nanother", "one line"),
        ("m" * 301, "m" * 300),
    ],
)
def test_whatever_entra_refuses_with_is_reported_as_a_failure(said: object, message: str) -> None:
    failed = _refused(EntraLogin(secret="x"), 400, {"error_description": said})
    assert (failed.message, str(failed)) == (message, message)


@rows(
    ("said", "fix"),
    [
        ("AADSTS7000215: x", "set the value of the client secret, not its id"),
        (
            "AADSTS7000222: x",
            "the client secret has expired: make a new one in Entra, under the application",
        ),
        ("AADSTS700016: x", "check `client`: this tenant has no such application"),
        ("AADSTS90002: x", "check `tenant`: there is none of that name"),
        ("AADSTS700024: x", "set the clock of this machine: Entra takes no token from another time"),
        ("unauthorized_client", "check the tenant, the application and its secret"),
    ],
)
def test_each_code_of_entra_has_its_fix(said: str, fix: str) -> None:
    assert _refused(EntraLogin(secret="x"), 400, {"error": said}).fix == fix


def test_a_machine_whose_identity_is_refused_is_given_the_other_ways() -> None:
    fix = _refused(EntraLogin(), 400, {"error": "identity_not_found"}).fix
    assert fix == (
        "give this machine a managed identity, or name an application: AZURE_TENANT_ID, AZURE_CLIENT_ID and "
        'AZURE_CLIENT_SECRET, or login = { kind = "entra", tenant, client, secret }'
    )


@rows(
    ("said", "fix"),
    [
        (
            "invalid_grant: not in a reasonable timeframe",
            "set the clock of this machine: Google takes no signature from another time",
        ),
        (
            "check your iat and exp values",
            "set the clock of this machine: Google takes no signature from another time",
        ),
        ("Reauthentication is needed", "run `gcloud auth application-default login` again"),
        ("Token has been expired or revoked", "run `gcloud auth application-default login` again"),
        (
            "Invalid JWT Signature.",
            "check that the service account and its key still exist, and make a new key where they do not",
        ),
    ],
)
def test_each_refusal_of_google_has_its_fix(said: str, fix: str) -> None:
    assert google_fix(Exception(said)) == fix


@pytest.mark.parametrize("reported", ["nan", "inf", 1e400, "9" * 400])
def test_a_life_that_is_no_number_of_seconds_is_none(reported: object) -> None:
    assert _seconds({"expires_in": reported}) == 0.0
