"""What holds for every test."""

import os

# As `autotune` itself does: threads of a numeric library only get in each other's way here.
os.environ.setdefault("OMP_NUM_THREADS", "1")
