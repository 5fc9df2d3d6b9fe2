"""See the package."""

from __future__ import annotations

import sys

from proofs.simulation import clock

if __name__ == "__main__":
    clock.install()  # before anything of the gateway is loaded
    from proofs.simulation.runner import main

    sys.exit(main())
