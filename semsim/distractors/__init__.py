"""Judges: classifiers that were never attacked, which rank words for lists and judge pictures."""
