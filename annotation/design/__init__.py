"""Selection and order of what annotators are shown: pure functions of values and seeds."""
