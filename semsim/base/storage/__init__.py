"""Storage on disk: whole or not there, under a key, with its version; places of files."""
