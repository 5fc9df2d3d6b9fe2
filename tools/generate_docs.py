"""Write the generated pages and parts; with --check fail if one is out of date. A torn table fails too."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from proofs.contract import results as contract_results
from proofs.fidelity.matrix import DIRECTIONS, LETTERS, Grade, run_matrix, title
from proofs.judges import results as judge_results
from proofs.sdk_fields.page import pages as field_pages
from tools import (
    architecture,
    cli_page,
    config_tables,
    error_codes,
    fault_table,
    install_lines,
    library_example,
    limits_page,
    metric_table,
    page_shape,
    page_types,
    probe_page,
    provider_page,
    readme_figures,
    reliability_page,
    requirements_table,
)
from tools.blocks import filled
from tools.http_api.document import document as http_document
from tools.http_api.page import page as http_page
from tools.site import navigation
from wireglot_core.dialects import registry
from wireglot_core.ir.grades import GRADE_MEANINGS, GRADES
from wireglot_core.ir.loss import FEATURES
from wireglot_core.plugins import load_dialects

ROOT = Path(__file__).parents[1]
_MARK = "<!-- Written by tools/generate_docs.py (`make docs`). Do not edit. -->"
_CELLS: dict[Grade, str] = {
    "kept": "kept",
    "side channel": "*side*",
    "approximated": "~",
    "refused": "refused",
}


def _losses() -> list[str]:
    """Every feature name with its meaning, and how bad it is to lose it."""
    listed: list[str] = []
    for name, text in sorted(FEATURES.items()):
        listed.append(f"- `{name}`: {text}")
        listed += [
            f"  - {action}, {grade}: {reason}"
            for (feature, action), (grade, reason) in sorted(GRADES.items())
            if feature == name
        ]
    return [
        "# Losses",
        "",
        "Anything that a translation cannot carry over exactly is reported as a loss:",
        "`Loss(path, feature, action, detail)`, with a `grade`.",
        "",
        "| action | meaning |",
        "|---|---|",
        "| `dropped` | it was not sent to the target |",
        "| `approximated` | a similar value was sent to the target |",
        "| `emulated` | it was sent in another form, which is reversed in the answer |",
        "| `invented` | the target requires it, and the source does not contain it |",
        "",
        "| grade | meaning |",
        "|---|---|",
        *(f"| `{grade}` | {meaning} |" for grade, meaning in GRADE_MEANINGS.items()),
        "",
        "`path` points into the client's own document: `document` says whether that is the `request` it sent",
        "(`$.messages[2].content[0].cache_control`, `$.tools[1].function.strict`, `$.generationConfig.seed`)",
        "or the `response` it gets (`$.choices[0].message`, `$.usage`). The path of something invented is",
        "where it would be. A conversation without a dialect (`History`) uses the neutral names",
        "(`$.messages[2].content[0].signature`, `$.sampling.seed`).",
        "Feature names are stable: they are added, never renamed. Grades may change.",
        "",
        "## Features",
        "",
        "Each with its meaning, and with the grade of what can be done to it.",
        "",
        *listed,
    ]


def _matrix() -> list[str]:
    """What became of each probe in each direction."""
    matrix = run_matrix()
    lines = [
        "# Fidelity matrix",
        "",
        "Measured, not promised: each feature is a small conversation or answer that the tests send in all",
        f"{len(DIRECTIONS)} directions between "
        + ", ".join(f"{letter} ({name})" for name, letter in LETTERS.items())
        + ".",
        "`A>C` is an Anthropic client served by a Chat upstream: requests go that way, answers come back.",
        "The upstream model has no known limits; what a particular provider refuses comes on top, and is",
        "declared like the rest.",
        "",
        "| cell | meaning |",
        "|---|---|",
        "| kept | the other side has it as it was meant |",
        "| *side* | kept by a side channel: it travels in another form and comes back as it was |",
        "| ~ | approximated, with a declared loss |",
        "| dropped | not carried, with a declared loss |",
        "| refused | a clear error instead of a bad translation |",
        "| (empty) | the side that would have to say it has no word for it |",
    ]
    for of in LETTERS:
        heads = [title(client, upstream) for client, upstream in DIRECTIONS if client == of]
        lines += [
            "",
            f"## Clients that speak {of}",
            "",
            "| features | " + " | ".join(heads) + " |",
            "|---" * (len(heads) + 1) + "|",
        ]
        alike: dict[tuple[str, ...], list[str]] = {}
        for name, row in matrix.items():
            cells = tuple(_CELLS.get(row[head], row[head].replace("n/a", "")) for head in heads)
            alike.setdefault(cells, []).append(name)
        lines += [
            f"| {'; '.join(names)} | {' | '.join(cells)} |" for cells, names in alike.items() if any(cells)
        ]
    return lines


def _page(*lines: str) -> str:
    return "\n".join((_MARK, "", *lines)) + "\n"


_REFERENCE: Final[dict[str, Callable[[], Iterable[str]]]] = {
    "contract.md": contract_results.page,
    "errors.md": error_codes.page,
    "faults.md": fault_table.page,
    "judges.md": judge_results.page,
    "losses.md": _losses,
    "matrix.md": _matrix,
    "metrics.md": metric_table.page,
    "modules.md": architecture.modules_page,
    "probe-cases.md": probe_page.cases_page,
    "providers.md": provider_page.page,
    "requirements.md": requirements_table.page,
}


def parts() -> dict[str, dict[str, str]]:
    """The generated parts of pages that people write."""
    return {
        "architecture.md": architecture.blocks(),
        "cli.md": cli_page.blocks(),
        "configuration.md": config_tables.blocks(),
        "library.md": {"dialects": library_example.dialects(), "example": library_example.example()},
        "probe.md": probe_page.blocks(),
    }


def http_pages() -> dict[Path, str]:
    """The OpenAPI document, and the page of it."""
    reference = ROOT / "docs" / "reference"
    document = http_document()
    return {
        reference / "openapi.json": json.dumps(document, indent=1, ensure_ascii=False) + "\n",
        reference / "http.md": _page(*http_page(document)),
    }


def stale(check: bool, fields: bool = True) -> Iterable[str]:
    """Write the pages that differ (or only name them). `fields`: those of SDK fields, which take long."""
    leave_out_plugins()
    docs = ROOT / "docs"
    pages = {docs / "reference" / name: _page(*page()) for name, page in _REFERENCE.items()}
    pages[docs / "limits.md"] = _page(*limits_page.page())
    proofs = docs / "reliability.md"
    written = proofs.read_text(encoding="utf-8") if proofs.exists() else ""
    pages[proofs] = reliability_page.current(written, _page(*reliability_page.page()))
    pages |= http_pages()
    for name, text in field_pages().items() if fields else ():
        pages[docs / "reference" / "fields" / name] = _page(text)
    for name, blocks in parts().items():
        pages[docs / name] = filled((docs / name).read_text(encoding="utf-8"), blocks)
    figures = readme_figures.results()
    readme = ROOT / "README.md"
    pages[readme] = filled(readme.read_text(encoding="utf-8"), {"figures": readme_figures.sentence(figures)})
    pages |= {docs / "figures" / name: badge for name, badge in readme_figures.badges().items()}
    yield from _differing(pages, check)
    yield from _differing(dict(install_lines.pages()), check)
    yield from _differing({ROOT / page_types.FILE: page_types.text()}, check)
    # Last: it has the titles of all others.
    home = docs / navigation.HOME
    listed = {"pages": navigation.page_list(navigation.sections())}
    yield from _differing({home: filled(home.read_text(encoding="utf-8"), listed)}, check)


def leave_out_plugins() -> None:
    """Pages are about this package: a dialect of another one that is installed here is in none of them."""
    for name in load_dialects():
        registry.unregister(name)


def _differing(pages: dict[Path, str], check: bool) -> Iterable[str]:
    for path, text in pages.items():
        if path.exists() and path.read_text(encoding="utf-8") == text:
            continue
        if not check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        yield str(path.relative_to(ROOT))


def main() -> int:
    check = "--check" in sys.argv[1:]
    names = list(stale(check))
    for name in names:
        print(f"{name}: {'out of date, run `make docs`' if check else 'written'}")
    faults = list(torn())
    for fault in faults:
        print(fault)
    return 1 if faults or (check and names) else 0


def torn() -> Iterable[str]:
    """Rows and items of any page that a renderer does not show as such."""
    for path in page_shape.all_pages():
        for fault in page_shape.torn_places(path.read_text(encoding="utf-8")):
            yield f"{path.relative_to(ROOT)}:{fault}"


if __name__ == "__main__":
    sys.exit(main())
