"""docs/configuration.md says what the configuration knows, and its examples load."""

import re
from pathlib import Path
from typing import get_args

import msgspec

from tests.gateway.config.config_files import QUIET, loaded
from wireglot.gateway.config.environment import CONFIG_VARIABLE, variables
from wireglot.gateway.config.problems import Problems
from wireglot.gateway.config.provider_table import LoginTable, ProvidersTable
from wireglot.gateway.config.providers import RETRIES, read_headers, read_spec, upstream_dialects
from wireglot.gateway.config.references import References
from wireglot.gateway.config.table import Table, declared
from wireglot.gateway.process_limits import ProcessLimits
from wireglot.gateway.setting_tables import BreakerPolicy
from wireglot.gateway.settings import (
    ClientKey,
    Keep,
    Provider,
    Rule,
    ServerSettings,
    Settings,
    StoreSettings,
)
from wireglot.http.retry import RetryPolicy
from wireglot.http.transport import Timeouts
from wireglot.stores.records import KeyQuotas
from wireglot_core.providers.list_price import Price
from wireglot_core.providers.spec import Auth

PAGE = (Path(__file__).parents[3] / "docs" / "configuration.md").read_text(encoding="utf-8")


def section(heading: str) -> str:
    return PAGE.split(f"## {heading}", 1)[1].split("\n## ", 1)[0]


def documented(text: str) -> set[str]:
    """Names in the first column of the tables."""
    rows = re.findall(r"^\| (`.*?) \|", text, flags=re.MULTILINE)
    return {name for row in rows for name in re.findall(r"`(\w+)`", row)}


def fields(struct: type[msgspec.Struct]) -> set[str]:
    return set(struct.__struct_fields__)


def test_every_setting_of_the_server_is_documented() -> None:
    assert documented(section("`[server]`")) == fields(ServerSettings)


def test_every_field_of_a_login_is_documented() -> None:
    assert documented(section("Login")) >= fields(LoginTable)


def test_every_field_of_a_provider_is_documented() -> None:
    problems = Problems()
    table = Table({"dialect": "openai-chat", "base_url": "http://h/v1"}, "", problems)
    spec = read_spec("x", table)
    read_headers(table, spec, References({}, Path(), problems, []))
    read = table._known | (fields(Provider) - {"name", "spec", "credentials", "stated"})
    read |= {"api_key", "api_keys", "login", "project", "location"} | fields(ProvidersTable)
    assert documented(section("`[providers.NAME]`")) == read


def test_every_choice_and_every_nested_field_is_documented() -> None:
    about = section("`[providers.NAME]`")
    for heading, struct in (("Timeouts", Timeouts), ("Retries", RetryPolicy), ("Breaker", BreakerPolicy)):
        assert f"](#{heading.lower()})" in about
        assert documented(section(heading)) == fields(struct)
    for choice in (*upstream_dialects(), *get_args(Auth), *RETRIES):
        assert choice in about
    keys = (fields(ClientKey) - {"name", "digest", "limits", "created", "sign_in"}) | fields(KeyQuotas)
    assert documented(section("`[keys]`")) == keys | {"hash"}
    assert documented(section("`[models]`")) == (fields(Rule) - {"match", "targets"}) | {"to"}
    assert documented(section("`[prices]`")) == fields(Price)
    assert documented(section("`[store]`")) == fields(StoreSettings) | fields(Keep)


def test_the_top_level_is_documented() -> None:
    top = PAGE.split("Top-level fields:", 1)[1].split("\n## ", 1)[0]
    assert documented(top) == set(declared(Settings))
    assert documented(top) == (fields(Settings) - {"rules", "managed", "source", "notes", "off"}) | {
        "models",
        "claude_code",
    }


def test_every_limit_is_documented_with_its_default() -> None:
    units = {"": 1, " KiB": 1024, " MiB": 1024 * 1024}
    reported = re.findall(
        r"^\| `(\w+)` \| [^|]+ \| ([\d.]+)( [KM]iB)? \| .+ \|$", section("`[limits]`"), flags=re.MULTILINE
    )
    assert {name: float(value) * units[unit] for name, value, unit in reported} == {
        field.name: float(field.default) for field in msgspec.structs.fields(ProcessLimits)
    }


def test_every_variable_is_documented() -> None:
    known = {
        "WIREGLOT_ADMIN_SECRET",
        "WIREGLOT_CONFIG",
        "WIREGLOT_HOST",
        "WIREGLOT_HOSTS",
        "WIREGLOT_INSPECTOR",
        "WIREGLOT_KEYS",
        "WIREGLOT_LOG",
        "WIREGLOT_LOSSES",
        "WIREGLOT_METRICS_KEY",
        "WIREGLOT_MODELS",
        "WIREGLOT_PORT",
        "WIREGLOT_REQUIRE_KEY",
        "WIREGLOT_SECRET",
        "WIREGLOT_SHARED",
        "WIREGLOT_STORE",
        "WIREGLOT_TRACE",
        "WIREGLOT_WORKERS",
    }
    assert {CONFIG_VARIABLE, *(setting.env for _, setting in variables())} == known
    assert set(re.findall(r"WIREGLOT_\w+", PAGE)) == known


def test_the_examples_load(tmp_path: Path) -> None:
    environ = dict.fromkeys(("MOONSHOT_API_KEY", "GEMINI_API_KEY", "OPENAI_API_KEY", "GROQ_API_KEY"), "k")
    first, second, groups, prices, managed = re.findall(r"```toml\n(.*?)```", PAGE, flags=re.DOTALL)
    first = first.replace("sha256:...", "sha256:" + 64 * "0")
    assert len(loaded(tmp_path, first, {**QUIET, **environ}).rules) == 2
    assert len(loaded(tmp_path, first.split("[models]")[0] + second, {**QUIET, **environ}).rules) == 4
    grouped = first.split("[models]")[0] + groups
    assert loaded(tmp_path, grouped, {**QUIET, **environ}).groups["engineering"].safeguards is not None
    found = loaded(tmp_path, grouped + managed, {**QUIET, **environ}).groups["engineering"].managed.settings
    assert found is not None
    assert found["model"] == "kimi/kimi-k3"
    assert len(loaded(tmp_path, prices, {**QUIET, **environ}).prices) == 2
