"""Re-tuning by itself: what may be done, when, and who hears of it."""

from pathlib import Path

CONFIG = Path("/etc/autotune/config.toml")
