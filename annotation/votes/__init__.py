"""Meaning of votes: pure functions of values and tables."""
