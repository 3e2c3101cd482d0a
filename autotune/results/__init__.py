"""What a stored run says, without its array."""
