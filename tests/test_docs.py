"""The pages say what the program does: links lead somewhere, and every name they mention exists, both ways."""

import argparse
import re
import shlex
import tomllib
from functools import cache
from pathlib import Path
from string import ascii_letters

import msgspec
import pytest

from tests.gateway.config.config_files import QUIET, loaded
from tests.tiers import WHOLE, rows
from tools import architecture, blocks, config_tables, error_codes, metric_table
from tools.generate_docs import stale
from wireglot.cli.entry import PURE
from wireglot.cli.parser import build_parser
from wireglot.cli.process_setup import DEBUGGABLE
from wireglot.gateway.config.environment import CONFIG_VARIABLE, variables
from wireglot.gateway.config.table import Undeclared
from wireglot.gateway.entry.routes import Routes
from wireglot.gateway.observe.log import JsonLines
from wireglot.gateway.observe.record import ExchangeRecord
from wireglot.http.application import Head
from wireglot.http.redaction import Redactor
from wireglot_core.dialects.gemini import assist
from wireglot_core.dialects.registry import surface, surfaces
from wireglot_core.ir.loss import Loss
from wireglot_core.ir.outcome import Usage
from wireglot_core.ir.purpose import RequestFacts
from wireglot_core.providers.spec import names, provider
from wireglot_core.wire.json import decode

ROOT = Path(__file__).parents[1]
PAGES = {
    str(path.relative_to(ROOT)): path.read_text(encoding="utf-8")
    for path in (*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md")))
}
WRITTEN = {name: text for name, text in PAGES.items() if "Do not edit" not in text}
SOURCES = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py"))
OPERATIONS = PAGES["docs/operations.md"]
HTTP = PAGES["docs/reference/http.md"]
ROUTES = Routes(surfaces())
pages = rows("page", PAGES)


def without_code(text):
    return re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)


def anchors(text):
    """As GitHub makes them of headings."""
    headings = re.findall(r"^#+ (.+)$", without_code(text), flags=re.MULTILINE)
    found: dict[str, int] = {}
    for heading in headings:
        slug = re.sub(r"[^\w\- ]", "", re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).lower()).replace(
            " ", "-"
        )
        found[slug] = found.get(slug, -1) + 1
    named = re.findall(r'<a (?:id|name)="([^"]+)"', text)
    return {f"{slug}-{n}" if n else slug for slug, most in found.items() for n in range(most + 1)} | set(
        named
    )


def links(text):
    """Those of Markdown and of HTML, pictures too; what stands in code is none."""
    prose = re.sub(r"(?<!`)(`+)(?!`)[^\n]+?(?<!`)\1(?!`)", "`code`", without_code(text))
    written = re.findall(r"\]\(([^)\s]+)\)", prose) + re.findall(
        r"^\[[^]]+\]: (\S+)", prose, flags=re.MULTILINE
    )
    return written + re.findall(r'<(?:a|img|source)\b[^>]*?\b(?:href|src|srcset)="([^"]+)"', prose)


def section(text, heading):
    return re.split(r"^#+ ", text.split(f"# {heading}\n", 1)[1], maxsplit=1, flags=re.MULTILINE)[0]


def first_cells(text):
    return [row.split(" | ")[0] for row in re.findall(r"^\| (`.*) \|$", text, flags=re.MULTILINE)]


def test_the_committed_pages_are_up_to_date():
    """R-L-04, R-L-05. Among the tests that read the same sources and SDKs: each is read once in a process."""
    assert list(stale(check=True, fields=WHOLE)) == []


def test_every_code_in_the_source_is_reported_with_what_to_do() -> None:
    """[M4] A code that nobody explains, or an explanation of none, fails here."""
    page = error_codes.page()
    known = {"upstream_auth_failed", "model_not_found", "not_served", "insufficient_quota"}
    assert known <= error_codes.found_codes()
    for code, (status, when, fix) in error_codes.CODES.items():
        assert f"| `{code}` | {status} | {when} | {fix} |" in page
        assert all((status, when, fix))


# Links.


@pages
def test_every_link_inside_the_repository_leads_somewhere(page):
    for link in links(PAGES[page]):
        if re.match(r"https?://", link):
            continue
        file, _, anchor = link.partition("#")
        target = (ROOT / page).parent / file if file else ROOT / page
        assert target.exists(), link
        if anchor:
            name = str(target.resolve().relative_to(ROOT.resolve()))
            assert anchor in anchors(PAGES[name]), link


def test_every_page_can_be_reached_from_the_readme():
    seen, ahead = set(), ["README.md"]
    while ahead:
        page = ahead.pop()
        if page not in PAGES or page in seen:
            continue
        seen.add(page)
        for link in links(PAGES[page]):
            file = link.partition("#")[0]
            if file and "://" not in link:
                ahead.append(str(((ROOT / page).parent / file).resolve().relative_to(ROOT.resolve())))
    assert seen == set(PAGES)


def test_every_decision_is_listed_under_its_own_title():
    listed = dict(
        re.findall(r"^\d+\. \[(.*)\]\((.*)\)$", PAGES["docs/decisions/README.md"], flags=re.MULTILINE)
    )
    files = {path.name for path in (ROOT / "docs" / "decisions").glob("0*.md")}
    assert set(listed.values()) == files
    for title, file in listed.items():
        assert PAGES[f"docs/decisions/{file}"].startswith(f"# {int(file[:4])}. {title}\n")


# Endpoints.


def endpoints(text):
    return set(re.findall(r"`(GET|HEAD|POST) (/[^`?]*)`", text))


def head(method, path, headers=None):
    return Head(method, path, path, "", headers or {}, "127.0.0.1")


def test_every_endpoint_of_the_page_is_answered():
    reported = endpoints(HTTP)
    assert len(reported) > 100
    for method, path in reported:
        asked = ROUTES.match(head(method, path.replace("{model}", "some-model")))
        if asked.operation == "assist":
            spoken = surface(asked.dialect).assist
            assert spoken is not None
            assert spoken.answer(asked.verb, {}, ()) is not None, path
        if asked.operation == "operation":
            assert assist.operation(asked.verb) is not None


@pages
def test_endpoints_elsewhere_exist_too(page):
    for method, path in endpoints(PAGES[page]):
        ROUTES.match(head(method, re.sub(r"\{\w+\}", "m", path.replace("{version}", "v1alpha"))))


# Names: headers, metrics, log fields, variables, commands.


def test_headers_of_ours_are_documented_and_exist():
    used = set(re.findall(r"x-wireglot-[a-z-]+", SOURCES))
    reported = {name for text in PAGES.values() for name in re.findall(r"x-wireglot-[a-z-]+", text)}
    assert reported == used
    on_the_page = set(
        re.findall(r"`(x-wireglot-[a-z-]+)`", HTTP + section(PAGES["docs/gateway.md"], "Headers"))
    )
    assert on_the_page == used


def test_the_metrics_of_the_page_are_those_of_a_running_gateway():
    shown = {name for name, *_ in metric_table.metrics()}
    suffixes = r"_(?:bucket|sum|count)$"
    for text in PAGES.values():
        mentioned = set(re.findall(r"\bwireglot_(?!core\b)[a-z_]+\b", text))
        assert {re.sub(suffixes, "", name) for name in mentioned} <= shown
    table = PAGES["docs/reference/metrics.md"]
    assert {cell.strip("`") for cell in first_cells(table)} == shown


def test_every_field_of_a_log_line_is_documented():
    full = ExchangeRecord(
        "req_1", 1.0, dialect="anthropic", operation="generate", caller="c", model="m", path="/p", agent="a",
        provider="p", upstream_model="m", account="f", fallbacks=["a/b"], status=502, outcome="error", stop="end",
        error_kind="server", usage=Usage(input=1, cache_read=1), usage_source="partial", losses=[Loss(f"$.{name}", "sampling.seed", "dropped", "") for name in ascii_letters],
        upstream_request_id="u", notes=["n"], first_byte=2.0, finished=3.0,
        facts=RequestFacts("subagent", agent="Explore"),
    )  # fmt: skip
    line = decode(JsonLines(Redactor([])).request(full))
    reported = section(OPERATIONS, "Log")
    assert {name for cell in first_cells(reported) for name in re.findall(r"\w+", cell)} == set(line)
    for nested in ("tokens", "error"):
        assert all(f"`{name}`" in reported for name in line[nested])


def test_every_event_of_the_log_is_documented():
    noted = set(re.findall(r'note\(\s*"(?:debug|info|warn|error)",\s*"([a-z -]+)"', SOURCES))
    assert noted >= {"listening", "stopped", "bug", "sign-in denied"}
    assert not [event for event in noted if f"`{event}`" not in section(OPERATIONS, "Log")]


@pages
def test_our_variables_exist(page):
    known = {CONFIG_VARIABLE, DEBUGGABLE, PURE, *(setting.env for _, setting in variables())}
    # A client's, named on the page about clients; the tests'.
    theirs = {"WIREGLOT_KEY", "WIREGLOT_UPDATE", "WIREGLOT_WHOLE", "WIREGLOT_DEEP", "WIREGLOT_ROW"}
    assert set(re.findall(r"WIREGLOT_[A-Z_]+", PAGES[page])) <= known | theirs


@cache
def parser():
    return build_parser()


@cache
def commands():
    (subparsers,) = (action for action in parser()._actions if isinstance(action, argparse._SubParsersAction))
    return dict(subparsers.choices)


def options(parser):
    """Those of its actions, too (`wireglot keys create`)."""
    found = {option for action in parser._actions for option in action.option_strings}
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            found = found.union(*map(options, action.choices.values()))
    return found


def shell_commands(text):
    """The arguments of each `wireglot` in a shell block, without variables, redirections and `&`."""
    for block in re.findall(r"^```sh\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE):
        lines = block.replace("\\\n", " ")
        for given in re.findall(r"^(?:[A-Z_]+=\S+ )*(?:\S*/)?wireglot (.*)$", lines, flags=re.MULTILINE):
            yield shlex.split(re.sub(r"[<>] *\S+|&$", "", given), comments=True)


@rows("page", WRITTEN)
def test_commands_in_the_pages_can_be_given(page):
    for given in shell_commands(WRITTEN[page]):
        parser().parse_args(given)
    for name, rest in re.findall(r"`wireglot ([a-z]+)([^`\n]*)`", WRITTEN[page]):
        assert name in commands(), name
        assert set(re.findall(r"--[a-z-]+", rest.partition(" -- ")[0])) <= options(commands()[name])


def test_shell_blocks_are_looked_at():
    assert ["serve"] in list(shell_commands(PAGES["README.md"]))
    assert any(given[0] == "config" for given in shell_commands(OPERATIONS))


@pages
def test_targets_of_make_exist(page):
    targets = set(
        re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE)
    )
    mentioned = re.findall(r"`make ([a-z-]+)", PAGES[page]) + re.findall(
        r"^ *make ([a-z-]+)", PAGES[page], re.M
    )
    assert set(mentioned) <= targets


# Examples.


def test_the_readmes_configuration_loads(tmp_path):
    (example,) = re.findall(r"```toml\n(.*?)```", PAGES["README.md"], flags=re.DOTALL)
    settings = loaded(tmp_path, example, {**QUIET, "MOONSHOT_API_KEY": "k"})
    assert [rule.match for rule in settings.rules] == ["claude-*", "fast"]


@pages
def test_every_toml_example_is_toml(page):
    for example in re.findall(r"```toml\n(.*?)```", PAGES[page], flags=re.DOTALL):
        tomllib.loads(example)


@rows("page", WRITTEN)
def test_models_named_with_their_provider_are_known_to_it(page):
    """`kimi/kimi-k3` in an example must be a model one can ask for."""
    for name, model in re.findall(r"(?<![\w/-])([a-z][a-z-]+)/((?!v\d)[a-z][\w.-]*\d[\w.-]*)", WRITTEN[page]):
        if name in names() and provider(name).models:  # clouds call models as their customers do
            entry = provider(name).model(model)
            assert entry is not None, f"{name}/{model}"
            assert not entry.retired, f"{name}/{model}"


# The generator.


def test_a_block_without_a_writer_or_a_writer_without_a_block_is_reported():
    page = "a\n<!-- generated: x -->\nold\n<!-- end -->\nb\n"
    assert blocks.filled(page, {"x": "new"}) == page.replace("old", "new")
    for wrong in ({}, {"y": "new"}, {"x": "new", "y": "new"}):
        with pytest.raises(blocks.NoBlock):
            blocks.filled(page, wrong)


def test_a_setting_without_a_meaning_is_reported():
    class Limits(msgspec.Struct):
        queue: int = 256

    with pytest.raises(Undeclared, match=r"Limits\.queue: no description"):
        config_tables.settings_table(Limits)


@rows(
    ("value", "text"),
    [
        (64 * 1024 * 1024, "64 MiB"),
        (8192, "8 KiB"),
        (128, "128"),
        (2.0, "2"),
        (0.25, "0.25"),
        (True, "true"),
        (None, "none"),
        ("warn", "`warn`"),
        ((), "none"),
    ],
)
def test_defaults_are_shown_as_one_would_write_them(value, text):
    assert config_tables.shown(value) == text


def test_a_bar_in_a_cell_does_not_end_it():
    assert blocks.table(("a",), [("x|y",)]) == "| a |\n| --- |\n| x\\|y |"


# The architecture.


def test_layers_are_drawn_without_what_is_optional_and_not_there():
    contract = {
        "name": "Down",
        "type": "layers",
        "layers": [
            "(wireglot.cli) | (wireglot.nowhere)",
            "wireglot.stores : wireglot.http",
            "(wireglot.nothing)",
        ],
    }
    lines = architecture.contract_text(contract).splitlines()
    assert lines[0] == "**Down**"
    assert "    layer0[cli]" in lines
    assert [line.strip() for line in lines if "module" in line] == ["module1_0[stores]", "module1_1[http]"]
    assert [line.strip() for line in lines if "-->" in line] == ["layer0 --> layer1"]


def test_layers_of_a_container_are_drawn_by_their_names_in_it():
    contract = {
        "name": "Layers",
        "type": "layers",
        "containers": ["wireglot.gateway"],
        "layers": ["app", "relay", "entry | observe"],
    }
    text = architecture.contract_text(contract)
    assert text.startswith("**Layers** in `gateway`")
    assert "layer0[app]" in text
    assert "module2_0[entry]" in text


def test_every_module_and_every_package_is_listed():
    listed = re.findall(r"^- (`[^`]+`): ", PAGES["docs/reference/modules.md"], flags=re.MULTILINE)
    assert "`relay/relay.py`" in listed
    assert "`wireglot_core/translate.py`" in listed
    packages = first_cells(PAGES["docs/architecture.md"])
    assert "`gateway/relay`" in packages


def test_the_dependencies_are_those_that_are_reported():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    (reported,) = re.findall(
        r"^\| dependencies \| (\w+): (.*?) \|", PAGES["docs/security.md"], flags=re.MULTILINE
    )
    names_reported = reported[1].split(", ")
    assert names_reported == [re.split(r"[^\w-]", needed)[0] for needed in project["dependencies"]]
    assert reported[0] == {7: "seven", 8: "eight", 9: "nine"}[len(names_reported)]


def test_what_each_extra_adds_is_reported():
    """[M9] Anyone who judges the supply chain sees all that can be installed."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    (row,) = re.findall(r"^\| what an extra adds \| (.*?) \|", PAGES["docs/security.md"], flags=re.MULTILINE)
    reported = {name: packages.split(", ") for name, packages in re.findall(r"`(\w+)`: ([\w, -]+)", row)}
    extras = {
        name: packages
        for name, packages in project["optional-dependencies"].items()
        if name not in ("dev", "site")
    }
    assert reported == {
        name: [re.split(r"[^\w-]", needed)[0] for needed in packages] for name, packages in extras.items()
    }


def test_how_much_the_journal_holds_is_reported_once():
    """[M9] Two pages reported two numbers; the others lead to the one that tells it."""
    reported = {
        page: re.findall(r"some ([\d,]+)\s+requests", text)
        for page, text in WRITTEN.items()
        if "journal" in text
    }
    assert {page: numbers for page, numbers in reported.items() if numbers} == {"docs/usage.md": ["100,000"]}


@pytest.mark.parametrize(
    "page", ["docs/architecture.md", "docs/newcomers.md", "docs/extending.md", "CONTRIBUTING.md"]
)
def test_every_source_file_that_a_page_for_developers_names_exists(page: str) -> None:
    named = set(re.findall(r"`([\w.-]+(?:/[\w.-]+)+\.py)`", (ROOT / page).read_text(encoding="utf-8")))
    folders = (ROOT, ROOT / "src" / "wireglot", ROOT / "src" / "wireglot_core")
    gone = [
        name for name in named if "NAME" not in name and not any((each / name).is_file() for each in folders)
    ]
    assert not gone
