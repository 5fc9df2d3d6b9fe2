"""`wireglot pairs`: the bundled conversation in every direction."""
