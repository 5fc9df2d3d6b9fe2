"""Tests an endpoint that claims to speak a dialect, with a published list of cases."""
