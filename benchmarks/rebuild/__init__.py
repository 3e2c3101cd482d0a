"""How long arrays take to create, check and rebuild: the build table."""
