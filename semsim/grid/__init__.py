"""Pieces of work over processes and machines; what the work is comes in as arguments."""
