"""Scenarios: disks, arrays and filesystems of a lab, as TOML."""
