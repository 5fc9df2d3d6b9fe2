"""`wireglot import`: converts the configuration of another gateway to a `wireglot.toml`."""
