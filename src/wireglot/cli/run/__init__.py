"""`wireglot run`: a client started with a gateway, and nothing of it changed."""
