"""Who may be asked. Pure."""
