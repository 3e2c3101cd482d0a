"""Whether what is measured can be relied on: to be run in the lab, on a quiet machine."""
