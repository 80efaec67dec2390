"""One file a command, imported when it is run; only `__main__` comes in."""
