"""A profile on a machine: found, rescaled, in force, kept over reboots, compared."""
