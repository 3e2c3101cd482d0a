"""What holds for every test."""

import os

from hypothesis import settings

# As `autotune` itself does: threads of a numeric library only get in each other's way here.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# A busy machine is no fault of what is tested.
settings.register_profile("patient", deadline=None)
settings.load_profile("patient")
