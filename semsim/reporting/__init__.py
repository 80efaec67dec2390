"""An analysis on paper: figures, tables, one report, and the bundle of all of them."""
