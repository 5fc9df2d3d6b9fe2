"""Recorded exchanges: the trace, its file format, and analysis."""
