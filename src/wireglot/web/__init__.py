"""The web for models that cannot reach it: search backends, and a page fetch with an SSRF guard."""
