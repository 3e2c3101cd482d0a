"""The whole command, as a user types it, on real arrays of the lab that no scenario is."""
