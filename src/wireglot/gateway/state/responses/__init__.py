"""Stored responses: what a request builds on, what is kept of its answer, how it is asked for again."""
