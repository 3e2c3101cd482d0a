"""What could be better about an array and is not for `run` to change. Changes nothing."""
