"""Every command and code block of the pages, run as it is shown or checked by its kind.

    python -m proofs.docs_blocks [PAGE ...] [--quick] [--list]

CONTRIBUTING.md says how a page tells what a block needs.
"""
