"""The use cases of a human study, each one transaction; web, pages and commands come in."""
