"""Compares search strategies on arrays whose true optimum is known."""
