"""How many instructions the core's hot paths take, held against what was recorded: `make guard`."""
