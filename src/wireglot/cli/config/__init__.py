"""`wireglot config`: is a configuration right, and what does it come to."""
