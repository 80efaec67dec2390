"""A long job is a folder: order, progress, result; knows no science, pages and commands come in."""
