"""The commands of `semsim-studio` that need no science; only `__main__` and app.py come in."""
