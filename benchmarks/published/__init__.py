"""The numbers that people copy, measured again on arrays of the lab."""
