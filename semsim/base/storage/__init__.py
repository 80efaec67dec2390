"""What lies on disk: whole or not there, under a key, with its version; where files lie."""
