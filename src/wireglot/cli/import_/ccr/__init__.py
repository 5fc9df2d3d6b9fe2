"""claude-code-router's `config.json` -> a draft."""
