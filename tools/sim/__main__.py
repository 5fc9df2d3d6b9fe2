"""See the package."""

from __future__ import annotations

import sys

from tools.sim import clock

if __name__ == "__main__":
    clock.install()  # before anything of the gateway is loaded
    from tools.sim.runner import main

    sys.exit(main())
