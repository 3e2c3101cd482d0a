"""autotune finds, proves and keeps the settings that make a Linux md array fast."""
