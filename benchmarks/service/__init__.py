"""A year of re-tuning in fast time."""
