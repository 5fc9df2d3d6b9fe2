"""Calls targets in order until one answers: retries, fallbacks, circuit breakers."""
