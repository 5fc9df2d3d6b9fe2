"""`wireglot smoke`: a gateway, asked everything once."""
