"""Every field of the vendors' own SDKs, sent through the translation, and what became of it."""
