"""Tests of the product in a real browser; a package, so that they share one."""
