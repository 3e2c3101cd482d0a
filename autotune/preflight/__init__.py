"""What stands in the way of a run, and what to know before it. Changes nothing."""
