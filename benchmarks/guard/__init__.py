"""Rebuilds under guard beside users who come and go, on arrays of the lab."""
