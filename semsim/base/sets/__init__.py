"""The reconstruction set, as it lies on disk."""
