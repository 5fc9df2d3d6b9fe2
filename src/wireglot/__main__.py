"""`python -m wireglot`, for where no `wireglot` command is installed."""

import sys

from wireglot.cli import main

if __name__ == "__main__":
    sys.exit(main())
