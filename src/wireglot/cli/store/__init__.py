"""`wireglot store`: what is remembered, looked at, cleaned, moved."""
