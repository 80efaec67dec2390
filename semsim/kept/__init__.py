"""What lies on disk: writes that are whole or not there, keys, versions; any room may come in."""
