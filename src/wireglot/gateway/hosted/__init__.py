"""Tools that a provider would run, run by the gateway in its place."""
