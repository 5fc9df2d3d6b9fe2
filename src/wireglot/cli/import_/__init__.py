"""`wireglot import`: the configuration of another gateway -> a `wireglot.toml`."""
