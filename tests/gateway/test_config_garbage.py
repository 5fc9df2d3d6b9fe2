"""Whatever a configuration says, it is read or refused: nothing else is raised."""

from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.gateway.config_files import QUIET
from wireglot.gateway.config import ConfigError, load
from wireglot.gateway.config.read import parse

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
    "api_key api_keys auth base_url base_urls breaker catalog concurrency counts dialect dialects headers home limits "
    "losses models project proxy retry streams timeouts title variables".split(" ")
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


@given(
    DOCUMENTS,
    st.dictionaries(st.sampled_from(["A", "WIREGLOT_KEYS", "WIREGLOT_MODELS", "WIREGLOT_PORT"]), TEXTS),
)
def test_any_document_is_read_or_refused(document: dict[str, Any], environ: dict[str, str]) -> None:
    try:
        settings = load(None, environ={**QUIET, **environ}, overrides=document)
    except ConfigError as error:
        assert error.problems
        for problem in error.problems:
            assert problem.path
            assert problem.expected
            assert problem.found
    else:
        for rule in settings.rules:
            assert rule.targets
        for provider in settings.providers.values():
            assert provider.spec.dialects
            assert provider.spec.base_url


@given(st.binary(max_size=40) | st.text(alphabet="[]{}=\"'\n.a1#\\,", max_size=40).map(str.encode))
def test_any_bytes_are_toml_or_a_problem(content: bytes) -> None:
    try:
        assert isinstance(parse(content, "f"), dict)
    except ConfigError as error:
        assert len(error.problems) == 1
        assert error.source == "f"


def test_a_directory_in_place_of_the_file_is_a_problem(tmp_path: Path) -> None:
    try:
        load(tmp_path, environ=QUIET)
    except ConfigError as error:
        assert error.problems[0].path == str(tmp_path)
    else:
        raise AssertionError("a directory was read")
