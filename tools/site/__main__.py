"""`python -m tools.site [FOLDER]`: build the site, fail at the first thing that is wrong with it."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from tools.site.diagrams import draw_all
from tools.site.finished import problems
from tools.site.navigation import BadNavigation, all_pages, check, sections
from tools.site.staging import EXTRA, stage

_STATIC: Final = Path(__file__).parent / "static"
_SCORER: Final = Path(__file__).parent / "scorer.js"


def build(out: Path) -> int:
    """The exit status."""
    check(sections())
    with tempfile.TemporaryDirectory(prefix="wireglot-site-") as work:
        source = Path(work) / "source"
        source.mkdir()
        found = stage(source, draw_all)
        status = generate(source, out)
    if status:
        return status
    wrong = problems(out, len(all_pages(found)) + 1)
    for line in wrong:
        print(line, file=sys.stderr)
    return 1 if wrong else 0


def generate(source: Path, out: Path) -> int:
    """Staged pages -> the site. Whatever the generator warns of is a failure, a broken link or anchor too."""
    from sphinx.application import Sphinx

    with tempfile.TemporaryDirectory(prefix="wireglot-doctrees-") as doctrees:
        app = Sphinx(
            source,
            None,
            out,
            Path(doctrees),
            "html",
            confoverrides=_settings(source),
            status=None,
            freshenv=True,
            warningiserror=True,
            parallel=os.cpu_count() or 1,
        )
        app.build()
    return int(app.statuscode)


def _settings(source: Path) -> dict[str, object]:
    from wireglot import __version__

    return {
        "project": "Wireglot",
        "release": __version__,
        "extensions": ["myst_parser"],
        "root_doc": "index",
        "html_theme": "furo",
        "html_title": f"Wireglot {__version__}",
        "html_static_path": [str(_STATIC), str(source / "_static")],
        "html_css_files": ["site.css"],
        "html_search_scorer": str(_SCORER),
        "html_extra_path": [str(source / EXTRA)],
        "html_show_sourcelink": False,
        "html_copy_source": False,
        "html_show_copyright": False,
        "html_use_index": False,
        "myst_heading_anchors": 6,
        "myst_enable_extensions": ["tasklist"],  # the boxes of docs/deployment.md
        "smartquotes": False,  # `--option` keeps its dashes
        "exclude_patterns": ["_static", EXTRA],
        # Examples leave things out with dots, which no lexer of JSON takes.
        "suppress_warnings": ["misc.highlighting_failure"],
    }


def main() -> int:
    out = Path(sys.argv[1]) if len(sys.argv) > 1 else Path("site")
    began = time.monotonic()
    try:
        status = build(out)
    except BadNavigation as problem:
        print(problem, file=sys.stderr)
        return 1
    if not status:
        print(f"{out}: {sum(1 for _ in out.rglob('*.html'))} pages in {time.monotonic() - began:.0f} s")
    return status


if __name__ == "__main__":
    sys.exit(main())
