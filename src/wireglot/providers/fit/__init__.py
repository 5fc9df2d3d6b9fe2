"""A request bent to what an endpoint takes."""
