"""The reconstruction set: one row, one writer, one reader; all who make or judge sets come in."""
