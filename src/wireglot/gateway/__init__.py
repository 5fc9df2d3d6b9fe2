"""The gateway: the only place, with the stores, for async, sockets, clocks, logs and the environment."""
