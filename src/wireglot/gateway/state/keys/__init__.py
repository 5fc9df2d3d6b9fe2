"""Client keys in the store."""
