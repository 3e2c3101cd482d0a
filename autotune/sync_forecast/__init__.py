"""`autotune forecast`: how long a sync takes at each speed, and how slow requests are then."""
