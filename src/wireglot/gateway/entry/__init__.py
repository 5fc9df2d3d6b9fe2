"""Who may come in, and what the path means."""
