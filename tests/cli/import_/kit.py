"""Importing what people really have: the fixtures, and what is known of each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from wireglot.cli.import_.ccr import convert as convert_ccr
from wireglot.cli.import_.draft import Draft, ImportReport, written
from wireglot.cli.import_.litellm import convert as convert_litellm
from wireglot.cli.import_.litellm import with_included
from wireglot.cli.import_.source import SourceNode, read_json5, read_yaml
from wireglot.gateway.config import load
from wireglot.gateway.settings import Settings

FIXTURES = Path(__file__).parents[2] / "fixtures" / "import"
LITELLM = sorted(FIXTURES.glob("litellm/*.yaml"))
CCR = sorted(FIXTURES.glob("ccr/*.json"))
ALL = [*LITELLM, *CCR]


class Imported:
    def __init__(self, draft: Draft, report: ImportReport) -> None:
        self.draft = draft
        self.report = report
        self.text = written(draft, report, "wireglot import")

    def settings(self) -> Settings:
        """As the gateway loads it, once its variables are set."""
        return load(
            Path("wireglot.toml"), environ=self.environ(), create_secret=False, content=self.text.encode()
        )

    def environ(self) -> dict[str, str]:
        needed = enumerate(self.draft.secrets.needed)
        return {name: self.draft.secrets.value(name) or f"stand-in-{number}" for number, name in needed}

    def fate(self, path: str) -> str:
        (found,) = (finding for finding in self.report.findings if finding.leaf.path == path)
        return found.fate

    def said(self, path: str) -> str:
        (found,) = (finding for finding in self.report.findings if finding.leaf.path == path)
        return found.said


def imported(file: Path, known: Mapping[str, str] | None = None) -> Imported:
    text = file.read_text()
    return litellm(text, known, file.parent) if file.suffix == ".yaml" else ccr(text, known)


def litellm(text: str, known: Mapping[str, str] | None = None, folder: Path = FIXTURES) -> Imported:
    root, beside = read_yaml(text)
    root, more = with_included(root, lambda name: read_yaml((folder / name).read_text(), name))
    return Imported(*convert_litellm(root, known or {}, [*beside, *more]))


def ccr(text: str, known: Mapping[str, str] | None = None) -> Imported:
    return Imported(*convert_ccr(read_json5(text), known or {}))


def settings_in(node: SourceNode) -> Iterator[SourceNode]:
    """Every setting of a source, found without the report's help."""
    if isinstance(node.value, dict) and node.value:
        for inner in node.value.values():
            yield from settings_in(inner)
    elif isinstance(node.value, list) and node.value:
        for inner in node.value:
            yield from settings_in(inner)
    else:
        yield node
