"""Other gateways are put to the probe by recipes: small files that say how each is started."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from proofs.boards import __main__ as probe_peers
from proofs.boards.__main__ import DEFAULT, counted, probe
from proofs.boards.recipe import (
    SHIPPED,
    BadRecipe,
    GoModule,
    Installed,
    Recipe,
    Source,
    filled,
    install,
    read,
)
from tests.tiers import rows
from tools.probe_page import peers_table, to_do_better
from wireglot.probe.endpoint import EndpointRequest, HttpEndpoint
from wireglot.probe.reply import Verdict
from wireglot.probe.run import CASES, WIRES, ProbeFinding
from wireglot.testing.scripted_upstream import ScriptedUpstream


@rows("name", DEFAULT)
def test_a_recipe_names_dialects_and_upstreams_that_there_are(name: str) -> None:
    recipe = read(name)
    assert recipe.roots.keys() <= WIRES.keys()
    assert recipe.models.keys() <= WIRES.keys()
    assert recipe.name == name
    assert recipe.upstreams.keys() <= recipe.roots.keys()
    assert {each for served in recipe.upstreams.values() for each in served} <= recipe.models.keys()
    assert recipe.headers.keys() <= recipe.models.keys()
    for package in (*recipe.packages, *recipe.npm):
        assert re.search(r"[=@]=?[0-9][0-9.]+$", package), "an exact version, so that a run can be repeated"


def test_every_recipe_that_is_shipped_is_run() -> None:
    assert {path.stem for path in SHIPPED.glob("*.toml")} == set(DEFAULT)


def test_a_file_that_is_no_recipe_is_reported(tmp_path: Path) -> None:
    bad = tmp_path / "mine.toml"
    bad.write_text('name = "mine"\n')
    with pytest.raises(BadRecipe, match="start"):
        read(str(bad))


def git(folder: Path, *words: str) -> str:
    who = ("-c", "user.name=x", "-c", "user.email=x@example.com", "-c", "commit.gpgsign=false")
    done = subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.mark.skipif(sys.platform == "win32", reason="its gateways are built as on Unix")
def test_a_gateway_is_built_once_from_its_tag_and_from_no_other_sources(tmp_path: Path) -> None:
    made = tmp_path / "made"
    (made / "server").mkdir(parents=True)
    (made / "server" / "main").write_text("one")
    (made / "pictures").write_text("large")
    git(made, "init", "-q")
    git(made, "add", ".")
    git(made, "commit", "-qm", "x")
    git(made, "tag", "server/v1.2.3")
    source = Source(
        repository=made.as_uri(),
        tag="server/v1.2.3",
        commit=git(made, "rev-parse", "HEAD"),
        folders=["server"],
        files={"server/panel": "none"},
        build=[["sh", "-ec", "cat server/main server/panel >> program"]],
    )
    recipe = Recipe(name="mine", start=[], roots={}, models={}, source=source)
    install(recipe, tmp_path / "cache")
    installed = install(recipe, tmp_path / "cache")
    assert installed.version == "1.2.3"
    assert installed.source is not None
    assert (installed.source / "program").read_text() == "onenone"
    recipe.source = replace(source, commit="0" * 40)
    with pytest.raises(BadRecipe, match="expected 0000"):
        install(recipe, tmp_path / "cache")


GO = """#!/bin/sh
case "$1 $2" in
"mod download") echo '{"Dir": "DIR", "Sum": "h1:abc"}';;
*) cat main.go > "$6"; echo built "$7" >> "$6";;
esac
"""


@pytest.mark.skipif(sys.platform == "win32", reason="its gateways are built as on Unix")
def test_a_gateway_is_built_once_from_a_go_module_of_this_content(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index, programs = tmp_path / "index", tmp_path / "programs"
    index.mkdir()
    programs.mkdir()
    (index / "main.go").write_text("one\n")
    (index / "main.go").chmod(0o444)
    index.chmod(0o555)  # as the cache of modules is
    (programs / "go").write_text(GO.replace("DIR", str(index)))
    (programs / "go").chmod(0o755)
    monkeypatch.setenv("PATH", str(programs), prepend=":")
    module = GoModule(path="example.com/it", version="v1.2.3", sum="h1:abc", package="./cmd/it")
    recipe = Recipe(name="mine", start=[], roots={}, models={}, module=module)
    installed = install(recipe, tmp_path / "cache")
    assert installed.version == "1.2.3"
    assert installed.program is not None
    assert installed.program.read_text() == "one\nbuilt ./cmd/it\n"
    (programs / "go").write_text("#!/bin/sh\nexit 1\n")
    assert install(recipe, tmp_path / "cache") == installed
    (programs / "go").write_text(GO.replace("DIR", str(index)))
    recipe.module = replace(module, sum="h1:other")
    with pytest.raises(BadRecipe, match="expected h1:other"):
        install(recipe, tmp_path / "cache")


def test_headers_that_lead_to_an_upstream_go_with_every_request() -> None:
    wire = WIRES["anthropic"]
    with (
        ScriptedUpstream() as upstream,
        HttpEndpoint(upstream.url, wire.key_header, headers=(("x-lead-to", "there"),)) as endpoint,
    ):
        endpoint.ask(EndpointRequest("GET", "/v1/models"))
        assert upstream.requests[0].headers["x-lead-to"] == "there"


def test_words_are_filled_in_and_other_braces_stay() -> None:
    assert filled('{"port": {port}, "x": {}}', {"port": 7}) == '{"port": 7, "x": {}}'


@pytest.mark.whole
@pytest.mark.skipif(sys.platform == "win32", reason="its gateways are started as on Unix")
def test_our_own_recipe_is_started_probed_and_ended() -> None:
    recipe = read("wireglot")
    recipe.roots = {"anthropic": ""}
    recipe.models = {"gemini": recipe.models["gemini"]}
    recipe.environment = {"PYTHONPATH": str(Path("src").resolve())}
    (run,) = probe(recipe, Installed(None, None, "0"))
    assert (run["client"], run["upstream"], run["failed"]) == ("anthropic", "gemini", {})
    assert run["works"] + len(run["reported"]) + len(run["warned"]) == run["cases"]
    table = peers_table({"peers": [{"name": "w", "version": "0", "date": "2026-11-17", "runs": [run]}]})
    assert "| w 0 | anthropic | gemini | " in table


def test_what_a_gateway_would_need_is_named_by_case_and_equal_reasons_are_one_cause() -> None:
    failed = {
        "stops.length": "$.stop: expected 'a', found \"b\"",
        "stops.sequence": "$.stop: expected 'a', found \"c\"",
        "streams.order": "frame 3 (x): expected 'a'",
        "usage.grows": "5 tokens | 7",
    }
    run: dict[str, Any] = {"client": "anthropic", "upstream": "gemini", "works": 1, "cases": 5}
    run |= {
        "passed": ["answers.shape"],
        "failed": failed,
        "warned": {},
        "reported": {},
        "none": {},
        "undecided": {},
        "apart": {},
    }
    figures = {"peers": [{"name": "w", "version": "0", "date": "2026-11-17", "runs": [run]}]}
    assert "| `streams.order`, `usage.grows` | 2 | 0 |" in peers_table(figures).replace(
        "`stops.length`, `stops.sequence`, ", ""
    )
    better = to_do_better(figures)
    assert "#### w 0" in better
    (item,) = [line for line in better.splitlines() if "`usage.grows`, 1 of 1 runs" in line]
    assert item.endswith("anthropic over gemini: 5 tokens | 7")


def _run_of(client: str, passed: list[str], failed: list[str]) -> dict[str, Any]:
    kinds: dict[str, Any] = {name: {} for name in ("warned", "reported", "none", "undecided", "apart")}
    counts = {"works": len(passed), "cases": len(passed) + len(failed)}
    return {
        "client": client,
        "upstream": "x",
        **counts,
        "passed": passed,
        **kinds,
        "failed": dict.fromkeys(failed, ""),
    }


def test_the_core_is_counted_apart_and_weighs_as_the_probe_does() -> None:
    """`must` weighs three times `should`. What a gateway says of itself counts once for each of its dialects."""
    runs = [
        _run_of("anthropic", ["stops.length", "errors.unknown-path"], ["answers.request-id", "lists.models"]),
        _run_of("anthropic", ["stops.length", "errors.unknown-path"], ["answers.request-id", "lists.models"]),
        _run_of("gemini", ["stops.length"], []),
    ]
    weights = {case.id: (case.weight, case.core) for case in CASES}
    assert weights["stops.length"] == (3, True)
    assert weights["answers.request-id"] == (1, True)
    assert weights["errors.unknown-path"] == (1, False)
    assert weights["lists.models"] == (3, False)
    table = peers_table({"peers": [{"name": "w", "version": "0", "date": "2026-11-17", "runs": runs}]})
    # Core: 9 of 11. The others: 1 of 4, once for both pairs of `anthropic`.
    assert f"| w 0 | 2026-11-17 | 3 | {100 * 9 / 11:.1f} % | {100 * 10 / 15:.1f} % |" in table
    assert f"| w 0 | anthropic | x | 2 of 4 | 75.0 % | {100 * 4 / 8:.1f} % |" in table


def test_the_core_leaves_out_errors_lists_and_nulls_and_nothing_else() -> None:
    apart = {case.id for case in CASES if not case.core}
    assert apart == {
        case.id for case in CASES if case.theme in ("errors", "lists") or case.id.endswith(".nulls")
    }


def test_a_run_of_one_gateway_keeps_the_figures_of_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "figures.json"
    others: dict[str, Any] = {
        "peers": [{"name": name, "version": "0", "runs": []} for name in ("other", "mine")]
    }
    file.write_text(json.dumps(others))
    recipe = tmp_path / "mine.toml"
    recipe.write_text('name = "mine"\nstart = []\nroots = {}\nmodels = {}\n')
    run = _run_of("anthropic", [], [])
    monkeypatch.setattr(probe_peers, "probe", lambda recipe, installed: [run])
    monkeypatch.setattr(sys, "argv", ["x", "--recipe", str(recipe), "--write", str(file)])
    assert probe_peers.main() == 0
    measured = json.loads(file.read_text())["peers"]
    assert [(peer["name"], peer["runs"]) for peer in measured] == [("other", []), ("mine", [run])]


def test_what_is_reported_does_not_work_and_what_is_missing_here_counts_for_nothing() -> None:
    said: dict[str, tuple[Verdict, str]] = {
        "works": ("pass", ""),
        "refuses": ("not applicable", "it is rejected with a proper error: status 400"),
        "names": ("not applicable", "the answer says that it left out parallel_tools"),
        "lacks": ("not applicable", "it does not count tokens"),
        "breaks": ("fail", "it made 2 calls"),
        "warns": ("warn", "no such header"),
        "without": ("fail", "No connected db."),
        "open": ("inconclusive", "the model said nothing"),
    }
    findings = [ProbeFinding(id=id, verdict=verdict, words=words) for id, (verdict, words) in said.items()]
    recipe = Recipe(name="x", start=[], roots={}, models={}, apart={"No connected db": "no database here"})
    run = counted(recipe, findings)
    assert (run["works"], run["cases"]) == (1, 5)
    kinds = {name: list(run[name]) for name in ("reported", "failed", "warned", "none", "undecided", "apart")}
    assert kinds == {
        "reported": ["refuses", "names"],
        "failed": ["breaks"],
        "warned": ["warns"],
        "none": ["lacks"],
        "undecided": ["open"],
        "apart": ["without"],
    }


@rows("name", DEFAULT)
def test_a_recipe_names_models_that_vendors_have(name: str) -> None:
    """Gateways decide by the name of a model what it can do: one that they cannot know is unfair to them."""
    assert "demo" not in (SHIPPED / f"{name}.toml").read_text()
