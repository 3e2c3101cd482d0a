"""Where a model is asked what it expects: settings from everywhere and around the best."""

import random
from collections.abc import Iterable, Sequence

from autotune.problem.setting import Setting
from autotune.strategies._lattice import Lattice, Row

DRAWN = 1200
"""Settings drawn from the whole space."""


def candidates(
    lattice: Lattice, rng: random.Random, around: Iterable[Row], hints: Sequence[Setting]
) -> list[Row]:
    """Allowed rows: drawn uniformly, up to two steps from each of `around`, and the hints."""
    found = dict.fromkeys(lattice.draw(rng, DRAWN))
    for start in around:
        near = lattice.neighbours(start)
        found.update(dict.fromkeys(near))
        for row in near:
            found.update(dict.fromkeys(lattice.neighbours(row)))
    for hint in hints:
        hinted = lattice.row(hint)
        if hinted is not None and lattice.allows(hinted):
            found[hinted] = None
    return list(found)
