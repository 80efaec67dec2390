"""The commands of `semsim-studio study`; nothing imports from here but `__main__`."""
