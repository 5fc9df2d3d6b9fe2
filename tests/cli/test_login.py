"""`wireglot login` and `wireglot logout`: a key is tried, kept, listed without itself, and forgotten."""

import getpass
import json
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.provider_double import BAD_KEY, GOOD_KEY, ProviderDouble, Reply, catalog_at, set_apart
from tests.cli.running import complaint, run
from tests.tiers import rows
from wireglot.cli.run import asking
from wireglot.gateway import config
from wireglot.gateway.config.kept_keys import keep

KIMI = "api.moonshot.ai"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return set_apart(tmp_path, monkeypatch)


@pytest.fixture
def hosts(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Reply]]:
    """Those of the catalog that answer."""
    double = ProviderDouble({KIMI: Reply()})
    with catalog_at(double, monkeypatch):
        assert isinstance(double.hosts, dict)
        yield double.hosts


def place(home: Path) -> Path:
    return home / ".local/share/wireglot/credentials"


def test_a_key_from_a_pipe_is_tried_and_kept_for_its_owner_alone(
    home: Path, hosts: dict[str, Reply], monkeypatch: pytest.MonkeyPatch
) -> None:
    done = run("login", "kimi", "--key", "-", given=f"{GOOD_KEY}\n")
    assert done.returncode == 0
    assert done.stderr.decode().splitlines() == [
        "Moonshot Kimi accepts the key: stored in ~/.local/share/wireglot/credentials as MOONSHOT_API_KEY.",
        "next: wireglot run claude --model kimi/kimi-k3",
    ]
    assert stat.S_IMODE(place(home).stat().st_mode) == 0o600
    assert "kimi" in config.load(None, create_secret=False).providers
    listed = run("login")
    assert listed.stdout.decode().splitlines() == [
        "provider              key               from",
        "kimi, kimi-anthropic  MOONSHOT_API_KEY  stored in ~/.local/share/wireglot/credentials",
    ]
    assert json.loads(run("login", "--json").stdout) == [
        {
            "providers": ["kimi", "kimi-anthropic"],
            "key": "MOONSHOT_API_KEY",
            "source": "stored in ~/.local/share/wireglot/credentials",
        }
    ]
    gone = run("logout", "kimi")
    assert gone.returncode == 0
    assert gone.stderr.decode().splitlines() == [
        "Deleted MOONSHOT_API_KEY.",
        "It was also the key of kimi-anthropic.",
    ]
    assert GOOD_KEY not in place(home).read_text()
    assert complaint(run("logout", "kimi"), 1) == "no key of kimi is stored"


def test_a_key_that_is_refused_is_not_kept_and_not_repeated(home: Path, hosts: dict[str, Reply]) -> None:
    said = complaint(run("login", "kimi", given=BAD_KEY), 1)
    assert said == (
        "Moonshot Kimi rejects the key (it says: Incorrect API key provided: [redacted].): it was not stored"
    )
    assert not place(home).exists()


@rows(
    ("provider", "given", "status", "said"),
    [
        ("kimu", "", 2, "there is no provider kimu: did you mean kimi?"),
        ("kimi", "", 2, "no key was given, nothing was stored"),
        ("kimi", "two words", 2, "standard input: expected a key in plain ASCII without spaces"),
        ("kimi", "x" * 20_000, 2, "standard input: expected a key of at most 16,384 characters"),
        ("ollama", "x", 2, "ollama needs no key: [providers.ollama] enables it"),
        ("bedrock", "", 2, "bedrock uses a sign-in and needs no key: `aws configure` or `aws sso login`"),
        ("openai", GOOD_KEY, 1, "OpenAI cannot be reached at 127.0.0.1:"),
        ("openai", GOOD_KEY, 1, "the key was not stored (--unchecked stores it untested)"),
    ],
)
def test_what_cannot_be_kept_is_one_line(
    home: Path, hosts: dict[str, Reply], provider: str, given: str, status: int, said: str
) -> None:
    line = complaint(run("login", provider, given=given), status)
    assert said in line
    assert GOOD_KEY not in line
    assert not place(home).exists()


def test_a_cloud_that_lacks_more_than_a_key_is_reported(home: Path, hosts: dict[str, Reply]) -> None:
    said = complaint(run("login", "azure", "--key", "-", given=GOOD_KEY))
    assert said == "azure needs more than a key: set AZURE_RESOURCE_NAME first (docs/providers.md)"


def test_a_key_may_be_kept_untried(home: Path, hosts: dict[str, Reply]) -> None:
    done = run("login", "openai", "--unchecked", given=GOOD_KEY)
    assert done.returncode == 0
    assert "Stored, untested, in ~/.local" in done.stderr.decode()
    assert f"OPENAI_API_KEY={GOOD_KEY}" in place(home).read_text()


def test_an_account_that_was_not_paid_is_no_wrong_key(home: Path, hosts: dict[str, Reply]) -> None:
    body = {"error": {"message": "Pay first", "type": "exceeded_current_quota_error"}}
    hosts[KIMI] = Reply(status=402, body=body)
    done = run("login", "kimi", given=GOOD_KEY)
    assert "accepts the key, but not its account (it says: Pay first): stored in" in done.stderr.decode()
    assert done.returncode == 0


def test_a_person_is_asked_again_after_a_wrong_key_and_before_an_untried_one_is_kept(
    home: Path, hosts: dict[str, Reply], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("wireglot.cli.login.can_ask", lambda: True)
    keys = iter(["two words", BAD_KEY, GOOD_KEY])
    monkeypatch.setattr(getpass, "getpass", lambda question, stream: next(keys))
    done = run("login", "kimi")
    assert done.returncode == 0
    said = done.stderr.decode()
    assert said.index("plain ASCII") < said.index("rejects the key") < said.index("accepts the key: stored")
    keys = iter([GOOD_KEY])
    refused = run("login", "openai", given="n\n")
    assert refused.returncode == 1
    assert "Store the key anyway, untested? [y/N]" in refused.stderr.decode()
    keys = iter([GOOD_KEY])
    assert run("login", "openai", given="y\n").returncode == 0
    assert f"OPENAI_API_KEY={GOOD_KEY}" in place(home).read_text()


def test_a_variable_that_is_set_is_listed_and_wins(
    home: Path, hosts: dict[str, Reply], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KIMI_API_KEY", GOOD_KEY)
    keep(place(home), "MOONSHOT_API_KEY", "sk-older")
    (_, row) = run("login").stdout.decode().splitlines()
    assert row == "kimi, kimi-anthropic  KIMI_API_KEY  the environment (another one is stored)"
    said = run("login", "kimi", given=GOOD_KEY).stderr.decode()
    assert "KIMI_API_KEY is also set in this environment and takes precedence: unset it." in said
    gone = run("logout", "kimi").stderr.decode()
    assert gone.startswith("Deleted MOONSHOT_API_KEY.")
    assert "KIMI_API_KEY is still set in this environment." in gone


def test_a_configuration_names_the_variable_and_the_host(home: Path, hosts: dict[str, Reply]) -> None:
    with ProviderDouble({"mine": Reply()}) as double:
        text = f'[providers]\ndiscover = false\n[providers.mine]\ndialect = "openai-chat"\nbase_url = "{double.base("mine")}"\napi_key = "env:MINE"\n'
        Path("own.toml").write_text(text)
        done = run("login", "mine", "--config", "own.toml", given=GOOD_KEY)
        assert done.returncode == 0, done
        assert double.requests == ["GET mine /v1/models"]
    assert f"MINE={GOOD_KEY}" in place(home).read_text()
    (_, row) = run("login", "--config", "own.toml").stdout.decode().splitlines()
    assert row.split("  ")[0] == "mine"
    kept = run("login", "kimi", "--config", "own.toml", given=GOOD_KEY).stderr.decode()
    assert "It is off in own.toml: add [providers.kimi] there." in kept


def test_a_file_that_is_not_approved_gets_no_key(home: Path, hosts: dict[str, Reply]) -> None:
    with ProviderDouble({"thief": Reply(wants_key=False)}) as thief:
        Path("wireglot.toml").write_text(
            f'[providers.kimi]\nbase_url = "{thief.base("thief")}"\napi_key = "env:MOONSHOT_API_KEY"\n'
        )
        done = run("login", "kimi", given=GOOD_KEY)
        assert done.returncode == 0, done
        assert "wireglot.toml is not approved and not used here" in done.stderr.decode()
        assert thief.requests == []


def test_a_key_of_the_configuration_is_changed_there(home: Path, hosts: dict[str, Reply]) -> None:
    Path("own.toml").write_text(f'[providers.kimi]\napi_key = "{GOOD_KEY}"\n')
    said = complaint(run("login", "kimi", "--config", "own.toml", given=GOOD_KEY))
    assert said == "the key of kimi is set in own.toml: change api_key there"
    assert "kimi      " in run("login", "--config", "own.toml").stdout.decode().replace("kimi,", "kimi ")


def test_a_home_path_is_shortened(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me/")
    assert asking.short_path(Path("/home/me/x")) == "~/x"
    assert asking.short_path(Path("/home/you/x")) == "/home/you/x"
