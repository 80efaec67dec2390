"""Commands: one tree, one console, one printer of tables."""
