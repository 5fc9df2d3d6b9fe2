"""YAML as LiteLLM reads it, and where each value stood."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from tests.cli.import_.kit import LITELLM
from tests.cli.import_.test_json5 import plain
from tests.tiers import rows
from wireglot.cli.import_.source import UnreadableSource, read_yaml


@rows("file", LITELLM, ids=lambda file: file.stem)
def test_a_file_is_read_as_pyyaml_reads_it(file: Any):
    def reported(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: reported(each) for name, each in value.items()}
        if isinstance(value, list):
            return [reported(each) for each in value]
        return str(value) if hasattr(value, "isoformat") else value

    assert plain(read_yaml(file.read_text())[0]) == reported(yaml.safe_load(file.read_text()))


def test_a_version_is_no_date():
    assert plain(read_yaml("api_version: 2024-10-21")[0]) == {"api_version": "2024-10-21"}


def test_what_is_merged_is_overridden_in_silence_and_what_is_said_twice_is_not():
    root, overridden = read_yaml("a: &a {x: 1, y: 2}\nb:\n  <<: *a\n  x: 3\nc:\n  z: 4\n  z: 5\n")
    assert plain(root) == {"a": {"x": 1, "y": 2}, "b": {"x": 3, "y": 2}, "c": {"z": 5}}
    assert [(node.path, node.line) for node in overridden] == [("c.z", 6)]


@rows(
    ("text", "said"),
    [
        ("", "is empty"),
        ("# only words\n", "is empty"),
        ("a: [1\nb: 2", "line 2: not YAML: expected ',' or ']', but got ':'"),
        ("a: 1\n\tb: 2", "line 2: not YAML: found character '\\t' that cannot start any token"),
        ("a: !!python/object:os.system x", "line 1: not YAML: could not determine a constructor for the tag"),
        ("a: !Ref x", "line 1: not YAML: the tag !Ref, which cannot be read safely"),
        ("a: *nobody", "line 1: not YAML: found undefined alias 'nobody'"),
        ("a: 1\n---\nb: 2", "line 2: not YAML: but found another document"),
        ("x: 1\na: \x07", "line 2: not YAML: a control character"),
        ("? [a, b]\n: 1", "line 1: a key that is no text"),
        ("a: 2024-13-45", "not YAML"),
    ],
)
def test_what_is_no_yaml_is_reported_by_its_line(text: str, said: str):
    with pytest.raises(UnreadableSource) as problem:
        read_yaml(text)
    assert str(problem.value).startswith(said)


def test_aliases_of_aliases_do_not_fill_the_memory():
    lines = ["a: &a0 [x, x]"] + [f"b{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]
    with pytest.raises(UnreadableSource, match="too many values"):
        read_yaml("\n".join(lines))


def test_a_table_inside_itself_is_refused():
    with pytest.raises(UnreadableSource, match="too deep"):
        read_yaml("a: &a\n  b: *a\n")


@given(st.text())
def test_no_text_breaks_the_reader(text: str):
    with suppress(UnreadableSource):
        read_yaml(text)
