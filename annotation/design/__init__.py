"""What annotators are shown and in which order: pure functions of values and seeds."""
