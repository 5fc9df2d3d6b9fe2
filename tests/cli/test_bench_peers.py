"""proofs/bench/peers.py and recipe.py: other gateways by a recipe. Times are not tested."""

import sys

import pytest

from proofs.bench import charts, gateway, peers, processes, recipe, tables, toolbox
from proofs.bench.scenarios import BY_KEY
from proofs.boards import recipe as probed
from proofs.boards.recipe import BadRecipe, Installed
from tests.cli.test_bench_report import full_results

NOTHING = Installed(None, None, "")
RECIPE = """
name = "other"
start = ["true", "{port}", "{upstream}", "{directory}/own.json"]
headers = ["x-key: one", "x-to: {upstream}"]
scenarios = ["A", "D"]
model = "{upstream}/{model}"

[paths]
openai-chat = "/api/{model}"

[environment]
PORT = "{port}"

[files]
"own.json" = '{"upstream": {upstream}, "braces": {}}'
"""


@pytest.fixture
def made(tmp_path):
    path = tmp_path / "other.toml"
    path.write_text(RECIPE)
    return recipe.Peer(recipe.read(path), NOTHING, 9001, tmp_path)


def test_a_recipe_says_how_a_gateway_is_started_and_what_is_written_for_it(made, tmp_path):
    assert (tmp_path / "other" / "own.json").read_text() == '{"upstream": 9001, "braces": {}}'
    assert f"PORT={made.port}" in made._argv
    assert made._argv[-3:] == [str(made.port), "9001", f"{tmp_path}/other/own.json"]


def test_a_peer_is_asked_in_its_own_paths_and_names(made):
    scenario = BY_KEY["A-cc"]
    assert made.path(scenario) == "/api/openai-chat/mock-c200"
    assert b'"model":"openai-chat/mock-c200"' in made.body(scenario)
    assert made.headers == ("x-key: one", "x-to: 9001")


def test_a_peer_is_measured_only_in_what_its_recipe_names(made):
    assert made.takes(BY_KEY["A-cc"])
    assert not made.takes(BY_KEY["B-cc"])
    # It has no path for an Anthropic client, and cannot ask a Gemini upstream.
    assert not made.takes(BY_KEY["D-ac"])
    assert not made.takes(BY_KEY["D-cg"])


@pytest.mark.parametrize("name", peers.DEFAULT)
def test_the_recipes_that_come_with_it_can_be_read_and_are_measured(name, tmp_path):
    found = recipe.read(recipe.find(name))
    assert found.name == found.installed == name
    peer = recipe.Peer(found, Installed(tmp_path, tmp_path, "1", tmp_path, tmp_path / "it"), 9001, tmp_path)
    assert any(peer.takes(BY_KEY[key]) for key in ("A-cc", "D-ac"))
    assert any(peer.takes(scenario) for scenario in peers.LONE)
    assert any(peer.takes(scenario) for scenario in peers.AGEING)
    assert not [word for word in (*peer._argv, *peer.headers) if "{" in word]
    written = [path.read_text() for path in (tmp_path / name).rglob("*") if path.is_file()]
    assert "9001" in "".join([*written, *peer.headers])


def test_every_gateway_that_is_probed_is_measured():
    assert set(peers.DEFAULT) | {"wireglot"} == {path.stem for path in probed.SHIPPED.glob("*.toml")}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("name = 1", "Expected `str`"),
        ('name = "x"\nstart = []\nscenarios = []\n[paths]\n[wrong]', "unknown field `wrong`"),
        ('name = "x"', "missing required field `start`"),
        ("name =", "Invalid value"),
    ],
)
def test_a_recipe_that_is_wrong_is_refused_with_the_reason(text, why, tmp_path):
    path = tmp_path / "wrong.toml"
    path.write_text(text)
    with pytest.raises(BadRecipe, match=why):
        recipe.read(path)
    with pytest.raises(BadRecipe, match="No such file"):
        recipe.read(tmp_path / "none.toml")


def test_what_is_probed_is_what_is_measured(tmp_path, monkeypatch):
    asked = []

    def install(one, cache):
        asked.append((one, cache))
        return NOTHING

    monkeypatch.setattr(probed, "install", install)
    recipe.install(recipe.read(recipe.find("litellm")), tmp_path)
    mine = recipe.Recipe(name="mine", start=[], paths={}, scenarios=[], packages=["mine==1"])
    recipe.install(mine, tmp_path)
    (first, cache), (second, _) = asked
    assert (first, cache) == (probed.read("litellm"), tmp_path)
    assert (second.name, second.packages) == ("mine", ["mine==1"])


def test_the_size_is_that_of_the_packages_or_of_the_program(tmp_path):
    venv = tmp_path / "venv"
    for folder in ("mine", "mine/__pycache__", "pip"):
        (venv / folder).mkdir(parents=True)
        (venv / folder / "x").write_bytes(bytes(2**20))
    mine = recipe.Recipe(name="mine", start=[], paths={}, scenarios=[])
    assert recipe.size(mine, Installed(venv, None, "1")) == 1.0
    assert recipe.size(mine, Installed(None, None, "1", program=venv / "pip" / "x")) == 1.0
    assert recipe.size(mine, NOTHING) == 0.0
    (tmp_path / "bifrost").write_bytes(bytes(3 * 2**20))
    built = recipe.read(recipe.find("bifrost"))
    assert recipe.size(built, Installed(None, None, "1", source=tmp_path)) == 3.0


@pytest.mark.skipif(sys.platform != "linux", reason="the tools read /proc and use epoll")
def test_a_gateway_of_a_recipe_is_started_asked_and_ended(tmp_path):
    """The mock upstream is a gateway as good as any."""
    start = [*toolbox.own().upstream, "{port}"]
    paths = {"anthropic": "/v1/messages"}
    one = recipe.Recipe(name="mock", start=start, paths=paths, scenarios=["D"], patience_seconds=60)
    peer = recipe.Peer(one, NOTHING, 9001, tmp_path)
    peer._argv[peer._argv.index("-C") + 1] = str(toolbox.ROOT)
    peer.start(None)
    pid = peer.pid
    peer.stop()
    assert not processes.lives(pid)


def test_a_peer_that_does_not_start_is_left_out_and_reported(tmp_path, capsys):
    one = recipe.Recipe(name="broken", start=["false"], paths={"openai-chat": "/"}, scenarios=["A"])
    bench = gateway.Bench.__new__(gateway.Bench)
    bench.results, bench.server_core = full_results(), None
    bench.servers = [recipe.Peer(one, NOTHING, 9001, tmp_path)]
    bench.start(1)
    assert bench.servers == []
    assert "broken did not start" in capsys.readouterr().err


def test_every_server_has_its_ratio_and_what_failed_is_reported():
    results = full_results()
    slow = [figures | {"cpu_us_req": 1000.0, "err": 2} for figures in results.runs["A-cc"]["wireglot"]]
    results.runs["A-cc"]["other"] = slow
    _, found = peers.sections(results)
    assert found.header == ["", "nginx us", "wireglot us", "ratio (range)", "other us", "ratio (range)"]
    row = next(row for row in found.rows if row[0].endswith("(A)"))
    assert row[4:] == ["1,000", "100 (100-100)"]
    assert "A-cc, other: 6 requests failed." in found.note
    assert "A: other" in str(charts.peers(results))
    assert tables.as_text("", [found])


def test_one_table_has_speed_size_and_score():
    results = full_results()
    lone = {"ok": 9, "err": 0, "p50": 5000.0, "p99": 9000.0}
    results.runs["A1-cc"] = {
        "direct": [{"ok": 9, "err": 0, "p50": 1000.0, "p99": 2000.0}],
        "wireglot": [lone, lone | {"p50": 6000.0}, lone | {"p50": 7000.0}],
    }
    results.starts["wireglot"] = [0.5, 0.25, 9.0]
    results.idle["wireglot"] = {"rss": 50.0, "pss": 40.0}
    results.aged["wireglot"] = {"rss": 60.0, "pss": 55.0, "ok": 1234, "err": 0, "seconds": 3600.0}
    results.sizes["wireglot"] = 12.0
    results.probe["wireglot"] = {"works": 30, "cases": 40, "pairs": 2}
    summary, _ = peers.sections(results)
    row = next(row for row in summary.rows if row[0] == "wireglot")
    shown = dict(zip(summary.header, row, strict=True))
    assert shown["Chat > Chat adds p50 / p99 ms"] == "5.00 / 7.00"
    assert shown["Chat > Chat 2KB"].endswith(f" ({results.ratio(BY_KEY['A-cc'])})")
    assert [shown[name] for name in ("start s", "memory idle MiB", "later")] == ["0.50", "40.0", "55.0"]
    assert [shown[name] for name in ("installed MiB", "probe: works")] == ["12.0", "30 of 40"]
    assert (shown["share"], shown["pairs"]) == ("75.0 %", "2")
    assert "after 60 minutes of 2 streams of 200 events at a time (1,234 to 1,234 streams)" in summary.note


def test_a_score_of_another_version_is_not_shown():
    runs = [{"works": 3, "cases": 4}, {"works": 1, "cases": 6}]
    probe = {"peers": [{"name": name, "version": "1", "runs": runs} for name in ("same", "other")]}
    assert peers.scores(probe, {"same": "1", "other": "2"}) == {"same": {"works": 4, "cases": 10, "pairs": 2}}
