"""The inspector's API and its access control."""
