"""tools/bench/peers.py and recipe.py: other gateways by a recipe. Times are not tested."""

import sys

import pytest

from tests.cli.test_bench_report import full_results
from tools.bench import charts, gateway, peers, processes, recipe, tables, toolbox
from tools.bench.scenarios import BY_KEY

RECIPE = """
name = "other"
start = ["true", "{port}", "{upstream}", "{directory}/own.json"]
headers = ["x-key: one"]
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
    return recipe.Peer(recipe.read(path), None, 9001, tmp_path)


def test_a_recipe_says_how_a_gateway_is_started_and_what_is_written_for_it(made, tmp_path):
    assert (tmp_path / "other" / "own.json").read_text() == '{"upstream": 9001, "braces": {}}'
    assert f"PORT={made.port}" in made._argv
    assert made._argv[-3:] == [str(made.port), "9001", f"{tmp_path}/other/own.json"]


def test_a_peer_is_asked_in_its_own_paths_and_names(made):
    scenario = BY_KEY["A-cc"]
    assert made.path(scenario) == "/api/openai-chat/mock-c200"
    assert b'"model":"openai-chat/mock-c200"' in made.body(scenario)
    assert made.headers == ("x-key: one",)


def test_a_peer_is_measured_only_in_what_its_recipe_names(made):
    assert made.takes(BY_KEY["A-cc"])
    assert not made.takes(BY_KEY["B-cc"])
    # It has no path for an Anthropic client, and cannot ask a Gemini upstream.
    assert not made.takes(BY_KEY["D-ac"])
    assert not made.takes(BY_KEY["D-cg"])


@pytest.mark.parametrize("name", peers.DEFAULT)
def test_the_recipes_that_come_with_it_can_be_read_and_are_measured(name, tmp_path):
    found = recipe.read(recipe.find(name))
    assert found.name == name
    assert found.packages
    peer = recipe.Peer(found, tmp_path / "venv", 9001, tmp_path)
    assert all(peer.takes(BY_KEY[key]) for key in ("A-cc", "D-ac", "P-cc"))
    assert not [word for word in peer._argv if "{" in word]
    for text in (tmp_path / name).iterdir():
        assert "9001" in text.read_text()


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
    with pytest.raises(recipe.BadRecipe, match=why):
        recipe.read(path)
    with pytest.raises(recipe.BadRecipe, match="No such file"):
        recipe.read(tmp_path / "none.toml")


def test_an_environment_is_made_once_for_one_list_of_packages(tmp_path, monkeypatch):
    ran = []

    def run(command):
        ran.append(command)
        (tmp_path / "other").mkdir(exist_ok=True)

    monkeypatch.setattr(recipe, "_run", run)
    one = recipe.Recipe(name="other", start=[], paths={}, scenarios=[], packages=["other==1"])
    assert recipe.install(one, tmp_path) == tmp_path / "other"
    assert len(ran) == 2
    recipe.install(one, tmp_path)
    assert len(ran) == 2
    one.packages = ["other==2"]
    recipe.install(one, tmp_path)
    assert len(ran) == 4
    one.packages = []
    assert recipe.install(one, tmp_path) is None


@pytest.mark.skipif(sys.platform != "linux", reason="the tools read /proc and use epoll")
def test_a_gateway_of_a_recipe_is_started_asked_and_ended(tmp_path):
    """The mock upstream is a gateway as good as any."""
    start = [*toolbox.own().upstream, "{port}"]
    paths = {"anthropic": "/v1/messages"}
    one = recipe.Recipe(name="mock", start=start, paths=paths, scenarios=["D"], patience_seconds=60)
    peer = recipe.Peer(one, None, 9001, tmp_path)
    peer._argv[peer._argv.index("-C") + 1] = str(toolbox.ROOT)
    peer.start(None)
    pid = peer.pid
    peer.stop()
    assert not processes.lives(pid)


def test_a_peer_that_does_not_start_is_left_out_and_reported(tmp_path, capsys):
    one = recipe.Recipe(name="broken", start=["false"], paths={"openai-chat": "/"}, scenarios=["A"])
    bench = gateway.Bench.__new__(gateway.Bench)
    bench.results, bench.server_core = full_results(), None
    bench.servers = [recipe.Peer(one, None, 9001, tmp_path)]
    bench.start(1)
    assert bench.servers == []
    assert "broken did not start" in capsys.readouterr().err


def test_every_server_has_its_ratio_and_what_failed_is_reported():
    results = full_results()
    slow = [figures | {"cpu_us_req": 1000.0, "err": 2} for figures in results.runs["A-cc"]["wireglot"]]
    results.runs["A-cc"]["other"] = slow
    found, _ = peers.sections(results)
    assert found.header == ["", "nginx us", "wireglot us", "ratio (range)", "other us", "ratio (range)"]
    row = next(row for row in found.rows if row[0].endswith("(A)"))
    assert row[4:] == ["1,000", "100 (100-100)"]
    assert "A-cc, other: 6 requests failed." in found.note
    assert "A: other" in str(charts.peers(results))
    assert tables.as_text("", [found])
