"""Whether `autotune design` finds what a complete grid shows to be best."""
