"""How many instructions and calls requests, streams and events take, and what was recorded: `make guard`."""
