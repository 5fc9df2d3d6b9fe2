"""Signing in to a cloud: what opens it for a while, obtained, renewed for everybody, and signed with."""
