"""The gateway: serves clients over HTTP, sends their requests to providers and records usage."""
