"""The systemd units, as they are shipped."""
