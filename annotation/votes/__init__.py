"""What votes mean: pure functions of values and tables."""
