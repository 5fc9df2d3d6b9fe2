"""What the gateway remembers beyond a request: usage, keys, limits, conversations, reasoning."""
