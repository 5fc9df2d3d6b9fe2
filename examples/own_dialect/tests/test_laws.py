"""Every law that a dialect keeps, on Acme's own documents and streams (and on many that the laws draw)."""

from pathlib import Path

from acme_wireglot import DIALECT

from wireglot.testing import check_dialect, samples_in


def test_acme_keeps_the_laws() -> None:
    check_dialect(DIALECT, samples_in(Path(__file__).parent / "acme"))
