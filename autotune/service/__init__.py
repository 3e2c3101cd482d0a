"""Re-tuning by itself: what may be done, when, and who hears of it."""
