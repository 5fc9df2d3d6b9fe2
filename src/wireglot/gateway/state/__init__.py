"""State that outlives a request: usage, keys, limits, conversations, reasoning."""
