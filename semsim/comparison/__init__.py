"""A study's votes beside its scores: what the page Compare, its command and the report share."""
