"""LiteLLM's `config.yaml` -> a draft."""
