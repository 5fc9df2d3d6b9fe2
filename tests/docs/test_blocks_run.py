"""Every command and code block of the pages does what its page says; `make docs-blocks` runs the slow ones, too."""

import re

import pytest

from proofs.docs_blocks.__main__ import Runner, not_run, results_of
from proofs.docs_blocks.blocks import blocks_of, pages
from proofs.docs_blocks.page import needs_network
from proofs.docs_blocks.vendors import can_be_alone

PAGES = pages()
WITH_BLOCKS = [page for page, text in PAGES.items() if re.search(r"^ *```", text, re.MULTILINE)]
FIRST_READ = ("README.md", "docs/tutorial.md", "docs/library.md", "docs/gateway.md")
MAX_NOT_RUN_PERCENT = 15


def _tried(page: str) -> object:
    """What everybody reads first, at every change; with `make docs-blocks` all of it."""
    return page if page in FIRST_READ else pytest.param(page, marks=pytest.mark.whole)


ALONE = "needs namespaces: Linux, as root or where users may have them"
alone = pytest.mark.skipif(not can_be_alone(), reason=ALONE)


@pytest.fixture(scope="module")
def runner():
    with Runner() as found:
        yield found


@pytest.mark.parametrize("page", [_tried(page) for page in WITH_BLOCKS])
def test_the_blocks_of_the_page_run(page, request):
    blocks = blocks_of(page, PAGES[page])
    runs = any(needs_network(block, whole=False) for block in blocks)
    if runs and not can_be_alone():
        pytest.skip(ALONE)
    runner = request.getfixturevalue("runner") if runs else None
    results = list(results_of(page, whole=False, runner=runner))
    assert len(results) == len(blocks)
    failed = [f"{each.page}:{each.line}: {each.detail}" for each in results if each.state == "failed"]
    assert not failed, "\n\n".join(failed)


def test_what_is_not_run_says_why_and_is_little():
    found = [block for page, text in PAGES.items() for block in blocks_of(page, text)]
    reasons = not_run(found)
    assert all(len(reason.split()) > 1 for reason in reasons), "a reason is more than a word"
    assert sum(map(len, reasons.values())) * 100 <= MAX_NOT_RUN_PERCENT * len(found)
