"""Forecasts beside the real rebuilds that follow them, on arrays of the lab."""
