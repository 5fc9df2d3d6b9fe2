"""One small coding-agent conversation, in each of the four main dialects."""
