"""Files and folders that are whole or not there; every room may come in."""
