"""Signing in to the gateway: OAuth device authorization, tokens, the verification page, OpenID Connect."""
