"""The cases, a file for each theme."""
