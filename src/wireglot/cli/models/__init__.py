"""`wireglot models`: what can be asked now, and what could be."""
