"""The one way into the kernel: journaled, watched, read back, restored. Imports nothing heavy."""
