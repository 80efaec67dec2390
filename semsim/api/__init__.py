"""What people import: thin fronts of the rooms below, with the numbers of the command line."""
