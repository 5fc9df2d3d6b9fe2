"""HTTP/1.1 server and client. Generic: no knowledge of LLMs or settings."""
