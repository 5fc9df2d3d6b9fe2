"""HTTP/1.1 both ways: a server for clients, a client for upstreams. Knows no LLM and no settings."""
