"""Other gateways put to the probe in front of the same double: `make probe-peers`."""
