"""`autotune check`: a check in parts, under the guard, that goes on where it stopped."""
