"""What runs inside the lab's kernel."""
