"""What a family of synthetic arrays is like, to hold it against what real ones are said to be."""

from collections.abc import Sequence

import numpy as np

from benchmarks.search.grid import RecordedGrid
from benchmarks.search.instance import WORTH
from benchmarks.search.synthetic import SyntheticArray


def describe(arrays: Sequence[SyntheticArray | RecordedGrid]) -> str:
    """Means over the arrays: of random settings, how many hold and how many are nearly best."""
    holding, nearly, optima = [], [], []
    for array in arrays:
        gains, holds = array.landscape()
        if array.kind != "tight":
            holding.append(float(np.mean(holds)))
        if array.optimum >= WORTH:
            good = np.expm1(gains) >= 0.8 * (array.optimum - 1.0)
            nearly.append(float(np.mean(holds & good)))
            optima.append(array.optimum)
    return (
        f"{len(arrays)} arrays, {len(optima)} with something to gain: "
        f"{np.mean(holding):.0%} of random settings hold, "
        f"{np.mean(nearly):.2%} hold and reach 80 % of the gain; "
        f"median optimum ×{np.median(optima):.2f}"
    )
