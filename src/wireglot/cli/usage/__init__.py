"""`wireglot usage`: what was used, and what it cost."""
