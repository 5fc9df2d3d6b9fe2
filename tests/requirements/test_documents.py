"""Group L: the pages that were asked for are there and tell what they must."""

import re
from pathlib import Path

from tests.tiers import rows

DOCS = Path(__file__).parents[2] / "docs"


def section(page: str, heading: str) -> str:
    """A part of a page below docs, or of the README above it."""
    text = (DOCS / page).read_text(encoding="utf-8")
    _, found, rest = text.partition(f"\n## {heading}\n")
    assert found, f"{page} has no section {heading!r}"
    return re.split(r"^## ", rest, maxsplit=1, flags=re.MULTILINE)[0]


def test_passing_through_and_translating_are_explained():
    """R-L-01, R-L-02, R-N-05: with a diagram, and for each what becomes of request and answer."""
    assert "```mermaid" in section("gateway.md", "The life of a request")
    reported = section("gateway.md", "Forwarded or translated")
    assert "| request | answer |" in reported
    assert re.search(r"^\| same dialect.*bytes", reported, flags=re.MULTILINE)
    assert re.search(r"^\| other dialect \| translated \| translated \|$", reported, flags=re.MULTILINE)


def test_the_readme_draws_forwarding_beside_translation():
    """[D] R-L-01, R-L-02: both diagrams, and what becomes of request, answer and tools in each mode."""
    reported = section("../README.md", "How it works: forwarded or translated")
    drawn = re.findall(r"^!\[[^\]]{20,}\]\((docs/pictures/\w+\.svg)\)$", reported, flags=re.MULTILINE)
    assert drawn == ["docs/pictures/forwarded.svg", "docs/pictures/translated.svg"]
    assert all((DOCS.parent / each).is_file() for each in drawn)
    assert "](docs/forwarding.md)" in reported
    page = (DOCS / "forwarding.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([\w ]+) \| [^|]{10,} \| [^|]{10,} \|$", page, flags=re.MULTILINE)
    assert {"request", "answer", "tools"} <= set(rows)


def test_a_tool_call_is_followed_there_and_back():
    """[D] R-L-03: from `tool_use` to `functionCall` and back."""
    reported = section("forwarding.md", "A tool call in both directions")
    words = ("`tools[].input_schema`", "`functionDeclarations`", "`functionCall`", "`tool_use`")
    places = [reported.index(word) for word in (*words, "`tool_result`", "`functionResponse`")]
    assert places == sorted(places)


def test_the_architecture_is_drawn():
    """R-L-07: how a request flows, and how its parts are bent to a provider."""
    reported = section("architecture.md", "The flow of a translation")
    for word in ("parse_request", "fit to limits", "render_request", "stream_reader", "stream_writer"):
        assert word in reported


@rows(
    "subject",
    [
        "## Retries",
        "stderr",
        "MOONSHOT_API_KEY",
        "**Environment**",
        "**Determinism**",
        "**Acceptance**",
    ],
)
def test_the_adapters_contract_is_written_down(subject):
    """[D] R-L-09: environment, retries, log, determinism, what is accepted and when it is done."""
    assert subject in (DOCS / "kimi.md").read_text(encoding="utf-8")


def test_every_invariant_of_the_contract_is_reported_under_its_number():
    """[D] R-L-09: as many as have tests."""
    reported = re.findall(r"^\| I(\d+) \|", section("kimi.md", "The contract"), flags=re.MULTILINE)
    source = (DOCS.parent / "tests" / "kimi" / "test_invariants.py").read_text(encoding="utf-8")
    assert reported == re.findall(r"def test_I(\d+)_", source)


def test_the_round_of_a_conversation_is_shown():
    """R-L-08: asked, answered, kept as a whole, answered to, and asked again; and that it is cut with care."""
    text = (DOCS / "history.md").read_text(encoding="utf-8")
    (example, *_) = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    steps = ("history.user(", "history.request(", ".answer()", "history.assistant(", "history.result(")
    places = [example.index(step) for step in steps]
    assert places == sorted(places)
    assert "call and its result stay" in section("history.md", "The conversation: `History`")
