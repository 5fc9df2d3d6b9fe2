"""What is wrong with a configuration: all of it at once, each with its place, and no secret in it."""

from pathlib import Path

import pytest

from tests.gateway.config.config_files import QUIET, digest, loaded, problems, refused
from tests.tiers import rows
from wireglot.gateway.config import ConfigError, load

EVERYTHING = f"""
    losses = "loud"
    colour = true

    [server]
    host = "0.0.0.0 "
    port = 70000
    workers = 0
    hosts = "example.com"
    origins = ["*"]
    log = "jsn"
    telemetry = "yes"
    secret = "short"
    prot = 1

    [limits]
    body = "64MB"
    ping = -1
    bodi = 1

    [providers.kimi]
    api_key = "env:UNSET"
    base_ulr = "https://x"

    [providers.openia]

    [providers.one]
    dialect = "openai"
    base_url = "http://127.0.0.1:1"

    [providers.two]
    dialect = "openai-chat"
    base_url = "ftp://127.0.0.1/v1"

    [providers.three]
    dialect = "anthropic"
    base_url = "https://user:pass@host"

    [providers.four]
    dialect = "anthropic"
    base_url = "https://host/v1"

    [providers.five]
    dialects = ["openai-chat"]
    base_url = "https://host/v1/chat/completions"

    [providers.six]
    dialect = "openai-chat"

    [providers.seven]
    dialect = "openai-chat"
    base_url = "https://host/{{region}}/v1"

    [providers.eight]
    dialect = "openai-chat"
    base_url = "https://host/v1"
    api_key = "k"
    api_keys = ["k"]
    auth = "basic"
    concurrency = -1
    losses = 3
    models = []
    retry = "fixed-100"
    streams = "always"
    timeouts = {{ conect = 1, idle = "soon" }}
    breaker = 5
    proxy = "socks5://proxy"
    headers = {{ host = "x", "a b" = "y", ok = 1 }}
    limits = {{ prefil = true, prefill = "no", leaks_calls = ["claude"] }}
    catalog = "kimmi"

    [providers.nine]
    dialect = "openai-chat"
    base_url = "https://host/v1"
    api_key = "file:nowhere"

    [providers.ten]
    dialect = "openai-chat"
    base_url = "https://host/v1"
    api_key = "with space"

    [models]
    a = "b"
    b = "a"
    c = "gemini/gemini-2.5-flash"
    d = "nothing-known"
    e = 5
    f = []
    g = {{ to = "ten/x", effort = ["hihg"], looses = "strict" }}
    h = [{{ to = "ten/x", effort = ["low"] }}, {{ to = "ten/y", effort = ["high", "low"] }}]
    i = "ten/*"
    j = ["ten/x", {{ to = "ten/x" }}]
    k = {{ to = "ten/x", purpose = "backgrund", agent = [1], prompt_over = -1, images = "yes" }}
    l = [{{ to = "ten/x", agent = ["A", "b"] }}, {{ to = "ten/y", agent = ["B", "a"] }}]
    m = {{ to = "ten/x", purpose = "", agent = 7 }}

    [keys]
    short = "sha256:abc"
    plain = "my-client-key-itself"
    first = "{digest("x")}"
    again = "{digest("x")}"
    table = {{ hash = "{digest("y")}", model = ["a"] }}
"""

EXPECTED = {
    "losses": "one of as-is, silent, strict, warn",
    "colour": "one of",
    "server.host": "an address or a host name",
    "server.port": "a whole number from 0 to 65535 / 70000",
    "server.workers": "a whole number from 1 to 256 / 0",
    "server.hosts": "a list of host names",
    "server.origins": "origins like https://",
    "server.log": "did you mean json?",
    "server.telemetry": "true or false",
    "WIREGLOT_SECRET": "16 characters or more / one of 5",
    "server.prot": "did you mean port?",
    "limits.body": "a whole number",
    "limits.ping": "a number from 0 up / -1",
    "limits.bodi": "did you mean body?",
    "providers.kimi.api_key": "UNSET to be set / none",
    "providers.kimi.base_ulr": "did you mean base_url?",
    "providers.openia": "did you mean openai?",
    "providers.one.dialect": "one of anthropic, code-assist, gemini, gemini-interactions, ollama, openai-chat, openai-responses",
    "providers.two.base_url": 'https:// or http:// / the scheme "ftp"',
    "providers.three.base_url": "without a user name or password",
    "providers.four.base_url": "which has no /v1",
    "providers.five.base_url": "what precedes the path of the endpoint",
    "providers.six.base_url": "the URL of the provider's API / nothing",
    "providers.seven.variables.region": "a value for {region}",
    "providers.eight.api_key": "either api_key or api_keys / both",
    "providers.eight.auth": "one of api-key, bearer, none, x-api-key, x-goog-api-key",
    "providers.eight.models": "a list of model names / an empty list",
    "providers.eight.streams": "one of both, never, only",
    "providers.eight.limits.prefil": "did you mean prefill?",
    "providers.eight.limits.prefill": '/ "no"',
    "providers.eight.limits.leaks_calls": "claude",
    "providers.eight.concurrency": "a whole number from 0 up / -1",
    "providers.eight.losses": "one of as-is, silent, strict, warn / 3",
    "providers.eight.retry": "did you mean fixed-100ms?",
    "providers.eight.timeouts.conect": "did you mean connect?",
    "providers.eight.timeouts.idle": 'a number / "soon"',
    "providers.eight.breaker": "a table / a number",
    "providers.eight.proxy": "http://host:port",
    "providers.eight.headers.host": "does not set itself",
    'providers.eight.headers."a b"': "the name of a header",
    "providers.eight.headers.ok": "the value itself / a number",
    "providers.eight.catalog": "did you mean kimi?",
    "providers.nine.api_key": "a text file at",
    "providers.ten.api_key": "without spaces",
    "models.a": "a -> b -> a",
    "models.b": "b -> a -> b",
    "models.c": "[providers.gemini] turns it on",
    "models.d": "a provider that is on",
    "models.e": "/ a number",
    "models.f": "/ an empty list",
    "models.g.effort": '"hihg"',
    "models.g.looses": "did you mean losses?",
    "models.h[1]": "one rule if the effort is low",
    "models.i": 'a "*" only for each',
    "models.j[1]": "/ a table",
    "models.k.purpose": 'purposes out of main, subagent, auxiliary, background, compaction / "backgrund"',
    "models.k.agent": "an agent's name or pattern, or a list of them / a list",
    "models.k.prompt_over": "a whole number from 0 up",
    "models.k.images": "true or false",
    "models.l[1]": "one rule if the agent is a or b",
    "models.m.purpose": "a purpose, or a list of them / empty text",
    "models.m.agent": "an agent's name or pattern, or a list of them / a number",
    "keys.short": "/ 3 digits",
    "keys.plain": "/ text of 20 characters",
    "keys.again": "/ the same key as first",
    "keys.table.model": "did you mean models?",
}


def test_every_problem_is_reported_at_once_with_its_place(tmp_path: Path) -> None:
    found = problems(tmp_path, EVERYTHING, {"WIREGLOT_SECRET": "short"})
    for path, said in EXPECTED.items():
        assert said in found.get(path, ""), (path, found.get(path))
    assert set(found) == set(EXPECTED)


def test_dialects_and_placeholders_are_checked_against_the_provider(tmp_path: Path) -> None:
    text = """
        [providers.mine]
        dialect = "openai-chat"
        base_url = "https://host/v1"
        counts = ["gemini"]
        variables = { region = "x" }
        project = "p"
    """
    assert set(problems(tmp_path, text)) == {
        "providers.mine.counts",
        "providers.mine.variables.region",
        "providers.mine.project",
    }


def test_only_a_provider_of_responses_has_a_websocket(tmp_path: Path) -> None:
    text = '[providers.mine]\nbase_url = "https://host/v1"\nwebsocket = true\n'
    assert set(problems(tmp_path, text + 'dialect = "openai-chat"\n')) == {"providers.mine.websocket"}
    assert loaded(tmp_path, text + 'dialect = "openai-responses"\n').providers["mine"].spec.websocket


def test_a_dialect_the_entry_does_not_speak_needs_a_base_url(tmp_path: Path) -> None:
    text = '[providers.mistral]\napi_key = "k"\ndialect = "anthropic"\n'
    assert "or a base_url" in problems(tmp_path, text)["providers.mistral.dialect"]
    placed = text + 'base_url = "https://mistral.example.com/anthropic"\n'
    assert loaded(tmp_path, placed).providers["mistral"].spec.dialects == ("anthropic",)


def test_no_problem_tells_a_secret(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    text = """
        losses = "sk-hush-0123456789"
        [server]
        secret = "hush"
        [providers.a]
        dialect = "openai-chat"
        base_url = "https://hush:hush@host/v1"
        api_key = ["hush"]
        apikey = "hush"
        proxy = "hush://hush"
        headers = { x = "hush\\n" }
        [providers.b]
        dialect = "openai-chat"
        base_url = "https://host/v1?key=hush"
        api_key = "hush hush"
        auth = "sk-hushhushhushhush"
        [providers.c]
        dialect = "openai-chat"
        base_url = "https://host/v1"
        api_keys = ["same-hush", "same-hush"]
        [providers.d]
        dialect = "openai-chat"
        base_url = "https://host/v1"
        api_key = "file:empty"
        [keys]
        team = "hush-hush-hush"
        other = { hash = "sha256:hush" }
    """
    error = refused(tmp_path, text, {"WIREGLOT_SECRET": ""})
    assert len(error.problems) >= 13
    assert "hush" not in str(error)
    assert "hush" not in repr(error)
    assert "hush" not in repr(error.problems)


@pytest.mark.parametrize(
    ("content", "place"),
    [
        (b"[server\nport = 1", "line 1, column 8"),
        (b'[server]\nport = 1\nhost = "half', "end of document"),
        (b"a = 1\na = 2\n", "line 2"),
        (b"x = 1\ny = '\xff'\n", "line 2, column 6"),
    ],
)
def test_a_file_that_is_no_toml_is_reported_with_line_and_column(
    tmp_path: Path, content: bytes, place: str
) -> None:
    path = tmp_path / "wireglot.toml"
    path.write_bytes(content)
    with pytest.raises(ConfigError) as caught:
        load(path, environ=QUIET)
    (problem,) = caught.value.problems
    assert place in problem.path
    assert caught.value.source == str(path)


def test_a_file_that_is_not_there_is_a_problem(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="a file that can be read"):
        load(tmp_path / "none.toml", environ=QUIET)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "gateway.example.com"])
def test_other_machines_are_let_in_only_with_a_key(tmp_path: Path, host: str) -> None:
    text = f'[server]\nhost = "{host}"\n[providers.demo]\n'
    assert "client key" in problems(tmp_path, text)["server.host"]
    assert "client key" in problems(tmp_path, "[providers.demo]\n", {"WIREGLOT_HOST": host})["WIREGLOT_HOST"]
    assert problems(tmp_path, "[providers.demo]\n", overrides={"server.host": host})
    keyed = text + f'[keys]\na = "{digest("k")}"\n'
    path = tmp_path / "wireglot.toml"
    path.write_text(keyed)
    assert load(path, environ=QUIET).server.host == host


@rows("host", ["127.0.0.1", "127.9.9.9", "::1", "localhost", "LOCALHOST"])
def test_this_machine_needs_no_key(host: str) -> None:
    assert load(None, environ={**QUIET, "WIREGLOT_HOST": host}).keys == ()


def test_a_misspelt_key_is_not_reported_as_a_missing_one(tmp_path: Path) -> None:
    text = '[server]\nhost = "0.0.0.0"\n[providers.demo]\n[keys]\na = "sha256:1"\n'
    assert set(problems(tmp_path, text)) == {"keys.a"}


def test_problems_of_variables_are_named_by_the_variable() -> None:
    environ = {
        **QUIET,
        "WIREGLOT_PORT": "many",
        "WIREGLOT_HOSTS": "good.example,http://bad.example/",
        "WIREGLOT_REQUIRE_KEY": "perhaps",
        "WIREGLOT_LOG": "loud",
        "WIREGLOT_LOSSES": "some",
        "WIREGLOT_KEYS": "a=sha256:1",
        "WIREGLOT_MODELS": "x=nobody/y;nonsense",
    }
    with pytest.raises(ConfigError) as caught:
        load(None, environ=environ)
    assert {problem.path for problem in caught.value.problems} == {
        "WIREGLOT_PORT",
        "WIREGLOT_HOSTS",
        "WIREGLOT_REQUIRE_KEY",
        "WIREGLOT_LOG",
        "WIREGLOT_LOSSES",
        "WIREGLOT_KEYS",
        "WIREGLOT_MODELS",
    }


def test_tables_that_are_none_are_problems(tmp_path: Path) -> None:
    text = 'server = 1\nlimits = "x"\nproviders = []\nmodels = 2\nkeys = true\n'
    found = problems(tmp_path, text, {"WIREGLOT_KEYS": digest("k"), "WIREGLOT_PORT": "1"})
    assert set(found) == {"server", "limits", "providers", "models", "keys"}


def test_a_chain_of_names_ends_at_providers(tmp_path: Path) -> None:
    text = """
        [providers.demo]
        [models]
        best = ["strong", "demo/demo"]
        strong = { to = "demo/demo-gemini", losses = "strict" }
        bare = "demo-anthropic"
        "my-*" = "demo/demo-*"
    """
    rules = {rule.match: rule.targets for rule in loaded(tmp_path, text).rules}
    assert rules == {
        "best": ("demo/demo-gemini", "demo/demo"),
        "strong": ("demo/demo-gemini",),
        "bare": ("demo-anthropic",),
        "my-*": ("demo/demo-*",),
    }
