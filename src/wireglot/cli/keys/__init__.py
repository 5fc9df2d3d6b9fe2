"""`wireglot keys`: who may use the gateway, and how much."""
