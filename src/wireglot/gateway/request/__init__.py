"""The parsed request and everything that belongs to it until it ends."""
