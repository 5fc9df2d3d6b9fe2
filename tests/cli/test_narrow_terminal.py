"""What commands list fits a terminal of 80 columns, however long a name is; a pipe gets whole lines."""

import io
import json
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from tests.tiers import rows
from wireglot.cli import login, main, models, usage
from wireglot.cli.terminal import columns_of, laid_out
from wireglot.gateway.config.provider_keys import ProviderKey

LONG = "a-key-of-a-group-with-a-name-that-someone-made-for-a-report-and-never-looked-at-again"


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Screen:
    for name in ("HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.chdir(tmp_path)
    return Screen()


def wide(text: str) -> list[str]:
    return [line for line in text.splitlines() if len(line) > 80]


def row(name: str) -> dict[str, Any]:
    counts = {
        f"{kind}_tokens": 123_456_789
        for kind in ("input", "output", "cache_read", "cache_write", "reasoning")
    }
    return {"key": name, "requests": 1_234_567, "failed": 1, "p50_ms": 1234, "cost": "1234.5", "unpriced_requests": 0, **counts}  # fmt: skip


def report(*names: str) -> dict[str, Any]:
    total = {**row("total"), "open": 0}
    return {"data": [row(name) for name in names], "total": total, "group_by": ["key"], "currency": "USD"}


def test_usage_of_a_long_name_is_shown_below_it(screen: Screen) -> None:
    shown = "\n".join(usage.table_lines(report("ada", LONG), screen))
    assert wide(shown.replace(LONG, "")) == []
    assert f"\n{LONG}\n  requests 1,234,567, failed 1," in shown
    assert "cost USD 1,234.5000" in shown


def test_usage_in_a_pipe_is_a_table() -> None:
    head, *others = usage.table_lines(report("ada", LONG), io.StringIO())
    assert len({len(line.rstrip()) for line in (head, *others)}) == 1


def test_keys_of_providers_with_long_places_are_shown_one_below_the_other(
    screen: Screen, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = {
        name: ProviderKey(name, name, "environment", (), f"{name.upper()}_API_KEY")
        for name in ("kimi", "a-provider-of-mine-with-a-long-name", "another-provider-of-mine")
    }
    with redirect_stdout(screen):
        login._list(known, as_json=False)
    shown = screen.getvalue()
    assert wide(shown) == []
    assert "the environment" in shown


@rows("words", ["models --all", "models", "probe --list", "dialects", "providers", "losses", "--help", ""])
def test_lists_fit(words: str, screen: Screen) -> None:
    with redirect_stdout(screen):
        main(words.split())
    shown = screen.getvalue()
    assert shown.count("\n") > 5
    assert wide(shown) == []


def test_a_model_that_fits_nowhere_has_its_price_below_it(screen: Screen) -> None:
    off = models.ModelRow(f"p/{LONG}", False, 1000, 20, ("image",), None, "set K")
    with redirect_stdout(screen):
        models._print_table([off])
    assert screen.getvalue() == f"p/{LONG}\n  -  (off)\n"


@rows("columns, lines", [
    (12, [["  aaaaaaaa", "    b"], ["  c", "    d e"]]),
    (80, [["  aaaaaaaa  b"], ["  c            d e"]]),
])  # fmt: skip
def test_rows_are_a_table_or_cells_one_below_the_other(columns: int, lines: list[list[str]]) -> None:
    assert laid_out([("aaaaaaaa", "b", ""), ("c", "", "d e")], columns, "  ") == lines


def test_a_pipe_has_room_for_any_line(screen: Screen) -> None:
    assert columns_of(screen) == 80
    assert columns_of(io.StringIO()) > 10_000


LISTS: dict[str, Callable[[Any], bool]] = {
    "dialects --json": lambda found: {"name", "about"} == set(found[0]) and len(found) >= 11,
    "providers --json": lambda found: "kimi" in {each["name"] for each in found},
    "losses --json": lambda found: "cache_marker" in {each["name"] for each in found},
}


@rows("words", LISTS)
def test_lists_are_json_for_programs(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words.split()) == 0
    assert LISTS[words](json.loads(capsys.readouterr().out))


def test_the_inputs_of_a_model_are_whole_words_in_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models", "--json", "--all"]) == 0
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    takes = {kind for each in found for kind in each["takes"]}
    assert {"image", "document"} <= takes
    assert not {"img", "doc"} & takes


@pytest.mark.parametrize(
    ("text", "status", "problems"),
    [('[providers.kimi]\napi_key = "env:K"\n', 0, []), ("[server]\nport = 'x'\n", 1, ["server.port"])],
)
def test_a_checked_configuration_is_json_for_programs(
    text: str, status: int, problems: list[str], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.setenv("K", "sk-hush-0123456789")
    file = tmp_path / "w.toml"
    file.write_text(text)
    assert main(["config", "check", "--json", str(file)]) == status
    out = capsys.readouterr().out
    assert "sk-hush" not in out
    document = json.loads(out)
    assert [each["path"] for each in document["problems"]] == problems
    if not problems:
        (kimi,) = (each for each in document["providers"] if each["name"] == "kimi")
        assert kimi["keys"] == ["env:K"]
        assert document["port"] == 8484


def test_json_is_for_check_alone(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "trust", "--json"]) == 2
    assert capsys.readouterr().err == "wireglot: --json: expected with `wireglot config check` only\n"


def test_each_check_of_smoke_is_a_line_of_json(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from wireglot.cli import smoke
    from wireglot.cli.remote_gateway import GatewayAddress

    results = [
        smoke.SmokeResult("POST /v1/messages", "sync", 0.0123, "", "p/m", "serious, other"),
        smoke.SmokeResult("POST /v1/messages", "stream", 0.5, "no answer"),
    ]
    monkeypatch.setattr(smoke, "checks", lambda gateway, model: iter(results))
    target = smoke.SmokeTarget(GatewayAddress("http", "127.0.0.1", 8484))
    assert smoke._print_json(target, "p/m") == 1
    good, bad = map(json.loads, capsys.readouterr().out.splitlines())
    assert (good["passed"], good["milliseconds"], good["losses"]) == (True, 12.3, ["serious", "other"])
    assert (bad["passed"], bad["fault"], bad["route"]) == (False, "no answer", None)


def test_a_budget_below_a_cent_is_shown_whole() -> None:
    from wireglot.cli.keys import _amount

    assert [str(_amount(value)) for value in (0.004, 2.5, 50.0, 100)] == ["0.004", "2.50", "50.00", "100"]


@rows("words, complaint", [
    ("translate request --from anthropic --to gemini in.json", "standard input, or a file with --in in.json"),
    ("probe foo", "BASE_URL: expected http://HOST:PORT or https://HOST/PATH"),
    ("serve --host 300.1.1.1", 'server.host: expected an address or a host name, found "300.1.1.1"'),
])  # fmt: skip
def test_a_wrong_use_is_answered_with_what_is_wrong(
    words: str,
    complaint: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert main(words.split()) == 2
    assert complaint in capsys.readouterr().err


@rows("text, found", [
    ("[models\n", "the end of the line"),
    ("[models x\n", "the character 'x'"),
    ("[models", "the end of the file"),
])  # fmt: skip
def test_what_is_no_toml_is_named(text: str, found: str) -> None:
    from wireglot.gateway.config.problems import ConfigError
    from wireglot.gateway.config.read import parse

    with pytest.raises(ConfigError) as reported:
        parse(text.encode(), "w.toml")
    assert "something else" not in str(reported.value)
    assert found in str(reported.value)
