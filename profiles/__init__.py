"""Workloads and starting profiles, as TOML."""
