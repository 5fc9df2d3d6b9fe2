"""Deliberate defects: one small change at a time, and whether the tests of its room notice."""
