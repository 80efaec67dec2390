"""The commands of `python -m annotation`; nothing imports from here but `__main__`."""
