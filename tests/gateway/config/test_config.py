"""`load`: files, the environment, overrides, and nothing at all."""

from pathlib import Path

import pytest

from tests.gateway.config.config_files import QUIET, digest, loaded, problems, refused, written
from tests.tiers import rows
from wireglot.gateway.config import ConfigError, find, load
from wireglot.gateway.config.references import fingerprint
from wireglot.gateway.process_limits import ProcessLimits
from wireglot.gateway.settings import Rule, Secret
from wireglot.gateway.targets.routing import Retired, Unroutable, route
from wireglot.http.retry import RetryPolicy
from wireglot_core.providers.endpoints import endpoint
from wireglot_core.providers.spec import limits_of

EXAMPLE = """
    [server]
    host = "127.0.0.1"
    port = 8484
    [providers.kimi]
    api_key = "env:MOONSHOT_API_KEY"
    [providers.mine]
    dialect = "openai-chat"
    base_url = "http://127.0.0.1:9001/v1"
    api_key = "x"
    [models]
    "claude-*" = "kimi/kimi-k3"
    "fast" = ["gemini/gemini-2.5-flash", "mine/some-model"]
    [keys]
    team-a = "sha256:c0ffee00c0ffee00c0ffee00c0ffee00c0ffee00c0ffee00c0ffee00c0ffee00"
"""


def test_the_example_of_the_documentation_loads(tmp_path: Path) -> None:
    settings = loaded(tmp_path, EXAMPLE, {"MOONSHOT_API_KEY": "sk-moon", "GEMINI_API_KEY": "g"})
    assert (settings.server.host, settings.server.port) == ("127.0.0.1", 8484)
    assert list(settings.providers)[:2] == ["kimi", "mine"]
    kimi, mine = settings.providers["kimi"], settings.providers["mine"]
    assert kimi.spec.base_url == "https://api.moonshot.ai/v1"
    assert kimi.credentials[0].secret == Secret("sk-moon", "env:MOONSHOT_API_KEY")
    assert mine.spec.dialects == ("openai-chat",)
    assert mine.spec.auth == "bearer"
    assert mine.credentials[0].secret.source == "config"
    assert settings.rules == (
        Rule("claude-*", ("kimi/kimi-k3",)),
        Rule("fast", ("gemini/gemini-2.5-flash", "mine/some-model")),
    )
    assert settings.keys[0].name == "team-a"
    assert settings.source.endswith("wireglot.toml")


def test_without_file_and_keys_only_the_demo_is_on() -> None:
    settings = load(None, environ=QUIET)
    assert list(settings.providers) == ["demo"]
    assert settings.providers["demo"].credentials == ()
    assert any("demo" in note for note in settings.notes)
    assert settings.source == ""


def test_without_a_file_the_keys_in_the_environment_turn_providers_on() -> None:
    environ = {**QUIET, "OPENAI_API_KEY": "sk-openai-1234", "GROQ_API_KEY": "gsk_5678", "XAI_API_KEY": "  "}
    settings = load(None, environ=environ)
    assert list(settings.providers) == ["openai", "groq"]  # the vendor itself before those who resell
    text = " ".join(settings.notes)
    assert "env:OPENAI_API_KEY" in text
    assert "sk-openai-1234" not in text
    assert "gsk_5678" not in text


def test_a_base_url_in_the_environment_is_not_followed() -> None:
    environ = {**QUIET, "OPENAI_API_KEY": "k", "OPENAI_BASE_URL": "http://elsewhere.example/v1"}
    assert load(None, environ=environ).providers["openai"].spec.base_url == "https://api.openai.com/v1"


def test_with_a_file_the_environment_still_turns_on_what_it_has_keys_for(tmp_path: Path) -> None:
    text = '[providers.mine]\ndialect = "anthropic"\nbase_url = "http://127.0.0.1:1"\n'
    assert list(loaded(tmp_path, text, {"GROQ_API_KEY": "k"}).providers) == ["mine", "groq"]
    closed = "[providers]\ndiscover = false\n" + text
    assert list(loaded(tmp_path, closed, {"GROQ_API_KEY": "k"}).providers) == ["mine"]


def test_with_a_file_the_demo_is_on_only_if_it_is_named(tmp_path: Path) -> None:
    settings = loaded(tmp_path, "[server]\nport = 1\n")
    assert settings.providers == {}
    assert any("no provider is on" in note for note in settings.notes)
    assert list(loaded(tmp_path, "[providers.demo]\n").providers) == ["demo"]


def test_a_vertex_token_without_a_project_is_a_note_and_no_provider() -> None:
    environ = {**QUIET, "VERTEX_ACCESS_TOKEN": "ya29.x"}
    settings = load(None, environ=environ)
    assert "vertex" not in settings.providers
    assert any("GOOGLE_CLOUD_PROJECT" in note for note in settings.notes)
    settings = load(None, environ={**environ, "GOOGLE_CLOUD_PROJECT": "p1"})
    assert settings.providers["vertex"].variables["project"] == "p1"
    assert settings.providers["vertex"].variables["location"] == "global"


def test_placeholders_of_a_base_url_take_their_values_from_the_table(tmp_path: Path) -> None:
    text = """
        [providers.vertex]
        api_key = "t"
        project = "p2"
        location = "eu"
        variables = { host = "eu-aiplatform.googleapis.com" }
    """
    assert loaded(tmp_path, text).providers["vertex"].variables == {
        "host": "eu-aiplatform.googleapis.com",
        "project": "p2",
        "location": "eu",
    }


def test_variables_of_the_environment_win_over_the_file_and_overrides_over_both(tmp_path: Path) -> None:
    text = '[server]\nport = 1\nhost = "localhost"\nlog = "json"\n[providers.demo]\n'
    environ = {"WIREGLOT_PORT": "2", "WIREGLOT_LOG": "off", "WIREGLOT_LOSSES": "strict"}
    settings = loaded(tmp_path, text, environ)
    assert (settings.server.port, settings.server.log, settings.losses) == (2, "off", "strict")
    for overrides in ({"server": {"port": 3}}, {"server.port": 3}):
        server = loaded(tmp_path, text, environ, overrides=overrides).server
        assert (server.port, server.host, server.log) == (3, "localhost", "off")


def test_a_container_needs_no_file_to_listen_for_others() -> None:
    """[M3] Keys are made later, in its store; names are those it is called by from outside."""
    environ = {
        **QUIET,
        "WIREGLOT_HOST": "0.0.0.0",
        "WIREGLOT_REQUIRE_KEY": "true",
        "WIREGLOT_HOSTS": "localhost, Wireglot.Example,",
        "WIREGLOT_WORKERS": "3",
    }
    server = load(None, environ=environ).server
    assert (server.require_key, server.hosts, server.workers) == (True, ("localhost", "wireglot.example"), 3)


def test_keys_and_models_from_the_environment() -> None:
    """R-DD-12"""
    environ = {
        **QUIET,
        "WIREGLOT_HOST": "0.0.0.0",
        "WIREGLOT_KEYS": f"team-a={digest('a')}, {digest('b')}, {digest('c')[7:]}",
        "WIREGLOT_MODELS": "claude-*=demo/demo; fast = demo/demo-gemini, demo/demo",
    }
    settings = load(None, environ=environ)
    assert [key.name for key in settings.keys] == ["team-a", "key-2", "key-3"]
    assert settings.keys[2].digest == digest("c")[7:]
    assert settings.rules == (
        Rule("claude-*", ("demo/demo",)),
        Rule("fast", ("demo/demo-gemini", "demo/demo")),
    )


def test_a_pool_of_keys_has_an_account_for_each(tmp_path: Path) -> None:
    text = '[providers.openai]\napi_keys = ["env:ONE", "env:TWO"]\n'
    credentials = loaded(tmp_path, text, {"ONE": "k1", "TWO": "k2"}).providers["openai"].credentials
    assert [credential.account for credential in credentials] == [fingerprint("k1"), fingerprint("k2")]
    assert credentials[0].account != credentials[1].account
    assert len(credentials[0].account) == 10


def test_a_secret_in_a_file_is_read_without_its_line_end(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("k-from-file\n")
    (tmp_path / "key").chmod(0o600)
    settings = loaded(tmp_path, '[providers.openai]\napi_key = "file:key"\n')
    assert settings.providers["openai"].credentials[0].secret == Secret("k-from-file", "file:key")
    assert not any("chmod" in note for note in settings.notes)


def test_a_secret_others_can_read_is_noted(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("k-from-file\n")
    (tmp_path / "key").chmod(0o644)
    settings = loaded(tmp_path, '[providers.openai]\napi_key = "file:key"\n')
    assert any("chmod" in note and "key" in note for note in settings.notes)


def test_a_literal_key_in_a_file_others_can_read_is_noted(tmp_path: Path) -> None:
    path = written(tmp_path, '[providers.openai]\napi_key = "literal"\n', mode=0o644)
    assert any("wireglot.toml" in note for note in load(path, environ=QUIET).notes)


def test_retry_presets_and_tables(tmp_path: Path) -> None:
    """C13"""

    def retry(value: str) -> RetryPolicy:
        return loaded(tmp_path, f"[providers.demo]\nretry = {value}\n").providers["demo"].retry

    assert retry('"default"') == RetryPolicy()
    assert retry('"fixed-100ms"') == RetryPolicy(retries=3, schedule=(0.1, 0.2, 0.4), connection_errors=False)
    assert retry("{ retries = 1, cap = 2 }") == RetryPolicy(retries=1, cap=2.0)


def test_every_field_of_a_provider(tmp_path: Path) -> None:
    text = """
        [providers.mine]
        catalog = "kimi"
        title = "Ours"
        base_url = "https://llm.example.com/v1/"
        dialects = ["openai-chat", "anthropic"]
        api_key = "env:KEY"
        auth = "x-api-key"
        streams = "only"
        headers = { x-team = "env:TEAM", x-plain = "p" }
        timeouts = { connect = 1, first_byte = 60.5 }
        breaker = { consecutive = 2 }
        concurrency = 4
        losses = "strict"
        proxy = "http://proxy.example.com:3128"
        models = ["kimi-k3", "house/own"]
        limits = { prefill = false }
    """
    provider = loaded(tmp_path, text, {"KEY": "k", "TEAM": "blue"}).providers["mine"]
    spec = provider.spec
    assert (spec.name, spec.title, spec.auth, spec.streams) == ("mine", "Ours", "x-api-key", "only")
    assert spec.base_url == "https://llm.example.com/v1"
    assert spec.base_urls == {"anthropic": "https://llm.example.com"}
    assert provider.headers == (("x-team", "blue"), ("x-plain", "p"))
    assert (provider.timeouts.connect, provider.timeouts.first_byte) == (1.0, 60.5)
    assert (provider.breaker.consecutive, provider.concurrency) == (2, 4)
    assert (provider.losses, provider.proxy) == ("strict", "http://proxy.example.com:3128")
    assert spec.limits["call_ids"] == "kimi"
    assert spec.limits["prefill"] is False
    assert [entry.match for entry in spec.models] == ["kimi-k3", "house/own"]
    assert spec.models[0].limits["efforts"] == ["low", "high", "max"]
    assert spec.knows("house/own")
    assert not spec.knows("kimi-k2.6")


def test_a_base_url_of_its_own_takes_nothing_to_the_other_hosts_of_the_entry(tmp_path: Path) -> None:
    text = '[providers.deepseek]\nbase_url = "http://127.0.0.1:1/v1"\napi_key = "k"\n'
    spec = loaded(tmp_path, text).providers["deepseek"].spec
    assert spec.base_urls == {}
    assert spec.dialects == ("openai-chat", "openai-responses")
    moved = '[providers.ollama]\nbase_url = "http://gpu:11434/v1"\n'
    spec = loaded(tmp_path, moved).providers["ollama"].spec
    assert spec.base_urls == {"anthropic": "http://gpu:11434"}
    assert "anthropic" in spec.dialects


def test_a_base_url_follows_the_convention_of_the_dialects_that_live_there(tmp_path: Path) -> None:
    """MiniMax prefers its Anthropic form, which has a place of its own: `/v1` is right for the other two."""
    text = '[providers.minimax]\nbase_url = "https://api.minimaxi.com/v1"\napi_key = "k"\n'
    spec = loaded(tmp_path, text).providers["minimax"].spec
    assert spec.dialects == ("openai-chat", "openai-responses")
    assert endpoint(spec, "openai-chat", "generate", "m", {}).endswith("minimaxi.com/v1/chat/completions")
    named = text + 'base_urls = { anthropic = "https://api.minimaxi.com/anthropic" }\n'
    spec = loaded(tmp_path, named).providers["minimax"].spec
    assert spec.dialects == ("anthropic", "openai-chat", "openai-responses")
    assert endpoint(spec, "anthropic", "generate", "m", {}).endswith("minimaxi.com/anthropic/v1/messages")
    here = text + 'dialects = ["anthropic", "openai-chat"]\n'
    spec = loaded(tmp_path, here).providers["minimax"].spec
    assert endpoint(spec, "anthropic", "generate", "m", {}).endswith("minimaxi.com/v1/messages")
    only = text + 'dialect = "anthropic"\n'
    assert "has no /v1" in problems(tmp_path, only)["providers.minimax.base_url"]
    bare = only.replace("/v1", "/anthropic")
    spec = loaded(tmp_path, bare).providers["minimax"].spec
    assert endpoint(spec, "anthropic", "generate", "m", {}).endswith("minimaxi.com/anthropic/v1/messages")


def test_the_key_of_the_environment_does_not_go_to_another_host_unasked(tmp_path: Path) -> None:
    text = '[providers.openai]\nbase_url = "http://127.0.0.1:1/v1"\n'
    found = problems(tmp_path, text, {"OPENAI_API_KEY": "sk-x"})
    assert "env:OPENAI_API_KEY" in found["providers.openai.api_key"]
    asked = text + 'api_key = "env:OPENAI_API_KEY"\n'
    assert loaded(tmp_path, asked, {"OPENAI_API_KEY": "sk-x"}).providers["openai"].credentials
    keyless = text + 'auth = "none"\n'
    assert loaded(tmp_path, keyless, {"OPENAI_API_KEY": "sk-x"}).providers["openai"].credentials == ()


@pytest.mark.parametrize(
    ("dialect", "base", "auth"),
    [
        ("anthropic", "http://h", "x-api-key"),
        ("gemini", "http://h/v1beta", "x-goog-api-key"),
        ("openai-responses", "http://h/v1", "bearer"),
        ("code-assist", "http://h", "bearer"),
    ],
)
def test_a_key_is_sent_as_the_dialect_is_used_to(tmp_path: Path, dialect: str, base: str, auth: str) -> None:
    """C35"""
    text = f'[providers.mine]\ndialect = "{dialect}"\nbase_url = "{base}"\n'
    assert loaded(tmp_path, text + 'api_key = "k"\n').providers["mine"].spec.auth == auth
    assert loaded(tmp_path, text).providers["mine"].spec.auth == "none"


MOVED = 'base_url = "https://other.example/v1"\n'


@pytest.mark.parametrize(
    ("lines", "has_one"),
    [("", True), ("websocket = false\n", False), (MOVED, False), (MOVED + "websocket = true\n", True)],
)
def test_another_host_than_the_entrys_has_a_websocket_only_if_it_says_so(
    tmp_path: Path, lines: str, has_one: bool
) -> None:
    settings = loaded(tmp_path, f'[providers.openai]\napi_key = "sk-0123456789"\n{lines}')
    assert settings.providers["openai"].spec.websocket is has_one
    (responses,) = route(settings, "openai/gpt-5.5", "openai-responses")
    assert (responses.websockets is not None) is has_one
    (chat,) = route(settings, "openai/gpt-5.5", "openai-chat")
    assert chat.websockets is None


def test_a_fallback_to_another_embedding_model_is_noted(tmp_path: Path) -> None:
    providers = '[providers.openai]\napi_key = "k"\n[providers.gemini]\napi_key = "k"\n[providers.mine]\ndialect = "openai-chat"\nbase_url = "http://localhost"\n'
    for targets, noted in (
        ('["openai/text-embedding-3-small", "gemini/gemini-embedding-001"]', True),
        ('["openai/gpt-5.5", "openai/text-embedding-3-small", "openai/text-embedding-3-large"]', True),
        ('["openai/text-embedding-3-small", "mine/text-embedding-3-small"]', False),
        ('["openai/gpt-5.5", "gemini/gemini-3.1-pro-preview"]', False),
        ('"openai/text-embedding-3-small"', False),
    ):
        settings = loaded(tmp_path, f"{providers}[models]\nvectors = {targets}\n")
        found = [note for note in settings.notes if "vectors falls back" in note]
        assert bool(found) is noted, targets


def test_plain_http_beyond_the_own_network_is_noted(tmp_path: Path) -> None:
    text = '[providers.mine]\ndialect = "anthropic"\nbase_url = "http://{}"\n'
    for host, noted in (
        ("api.example.com", True),
        ("10.1.2.3:80", False),
        ("localhost", False),
        ("gpu", False),
    ):
        settings = loaded(tmp_path, text.replace("{}", host))
        assert any("over http" in note for note in settings.notes) is noted


@rows(
    ("rules", "unreached"),
    [
        ('"gpt-*" = "demo/*"\n"gpt-4*" = "demo/*"', ["gpt-4*"]),
        ('"gpt-4*" = "demo/*"\n"gpt-*" = "demo/*"', []),
        ('"*" = "demo/*"\n"a*" = "demo/*"\nplain = "demo/demo"', ["a*"]),
        ('"*4*" = "demo/x"\n"gpt-4*-mini" = "demo/y"\n"gpt-*" = "demo/z"', ["gpt-4*-mini"]),
        ('"g*" = { to = "demo/x", effort = ["high"] }\n"gpt*" = "demo/*"', []),
        (
            '"g*" = { to = "demo/x", effort = ["high", "max"] }\n"gpt*" = { to = "demo/y", effort = ["high"] }',
            ["gpt* (if the effort is high)"],
        ),
        ('m = [{ to = "demo/x" }, { to = "demo/y", effort = ["low"] }]', ["m (if the effort is low)"]),
        ('m = [{ to = "demo/y", effort = ["low"] }, { to = "demo/x" }]', []),
        ('"plain*" = "demo/*"\nplain = "demo/demo"', []),
        ('m = [{ to = "demo/x", purpose = "main" }, { to = "demo/y", agent = "a" }, { to = "demo/z" }]', []),
        (
            'm = [{ to = "demo/x", purpose = ["main", "background"] }, { to = "demo/y", purpose = "main" }]',
            ["m (if the purpose is main)"],
        ),
        (
            'm = [{ to = "demo/x", agent = "E*" }, { to = "demo/y", agent = ["explore", "plan"] }]',
            [],
        ),
        (
            'm = [{ to = "demo/x", agent = "E*" }, { to = "demo/y", agent = "explore", images = true }]',
            ["m (if the agent is explore, if there is an image)"],
        ),
        ('m = [{ to = "demo/x", prompt_over = 9 }, { to = "demo/y", prompt_over = 5 }]', []),
        (
            'm = [{ to = "demo/x", prompt_over = 5 }, { to = "demo/y", prompt_over = 9 }]',
            ["m (if the prompt is over 9 tokens)"],
        ),
        ('m = [{ to = "demo/x" }, { to = "demo/z", images = true }]', ["m (if there is an image)"]),
        (
            '"*" = "demo/x"\n"demo/*" = "demo/y"\n"demo/a*" = "demo/z"\n"other/*" = "demo/z"',
            ["demo/a*", "other/*"],
        ),
    ],
)
def test_a_rule_that_no_request_reaches_is_noted(tmp_path: Path, rules: str, unreached: list[str]) -> None:
    notes = loaded(tmp_path, f"[providers.demo]\n[models]\n{rules}\n").notes
    reported = [note for note in notes if "never reached" in note]
    assert [note.split(" is never")[0] for note in reported] == [f"models: {name}" for name in unreached]


def test_a_rule_to_a_retired_model_is_noted(tmp_path: Path) -> None:
    text = '[providers.kimi]\napi_key = "k"\n[models]\nold = "kimi/kimi-k2-0905-preview"\n'
    (note,) = [note for note in loaded(tmp_path, text).notes if "retired" in note]
    assert "old resolves to kimi/kimi-k2-0905-preview" in note
    assert "kimi-k3" in note


def test_what_the_vendor_has_retired_may_be_served_by_a_host_of_the_users_own(tmp_path: Path) -> None:
    text = '[providers.kimi]\napi_key = "k"\n%s[models]\nold = "kimi/kimi-k2-0905-preview"\n'
    with pytest.raises(Retired):
        route(loaded(tmp_path, text % ""), "old", "openai-chat")
    own = loaded(tmp_path, text % 'base_url = "http://gpu.example/v1"\n')
    assert not [note for note in own.notes if "retired" in note]
    (target,) = route(own, "old", "openai-chat")
    assert (target.model, target.urls["generate"]) == (
        "kimi-k2-0905-preview",
        "http://gpu.example/v1/chat/completions",
    )


@pytest.mark.parametrize(
    ("said", "leaks"),
    [("true", ("kimi", "deepseek", "hermes")), ("false", ()), ('["hermes"]', ("hermes",)), ("[]", ())],
)
def test_a_provider_leaks_the_calls_that_its_table_names(
    tmp_path: Path, said: str, leaks: tuple[str, ...]
) -> None:
    text = f'[providers.openrouter]\napi_key = "key-0123456789"\nlimits = {{ leaks_calls = {said} }}\n'
    spec = loaded(tmp_path, text).providers["openrouter"].spec
    assert limits_of(spec, "openai-chat", "qwen/qwen3").leaks_calls == leaks


def test_limits_are_the_fields_of_process_limits(tmp_path: Path) -> None:
    limits = loaded(tmp_path, "[limits]\nbody = 10\nping = 5\n[providers.demo]\n").limits
    assert limits == ProcessLimits(body=10, ping=5.0)


def test_a_file_with_a_byte_order_mark_is_read(tmp_path: Path) -> None:
    path = tmp_path / "wireglot.toml"
    path.write_bytes(b"\xef\xbb\xbf[providers.demo]\r\n")
    assert list(load(path, environ=QUIET).providers) == ["demo"]


def test_find_takes_the_named_file_then_the_one_here_then_the_users(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    environ = {"XDG_CONFIG_HOME": str(tmp_path / "home")}
    assert find(environ) is None
    theirs = tmp_path / "home" / "wireglot" / "wireglot.toml"
    theirs.parent.mkdir(parents=True)
    theirs.touch()
    assert find(environ) == theirs
    (tmp_path / "wireglot.toml").touch()
    assert find(environ) == Path("wireglot.toml")
    assert find({**environ, "WIREGLOT_CONFIG": "named.toml"}) == Path("named.toml")


def test_settings_show_no_secret(tmp_path: Path) -> None:
    text = """
        [server]
        secret = "hush-0123456789-0123456789"
        [providers.openai]
        api_keys = ["hush-one", "env:TWO"]
        proxy = "http://user:hush@proxy:1"
        headers = { x-token = "hush-header" }
    """
    settings = loaded(tmp_path, text, {"TWO": "hush-two", "WIREGLOT_SECRET": ""})
    assert settings.server.secret.value.startswith("hush")
    assert settings.providers["openai"].proxy
    assert "hush" not in repr(settings)
    assert "hush" not in str(settings)
    assert "hush" not in f"{settings.providers['openai']} {settings.providers}"


@rows(
    ("given", "order"),
    [
        ("", "during"),
        ('sync = "during"', "during"),
        ('sync = "before"', "before"),
        ('sync = "off"', "off"),
        ("sync = true", "before"),
        ("sync = false", "off"),
    ],
)
def test_when_the_disk_has_a_record_is_one_of_three_and_old_files_mean_what_they_meant(
    tmp_path: Path, given: str, order: str
) -> None:
    assert loaded(tmp_path, f"[providers.demo]\n[store]\n{given}\n").store.sync == order


@pytest.mark.parametrize("given", ['"befor"', "1", "[]", '"true"'])
def test_another_order_of_the_disk_is_named_with_those_that_there_are(tmp_path: Path, given: str) -> None:
    wrong = str(refused(tmp_path, f"[providers.demo]\n[store]\nsync = {given}\n"))
    assert "store.sync: expected one of before, during, off" in wrong


@rows(
    ("url", "noted"),
    [
        ("postgresql://u:p@db.example/x", True),
        ("postgresql://u:p@127.0.0.1,db.example/x?schema=y", True),
        ("postgresql://u:p@db.example/x?sslmode=verify-full", False),
        ("postgresql://u:p@db.example/x?sslmode=disable", False),
        ("postgresql://u:p@127.0.0.1:5433,[::1]:5433,10.1.2.3,db/x", False),
        ("postgresql:///x?host=/run/postgresql", False),
    ],
)
def test_a_store_on_another_machine_that_nobody_verifies_is_noted(
    url: str, noted: bool, tmp_path: Path
) -> None:
    settings = loaded(tmp_path, f'[providers.demo]\n[store]\nurl = "{url}"\n')
    assert any("sslmode" in note for note in settings.notes) is noted


def test_a_provider_without_its_variable_is_off_where_no_key_is_needed(tmp_path: Path) -> None:
    text = (
        '[providers.kimi]\napi_key = "env:NOT_SET"\n[providers.demo]\n[models]\n'
        'fast = ["kimi/kimi-k3", "demo/demo"]\n"claude-*" = "kimi/kimi-k3"\nbare = "kimi-k3"\n'
    )
    path = tmp_path / "wireglot.toml"
    path.write_text(text)
    with pytest.raises(ConfigError, match="NOT_SET"):
        load(path, environ={}, create_secret=False)
    settings = load(path, environ={}, create_secret=False, keys_needed=False)
    assert (list(settings.providers), settings.off) == (["demo"], {"kimi": "NOT_SET"})
    assert "provider kimi is off: NOT_SET is not set" in settings.notes
    assert [rule.targets for rule in settings.rules] == [("demo/demo",), ("kimi/kimi-k3",), ("kimi-k3",)]
    with pytest.raises(Unroutable, match="the provider kimi is off: set NOT_SET"):
        route(settings, "claude-opus-5", "anthropic")
    with pytest.raises(Unroutable, match="the provider kimi is off: set NOT_SET"):
        route(settings, "kimi/kimi-k3", "anthropic")


@pytest.mark.parametrize(
    "more", ['base_url = "no url"', 'api_keys = "x"', "unknown = 1", '[models]\nx = "nobody/m"']
)
def test_other_problems_of_a_provider_without_its_variable_are_reported(tmp_path: Path, more: str) -> None:
    path = tmp_path / "wireglot.toml"
    path.write_text(f'[providers.kimi]\napi_key = "env:NOT_SET"\n{more}\n')
    with pytest.raises(ConfigError):
        load(path, environ={}, create_secret=False, keys_needed=False)


def test_an_operator_chooses_among_the_dialects_of_a_catalog_entry(tmp_path: Path) -> None:
    toml = '[providers.gemini]\ndialect = "gemini-interactions"\napi_key = "x"\n'
    settings = loaded(tmp_path, toml, {})
    assert settings.providers["gemini"].spec.dialects == ("gemini-interactions",)
    asked = route(settings, "gemini/gemini-3.5-flash", "anthropic")[0]
    assert asked.urls["stream"] == "https://generativelanguage.googleapis.com/v1beta/interactions"
    own = '[providers.mine]\ndialect = "gemini-interactions"\nbase_url = "https://x.example"\napi_key = "x"\n'
    assert loaded(tmp_path, own, {}).providers["mine"].spec.auth == "x-goog-api-key"
