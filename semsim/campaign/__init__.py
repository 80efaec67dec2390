"""From a plan to reconstruction sets on disk."""
