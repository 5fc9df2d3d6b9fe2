"""`wireglot serve`: the gateway itself."""
