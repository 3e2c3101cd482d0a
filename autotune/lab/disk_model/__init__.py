"""The simulated disks, in C."""
