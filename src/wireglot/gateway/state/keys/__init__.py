"""Client keys that are kept in the store."""
