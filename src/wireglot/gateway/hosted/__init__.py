"""Runs hosted tools, such as web search, in the gateway for providers that do not run them."""
