"""Statistics that both halves print."""
