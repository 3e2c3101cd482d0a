"""A run from end to end: prepare, search, confirm."""
