"""`wireglot init`: finds what there is to ask, tries it, and writes a configuration."""
