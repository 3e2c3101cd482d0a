"""Unattended re-tuning: what may be done, when, and who is notified."""

from pathlib import Path

CONFIG = Path("/etc/autotune/config.toml")
