"""`wireglot keys`: on the store while a gateway runs on it, and through the admin API."""

import json
from collections.abc import Iterator
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from tests.cli.running import complaint, configure, run
from tests.gateway.faults.faults_kit import BY_NAME, ask
from tests.waiting import wait_until
from wireglot.cli.trust import trust
from wireglot.testing.live_gateway import LiveGateway

SECRET = "the-secret-of-the-owner-0123456789"
TOML = f'[server]\nadmin_secret = "{SECRET}"\n[providers.demo]\n[limits]\nauth_failures = 1000000\n'
CHAT = BY_NAME["openai-chat"]


@pytest.fixture(autouse=True)
def _apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of this machine's own configuration, keys or data."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    for name in ("WIREGLOT_CONFIG", "WIREGLOT_ADMIN_SECRET", "WIREGLOT_STORE", "WIREGLOT_KEYS"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[LiveGateway]:
    with LiveGateway(TOML, folder=tmp_path) as running:
        assert trust(tmp_path / "wireglot.toml")
        yield running


def said(*arguments: str) -> str:
    done = run("keys", *arguments)
    assert done.returncode == 0, done
    return done.stdout.decode()


def status(gateway: LiveGateway, key: str) -> int:
    return ask(gateway, CHAT, "demo/demo", headers={"authorization": f"Bearer {key}"}).status


def test_the_key_alone_is_on_standard_output() -> None:
    """So that KEY=$(wireglot keys create me) works."""
    done = run("keys", "create", "me")
    assert done.returncode == 0
    assert done.stdout.decode().startswith("wg-")
    assert len(done.stdout.decode().strip()) == 3 + 43
    assert done.stdout.count(b"\n") == 1
    assert b"shown only once" in done.stderr
    assert b"Every request to the gateway now requires a key" in done.stderr
    assert done.stdout.strip() not in done.stderr
    assert b"From now on" not in run("keys", "create", "you").stderr


def test_keys_made_revoked_and_rotated_beside_a_gateway_that_runs(gateway: LiveGateway) -> None:
    """FAULTS 90: it knows within seconds."""
    assert status(gateway, "anything") == 200
    key = said("create", "me").strip()
    wait_until(lambda: status(gateway, "anything") == 401)
    assert status(gateway, key) == 200
    new = said("rotate", "me", "--overlap", "1h").strip()
    wait_until(lambda: status(gateway, new) == 200)
    assert status(gateway, key) == 200
    said("revoke", "me")
    wait_until(lambda: status(gateway, new) == 401)
    assert status(gateway, key) == 401


def test_the_same_through_the_admin_api(gateway: LiveGateway, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WIREGLOT_ADMIN_SECRET", SECRET)
    there = ("--url", gateway.url)
    key = said("create", "me too", "--requests-per-minute", "1", *there).strip()
    assert [status(gateway, key) for _ in range(2)] == [200, 429]
    said("update", "me too", "--requests-per-minute", "0", *there)
    assert status(gateway, key) == 200
    new = said("rotate", "me too", *there).strip()
    assert [status(gateway, each) for each in (key, new)] == [401, 200]
    assert "me too" in said("list", *there)
    assert "revoked" in said("revoke", "me too", *there)
    assert status(gateway, new) == 401
    done = run("keys", "revoke", "nobody", *there)
    assert (done.returncode, done.stderr) == (1, b'wireglot: there is no stored key called "nobody"\n')
    monkeypatch.setenv("WIREGLOT_ADMIN_SECRET", "wrong")
    assert b"rejects the admin secret" in run("keys", "list", *there).stderr


def test_every_limit_is_kept_and_listed() -> None:
    options = (
        "--models", "claude-*,fast", "--expires", "30d", "--requests-per-minute", "60",
        "--tokens-per-minute", "1000", "--concurrent", "5", "--tokens-per-day", "7", "--tokens-per-month", "70",
        "--cost-per-day", "2.50", "--cost-per-month", "50",
    )  # fmt: skip
    made = json.loads(said("create", "me", *options, "--json"))
    assert made["key"].startswith(made["prefix"])
    (listed,) = json.loads(said("list", "--json"))
    assert listed == {name: value for name, value in made.items() if name != "key"}
    assert listed["models"] == ["claude-*", "fast"]
    assert (listed["cost_per_day"], listed["cost_per_month"], listed["concurrent"]) == (2.5, 50.0, 5)
    row = said("list").splitlines()[1]
    assert (
        "60 requests/min; 1000 tokens/min; 5 concurrent; 7 tokens/day; 70 tokens/month; 2.50/day; 50.00/month"
        in row
    )
    assert made["key"] not in row
    changed = json.loads(said("update", "me", "--cost-per-day", "0", "--models", "", "--json"))
    assert (changed["cost_per_day"], changed["models"], changed["concurrent"]) == (None, [], 5)


@pytest.mark.parametrize(
    ("arguments", "said_there"),
    [
        (("create",), "NAME"),
        ((), "ACTION"),
        (("create", "me", "--cost-per-day", "much"), "an amount of money like 2.50"),
        (("create", "me", "--cost-per-day", "nan"), "an amount of money like 2.50"),
        (("create", "me", "--concurrent", "-1"), "--concurrent"),
        (("create", "me", "--concurrent", "1.5"), "an integer"),
        (("rotate", "me", "--overlap", "soon"), "a time like 30m, 1h or 7d"),
        (("update", "nobody"), "nothing to change"),
        (("list", "--url", "gateway:8484"), "--url: expected http"),
        (("list", "--url", "http://127.0.0.1:1"), "WIREGLOT_ADMIN_SECRET"),
    ],
)
def test_an_unusable_command_line_is_reported_in_one_line(
    arguments: tuple[str, ...], said_there: str
) -> None:
    assert said_there in complaint(run("keys", *arguments))


@pytest.mark.parametrize(
    ("arguments", "said_there"),
    [
        (("create", "me/you"), "name: expected a name of letters"),
        (("create", "configured"), "is in the configuration"),
        (("create", "me", "--expires", "tomorrow"), "expires: expected a date or a time"),
        (("create", "me", "--expires", "2001-01-01"), "expires: expected a time in the future"),
        (("revoke", "nobody"), "no stored key"),
    ],
)
def test_what_cannot_be_done_is_reported_in_one_line(
    arguments: tuple[str, ...], said_there: str, tmp_path: Path
) -> None:
    configure(f'[providers.demo]\n[keys]\nconfigured = "sha256:{"0" * 64}"\n')
    done = run("keys", *arguments)
    assert done.returncode == 1
    assert done.stdout == b""
    assert done.stderr.count(b"\n") == 1
    assert said_there in done.stderr.decode()


def test_a_gateway_that_is_not_there_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WIREGLOT_ADMIN_SECRET", SECRET)
    done = run("keys", "list", "--url", "http://127.0.0.1:1")
    assert done.returncode == 1
    assert b"connection refused" in done.stderr
    assert SECRET.encode() not in done.stderr


def test_keys_in_memory_would_be_lost() -> None:
    configure('[providers.demo]\n[store]\nurl = "memory:"\n')
    assert "store.url" in complaint(run("keys", "create", "me"))


def test_there_may_be_none() -> None:
    done = run("keys", "list")
    assert (done.returncode, done.stdout) == (0, b"")
    assert b"wireglot keys create NAME" in done.stderr
    assert json.loads(said("list", "--json")) == []


def test_a_machine_with_a_trial_key_is_keyless_again(gateway: LiveGateway) -> None:
    """[M6] One trial key locked it until the store was deleted."""
    key = said("create", "trial").strip()
    wait_until(lambda: status(gateway, "none") == 401)
    refused = run("keys", "off")
    assert refused.returncode == 2
    assert (
        b"this deletes all stored keys (trial) and stored data of the callers: confirm with --yes"
        in refused.stderr
    )
    assert status(gateway, key) == 200
    done = run("keys", "off", "--yes")
    assert done.returncode == 0
    assert b"1 key deleted. No key is stored" in done.stderr
    wait_until(lambda: status(gateway, "none") == 200)
    assert run("keys", "off").returncode == 0  # there is nothing to ask about


@pytest.mark.parametrize("remote", [False, True], ids=["store", "admin API"])
def test_a_key_is_deleted_with_all_that_its_caller_stored(
    gateway: LiveGateway, remote: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """[M6] Its name is free then, and no other key finds anything under it."""
    monkeypatch.setenv("WIREGLOT_ADMIN_SECRET", SECRET)
    where = ("--url", gateway.url) if remote else ()
    said("create", "other")
    key = said("create", "one").strip()
    wait_until(lambda: status(gateway, key) == 200)
    headers = {"authorization": f"Bearer {key}"}
    body = {"conversation": "kept"}
    assert ask(gateway, CHAT, "demo/demo", headers=headers, **body).status == 200
    done = run("keys", "delete", "one", "--yes", *where)
    assert done.returncode == 0
    assert b"the name can be used again" in done.stderr
    assert b"No key is stored" not in done.stderr
    wait_until(lambda: status(gateway, key) == 401)
    assert [entry["name"] for entry in json.loads(said("list", "--json"))] == ["other"]
    again = said("create", "one").strip()
    wait_until(lambda: status(gateway, again) == 200)
    assert b"there is no stored key" in run("keys", "delete", "nobody", "--yes", *where).stderr


def test_a_key_made_again_under_a_name_begins_with_nothing_spent(gateway: LiveGateway) -> None:
    """Neither a budget nor what `GET /v1/usage` tells is handed on with a name."""
    limits = ("--tokens-per-day", "2000")

    def used(key: str) -> int:
        answer = urlopen(Request(f"{gateway.url}/v1/usage", headers={"authorization": f"Bearer {key}"}))
        return int(json.load(answer)["total"]["requests"])

    said("create", "other")  # without any, nobody would be asked for one
    key = said("create", "me", *limits).strip()
    wait_until(lambda: status(gateway, "anything") == 401)
    wait_until(lambda: status(gateway, key) == 429)
    assert used(key) > 0
    said("delete", "me", "--yes")
    again = said("create", "me", *limits).strip()
    wait_until(lambda: status(gateway, again) != 401)
    assert status(gateway, again) == 200
    assert used(again) in (1, 2)


def test_what_ends_after_its_key_was_deleted_is_kept_under_no_name(
    gateway: LiveGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The name may be another key's by then, which would find the conversation of the one before."""
    monkeypatch.setenv("WIREGLOT_ADMIN_SECRET", SECRET)
    there = ("--url", gateway.url)

    def asked(key: str, path: str, **body: object) -> Request:
        headers = {"authorization": f"Bearer {key}", "content-type": "application/json"}
        return Request(f"{gateway.url}{path}", json.dumps(body).encode() if body else None, headers)

    said("create", "other", *there)
    key = said("create", "me", *there).strip()
    prompt = [{"role": "user", "content": "[[demo:slow 100ms]] [[demo:text 40]] dear diary"}]
    request = asked(
        key, "/v1/chat/completions", model="demo/demo", messages=prompt, stream=True, conversation="diary"
    )
    with urlopen(request) as answer:
        assert answer.readline().startswith(b"data:")
        said("delete", "me", "--yes", *there)
        again = said("create", "me", *there).strip()
        assert b"[DONE]" in answer.read()
    with urlopen(asked(again, "/v1/usage")) as used:  # what is on its way to the ledger is there then
        assert json.load(used)["total"]["requests"] == 0
    with urlopen(asked(again, "/v1/sessions")) as listed:
        assert json.load(listed)["data"] == []
    with pytest.raises(HTTPError, match="404"):
        urlopen(asked(again, "/v1/sessions/diary"))
