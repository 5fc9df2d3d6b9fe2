"""The law of `wireglot import`: every setting of the source is reported, the result loads, no key is in it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.cli.import_.kit import ALL, CCR, LITELLM, Imported, ccr, imported, litellm, settings_in
from tests.tiers import rows
from wireglot.cli.import_.source import read_json5, read_yaml
from wireglot.cli.terminal import one_line
from wireglot_core.wire.json import encode

SECRETS = re.compile(
    r"sk-literal\S*|gsk_literal\S*|sk-or-\S*literal\S*|sk-lf-\S+|sk-1234-team-master|dbpassword9|sk-unused\S+"
    r"|cache-password-12345|literal-passthrough-token-77|a-client-secret-in-clear-text|pass-word-1"
    r"|ccr-client-secret-1|\S*literal-[0-9a-z-]*\d{1,6}|proxy-pass-1"
)


def test_there_are_enough_of_them():
    assert len(LITELLM) >= 8
    assert len(CCR) >= 5


@rows("file", ALL, ids=lambda file: file.stem)
def test_every_setting_of_the_source_is_reported(file: Path):
    found = imported(file)
    _is_reported_whole(found)
    text = file.read_text()
    root = read_yaml(text)[0] if file.suffix == ".yaml" else read_json5(text)
    reported = {(finding.leaf.path, finding.leaf.line) for finding in found.report.findings}
    assert {(node.path, node.line) for node in settings_in(root)} <= reported


def _is_reported_whole(found: Imported) -> None:
    """Each by its name and its line in the comments of the file; what is carried over, setting by setting."""
    reported = {id(finding.leaf) for finding in found.report.findings}
    assert {id(leaf) for leaf in found.report.leaves()} <= reported
    comments = " ".join(line.removeprefix("#").strip() for line in found.text.splitlines() if line[:1] == "#")
    numbers, letters = set(re.findall(r"\d+", comments)), "".join(comments.split())
    for finding in found.report.findings:
        assert finding.leaf.path.startswith(finding.at.path)
        assert "".join(one_line(finding.at.name).split()) in letters
        assert str(finding.at.line) in numbers
        assert "".join(finding.said.split()) in letters


@rows("file", ALL, ids=lambda file: file.stem)
def test_the_result_loads(file: Path):
    assert imported(file).settings().source == "wireglot.toml"


@rows("file", ALL, ids=lambda file: file.stem)
def test_no_key_of_the_source_is_in_the_result(file: Path):
    found = imported(file)
    keys = SECRETS.findall(file.read_text())
    for key in keys:
        assert key.strip("\"',") not in found.text
    for value in found.draft.secrets.literal.values():
        assert value not in found.text or value == "4321"


def test_the_pattern_of_secrets_finds_them():
    assert sum(len(SECRETS.findall(file.read_text())) for file in ALL) >= 20


@rows("file", ALL, ids=lambda file: file.stem)
def test_comments_fit_eighty_columns(file: Path):
    for line in imported(file).text.splitlines():
        assert len(line) < 80 or not line.startswith("#") or " " not in line[6:], line


NAMES = [
    "model_name",
    "litellm_params",
    "model",
    "api_key",
    "api_base",
    "timeout",
    "rpm",
    "fallbacks",
    "x y",
    "",
]
NAMES += [
    "general_settings",
    "router_settings",
    "master_key",
    "model_group_alias",
    "organization",
    "num_retries",
]
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 10**6),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from(
        ["openai/gpt-5", "*", "a,b", "os.environ/KEY", "$KEY", "https://h.example/v1", "azure/x", ""]
    ),
    st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=12),
)
TREES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=4),
    max_leaves=12,
)
PARAMS = st.dictionaries(
    st.sampled_from([*NAMES, "aws_region_name", "vertex_project", "extra_headers", "tenant_id", "order"]),
    TREES,
    max_size=4,
)
MODELS = st.sampled_from(
    [
        "openai/gpt-5",
        "azure/d",
        "bedrock/x",
        "vertex_ai/gemini-3",
        "ollama/*",
        "*",
        "gpt-5",
        "no_such/x",
        "azure_ai/c",
    ]
)
ENTRIES = st.builds(
    lambda name, model, params, more: {
        "model_name": name,
        "litellm_params": {**params, "model": model},
        **more,
    },
    st.sampled_from(["a", "b", "openai/*", "*", "with space"]) | TREES,
    MODELS | TREES,
    PARAMS,
    st.dictionaries(st.sampled_from(["model_info", "rpm"]), TREES, max_size=2),
)


@given(
    st.lists(ENTRIES | TREES, max_size=4),
    st.dictionaries(
        st.sampled_from(["router_settings", "litellm_settings", "general_settings", "environment_variables"]),
        st.dictionaries(st.sampled_from(NAMES), TREES, max_size=4),
    ),
)
def test_whatever_a_litellm_file_holds_is_reported_and_loads(models: list[Any], sections: dict[str, Any]):
    found = litellm(encode({"model_list": models, **sections}).decode(), {"KEY": "https://known.example/v1"})
    _is_reported_whole(found)
    found.settings()


PROVIDERS = st.fixed_dictionaries(
    {},
    optional={
        "name": st.sampled_from(["openai", "My One", "demo"]) | TREES,
        "api_base_url": st.sampled_from(["https://h.example/v1/chat/completions", "https://api.z.ai/x"])
        | TREES,
        "api_key": st.sampled_from(["$KEY", "sk-1", "none"]) | TREES,
        "models": st.lists(SCALARS, max_size=3) | TREES,
        "transformer": st.fixed_dictionaries(
            {
                "use": st.lists(
                    st.sampled_from(["Anthropic", "gemini", "mine", ["maxtoken", {"max_tokens": 5}]]) | TREES
                )
            }
        )
        | TREES,
    },
)


@given(
    st.lists(PROVIDERS | TREES, max_size=3),
    st.dictionaries(
        st.sampled_from(["default", "think", "background", "longContext"]),
        st.sampled_from(["openai,gpt-5", "My One,x", ","]) | TREES,
    ),
    st.dictionaries(
        st.sampled_from(["APIKEY", "HOST", "PORT", "PROXY_URL", "fallback", "LOG"]), TREES, max_size=4
    ),
)
def test_whatever_a_router_file_holds_is_reported_and_loads(
    providers: list[Any], router: dict[str, Any], more: dict[str, Any]
):
    text = encode({"Providers": providers, "Router": router, **more}).decode()
    found = ccr(text, {"KEY": "http://known.example:1"})
    _is_reported_whole(found)
    found.settings()
