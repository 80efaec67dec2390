"""Public interface: thin fronts of the rooms below, with the numbers of the command line."""
