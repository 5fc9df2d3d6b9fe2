"""Access control and routing of paths."""
