"""Strategies: what proposes the next setting, one file each, found by entry point."""
