"""Conversations that the gateway holds, for every dialect, and the sessions they are listed as."""
