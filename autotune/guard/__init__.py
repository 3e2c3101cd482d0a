"""`autotune guard`: while an array syncs, its foreground's p99 stays under a ceiling."""
