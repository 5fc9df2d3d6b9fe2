"""Whatever a configuration says, it is read or refused: nothing else is raised."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.gateway.config.config_files import QUIET
from tests.tiers import rows
from wireglot.gateway.config import ConfigError, load
from wireglot.gateway.config.read import parse
from wireglot.gateway.settings import Settings

TEXTS = st.sampled_from(
    [
        "",
        "x",
        "env:A",
        "env:",
        "file:",
        "file:nowhere",
        "demo/demo",
        "demo/*",
        "*",
        "kimi",
        "http://h/v1",
        "https://[",
        "a",
    ]
) | st.text(max_size=8)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | TEXTS
VALUES: st.SearchStrategy[Any] = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)
FIELDS = st.sampled_from(
    [
        "api_key",
        "api_keys",
        "auth",
        "base_url",
        "base_urls",
        "breaker",
        "catalog",
        "concurrency",
        "counts",
        "dialect",
        "dialects",
        "headers",
        "home",
        "limits",
        "losses",
        "models",
        "project",
        "proxy",
        "retry",
        "streams",
        "timeouts",
        "title",
        "variables",
    ]
)
PROVIDERS = st.dictionaries(
    st.sampled_from(["demo", "mine", "vertex", "openai", "discover"]),
    st.dictionaries(FIELDS, VALUES, max_size=5) | VALUES,
    max_size=3,
)
DOCUMENTS = st.fixed_dictionaries(
    {},
    optional={
        "server": st.dictionaries(
            st.sampled_from(["host", "port", "workers", "hosts", "origins", "secret", "log", "telemetry"]),
            VALUES,
        )
        | VALUES,
        "providers": PROVIDERS | VALUES,
        "models": st.dictionaries(TEXTS, VALUES, max_size=4) | VALUES,
        "keys": st.dictionaries(TEXTS, VALUES, max_size=3) | VALUES,
        "limits": VALUES,
        "losses": VALUES,
    },
)


def outcome(read: Callable[[], Settings | dict[str, Any]]) -> Settings | dict[str, Any] | ConfigError:
    try:
        return read()
    except ConfigError as error:
        return error


@given(
    DOCUMENTS,
    st.dictionaries(st.sampled_from(["A", "WIREGLOT_KEYS", "WIREGLOT_MODELS", "WIREGLOT_PORT"]), TEXTS),
)
def test_any_document_is_read_or_refused(document: dict[str, Any], environ: dict[str, str]) -> None:
    end = outcome(lambda: load(None, environ={**QUIET, **environ}, overrides=document))
    if isinstance(end, ConfigError):
        assert end.problems
        assert all(problem.path and problem.expected and problem.found for problem in end.problems)
    else:
        assert isinstance(end, Settings)
        assert all(rule.targets for rule in end.rules)
        assert all(provider.spec.dialects and provider.spec.base_url for provider in end.providers.values())


@given(st.binary(max_size=40) | st.text(alphabet="[]{}=\"'\n.a1#\\,", max_size=40).map(str.encode))
def test_any_bytes_are_toml_or_a_problem(content: bytes) -> None:
    end = outcome(lambda: parse(content, "f"))
    if isinstance(end, ConfigError):
        assert len(end.problems) == 1
        assert end.source == "f"
    else:
        assert isinstance(end, dict)


@rows(
    "text",
    [
        "port = 1" + "0" * 5000,
        "a = " + "[" * 20_000 + "]" * 20_000,
        ".".join("a" * 1500) + " = 1",
        "[" + ".".join("a" * 100) + "]",
        "a = " + "{a = " * 40 + "1" + "}" * 40,
        "when = 2023-02-30",
    ],
    ids=["a long number", "brackets", "a dotted name", "a dotted table", "inline tables", "no such day"],
)
def test_what_the_parser_trips_over_is_a_problem(text: str, tmp_path: Path) -> None:
    path = tmp_path / "wireglot.toml"
    path.write_text(text)
    with pytest.raises(ConfigError, match="valid TOML") as caught:
        load(path, environ=QUIET)
    assert len(caught.value.problems) == 1


@pytest.mark.parametrize("name", ["file:~no-such-user/key", "file:a\\u0000b", "file:" + "a" * 5000])
def test_a_file_that_cannot_be_is_a_problem(name: str, tmp_path: Path) -> None:
    path = tmp_path / "wireglot.toml"
    path.write_text(f'[providers.openai]\napi_key = "{name}"\n')
    with pytest.raises(ConfigError, match=r"providers\.openai\.api_key: expected a text file"):
        load(path, environ=QUIET)


def test_a_directory_in_place_of_the_file_is_a_problem(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="a file that can be read"):
        load(tmp_path, environ=QUIET)


@rows("line", ["{} = 1", "[{}]", "x = {{{} = 1}}"])
def test_a_name_of_very_many_parts_is_refused_before_it_is_read(line: str) -> None:
    """To read it takes time by the square of its parts: minutes."""
    with pytest.raises(ConfigError, match="nested too deep"):
        parse(line.format("a." * 200_000 + "b").encode(), "wireglot.toml")
    hosts = ", ".join(["api.one.example.com"] * 100)
    assert parse(f'x = "{hosts}"  # {hosts}'.encode(), "wireglot.toml") == {"x": hosts}
