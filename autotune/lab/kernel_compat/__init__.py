"""What is preloaded into the lab's kernel, in C."""
