"""Other gateways are put to the probe by recipes: small files that say how each is started."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tools.probe_page import peers_table
from tools.probe_peers.__main__ import DEFAULT, probe
from tools.probe_peers.recipe import SHIPPED, BadRecipe, Installed, filled, read
from wireglot.probe.wires.known import WIRES


@pytest.mark.parametrize("name", DEFAULT)
def test_a_recipe_names_dialects_and_upstreams_that_there_are(name: str) -> None:
    recipe = read(name)
    assert recipe.roots.keys() <= WIRES.keys()
    assert recipe.models.keys() <= WIRES.keys()
    assert recipe.name == name


def test_every_recipe_that_is_shipped_is_run() -> None:
    assert {path.stem for path in SHIPPED.glob("*.toml")} == set(DEFAULT)


def test_a_file_that_is_no_recipe_is_told(tmp_path: Path) -> None:
    bad = tmp_path / "mine.toml"
    bad.write_text('name = "mine"\n')
    with pytest.raises(BadRecipe, match="start"):
        read(str(bad))


def test_words_are_filled_in_and_other_braces_stay() -> None:
    assert filled('{"port": {port}, "x": {}}', {"port": 7}) == '{"port": 7, "x": {}}'


@pytest.mark.skipif(sys.platform == "win32", reason="its gateways are started as on Unix")
def test_our_own_recipe_is_started_probed_and_ended() -> None:
    recipe = read("wireglot")
    recipe.roots = {"anthropic": ""}
    recipe.models = {"gemini": recipe.models["gemini"]}
    recipe.environment = {"PYTHONPATH": str(Path("src").resolve())}
    runs = list(probe(recipe, Installed(None, None, "0")))
    assert [(run["client"], run["upstream"], run["score"]) for run in runs] == [
        ("anthropic", "gemini", 100.0)
    ]
    table = peers_table({"date": "2026-11-17", "peers": [{"name": "w", "version": "0", "runs": runs}]})
    assert "| w 0 | anthropic | gemini | " in table
