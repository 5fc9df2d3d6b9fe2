"""Web search and page fetch for models without web access, with an SSRF guard."""
