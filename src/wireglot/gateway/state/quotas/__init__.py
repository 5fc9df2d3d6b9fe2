"""Budgets and rate limits of client keys: reserved before a call, settled after it."""
