"""`wireglot run`: starts a client on a gateway without changing the client's own settings."""
