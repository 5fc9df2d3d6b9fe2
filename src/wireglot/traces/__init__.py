"""What passed through a gateway, kept to be looked at: a trace, its file, and what can be told from it."""
