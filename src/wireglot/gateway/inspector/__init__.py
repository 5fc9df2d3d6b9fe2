"""The inspector: a page on which people see what passes through the gateway, and who may look at it."""
