"""One small coding-agent conversation, written down in each of the four main dialects."""
